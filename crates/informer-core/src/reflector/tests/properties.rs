//! G28 and G1 under any server: never hot, and back when the server is.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// What a server does next with what is asked of it.
#[derive(Clone, Debug)]
struct Step {
    after: Duration,
    input: Input,
}

fn failure_kind() -> impl Strategy<Value = FailureKind> {
    use FailureKind::*;
    prop::sample::select(vec![
        Refused,
        Transport,
        Timeout,
        Expired,
        TooLargeVersion,
        TooManyRequests,
        Unauthorized,
        Forbidden,
        NotFound,
        Invalid,
        Server,
        Malformed,
        Undecodable,
        Other,
    ])
}

fn failure() -> impl Strategy<Value = Failure> {
    (failure_kind(), prop::option::weighted(0.1, 0u64..1000))
        .prop_map(|(kind, retry)| Failure { retry_after: retry.map(secs), ..fail(kind) })
}

fn version() -> impl Strategy<Value = ResourceVersion> {
    prop_oneof![8 => (1u64..100).prop_map(ResourceVersion::from), 1 => Just("".into()), 1 => Just("x".into())]
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => Just(Input::Opened),
        1 => Just(Input::Received { bytes: 1 }),
        2 => version().prop_map(|version| Input::Event { version }),
        2 => (version(), any::<bool>())
            .prop_map(|(version, initial_events_end)| Input::Bookmark { version, initial_events_end }),
        4 => (version(), prop::option::weighted(0.3, "[a-z]"), 0usize..2).prop_map(
            |(version, continue_token, items)| Input::PageEnd { version, continue_token, remaining: None, items }
        ),
        2 => Just(Input::Closed),
        4 => failure().prop_map(Input::Failed),
        1 => prop::result::maybe_ok(version(), failure()).prop_map(Input::Probed),
        2 => prop::result::maybe_ok(any::<bool>(), failure()).prop_map(Input::Discovered),
    ]
}

/// The number is that of the requests so far.
fn with_refreshes() -> impl Strategy<Value = Input> {
    prop_oneof![4 => input(), 1 => Just(Input::Refresh { number: 0 })]
}

fn steps(input: impl Strategy<Value = Input>) -> impl Strategy<Value = Vec<Step>> {
    let after = prop_oneof![
        6 => Just(Duration::ZERO),
        2 => (1u64..5000).prop_map(millis),
        1 => (5u64..300).prop_map(secs),
    ];
    let step = (after, input).prop_map(|(after, input)| Step { after, input });
    prop::collection::vec(step, 1..30)
}

/// Plays `steps` over and over for `time`; gives the times of all requests but later pages.
fn play(script: &mut Script, steps: &[Step], time: Duration) -> Vec<Duration> {
    let end = script.now + time;
    let mut requests = Vec::new();
    let mut steps = steps.iter().cycle();
    while script.now < end {
        let mut asked = script.open;
        while let Some(action) = script.poll() {
            match action {
                Action::List(request) if request.continue_token.is_some() => asked = true,
                Action::List(_) | Action::Watch(_) | Action::Probe(_) | Action::Discover => {
                    asked = true;
                    requests.push(script.now);
                }
                _ => asked = script.open,
            }
            assert!(requests.len() < 100_000);
        }
        let deadline = script.reflector.deadline();
        assert!(deadline >= script.now || !script.reflector.actions.is_empty());
        if !asked {
            script.now = deadline.max(script.now);
            continue;
        }
        let step = steps.next().expect("endless");
        let at = script.now + step.after;
        if at >= deadline {
            script.now = deadline;
            continue;
        }
        script.now = at;
        // Answers come only to what was asked.
        let refresh = matches!(step.input, Input::Refresh { .. });
        let beside = refresh || matches!(step.input, Input::Probed(_) | Input::Discovered(_));
        if refresh {
            script.requested += 1;
            script.reflector.handle(script.now, Input::Refresh { number: script.requested });
            script.now = (script.now + millis(200)).min(deadline);
        } else if script.open || beside {
            let open = script.open;
            script.give(step.input.clone());
            if script.open == open {
                // What does not end a request takes time, or time would not pass at all.
                script.now = (script.now + millis(200)).min(deadline);
            }
        } else {
            script.now = (script.now + millis(200)).min(deadline);
        }
    }
    while script.poll().is_some() {}
    requests
}

