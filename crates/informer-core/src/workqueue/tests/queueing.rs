use std::sync::Arc;

use super::*;

const NOW: Duration = Duration::ZERO;

#[test]
fn an_item_added_twice_is_handed_out_once() {
    let mut queue = queue();
    queue.add(NOW, "a");
    queue.add(NOW, "b");
    queue.add(NOW, "a");
    assert_eq!(queue.len(), 2);
    assert_eq!((queue.take(NOW), queue.take(NOW), queue.take(NOW)), (Some("a"), Some("b"), None));
}

#[test]
fn an_item_added_while_in_work_is_handed_out_once_more_after_done_and_to_nobody_before() {
    let mut queue = queue();
    queue.add(NOW, "a");
    assert_eq!(queue.take(NOW), Some("a"));
    queue.add(NOW, "a");
    queue.add(NOW, "a");
    assert_eq!((queue.len(), queue.take(NOW)), (0, None), "a second worker has to wait");
    queue.done(NOW, &"a");
    assert_eq!((queue.len(), queue.take(NOW)), (1, Some("a")));
    queue.done(NOW, &"a");
    assert_eq!((queue.len(), queue.take(NOW)), (0, None));
}

#[test]
fn done_with_an_item_that_nobody_has_does_nothing() {
    let mut queue = queue();
    queue.add(NOW, "a");
    queue.done(NOW, &"a");
    queue.done(NOW, &"b");
    assert_eq!(queue.len(), 1);
    assert_eq!((queue.take(NOW), queue.take(NOW)), (Some("a"), None));
}

#[test]
fn an_item_of_low_priority_waits_for_all_others_and_not_for_ever() {
    let mut queue = queue();
    let low = ["l0", "l1", "l2"];
    for item in low {
        queue.add_with_priority(NOW, item, Priority::Low);
    }
    let taken: Vec<_> = (0..22)
        .map(|_| {
            queue.add(NOW, "n");
            let item = queue.take(NOW).expect("an item");
            queue.done(NOW, &item);
            item
        })
        .collect();
    let at = |item| taken.iter().position(|taken| *taken == item);
    assert_eq!(low.map(at), [Some(9), Some(19), None], "{taken:?}");
}

#[test]
fn an_item_of_low_priority_that_is_added_normally_is_promoted() {
    let mut queue = queue();
    for item in ["a", "b", "c"] {
        queue.add_with_priority(NOW, item, Priority::Low);
    }
    queue.add(NOW, "d");
    queue.add(NOW, "c");
    queue.add_with_priority(NOW, "d", Priority::Low);
    assert_eq!((queue.len(), queue.metrics(NOW).depth_low, queue.metrics(NOW).adds), (4, 2, 4));
    let taken: Vec<_> = std::iter::from_fn(|| queue.take(NOW)).collect();
    assert_eq!(taken, ["d", "c", "a", "b"]);
    // While it is in work, too.
    queue.add_with_priority(NOW, "b", Priority::Low);
    queue.add_with_priority(NOW, "a", Priority::Low);
    queue.add(NOW, "a");
    for item in ["b", "a"] {
        queue.done(NOW, &item);
    }
    assert_eq!((queue.take(NOW), queue.take(NOW)), (Some("a"), Some("b")));
}

#[test]
fn after_shutdown_what_was_added_is_handed_out_and_nothing_more_is_taken() {
    let mut queue = queue();
    queue.add(NOW, "a");
    queue.shut_down();
    queue.add(NOW, "b");
    queue.add_after(NOW, "c", ms(1));
    queue.add_rate_limited(NOW, "d");
    queue.advance(ms(1000));
    assert!(!queue.is_over() && !queue.is_drained());
    assert_eq!((queue.take(NOW), queue.take(NOW)), (Some("a"), None));
    assert!(queue.is_over() && !queue.is_drained());
    queue.add(NOW, "a");
    queue.done(NOW, &"a");
    assert!(queue.is_over() && queue.is_drained() && queue.is_empty());
}

#[test]
fn an_item_dirty_while_in_work_is_drained_too() {
    let mut queue = queue();
    queue.add(NOW, "a");
    assert_eq!(queue.take(NOW), Some("a"));
    queue.add(NOW, "a");
    queue.shut_down();
    assert!(!queue.is_over(), "it will be handed out again");
    queue.done(NOW, &"a");
    assert_eq!(queue.take(NOW), Some("a"));
    assert!(queue.is_over() && !queue.is_drained());
    queue.done(NOW, &"a");
    assert!(queue.is_drained());
}

