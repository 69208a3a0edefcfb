//! G26: the version ladder, pages, and lists that fail.

use super::*;

const LIMIT: Option<u32> = Some(500);

#[test]
fn g26_first_list_at_zero_then_the_last_seen_without_limit() {
    let mut script = Script::watching(plain());
    script.give(event("12")).give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("12", None)).give(Input::Opened).give(page("20", ""));
    script.expect(finish("20")).expect_watch("20").quiet();
}

#[test]
fn g26_lists_keep_their_pages_where_the_first_came_in_pages() {
    let mut script = Script::new(plain());
    script.expect(begin(true)).expect(list("0", LIMIT)).give(Input::Opened).give(page("10", "a"));
    script.expect(next_page("a", LIMIT)).give(Input::Opened).give(page("10", "b"));
    let State::Listing { streaming: false, items: 2, .. } = script.reflector.state() else {
        panic!()
    };
    script.expect(next_page("b", LIMIT)).give(Input::Opened).give(page("10", ""));
    script.expect(finish("10")).expect_watch("10").give(Input::Opened);
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", LIMIT)).quiet();
}

#[test]
fn g26_without_a_page_size_no_list_is_limited() {
    for page_size in [None, Some(0)] {
        let mut script = Script::new(ReflectorConfig { page_size, ..plain() });
        script.expect(begin(true)).expect(list("0", None)).quiet();
    }
}

#[test]
fn g26_expired_list_falls_to_the_newest_at_once_and_only_once() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", None)).give(failed(FailureKind::Expired));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("", LIMIT));
    script.give(failed(FailureKind::Expired)).expect(Action::AbandonReplace).wait_backoff(2);
    // What was learnt holds until a list succeeds.
    script.expect(begin(true)).expect(list("", LIMIT)).give(Input::Opened).give(page("30", ""));
    script.expect(finish("30")).expect_watch("30").give(Input::Opened);
    script.give(failed(FailureKind::Expired)).wait_backoff(3);
    script.expect(begin(true)).expect(list("30", None)).quiet();
}

#[test]
fn g26_too_large_version_means_another_history_wherever_it_stands_now() {
    for found in ["4", "10", "40"] {
        let mut script = Script::watching(plain());
        script.give(failed(FailureKind::Expired)).wait_backoff(1);
        script
            .expect(begin(true))
            .expect(list("10", None))
            .give(failed(FailureKind::TooLargeVersion));
        script.expect(Action::AbandonReplace).expect(begin(false)).expect(list("", LIMIT));
        script.give(Input::Opened).give(page(found, ""));
        script.expect(finish_other_history(found));
        script.expect_watch(found).quiet();
    }
    // There is no history before the first list.
    let mut script = Script::new(plain());
    script.expect(begin(true)).expect(list("0", LIMIT)).give(failed(FailureKind::TooLargeVersion));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("", LIMIT));
    script.give(Input::Opened).give(page("4", "")).expect(finish("4")).expect_watch("4").quiet();
}

#[test]
fn g26_a_list_that_goes_back_is_taken_again_without_the_shortcut() {
    let mut script = Script::watching(plain());
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", None)).give(Input::Opened).give(page("9", ""));
    script.expect(Action::AbandonReplace).expect(begin(false)).expect(list("", LIMIT));
    script.give(Input::Opened).give(page("9", ""));
    script.expect(finish_other_history("9"));
    script.expect_watch("9").quiet();
}

#[test]
fn g26_token_expired_on_a_later_page_lists_once_without_limit() {
    for pages in 1..5 {
        let mut script = Script::new(plain());
        script.expect(begin(true)).expect(list("0", LIMIT));
        for number in 0..pages {
            let token = format!("{number}");
            script.give(Input::Opened).give(page("10", &token)).expect(next_page(&token, LIMIT));
        }
        script.give(failed(FailureKind::Expired));
        script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("0", None));
        script
            .give(Input::Opened)
            .give(page("11", ""))
            .expect(finish("11"))
            .expect_watch("11")
            .quiet();
    }
}

#[test]
fn g26_unlimited_list_that_expires_too_falls_to_the_newest_then_backs_off() {
    let mut script = Script::new(plain());
    script.expect(begin(true)).expect(list("0", LIMIT)).give(Input::Opened).give(page("10", "a"));
    script.expect(next_page("a", LIMIT)).give(failed(FailureKind::Expired));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("0", None));
    script.give(failed(FailureKind::Expired));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("", LIMIT));
    script.give(failed(FailureKind::Expired)).expect(Action::AbandonReplace).wait_backoff(1);
}

#[test]
fn g28_server_that_pages_an_unlimited_list_and_forgets_its_pages_is_backed_off() {
    let mut script = Script::new(plain());
    script.expect(begin(true));
    for (version, limit) in [("0", LIMIT), ("0", None), ("", LIMIT), ("", None)] {
        script.expect(list(version, limit)).give(page("10", "a"));
        script.expect(next_page("a", limit)).give(failed(FailureKind::Expired));
        script.expect(Action::AbandonReplace);
        if (version, limit) != ("", None) {
            script.expect(begin(true));
        }
    }
    script.wait_backoff(1);
}

