//! Workers: tasks that take keys and do something.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::JoinSet;

use super::{Key, WorkQueue};
use crate::error::shorten;

impl<K: Key + Sync + fmt::Debug> WorkQueue<K> {
    /// Runs so many workers, each a task of its own, until the queue is shut down and all was
    /// handed out.
    ///
    /// `work` is called with one key at a time and worker. If it succeeds the key's failures are
    /// forgotten; if it fails or panics, that is logged at warn in one line, and the key comes
    /// again as the rate limiter says. An error is logged with the beginning of its text; a panic,
    /// whose text may quote an object, with the place of this call. For a look at some later time
    /// it calls [`add_after`](Self::add_after) itself, on a clone of the queue.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the workers; the keys they have are done, and nobody works on
    /// them again unless they were added again. Shut the queue down to let them finish.
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
                Ok(Err(error)) => brief(&format!("{error:#}")),
                Err(_) => format!("panicked (workers run at {called_at})"),
            };
            tracing::warn!(queue = self.name(), key = ?*item, failure, "the work failed, and is tried again");
            self.add_rate_limited(K::clone(&item));
        }
    }
}

/// Maximum length of a logged failure, in characters.
const MAX_FAILURE: usize = 300;

/// The first line of what an error says, and of an API server's refusal its reason and code
/// besides: the client's own text goes on with a `Debug` copy of the whole `Status`.
pub(crate) fn brief(error: &str) -> String {
    let first_line = |text: &str| {
        let mut line = text.lines().next().unwrap_or_default().to_owned();
        shorten(&mut line, MAX_FAILURE);
        line
    };
    let Some((said, status)) = error.split_once(" (Status {") else { return first_line(error) };
    let code = status.split_once("code: ").map_or("", |(_, rest)| rest);
    let code: String = code.chars().take_while(char::is_ascii_digit).collect();
    let (message, reason) = said.rsplit_once(": ").unwrap_or((said, ""));
    format!("{}: {reason} ({code})", first_line(message))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::brief;

    fn conflict(message: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure(message, "Conflict").with_code(409)))
    }

    #[test]
    fn a_refusal_is_told_by_message_reason_and_code_once() {
        let modified =
            "Operation cannot be fulfilled on podsets \"web\": the object has been modified";
        let error = conflict(modified);
        assert!(error.to_string().len() > 2 * modified.len(), "{error}");
        assert_eq!(brief(&error.to_string()), format!("ApiError: {modified}: Conflict (409)"));
        let chain = format!("{:#}", anyhow::Error::from(error).context("writing the status"));
        assert_eq!(
            brief(&chain),
            format!("writing the status: ApiError: {modified}: Conflict (409)")
        );
    }

    #[test]
    fn a_failure_is_one_line_of_bounded_length() {
        assert_eq!(brief("it failed\n  at one\n  at two"), "it failed");
        let two_lines = conflict("first line\nsecond line").to_string();
        assert_eq!(brief(&two_lines), "ApiError: first line: Conflict (409)");
        let endless = brief(&conflict(&"x".repeat(5000)).to_string());
        assert!(endless.len() < 350 && endless.ends_with("…: Conflict (409)"), "{endless}");
        assert_eq!(brief(""), "");
        let long = brief(&"\u{e4}".repeat(5000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (301, true));
    }
}
