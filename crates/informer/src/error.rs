//! What can go wrong, in words that say what to do.

use std::fmt;

use informer_core::ResourceVersion;
use informer_core::selector::ParseSelectorError;
use informer_core::store::IndexError;

use crate::Resource;
use crate::status::StopCause;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The deadline passed before everything waited for was there.
    #[error("{0}")]
    NotSynced(NotSynced),
    /// The deadline passed before the store had reached the version waited for (G14).
    #[error("{0}")]
    NotReached(Box<NotReached>),
    /// The deadline passed before the store was refreshed (G14).
    #[error("not refreshed in time: {0}")]
    NotRefreshed(Box<Missing>),
    /// The informer has stopped, so what was asked for will not happen.
    #[error("the informer of {informer} has stopped{}", what_to_do(*cause))]
    Stopped {
        /// The informer.
        informer: String,
        /// Why.
        cause: StopCause,
    },
    /// The factory was shut down.
    #[error("the factory was shut down; build a new one")]
    ShutDown,
    /// The registration was removed.
    #[error("the registration was removed")]
    Removed,
    /// The list has objects, and none of them can be decoded (G20).
    #[error(
        "none of the {objects} objects of {informer} can be decoded, the last because of: {cause}; check the type that they are decoded into"
    )]
    NothingDecodes {
        /// The informer.
        informer: String,
        /// How many objects the list had.
        objects: usize,
        /// Why the last one could not be decoded.
        cause: String,
    },
    /// The server does not have the resource.
    #[error("{0}")]
    UnknownResource(UnknownResource),
    /// The server could not be asked what resources it has.
    #[error("cannot discover the server's resources: {message}")]
    Discovery {
        /// Why.
        message: String,
    },
    /// The same collection was asked for before, with other options.
    #[error(
        "the informer of {informer} exists already, with another {option}: ask with equal options, choose another scope, or use a factory of its own"
    )]
    ConflictingOptions {
        /// The informer.
        informer: String,
        /// The first option that differs.
        option: &'static str,
    },
    /// The namespace cannot be one, so the server was not asked.
    #[error(
        "{namespace:?} is no name of a namespace: those have 1 to 63 of a-z, 0-9 and '-', with a letter or digit first and last"
    )]
    InvalidNamespace {
        /// The namespace that was asked for.
        namespace: String,
    },
    /// An informer cannot be as its options ask for.
    #[error(
        "the informer of {informer} cannot be made: its option {option} is wrong, since {problem}"
    )]
    InvalidOption {
        /// The informer.
        informer: String,
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The server's history was replaced, so that the version waited for means nothing any more
    /// (G14).
    #[error(
        "the server's history was replaced while waiting (an etcd restored?); read the object again and wait for its new version"
    )]
    HistoryChanged,
    /// The version to wait for is no decimal number, so nobody can tell when the store has reached
    /// it.
    #[error("{}", unordered(version))]
    UnorderedVersion {
        /// The version.
        version: String,
    },
    /// An index could not be added or asked.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A text is no label or field selector.
    #[error(transparent)]
    Selector(#[from] ParseSelectorError),
}

/// What a deadline found missing, for each informer or handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotSynced {
    /// What is missing, in the order in which it was asked for.
    pub missing: Vec<Missing>,
}

/// A version that a store had not reached when the deadline passed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotReached {
    /// The version waited for.
    pub wanted: ResourceVersion,
    /// The version that the store stands for; unset before the first list.
    pub reached: ResourceVersion,
    /// The informer, its state and its last error.
    pub missing: Missing,
}

/// One informer or handler that was not synced, or not refreshed, when the deadline passed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The informer.
    pub informer: String,
    /// The handler, if it is the handler that is missing and not the store.
    pub handler: Option<String>,
    /// The informer's state, in words.
    pub state: String,
    /// The last error of the informer.
    pub last_error: Option<String>,
}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not synced in time: ")?;
        for (at, missing) in self.missing.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{missing}")?;
        }
        Ok(())
    }
}

impl fmt::Display for NotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, reached, missing } = self;
        write!(f, "version {wanted} was not reached in time: the store ")?;
        match reached.is_unset() {
            true => f.write_str("has no version yet: ")?,
            false => write!(f, "stands at version {reached}: ")?,
        }
        write!(f, "{missing}")
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(handler) = &self.handler {
            write!(f, "handler {handler} of ")?;
        }
        write!(f, "{} ({}", self.informer, self.state)?;
        match &self.last_error {
            Some(error) if !self.tells(error) => write!(f, "; last error: {error})"),
            _ => f.write_str(")"),
        }
    }
}

impl Missing {
    /// Whether the state tells `error` already, as that of an informer that backs off does; without
    /// the collection's name perhaps.
    fn tells(&self, error: &str) -> bool {
        let unnamed =
            error.split_once(&format!("{}: ", self.informer)).map_or(error, |(_, rest)| rest);
        self.state.contains(unnamed)
    }
}

