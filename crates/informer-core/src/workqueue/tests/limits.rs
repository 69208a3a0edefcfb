use super::*;

const NOW: Duration = Duration::ZERO;

/// Any limiter, asked about one item at time zero.
fn ask<L: RateLimiter<&'static str>>(limiter: &mut L, item: &'static str) -> Duration {
    limiter.when(NOW, &item)
}

#[test]
fn exponential_waits_double_for_each_item_alone_until_forgotten() {
    let mut limiter = ExponentialLimiter::new(ms(1), Duration::from_secs(1));
    for millis in [1, 2, 4, 8, 16] {
        assert_eq!(ask(&mut limiter, "one"), ms(millis));
    }
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!((ask(&mut limiter, "two"), ask(&mut limiter, "two")), (ms(1), ms(2)));
    assert_eq!(limiter.num_requeues(&"two"), 2);
    limiter.forget(&"one");
    assert_eq!((limiter.num_requeues(&"one"), ask(&mut limiter, "one")), (0, ms(1)));
    assert_eq!(limiter.num_requeues(&"two"), 2);
}

#[test]
fn a_thousand_failures_wait_no_longer_than_the_longest_and_never_overflow() {
    let bases =
        [Duration::ZERO, Duration::from_nanos(1), ms(1), Duration::from_secs(60), Duration::MAX];
    for base in bases {
        for max in [Duration::from_secs(1000), Duration::MAX] {
            let mut limiter = ExponentialLimiter::new(base, max);
            let mut before = Duration::ZERO;
            for _ in 0..1000 {
                let wait = ask(&mut limiter, "one");
                assert!(before <= wait && wait <= max, "{wait:?} after {before:?}");
                before = wait;
            }
            let expected = if base.is_zero() { base } else { max };
            assert_eq!(before, expected, "{base:?}");
            assert_eq!(limiter.num_requeues(&"one"), 1000);
        }
    }
}

#[test]
fn fast_slow_is_fast_so_often_and_then_slow_until_forgotten() {
    let (fast, slow) = (ms(5), Duration::from_secs(10));
    let mut limiter = FastSlowLimiter::new(fast, slow, 3);
    for expected in [fast, fast, fast, slow, slow] {
        assert_eq!(ask(&mut limiter, "one"), expected);
    }
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(ask(&mut limiter, "two"), fast);
    limiter.forget(&"one");
    assert_eq!((limiter.num_requeues(&"one"), ask(&mut limiter, "one")), (0, fast));
}

#[test]
fn max_of_takes_the_longest_wait_and_counts_in_all() {
    let slow = Duration::from_secs(3);
    let mut limiter = MaxOfLimiter::new()
        .and(FastSlowLimiter::new(ms(5), slow, 3))
        .and(ExponentialLimiter::new(ms(1), Duration::from_secs(1)));
    for expected in [ms(5), ms(5), ms(5), slow, slow] {
        assert_eq!(ask(&mut limiter, "one"), expected);
    }
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!((ask(&mut limiter, "two"), limiter.num_requeues(&"two")), (ms(5), 1));
    limiter.forget(&"one");
    assert_eq!((limiter.num_requeues(&"one"), ask(&mut limiter, "one")), (0, ms(5)));
    assert_eq!(ask(&mut MaxOfLimiter::new(), "one"), Duration::ZERO);
}

#[test]
fn a_bucket_lets_a_burst_through_and_then_so_many_per_second() {
    let mut limiter = BucketLimiter::new(10.0, 100);
    for _ in 0..100 {
        assert_eq!(ask(&mut limiter, "one"), Duration::ZERO);
    }
    // Each further one reserves its own place, of whichever item it is.
    assert_eq!((ask(&mut limiter, "one"), ask(&mut limiter, "two")), (ms(100), ms(200)));
    RateLimiter::<&str>::forget(&mut limiter, &"one");
    assert_eq!((ask(&mut limiter, "one"), limiter.num_requeues(&"one")), (ms(300), 0));
    // A second later ten places are free, of which three are reserved.
    for _ in 0..7 {
        assert_eq!(limiter.when(ms(1000), &"one"), Duration::ZERO);
    }
    assert_eq!(limiter.when(ms(1000), &"one"), ms(100));
    // It never holds more than the burst.
    let later = Duration::from_secs(1_000_000);
    let free = (0..200).filter(|_| limiter.when(later, &"one").is_zero()).count();
    assert_eq!(free, 100);
}

#[test]
fn a_cap_shortens_the_waits_of_another_limiter() {
    let exponential = ExponentialLimiter::new(ms(1), Duration::from_secs(1));
    let mut limiter = MaxWaitLimiter::new(exponential, ms(3));
    assert_eq!([1, 2, 3].map(|_| ask(&mut limiter, "one")), [ms(1), ms(2), ms(3)]);
    assert_eq!(limiter.num_requeues(&"one"), 3);
    limiter.forget(&"one");
    assert_eq!(ask(&mut limiter, "one"), ms(1));
}

#[test]
fn the_default_is_that_of_client_gos_controllers() {
    let mut limiter = default_limiter();
    let first: Vec<_> = (0..4).map(|_| ask(&mut limiter, "one")).collect();
    assert_eq!(first, [5, 10, 20, 40].map(ms));
    for _ in 0..100 {
        ask(&mut limiter, "one");
    }
    assert_eq!(ask(&mut limiter, "one"), Duration::from_secs(1000));
    // 105 were asked for at once; the bucket has 100.
    assert_eq!(ask(&mut limiter, "two"), ms(600));
}

#[test]
#[should_panic(expected = "positive rate")]
fn a_bucket_that_never_fills_is_refused() {
    _ = BucketLimiter::new(0.0, 1);
}
