//! Changes of one, some or all collections, field by field, as lines of JSON.
//!
//! | `type` | says |
//! |---|---|
//! | `hello` | the run of the endpoint, and of which resources changes follow |
//! | `change` | one change |
//! | `at` | the versions up to which all matching changes were sent: a reader that reconnects sends them back in `after=` |
//! | `gap` | changes of a resource were missed: the log no longer has them |
//! | `refused` | no more changes of a resource follow: the caller has lost the right to watch it |

mod adding;
mod feed;
mod line;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, select_all};
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use informer::Resource;
use jiff::Timestamp;
use k8s_serve::Status;
use serde_json::json;
use tokio::time::Instant;

use self::feed::{Event, Feed, Taken, Told};
use super::query::ChangesQuery;
use crate::access::{Asker, Refused};
use crate::audit::{About, Audited};
use crate::endpoint::Endpoint;
use crate::guard::refuse;
use crate::per_user::{Lasting, Lasts};
use crate::refusal::Refusal;

/// Minimum time between two chunks, so that a burst is sent in few chunks.
const GATHER: Duration = Duration::from_millis(50);
/// Interval of keep-alive lines, by which a reader tells silence from a lost connection, and of the
/// search for new collections.
const TICK: Duration = Duration::from_secs(5);
/// Pause before a resource that could not be added is tried again.
const ADD_AGAIN: Duration = Duration::from_secs(60);
/// Interval at which credentials are reviewed again in a stream without feeds, which has no
/// permission whose review would do it.
const REVIEW: Duration = Duration::from_secs(45);
/// Approximate number of changes compared for one chunk, before other tasks have their turn.
const MOST_AT_ONCE: usize = 64;
/// Approximate length of a chunk of past changes, in bytes.
const MOST_BYTES: usize = 256 << 10;

/// Answers with the changes that the caller may watch.
pub(crate) async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let Some(asker) = request.extensions().get::<Asker>().cloned() else {
        return Refusal::unguarded().into_response();
    };
    let query = match ChangesQuery::parse(request.uri().query().unwrap_or_default()) {
        Ok(query) => query,
        Err(refusal) => return refusal.into_response(),
    };
    let about = request.extensions().get::<About>().cloned().unwrap_or_default();
    let audited = Audited::about(&request, about.clone());
    let mut stream = Changes::new(endpoint, asker, query, audited);
    match stream.open(&about).await {
        Ok(first) => stream.into_response(first),
        Err(No::Refused(refused)) => refuse(&refused, request.headers()),
        Err(No::Refusal(refusal)) => refusal.into_response(),
    }
}

/// Why there are no changes.
enum No {
    Refused(Refused),
    Refusal(Refusal),
}

/// An answer as it is sent.
struct Changes {
    endpoint: Endpoint,
    asker: Asker,
    query: ChangesQuery,
    feeds: Vec<Feed>,
    /// Past changes that are not yet sent, in the order of time.
    past: VecDeque<OfResource>,
    audited: Audited,
    /// Counts the stream as a watch of its user, where callers are known.
    counted: Option<Lasting>,
    /// When a resource that could not be added, or was lost, is tried again.
    again: HashMap<Resource, Instant>,
    /// When the credentials were last known to be accepted.
    authenticated: Instant,
    /// Whether the credentials are refused: nothing more follows.
    is_over: bool,
    /// Index of the feed that is read first; rotates.
    turn: usize,
    sent: Instant,
    tick: Instant,
    stopped: BoxFuture<'static, ()>,
}

/// What the stream waits for.
enum Woken {
    Stopped,
    Lost(Resource, Box<Status>),
    /// There are past changes.
    Past,
    Ready,
    Tick,
}

impl Changes {
    fn new(endpoint: Endpoint, asker: Asker, query: ChangesQuery, audited: Audited) -> Self {
        let stopping = endpoint.inner.stopping.clone();
        let stopped = async move {
            stopping.token.cancelled().await;
            tokio::time::sleep(stopping.spread.mul_f64(fastrand::f64())).await;
        };
        let now = Instant::now();
        Self {
            endpoint,
            asker,
            query,
            feeds: Vec::new(),
            past: VecDeque::new(),
            audited,
            counted: None,
            again: HashMap::new(),
            authenticated: now,
            is_over: false,
            turn: 0,
            sent: now,
            tick: now + TICK,
            stopped: stopped.boxed(),
        }
    }