pub(super) fn most_in_a_minute(requests: &[Duration], from: Duration) -> usize {
    let mut window = VecDeque::new();
    let mut most = 0;
    for &at in requests.iter().filter(|at| **at >= from) {
        while window.front().is_some_and(|first| at.saturating_sub(*first) >= secs(60)) {
            window.pop_front();
        }
        window.push_back(at);
        most = most.max(window.len());
    }
    most
}

/// A server that is well: how long it takes until the watch is open, from a list made now or
/// before.
fn recover(script: &mut Script) -> Duration {
    let start = script.now;
    if script.open {
        script.give(failed(FailureKind::Transport));
    }
    loop {
        let mut streaming = None;
        while let Some(action) = script.poll() {
            match action {
                Action::List(_) => streaming = Some((true, false)),
                Action::Watch(request) => streaming = Some((false, request.send_initial_events)),
                Action::Discover => drop(script.give(Input::Discovered(Ok(true)))),
                _ => {}
            }
        }
        match streaming {
            Some((true, _)) => drop(script.give(Input::Opened).give(page("1000", ""))),
            Some((false, true)) => drop(script.give(Input::Opened).give(initial_end("1000"))),
            Some((false, false)) => drop(script.give(Input::Opened)),
            None if script.is_watching() && script.open && !script.is_refresh_pending() => {
                return script.now.saturating_sub(start);
            }
            None => script.now = script.reflector.deadline().max(script.now),
        }
        assert!(script.now < start + secs(3600), "{:?}", script.reflector);
    }
}

fn config(streaming_lists: bool, strict: bool, seed: u64) -> ReflectorConfig {
    ReflectorConfig { streaming_lists, strict, seed, ..ReflectorConfig::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn g28_never_hot_whatever_the_server_does(
        steps in steps(input()), streaming: bool, strict: bool, seed: u64,
    ) {
        let mut script = Script::new(config(streaming, strict, seed));
        let requests = play(&mut script, &steps, secs(3600));
        let most = most_in_a_minute(&requests, Duration::ZERO);
        prop_assert!(most <= 45, "{most} requests in a minute");
        let took = recover(&mut script);
        prop_assert!(took <= secs(300 + 30 + 30 + 5), "{took:?} to recover");
        prop_assert!(!script.reflector.last_sync_resource_version().is_unset());
    }

    /// As above, and for each refresh, of which one comes in a second, a list and a watch.
    #[test]
    fn g28_refreshes_keep_their_distance_whatever_the_server_does(
        steps in steps(with_refreshes()), streaming: bool, strict: bool, seed: u64,
    ) {
        let mut script = Script::new(config(streaming, strict, seed));
        let requests = play(&mut script, &steps, secs(1200));
        let most = most_in_a_minute(&requests, Duration::ZERO);
        prop_assert!(most <= 45 + 2 * 60, "{most} requests in a minute");
        let took = recover(&mut script);
        prop_assert!(took <= secs(300 + 30 + 30 + 30 + 5), "{took:?} to recover");
        prop_assert!(script.refreshes.unwrap_or_default() <= script.requested);
    }

    #[test]
    fn g28_a_dozen_requests_a_minute_while_nothing_succeeds(
        steps in steps(failure().prop_map(Input::Failed)), streaming: bool, strict: bool, seed: u64,
    ) {
        let mut script = Script::new(config(streaming, strict, seed));
        let start = script.now;
        let requests = play(&mut script, &steps, secs(3600));
        let most = most_in_a_minute(&requests, start + secs(60));
        prop_assert!(most <= 12, "{most} requests in a minute");
    }
}
