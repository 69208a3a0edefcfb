//! Whether reconciles acted on stale copies, and whether children were created twice.
//!
//! The relay knows every write that the server has carried out, also those whose answers were lost;
//! the controller says which copies each reconcile acted on. Writes of one key do not run beside its
//! reconciles, so that whatever was answered before a reconcile began is its own earlier write.

use std::collections::{BTreeMap, HashMap};

use http::Method;
use informer_tests::relay::Write;

use crate::peer::Reconcile;

/// What a run came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) reconciles: usize,
    /// Reconciles that acted on a copy older than an own earlier write.
    pub(crate) stale: usize,
    /// They lacked a child that was created.
    pub(crate) lacks_created: usize,
    /// They had a child that was deleted.
    pub(crate) has_deleted: usize,
    /// Their Set was older than an own write of its status.
    pub(crate) old_status: usize,
    /// Children created though there were as many as the copy wanted.
    pub(crate) duplicates: usize,
    pub(crate) created: usize,
    /// Writes answered with 409.
    pub(crate) conflicts: usize,
    /// Writes answered with 404.
    pub(crate) not_found: usize,
    pub(crate) writes: usize,
    pub(crate) lost: usize,
}

/// The writes for one Set, by UID.
#[derive(Default)]
struct Own<'a> {
    created: Vec<&'a Write>,
    deleted: HashMap<&'a str, &'a Write>,
    statuses: Vec<(u64, u64)>,
}

/// Judges a run. `taken` are the children that others deleted, with the time of each request.
pub(crate) fn judge(
    reconciles: &[Reconcile],
    writes: &[Write],
    taken: &HashMap<String, u64>,
) -> Verdict {
    let mut verdict = Verdict { reconciles: reconciles.len(), ..Verdict::default() };
    let mut owners = HashMap::new();
    let mut own = HashMap::<&str, Own<'_>>::new();
    for write in writes {
        verdict.writes += 1;
        verdict.lost += usize::from(write.lost);
        verdict.conflicts += usize::from(write.status.as_u16() == 409);
        verdict.not_found += usize::from(write.status.as_u16() == 404);
        if !write.status.is_success() {
            continue;
        }
        match (&*write.resource, &write.method) {
            ("configmaps", &Method::POST) => {
                verdict.created += 1;
                owners.insert(&*write.uid, &*write.owner);
                own.entry(&write.owner).or_default().created.push(write);
            }
            ("configmaps", &Method::DELETE) => {
                let owner = owners.get(&*write.uid).copied().unwrap_or_default();
                own.entry(owner).or_default().deleted.entry(&write.uid).or_insert(write);
            }
            ("sets", _) => {
                let status = (write.answered, number(&write.version));
                own.entry(&write.uid).or_default().statuses.push(status);
            }
            _ => {}
        }
    }
    let mut begun = HashMap::<&str, BTreeMap<u64, usize>>::new();
    for reconcile in reconciles {
        begun.entry(&reconcile.uid).or_default().insert(reconcile.at, reconcile.wanted);
        let Some(own) = own.get(&*reconcile.uid) else { continue };
        let [lacks, has, old] = own.stale(reconcile, taken);
        verdict.lacks_created += usize::from(lacks);
        verdict.has_deleted += usize::from(has);
        verdict.old_status += usize::from(old);
        verdict.stale += usize::from(lacks || has || old);
    }
    for (owner, own) in &own {
        let Some(begun) = begun.get(owner) else { continue };
        verdict.duplicates += own.duplicates(begun, taken);
    }
    verdict
}

