//! Refreshes: from every mode, the next list is at `""`, and only that one completes them.

use super::*;

const LIMIT: Option<u32> = Some(500);

/// The least time between the end of a list and the list of a refresh.
const SPACING: Duration = secs(1);

fn refresh(number: u64) -> Input {
    Input::Refresh { number }
}

impl Script {
    /// Expects a LIST at `""`, as due now, that completes refreshes up to `number`, and answers it.
    #[track_caller]
    fn expect_refreshed(&mut self, number: u64, version: &str) -> &mut Self {
        self.expect(begin(true))
            .expect(list("", LIMIT))
            .give(Input::Opened)
            .give(page(version, ""));
        self.expect(finish(version));
        assert_eq!(self.refreshes.take(), Some(number));
        self
    }
}

#[test]
fn g26_a_refresh_closes_the_watch_lists_the_newest_and_watches_from_there() {
    let mut script = Script::watching(plain());
    script.advance(secs(7)).give(event("12")).give(refresh(1));
    script.expect(Action::Close).expect_refreshed(1, "20").expect_watch("20");
    script.give(Input::Opened).quiet();
    assert!(script.is_watching());
    // It is done once.
    let later = script.now + secs(200);
    script.live_until(later);
}

#[test]
fn g26_a_refresh_is_a_streaming_list_where_those_work() {
    let mut script = Script::new(ReflectorConfig::default());
    script.expect(begin(true)).expect_streaming("").give(Input::Opened).give(initial_end("10"));
    script.expect(finish("10")).quiet();
    // The first list was at the newest version already.
    assert_eq!(script.refreshes, Some(0));
    script.advance(secs(7)).give(refresh(3));
    script.expect(Action::Close).expect(begin(true)).expect_streaming("").give(Input::Opened);
    // Neither events nor other bookmarks complete it.
    script.give(event("11")).quiet();
    script.give(initial_end("12")).expect(finish("12")).quiet();
    assert_eq!(script.refreshes, Some(3));
    assert!(script.is_watching());
}

#[test]
fn g26_a_list_at_another_version_completes_no_refresh() {
    let mut script = Script::watching(plain());
    assert_eq!(script.refreshes, None);
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", None)).give(refresh(1)).give(page("20", ""));
    script.expect(finish("20")).expect_watch("20").give(Input::Opened);
    assert_eq!(script.refreshes, None);
    script.give(bookmark("30")).give(event("31"));
    // Another list follows, as soon as its distance allows.
    script.wait(SPACING..=millis(1600)).expect(Action::Close).expect_refreshed(1, "40");
}

#[test]
fn a_list_at_the_newest_completes_what_was_requested_before_it_was_sent() {
    let mut script = Script::watching(plain());
    script.advance(secs(7)).give(refresh(2)).expect(Action::Close);
    script.expect(begin(true)).expect(list("", LIMIT)).give(refresh(5)).give(Input::Opened);
    script.give(page("20", "a")).expect(next_page("a", LIMIT)).give(page("20", ""));
    script.expect(finish("20")).expect_watch("20").give(Input::Opened);
    assert_eq!(script.refreshes, Some(2));
    script.wait(SPACING..=SPACING).expect(Action::Close).expect_refreshed(5, "21");
    script.expect_watch("21").give(Input::Opened).quiet();
    // Nothing is left to do.
    script.advance(secs(100));
}

#[test]
fn a_refresh_before_the_start_makes_the_first_list_at_the_newest() {
    let mut script = Script::new(plain());
    script.give(refresh(1)).expect_refreshed(1, "10").expect_watch("10").quiet();
}

#[test]
fn g28_a_refresh_does_not_shorten_a_backoff() {
    // Of lists: the retry is made when it is due, at the newest version.
    let mut script = Script::new(plain());
    for attempt in 1..6 {
        script.give(refresh(1)).expect(begin(true)).expect(list("", LIMIT));
        script.give(failed(FailureKind::Server)).expect(Action::AbandonReplace);
        script.give(refresh(2)).wait_backoff(attempt);
    }
    script.expect_refreshed(2, "10").expect_watch("10").quiet();

    // Of watches: the list comes when the next watch is due, and the watch after it.
    let mut script = Script::watching(plain());
    script.advance(secs(6)).give(failed(FailureKind::Transport)).wait_jitter().expect_watch("10");
    for attempt in 1..5 {
        script.give(failed(FailureKind::Server)).give(refresh(attempt));
        script.wait_backoff(u32::try_from(attempt).unwrap());
        let version = (20 + attempt).to_string();
        script.expect_refreshed(attempt, &version).expect_watch(&version);
    }

    // `Retry-After` is obeyed.
    let mut script = Script::watching(plain());
    let failure = Failure { retry_after: Some(secs(20)), ..fail(FailureKind::TooManyRequests) };
    script.give(Input::Failed(failure)).give(refresh(1)).wait(secs(20)..=secs(20));
    script.expect_refreshed(1, "20").expect_watch("20").quiet();
}

