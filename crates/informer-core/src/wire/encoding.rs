//! The supported encodings, and the readers of each.

use std::fmt;

use bytes::Bytes;
use k8s_protobuf::Kind;
use serde::de::DeserializeOwned;

use super::format::{Format, SplitList, SplitWatch};
use super::json::{self, Json, JsonListSplitter, JsonWatchSplitter};
use super::protobuf::{self, ProtobufListSplitter, ProtobufWatchSplitter};
use super::{DecodeError, FrameError, ListHead, ListPart, WatchFrame, Wire};

/// The encoding of a response body.
///
/// # Examples
/// ```
/// use informer_core::wire::MediaType;
///
/// let header = Some("application/json; charset=utf-8");
/// assert_eq!(MediaType::of_answer(header, None, &MediaType::ALL), Ok(MediaType::Json));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaType {
    /// `application/json`.
    Json,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl MediaType {
    /// All encodings.
    pub const ALL: [Self; 2] = [Self::Json, Self::Protobuf];

    /// The value in the headers `Accept` and `Content-Type`, without parameters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => json::MEDIA_TYPE,
            Self::Protobuf => protobuf::MEDIA_TYPE,
        }
    }

    /// The encoding of a `Content-Type` header, whatever its parameters; `None` if it is not
    /// supported.
    #[must_use]
    pub(super) fn parse(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default().trim();
        Self::ALL.into_iter().find(|known| name.eq_ignore_ascii_case(known.as_str()))
    }

    /// A splitter for the body of a list whose items may be `limit` bytes long.
    #[must_use]
    pub fn list_splitter(self, limit: usize) -> ListSplitter {
        ListSplitter(match self {
            Self::Json => Box::new(JsonListSplitter::new(limit)),
            Self::Protobuf => Box::new(ProtobufListSplitter::new(limit)),
        })
    }

    /// A splitter for the body of a watch whose frames may be `limit` bytes long.
    #[must_use]
    pub fn watch_splitter(self, limit: usize) -> WatchSplitter {
        WatchSplitter(match self {
            Self::Json => Box::new(JsonWatchSplitter::new(limit)),
            Self::Protobuf => Box::new(ProtobufWatchSplitter::new(limit)),
        })
    }

    /// Reads a body that is one object.
    ///
    /// # Errors
    /// If the body has no object, or one that cannot be read in this encoding. The object itself is
    /// not checked.
    pub fn object(self, body: &[u8]) -> Result<Wire<'_>, DecodeError> {
        match self {
            Self::Json => Ok(Wire::json(body)),
            Self::Protobuf => {
                let (kind, bytes) = protobuf::object(body)?;
                Ok(Wire { encoding: Encoding::Protobuf(kind), bytes })
            }
        }
    }
}

/// The usual name.
impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Protobuf => "protobuf",
        })
    }
}

/// Cuts the body of a list into its items, as its chunks arrive.
///
/// An item within one chunk is a slice of it. Other items are assembled in a buffer, which holds
/// one item at most. Unknown members of the list are skipped without being held.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use informer_core::wire::{ListPart, MediaType};
///
/// let mut splitter = MediaType::Json.list_splitter(1024);
/// let mut parts = Vec::new();
/// for chunk in [r#"{"kind":"PodList","items":[{"a":1},{"#, r#""b":2}],"metadata":{"resourceVersion":"7"}}"#] {
///     splitter.push(Bytes::from_static(chunk.as_bytes()), &mut parts)?;
/// }
/// let head = splitter.finish()?;
/// assert_eq!((head.kind.as_str(), head.resource_version.to_string().as_str()), ("PodList", "7"));
/// let [ListPart::Item(a), ListPart::Item(b)] = &parts[..] else { panic!("two items, and none too large") };
/// assert_eq!((&a.bytes[..], &b.bytes[..]), (&br#"{"a":1}"#[..], &br#"{"b":2}"#[..]));
/// # Ok::<(), informer_core::wire::FrameError>(())
/// ```
#[derive(Debug)]
pub struct ListSplitter(Box<dyn SplitList>);

impl ListSplitter {
    /// Takes the next chunk and appends the items that it completes to `out`.
    ///
    /// # Errors
    /// If the body is malformed, of a kind that cannot be read in this encoding, or anything but an
    /// item is too large. Earlier items are in `out`; the splitter returns the same error from then
    /// on.
    pub fn push(&mut self, chunk: Bytes, out: &mut Vec<ListPart>) -> Result<(), FrameError> {
        self.0.push(chunk, out)
    }

    /// Ends the body and returns the list's own fields.
    ///
    /// # Errors
    /// If the body is incomplete or not a list, or an earlier [`push`](Self::push) failed.
    pub fn finish(self) -> Result<ListHead, FrameError> {
        let head = self.0.finish()?;
        match head.kind.ends_with("List") {
            true => Ok(head),
            false => Err(FrameError::not_a_list(&head.kind)),
        }
    }
}

