//! A response body that faults can stop, cut, slow down and change.

use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt};
use informer_core::wire::MediaType;
use k8s_serve::answer::error_event;
use k8s_serve::{Body, BodyError, Status, Verb};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::fault::{Asked, Effect, Stop};
use super::{Active, Cut, Faults, OpenWatch};

/// What a cut watch sends last: an event that never ends.
const HALF_A_LINE: &[u8] = b"{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"";

/// The same in protobuf: the length says that there are 1024 bytes.
const HALF_A_FRAME: &[u8] = b"\0\0\x04\0\x0a\x08MODIFIED\x12\xf3\x07\x0a\xf0\x07k8s\0";

/// A body under the influence of faults: changed, then compressed, then let out at their pace.
pub(crate) struct Guarded {
    inner: Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>,
    open: OpenStream,
    gzip: Option<GzEncoder<Vec<u8>>>,
    sent: u64,
    /// What was read and not sent.
    pending: Bytes,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// What is pending is the last of it.
    Ending,
    /// The connection is next, once that is out.
    Resetting,
    Ended,
}

/// A response that is being sent; a watch can be cut as long as this lives.
pub(crate) struct OpenStream {
    faults: Faults,
    id: u64,
    asked: Asked,
    /// Whether it is what was asked for, rather than a refusal.
    is_success: bool,
    media: MediaType,
    cut: Option<oneshot::Receiver<Cut>>,
    /// Makes the connection end with a reset.
    reset: Option<CancellationToken>,
    /// The faults that this body has been counted by.
    counted: Vec<Arc<Active>>,
}

/// How a body may be sent just now.
struct Pace {
    /// So many bytes in all, and what happens then.
    limit: Option<(u64, Stop, Arc<Active>)>,
    drip: Option<(u64, Duration, Arc<Active>)>,
}

impl Faults {
    /// Registers a response that is about to be sent.
    pub(crate) fn open(
        &self,
        asked: Asked,
        is_success: bool,
        media: MediaType,
        reset: Option<CancellationToken>,
    ) -> OpenStream {
        let id = self.0.ids.fetch_add(1, Ordering::Relaxed);
        let cut = asked.path.as_ref().filter(|_| asked.verb == Verb::Watch).map(|path| {
            let (sender, receiver) = oneshot::channel();
            let mut watches = self.0.watches.lock().unwrap_or_else(PoisonError::into_inner);
            watches.push(OpenWatch { id, path: path.clone(), cut: sender });
            receiver
        });
        OpenStream {
            faults: self.clone(),
            id,
            asked,
            is_success,
            media,
            cut,
            reset,
            counted: Vec::new(),
        }
    }
}

impl OpenStream {
    /// The faults that happen to bodies and may happen to this one.
    fn active(&self) -> Vec<Arc<Active>> {
        let active = self.faults.lock();
        let fits = |active: &&Arc<Active>| {
            active.fault.effect.is_in_body() && active.fault.is_for(&self.asked)
        };
        active.iter().filter(fits).cloned().collect()
    }

    /// Whether a fault has hit this body, or does so now.
    fn is_hit(&mut self, active: &Arc<Active>) -> bool {
        if self.has_counted(active) {
            return true;
        }
        let hit = active.hit();
        if hit {
            self.counted.push(Arc::clone(active));
        }
        hit
    }

    fn has_counted(&self, active: &Arc<Active>) -> bool {
        self.counted.iter().any(|counted| Arc::ptr_eq(counted, active))
    }

    fn pace(&mut self) -> Pace {
        let mut pace = Pace { limit: None, drip: None };
        for active in self.active() {
            match active.fault.effect {
                Effect::Stop(bytes, stop) if pace.limit.is_none() && self.is_hit(&active) => {
                    pace.limit = Some((bytes, stop, active));
                }
                Effect::Drip { bytes, every } if pace.drip.is_none() && self.is_hit(&active) => {
                    pace.drip = Some((bytes, every, active));
                }
                _ => {}
            }
        }
        pace
    }

    /// Whether something may happen to the objects of this body.
    fn may_be_altered(&self) -> bool {
        self.is_success
            && self.active().iter().any(|active| matches!(active.fault.effect, Effect::Alter(_)))
    }

    /// Lets every fault change what is to be sent: a whole list, or whole events. Also says whether
    /// the body ends with that.
    fn alter(&mut self, mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
        for active in self.active() {
            let Effect::Alter(alteration) = &active.fault.effect else { continue };
            let (verb, media) = (self.asked.verb, self.media);
            let strikes = |name: &str| {
                let again = !(alteration.is_single() && self.has_counted(&active));
                again && active.fault.is_for_object(name) && self.is_hit(&active)
            };
            let altered = match verb {
                Verb::List => alteration.list(bytes, media, strikes),
                Verb::Watch => alteration.events(&bytes, media, strikes),
                _ => return (bytes, false),
            };
            if altered.ends {
                return (altered.bytes, true);
            }
            bytes = altered.bytes;
        }
        (bytes, false)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut watches = self.faults.0.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|open| open.id != self.id);
    }
}

