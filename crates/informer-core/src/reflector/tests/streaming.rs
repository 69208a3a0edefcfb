//! G27: streaming lists and their fallback.

use super::*;

const LIMIT: Option<u32> = Some(500);

fn streaming() -> Script {
    let mut script = Script::new(ReflectorConfig::default());
    script.expect(begin(true)).expect_streaming("").quiet();
    script
}

fn synced() -> Script {
    let mut script = streaming();
    script
        .give(Input::Opened)
        .give(event("7"))
        .give(initial_end("10"))
        .expect(finish("10"))
        .quiet();
    script
}

#[test]
fn g27_the_stream_goes_on_as_the_watch() {
    let mut script = streaming();
    script.give(Input::Opened).give(event("7")).give(event("3")).quiet().assert_version("");
    script.give(Input::Progress { items: 2 });
    let progress = State::Listing { streaming: true, items: 2, remaining: None, attempt: 0 };
    assert_eq!(*script.reflector.state(), progress);
    script.give(initial_end("10")).expect(finish("10")).quiet().assert_version("10");
    assert!(script.is_watching());
    assert_eq!(script.reflector.streaming_lists_supported(), Some(true));
    script.give(event("12")).assert_version("12");
    script.give(failed(FailureKind::Transport)).wait_jitter().expect_watch("12").quiet();
}

#[test]
fn g26_later_streaming_lists_begin_at_the_last_seen() {
    let mut script = synced();
    script.give(event("12")).give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect_streaming("12").give(failed(FailureKind::Expired));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect_streaming("");
    script.give(Input::Opened).give(failed(FailureKind::Expired));
    script.expect(Action::AbandonReplace).wait_backoff(2);
    script.expect(begin(true)).expect(list("", LIMIT)).give(Input::Opened).give(page("20", ""));
    script.expect(finish("20")).expect_watch("20").quiet();
}

#[test]
fn g26_streaming_list_at_a_version_too_large_drops_the_shortcut() {
    let mut script = synced();
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect_streaming("10").give(failed(FailureKind::TooLargeVersion));
    script
        .expect(Action::AbandonReplace)
        .expect(begin(false))
        .expect_streaming("")
        .give(Input::Opened);
    script.give(initial_end("5"));
    script.expect(finish_other_history("5")).quiet();
}

#[test]
fn g26_streaming_list_that_goes_back_is_taken_again() {
    let mut script = synced();
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect_streaming("10").give(Input::Opened).give(initial_end("5"));
    script
        .expect(Action::Close)
        .expect(Action::AbandonReplace)
        .expect(begin(false))
        .expect_streaming("");
    script.give(Input::Opened).give(initial_end("5"));
    script.expect(finish_other_history("5")).quiet();
}

#[test]
fn g27_refusal_falls_back_at_once_and_is_remembered() {
    let mut script = streaming();
    script.give(failed(FailureKind::Invalid));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("0", LIMIT)).quiet();
    assert_eq!(script.reflector.streaming_lists_supported(), Some(false));
    assert_eq!(script.reflector.last_failure(), Some(&fail(FailureKind::Invalid)));
    script.give(Input::Opened).give(page("10", "")).expect(finish("10")).expect_watch("10");
    script.give(Input::Opened).give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", None)).quiet();
}

#[test]
fn g27_only_a_refusal_of_the_request_is_remembered() {
    use FailureKind::*;
    for (opened, kind) in [(true, Invalid), (true, Other), (false, Other), (true, Forbidden)] {
        let mut script = streaming();
        if opened {
            script.give(Input::Opened);
        }
        script.give(failed(kind)).expect(Action::AbandonReplace).wait_backoff(1);
        script
            .expect(begin(true))
            .expect(list("0", LIMIT))
            .give(Input::Opened)
            .give(page("10", ""));
        script.expect(finish("10")).expect_watch("10").give(Input::Opened);
        assert_eq!(script.reflector.streaming_lists_supported(), None, "{kind}");
        script.give(failed(Expired)).wait(millis(400)..=millis(1600));
        script.expect(begin(true)).expect_streaming("10").quiet();
    }
}

#[test]
fn g27_ten_seconds_of_silence_fall_back() {
    let mut script = streaming();
    script.advance(secs(9)).give(Input::Opened).advance(secs(9)).give(Input::Received { bytes: 3 });
    script.wait(secs(10)..=secs(10)).expect(Action::Close).expect(Action::AbandonReplace);
    script.expect(begin(true)).expect(list("0", LIMIT)).quiet();
    assert_eq!(script.reflector.streaming_lists_supported(), Some(false));
    assert_eq!(script.reflector.failures(), 1);
}

