//! The request of a write, from before it is sent until its outcome is known.

use std::future::pending;
use std::mem::replace;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use informer_core::own_writes::{Answer, Selection, Ticket, Write};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::OwnWrites;
use crate::ObjectKey;
use crate::controller::error::WriteError;
use crate::controller::exchange::{GroupResource, Outcome, Target, send, unretried};
use crate::controller::gate::Gate;

/// How long the answer to a request is waited for after its reconcile was cancelled. API servers
/// give up a request after a minute by default, so that nothing is applied later.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

type Answered = Result<Response<Bytes>, WriteError>;

impl OwnWrites {
    /// Sends a write, and remembers it and what came of it.
    ///
    /// # Cancel safety
    /// If the future is dropped the request goes on in a task of its own, so that its outcome becomes
    /// known.
    pub(in crate::controller) async fn exchange(
        self: &Arc<Self>,
        key: &ObjectKey,
        gate: &Gate,
        target: &Target,
        request: Request<Bytes>,
    ) -> Answered {
        let operation = target.to_string();
        let (parts, body) = request.into_parts();
        let body = unretried(body).await.map_err(|error| WriteError::NotSent {
            operation: operation.clone(),
            cause: error.to_string(),
        })?;
        // Asked last: from here on nothing is waited for before the request is on its way.
        gate.check()?;
        let request = Request::from_parts(parts, body);
        let (own, gate) = (Arc::clone(self), gate.clone());
        let sent = async move {
            tokio::select! {
                biased;
                // It may still wait for a connection.
                why = gate.lost() => {
                    let cause = format!("it was given up: {why}");
                    Err(WriteError::Unknown { operation, cause, status: None })
                }
                response = send(&own.client, &operation, request) => response,
            }
        };
        let Some(write) = target.write() else { return sent.await };
        let in_flight = InFlight::begin(Arc::clone(self), key.clone(), write);
        let target = target.clone();
        let remembered = async move {
            let response = sent.await;
            let outcome = match &response {
                Ok(response) => Outcome::of(&target, response),
                Err(error) => Outcome::of_error(error),
            };
            in_flight.end(&target, outcome);
            response
        };
        Exchange::new(remembered, self.ended()).finish().await
    }
}

/// A write that was begun. Its drop, by which a request is given up, leaves the outcome unknown.
struct InFlight {
    own: Arc<OwnWrites>,
    key: ObjectKey,
    ticket: Option<Ticket>,
}

impl InFlight {
    fn begin(own: Arc<OwnWrites>, key: ObjectKey, write: Write<GroupResource>) -> Self {
        let mut memory = own.memory();
        let (writes, stores) = memory.parts();
        let ticket = writes.begin(key.clone(), write, stores);
        drop(memory);
        Self { own, key, ticket: Some(ticket) }
    }

    fn end(mut self, target: &Target, outcome: Outcome) {
        let Outcome { answer, returned, conflict } = outcome;
        let mut memory = self.own.memory();
        memory.note_conflict(&self.key, conflict);
        let selections = memory.stores.select(&target.resource, &returned);
        let (writes, stores) = memory.parts();
        if let Some(ticket) = self.ticket.take() {
            writes.answered(ticket, answer, |it| selections[it.index()], stores);
            writes.sweep(stores);
        }
        drop(memory);
        self.own.changed.send_replace(());
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut memory = self.own.memory();
        let (writes, stores) = memory.parts();
        writes.answered(ticket, Answer::Unknown, |_| Selection::Unknown, stores);
        drop(memory);
        self.own.changed.send_replace(());
    }
}

/// A write and its answer. If this is dropped before its end the write goes on in a task of its own:
/// a read that is sent now could overtake the write, and tell that it was not applied.
struct Exchange {
    write: BoxFuture<'static, Answered>,
    is_over: bool,
    /// When the write is given up.
    ended: CancellationToken,
}

impl Exchange {
    fn new(
        write: impl Future<Output = Answered> + Send + 'static,
        ended: CancellationToken,
    ) -> Self {
        Self { write: write.boxed(), is_over: false, ended }
    }

    async fn finish(mut self) -> Answered {
        let answered = self.write.as_mut().await;
        self.is_over = true;
        answered
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Without a runtime the write ends here, and its outcome is unknown.
        let Ok(runtime) = Handle::try_current() else { return };
        if self.is_over {
            return;
        }
        let write = replace(&mut self.write, pending().boxed());
        let ended = self.ended.clone();
        runtime.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                _ = timeout(ANSWERED_WITHIN, write) => {}
            }
        });
    }
}
