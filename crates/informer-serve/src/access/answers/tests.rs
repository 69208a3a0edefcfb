use futures_util::FutureExt;

use super::*;

const BOUNDS: Bounds = Bounds { entries: 3, bytes: 1600, asking: 2, places: 8 };
const LIFETIME: Duration = Duration::from_secs(10);

fn fresh(answer: &'static str) -> Fresh<&'static str> {
    Fresh { answer, lifetime: LIFETIME, weight: 1 }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An asker of its own for each question.
fn asker(question: u32) -> Party {
    question.to_string().into()
}

fn look(
    kept: &mut Kept<u32, &'static str>,
    question: u32,
    now: Instant,
) -> Result<Looked<&'static str>, TooMany> {
    kept.look(&asker(question), &question, now)
}

fn keep(
    kept: &mut Kept<u32, &'static str>,
    question: u32,
    fresh: Fresh<&'static str>,
    now: Instant,
) {
    kept.keep(&asker(question), &question, fresh, now, now);
}

/// What is known of a question, without asking it.
fn known(kept: &mut Kept<u32, &'static str>, question: u32, now: Instant) -> Option<&'static str> {
    let known = kept.known.get(&question).filter(|it| now < it.until);
    known.map(|it| it.answer)
}

#[test]
fn an_answer_is_believed_from_the_question_on_and_no_longer() {
    let start = Instant::now();
    let mut kept = Kept::new(BOUNDS);
    let Ok(Looked::Ask(..)) = look(&mut kept, 1, start) else { panic!("nothing is known") };
    kept.settle(&1, fresh("yes"), start, start + seconds(4));
    assert_eq!(known(&mut kept, 1, start + seconds(9)), Some("yes"));
    assert_eq!(known(&mut kept, 1, start + seconds(10)), None);
    // An answer that came too late is none.
    let _asking = look(&mut kept, 2, start);
    kept.settle(&2, fresh("yes"), start, start + seconds(10));
    assert_eq!(known(&mut kept, 2, start + seconds(10)), None);
    assert_eq!(kept.known.len() + kept.order.len() + kept.shares.len(), 0);
}

#[test]
fn a_question_is_asked_once_at_a_time() {
    let now = Instant::now();
    let mut kept = Kept::new(BOUNDS);
    let Ok(Looked::Ask(sender, _)) = look(&mut kept, 1, now) else { panic!() };
    assert!(matches!(look(&mut kept, 1, now), Ok(Looked::Asking(_))));
    drop(sender);
    assert!(matches!(look(&mut kept, 1, now), Ok(Looked::Ask(..))), "it was given up");
    assert_eq!(kept.shares[&asker(1)].asking, 1);
}

#[test]
fn questions_answers_and_bytes_are_bounded() {
    let now = Instant::now();
    let mut kept = Kept::new(BOUNDS);
    for question in 0..100 {
        keep(&mut kept, question, fresh("yes"), now);
        assert!(kept.known.len() <= 3 && kept.order.len() <= 3);
    }
    assert_eq!(known(&mut kept, 96, now), None, "the oldest goes first");
    assert_eq!(known(&mut kept, 97, now), Some("yes"));
    // The same question over and over leaves nothing behind.
    for _ in 0..100 {
        keep(&mut kept, 99, fresh("no"), now);
    }
    assert!(kept.order.len() <= 6 && kept.known.len() == 3, "{}", kept.order.len());
    keep(&mut kept, 1, fresh("yes"), now + seconds(20));
    assert_eq!((kept.known.len(), kept.order.len(), kept.bytes), (1, 1, 1));

    for question in 200..300 {
        let heavy = Fresh { weight: 100, ..fresh("yes") };
        keep(&mut kept, question, heavy, now + seconds(20));
        assert!(kept.bytes <= 1600);
    }
    let too_heavy = Fresh { weight: 101, ..fresh("yes") };
    keep(&mut kept, 300, too_heavy, now + seconds(20));
    assert_eq!(known(&mut kept, 300, now + seconds(20)), None);

    let mut kept = Kept::new(BOUNDS);
    let _first = look(&mut kept, 1, now).unwrap();
    let second = look(&mut kept, 2, now).unwrap();
    assert!(matches!(look(&mut kept, 3, now), Err(TooMany)));
    assert!(look(&mut kept, 1, now).is_ok(), "what is being asked is waited for");
    drop(second);
    assert!(matches!(look(&mut kept, 3, now), Ok(Looked::Ask(..))));
}

#[test]
fn no_asker_takes_more_than_a_quarter_of_any_bound() {
    let now = Instant::now();
    let bounds = Bounds { entries: 40, bytes: 1600, asking: 8, places: 4 };
    let (greedy, modest) = (Party::from("greedy"), Party::from("modest"));
    let mut kept = Kept::new(bounds);
    kept.keep(&modest, &0, fresh("yes"), now, now);
    for question in 1..1000 {
        kept.keep(&greedy, &question, fresh("yes"), now, now);
    }
    assert_eq!(known(&mut kept, 0, now), Some("yes"), "nothing of others is forgotten");
    assert_eq!(kept.known.len(), 1 + 10);
    for question in 1..1000 {
        let heavy = Fresh { weight: 90, ..fresh("yes") };
        kept.keep(&greedy, &question, heavy, now, now);
    }
    assert!(kept.shares[&greedy].bytes <= 400);

    let asking = [2000, 2001].map(|it| kept.look(&greedy, &it, now).unwrap());
    assert!(matches!(kept.look(&greedy, &2002, now), Err(TooMany)));
    let Ok(Looked::Ask(_sender, places)) = kept.look(&modest, &2002, now) else { panic!() };
    let Looked::Ask(_, of_greedy) = &asking[0] else { panic!() };
    let place = of_greedy.acquire().now_or_never().unwrap();
    assert!(of_greedy.acquire().now_or_never().is_none());
    assert!(places.acquire().now_or_never().is_some());
    drop(place);
    assert!(of_greedy.acquire().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_askers_ask_once_and_the_first_may_leave() {
    let answers = Answers::<u32, u32>::new(BOUNDS);
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let get = || {
        let (answers, asked) = (answers.clone(), Arc::clone(&asked));
        async move {
            let ask = |_| async move {
                asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::time::sleep(seconds(1)).await;
                Fresh { answer: 7, lifetime: LIFETIME, weight: 1 }
            };
            answers.get(&asker(1), &1, ask).await
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
