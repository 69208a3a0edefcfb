//! A cache of review results with a short lifetime. No requester uses more than a quarter of any
//! limit.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

/// Caches answers and never sends the same question twice at the same time. Cheap to clone.
pub(super) struct Answers<K, V>(Arc<Mutex<Kept<K, V>>>);

/// The requester that a question is accounted to: a user name or an address.
pub(super) type Party = Arc<str>;

/// Limits of the cache and of the questions in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Cache entries.
    pub(super) entries: usize,
    /// Bytes of questions and answers, as computed by the code that asks.
    pub(super) bytes: usize,
    /// Questions that are in flight or wait for a permit.
    pub(super) asking: usize,
    /// Permits: questions that the API server processes at the same time.
    pub(super) places: usize,
}

/// The semaphores that a question waits for before it is sent: one for all requesters, and one for
/// its own requester.
#[derive(Debug, Clone)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    of_asker: Arc<Semaphore>,
}

/// The permits of one question. Dropping them returns them.
pub(super) type Place<'a> = [Option<SemaphorePermit<'a>>; 2];

/// A new answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fresh<V> {
    pub(super) answer: V,
    /// How long the answer is valid, counted from the time of the question.
    pub(super) lifetime: Duration,
    /// Bytes of the question and the answer.
    pub(super) weight: usize,
}

/// The error for too many questions in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

impl<K, V> Answers<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Mutex::new(Kept::new(bounds))))
    }

    /// Returns the cached answer, or the one that `ask` returns. Calls with the same question wait
    /// for one answer. A call that is cancelled does not cancel it for the others.
    ///
    /// # Errors
    /// If too many questions are in flight, of this requester or in total.
    ///
    /// # Cancel safety
    /// The question stays in flight, and its answer is cached.
    pub(super) async fn get<F>(
        &self,
        asker: &Party,
        question: &K,
        ask: impl FnOnce(Places) -> F,
    ) -> Result<V, TooMany>
    where
        F: Future<Output = Fresh<V>> + Send + 'static,
    {
        let mut ask = Some(ask);
        loop {
            let mut receiver = match self.lock().look(asker, question, Instant::now())? {
                Looked::Known(answer) => return Ok(answer),
                Looked::Asking(receiver) => receiver,
                Looked::Ask(sender, places) => {
                    let receiver = sender.subscribe();
                    // `ask` has been called once already, and its task panicked.
                    let Some(ask) = ask.take() else { return Err(TooMany) };
                    let (asked, answering) = (Instant::now(), ask(places));
                    let (answers, question) = (Arc::clone(&self.0), question.clone());
                    tokio::spawn(async move {
                        let fresh = answering.await;
                        let mut kept = answers.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.settle(&question, fresh.clone(), asked, Instant::now());
                        sender.send_replace(Some(fresh.answer));
                    });
                    receiver
                }
            };
            // The sender is dropped without a value if the task that asks panics.
            if let Ok(answer) = receiver.wait_for(Option::is_some).await
                && let Some(answer) = &*answer
            {
                return Ok(answer.clone());
            }
        }
    }

    /// Caches an answer to a question that was asked elsewhere, at the time `asked`.
    pub(super) fn remember(&self, asker: &Party, question: &K, fresh: Fresh<V>, asked: Instant) {
        self.lock().keep(asker, question, fresh, asked, Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    #[cfg(test)]
    pub(super) fn none() -> Self {
        let none = Arc::new(Semaphore::new(0));
        Self { all: Arc::clone(&none), of_asker: none }
    }

    /// Waits for the permits. The requester's own permit comes first, so that one requester does
    /// not fill the queue of the shared semaphore.
    pub(super) async fn acquire(&self) -> Place<'_> {
        let of_asker = self.of_asker.acquire().await.ok();
        [of_asker, self.all.acquire().await.ok()]
    }
}

impl<K, V> Clone for Answers<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The state of the cache. It uses neither a clock nor tasks, so that tests can set the time.
struct Kept<K, V> {
    bounds: Bounds,
    /// The limits of one requester.
    quarter: Bounds,
    places: Arc<Semaphore>,
    known: HashMap<K, Known<V>>,
    asking: HashMap<K, Unsettled<V>>,
    /// The answered questions, oldest answer first.
    order: VecDeque<(u64, K)>,
    bytes: usize,
    settled: u64,
    shares: HashMap<Party, Share>,
}

struct Known<V> {
    answer: V,
    until: Instant,
    weight: usize,
    number: u64,
    asker: Party,
}

/// A question in flight.
struct Unsettled<V> {
    answer: watch::Receiver<Option<V>>,
    asker: Party,
}

/// The usage of one requester.
struct Share {
    entries: usize,
    bytes: usize,
    asking: usize,
    places: Arc<Semaphore>,
}

/// The result of a lookup.
enum Looked<V> {
    Known(V),
    /// The question is in flight.
    Asking(watch::Receiver<Option<V>>),
    /// The question must be sent now. Dropping the sender abandons it.
    Ask(watch::Sender<Option<V>>, Places),
}

