//! G28: how watches end and what follows. G29 and G26: whether they are alive. G30: frames.

use super::*;

#[test]
fn g31_watching_shows_version_and_events() {
    let mut script = Script::watching(plain());
    let since = script.now;
    let state = |version: &str, last_event| State::Watching { version: version.into(), since, last_event };
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
            script.give(event("12")).give(failed(kind)).wait_backoff(attempt);
            script.expect_watch("12").give(Input::Opened);
        }
    }
}

#[test]
fn g26_gone_in_a_watch_relists_at_the_last_seen_after_one_backoff() {
    for opened in [false, true] {
        let mut script = Script::watching(plain());
        script.give(event("12")).give(Input::Closed).wait_backoff(1).expect_watch("12");
        if opened {
            script.give(Input::Opened);
        }
        script.give(failed(FailureKind::Expired)).wait_backoff(2);
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
fn g28_only_a_watch_that_lived_a_minute_starts_the_backoff_over() {
    let mut script = Script::watching(plain());
    for attempt in 1..6 {
        script.give(failed(FailureKind::Transport)).wait_backoff(attempt).expect_watch("10");
        script.give(Input::Opened).give(event("10")).advance(secs(59));
    }
    script.advance(secs(1)).give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
}

#[test]
fn g28_own_timeouts_reopen_at_once_but_not_more_than_once_a_minute() {
    let mut script = Script::watching(plain());
    for _ in 0..3 {
        script.live_until(script.now + script.timeout - secs(2)).give(Input::Closed);
        assert!(script.is_watching());
        script.wait(Duration::ZERO..=millis(100)).expect_watch("10").give(Input::Opened);
    }
    let short = ReflectorConfig { watch_timeout: secs(5)..=secs(5), ..plain() };
    let mut script = Script::watching(short);
    script.advance(secs(5)).give(Input::Closed).wait(Duration::ZERO..=millis(100)).expect_watch("10");
    script.give(Input::Opened).advance(secs(5)).give(Input::Closed).wait_backoff(1);
}

#[test]
fn g28_a_watch_closed_early_backs_off_and_resumes() {
    let mut script = Script::watching(plain());
    for attempt in 1..8 {
        script.give(event("12")).give(Input::Closed).wait_backoff(attempt);
        script.expect_watch("12").give(Input::Opened);
    }
}

#[test]
fn g28_three_short_watches_without_a_word_relist() {
    let mut script = Script::watching(plain());
    script.give(Input::Closed).wait_backoff(1).expect_watch("10").give(Input::Opened);
    script.give(Input::Closed).wait_backoff(2).expect_watch("10").give(Input::Opened);
    // An event in between starts the count over.
    script.give(event("11")).give(Input::Closed).wait_backoff(3).expect_watch("11").give(Input::Opened);
    script.give(Input::Closed).wait_backoff(4).expect_watch("11").give(Input::Opened);
    script.give(Input::Closed).wait_backoff(5).expect_watch("11").give(Input::Opened);
    script.give(Input::Closed).wait_backoff(6).expect(begin(true)).expect(list("11", None)).quiet();
    // So does the relist, and so does a watch that failed.
    script.give(page("12", "")).expect(finish("12")).expect_watch("12").give(Input::Opened);
    script.give(Input::Closed).wait_backoff(7).expect_watch("12").give(Input::Opened);
    script.give(Input::Closed).wait_backoff(8).expect_watch("12").give(failed(FailureKind::Refused));
    script.wait_backoff(9).expect_watch("12").give(Input::Opened).give(Input::Closed).wait_backoff(10);
    script.expect_watch("12").quiet();
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
    let mut script = Script::watching(ReflectorConfig { watch_timeout: secs(900)..=secs(900), ..plain() });
    script.advance(secs(60)).give(bookmark("11"));
    script.wait(secs(120)..=secs(120));
    assert!(matches!(script.poll(), Some(Action::Probe(_))));
    script.wait(secs(60)..=secs(60)).expect(Action::Close).wait_backoff(1).expect_watch("11").quiet();
}

#[test]
fn g29_without_bookmarks_silence_is_no_death() {
    let mut script = Script::watching(plain());
    let timeout = script.timeout;
    script.wait(secs(120)..=secs(120));
    assert!(matches!(script.poll(), Some(Action::Probe(_))));
    script.give(Input::Probed(Ok("5000".into())));
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
    script.wait(secs(30)..=secs(30)).expect(Action::Close).wait_backoff(2).expect_watch("10").quiet();
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
        script.expect(Action::FinishReplace { version: "9".into(), history_changed: true });
        script.expect_watch("9").quiet();
    }
}

#[test]
fn g26_a_silence_that_watches_end_in_is_probed_all_the_same() {
    // A balancer on the way cuts what is idle for a minute; after a restored backup the server has nothing to say.
    let mut script = Script::watching(plain());
    script.advance(secs(55)).give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
    script.give(Input::Opened).advance(secs(55)).give(failed(FailureKind::Transport)).wait_backoff(2);
    // The watch that was resumed may speak first.
    script.expect_watch("10").give(Input::Opened).wait(secs(10)..=secs(10));
    assert!(matches!(script.poll(), Some(Action::Probe(_))));
    script
        .give(Input::Probed(Ok("9".into())))
        .expect(Action::Close)
        .expect(begin(false))
        .expect(list("", Some(500)));
}

#[test]
fn g26_other_probe_answers_change_nothing() {
    for answer in [Ok("10".into()), Ok("11".into()), Ok("abc".into()), Err(fail(FailureKind::Server))] {
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
    script.give(Input::Probed(Err(busy))).wait(secs(150)..=secs(150)).poll().expect("another probe");
}

#[test]
fn g28_a_retry_after_of_a_probe_is_obeyed_by_the_watches_that_follow() {
    let lasting = secs(1000)..=secs(1000);
    let mut script = Script::watching(ReflectorConfig { watch_timeout: lasting, ..plain() });
    script.wait(secs(120)..=secs(120)).poll().expect("the probe");
    let busy = Failure { retry_after: Some(secs(300)), ..fail(FailureKind::TooManyRequests) };
    script.give(Input::Probed(Err(busy))).advance(secs(10)).give(failed(FailureKind::Transport));
    script.wait_backoff(1).expect_watch("10").give(Input::Opened);
    script.wait(secs(289)..=secs(290)).poll().expect("another probe");
}

#[test]
fn g30_a_malformed_frame_is_read_at_most_twice() {
    let mut script = Script::watching(plain());
    script.give(event("12")).give(failed(FailureKind::Malformed)).wait_backoff(1).expect_watch("12");
    script.give(Input::Opened).give(failed(FailureKind::Malformed)).wait_backoff(2);
    script.expect(begin(true)).expect(list("12", None)).give(Input::Opened).give(page("12", ""));
    // That would lead back to the frame.
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("", Some(500)));
    script.give(Input::Opened).give(page("13", "")).expect(finish("13")).expect_watch("13");
    // Another version, another frame.
    script.give(Input::Opened).give(failed(FailureKind::Malformed)).wait_backoff(3).expect_watch("13");
}

#[test]
fn g30_a_list_that_is_malformed_as_well_is_taken_without_what_is_wrong() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Malformed)).wait_backoff(1).expect_watch("10");
    script.give(Input::Opened).give(failed(FailureKind::Malformed)).wait_backoff(2);
    script.expect(begin(true)).expect(list("10", None)).give(failed(FailureKind::Malformed));
    script.expect(Action::AbandonReplace).assert_version("10").wait_backoff(3);
    script.expect(begin_skipping()).expect(list("10", None)).give(failed(FailureKind::Malformed));
    script.expect(Action::AbandonReplace).quiet().assert_version("10");
    assert!(matches!(script.reflector.state(), State::Degraded { .. }));
    script.wait(secs(15)..=secs(30)).expect(begin_skipping()).expect(list("10", None)).quiet();
}

#[test]
fn g30_malformed_frames_that_no_list_leads_past_are_degraded() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Malformed)).wait_backoff(1).expect_watch("10");
    script.give(Input::Opened).give(failed(FailureKind::Malformed)).wait_backoff(2);
    script.expect(begin(true)).expect(list("10", None)).give(page("10", ""));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("", Some(500)));
    script.give(page("10", "")).expect(finish("10")).expect_watch("10").give(Input::Opened);
    script.give(failed(FailureKind::Malformed)).quiet();
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
