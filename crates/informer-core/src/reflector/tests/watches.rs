//! G28: how watches end and what follows. G29 and G26: whether they are alive. G30: frames.

use super::*;

#[test]
fn g31_watching_shows_version_and_events() {
    let mut script = Script::watching(plain());
    let since = script.now;
    let state =
        |version: &str, last_event| State::Watching { version: version.into(), since, last_event };
    assert_eq!(*script.reflector.state(), state("10", None));
    script.advance(secs(5)).give(event("20"));
    assert_eq!(*script.reflector.state(), state("20", Some(script.now)));
    // The last one counts, not the largest.
    script.advance(secs(5)).give(event("15")).assert_version("15");
    assert_eq!(*script.reflector.state(), state("15", Some(script.now)));
    // A watch that ends at its own timeout does not interrupt the state.
    script
        .live_until(since + script.timeout)
        .give(Input::Closed)
        .wait(Duration::ZERO..=millis(100))
        .expect_watch("15");
    script.give(Input::Opened).quiet();
    assert!(matches!(script.reflector.state(), State::Watching { since: at, .. } if *at == since));
}

#[test]
fn g28_refusals_and_failures_to_open_rewatch_without_a_relist() {
    use FailureKind::*;
    for kind in [Refused, TooManyRequests, Transport, Timeout, Unauthorized, Forbidden, Server] {
        let mut script = Script::watching(plain());
        script.give(failed(Transport));
        for attempt in 1..8 {
            script.wait_backoff(attempt).expect_watch("10").give(failed(kind));
        }
    }
}

#[test]
fn g28_an_open_watch_that_breaks_is_resumed() {
    use FailureKind::*;
    for kind in [Refused, TooManyRequests, Transport, Timeout] {
        let mut script = Script::watching(plain());
        for attempt in 1..8 {
            script.give(event("12")).give(failed(kind)).wait_early(attempt);
            script.expect_watch("12").give(Input::Opened);
        }
    }
}

#[test]
fn g26_gone_in_a_watch_relists_at_the_last_seen() {
    for opened in [false, true] {
        let mut script = Script::watching(plain());
        script
            .advance(secs(1))
            .give(event("12"))
            .give(Input::Closed)
            .wait_jitter()
            .expect_watch("12");
        if opened {
            script.give(Input::Opened);
        }
        script.give(failed(FailureKind::Expired)).wait_jitter();
        script.expect(begin(true)).expect(list("12", None)).quiet();
    }
}

#[test]
fn g28_error_events_relist_after_a_backoff() {
    use FailureKind::*;
    for kind in [Server, Other, Invalid, Forbidden, Unauthorized, TooLargeVersion] {
        let mut script = Script::watching(plain());
        script.give(event("12")).give(failed(kind)).wait_backoff(1);
        script.expect(begin(true)).expect(list("12", None)).quiet();
    }
}

#[test]
fn g28_retry_after_is_obeyed_up_to_five_minutes() {
    for (asked, range) in [
        (secs(0), millis(400)..=millis(800)),
        (secs(20), secs(20)..=secs(20)),
        (secs(300), secs(300)..=secs(300)),
        (secs(86_400), secs(300)..=secs(300)),
    ] {
        let mut script = Script::watching(plain());
        let failure = Failure { retry_after: Some(asked), ..fail(FailureKind::TooManyRequests) };
        script.give(Input::Failed(failure)).wait(range).expect_watch("10").quiet();
    }
}

#[test]
fn g28_a_watch_that_lived_five_seconds_starts_the_delay_anew() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
    for attempt in 2..6 {
        script.give(failed(FailureKind::Server)).wait_backoff(attempt).expect_watch("10");
    }
    script.give(Input::Opened).advance(secs(5)).give(failed(FailureKind::Transport)).wait_jitter();
    script.expect_watch("10").give(failed(FailureKind::Server)).wait_backoff(1).expect_watch("10");
    // Opening takes time that is not lived.
    script
        .advance(secs(20))
        .give(Input::Opened)
        .advance(millis(4900))
        .give(Input::Closed)
        .wait_jitter();
    script.expect_watch("10").give(failed(FailureKind::Server)).wait_backoff(3);
}