impl<K: Clone + Eq + Hash, V: Clone> Kept<K, V> {
    fn new(bounds: Bounds) -> Self {
        let quarter = |bound: usize| (bound / 4).max(1);
        Self {
            bounds,
            quarter: Bounds {
                entries: quarter(bounds.entries),
                bytes: quarter(bounds.bytes),
                asking: quarter(bounds.asking),
                places: quarter(bounds.places),
            },
            places: Arc::new(Semaphore::new(bounds.places)),
            known: HashMap::new(),
            asking: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            settled: 0,
            shares: HashMap::new(),
        }
    }

    fn look(&mut self, asker: &Party, question: &K, now: Instant) -> Result<Looked<V>, TooMany> {
        if let Some(known) = self.known.get(question).filter(|it| now < it.until) {
            return Ok(Looked::Known(known.answer.clone()));
        }
        if let Some(asking) = self.asking.get(question).filter(|it| !it.is_given_up()) {
            return Ok(Looked::Asking(asking.answer.clone()));
        }
        self.ended(question);
        if !self.has_room(asker) {
            let given_up = self.asking.iter().filter(|(_, it)| it.is_given_up());
            for question in Vec::from_iter(given_up.map(|(question, _)| question.clone())) {
                self.ended(&question);
            }
            if !self.has_room(asker) {
                return Err(TooMany);
            }
        }
        let share = self.share(asker);
        share.asking += 1;
        let of_asker = Arc::clone(&share.places);
        let (sender, answer) = watch::channel(None);
        self.asking.insert(question.clone(), Unsettled { answer, asker: Arc::clone(asker) });
        Ok(Looked::Ask(sender, Places { all: Arc::clone(&self.places), of_asker }))
    }

    /// Whether a requester may send one more question.
    fn has_room(&self, asker: &Party) -> bool {
        let own = self.shares.get(asker).map_or(0, |it| it.asking);
        self.asking.len() < self.bounds.asking && own < self.quarter.asking
    }

    fn settle(&mut self, question: &K, fresh: Fresh<V>, asked: Instant, now: Instant) {
        if let Some(asker) = self.ended(question) {
            self.keep(&asker, question, fresh, asked, now);
        }
    }

    fn keep(&mut self, asker: &Party, question: &K, fresh: Fresh<V>, asked: Instant, now: Instant) {
        self.forget(question);
        self.shrink(now);
        let Fresh { answer, lifetime, weight } = fresh;
        let until = asked + lifetime;
        if until <= now || weight > self.bounds.bytes / 16 {
            return;
        }
        let Bounds { entries, bytes, .. } = self.quarter;
        let share = self.share(asker);
        // Over the limit the answer is not cached, so that it evicts no entries of other
        // requesters.
        if share.entries < entries && share.bytes + weight <= bytes {
            share.entries += 1;
            share.bytes += weight;
            self.bytes += weight;
            let number = self.settled;
            self.settled += 1;
            let known = Known { answer, until, weight, number, asker: Arc::clone(asker) };
            self.known.insert(question.clone(), known);
            self.order.push_back((number, question.clone()));
        }
        self.shrink(now);
    }

    /// Evicts expired entries, and the oldest ones while the limits are exceeded.
    fn shrink(&mut self, now: Instant) {
        while let Some((number, question)) = self.order.front() {
            let known = self.known.get(question).filter(|it| it.number == *number);
            let is_too_much =
                self.known.len() > self.bounds.entries || self.bytes > self.bounds.bytes;
            if known.is_some_and(|it| now < it.until) && !is_too_much {
                break;
            }
            let is_known = known.is_some();
            let Some((_, question)) = self.order.pop_front() else { break };
            if is_known {
                self.forget(&question);
            }
        }
        // A question that was asked again has a stale element in `order`.
        if self.order.len() > 2 * self.bounds.entries {
            let known = &self.known;
            self.order.retain(|(number, it)| known.get(it).is_some_and(|it| it.number == *number));
        }
    }

    fn forget(&mut self, question: &K) {
        if let Some(known) = self.known.remove(question) {
            self.bytes -= known.weight;
            let share = self.share(&known.asker);
            share.entries -= 1;
            share.bytes -= known.weight;
            self.drop_if_empty(&known.asker);
        }
    }

    /// Removes a question from those in flight. Returns its requester.
    fn ended(&mut self, question: &K) -> Option<Party> {
        let Unsettled { asker, .. } = self.asking.remove(question)?;
        self.share(&asker).asking -= 1;
        self.drop_if_empty(&asker);
        Some(asker)
    }

    fn share(&mut self, asker: &Party) -> &mut Share {
        let places = self.quarter.places;
        self.shares.entry(Arc::clone(asker)).or_insert_with(|| Share {
            entries: 0,
            bytes: 0,
            asking: 0,
            places: Arc::new(Semaphore::new(places)),
        })
    }

    fn drop_if_empty(&mut self, asker: &Party) {
        if self.shares.get(asker).is_some_and(|it| it.entries == 0 && it.asking == 0) {
            self.shares.remove(asker);
        }
    }
}

impl<V> Unsettled<V> {
    /// Whether the question was abandoned because its task panicked.
    fn is_given_up(&self) -> bool {
        self.answer.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests;
