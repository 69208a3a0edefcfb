//! What shall go wrong, and for which requests.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use k8s_serve::page::expired_page;
use k8s_serve::{ResourcePath, Status, Verb};

use crate::accept::names_protobuf;
use crate::pages::Pages;
use crate::requests::names;

/// What shall go wrong, and for which requests; see [`Faults::inject`](crate::Faults::inject), and
/// [`Faults`](crate::Faults) for a table of all of them.
///
/// A fault is an effect, narrowed down: to requests with a [verb](Self::on), about a
/// [resource](Self::resource), for the n-th [page](Self::page) of a list, for
/// [streaming lists](Self::streaming_lists); what changes objects, to one [object](Self::object).
/// It lasts until it is lifted or has hit so many [times](Self::times).
///
/// # Examples
/// The third page of every list has expired; the ConfigMap `settings` comes in a form that no
/// client reads:
/// ```
/// use informer_testkit::{Fault, Verb};
///
/// let expired = Fault::expired().on(Verb::List).page(3);
/// let broken = Fault::undecodable("settings").resource("configmaps");
/// ```
#[derive(Debug, Clone)]
pub struct Fault {
    pub(super) effect: Effect,
    pub(super) times: Option<u64>,
    verb: Option<Verb>,
    resource: Option<String>,
    page: Option<u64>,
    streaming: bool,
    protobuf: bool,
    object: Option<String>,
    pub(super) after_serving: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Effect {
    Answer(Status),
    Expired,
    TooLargeVersion,
    Stall,
    HangUp,
    Gzip,
    WithoutProtobuf,
    MovePages,
    /// What happens after so many bytes of a body.
    Stop(u64, Stop),
    Drip {
        bytes: u64,
        every: Duration,
    },
    Alter(Alteration),
}

/// How a body stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It goes on when the fault is lifted.
    Stall,
    Close,
    Reset,
}

/// What happens to the objects in a body.
#[derive(Debug, Clone)]
pub(super) enum Alteration {
    /// Half of one, then the end.
    Truncate,
    /// One is neither JSON nor protobuf.
    Corrupt,
    /// One has at least so many bytes.
    Oversized(usize),
    /// This instead of one event, or of the whole list.
    Instead(Arc<str>),
    /// The fields beside the metadata have other types, or encodings of such.
    Undecodable,
    /// Everything twice.
    Duplicate,
    /// The end of a streaming list is not told.
    WithoutEndBookmark,
}

/// A request, as far as faults are chosen by it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) verb: Verb,
    pub(crate) path: Option<ResourcePath>,
    /// Of a list: which page, from 1.
    page: Option<u64>,
    /// A watch that begins with a list.
    streaming: bool,
    /// Protobuf is among the accepted.
    protobuf: bool,
    version: u64,
    token: Option<String>,
}

impl Fault {
    /// 429 without a `Retry-After`, as if the server had too much to do.
    #[must_use]
    pub fn too_many_requests() -> Self {
        Self::answer(Status::new(
            429,
            "TooManyRequests",
            "too many requests, please try again later",
        ))
    }

    /// 500, as if something had broken within the server.
    #[must_use]
    pub fn internal_error() -> Self {
        Self::answer(Status::new(
            500,
            "InternalError",
            "an error on the server has prevented the request",
        ))
    }