#[test]
fn g28_the_delay_runs_from_one_opening_to_the_next() {
    let mut script = Script::watching(plain());
    for (attempt, lived) in [(1, 300), (2, 500), (3, 700), (4, 2000)] {
        let step = millis(800 << (attempt - 1)).min(secs(5));
        let lived = millis(lived);
        script.advance(lived).give(event("10")).give(Input::Closed);
        script
            .wait((step / 2).saturating_sub(lived)..=step - lived)
            .expect_watch("10")
            .give(Input::Opened);
    }
    // One that lived longer than the delay is reopened at once.
    script
        .advance(millis(4990))
        .give(event("10"))
        .give(Input::Closed)
        .wait_jitter()
        .expect_watch("10");
}

#[test]
fn g28_own_timeouts_reopen_at_once() {
    let mut script = Script::watching(plain());
    for _ in 0..3 {
        script.live_until(script.now + script.timeout - secs(2)).give(Input::Closed);
        assert!(script.is_watching());
        script.wait_jitter().expect_watch("10").give(Input::Opened);
    }
    // Ten seconds are the least.
    let mut script = Script::new(ReflectorConfig { watch_timeout: secs(1)..=secs(2), ..plain() });
    script
        .expect(begin(true))
        .expect(list("0", Some(500)))
        .give(Input::Opened)
        .give(page("10", ""));
    script.expect(finish("10"));
    for _ in 0..3 {
        let Some(Action::Watch(request)) = script.poll() else { panic!("a watch") };
        assert_eq!(request.timeout, secs(10));
        script.give(Input::Opened).advance(secs(10)).give(Input::Closed).wait_jitter();
        assert!(script.is_watching());
    }
}

#[test]
fn g28_a_watch_closed_early_backs_off_and_resumes() {
    let mut script = Script::watching(plain());
    for attempt in 1..8 {
        script.give(event("12")).give(Input::Closed).wait_early(attempt);
        script.expect_watch("12").give(Input::Opened);
    }
}

fn is_degraded(script: &Script) -> bool {
    matches!(script.reflector.state(), State::Degraded { .. })
}

/// A watch that cannot be opened, or is closed at once.
fn useless() -> impl Iterator<Item = Input> {
    use FailureKind::*;
    [Server, Forbidden, Timeout, Transport, Unauthorized]
        .map(failed)
        .into_iter()
        .chain([Input::Closed])
}

#[test]
fn g28_watches_that_fail_for_a_minute_and_three_times_are_degraded() {
    for end in useless() {
        let mut script = Script::watching(plain());
        let begun = script.now;
        script.degrade_by(&end);
        assert!(script.now >= begun + secs(60), "{end:?}: after {:?}", script.now - begun);
        assert!(script.now <= begun + secs(150), "{end:?}: after {:?}", script.now - begun);
    }
    // Two that take their time are not enough.
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
    for _ in 0..2 {
        assert!(!is_degraded(&script));
        script.wait(secs(30)..=secs(30)).expect(Action::Close).wait(Duration::ZERO..=secs(2));
        script.expect_watch("10");
    }
    script.wait(secs(30)..=secs(30)).expect(Action::Close).quiet();
    assert!(is_degraded(&script));
    // Neither are those between which one said something.
    let mut script = Script::watching(plain());
    let begun = script.now;
    while script.now < begun + secs(300) {
        for _ in 0..2 {
            script
                .give(failed(FailureKind::Transport))
                .wait(Duration::ZERO..=secs(30))
                .expect_watch("10");
        }
        script.give(Input::Opened).give(event("10")).give(Input::Closed);
        script.wait(Duration::ZERO..=secs(5)).expect_watch("10");
        assert!(!is_degraded(&script));
    }
}

/// What a degraded informer asks for in half an hour, by when: lists and watches.
fn asks_in_half_an_hour(script: &mut Script, end: &Input) -> (Vec<Duration>, Vec<Duration>) {
    let (mut lists, mut watches) = (Vec::new(), Vec::new());
    let until = script.now + secs(1800);
    while script.now < until {
        match script.poll() {
            Some(Action::List(_)) => {
                lists.push(script.now);
                script.give(Input::Opened).give(page("20", ""));
            }
            Some(Action::Watch(request)) if !request.send_initial_events => {
                watches.push(script.now);
                if *end == Input::Closed {
                    script.give(Input::Opened);
                }
                script.give(end.clone());
                assert!(is_degraded(script), "{:?}", script.reflector.state());
            }
            Some(Action::BeginReplace { .. } | Action::FinishReplace { .. }) => {}
            Some(other) => panic!("{other:?}"),
            None => script.now = script.reflector.deadline().max(script.now),
        }
    }
    (lists, watches)
}