    /// Adds all requested resources and returns the first lines.
    async fn open(&mut self, about: &About) -> Result<Vec<u8>, No> {
        if self.asker.is_reviewed() {
            let counted = self.endpoint.inner.per_user.open(&self.asker.caller().user);
            self.counted = Some(counted.map_err(No::Refusal)?);
        }
        let told = match self.query.resources.is_empty() {
            true => {
                let (told, all) = self.add_new().await;
                all.map_err(No::Refused)?;
                // Without any, the line is about the path.
                if !self.feeds.is_empty() {
                    about.set(self.feeds.iter().map(|it| it.reviewed.clone()).collect::<Vec<_>>());
                }
                told
            }
            false => self.add_named(about).await?,
        };
        let mut out = Vec::new();
        let resources = self.feeds.iter().map(|it| super::collections::named(&it.resource));
        let resources = Vec::from_iter(resources);
        let run = &self.endpoint.inner.run.id;
        line::write(&mut out, &json!({"type": "hello", "run": run, "resources": resources}));
        self.tell(&mut out, told);
        Ok(out)
    }

    /// Writes the gaps and past changes of feeds that were just opened.
    fn tell(&mut self, out: &mut Vec<u8>, told: Vec<Told>) {
        let mut last = Vec::new();
        for Told { resource, has_gap, changes } in told {
            if has_gap {
                line::write(out, &line::gap(&resource));
            }
            last.extend(changes.into_iter().map(|it| (resource.clone(), it)));
        }
        last.sort_by_key(received);
        let skipped = last.len().saturating_sub(self.query.last);
        self.past.extend(last.drain(skipped..));
        self.tell_past(out);
    }

    /// Writes the next part of the past changes: comparing all at once would block the thread. The
    /// versions from which a reader resumes follow after the last part.
    fn tell_past(&mut self, out: &mut Vec<u8>) {
        for _ in 0..MOST_AT_ONCE {
            if out.len() >= MOST_BYTES {
                break;
            }
            let Some((resource, (event, logged))) = self.past.pop_front() else { break };
            line::change(out, &resource, event, &logged, true);
        }
        if self.past.is_empty() {
            self.write_at(out);
        }
    }

