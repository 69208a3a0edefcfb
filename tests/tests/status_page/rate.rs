//! Many changes at a time.

use std::time::{Duration, Instant};

use informer_testkit::{TestServer, generate};
use serde_json::{Value, json};

use crate::browser::Page;
use crate::served::Served;

const RATE: u32 = 2000;
const SECONDS: u32 = 30;

/// Looks at each frame until `window.end` is set: times between frames, and how long ago the newest
/// change that is shown was due, in ms.
const LOOK: &str = "
    window.seen = { frames: [], lags: [], gaps: new Set() };
    let last = performance.now();
    const look = (now) => {
        seen.frames.push(now - last);
        last = now;
        const newest = changes.all.at(-1);
        for (const it of changes.all) if (it.type === 'gap') seen.gaps.add(it.key);
        const digits = newest && newest.diff.changes.map((it) => JSON.stringify(it.new))
            .find((it) => /^\\{\"value\":(\"|\\{\"n\":\")[0-9]+\"/.test(it));
        if (digits) seen.lags.push(Date.now() - (window.start + Number(digits.match(/[0-9]+/)[0]) * 1000 / 2000));
        if (!window.end) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    window.start = Date.now();
    true";
const SEEN: &str = "
    window.end = true;
    const of = (all) => { all.sort((one, other) => one - other); return ['median', all[all.length >> 1], 'p99', all[Math.floor(all.length * 0.99)], 'longest', all.at(-1)].join(' '); };
    `${seen.frames.length} frames: ${of(seen.frames)}; lag: ${of(seen.lags)}; gaps ${seen.gaps.size}; kept ${changes.all.length}; received ${changes.all.at(-1).key}`";

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
        let (mut late, mut written) = (Duration::ZERO, 0);
        for number in 0..RATE * SECONDS {
            // A build that is not optimised writes fewer.
            if start.elapsed() > Duration::from_secs(1) * SECONDS {
                break;
            }
            written += 1;
            let due = start + Duration::from_secs(1) * number / RATE;
            match due.checked_duration_since(Instant::now()) {
                Some(early) => std::thread::sleep(early),
                None => late = late.max(due.elapsed()),
            }
            let (namespace, name) = &pods[number as usize % pods.len()];
            let phase = if number % 2 == 0 { "Running" } else { "Pending" };
            let patch = json!({"metadata": {"annotations": {"n": number.to_string()}},
                "status": {"phase": phase}});
            cluster.patch("pods", namespace, name, &patch)?;
        }
        anyhow::Ok((late, written))
    });
    let (late, written) = writing.await??;
    let seen = page.eval(SEEN).await?;
    let after = page.heap().await?;
    eprintln!(
        "{written} written, at most {late:?} late; {seen}; heap {before} MB before, {after} MB after"
    );
    served.stop().await
}
