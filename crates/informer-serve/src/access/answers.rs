//! Answers to reviews, remembered for a moment.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Remembers answers, and asks every question once at a time; a cheap handle.
pub(super) struct Answers<K, V>(Arc<Mutex<Kept<K, V>>>);

/// How much is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Answers.
    pub(super) entries: usize,
    /// Bytes of questions and answers, as their askers count them.
    pub(super) bytes: usize,
    /// Questions that are being asked.
    pub(super) asking: usize,
}

/// An answer that was just given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fresh<V> {
    pub(super) answer: V,
    /// How long it may be believed, counted from when it was asked for.
    pub(super) lifetime: Duration,
    /// Bytes of the question and the answer.
    pub(super) weight: usize,
}

/// Too many questions are being asked.
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

    /// The answer that is remembered, or that `ask` gives. Callers with the same question wait for
    /// one answer; a caller that goes away takes it from none of them.
    ///
    /// # Errors
    /// If too many questions are being asked.
    ///
    /// # Cancel safety
    /// The question is asked to its end.
    pub(super) async fn get<F>(&self, question: &K, ask: impl FnOnce() -> F) -> Result<V, TooMany>
    where
        F: Future<Output = Fresh<V>> + Send + 'static,
    {
        let mut ask = Some(ask);
        loop {
            let mut receiver = match self.lock().look(question, Instant::now())? {
                Looked::Known(answer) => return Ok(answer),
                Looked::Asking(receiver) => receiver,
                Looked::Ask(sender) => {
                    let receiver = sender.subscribe();
                    // Who has asked in vain does not ask again.
                    let Some(ask) = ask.take() else { return Err(TooMany) };
                    let (asked, answering) = (Instant::now(), ask());
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
            // The one who asked may have panicked.
            if let Ok(answer) = receiver.wait_for(Option::is_some).await
                && let Some(answer) = &*answer
            {
                return Ok(answer.clone());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Clone for Answers<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// What is remembered: without a clock and without tasks.
struct Kept<K, V> {
    bounds: Bounds,
    known: HashMap<K, Known<V>>,
    asking: HashMap<K, watch::Receiver<Option<V>>>,
    /// The known questions, the oldest answer first.
    order: VecDeque<(u64, K)>,
    bytes: usize,
    settled: u64,
}

struct Known<V> {
    answer: V,
    until: Instant,
    weight: usize,
    number: u64,
}

/// What is known of a question.
enum Looked<V> {
    Known(V),
    /// It is being asked.
    Asking(watch::Receiver<Option<V>>),
    /// It is to be asked now; dropping the sender gives it up.
    Ask(watch::Sender<Option<V>>),
}

impl<K: Clone + Eq + Hash, V: Clone> Kept<K, V> {
    fn new(bounds: Bounds) -> Self {
        let (known, asking) = (HashMap::new(), HashMap::new());
        Self { bounds, known, asking, order: VecDeque::new(), bytes: 0, settled: 0 }
    }

    fn look(&mut self, question: &K, now: Instant) -> Result<Looked<V>, TooMany> {
        if let Some(known) = self.known.get(question).filter(|it| now < it.until) {
            return Ok(Looked::Known(known.answer.clone()));
        }
        // One without a sender was given up.
        let asking = self.asking.get(question).filter(|it| it.has_changed().is_ok());
        if let Some(asking) = asking {
            return Ok(Looked::Asking(asking.clone()));
        }
        if self.asking.len() >= self.bounds.asking {
            self.asking.retain(|_, it| it.has_changed().is_ok());
            if self.asking.len() >= self.bounds.asking {
                return Err(TooMany);
            }
        }
        let (sender, receiver) = watch::channel(None);
        self.asking.insert(question.clone(), receiver);
        Ok(Looked::Ask(sender))
    }

    fn settle(&mut self, question: &K, fresh: Fresh<V>, asked: Instant, now: Instant) {
        self.asking.remove(question);
        self.forget(question);
        let Fresh { answer, lifetime, weight } = fresh;
        let until = asked + lifetime;
        if until > now && weight <= self.bounds.bytes / 16 {
            let number = self.settled;
            self.settled += 1;
            self.bytes += weight;
            self.known.insert(question.clone(), Known { answer, until, weight, number });
            self.order.push_back((number, question.clone()));
        }
        self.shrink(now);
    }

    /// Forgets what is over, and the oldest answers while there are too many.
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
        // What was asked again left its old place behind.
        if self.order.len() > 2 * self.bounds.entries {
            let known = &self.known;
            self.order.retain(|(number, it)| known.get(it).is_some_and(|it| it.number == *number));
        }
    }

    fn forget(&mut self, question: &K) {
        if let Some(known) = self.known.remove(question) {
            self.bytes -= known.weight;
        }
    }
}

#[cfg(test)]
mod tests;