#[test]
fn g28_a_degraded_informer_lists_when_a_watch_failed_and_the_list_is_two_minutes_old() {
    for streaming_lists in [false, true] {
        for end in useless() {
            let mut script = Script::watching(plain());
            script.reflector.config.streaming_lists = streaming_lists;
            script.degrade_by(&end);
            let (lists, watches) = asks_in_half_an_hour(&mut script, &end);
            assert!((11..=15).contains(&lists.len()), "{end:?}: {} lists", lists.len());
            assert!(lists.windows(2).all(|two| two[1] - two[0] >= secs(120)), "{end:?}: {lists:?}");
            assert!((60..=125).contains(&watches.len()), "{end:?}: {} watches", watches.len());
            // Watches are tried first, and delayed past the lists.
            let failed_before =
                |list: &Duration| watches.iter().any(|at| *at + millis(100) >= *list && at <= list);
            assert!(lists.iter().all(failed_before), "{end:?}: {lists:?} {watches:?}");
            assert!(
                watches.windows(2).all(|two| two[1] - two[0] >= secs(15)),
                "{end:?}: {watches:?}"
            );
        }
    }
}

#[test]
fn g28_a_degraded_informer_whose_list_fails_goes_on_with_watches() {
    for kind in [FailureKind::Server, FailureKind::Malformed, FailureKind::Undecodable] {
        let mut script = Script::watching(plain());
        let end = failed(FailureKind::Server);
        script.degrade_by(&end);
        let (mut lists, mut watched) = (0, true);
        while lists < 4 {
            match script.poll() {
                Some(Action::List(_)) => {
                    assert!(watched, "{kind:?}: a list follows a list");
                    (lists, watched) = (lists + 1, false);
                    script.give(failed(kind));
                }
                Some(Action::Watch(_)) => {
                    watched = true;
                    script.give(end.clone());
                }
                Some(Action::BeginReplace { .. } | Action::AbandonReplace) => {}
                Some(other) => panic!("{kind:?}: {other:?}"),
                None => drop(script.wait(Duration::ZERO..=secs(30))),
            }
            assert!(
                is_degraded(&script) || matches!(script.reflector.state(), State::Listing { .. }),
                "{kind:?}"
            );
        }
    }
}

#[test]
fn g28_a_degraded_informer_does_not_list_at_once_for_an_error_event() {
    let mut script = Script::watching(plain());
    script.degrade_by(&failed(FailureKind::Server)).expect_watch("10").give(Input::Opened);
    script.give(failed(FailureKind::Server)).wait(Duration::ZERO..=secs(30)).expect_watch("10");
}

#[test]
fn g28_an_opened_watch_that_delivers_or_lives_ends_it() {
    let mut script = Script::watching(plain());
    script.degrade_by(&failed(FailureKind::Server)).expect_watch("10").give(Input::Opened).quiet();
    assert!(is_degraded(&script));
    script.advance(secs(1)).give(event("11"));
    assert!(script.is_watching());

    let mut script = Script::watching(plain());
    script.degrade_by(&Input::Closed).expect_watch("10").give(Input::Opened).quiet();
    assert!(is_degraded(&script));
    script.wait(secs(5)..=secs(5)).quiet();
    assert!(script.is_watching());
    // What comes later begins at the beginning.
    script.give(failed(FailureKind::Transport)).wait_jitter().expect_watch("10");
    script.give(failed(FailureKind::Server)).wait_backoff(1);
}

#[test]
fn g28_ten_minutes_of_429_are_degraded_and_list_every_ten_minutes() {
    let end = failed(FailureKind::TooManyRequests);
    let mut script = Script::watching(plain());
    let begun = script.now;
    script.give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
    while !is_degraded(&script) {
        script.give(end.clone()).wait(Duration::ZERO..=secs(30));
        if !is_degraded(&script) {
            script.expect_watch("10");
        }
    }
    let after = script.now - begun;
    assert!(after >= secs(600) && after <= secs(660), "{after:?}");
    let (lists, _) = asks_in_half_an_hour(&mut script, &end);
    assert!((2..=4).contains(&lists.len()), "{lists:?}");
    assert!(lists.windows(2).all(|two| two[1] - two[0] >= secs(600)), "{lists:?}");

    // Connections that are refused never lead to a list, nor do 429 between which something else
    // was answered.
    for others in [FailureKind::Refused, FailureKind::Transport] {
        let mut script = Script::watching(plain());
        let begun = script.now;
        while script.now < begun + secs(7200) {
            for end in [others, FailureKind::TooManyRequests] {
                if end == FailureKind::Transport {
                    script.give(Input::Opened).give(event("10"));
                }
                script.give(failed(end)).wait(Duration::ZERO..=secs(30)).expect_watch("10");
                assert!(!is_degraded(&script));
            }
        }
    }
}

