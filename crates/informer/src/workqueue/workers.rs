//! Workers: tasks that take keys and do something.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::JoinSet;

use super::{Key, WorkQueue};

impl<K: Key + Sync + fmt::Debug> WorkQueue<K> {
    /// Runs so many workers, each a task of its own, until the queue is shut down and all was handed out.
    ///
    /// `work` is called with one key at a time and worker. If it succeeds the key's failures are forgotten; if it
    /// fails or panics, that is logged, and the key comes again as the rate limiter says. An error is logged with its
    /// text; a panic, whose text may quote an object, with the place of this call. For a look at some later time
    /// it calls [`add_after`](Self::add_after) itself, on a clone of the queue.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the workers; the keys they have are done, and nobody works on them again unless they
    /// were added again. Shut the queue down to let them finish.
    #[track_caller]
    pub fn run_workers<W, F, E>(&self, workers: usize, work: W) -> impl Future<Output = ()> + Send
    where
        W: Fn(K) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let (work, called_at) = (Arc::new(work), Location::caller());
        async move {
            let mut tasks = JoinSet::new();
            for _ in 0..workers {
                let (queue, work) = (self.clone(), Arc::clone(&work));
                tasks.spawn(async move { queue.work(&*work, called_at).await });
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    async fn work<W, F, E>(&self, work: &W, called_at: &Location<'_>)
    where
        W: Fn(K) -> F,
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        while let Some(item) = self.next().await {
            let key = K::clone(&item);
            // Whatever `work` shares with others is its own business, as with any handler.
            let outcome = AssertUnwindSafe(async { work(key).await }).catch_unwind().await;
            let failure = match outcome {
                Ok(Ok(())) => {
                    self.forget(&item);
                    continue;
                }
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => format!("panicked (workers run at {called_at})"),
            };
            tracing::warn!(queue = self.name(), key = ?*item, failure, "the work failed, and is tried again");
            self.add_rate_limited(K::clone(&item));
        }
    }
}
