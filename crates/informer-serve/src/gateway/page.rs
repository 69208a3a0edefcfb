//! Pages: tokens, and the snapshots that they belong to.

use std::collections::{HashMap, VecDeque};
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
    of: Asked,
    snapshot: Snapshot<Object>,
    used: Instant,
}

/// What a token may be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The user who got the token; empty on an address without access control.
    pub(crate) user: String,
    /// What was asked for, resource included.
    pub(crate) request: String,
}

/// Why a token leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPage {
    /// Its snapshot is gone, or of another user.
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

    /// Keeps a snapshot for further pages; returns its id. Beyond the capacity, the user who has
    /// most snapshots loses the one that was used longest ago.
    pub(crate) fn keep(&self, of: &Asked, snapshot: Snapshot<Object>, now: Instant) -> u64 {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let id = kept.next_id;
        kept.next_id += 1;
        kept.snapshots.push_back(Entry { id, of: of.clone(), snapshot, used: now });
        while kept.snapshots.len() > self.capacity {
            kept.evict();
        }
        id
    }

    /// The snapshot that `token` belongs to, if it is of the same request.
    pub(crate) fn find(
        &self,
        token: &Token,
        of: &Asked,
        now: Instant,
    ) -> Result<Snapshot<Object>, NoPage> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let lifetime = self.lifetime;
        kept.snapshots.retain(|it| now.saturating_duration_since(it.used) <= lifetime);
        let of_token = |it: &Entry| {
            it.id == token.id
                && it.of.user == of.user
                && it.snapshot.version().to_string() == token.version
        };
        let at = kept.snapshots.iter().position(of_token).ok_or(NoPage::Gone)?;
        if kept.snapshots[at].of.request != of.request {
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

impl Kept {
    fn evict(&mut self) {
        let mut counts = HashMap::<&str, usize>::new();
        for entry in &self.snapshots {
            *counts.entry(&entry.of.user).or_default() += 1;
        }
        let most = counts.values().copied().max();
        let at = self.snapshots.iter().position(|it| counts.get(&*it.of.user).copied() == most);
        if let Some(at) = at {
            self.snapshots.remove(at);
        }
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

    fn asked(user: &str, request: &str) -> Asked {
        Asked { user: user.to_owned(), request: request.to_owned() }
    }

    #[test]
    fn one_user_neither_uses_nor_evicts_the_snapshots_of_another() {
        let now = Instant::now();
        let pages = Pages::new(4, Duration::from_secs(60));
        let (alices, mallorys) = (asked("alice", "a"), asked("mallory", "a"));
        let first = pages.keep(&alices, snapshot(), now);
        let second = pages.keep(&alices, snapshot(), now);
        let mut last = 0;
        for _ in 0..10 {
            last = pages.keep(&mallorys, snapshot(), now);
        }
        assert!(pages.find(&token(last), &mallorys, now).is_ok());
        assert_eq!(pages.find(&token(first), &mallorys, now).err(), Some(NoPage::Gone));
        for id in [first, second] {
            assert!(pages.find(&token(id), &alices, now).is_ok());
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
        let first = pages.keep(&asked("", "a"), snapshot(), start);
        let second = pages.keep(&asked("", "b"), snapshot(), start);
        assert_eq!(
            pages.find(&token(first), &asked("", "b"), start).err(),
            Some(NoPage::OtherRequest)
        );
        // Using one makes it the last to go.
        assert!(
            pages.find(&token(first), &asked("", "a"), start + Duration::from_secs(50)).is_ok()
        );
        let third = pages.keep(&asked("", "c"), snapshot(), start + Duration::from_secs(50));
        assert_eq!(pages.find(&token(second), &asked("", "b"), start).err(), Some(NoPage::Gone));
        assert!(
            pages.find(&token(third), &asked("", "c"), start + Duration::from_secs(100)).is_ok()
        );
        assert!(
            pages.find(&token(first), &asked("", "a"), start + Duration::from_secs(110)).is_ok()
        );
        pages.sweep(start + Duration::from_secs(165));
        assert_eq!(pages.find(&token(third), &asked("", "c"), start).err(), Some(NoPage::Gone));
        assert!(
            pages.find(&token(first), &asked("", "a"), start + Duration::from_secs(165)).is_ok()
        );
        // The same number with another version is of another process.
        let other = Token { version: "9".to_owned(), ..token(first) };
        assert_eq!(pages.find(&other, &asked("", "a"), start).err(), Some(NoPage::Gone));
    }
}