#[test]
fn g28_pages_without_end_are_given_up() {
    let mut script = Script::new(plain());
    script.expect(begin(true)).expect(list("0", LIMIT)).give(page("10", "a"));
    script.expect(next_page("a", LIMIT)).give(page("10", "a"));
    script.expect(Action::AbandonReplace).wait_backoff(1);

    // Tokens that go round.
    script.expect(begin(true)).expect(list("0", LIMIT));
    let mut tokens = ["a", "b", "c", "d", "e"].into_iter().cycle();
    for _ in 0.. {
        script.give(page("10", tokens.next().expect("endless")));
        let action = script.poll();
        if action == Some(Action::AbandonReplace) {
            break;
        }
        assert!(matches!(action, Some(Action::List(_))), "{action:?}");
    }
    script.wait_backoff(2);

    // Pages without items.
    script.expect(begin(true)).expect(list("0", LIMIT));
    let mut asked = 0;
    loop {
        let token = format!("{asked}");
        let continue_token = Some(token.clone());
        script.give(Input::PageEnd {
            version: "10".into(),
            continue_token,
            remaining: None,
            items: 0,
        });
        asked += 1;
        match script.poll() {
            Some(Action::List(_)) => assert!(asked < 20),
            action => break assert_eq!(action, Some(Action::AbandonReplace)),
        }
    }
    script.wait_backoff(3);
}

#[test]
fn a_list_without_a_version_is_a_failure() {
    let mut script = Script::new(plain());
    script.expect(begin(true)).expect(list("0", LIMIT)).give(Input::Opened).give(page("", ""));
    script.expect(Action::AbandonReplace).wait_backoff(1);
}

#[test]
fn g28_failing_lists_back_off_and_say_why() {
    use FailureKind::*;
    for kind in [
        Refused,
        Transport,
        Timeout,
        TooManyRequests,
        Unauthorized,
        Forbidden,
        Server,
        Other,
        Invalid,
    ] {
        let mut script = Script::new(plain());
        for attempt in 1..=8 {
            script.expect(begin(true)).expect(list("0", LIMIT)).give(failed(kind));
            script.expect(Action::AbandonReplace).quiet();
            let State::BackingOff { cause, .. } = script.reflector.state() else {
                panic!("{kind}")
            };
            assert_eq!(*cause, fail(kind));
            script.wait_backoff(attempt);
        }
        assert_eq!(script.reflector.failures(), 8);
    }
}

#[test]
fn g28_silent_lists_time_out() {
    for opened in [false, true] {
        let mut script = Script::new(plain());
        script.expect(begin(true)).expect(list("0", LIMIT)).quiet();
        if opened {
            script.advance(secs(59)).give(Input::Opened);
            script.advance(secs(59)).give(Input::Received { bytes: 1 });
            script.advance(secs(59)).give(page("10", "a")).expect(next_page("a", LIMIT));
        }
        script.wait(secs(60)..=secs(60)).expect(Action::Close).expect(Action::AbandonReplace);
        script.wait_backoff(1);
    }
}

#[test]
fn g30_truncated_list_is_tried_again_then_without_what_is_wrong_then_degraded() {
    for end in [Input::Closed, failed(FailureKind::Malformed)] {
        let mut script = Script::new(plain());
        for attempt in 1..=2 {
            script
                .expect(begin(true))
                .expect(list("0", LIMIT))
                .give(Input::Opened)
                .give(end.clone());
            script.expect(Action::AbandonReplace).wait_backoff(attempt);
        }
        for _ in 0..3 {
            script
                .expect(begin_skipping())
                .expect(list("0", LIMIT))
                .give(Input::Opened)
                .give(end.clone());
            script.expect(Action::AbandonReplace).quiet();
            assert!(matches!(script.reflector.state(), State::Degraded { .. }));
            script.wait(secs(15)..=secs(30));
        }
        script
            .expect(begin_skipping())
            .expect(list("0", LIMIT))
            .give(Input::Opened)
            .give(page("10", ""));
        script.expect(finish("10")).expect_watch("10").give(Input::Opened);
        assert!(script.is_watching());
        // A list that came to its end is a new beginning.
        script.give(failed(FailureKind::Expired)).quiet();
        script.now = script.reflector.deadline();
        script.expect(begin(true)).expect(list("10", None)).quiet();
    }
}

#[test]
fn g30_what_is_left_out_of_a_list_is_left_out_of_those_that_it_leads_to() {
    let mut script = Script::new(plain());
    for attempt in 1..=2 {
        script.expect(begin(true)).expect(list("0", LIMIT)).give(failed(FailureKind::Malformed));
        script.expect(Action::AbandonReplace).wait_backoff(attempt);
    }
    script.expect(begin_skipping()).expect(list("0", LIMIT)).give(page("10", "a"));
    script.expect(next_page("a", LIMIT)).give(failed(FailureKind::Expired));
    script.expect(Action::AbandonReplace).expect(begin_skipping()).expect(list("0", None)).quiet();
}