impl Own<'_> {
    /// Whether a reconcile lacks a child that was created, has one that was deleted, or has an old
    /// status.
    fn stale(&self, reconcile: &Reconcile, taken: &HashMap<String, u64>) -> [bool; 3] {
        let at = reconcile.at;
        let shows = |uid: &str| reconcile.children.iter().any(|child| child == uid);
        let lacks = self.created.iter().any(|write| {
            let is_gone = self.deleted.get(&*write.uid).is_some_and(|delete| delete.sent < at)
                || taken.get(&write.uid).is_some_and(|&sent| sent < at);
            write.answered < at && !is_gone && !shows(&write.uid)
        });
        let has = self.deleted.iter().any(|(uid, delete)| delete.answered < at && shows(uid));
        let version = number(&reconcile.version);
        let old = self.statuses.iter().any(|&(answered, own)| answered < at && own > version);
        [lacks, has, old]
    }

    /// How many were created though there were enough.
    fn duplicates(&self, begun: &BTreeMap<u64, usize>, taken: &HashMap<String, u64>) -> usize {
        let is_duplicate = |create: &&&Write| {
            let is_live = |other: &&&Write| {
                let is_gone = self
                    .deleted
                    .get(&*other.uid)
                    .is_some_and(|delete| delete.answered <= create.sent)
                    || taken.get(&other.uid).is_some_and(|&sent| sent <= create.sent);
                other.answered <= create.sent && !is_gone
            };
            let live = self.created.iter().filter(is_live).count();
            let wanted = begun.range(..=create.sent).next_back().map(|(_, &wanted)| wanted);
            wanted.is_some_and(|wanted| live >= wanted)
        };
        self.created.iter().filter(is_duplicate).count()
    }
}

/// Versions of one resource of one server may be compared.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    use http::StatusCode;

    #[test]
    fn a_reconcile_that_shows_every_own_write_is_not_stale() {
        let writes = [create(1, "a"), delete(2, "a"), create(3, "b"), status(4, 7)];
        let verdict =
            judge(&[reconcile(0, 1, 1, &[]), reconcile(5, 7, 1, &["b"])], &writes, &none());
        assert_eq!((verdict.stale, verdict.duplicates), (0, 0));
    }

    #[test]
    fn each_kind_of_staleness_is_seen() {
        let writes = [create(1, "a"), create(2, "b"), delete(3, "b"), status(4, 7)];
        let lacks = judge(&[reconcile(5, 7, 1, &[])], &writes, &none());
        assert_eq!((lacks.stale, lacks.lacks_created), (1, 1));
        let has = judge(&[reconcile(5, 7, 1, &["a", "b"])], &writes, &none());
        assert_eq!((has.stale, has.has_deleted), (1, 1));
        let old = judge(&[reconcile(5, 6, 1, &["a"])], &writes, &none());
        assert_eq!((old.stale, old.old_status), (1, 1));
    }

    #[test]
    fn what_others_deleted_need_not_be_shown() {
        let taken = HashMap::from([("a".to_owned(), 2)]);
        let verdict = judge(&[reconcile(5, 7, 1, &[])], &[create(1, "a")], &taken);
        assert_eq!(verdict.stale, 0);
    }

    #[test]
    fn one_too_many_is_a_duplicate() {
        let writes = [create(1, "a"), create(3, "b")];
        let reconciles = [reconcile(0, 1, 1, &[]), reconcile(2, 1, 1, &[])];
        assert_eq!(judge(&reconciles, &writes, &none()).duplicates, 1);
        let more = [reconcile(0, 1, 1, &[]), reconcile(2, 1, 2, &["a"])];
        assert_eq!(judge(&more, &writes, &none()).duplicates, 0);
    }

    fn none() -> HashMap<String, u64> {
        HashMap::new()
    }

    fn reconcile(at: u64, version: u64, wanted: usize, children: &[&str]) -> Reconcile {
        Reconcile {
            at: at * 10,
            name: "set".to_owned(),
            uid: "set".to_owned(),
            version: version.to_string(),
            generation: 1,
            wanted,
            children: children.iter().map(ToString::to_string).collect(),
        }
    }

    fn create(at: u64, uid: &str) -> Write {
        write(at, Method::POST, "configmaps", uid, 1)
    }

    fn delete(at: u64, uid: &str) -> Write {
        write(at, Method::DELETE, "configmaps", uid, 1)
    }

    fn status(at: u64, version: u64) -> Write {
        write(at, Method::PUT, "sets", "set", version)
    }

    fn write(at: u64, method: Method, resource: &str, uid: &str, version: u64) -> Write {
        Write {
            sent: at * 10,
            answered: at * 10 + 1,
            method,
            resource: resource.to_owned(),
            subresource: String::new(),
            status: StatusCode::OK,
            name: uid.to_owned(),
            uid: uid.to_owned(),
            version: version.to_string(),
            owner: "set".to_owned(),
            lost: false,
        }
    }
}
