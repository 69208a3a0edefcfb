//! Many changes at a time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use informer_testkit::{Cluster, TestServer, generate};
use serde_json::{Value, json};

use super::Terminal;

/// A change that was printed: the object, and the number in its annotation before and after.
struct Printed {
    name: String,
    old: Option<u64>,
    new: u64,
}

/// Reads the lines of `watch pods -A -o diff`.
#[derive(Default)]
struct Reader {
    name: String,
}

impl Reader {
    /// The change of the annotation, if the line is about it.
    fn line(&mut self, line: &str) -> Option<Printed> {
        if let Some((_, name)) = line.split_once("Z update ") {
            self.name = name.split(' ').next()?.to_owned();
            return None;
        }
        let number = |text: &str| text.trim_matches('"').parse().ok();
        let rest = line.trim_start().get(2..)?.strip_prefix("metadata.annotations")?;
        let (path, values) = rest.split_once(": ")?;
        let (old, new) = match path {
            // The first annotation.
            "" => (None, number(values.trim_start_matches("{\"n\":").trim_end_matches('}'))?),
            ".n" => match values.split_once(" -> ") {
                Some((old, new)) => (number(old), number(new)?),
                None => (None, number(values)?),
            },
            _ => return None,
        };
        Some(Printed { name: self.name.clone(), old, new })
    }
}

fn load(cluster: &Cluster, count: usize) -> Vec<(String, String)> {
    cluster.load(generate::pods(count)).unwrap();
    let text = |it: &Value, field: &str| it["metadata"][field].as_str().unwrap().to_owned();
    let pods = generate::pods(count).map(|it| serde_json::from_str::<Value>(&it).unwrap());
    pods.map(|it| (text(&it, "namespace"), text(&it, "name"))).collect()
}

fn write(cluster: &Cluster, (namespace, name): &(String, String), number: u64) {
    let patch = json!({"metadata": {"annotations": {"n": number.to_string()}},
        "status": {"phase": if number.is_multiple_of(2) { "Running" } else { "Pending" }}});
    cluster.patch("pods", namespace, name, &patch).unwrap();
}

/// A reader that is slow is shown merged changes, and each begins where the one before ended.
#[tokio::test(flavor = "multi_thread")]
async fn merged_changes_begin_with_what_was_printed_last() {
    const WRITES: u64 = 2000;
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster();
    let pods = load(cluster, 20);
    let terminal = Terminal::start(&server, (50, 200), &[], "watch pods -A -o diff --color never");
    let lines = terminal.lines();
    let count = pods.len();
    let lines = tokio::task::spawn_blocking(move || {
        let initial = lines.iter().filter(|it| it.ends_with("(initial)")).take(count).count();
        assert_eq!(initial, count);
        lines
    })
    .await
    .unwrap();
    // Nobody reads meanwhile: the terminal is full after a few of them.
    for number in 0..WRITES {
        write(cluster, &pods[number as usize % count], number);
    }
    let printed = tokio::task::spawn_blocking(move || {
        let (mut reader, mut last, mut printed) = (Reader::default(), HashMap::new(), 0);
        let is_final = |it: &u64| *it + count as u64 >= WRITES;
        while last.values().filter(|it| is_final(it)).count() < count {
            let Some(change) = reader.line(&lines.recv().unwrap()) else { continue };
            let before = last.insert(change.name.clone(), change.new);
            assert_eq!(change.old, before, "{}", change.name);
            printed += 1;
        }
        printed
    })
    .await
    .unwrap();
    assert!(printed < WRITES, "{printed} changes of {WRITES} were merged to none");
    terminal.interrupt();
    server.shutdown().await;
}

/// Prints what 2,000 changes a second cost an optimised program: `INFORMER_PROGRAM=PATH cargo test
/// -p kubectl-informer --test terminal -- --ignored --nocapture`.
///
/// The writer is as fast as the build of this test lets it be; `latest` says how far it fell behind.
/// With `--release` both are optimised, and no path is needed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, for half a minute"]
async fn two_thousand_changes_a_second() {
    const RATE: u64 = 2000;
    const SECONDS: u64 = 30;
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster();
    let pods = load(cluster, 5000);
    let terminal = Terminal::start(&server, (50, 200), &[], "watch pods -A -o diff");
    let process = terminal.child.process_id().unwrap();
    let lines = terminal.lines();
    let count = pods.len();
    let lines = tokio::task::spawn_blocking(move || {
        let is_initial = |it: &&String| it.contains("(initial)");
        lines.iter().filter(|it| is_initial(&it)).take(count).count();
        lines
    })
    .await
    .unwrap();
    let before = Usage::of(process);
    let start = Instant::now();
    let due = move |number: u64| start + Duration::from_secs(1) * number as u32 / RATE as u32;
    let reading = tokio::task::spawn_blocking(move || {
        let (mut reader, mut lags, mut finished) = (Reader::default(), Vec::new(), 0);
        while let Ok(line) = lines.recv() {
            let line = line.replace("\x1b[31m", "").replace("\x1b[32m", "");
            let line = line.replace("\x1b[2m", "").replace("\x1b[0m", "");
            let Some(change) = reader.line(&line) else { continue };
            lags.push(Instant::now().saturating_duration_since(due(change.new)));
            // Each has its own last number.
            finished += usize::from(change.new + count as u64 >= RATE * SECONDS);
            if finished == count {
                break;
            }
        }
        lags
    });
    let writing = cluster.clone();
    let late = tokio::task::spawn_blocking(move || {
        let mut late = Duration::ZERO;
        for number in 0..RATE * SECONDS {
            match due(number).checked_duration_since(Instant::now()) {
                Some(early) => std::thread::sleep(early),
                None => late = late.max(due(number).elapsed()),
            }
            write(&writing, &pods[number as usize % pods.len()], number);
        }
        late
    })
    .await
    .unwrap();
    let mut lags = reading.await.unwrap();
    let (elapsed, after) = (start.elapsed(), Usage::of(process));
    lags.sort_unstable();
    let at = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize];
    let cpu = after.cpu - before.cpu;
    println!("changes written {} in {elapsed:.1?}, latest {late:.1?}", RATE * SECONDS);
    println!("changes printed {}, final states of {count} objects", lags.len());
    println!("lag p50 {:.1?} p99 {:.1?} max {:.1?}", at(0.5), at(0.99), at(1.0));
    println!("cpu {cpu:.1?}: {:.1?} per change", cpu / (RATE * SECONDS) as u32);
    println!(
        "resident {} kB before, {} kB after, {} kB at most",
        before.resident, after.resident, after.peak
    );
    terminal.interrupt();
    server.shutdown().await;
}

/// What a process uses.
struct Usage {
    cpu: Duration,
    /// In kB.
    resident: u64,
    peak: u64,
}

impl Usage {
    fn of(process: u32) -> Self {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        let (stat, status) = (read("stat"), read("status"));
        // After the name, which may have spaces: the user and system time in hundredths of seconds.
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks: u64 = fields[11..13].iter().map(|it| it.parse::<u64>().unwrap()).sum();
        let size = |name: &str| {
            let line = status.lines().find_map(|it| it.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        Self {
            cpu: Duration::from_millis(ticks * 10),
            resident: size("VmRSS:"),
            peak: size("VmHWM:"),
        }
    }
}