impl Guarded {
    pub(crate) fn new(body: Body, open: OpenStream, gzip: bool) -> Self {
        Self {
            inner: body.into_chunks().fuse().boxed(),
            open,
            gzip: gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast())),
            sent: 0,
            pending: Bytes::new(),
            state: State::Running,
        }
    }

    /// The body as a stream.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
        futures_util::stream::unfold(self, |mut guarded| async move {
            let chunk = guarded.next().await?;
            Some((chunk, guarded))
        })
    }

    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        loop {
            let pace = self.open.pace();
            let mut allowed = usize::MAX;
            if let Some((bytes, stop, active)) = pace.limit.filter(|_| self.state == State::Running)
            {
                allowed = usize::try_from(bytes.saturating_sub(self.sent)).unwrap_or(usize::MAX);
                match stop {
                    _ if allowed > 0 => {}
                    Stop::Close => self.end(Bytes::new(), State::Ending),
                    Stop::Reset => self.end(Bytes::new(), State::Resetting),
                    // Nothing is held up before there is something to send.
                    Stop::Stall if self.pending.is_empty() => allowed = 1,
                    Stop::Stall => {
                        tokio::select! {
                            how = cut(&mut self.open.cut) => self.cut(how),
                            () = active.lifted.cancelled() => {}
                        }
                        continue;
                    }
                }
            }
            if self.pending.is_empty() {
                match self.state {
                    State::Running => {
                        if let Err(error) = self.fill().await {
                            self.state = State::Ended;
                            return Some(Err(error));
                        }
                        continue;
                    }
                    State::Ending | State::Ended => return None,
                    State::Resetting => {
                        // The connection writes out what it has before it comes back here.
                        tokio::task::yield_now().await;
                        self.state = State::Ended;
                        if let Some(reset) = &self.open.reset {
                            reset.cancel();
                        }
                        return Some(Err(BodyError));
                    }
                }
            }
            if let Some((bytes, every, active)) = pace.drip {
                tokio::select! {
                    how = cut(&mut self.open.cut) => {
                        self.cut(how);
                        continue;
                    }
                    () = active.lifted.cancelled() => {}
                    () = tokio::time::sleep(every) => {}
                }
                allowed = allowed.min(usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            let chunk = self.pending.split_to(allowed.min(self.pending.len()));
            self.sent += chunk.len() as u64;
            return Some(Ok(chunk));
        }
    }

    /// Reads more, as it is to be sent.
    async fn fill(&mut self) -> Result<(), BodyError> {
        let read = tokio::select! {
            biased;
            how = cut(&mut self.open.cut) => {
                self.cut(how);
                return Ok(());
            }
            read = self.inner.next() => read,
        };
        let Some(chunk) = read.transpose()? else {
            self.end(Bytes::new(), State::Ending);
            return Ok(());
        };
        if !self.open.may_be_altered() {
            self.pending = self.encode(chunk);
            return Ok(());
        }
        let mut bytes = chunk.to_vec();
        if self.open.asked.verb == Verb::List && self.sent == 0 {
            while let Some(chunk) = self.inner.next().await {
                bytes.extend_from_slice(&chunk?);
            }
        }
        let (bytes, ends) = self.open.alter(bytes);
        if ends {
            self.end(bytes.into(), State::Ending);
        } else {
            self.pending = self.encode(bytes.into());
        }
        Ok(())
    }

    /// Lets this be the last of the body.
    fn end(&mut self, last: Bytes, state: State) {
        self.state = state;
        self.pending = self.encode(last);
        if let (State::Ending, Some(gzip)) = (state, self.gzip.take()) {
            let trailer = gzip.finish().unwrap_or_default();
            self.pending = [&self.pending[..], &trailer].concat().into();
        }
    }

    fn cut(&mut self, how: Cut) {
        let media = self.open.media;
        let half = match media {
            MediaType::Json => HALF_A_LINE,
            MediaType::Protobuf => HALF_A_FRAME,
        };
        match how {
            Cut::Close => self.end(Bytes::new(), State::Ending),
            Cut::Reset => self.end(Bytes::from_static(half), State::Resetting),
            Cut::Expired => {
                self.end(
                    error_event(&Status::expired("too old resource version"), media),
                    State::Ending,
                );
            }
        }
    }

    /// Compresses, if that is wanted, so that all of it can be read at once.
    fn encode(&mut self, chunk: Bytes) -> Bytes {
        let Some(gzip) = &mut self.gzip else { return chunk };
        // Writing into memory does not fail.
        let _ = gzip.write_all(&chunk).and_then(|()| gzip.flush());
        std::mem::take(gzip.get_mut()).into()
    }
}

/// Waits to be cut, for ever if that cannot happen.
async fn cut(receiver: &mut Option<oneshot::Receiver<Cut>>) -> Cut {
    if let Some(open) = receiver {
        let how = open.await;
        *receiver = None;
        if let Ok(how) = how {
            return how;
        }
    }
    std::future::pending().await
}
