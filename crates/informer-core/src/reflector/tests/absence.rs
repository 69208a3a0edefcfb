//! G32: resources come and go.

use super::*;

fn gone() -> Script {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::NotFound)).expect(Action::Discover).quiet();
    script
}

#[test]
fn g32_absence_counts_after_three_discoveries_over_thirty_seconds() {
    let mut script = gone();
    let first = script.now;
    let mut absent = 0;
    loop {
        absent += 1;
        script.give(Input::Discovered(Ok(false)));
        if script.now.saturating_sub(first) >= secs(30) {
            break;
        }
        script.quiet().assert_version("10");
        let State::Unavailable { absent: shown, until, .. } = script.reflector.state() else {
            panic!()
        };
        assert_eq!((*shown, *until), (absent, script.reflector.deadline()));
        script.wait(millis(400)..=secs(30)).expect(Action::Discover);
    }
    assert!(absent >= 3);
    script.expect(Action::RemoveAll { refreshes: 0 }).quiet().assert_version("");
    // Once.
    for _ in 0..5 {
        script
            .wait(millis(400)..=secs(30))
            .expect(Action::Discover)
            .give(Input::Discovered(Ok(false)));
    }
    // It comes back: the ladder begins anew.
    script.wait(millis(400)..=secs(30)).expect(Action::Discover).give(Input::Discovered(Ok(true)));
    script.expect(begin(true)).expect(list("0", Some(500))).give(Input::Opened).give(page("5", ""));
    script.expect(finish("5")).expect_watch("5").quiet();
}

#[test]
fn g32_two_absences_far_apart_are_not_enough() {
    let mut script = gone();
    script
        .give(Input::Discovered(Ok(false)))
        .wait(millis(800)..=millis(1600))
        .expect(Action::Discover);
    // This one is not answered.
    script.wait(secs(30)..=secs(30)).wait(millis(1600)..=millis(3200)).expect(Action::Discover);
    script.give(Input::Discovered(Ok(false))).quiet().assert_version("10");
    script
        .wait(millis(3200)..=millis(6400))
        .expect(Action::Discover)
        .give(Input::Discovered(Ok(false)));
    script.expect(Action::RemoveAll { refreshes: 0 }).quiet();
}

#[test]
fn g32_failed_discoveries_count_for_nothing() {
    let mut script = gone();
    for _ in 0..20 {
        script.give(Input::Discovered(Err(fail(FailureKind::Server))));
        script.wait(millis(400)..=secs(30)).expect(Action::Discover).assert_version("10");
    }
    // Nor do those that are never answered.
    for _ in 0..20 {
        script.wait(secs(30)..=secs(30)).wait(secs(15)..=secs(30)).expect(Action::Discover);
    }
    let State::Unavailable { absent: 0, .. } = script.reflector.state() else { panic!() };
    script.give(Input::Discovered(Ok(false))).quiet().assert_version("10");
}

#[test]
fn g28_a_retry_after_of_discovery_is_obeyed() {
    let mut script = gone();
    let busy = Failure { retry_after: Some(secs(900)), ..fail(FailureKind::TooManyRequests) };
    script
        .give(Input::Discovered(Err(busy)))
        .wait(secs(300)..=secs(300))
        .expect(Action::Discover)
        .quiet();
}

#[test]
fn g32_a_passing_404_lists_again_after_a_backoff() {
    let mut script = gone();
    script.give(Input::Discovered(Ok(true))).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", None)).give(failed(FailureKind::NotFound));
    script
        .expect(Action::AbandonReplace)
        .expect(Action::Discover)
        .give(Input::Discovered(Ok(true)));
    script.wait_backoff(2).expect(begin(true)).expect(list("10", None)).quiet();
}

#[test]
fn g32_a_resource_that_was_never_there_is_waited_for() {
    let mut script = Script::new(plain());
    script.expect(begin(true)).expect(list("0", Some(500))).give(failed(FailureKind::NotFound));
    script.expect(Action::AbandonReplace).expect(Action::Discover);
    for _ in 0..10 {
        script
            .give(Input::Discovered(Ok(false)))
            .wait(millis(400)..=secs(30))
            .expect(Action::Discover);
    }
    script
        .give(Input::Discovered(Ok(true)))
        .expect(begin(true))
        .expect(list("0", Some(500)))
        .quiet();
}

#[test]
fn g32_answers_that_nobody_waits_for_are_ignored() {
    let mut script = Script::watching(plain());
    script.give(Input::Discovered(Ok(false))).quiet();
    assert!(script.is_watching());
    let mut script = gone();
    script.give(Input::Discovered(Ok(false))).give(Input::Discovered(Ok(false))).quiet();
    let State::Unavailable { absent: 1, .. } = script.reflector.state() else { panic!() };
}