    /// 503, as if the server was starting or about to end.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::answer(Status::new(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle it",
        ))
    }

    /// 404, as if the server did not know the resource; discovery, which is another request, still
    /// has it.
    #[must_use]
    pub fn not_found() -> Self {
        Self::answer(Status::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        ))
    }

    /// Any failure as the answer.
    #[must_use]
    pub fn answer(status: Status) -> Self {
        Self::new(Effect::Answer(status))
    }

    /// 410, whatever the version: for a watch as an error event after a 200, as a real server does;
    /// for anything else as the answer, for a page of a list with the token that continues
    /// inconsistently. (A watch answered 410 outright: [`Fault::answer`] of [`Status::expired`];
    /// one that is open already: [`Cut::Expired`](crate::Cut::Expired).)
    #[must_use]
    pub fn expired() -> Self {
        Self::new(Effect::Expired)
    }

    /// 504, as if the version asked for was larger than the newest: what a server says that has
    /// lost its latest changes, or lags behind.
    #[must_use]
    pub fn too_large_version() -> Self {
        Self::new(Effect::TooLargeVersion)
    }

    /// Streaming lists are refused with 422, as servers do that can, but may not.
    #[must_use]
    pub fn streaming_lists_refused() -> Self {
        Self::answer(Status::streaming_lists_refused()).streaming_lists()
    }

    /// Requests are accepted and not answered, until the fault is lifted.
    #[must_use]
    pub fn stall() -> Self {
        Self::new(Effect::Stall)
    }

    /// The connection is reset instead of an answer.
    #[must_use]
    pub fn hang_up() -> Self {
        Self::new(Effect::HangUp)
    }

    /// Answers stop after so many bytes of their body, until the fault is lifted. Answers that are
    /// already being sent, open watches above all, count what they have sent: with 0 they stop at
    /// once.
    #[must_use]
    pub fn stall_after(bytes: u64) -> Self {
        Self::new(Effect::Stop(bytes, Stop::Stall))
    }

    /// Answers end cleanly after so many bytes of their body, as if that was all: with 0 a watch is
    /// closed as soon as it is open. Open watches end when they have something to send.
    #[must_use]
    pub fn close_after(bytes: u64) -> Self {
        Self::new(Effect::Stop(bytes, Stop::Close))
    }

    /// The connection is reset after so many bytes of a body. That of an open watch is when it has
    /// something to send.
    #[must_use]
    pub fn reset_after(bytes: u64) -> Self {
        Self::new(Effect::Stop(bytes, Stop::Reset))
    }

    /// Bodies come in pieces of at most so many bytes, with a pause before each of them.
    #[must_use]
    pub fn drip(bytes: u64, every: Duration) -> Self {
        Self::new(Effect::Drip { bytes: bytes.max(1), every })
    }

    /// Bodies are compressed, though nobody asked for it: what proxies do that mean well.
    #[must_use]
    pub fn gzip() -> Self {
        Self::new(Effect::Gzip)
    }

    /// Later pages of a list show the newest state, at its version, instead of that of the first
    /// page: what a server does that has forgotten that one and goes on all the same.
    #[must_use]
    pub fn moving_pages() -> Self {
        Self::new(Effect::MovePages).on(Verb::List)
    }

    /// Requests are answered as by a server that does not know protobuf, whatever the others do:
    /// behind one address there may be servers of different age. See
    /// [`ProtobufSupport`](crate::ProtobufSupport) for a whole server.
    #[must_use]
    pub fn without_protobuf() -> Self {
        Self::new(Effect::WithoutProtobuf).accepting_protobuf()
    }

    /// A list ends cleanly in the middle of an item, a watch in the middle of its next event.
    #[must_use]
    pub fn truncated() -> Self {
        Self::new(Effect::Alter(Alteration::Truncate))
    }

    /// One item of a list, or the next event of a watch, is neither JSON nor protobuf. What follows
    /// is as it should be.
    #[must_use]
    pub fn malformed() -> Self {
        Self::new(Effect::Alter(Alteration::Corrupt))
    }

    /// One item of a list, or the object of the next event of a watch, has at least so many bytes:
    /// it is padded with a field that no kind has.
    #[must_use]
    pub fn oversized(bytes: usize) -> Self {
        Self::new(Effect::Alter(Alteration::Oversized(bytes)))
    }

    /// This text comes instead of a list, or of the next event of a watch: the login page of a
    /// proxy, or events and lists that the cluster never had. An event ends with a line break. The
    /// text comes as it is: to who reads protobuf, it is none.
    #[must_use]
    pub fn instead(text: &str) -> Self {
        Self::new(Effect::Alter(Alteration::Instead(text.into())))
    }

    /// The object with this name cannot be decoded by typed clients, wherever it comes: in lists,
    /// in ADDED, MODIFIED and DELETED events. Its metadata are whole; every other field has a value
    /// of another type, in protobuf another encoding (if it has no other field, something in its
    /// metadata does that is not its identity).
    #[must_use]
    pub fn undecodable(name: &str) -> Self {
        Self::new(Effect::Alter(Alteration::Undecodable)).object(name)
    }

    /// Lists have every item twice, first all of them once; watches send every event twice in a
    /// row.
    #[must_use]
    pub fn duplicates() -> Self {
        Self::new(Effect::Alter(Alteration::Duplicate))
    }

    /// Streaming lists do not tell their end, and go on as if they had.
    #[must_use]
    pub fn without_end_bookmark() -> Self {
        Self::new(Effect::Alter(Alteration::WithoutEndBookmark))
    }

    /// The request is served first, and the fault hits its answer: a write is applied, and the
    /// client does not hear of it ([`hang_up`](Self::hang_up)), late ([`stall`](Self::stall)) or
    /// something else ([`answer`](Self::answer)). Faults of bodies ignore it.
    #[must_use]
    pub fn after_serving(mut self) -> Self {
        self.after_serving = true;
        self
    }

    /// Adds a `Retry-After` to the answer, in seconds. Faults that are no [answer](Self::answer)
    /// ignore it.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Effect::Answer(status) = &mut self.effect {
            status.details.retry_after_seconds = seconds;
        }
        self
    }

    /// Hits only requests with this verb.
    #[must_use]
    pub fn on(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Hits only requests about this resource: `pods` or `deployments.apps`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Hits only requests for the n-th page of a list, counted from 1. A list that is not paged is
    /// its own first page.
    #[must_use]
    pub fn page(mut self, number: u64) -> Self {
        self.page = Some(number);
        self
    }

    /// Hits only streaming lists: watches that ask for `sendInitialEvents`.
    #[must_use]
    pub fn streaming_lists(mut self) -> Self {
        self.streaming = true;
        self
    }

    /// Hits only requests that accept protobuf, as their first choice or not.
    #[must_use]
    pub fn accepting_protobuf(mut self) -> Self {
        self.protobuf = true;
        self
    }

    /// Where something happens to an item or an event, it happens only to those of objects with
    /// this name.
    #[must_use]
    pub fn object(mut self, name: &str) -> Self {
        self.object = Some(name.to_owned());
        self
    }

    /// Hits only so many requests. Default: all, until it is lifted. What changes a body counts
    /// when it does.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    fn new(effect: Effect) -> Self {
        Self {
            effect,
            times: None,
            verb: None,
            resource: None,
            page: None,
            streaming: false,
            protobuf: false,
            object: None,
            after_serving: false,
        }
    }

    pub(super) fn is_for(&self, asked: &Asked) -> bool {
        let resource = |own: &String| asked.path.as_ref().is_some_and(|path| names(path, own));
        self.verb.is_none_or(|own| own == asked.verb)
            && self.resource.as_ref().is_none_or(resource)
            && self.page.is_none_or(|own| asked.page == Some(own))
            && (!self.streaming || asked.streaming)
            && (!self.protobuf || asked.protobuf)
    }

    /// Whether it is for the object with this name.
    pub(super) fn is_for_object(&self, name: &str) -> bool {
        self.object.as_ref().is_none_or(|own| own == name)
    }
}