#[test]
fn g28_a_refresh_that_fails_is_retried_as_any_list() {
    let mut script = Script::watching(plain());
    script.advance(secs(7)).give(refresh(1)).expect(Action::Close);
    for attempt in 2..8 {
        script.expect(begin(true)).expect(list("", LIMIT)).give(failed(FailureKind::Server));
        script.expect(Action::AbandonReplace).wait_backoff(attempt);
    }
    script.expect_refreshed(1, "20").expect_watch("20").quiet();
}

#[test]
fn g26_a_history_that_was_replaced_completes_the_refresh_with_its_own_list() {
    let mut script = Script::watching(plain());
    script.advance(secs(7)).give(refresh(1)).expect(Action::Close);
    script.expect(begin(true)).expect(list("", LIMIT)).give(Input::Opened).give(page("5", ""));
    script.expect(Action::AbandonReplace).expect(begin(false)).expect(list("", LIMIT));
    script.give(page("5", "")).expect(finish_other_history("5")).expect_watch("5").quiet();
    assert_eq!(script.refreshes, Some(1));
}

#[test]
fn g27_a_refresh_falls_back_to_list_as_others_do() {
    let mut script = Script::new(ReflectorConfig::default());
    script.expect(begin(true)).expect_streaming("").give(Input::Opened).give(initial_end("10"));
    script.expect(finish("10")).advance(secs(7)).give(refresh(1)).expect(Action::Close);
    script.expect(begin(true)).expect_streaming("").give(failed(FailureKind::Invalid));
    script.expect(Action::AbandonReplace).expect_refreshed(1, "20").expect_watch("20").quiet();
}

#[test]
fn g28_a_degraded_informer_refreshes_by_a_list_when_a_watch_is_due() {
    let mut script = Script::new(ReflectorConfig::default());
    script.expect(begin(true)).expect_streaming("").give(Input::Opened).give(initial_end("10"));
    script.expect(finish("10")).give(failed(FailureKind::Transport)).wait_jitter();
    script.expect_watch("10").give(Input::Opened).degrade_by(&failed(FailureKind::Server));
    let State::Degraded { .. } = script.reflector.state() else { panic!() };
    script.give(refresh(1)).expect_refreshed(1, "20").expect_watch("20");
    // Only a watch ends that state.
    script.give(failed(FailureKind::Server)).wait(Duration::ZERO..=secs(30));
    assert!(matches!(script.reflector.state(), State::Degraded { .. }));
    script.expect_watch("20").quiet();
}

#[test]
fn g28_refreshes_in_a_row_keep_their_distance_and_do_not_delay_relists() {
    let mut script = Script::watching(plain());
    script.advance(secs(100)).give(bookmark("10"));
    for number in 1..50 {
        script.give(refresh(number));
        if number > 1 {
            script.wait(SPACING..=SPACING);
        }
        script.expect(Action::Close).expect_refreshed(number, "10").expect_watch("10");
        script.give(Input::Opened);
    }
    // The second list that counts, after more than a minute of watching.
    script.give(event("12")).give(failed(FailureKind::Expired)).wait(millis(800)..=millis(900));
    script.expect(begin(true)).expect(list("12", None)).give(page("20", "")).expect(finish("20"));
    script
        .expect_watch("20")
        .give(Input::Opened)
        .give(failed(FailureKind::Expired))
        .wait_backoff(1);
}

#[test]
fn g28_watches_between_refreshes_keep_their_distance() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
    for attempt in 2..6 {
        script.give(failed(FailureKind::Server)).wait_backoff(attempt).expect_watch("10");
    }
    // The last list is long over, and the watch is opened only now.
    script.give(refresh(1)).wait(millis(800)..=millis(800)).expect(Action::Close);
    script.expect_refreshed(1, "20").expect_watch("20").quiet();
}

#[test]
fn g32_a_removal_completes_what_was_requested_before_it_was_discovered() {
    let mut script = Script::watching(plain());
    script.give(refresh(1)).give(failed(FailureKind::NotFound)).expect(Action::Discover);
    let first = script.now;
    let mut number = 1;
    loop {
        // Too late for the discovery that is on its way.
        script.give(refresh(number + 1)).give(Input::Discovered(Ok(false)));
        if script.now.saturating_sub(first) >= secs(30) {
            break;
        }
        number += 1;
        script.quiet().wait(millis(400)..=secs(30)).expect(Action::Discover);
    }
    script.expect(Action::RemoveAll { refreshes: number }).quiet();
    script.wait(millis(400)..=secs(30)).expect(Action::Discover).give(Input::Discovered(Ok(true)));
    script.expect_refreshed(number + 1, "40").expect_watch("40").quiet();
}

#[test]
fn g30_a_refresh_leads_on_past_a_frame_that_cannot_be_read() {
    let mut script = Script::watching(plain());
    script.advance(secs(7)).give(failed(FailureKind::Malformed)).give(refresh(1)).wait_jitter();
    script.expect_refreshed(1, "20").expect_watch("20").quiet();
}