#[test]
fn a_popped_item_is_not_kept() {
    let mut queue = queue();
    let item = Arc::new(1);
    queue.add(NOW, Arc::clone(&item));
    queue.add_after(NOW, Arc::clone(&item), ms(1));
    queue.advance(ms(1));
    let taken = queue.take(ms(1)).expect("an item");
    queue.done(ms(1), &taken);
    drop(taken);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn a_delayed_item_is_absent_before_and_present_after_and_not_added_twice() {
    let mut queue = queue();
    queue.add_after(NOW, "a", ms(50));
    queue.advance(ms(49));
    assert_eq!((queue.len(), queue.delayed(), queue.next_deadline()), (0, 1, Some(ms(50))));
    queue.advance(ms(60));
    assert_eq!((queue.len(), queue.delayed(), queue.next_deadline()), (1, 0, None));
    assert_eq!(queue.take(ms(60)), Some("a"));
    queue.done(ms(60), &"a");
    queue.advance(ms(10_000));
    assert_eq!(queue.take(ms(10_000)), None);
}

#[test]
fn overdue_items_come_in_the_order_of_their_deadlines() {
    let mut queue = queue();
    queue.add_after(NOW, "c", ms(3));
    queue.add_after(NOW, "a", ms(1));
    queue.add_after(NOW, "b", ms(2));
    queue.add_after(NOW, "b2", ms(2));
    queue.advance(ms(5));
    let taken: Vec<_> = std::iter::from_fn(|| queue.take(ms(5))).collect();
    assert_eq!(taken, ["a", "b", "b2", "c"]);
}

#[test]
fn an_item_that_waits_keeps_the_earlier_deadline() {
    let mut queue = queue();
    queue.add_after(NOW, "a", ms(10));
    queue.add_after(NOW, "a", ms(20));
    assert_eq!((queue.delayed(), queue.next_deadline()), (1, Some(ms(10))));
    queue.add_after(NOW, "a", ms(5));
    assert_eq!((queue.delayed(), queue.next_deadline()), (1, Some(ms(5))));
    queue.advance(ms(30));
    assert_eq!((queue.take(ms(30)), queue.take(ms(30))), (Some("a"), None));
}

#[test]
fn no_delay_is_no_wait() {
    let mut queue = queue();
    queue.add_after(NOW, "a", Duration::ZERO);
    assert_eq!(queue.take(NOW), Some("a"));
    queue.add_after(ms(1), "b", Duration::MAX);
    queue.advance(Duration::MAX - ms(1));
    assert_eq!(queue.len(), 0, "the end of time is no overflow");
}

#[test]
fn delayed_items_are_not_delivered_after_shutdown() {
    let mut queue = queue();
    queue.add_after(NOW, "a", ms(1));
    queue.shut_down();
    queue.advance(ms(2));
    assert!(queue.is_drained());
    assert_eq!((queue.take(ms(2)), queue.next_deadline()), (None, None));
}

#[test]
fn rate_limited_items_wait_longer_with_each_failure_until_forgotten() {
    let mut queue = queue();
    queue.add_rate_limited(NOW, "a");
    assert_eq!(queue.next_deadline(), Some(ms(1)));
    queue.advance(ms(1));
    queue.add_rate_limited(ms(1), "a");
    assert_eq!((queue.num_requeues(&"a"), queue.next_deadline()), (2, Some(ms(3))));
    queue.add_rate_limited(ms(1), "b");
    assert_eq!((queue.num_requeues(&"b"), queue.next_deadline()), (1, Some(ms(2))));
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
    queue.add_rate_limited(ms(1), "a");
    assert_eq!((queue.num_requeues(&"a"), queue.next_deadline()), (1, Some(ms(2))));
}

#[test]
fn metrics_follow_an_item_through_the_queue() {
    let mut queue = queue();
    let mut now = NOW;
    queue.add(now, "a");
    let metrics = queue.metrics(now);
    assert_eq!((metrics.adds, metrics.depth), (1, 1));

    now += ms(50);
    queue.take(now);
    let metrics = queue.metrics(now);
    assert_eq!(
        (metrics.depth, metrics.queue_duration.count(), metrics.queue_duration.sum()),
        (0, 1, ms(50))
    );

    // Added five times while in work: that counts once.
    for _ in 0..5 {
        queue.add(now, "a");
    }
    now += ms(25);
    let metrics = queue.metrics(now);
    assert_eq!((metrics.adds, metrics.depth), (2, 1));
    assert_eq!((metrics.unfinished_work, metrics.longest_running_processor), (ms(25), ms(25)));
    assert_eq!(metrics.work_duration.count(), 0);

    queue.done(now, &"a");
    let metrics = queue.metrics(now);
    assert_eq!((metrics.adds, metrics.depth, metrics.unfinished_work), (2, 1, NOW));
    assert_eq!((metrics.work_duration.count(), metrics.work_duration.sum()), (1, ms(25)));

    // From the add, not from the end of the work before.
    now += ms(10);
    queue.take(now);
    queue.add(now, "b");
    now += ms(1);
    queue.take(now);
    now += ms(4);
    let metrics = queue.metrics(now);
    assert_eq!(
        (metrics.queue_duration.count(), metrics.queue_duration.sum()),
        (3, ms(50 + 35 + 1))
    );
    assert_eq!((metrics.unfinished_work, metrics.longest_running_processor), (ms(5 + 4), ms(5)));
    assert_eq!(metrics.retries, 0);

    queue.add_after(now, "c", ms(1));
    queue.add_rate_limited(now, "c");
    assert_eq!((queue.metrics(now).retries, queue.metrics(now).adds), (2, 3));
}