#[test]
fn g30_strict_never_leaves_anything_out_of_a_list() {
    let mut script = Script::new(ReflectorConfig { strict: true, ..plain() });
    for _ in 0..4 {
        script.expect(begin(true)).expect(list("0", LIMIT)).give(failed(FailureKind::Malformed));
        script.expect(Action::AbandonReplace).quiet();
        assert!(matches!(script.reflector.state(), State::Degraded { .. }));
        script.wait(secs(15)..=secs(30));
    }
}

#[test]
fn g26_the_watch_goes_on_from_the_first_page() {
    // Later pages may be of later versions: what happened since the first one is in the watch, and
    // in none before it.
    let mut script = Script::new(plain());
    script.expect(begin(true)).expect(list("0", LIMIT)).give(page("10", "a"));
    script.expect(next_page("a", LIMIT)).give(page("12", "b"));
    script.expect(next_page("b", LIMIT)).give(page("15", ""));
    script.expect(finish("10")).expect_watch("10").quiet();
}

#[test]
fn g26_a_page_size_that_was_asked_for_holds_for_relists_too() {
    let mut script =
        Script::watching(ReflectorConfig { page_relists: true, page_size: Some(7), ..plain() });
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", Some(7))).give(page("10", "a"));
    // The exception: a list whose continue token expired is asked for whole.
    script.expect(next_page("a", Some(7))).give(failed(FailureKind::Expired));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect(list("10", None)).quiet();

    let mut script =
        Script::watching(ReflectorConfig { page_relists: true, page_size: None, ..plain() });
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
    script.expect(begin(true)).expect(list("10", None)).quiet();
}

#[test]
fn g20_undecodable_list_is_degraded_at_once() {
    for config in [plain(), ReflectorConfig::default()] {
        let mut script = Script::new(config);
        script.expect(begin(true)).poll();
        script.give(Input::Opened).give(failed(FailureKind::Undecodable));
        script.expect(Action::AbandonReplace).quiet();
        assert!(matches!(script.reflector.state(), State::Degraded { .. }));
        script.wait(secs(15)..=secs(30)).expect(begin(true));
    }
}

#[test]
fn g31_list_shows_its_progress() {
    let mut script = Script::new(plain());
    assert_eq!(*script.reflector.state(), State::NotStarted);
    script.expect(begin(true)).expect(list("0", LIMIT)).give(Input::Opened);
    script.give(Input::Progress { items: 7 });
    let at = |items, remaining| State::Listing { streaming: false, items, remaining, attempt: 0 };
    assert_eq!(*script.reflector.state(), at(7, None));
    let continue_token = Some("a".to_owned());
    script.give(Input::PageEnd {
        version: "10".into(),
        continue_token,
        remaining: Some(90),
        items: 10,
    });
    assert_eq!(*script.reflector.state(), at(10, Some(90)));
}

#[test]
fn inputs_handed_in_before_the_actions_were_taken_do_no_harm() {
    let mut script = Script::new(ReflectorConfig::default());
    script.expect(begin(true)).expect_streaming("").give(Input::Opened).give(initial_end("10"));
    script
        .give(failed(FailureKind::Transport))
        .expect(finish("10"))
        .wait_jitter()
        .expect_watch("10");
    script.give(Input::Opened).give(failed(FailureKind::Expired)).wait(millis(300)..=millis(800));
    script.expect(begin(true)).expect_streaming("10").give(failed(FailureKind::Expired));
    // The list that failed is not open any more, and the next one is not yet.
    script.give(failed(FailureKind::Expired)).give(initial_end("7"));
    script.expect(Action::AbandonReplace).expect(begin(true)).expect_streaming("").quiet();
}

/// Lists succeed, and each watch expires at once: a client that is too slow for its watches.
#[test]
fn g28_lists_that_succeed_are_spaced_until_a_minute_was_watched() {
    let mut script = Script::watching(plain());
    for attempt in 1..8 {
        script.give(failed(FailureKind::Expired)).wait_backoff(attempt);
        script
            .expect(begin(true))
            .expect(list("10", None))
            .give(Input::Opened)
            .give(page("10", ""));
        script.expect(finish("10")).expect_watch("10").give(Input::Opened);
    }
    // The delay runs from the end of the last list.
    script.advance(secs(40)).give(failed(FailureKind::Expired)).wait_jitter();
    script.expect(begin(true)).expect(list("10", None)).give(Input::Opened).give(page("10", ""));
    script.expect(finish("10")).expect_watch("10").give(Input::Opened);
    // Resumed watches count together.
    for _ in 0..3 {
        script
            .advance(secs(20))
            .give(event("11"))
            .give(failed(FailureKind::Transport))
            .wait_jitter();
        script.expect_watch("11").give(Input::Opened);
    }
    script.give(failed(FailureKind::Expired)).wait_jitter();
    script.expect(begin(true)).expect(list("11", None)).give(Input::Opened).give(page("11", ""));
    script.expect(finish("11")).expect_watch("11").give(Input::Opened);
    script.give(failed(FailureKind::Expired)).wait_backoff(1);
}