/// A resource that the server does not have, with what it may have been meant to be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownResource {
    /// What was asked for.
    pub asked: String,
    /// Resources of the server with similar names, the most similar first.
    pub suggestions: Vec<String>,
    /// API groups that did not answer, and why: the resource may be in one of them.
    pub unavailable: Vec<String>,
    /// The resource of which this is the short name, the singular or the kind, where the plural
    /// must be given.
    pub other_name_of: Option<Box<Resource>>,
}

impl std::error::Error for UnknownResource {}

impl fmt::Display for UnknownResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server has no resource {:?}", self.asked)?;
        if let Some(resource) = &self.other_name_of {
            return write!(
                f,
                "; did you mean {resource}? Its plural is needed here, {:?}",
                resource.plural
            );
        }
        match self.suggestions.as_slice() {
            [] => f.write_str("; `kubectl api-resources` lists what it has")?,
            suggestions => write!(f, "; did you mean {}?", suggestions.join(", "))?,
        }
        if !self.unavailable.is_empty() {
            write!(f, " (API groups that did not answer: {})", self.unavailable.join(", "))?;
        }
        Ok(())
    }
}

/// What to do when an informer has stopped.
fn what_to_do(cause: StopCause) -> String {
    match cause {
        StopCause::Asked => "; ask the factory for it again, or make a new one".to_owned(),
        StopCause::RuntimeEnded => format!(
            ", because {cause}; build client, factory and informers on a runtime that lives as long as they are used (each `#[tokio::test]` has one of its own)"
        ),
        StopCause::Panicked => format!(
            ", because {cause}; its panic was printed by the process's panic hook, and a new one may be asked for"
        ),
    }
}

fn unordered(version: &str) -> String {
    if version.is_empty() {
        return "there is no version to wait for; take the object as the server returned it from the write"
            .to_owned();
    }
    format!(
        "the version {version:?} is not a decimal number, so it cannot be waited for; wait for the object's event instead"
    )
}

/// An error of a client's connection with its causes, since the client's own text is often only
/// "service error", and what to do about it.
pub(crate) fn connection_error(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors repeat their source in their own text.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    let text = text.strip_prefix("ServiceError: ").unwrap_or(&text);
    format!("{text}{}", connection_advice(text))
}

/// What to do about a connection that could not be made. No type tells the causes apart, whatever
/// makes the connection.
fn connection_advice(text: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&[
        "UnknownIssuer",
        "BadSignature",
        "self-signed",
        "self signed",
        "local issuer certificate",
    ]) {
        return "; the authority that signed the server's certificate is not trusted: set it as the cluster's `certificate-authority` in the kubeconfig, or as `Config::root_cert`";
    }
    if says(&["not valid for name", "NotValidForName"]) {
        return "; use one of the certificate's names as the server's address, or set it as the cluster's `tls-server-name` in the kubeconfig";
    }
    if says(&["InvalidContentType"]) {
        return "; what answers does not speak TLS: is the address one of `http://`?";
    }
    // The client does not tell its server's address.
    if says(&["(Connect)"]) && !says(&["certificate"]) {
        return "; is the API server running, and is its address right (`kubectl config view --minify` shows it)?";
    }
    ""
}

/// The most characters of a text from outside that an error quotes.
const MAX_QUOTED: usize = 200;

/// What the answer with an HTTP status code that is an error, and a body that is no `Status`, says:
/// from proxies, say, or from a server that expects TLS. JSON and binary bodies are left out, for
/// they may be objects, and so is a text that may repeat the credentials (G34).
pub(crate) fn quoted_answer(code: http::StatusCode, body: &[u8]) -> String {
    let reason = code.canonical_reason().unwrap_or("without a reason");
    let text = std::str::from_utf8(body).unwrap_or_default();
    let is_secret =
        ["bearer", "authorization"].iter().any(|it| text.to_ascii_lowercase().contains(it));
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_data = words.starts_with(['{', '[', '"']) || words.contains(char::is_control);
    // What an API server says of a path that it does not have.
    let is_known = [reason, "404 page not found", ""].contains(&words.as_str());
    if is_known || is_secret || is_data {
        return reason.to_owned();
    }
    let advice = match words.contains("HTTP request") && words.contains("HTTPS") {
        true => "; the server's address must be one of `https://`",
        false => "",
    };
    shorten(&mut words, MAX_QUOTED);
    format!("{reason}, with the body {words:?}{advice}")
}

/// Cuts `text` to so many characters.
pub(crate) fn shorten(text: &mut String, most: usize) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
}

/// `message` without the name of the collection, for where that stands beside it.
pub(crate) fn unnamed(message: &str, collection: &str) -> String {
    message.replacen(&format!(" {collection}"), "", 1)
}