#[test]
fn g27_silence_before_the_headers_counts_only_if_a_list_is_answered() {
    let mut script = streaming();
    script.wait(secs(10)..=secs(10)).expect(Action::Close).expect(Action::AbandonReplace);
    script.expect(begin(true)).expect(list("0", LIMIT)).quiet();
    assert_eq!(script.reflector.streaming_lists_supported(), None);
    // The server was away: streaming lists are tried again.
    script.give(failed(FailureKind::Refused)).expect(Action::AbandonReplace).wait_backoff(1);
    script.expect(begin(true)).expect_streaming("").wait(secs(10)..=secs(10));
    script.expect(Action::Close).expect(Action::AbandonReplace);
    script.expect(begin(true)).expect(list("0", LIMIT)).give(Input::Opened);
    assert_eq!(script.reflector.streaming_lists_supported(), Some(false));
}

#[test]
fn g27_a_bookmark_that_lost_its_annotation_falls_back() {
    let mut script = streaming();
    script.give(Input::Opened).give(event("7")).give(bookmark("10"));
    script.expect(Action::Close).expect(Action::AbandonReplace).expect(begin(true));
    script.expect(list("0", LIMIT)).quiet();
    assert_eq!(script.reflector.streaming_lists_supported(), Some(false));
}

#[test]
fn g27_streaming_lists_that_fail_alternate_with_lists() {
    use FailureKind::*;
    let kinds = [Server, Transport, Timeout, Unauthorized, Forbidden, Other];
    let ends = kinds.into_iter().map(|kind| (false, failed(kind)));
    for (opened, end) in
        ends.chain([(true, Input::Closed), (true, failed(Transport)), (true, failed(Server))])
    {
        let mut script = streaming();
        for round in 0..3 {
            if opened {
                script.give(Input::Opened).give(event("7"));
            }
            script.give(end.clone()).expect(Action::AbandonReplace).wait_backoff(2 * round + 1);
            script.expect(begin(true)).expect(list("0", LIMIT)).give(failed(Server));
            script.expect(Action::AbandonReplace).wait_backoff(2 * round + 2);
            script.expect(begin(true)).expect_streaming("");
        }
        script.give(end).expect(Action::AbandonReplace).wait_backoff(7);
        script
            .expect(begin(true))
            .expect(list("0", LIMIT))
            .give(Input::Opened)
            .give(page("10", ""));
        script.expect(finish("10")).expect_watch("10").quiet();
        assert_eq!(script.reflector.streaming_lists_supported(), None);
    }
}

#[test]
fn g27_lists_wait_for_ten_minutes_of_429_and_then_for_ten_more() {
    let mut script = streaming();
    let begun = script.now;
    let mut lists = Vec::new();
    while script.now < begun + secs(3000) {
        script.give(failed(FailureKind::TooManyRequests)).expect(Action::AbandonReplace);
        script.wait(Duration::ZERO..=secs(30)).expect(begin(true));
        let Some(action) = script.poll() else { panic!("a list") };
        if matches!(action, Action::List(_)) {
            lists.push(script.now);
        }
    }
    assert!(lists[0] >= begun + secs(600) && lists[0] <= begun + secs(660), "{lists:?}");
    assert!(
        lists.len() >= 4 && lists.windows(2).all(|two| two[1] - two[0] >= secs(600)),
        "{lists:?}"
    );
}

#[test]
fn g27_a_stream_that_drips_for_ever_ends_at_its_own_deadline() {
    let mut script = streaming();
    script.give(Input::Opened);
    let end = script.now + script.timeout + secs(10);
    while script.now + secs(5) < end {
        script.advance(secs(5)).give(event("7"));
    }
    script.wait(Duration::ZERO..=secs(5)).expect(Action::Close).expect(Action::AbandonReplace);
    script.wait_backoff(1);
}

#[test]
fn g27_nobody_there_to_answer_says_nothing_of_streaming_lists() {
    for kind in [FailureKind::Refused, FailureKind::TooManyRequests] {
        let mut script = streaming();
        for attempt in 1..6 {
            script.give(failed(kind)).expect(Action::AbandonReplace).wait_backoff(attempt);
            script.expect(begin(true)).expect_streaming("").quiet();
        }
        assert_eq!(script.reflector.streaming_lists_supported(), None, "{kind}");
    }
}

#[test]
fn g30_a_frame_that_cannot_be_read_is_left_to_a_list() {
    let mut script = streaming();
    script.give(Input::Opened).give(failed(FailureKind::Malformed));
    script.expect(Action::AbandonReplace).wait_backoff(1);
    script.expect(begin(true)).expect(list("0", LIMIT)).quiet();
    assert_eq!(script.reflector.streaming_lists_supported(), None);
}

#[test]
fn g27_a_verb_that_is_not_found_is_left_to_a_list() {
    let mut script = streaming();
    script
        .give(failed(FailureKind::NotFound))
        .expect(Action::AbandonReplace)
        .expect(Action::Discover);
    script.give(Input::Discovered(Ok(true))).wait_backoff(1);
    script.expect(begin(true)).expect(list("0", LIMIT)).quiet();
}