    fn into_response(self, first: Vec<u8>) -> Response {
        let ends = self.query.ends;
        let state = (Some(first), self);
        let chunks = stream::unfold(state, move |(first, mut changes)| async move {
            let chunk = match first {
                Some(first) => first,
                None if ends && changes.past.is_empty() => return None,
                None => changes.next().await?,
            };
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(chunk)), (None, changes)))
        });
        let headers = [
            (CONTENT_TYPE, "application/x-ndjson"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
            // Proxies must not buffer the stream.
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (Extension(Lasts), headers, Body::from_stream(chunks)).into_response()
    }

    /// The next lines; `None` ends the stream.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while out.is_empty() {
            let is_over = self.feeds.is_empty() && !self.query.resources.is_empty();
            if is_over || self.is_over {
                return None;
            }
            match self.woken().await {
                Woken::Stopped => return None,
                Woken::Lost(resource, status) => {
                    self.feeds.retain(|it| it.resource != resource);
                    self.past.retain(|(of, _)| *of != resource);
                    line::write(&mut out, &line::refused(&resource, &status));
                    self.is_over |= status.code == 401;
                    self.again.insert(resource, Instant::now() + ADD_AGAIN);
                }
                Woken::Past => self.tell_past(&mut out),
                Woken::Ready => self.take(&mut out),
                Woken::Tick => {
                    let told = self.ticked().await;
                    self.tell(&mut out, told);
                    self.tick = Instant::now() + TICK;
                }
            }
        }
        self.sent = Instant::now();
        Some(out)
    }

    /// Adds collections that are new, if the stream is about all collections.
    async fn ticked(&mut self) -> Vec<Told> {
        // Permissions are reviewed by themselves.
        let is_idle = self.feeds.is_empty() && self.authenticated.elapsed() >= REVIEW;
        let is_due = is_idle || !self.addable().is_empty();
        if !self.query.resources.is_empty() || !is_due {
            return Vec::new();
        }
        match self.authenticate().await {
            Ok(()) => {
                let (told, _) = self.add_new().await;
                self.audit(&told);
                told
            }
            Err(Refused::Unknown | Refused::Busy) => Vec::new(),
            Err(Refused::Unauthenticated | Refused::Forbidden(_)) => {
                self.is_over = true;
                Vec::new()
            }
        }
    }

    /// Writes a line for each feed that was added later.
    fn audit(&self, told: &[Told]) {
        let Some(log) = self.endpoint.inner.audit.get() else { return };
        let is_new = |feed: &&Feed| told.iter().any(|it| it.resource == feed.resource);
        for feed in self.feeds.iter().filter(is_new) {
            log.record_more(&self.audited, self.asker.caller(), &feed.reviewed);
        }
    }

    async fn woken(&mut self) -> Woken {
        // The pause is skipped while changes are left over from the last chunk. Otherwise the stream
        // would fall behind.
        let has_more = self.feeds.iter().any(Feed::has_more);
        let gathered = if has_more { self.sent } else { self.sent + GATHER };
        let (mut ready, mut lost) = (Vec::new(), Vec::new());
        for feed in &mut self.feeds {
            let waits = feed.waits();
            ready.push(waits.ready);
            lost.extend(waits.lost);
        }
        let ready = async {
            first(ready).await;
            tokio::time::sleep_until(gathered).await;
        };
        tokio::select! {
            biased;
            () = &mut self.stopped => Woken::Stopped,
            (resource, status) = first(lost) => Woken::Lost(resource, status),
            () = std::future::ready(()), if !self.past.is_empty() => Woken::Past,
            () = tokio::time::sleep_until(self.tick) => Woken::Tick,
            () = ready => Woken::Ready,
        }
    }

    /// Takes what there is, each feed in turn, and writes it in the order of time.
    fn take(&mut self, out: &mut Vec<u8>) {
        let count = self.feeds.len();
        let (mut changes, mut ended, mut has_gap) = (Vec::new(), Vec::new(), false);
        for step in 0..count {
            if changes.len() >= MOST_AT_ONCE {
                break;
            }
            let feed = &mut self.feeds[(self.turn + step) % count];
            // One call returns only a few changes if their objects are large.
            loop {
                match feed.take() {
                    Taken::Changes(events) => {
                        changes.extend(events.into_iter().map(|it| (feed.resource.clone(), it)));
                    }
                    Taken::Gap => {
                        has_gap = true;
                        line::write(out, &line::gap(&feed.resource));
                        break;
                    }
                    Taken::End => {
                        ended.push(feed.resource.clone());
                        break;
                    }
                }
                if changes.len() >= MOST_AT_ONCE || !feed.has_more() {
                    break;
                }
            }
        }
        self.turn = self.turn.wrapping_add(1);
        // A new collection of the resource may replace it.
        self.feeds.retain(|it| !ended.contains(&it.resource));
        if !changes.is_empty() || has_gap {
            write_in_order(out, changes);
            self.write_at(out);
        }
    }

    /// Writes the versions from which a reader resumes.
    fn write_at(&mut self, out: &mut Vec<u8>) {
        let versions = self.feeds.iter_mut().filter_map(|it| {
            let version = it.progress()?;
            Some((it.resource.to_string(), version.to_string().into()))
        });
        let versions: serde_json::Map<_, _> = versions.collect();
        line::write(out, &json!({"type": "at", "versions": versions}));
    }
}

/// A change of a resource.
type OfResource = (Resource, Event);

fn received((_, (_, logged)): &OfResource) -> Option<Timestamp> {
    line::received(logged.change())
}

/// Writes changes of several resources in the order in which they were received.
fn write_in_order(out: &mut Vec<u8>, mut changes: Vec<OfResource>) {
    // The sort is stable: changes of one resource keep their order.
    changes.sort_by_key(received);
    for (resource, (event, logged)) in &changes {
        line::change(out, resource, *event, logged, false);
    }
}

/// The output of the first future that is ready; pending if there are none.
async fn first<T>(futures: Vec<BoxFuture<'_, T>>) -> T {
    if futures.is_empty() {
        return std::future::pending().await;
    }
    select_all(futures).await.0
}
