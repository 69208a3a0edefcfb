//! Many changes at a time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use informer_testkit::{TestServer, generate};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::browser::Page;
use crate::served::Served;

const RATE: u32 = 2000;
const SECONDS: u32 = 30;

/// Looks at each frame until `window.end` is set: times between frames in ms, and when each change,
/// by its number, was first there.
const LOOK: &str = "
    window.seen = { frames: [], numbers: [], times: [], gaps: 0 };
    window.numberOf = (it) => {
        const values = it.diff.changes.map((of) => String(JSON.stringify(of.new)));
        const found = values.map((of) => /^\\{\"value\":(?:\"|\\{\"n\":\")([0-9]+)\"/.exec(of));
        const number = found.find((of) => of);
        return number ? Number(number[1]) : -1;
    };
    let last = performance.now();
    let newest = null;
    const look = (now) => {
        const time = Date.now();
        seen.frames.push(now - last);
        last = now;
        for (let at = changes.all.length - 1; at >= 0 && changes.all[at] !== newest; at -= 1) {
            if (changes.all[at].type === 'gap') seen.gaps += 1;
            const number = numberOf(changes.all[at]);
            if (number < 0) continue;
            seen.numbers.push(number);
            seen.times.push(time);
        }
        newest = changes.all.at(-1) || null;
        window.last = seen.numbers.length ? numberOf(newest) : -1;
        if (!window.end) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    true";

/// Prints what the page makes of 2,000 changes a second: `cargo test -p informer-tests --test
/// status_page -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, for half a minute"]
async fn two_thousand_changes_a_second() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    server.cluster().load(generate::pods(5000))?;
    let text = |it: &Value, field: &str| it["metadata"][field].as_str().unwrap_or("").to_owned();
    let pods = generate::pods(5000).map(|it| serde_json::from_str::<Value>(&it));
    let pods = pods.map(|it| it.map(|it| (text(&it, "namespace"), text(&it, "name"))));
    let pods = pods.collect::<Result<Vec<_>, _>>()?;
    let served = Served::start(server.client()?, 0).await?;
    page.open(&format!("{}#kind=pods", served.url())).await?;
    page.until("changes.versions.size > 0").await?;
    let before = page.heap().await?;
    page.eval(LOOK).await?;
    let start = Instant::now();
    let cluster = server.cluster().clone();
    let writing = tokio::task::spawn_blocking(move || {
        // When each change was written, in ms.
        let mut times = Vec::new();
        for number in 0..RATE * SECONDS {
            // A build that is not optimised writes fewer.
            if start.elapsed() > Duration::from_secs(1) * SECONDS {
                break;
            }
            let due = start + Duration::from_secs(1) * number / RATE;
            if let Some(early) = due.checked_duration_since(Instant::now()) {
                std::thread::sleep(early);
            }
            let (namespace, name) = &pods[number as usize % pods.len()];
            let phase = if number % 2 == 0 { "Running" } else { "Pending" };
            let patch = json!({"metadata": {"annotations": {"n": number.to_string()}},
                "status": {"phase": phase}});
            times.push(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64() * 1e3);
            cluster.patch("pods", namespace, name, &patch)?;
        }
        anyhow::Ok((times, start.elapsed()))
    });
    let (times, took) = writing.await??;
    page.until(&format!("window.last === {}", times.len() - 1)).await?;
    let seen: Seen = serde_json::from_value(page.eval("window.end = true; seen").await?)?;
    let after = page.heap().await?;
    let lags = seen.numbers.iter().zip(&seen.times).map(|(number, at)| at - times[*number]);
    eprintln!("{} written in {took:?}, {} seen, {} gaps", times.len(), seen.times.len(), seen.gaps);
    eprintln!("time between frames: {}", spread(seen.frames));
    eprintln!("from the write to the page: {}", spread(lags.collect()));
    eprintln!("heap: {before} MB before, {after} MB after");
    served.stop().await
}

/// What the page has seen, see [`LOOK`].
#[derive(Deserialize)]
struct Seen {
    frames: Vec<f64>,
    numbers: Vec<usize>,
    times: Vec<f64>,
    gaps: u32,
}

fn spread(mut all: Vec<f64>) -> String {
    all.sort_by(f64::total_cmp);
    let of =
        |part: usize| all.get((all.len() * part / 100).min(all.len().saturating_sub(1))).copied();
    let [median, most, longest] = [50, 99, 100].map(|it| of(it).unwrap_or_default());
    format!("median {median:.1} ms, 99 % {most:.1} ms, longest {longest:.1} ms")
}
