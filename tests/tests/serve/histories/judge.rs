//! Whether what passed on both sides of the replicas keeps the promises of `serve` about versions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use informer_tests::reverse_proxy::Asked;
use informer_tests::tap::{Event, Frame, Note, Query, RequestId, Side, What};
use tokio::time::Instant;

use super::clients::{is_client_go, is_of_client};

/// client-go lists again after a watch that was shorter than this and brought it nothing, whatever
/// was on its way.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// What a client has not read when its connection breaks is no older than this.
const IN_FLIGHT: Duration = Duration::from_millis(500);

/// The client of the test's own reads. It lists whenever it likes.
pub(crate) const READER: &str = "reader";

/// What has been in the way of the clients, so that a test can tell whether it shows anything.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// Upstream lists that closed a gap in which something had happened.
    pub(crate) gaps: usize,
    /// Upstream lists that showed another history.
    pub(crate) changed_histories: usize,
    /// Watches that went on from a version.
    pub(crate) resumed: usize,
    /// Those that asked a replica which had not reached it.
    pub(crate) ahead: usize,
    /// Watches that ended with 410.
    pub(crate) gone: usize,
    /// Lists and streaming lists of clients.
    pub(crate) lists: usize,
    /// Deletions told at the version before a gap.
    pub(crate) late_deletions: usize,
}

/// Judges what has happened.
///
/// # Errors
///
/// What was wrong, in words.
pub(crate) fn judge(notes: &[Note]) -> Result<Seen, String> {
    let mut judge = Judge::default();
    for note in notes {
        match note.side {
            Side::Upstream => judge.upstream(note),
            Side::Downstream => judge.downstream(note),
        }
    }
    if judge.faults.is_empty() { Ok(judge.seen) } else { Err(judge.faults.join("\n")) }
}

#[derive(Default)]
struct Judge {
    replicas: HashMap<String, Replica>,
    clients: BTreeMap<String, Client>,
    requests: HashMap<RequestId, Request>,
    /// The API server goes back in time from here on.
    is_restored: bool,
    seen: Seen,
    faults: Vec<String>,
}

/// What a replica was told by its API server.
#[derive(Default)]
struct Replica {
    /// The version of its first list: its log begins there.
    begin: Option<u64>,
    position: u64,
    /// What it missed: the versions before and after.
    gaps: Vec<(u64, u64)>,
    /// The versions at which it may tell of deletions that it missed.
    before_gaps: BTreeSet<u64>,
    /// Where its last watch began.
    watched_from: u64,
    /// How often its API server's history was replaced.
    epoch: usize,
    /// The highest version that it has named to a client.
    named: u64,
}

#[derive(Default)]
struct Client {
    /// It has a complete list, and nothing has taken it away.
    listed: Option<Instant>,
    last_watch: Option<RequestId>,
}

struct Request {
    query: Query,
    at: Instant,
    code: Option<u16>,
    /// The version up to which it was told everything; none during initial events.
    position: Option<u64>,
    /// The epoch of its replica when it was opened.
    epoch: usize,
    /// What its answer must have reached.
    at_least: u64,
    ended: Option<Instant>,
}

impl Judge {
    fn upstream(&mut self, note: &Note) {
        let replica = self.replicas.entry(note.target.clone()).or_default();
        match &note.what {
            // What is passed on of a client is not what the replica follows.
            What::Asked { request, query }
                if query.path == "/api/v1/pods" && !is_of_client(&query.agent) =>
            {
                let is_watch = query.asked == Asked::Watch;
                if is_watch {
                    replica.watched_from = query.version.unwrap_or_default();
                }
                let position = query.version.filter(|_| is_watch);
                self.requests.insert(*request, Request::new(query, note.at, position, 0, 0));
            }
            What::Listed { request, version } => {
                let Some(request) = self.requests.get(request) else { return };
                replica.listed(request, *version, &mut self.seen);
            }
            What::Frame { request, frame } => {
                let Some(request) = self.requests.get_mut(request) else { return };
                match (frame.event, request.position) {
                    (Event::Error, _) => {}
                    (Event::InitialEventsEnd, None) => {
                        request.position = Some(frame.version);
                        replica.listed(request, frame.version, &mut self.seen);
                    }
                    (_, None) => {}
                    (_, Some(_)) => replica.position = replica.position.max(frame.version),
                }
            }
            _ => {}
        }
    }

    fn downstream(&mut self, note: &Note) {
        match &note.what {
            What::Asked { request, query } if query.path.ends_with("/pods") => {
                self.asked(note, *request, query);
            }
            What::Answered { request, code } => {
                let Some(asked) = self.requests.get_mut(request) else { return };
                asked.code = Some(*code);
                if *code == 410 && asked.query.asked == Asked::Watch {
                    self.gone(note, *request);
                }
            }
            What::Listed { request, version } => self.listed(note, *request, *version),
            What::Frame { request, frame } => self.frame(note, *request, frame),
            What::Ended { request } => {
                if let Some(asked) = self.requests.get_mut(request) {
                    asked.ended = Some(note.at);
                }
            }
            What::Cut => {
                for client in self.clients.values_mut() {
                    // It may not have read the end of its list.
                    client.listed = client.listed.filter(|at| note.at - *at > IN_FLIGHT);
                }
            }
            What::Reached(what) => self.is_restored |= what == super::RESTORED,
            What::Asked { .. } => {}
        }
    }

