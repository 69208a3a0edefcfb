//! G28: what watches that something on the way cuts after a while cost: time without a watch, and
//! requests.

use super::*;

/// An hour behind something that ends every watch after a while.
struct Hour {
    /// Of the hour, in percent, without an open watch.
    blind: f64,
    requests_a_minute: f64,
    most_in_a_minute: usize,
    lists: usize,
}

/// Plays an hour after the first list. The server answers at once; with `events`, each watch
/// delivers one as it opens.
fn hour(cut: Duration, events: bool, streaming_lists: bool) -> Hour {
    let mut script = Script::new(ReflectorConfig { streaming_lists, ..ReflectorConfig::default() });
    let (mut version, mut lists, mut requests) = (10, 0, Vec::new());
    let (mut ends, mut seen) = (None, Duration::ZERO);
    let begun = script.now;
    while script.now < begun + secs(3600) {
        while let Some(action) = script.poll() {
            match action {
                Action::List(_) => {
                    (lists, version) = (lists + 1, version + 1);
                    requests.push(script.now);
                    script.give(Input::Opened).give(page(&version.to_string(), ""));
                }
                Action::Watch(request) => {
                    requests.push(script.now);
                    script.give(Input::Opened);
                    if request.send_initial_events {
                        (lists, version) = (lists + 1, version + 1);
                        script.give(initial_end(&version.to_string()));
                    } else if events {
                        version += 1;
                        script.give(Input::Received { bytes: 1 }).give(event(&version.to_string()));
                    }
                    ends = Some(script.now + cut);
                }
                Action::Probe(request) => {
                    requests.push(script.now);
                    script.give(Input::Probed(Ok(request.version)));
                }
                Action::BeginReplace { .. } | Action::FinishReplace { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        let deadline = script.reflector.deadline().max(script.now);
        let next = ends.map_or(deadline, |ends: Duration| ends.min(deadline));
        if ends.is_some() {
            seen += next - script.now;
        }
        script.now = next;
        if ends == Some(next) {
            ends = None;
            script.give(Input::Closed);
        }
    }
    let took = (script.now - begun).as_secs_f64();
    let blind = 100.0 * (1.0 - seen.as_secs_f64() / took);
    let most_in_a_minute = properties::most_in_a_minute(&requests, Duration::ZERO);
    Hour { blind, requests_a_minute: requests.len() as f64 * 60.0 / took, most_in_a_minute, lists }
}

#[test]
fn g28_watches_that_are_cut_leave_nobody_blind_and_are_not_hot() {
    println!(
        "| cut after | events | lists | blind | requests a minute | most in a minute | lists an hour |"
    );
    println!("|---|---|---|---|---|---|---|");
    for millis_open in [0, 1000, 4000, 4900, 5000, 6000, 20_000, 35_000, 50_000, 59_000, 61_000] {
        for (events, streaming) in [(false, false), (false, true), (true, false), (true, true)] {
            let Hour { blind, requests_a_minute, most_in_a_minute, lists } =
                hour(millis(millis_open), events, streaming);
            let cut = Duration::from_millis(millis_open).as_secs_f64();
            let what = format!("cut after {cut} s, events {events}, streaming {streaming}");
            match millis_open {
                4900.. => assert!(blind <= 2.0, "blind for {blind} %: {what}"),
                4000.. => assert!(blind <= 10.0, "blind for {blind} %: {what}"),
                _ => {}
            }
            assert!(requests_a_minute <= 17.0, "{requests_a_minute} requests a minute: {what}");
            assert!(most_in_a_minute <= 21, "{most_in_a_minute} requests in a minute: {what}");
            assert!(lists <= 31, "{lists} lists an hour: {what}");
            println!(
                "| {cut} s | {} | {} | {blind:.1} % | {requests_a_minute:.1} | {most_in_a_minute} | {lists} |",
                if events { "one each" } else { "none" },
                if streaming { "streaming" } else { "plain" },
            );
        }
    }
}
