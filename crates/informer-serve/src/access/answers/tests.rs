use super::*;

const BOUNDS: Bounds = Bounds { entries: 3, bytes: 1600, asking: 2 };
const LIFETIME: Duration = Duration::from_secs(10);

fn fresh(answer: &'static str) -> Fresh<&'static str> {
    Fresh { answer, lifetime: LIFETIME, weight: 1 }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What is known of a question, without asking it.
fn known(kept: &mut Kept<u32, &'static str>, question: u32, now: Instant) -> Option<&'static str> {
    match kept.look(&question, now) {
        Ok(Looked::Known(answer)) => Some(answer),
        _ => None,
    }
}

#[test]
fn an_answer_is_believed_from_the_question_on_and_no_longer() {
    let start = Instant::now();
    let mut kept = Kept::new(BOUNDS);
    let Ok(Looked::Ask(_sender)) = kept.look(&1, start) else { panic!("nothing is known") };
    kept.settle(&1, fresh("yes"), start, start + seconds(4));
    assert_eq!(known(&mut kept, 1, start + seconds(9)), Some("yes"));
    assert_eq!(known(&mut kept, 1, start + seconds(10)), None);
    // An answer that came too late is none.
    kept.settle(&2, fresh("yes"), start, start + seconds(10));
    assert_eq!(known(&mut kept, 2, start + seconds(10)), None);
    assert_eq!(kept.known.len() + kept.order.len(), 0);
}

#[test]
fn a_question_is_asked_once_at_a_time() {
    let now = Instant::now();
    let mut kept = Kept::<u32, &str>::new(BOUNDS);
    let Ok(Looked::Ask(sender)) = kept.look(&1, now) else { panic!() };
    assert!(matches!(kept.look(&1, now), Ok(Looked::Asking(_))));
    drop(sender);
    assert!(matches!(kept.look(&1, now), Ok(Looked::Ask(_))), "it was given up");
}

#[test]
fn questions_answers_and_bytes_are_bounded() {
    let now = Instant::now();
    let mut kept = Kept::new(BOUNDS);
    for question in 0..100 {
        kept.settle(&question, fresh("yes"), now, now);
        assert!(kept.known.len() <= 3 && kept.order.len() <= 3);
    }
    assert_eq!(known(&mut kept, 96, now), None, "the oldest goes first");
    assert_eq!(known(&mut kept, 97, now), Some("yes"));
    // The same question over and over leaves nothing behind.
    for _ in 0..100 {
        kept.settle(&99, fresh("no"), now, now);
    }
    assert!(kept.order.len() <= 6 && kept.known.len() == 3, "{}", kept.order.len());
    kept.settle(&1, fresh("yes"), now + seconds(20), now + seconds(20));
    assert_eq!((kept.known.len(), kept.order.len(), kept.bytes), (1, 1, 1));

    for question in 200..300 {
        let heavy = Fresh { weight: 100, ..fresh("yes") };
        kept.settle(&question, heavy, now + seconds(20), now + seconds(20));
        assert!(kept.bytes <= 1600);
    }
    let too_heavy = Fresh { weight: 101, ..fresh("yes") };
    kept.settle(&300, too_heavy, now + seconds(20), now + seconds(20));
    assert_eq!(known(&mut kept, 300, now + seconds(20)), None);

    let mut kept = Kept::<u32, &str>::new(BOUNDS);
    let _first = kept.look(&1, now).unwrap();
    let second = kept.look(&2, now).unwrap();
    assert!(matches!(kept.look(&3, now), Err(TooMany)));
    assert!(kept.look(&1, now).is_ok(), "what is being asked is waited for");
    drop(second);
    assert!(matches!(kept.look(&3, now), Ok(Looked::Ask(_))));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_askers_ask_once_and_the_first_may_leave() {
    let answers = Answers::<u32, u32>::new(BOUNDS);
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let get = || {
        let (answers, asked) = (answers.clone(), Arc::clone(&asked));
        async move {
            let ask = || async move {
                asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::time::sleep(seconds(1)).await;
                Fresh { answer: 7, lifetime: LIFETIME, weight: 1 }
            };
            answers.get(&1, ask).await
        }
    };
    let first = tokio::spawn(get());
    tokio::task::yield_now().await;
    first.abort();
    let all = futures_util::future::join_all((0..1000).map(|_| get())).await;
    assert!(all.iter().all(|it| *it == Ok(7)));
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    tokio::time::sleep(LIFETIME).await;
    assert_eq!(get().await, Ok(7));
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 2);
}