#[test]
fn g29_a_watch_beyond_its_own_timeout_is_dropped_and_reopened() {
    let mut script = Script::watching(plain());
    let end = script.now + script.timeout + secs(10);
    while script.now + secs(50) < end {
        script.advance(secs(50)).give(event("11"));
    }
    script.wait(Duration::ZERO..=secs(50));
    assert_eq!(script.now, end);
    script.expect(Action::Close).wait(Duration::ZERO..=millis(100)).expect_watch("11").quiet();
}

#[test]
fn g29_missed_bookmarks_mean_a_dead_connection() {
    let mut script =
        Script::watching(ReflectorConfig { watch_timeout: secs(900)..=secs(900), ..plain() });
    script.advance(secs(60)).give(bookmark("11"));
    script.wait(secs(120)..=secs(120));
    assert!(matches!(script.poll(), Some(Action::Probe(_))));
    script.wait(secs(60)..=secs(60)).expect(Action::Close).wait_jitter().expect_watch("11").quiet();
}

#[test]
fn g29_without_bookmarks_silence_is_no_death() {
    let mut script = Script::watching(plain());
    let timeout = script.timeout;
    script.wait(secs(120)..=secs(120));
    assert!(matches!(script.poll(), Some(Action::Probe(_))));
    script.give(Input::Probed(Ok("10".into())));
    let rest = timeout + secs(10) - secs(120);
    if rest > secs(120) {
        script.wait(secs(120)..=secs(120));
        assert!(matches!(script.poll(), Some(Action::Probe(_))));
        script.wait(rest - secs(120)..=rest - secs(120));
    } else {
        script.wait(rest..=rest);
    }
    script.expect(Action::Close).wait(Duration::ZERO..=millis(100)).expect_watch("10").quiet();
}

#[test]
fn g29_a_watch_that_is_not_answered_times_out() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
    script.wait(secs(30)..=secs(30)).expect(Action::Close).wait_jitter().expect_watch("10").quiet();
}

fn probing() -> Script {
    let mut script = Script::watching(plain());
    script.wait(secs(120)..=secs(120)).expect(Action::Probe(ListRequest {
        version: "10".into(),
        version_match: Some(VersionMatch::NotOlderThan),
        limit: Some(1),
        continue_token: None,
    }));
    script
}

#[test]
fn g26_probe_that_finds_another_history_relists_without_the_shortcut() {
    for answer in [Ok("9".into()), Err(fail(FailureKind::TooLargeVersion))] {
        let mut script = probing();
        script.give(Input::Probed(answer)).expect(Action::Close).expect(begin(false));
        script.expect(list("", Some(500))).give(Input::Opened).give(page("9", ""));
        script.expect(finish_other_history("9"));
        script.expect_watch("9").quiet();
    }
}

#[test]
fn g26_a_silence_that_watches_end_in_is_probed_all_the_same() {
    // A balancer on the way cuts what is idle for a minute; after a restored backup the server has
    // nothing to say.
    let mut script = Script::watching(plain());
    script.advance(secs(55)).give(failed(FailureKind::Transport)).wait_jitter().expect_watch("10");
    script
        .give(Input::Opened)
        .advance(millis(64_800))
        .give(failed(FailureKind::Transport))
        .wait_jitter();
    // The watch that was resumed may speak first.
    script.expect_watch("10").give(Input::Opened).wait(secs(2)..=secs(2));
    assert!(matches!(script.poll(), Some(Action::Probe(_))));
    script
        .give(Input::Probed(Ok("9".into())))
        .expect(Action::Close)
        .expect(begin(false))
        .expect(list("", Some(500)));
}

