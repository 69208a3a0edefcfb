//! The loop between an [`Ingest`], the source and the clock.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use informer_core::ResourceVersion;
use informer_core::ingest::{Arrival, Ingest, ListChunk, Request, Sink};
use informer_core::reflector::{Failure, FailureKind, ListRequest};
use tokio::time::Instant;

use super::alarm::Alarm;
use super::{ObjectDecoder, Reflector};
use crate::source::{ListStream, ListWatch, WatchStream};

/// How much of what has arrived already goes into one delivery: pieces of a body, and deltas. A
/// delivery costs the same for one object as for many.
const READY_CHUNKS: usize = 16;
const READY_DELTAS: usize = 256;

pub(super) struct Driver<T: Send + Sync + 'static, S, K> {
    ingest: Ingest<ObjectDecoder<T>, K>,
    source: Arc<S>,
    connection: Connection,
    probe: Option<BoxFuture<'static, Result<ResourceVersion, Failure>>>,
    discovery: Option<BoxFuture<'static, Result<bool, Failure>>>,
    alarm: Alarm,
    epoch: Instant,
}

/// The one list or watch that is open.
enum Connection {
    None,
    OpeningList(BoxFuture<'static, Result<ListStream, Failure>>),
    List(ListStream),
    OpeningWatch(BoxFuture<'static, Result<WatchStream, Failure>>),
    Watch(WatchStream),
}

impl<T: Send + Sync + 'static, S: ListWatch, K: Sink<T>> Driver<T, S, K> {
    pub(super) fn new(reflector: Reflector<T, S>, sink: K) -> Self {
        Self {
            ingest: Ingest::new(reflector.config, reflector.decoder, sink),
            source: reflector.source,
            connection: Connection::None,
            probe: None,
            discovery: None,
            alarm: Alarm::default(),
            epoch: reflector.epoch,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.send();
            self.ingest.deliver(self.now());
            self.alarm.set(self.epoch.checked_add(self.ingest.deadline()));
            let full = self.ingest.is_full();
            tokio::select! {
                arrival = self.connection.next(), if !full => {
                    self.ingest.arrived(self.now(), arrival);
                    self.take_ready();
                }
                version = poll_option(&mut self.probe) => {
                    self.probe = None;
                    self.ingest.probed(self.now(), version);
                }
                exists = poll_option(&mut self.discovery) => {
                    self.discovery = None;
                    self.ingest.discovered(self.now(), exists);
                }
                () = self.ingest.sink.rescheduled() => {}
                () = self.alarm.rings() => {}
            }
        }
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Takes in what has arrived meanwhile.
    fn take_ready(&mut self) {
        for _ in 1..READY_CHUNKS {
            self.send();
            if self.ingest.queued() >= READY_DELTAS {
                return;
            }
            let Some(arrival) = self.connection.next().now_or_never() else { return };
            self.ingest.arrived(self.now(), arrival);
        }
    }

    /// Sends what is to be asked.
    fn send(&mut self) {
        while let Some(request) = self.ingest.poll(self.now()) {
            let source = Arc::clone(&self.source);
            match request {
                Request::List(request) => {
                    let opening = async move { source.list(&request).await };
                    self.connection = Connection::OpeningList(opening.boxed());
                }
                Request::Watch(request) => {
                    let opening = async move { source.watch(&request).await };
                    self.connection = Connection::OpeningWatch(opening.boxed());
                }
                Request::Close => self.connection = Connection::None,
                Request::Probe(request) => {
                    self.probe = Some(newest_version(source, request).boxed())
                }
                Request::Discover => {
                    self.discovery = Some(async move { source.exists().await }.boxed());
                }
            }
        }
    }
}

impl Connection {
    /// What comes next; waits for ever if nothing is open.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Arrival {
        let arrival = match self {
            Self::None => return pending().await,
            Self::OpeningList(opening) => match opening.await {
                Ok(stream) => {
                    *self = Self::List(stream);
                    Arrival::Opened
                }
                Err(failure) => Arrival::Failed(failure),
            },
            Self::OpeningWatch(opening) => match opening.await {
                Ok(stream) => {
                    *self = Self::Watch(stream);
                    Arrival::Opened
                }
                Err(failure) => Arrival::Failed(failure),
            },
            Self::List(stream) => match stream.0.next().await {
                Some(Ok(chunk)) => Arrival::List(chunk),
                Some(Err(failure)) => Arrival::Failed(failure),
                None => Arrival::Closed,
            },
            Self::Watch(stream) => match stream.0.next().await {
                Some(Ok(frames)) => Arrival::Watch(frames.0),
                Some(Err(failure)) => Arrival::Failed(failure),
                None => Arrival::Closed,
            },
        };
        let is_over = match &arrival {
            Arrival::Closed | Arrival::Failed(_) | Arrival::List(ListChunk::End(_)) => true,
            Arrival::Opened | Arrival::List(ListChunk::Parts(_)) | Arrival::Watch(_) => false,
        };
        if is_over {
            *self = Self::None;
        }
        arrival
    }
}

/// Asks for a list of one object only to learn the version that the server stands at.
async fn newest_version(
    source: Arc<impl ListWatch>,
    request: ListRequest,
) -> Result<ResourceVersion, Failure> {
    let mut stream = source.list(&request).await?.0;
    while let Some(chunk) = stream.next().await {
        if let ListChunk::End(head) = chunk? {
            return Ok(head.resource_version);
        }
    }
    Err(Failure::new(FailureKind::Malformed, "the list ended without its end"))
}

async fn poll_option<O>(future: &mut Option<BoxFuture<'static, O>>) -> O {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