    fn asked(&mut self, note: &Note, id: RequestId, query: &Query) {
        let replica = self.replicas.entry(note.target.clone()).or_default();
        let client = self.clients.entry(query.agent.clone()).or_default();
        let is_watch = query.asked == Asked::Watch;
        if is_watch {
            client.last_watch = Some(id);
            self.seen.resumed += 1;
            self.seen.ahead += usize::from(query.version.is_some_and(|it| it > replica.position));
        } else if query.agent != READER {
            self.seen.lists += 1;
            let last_watch = client.last_watch.and_then(|id| self.requests.get(&id));
            let is_excused = self.is_restored
                || is_client_go(&query.agent) && last_watch.is_none_or(Request::has_failed);
            if client.listed.is_some() && !is_excused {
                let (replica, query) = (&note.target, &query);
                self.faults.push(format!("lists although it need not, at {replica}: {query:?}"));
            }
        }
        let at_least = match query.version {
            Some(version) => version,
            None => replica.named,
        };
        let position = query.version.filter(|_| is_watch);
        let request = Request::new(query, note.at, position, replica.epoch, at_least);
        self.requests.insert(id, request);
    }

    /// A list, or the initial events of a streaming list, ended at a version.
    fn listed(&mut self, note: &Note, id: RequestId, version: u64) {
        let Some(asked) = self.requests.get_mut(&id) else { return };
        let replica = self.replicas.entry(note.target.clone()).or_default();
        if version < asked.at_least && !self.is_restored {
            let (target, at_least) = (&note.target, asked.at_least);
            self.faults.push(format!(
                "a list goes back in time: {target} answers {version}, less than {at_least}, to {:?}",
                asked.query
            ));
        }
        replica.named = replica.named.max(version);
        asked.position = Some(version);
        let client = self.clients.entry(asked.query.agent.clone()).or_default();
        client.listed = Some(note.at);
        if asked.query.asked == Asked::StreamingList {
            client.last_watch = Some(id);
        }
    }

    fn frame(&mut self, note: &Note, id: RequestId, frame: &Frame) {
        let Some(asked) = self.requests.get_mut(&id) else { return };
        let replica = self.replicas.entry(note.target.clone()).or_default();
        let Some(position) = asked.position else {
            match frame.event {
                Event::InitialEventsEnd => self.listed(note, id, frame.version),
                Event::Added
                | Event::Modified
                | Event::Deleted
                | Event::Bookmark
                | Event::Error => {}
            }
            return;
        };
        let mut fault = None;
        match frame.event {
            Event::Error => {
                if matches!(&*frame.reason, "Expired" | "Gone") {
                    self.gone(note, id);
                }
                return;
            }
            Event::Bookmark | Event::InitialEventsEnd if frame.version >= position => {}
            Event::Deleted
                if frame.version == position && replica.before_gaps.contains(&position) =>
            {
                self.seen.late_deletions += 1;
            }
            Event::Added | Event::Modified | Event::Deleted if frame.version > position => {}
            _ => fault = Some("goes back in time"),
        }
        if asked.epoch != replica.epoch && frame.event != Event::Bookmark {
            fault = Some("goes on after its history was replaced");
        }
        if let Some(fault) = fault {
            let (target, query) = (&note.target, &asked.query);
            self.faults.push(format!(
                "a watch {fault}: {target} tells one at {position} of {frame:?}: {query:?}"
            ));
        }
        asked.position = Some(position.max(frame.version));
        replica.named = replica.named.max(frame.version);
    }

    /// A watch ended with 410.
    fn gone(&mut self, note: &Note, id: RequestId) {
        let Some(asked) = self.requests.get(&id) else { return };
        let replica = self.replicas.entry(note.target.clone()).or_default();
        self.seen.gone += 1;
        let position = asked.position.unwrap_or_default();
        let is_inside = |(before, after): &(u64, u64)| *before < position && position < *after;
        let is_due = self.is_restored
            || asked.epoch != replica.epoch
            || replica.begin.is_none_or(|begin| position < begin)
            || replica.gaps.iter().any(is_inside);
        if !is_due {
            let (target, gaps) = (&note.target, &replica.gaps);
            self.faults.push(format!(
                "410 without need: {target}, which missed {gaps:?}, to one at {position}: {:?}",
                asked.query
            ));
        }
        if let Some(client) = self.clients.get_mut(&asked.query.agent) {
            client.listed = None;
        }
    }
}

impl Replica {
    fn listed(&mut self, request: &Request, version: u64, seen: &mut Seen) {
        let position = std::mem::replace(&mut self.position, version);
        if self.begin.is_none() {
            self.begin = Some(version);
        } else if version < position {
            seen.changed_histories += 1;
            self.epoch += 1;
            (self.begin, self.named) = (Some(version), 0);
            self.gaps.clear();
            self.before_gaps.clear();
        } else {
            // A list after a failed watch names the version that it had; of another one it is only
            // known that it was no less than that at which the watch began.
            let named = request.query.version.filter(|it| *it > 0);
            let before = named.unwrap_or(self.watched_from).min(position);
            self.gaps.push((before, version));
            self.before_gaps.extend([before, position]);
            seen.gaps += usize::from(before < version);
        }
    }
}

impl Request {
    fn new(query: &Query, at: Instant, position: Option<u64>, epoch: usize, at_least: u64) -> Self {
        let query = query.clone();
        Self { query, at, code: None, position, epoch, at_least, ended: None }
    }

    /// Whether client-go takes the end of this watch for a failure, and lists.
    fn has_failed(&self) -> bool {
        self.code != Some(200) || self.ended.is_some_and(|end| end - self.at < VERY_SHORT)
    }
}