#[test]
fn g26_other_probe_answers_change_nothing() {
    for answer in [Ok("10".into()), Ok("abc".into()), Err(fail(FailureKind::Server))] {
        let mut script = probing();
        script.advance(secs(1)).give(Input::Probed(answer)).quiet();
        assert!(script.is_watching());
        // Only the answer that was asked for counts.
        script.give(Input::Probed(Ok("1".into()))).quiet();
    }
    // A watch that spoke meanwhile is alive, and the answer may be older than what it said.
    let mut script = probing();
    script.advance(secs(1)).give(event("30")).give(Input::Probed(Ok("9".into()))).quiet();
}

#[test]
fn g28_a_retry_after_of_a_probe_is_obeyed() {
    let lasting = secs(1000)..=secs(1000);
    let mut script = Script::watching(ReflectorConfig { watch_timeout: lasting, ..plain() });
    script.wait(secs(120)..=secs(120)).poll().expect("the probe");
    let busy = Failure { retry_after: Some(secs(150)), ..fail(FailureKind::TooManyRequests) };
    script
        .give(Input::Probed(Err(busy)))
        .wait(secs(150)..=secs(150))
        .poll()
        .expect("another probe");
}

#[test]
fn g28_a_retry_after_of_a_probe_is_obeyed_by_the_watches_that_follow() {
    let lasting = secs(1000)..=secs(1000);
    let mut script = Script::watching(ReflectorConfig { watch_timeout: lasting, ..plain() });
    script.wait(secs(120)..=secs(120)).poll().expect("the probe");
    let busy = Failure { retry_after: Some(secs(300)), ..fail(FailureKind::TooManyRequests) };
    script.give(Input::Probed(Err(busy))).advance(secs(10)).give(failed(FailureKind::Transport));
    script.wait_jitter().expect_watch("10").give(Input::Opened);
    script.wait(secs(289)..=secs(290)).poll().expect("another probe");
}

#[test]
fn g30_a_malformed_frame_is_read_at_most_twice() {
    let mut script = Script::watching(plain());
    script
        .give(event("12"))
        .give(failed(FailureKind::Malformed))
        .wait_backoff(1)
        .expect_watch("12");
    script
        .give(Input::Opened)
        .give(failed(FailureKind::Malformed))
        .wait(Duration::ZERO..=millis(800));
    script.expect(begin(true)).expect(list("12", None)).give(Input::Opened).give(page("12", ""));
    // That would lead back to the frame.
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("", Some(500)));
    script
        .give(Input::Opened)
        .give(page("13", ""))
        .expect(finish("13"))
        .wait(Duration::ZERO..=millis(1600));
    // Another version, another frame.
    script
        .expect_watch("13")
        .give(Input::Opened)
        .give(failed(FailureKind::Malformed))
        .wait_early(3);
    script.expect_watch("13");
}

#[test]
fn g30_a_list_that_is_malformed_as_well_is_taken_without_what_is_wrong() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Malformed)).wait_backoff(1).expect_watch("10");
    script
        .give(Input::Opened)
        .give(failed(FailureKind::Malformed))
        .wait(Duration::ZERO..=millis(800));
    script.expect(begin(true)).expect(list("10", None)).give(failed(FailureKind::Malformed));
    script.expect(Action::AbandonReplace).assert_version("10").wait_backoff(2);
    script.expect(begin_skipping()).expect(list("10", None)).give(failed(FailureKind::Malformed));
    script.expect(Action::AbandonReplace).quiet().assert_version("10");
    assert!(matches!(script.reflector.state(), State::Degraded { .. }));
    script.wait(secs(15)..=secs(30)).expect(begin_skipping()).expect(list("10", None)).quiet();
}

#[test]
fn g30_malformed_frames_that_no_list_leads_past_are_degraded() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Malformed)).wait_backoff(1).expect_watch("10");
    script
        .give(Input::Opened)
        .give(failed(FailureKind::Malformed))
        .wait(Duration::ZERO..=millis(800));
    script.expect(begin(true)).expect(list("10", None)).give(page("10", ""));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("", Some(500)));
    script.give(page("10", "")).expect(finish("10")).wait(Duration::ZERO..=millis(1600));
    script.expect_watch("10").give(Input::Opened).give(failed(FailureKind::Malformed)).quiet();
    assert!(matches!(script.reflector.state(), State::Degraded { .. }));
    script.wait(secs(15)..=secs(30)).expect(begin(true)).expect(list("", Some(500))).quiet();
}

