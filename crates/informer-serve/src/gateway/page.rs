//! Pages: tokens, and the snapshots that they belong to.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use informer::{ObjectKey, Snapshot};

use crate::object::Object;

/// Where the next page begins: after `after`, in the snapshot `id`, which has `version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: u64,
    pub(crate) version: String,
    pub(crate) after: ObjectKey,
}

/// The snapshots of which further pages may be asked for.
pub(crate) struct Pages {
    capacity: usize,
    lifetime: Duration,
    kept: Mutex<Kept>,
}

struct Kept {
    /// The one used last at the end.
    snapshots: VecDeque<Entry>,
    next_id: u64,
}

struct Entry {
    id: u64,
    /// What was asked for, resource included.
    request: String,
    snapshot: Snapshot<Object>,
    used: Instant,
}

/// Why a token leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPage {
    /// Its snapshot is gone.
    Gone,
    /// It belongs to another request.
    OtherRequest,
}

impl Pages {
    pub(crate) fn new(capacity: usize, lifetime: Duration) -> Self {
        // Starts at the time, so that tokens of an earlier process mean nothing to this one.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let next_id = u64::try_from(since.as_micros()).unwrap_or_default();
        Self { capacity, lifetime, kept: Mutex::new(Kept { snapshots: VecDeque::new(), next_id }) }
    }

    /// Keeps a snapshot for further pages; returns its id.
    pub(crate) fn keep(&self, request: &str, snapshot: Snapshot<Object>, now: Instant) -> u64 {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let id = kept.next_id;
        kept.next_id += 1;
        kept.snapshots.push_back(Entry { id, request: request.to_owned(), snapshot, used: now });
        while kept.snapshots.len() > self.capacity {
            kept.snapshots.pop_front();
        }
        id
    }

    /// The snapshot that `token` belongs to, if it is of the same request.
    pub(crate) fn find(
        &self,
        token: &Token,
        request: &str,
        now: Instant,
    ) -> Result<Snapshot<Object>, NoPage> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let lifetime = self.lifetime;
        kept.snapshots.retain(|it| now.saturating_duration_since(it.used) <= lifetime);
        let of_token =
            |it: &Entry| it.id == token.id && it.snapshot.version().to_string() == token.version;
        let at = kept.snapshots.iter().position(of_token).ok_or(NoPage::Gone)?;
        if kept.snapshots[at].request != request {
            return Err(NoPage::OtherRequest);
        }
        let mut entry = kept.snapshots.remove(at).ok_or(NoPage::Gone)?;
        entry.used = now;
        let snapshot = entry.snapshot.clone();
        kept.snapshots.push_back(entry);
        Ok(snapshot)
    }

    /// Lets go of snapshots of which nobody wanted a page for too long.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.snapshots.retain(|it| now.saturating_duration_since(it.used) <= self.lifetime);
    }
}

/// `id.version.key`, of letters, digits and dots, so that it needs no escapes in a URL.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}.", self.id, self.version)?;
        let key = format!("{}/{}", self.after.namespace(), self.after.name());
        key.bytes().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Token {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (id, rest) = text.split_once('.').ok_or(())?;
        let (version, key) = rest.rsplit_once('.').ok_or(())?;
        if !key.is_ascii() || key.len() % 2 != 0 {
            return Err(());
        }
        let byte = |at| u8::from_str_radix(&key[at..at + 2], 16).map_err(|_| ());
        let bytes: Vec<u8> = (0..key.len()).step_by(2).map(byte).collect::<Result<_, ()>>()?;
        let key = String::from_utf8(bytes).map_err(|_| ())?;
        let (namespace, name) = key.split_once('/').ok_or(())?;
        let after = if namespace.is_empty() {
            ObjectKey::cluster(name)
        } else {
            ObjectKey::namespaced(namespace, name)
        };
        Ok(Self {
            id: u64::from_str_radix(id, 16).map_err(|_| ())?,
            version: version.to_owned(),
            after,
        })
    }
}

#[cfg(test)]
mod tests {
    use informer_core::Pipeline;

    use super::*;

    fn snapshot() -> Snapshot<Object> {
        Pipeline::new().reader().snapshot()
    }

    fn token(id: u64) -> Token {
        Token {
            id,
            version: snapshot().version().to_string(),
            after: ObjectKey::namespaced("a", "b"),
        }
    }

    #[test]
    fn tokens_survive_urls() {
        for key in
            [ObjectKey::namespaced("default", "web-0"), ObjectKey::cluster("system:node+&ü.x")]
        {
            let token =
                Token { id: 77, version: "123456789012345678901234567890".to_owned(), after: key };
            let text = token.to_string();
            assert!(text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'.'), "{text}");
            assert_eq!(text.parse(), Ok(token));
        }
        for text in ["", "x", "1.2", "1.2.zz", "1.2.6", "1.2.61", "g.2.2f", "1.2.ü", "1.2.ff2f"] {
            assert_eq!(text.parse::<Token>(), Err(()), "{text}");
        }
    }

    #[test]
    fn snapshots_are_kept_for_a_while_and_a_number() {
        let start = Instant::now();
        let pages = Pages::new(2, Duration::from_secs(60));
        let first = pages.keep("a", snapshot(), start);
        let second = pages.keep("b", snapshot(), start);
        assert_eq!(pages.find(&token(first), "b", start).err(), Some(NoPage::OtherRequest));
        // Using one makes it the last to go.
        assert!(pages.find(&token(first), "a", start + Duration::from_secs(50)).is_ok());
        let third = pages.keep("c", snapshot(), start + Duration::from_secs(50));
        assert_eq!(pages.find(&token(second), "b", start).err(), Some(NoPage::Gone));
        assert!(pages.find(&token(third), "c", start + Duration::from_secs(100)).is_ok());
        assert!(pages.find(&token(first), "a", start + Duration::from_secs(110)).is_ok());
        pages.sweep(start + Duration::from_secs(165));
        assert_eq!(pages.find(&token(third), "c", start).err(), Some(NoPage::Gone));
        assert!(pages.find(&token(first), "a", start + Duration::from_secs(165)).is_ok());
        // The same number with another version is of another process.
        let other = Token { version: "9".to_owned(), ..token(first) };
        assert_eq!(pages.find(&other, "a", start).err(), Some(NoPage::Gone));
    }
}