impl Effect {
    /// Whether it says what is to be done with a request.
    pub(super) fn is_verdict(&self) -> bool {
        !self.is_in_body() && !matches!(self, Self::Gzip | Self::WithoutProtobuf | Self::MovePages)
    }

    /// Whether it happens to a body that is being sent, rather than to the request.
    pub(super) fn is_in_body(&self) -> bool {
        matches!(self, Self::Stop(..) | Self::Drip { .. } | Self::Alter(_))
    }
}

impl Asked {
    pub(crate) fn new(
        verb: Verb,
        path: Option<&ResourcePath>,
        parts: &Parts,
        pages: &Pages,
    ) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        let parameter = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let token = parameter("continue").filter(|token| !token.is_empty());
        let page = token.as_ref().map_or(Some(1), |token| pages.of(token));
        let streaming =
            parameter("sendInitialEvents").is_some_and(|value| !matches!(&*value, "false" | "0"));
        Self {
            verb,
            path: path.cloned(),
            page: page.filter(|_| verb == Verb::List),
            streaming: streaming && verb == Verb::Watch,
            protobuf: names_protobuf(&parts.headers),
            version: parameter("resourceVersion")
                .and_then(|version| version.parse().ok())
                .unwrap_or(1),
            token,
        }
    }

    /// Which page of a list it is for, counted from 1.
    pub(crate) fn page(&self) -> Option<u64> {
        self.page
    }

    /// Whether it is for a page behind the first one.
    pub(super) fn continues(&self) -> bool {
        self.token.is_some()
    }

    /// What a server says that no longer knows the version.
    pub(super) fn expired(&self) -> Status {
        let page = self.token.as_deref().and_then(expired_page);
        page.unwrap_or_else(|| Status::expired("too old resource version"))
    }

    /// What a server says that has not come as far as was asked for.
    pub(super) fn too_large_version(&self) -> Status {
        Status::too_large_version(self.version, self.version.saturating_sub(1))
    }
}