#[test]
fn g30_strict_is_degraded_at_the_first_frame() {
    for kind in [FailureKind::Malformed, FailureKind::Undecodable] {
        let mut script = Script::watching(ReflectorConfig { strict: true, ..plain() });
        script.give(failed(kind)).quiet();
        assert!(matches!(script.reflector.state(), State::Degraded { .. }));
        script.wait(secs(15)..=secs(30)).expect_watch("10").quiet();
    }
}

/// A watch without bookmarks, ten seconds after a probe has found version 15; the list that follows
/// is asked for.
fn suspected() -> Script {
    let mut script = probing();
    script.give(Input::Probed(Ok("15".into()))).wait(secs(10)..=secs(10));
    script.expect(Action::Close).expect(begin(true)).expect(list("10", None)).give(Input::Opened);
    script
}

#[test]
fn g29_a_watch_that_is_silent_about_what_a_list_has_is_deaf() {
    let mut script = suspected();
    script.give(Input::Missed { version: "12".into() }).give(page("20", "")).expect(finish("20"));
    let failure = script.reflector.last_failure().expect("it is reported").clone();
    assert_eq!(failure.kind, FailureKind::Deaf);
    let State::BackingOff { cause, attempt: 1, .. } = script.reflector.state() else { panic!() };
    assert_eq!(*cause, failure);
    // It counts as one that could not be opened.
    script.wait_jitter().expect_watch("20").give(failed(FailureKind::Server)).wait_backoff(2);
}

#[test]
fn g29_a_watch_that_missed_nothing_that_was_there_is_reopened() {
    // Nothing of the collection changed, or only after the probe.
    for missed in [None, Some("16")] {
        let mut script = suspected();
        if let Some(version) = missed {
            script.give(Input::Missed { version: version.into() });
        }
        script
            .give(page("20", ""))
            .expect(finish("20"))
            .expect_watch("20")
            .give(Input::Opened)
            .quiet();
        assert_eq!(script.reflector.failures(), 0);
        assert!(script.is_watching());
        // Not again for ten minutes.
        let begun = script.now;
        while script.now < begun + secs(580) {
            match script.poll() {
                Some(Action::Probe(_)) => drop(script.give(Input::Probed(Ok("30".into())))),
                Some(Action::Watch(_)) => drop(script.give(Input::Opened)),
                Some(Action::Close) => {}
                Some(other) => panic!("{other:?} after {:?}", script.now - begun),
                None => script.now = script.reflector.deadline().min(begun + secs(580)),
            }
        }
    }
}

#[test]
fn g29_a_deaf_watch_that_is_cut_again_and_again_is_noticed() {
    for cut in [5, 8, 15, 25] {
        let mut script = Script::watching(plain());
        let mut ends = Some(script.now + secs(cut));
        let begun = script.now;
        let listed = loop {
            match script.poll() {
                Some(Action::Probe(_)) => drop(script.give(Input::Probed(Ok("15".into())))),
                Some(Action::Watch(_)) => {
                    script.give(Input::Opened);
                    ends = Some(script.now + secs(cut));
                }
                Some(Action::List(_)) => break script.now,
                Some(_) => {}
                None => {
                    let deadline = script.reflector.deadline();
                    script.now = ends.map_or(deadline, |ends| ends.min(deadline)).max(script.now);
                    if ends.take_if(|ends| *ends <= script.now).is_some() {
                        script.give(Input::Closed);
                    }
                }
            }
            assert!(
                script.now < begun + secs(600),
                "cut after {cut} s: the watch is deaf, and nobody knows"
            );
        };
        assert!(listed >= begun + secs(130), "the watch has ten seconds to prove that it is not");
        script
            .give(Input::Opened)
            .give(Input::Missed { version: "12".into() })
            .give(page("20", ""));
        assert_eq!(
            script.reflector.last_failure().map(|failure| failure.kind),
            Some(FailureKind::Deaf)
        );
    }
}

#[test]
fn g29_a_watch_that_speaks_or_sent_bookmarks_is_not_suspected() {
    let mut script = probing();
    script.give(Input::Probed(Ok("15".into()))).advance(secs(9)).give(Input::Received { bytes: 1 });
    script.advance(secs(20)).quiet();
    assert!(script.is_watching());

    let mut script =
        Script::watching(ReflectorConfig { watch_timeout: secs(900)..=secs(900), ..plain() });
    script.advance(secs(60)).give(bookmark("11")).wait(secs(120)..=secs(120));
    script.poll().expect("the probe");
    script.give(Input::Probed(Ok("15".into()))).advance(secs(30)).quiet();
}