/// Cuts the body of a watch into frames, as its chunks arrive.
///
/// An object within one chunk is a slice of it. Other frames are assembled in a buffer, which holds
/// one frame at most. Objects are not checked here.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use informer_core::wire::{MediaType, WatchEventType};
///
/// let mut splitter = MediaType::Json.watch_splitter(1024);
/// let mut frames = Vec::new();
/// splitter.push(Bytes::from_static(br#"{"type":"ADDED","object":{}}{"ty"#), &mut frames)?;
/// splitter.push(Bytes::from_static(b"pe\":\"DELETED\",\"object\":{}}\n"), &mut frames)?;
/// splitter.finish()?;
/// let kinds = frames.iter().map(|frame| frame.kind).collect::<Vec<_>>();
/// assert_eq!(kinds, [WatchEventType::Added, WatchEventType::Deleted]);
/// # Ok::<(), informer_core::wire::FrameError>(())
/// ```
#[derive(Debug)]
pub struct WatchSplitter(Box<dyn SplitWatch>);

impl WatchSplitter {
    /// Takes the next chunk and appends the frames that it completes to `out`.
    ///
    /// # Errors
    /// If a frame is malformed, too large, or of a type or kind that cannot be read. Earlier frames
    /// are in `out`; the splitter returns the same error from then on.
    pub fn push(&mut self, chunk: Bytes, out: &mut Vec<WatchFrame>) -> Result<(), FrameError> {
        self.0.push(chunk, out)
    }

    /// Ends the body.
    ///
    /// # Errors
    /// If it ended within a frame, or an earlier [`push`](Self::push) failed.
    pub fn finish(self) -> Result<(), FrameError> {
        self.0.finish()
    }
}

/// The encoding of one object, with what is not in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// A JSON text.
    Json,
    /// The protobuf message of an object of this kind, without an envelope.
    Protobuf(Kind),
}

impl Encoding {
    pub(super) fn format(&self) -> &dyn Format {
        match self {
            Self::Json => &Json,
            Self::Protobuf(kind) => kind,
        }
    }

    pub(super) fn deserialize<T: DeserializeOwned + 'static>(
        self,
        bytes: &[u8],
    ) -> Result<T, DecodeError> {
        match self {
            Self::Json => Json.deserialize(bytes),
            Self::Protobuf(kind) => kind.deserialize(bytes),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json => f.write_str("JSON"),
            Self::Protobuf(kind) => write!(f, "protobuf {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_read_whatever_their_parameters_and_case() {
        for (header, expected) in [
            ("application/json", Some(MediaType::Json)),
            ("Application/JSON ; charset=utf-8", Some(MediaType::Json)),
            ("application/vnd.kubernetes.protobuf;stream=watch", Some(MediaType::Protobuf)),
            ("application/yaml", None),
            ("text/html", None),
            ("", None),
        ] {
            assert_eq!(MediaType::parse(header), expected, "{header}");
        }
    }

    #[test]
    fn an_answer_that_is_no_list_is_refused_at_its_end() {
        let kind = "X".repeat(500);
        for (kind, shown) in [("Status", "Status"), ("", ""), (&*kind, &kind[..128])] {
            let mut splitter = MediaType::Json.list_splitter(1024);
            splitter.push(format!(r#"{{"kind":"{kind}"}}"#).into(), &mut Vec::new()).unwrap();
            assert_eq!(splitter.finish(), Err(FrameError::NotAList { kind: shown.to_owned() }));
        }
    }

    #[test]
    fn frames_before_a_broken_one_are_handed_out_in_either_encoding() {
        let mut protobuf = Vec::new();
        let mut pod = Vec::new();
        k8s_protobuf::Envelope::write("v1", "Pod", b"", &mut pod);
        k8s_protobuf::encode::watch_event("ADDED", &pod, &mut protobuf).unwrap();
        k8s_protobuf::encode::watch_event("RESTORED", &pod, &mut protobuf).unwrap();
        let json = br#"{"type":"ADDED","object":{}}{"type":"RESTORED","object":{}}"#.to_vec();
        for (media_type, body) in [(MediaType::Json, json), (MediaType::Protobuf, protobuf)] {
            let (mut splitter, mut frames) = (media_type.watch_splitter(1024), Vec::new());
            let error = splitter.push(body.into(), &mut frames).unwrap_err();
            assert_eq!(error, FrameError::UnknownEventType { found: "RESTORED".to_owned() });
            assert_eq!(frames.len(), 1);
            assert_eq!(splitter.push(Bytes::new(), &mut frames), Err(error.clone()));
            assert_eq!(splitter.finish(), Err(error));
        }
    }
}
