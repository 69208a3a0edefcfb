//! Single cases.

use std::collections::BTreeMap;

use super::super::*;
use crate::{ResourceVersion, Uid};

const PODS: &str = "pods";
const NODES: &str = "nodes";

/// What one informer shows.
#[derive(Clone)]
struct Store {
    history: Option<History>,
    version: u64,
    held: BTreeMap<ObjectKey, (Uid, ResourceVersion)>,
    undecodable: Vec<ObjectKey>,
    namespace: Option<&'static str>,
}

struct Stores(Vec<Store>);

impl Views for Stores {
    fn history(&self, informer: InformerId) -> Option<History> {
        self.0[informer.index()].history
    }

    fn includes_namespace(&self, informer: InformerId, namespace: &str) -> bool {
        self.0[informer.index()].namespace.is_none_or(|own| own == namespace)
    }

    fn has_reached(&self, informer: InformerId, version: &ResourceVersion) -> bool {
        ResourceVersion::from(self.0[informer.index()].version).has_reached(version)
    }

    fn held(&self, informer: InformerId, key: &ObjectKey) -> Option<(Uid, ResourceVersion)> {
        self.0[informer.index()].held.get(key).cloned()
    }

    fn undecodable(&self, informer: InformerId, key: &ObjectKey) -> Option<String> {
        self.0[informer.index()].undecodable.contains(key).then(|| "spec: no number".to_owned())
    }
}

struct Case {
    writes: OwnWrites<&'static str>,
    stores: Stores,
}

impl Case {
    /// Informers of these resources, whose stores are at version 5.
    fn new(resources: &[&'static str]) -> Self {
        let mut writes = OwnWrites::new();
        for resource in resources {
            writes.follow(*resource);
        }
        let store = Store {
            history: Some(History::default()),
            version: 5,
            held: BTreeMap::new(),
            undecodable: Vec::new(),
            namespace: None,
        };
        Self { writes, stores: Stores(vec![store; resources.len()]) }
    }

    fn begin(&mut self, verb: Verb, name: Option<&str>, uid: Option<&str>) -> Ticket {
        let (namespace, name) = ("shop".to_owned(), name.map(str::to_owned));
        let write = Write { resource: PODS, verb, namespace, name, uid: uid.map(Uid::new) };
        self.writes.begin(set(), write, &self.stores)
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.answer_selected(ticket, answer, Selection::Selected);
    }

    fn answer_selected(&mut self, ticket: Ticket, answer: Answer, selection: Selection) {
        self.writes.answered(ticket, answer, |_| selection, &self.stores);
    }

    /// A change of pod `web-0`, UID `a`, that was answered with this version.
    fn change(&mut self, version: u64, selection: Selection) {
        let ticket = self.begin(Verb::Change, Some("web-0"), None);
        self.answer_selected(ticket, Answer::Object(written("a", version)), selection);
    }

    fn hold(&mut self, uid: &str, version: u64) {
        for store in &mut self.stores.0 {
            store.held.insert(pod(), (Uid::new(uid), version.into()));
        }
    }

    fn missing(&mut self) -> Vec<Missing<&'static str>> {
        self.writes.check(&set(), &self.stores)
    }

    fn is_caught_up(&mut self) -> bool {
        let is_caught_up = self.missing().is_empty();
        assert!(!is_caught_up || self.writes.remembered() == 0, "what is shown is forgotten");
        is_caught_up
    }

    fn refresh(&mut self) {
        let number = self.writes.request_refresh();
        for (informer, since) in self.writes.refreshes(&set(), &self.stores) {
            assert!(since < number);
            self.writes.refreshed(informer, number);
        }
    }

    fn settle(&mut self, found: &Found) {
        for unsettled in self.writes.unsettled(&set()) {
            let selects = |_| Selection::Selected;
            self.writes.settled(unsettled.ticket, found.clone(), selects, &self.stores);
        }
    }
}

fn set() -> ObjectKey {
    ObjectKey::namespaced("shop", "web")
}

fn pod() -> ObjectKey {
    ObjectKey::namespaced("shop", "web-0")
}

fn written(uid: &str, version: u64) -> Written {
    Written { key: pod(), uid: Uid::new(uid), version: version.into(), is_gone: false }
}

#[test]
fn a_write_is_waited_for_from_before_it_is_sent_until_its_version_is_reached() {
    let mut case = Case::new(&[PODS]);
    assert!(case.is_caught_up());
    let ticket = case.begin(Verb::Create, Some("web-0"), None);
    assert!(matches!(case.missing()[..], [Missing::InFlight { .. }]));
    case.answer(ticket, Answer::Object(written("a", 7)));
    case.stores.0[0].version = 6;
    assert!(
        matches!(&case.missing()[..], [Missing::Version { version, .. }] if *version == 7.into())
    );
    case.stores.0[0].version = 8;
    assert!(case.is_caught_up(), "the object may have been replaced or deleted meanwhile");
}

#[test]
fn every_informer_of_the_resource_is_waited_for_and_no_other() {
    let mut case = Case::new(&[PODS, NODES, PODS]);
    case.change(7, Selection::Selected);
    case.stores.0[0].version = 7;
    let missing = case.missing();
    assert!(matches!(&missing[..], [Missing::Version { informer, .. }] if informer.index() == 2));
    case.stores.0[2].version = 7;
    assert!(case.is_caught_up(), "nodes stand at 5, which says nothing");
}

#[test]
fn refused_writes_and_those_of_resources_without_informers_are_not_remembered() {
    let mut case = Case::new(&[NODES]);
    case.change(7, Selection::Selected);
    assert_eq!(case.writes.remembered(), 0);
    let mut case = Case::new(&[PODS]);
    let ticket = case.begin(Verb::Change, Some("web-0"), None);
    case.answer(ticket, Answer::NotWritten);
    assert!(case.is_caught_up());
}

#[test]
fn a_write_that_changed_nothing_is_answered_with_a_version_that_is_reached() {
    let mut case = Case::new(&[PODS]);
    case.change(4, Selection::Selected);
    assert!(case.is_caught_up());
}

#[test]
fn the_namespace_of_an_informer_excludes_writes() {
    let mut case = Case::new(&[PODS]);
    case.stores.0[0].namespace = Some("other");
    case.change(7, Selection::Selected);
    assert_eq!(case.writes.remembered(), 0);
}

#[test]
fn what_selectors_exclude_in_answer_and_store_is_not_waited_for() {
    let mut case = Case::new(&[PODS]);
    case.change(7, Selection::Excluded);
    assert!(case.missing().is_empty());
    case.hold("a", 6);
    assert_eq!(case.missing().len(), 1, "the store came to hold an older state");
    case.stores.0[0].version = 7;
    assert!(case.is_caught_up());
}

#[test]
fn what_leaves_the_selection_by_a_write_is_waited_for_until_it_has_left() {
    let mut case = Case::new(&[PODS]);
    case.hold("a", 4);
    case.change(7, Selection::Excluded);
    assert!(!case.is_caught_up());
    case.stores.0[0].held.clear();
    assert!(case.missing().is_empty());
    case.stores.0[0].version = 7;
    assert!(case.is_caught_up());
}

#[test]
fn what_is_created_and_leaves_the_selection_is_waited_for_until_it_has_left() {
    let mut case = Case::new(&[PODS]);
    case.change(6, Selection::Selected);
    case.change(7, Selection::Excluded);
    assert!(!case.is_caught_up());
    case.hold("a", 6);
    case.stores.0[0].version = 6;
    assert!(!case.is_caught_up(), "the store shows the first write and not the second");
    case.stores.0[0].version = 7;
    assert!(case.is_caught_up());
}

#[test]
fn a_delete_waits_for_the_absence_of_its_uid_and_no_other() {
    let mut case = Case::new(&[PODS]);
    case.hold("a", 4);
    let ticket = case.begin(Verb::Delete, Some("web-0"), None);
    case.answer(ticket, Answer::Deleted { uid: None });
    assert!(matches!(&case.missing()[..], [Missing::Delete { uid, .. }] if *uid == Uid::new("a")));
    case.stores.0[0].version = 100;
    assert!(!case.is_caught_up(), "only the store's content tells");
    case.hold("b", 101);
    assert!(case.is_caught_up(), "the name was taken by another object");
}

#[test]
fn a_delete_that_finds_nothing_waits_for_what_the_store_still_holds() {
    let mut case = Case::new(&[PODS]);
    let ticket = case.begin(Verb::Delete, Some("web-0"), None);
    case.answer(ticket, Answer::NotFound);
    assert!(case.is_caught_up());
    case.hold("a", 4);
    let ticket = case.begin(Verb::Delete, Some("web-0"), None);
    case.answer(ticket, Answer::NotFound);
    assert!(matches!(case.missing()[..], [Missing::Delete { .. }]));
}

#[test]
fn a_delete_waits_for_the_own_create_that_is_not_shown_yet() {
    let mut case = Case::new(&[PODS]);
    case.change(7, Selection::Selected);
    let ticket = case.begin(Verb::Delete, Some("web-0"), Some("a"));
    case.answer(ticket, Answer::Deleted { uid: Some(Uid::new("a")) });
    assert_eq!(case.missing().len(), 2);
    (case.stores.0[0].version, ()) = (7, case.hold("a", 7));
    assert_eq!(case.missing().len(), 1);
    case.stores.0[0].held.clear();
    assert!(case.is_caught_up());
}

/// The first informer shows the Pod at version 4; the second one stands at `second`.
fn of_two_informers(second: u64) -> Case {
    let mut case = Case::new(&[PODS, PODS]);
    case.stores.0[0].held.insert(pod(), (Uid::new("a"), 4.into()));
    case.stores.0[1].version = second;
    case
}

#[test]
fn a_delete_is_waited_for_by_an_informer_that_has_not_shown_the_object_yet() {
    type Delete = fn(&mut Case) -> (Ticket, Answer);
    let deletes: [Delete; 3] = [
        |case| (case.begin(Verb::Delete, Some("web-0"), Some("a")), Answer::Deleted { uid: None }),
        |case| (case.begin(Verb::Delete, Some("web-0"), None), Answer::NotFound),
        |case| {
            let gone = Written { is_gone: true, ..written("a", 4) };
            (case.begin(Verb::Change, Some("web-0"), None), Answer::Object(gone))
        },
    ];
    for delete in deletes {
        let mut case = of_two_informers(3);
        let (ticket, answer) = delete(&mut case);
        // The first informer may hear of the delete before its answer comes.
        case.stores.0[0].held.clear();
        case.answer_selected(ticket, answer, Selection::Unknown);
        assert!(
            matches!(case.missing()[..], [Missing::Refresh { informer }] if informer.index() == 1)
        );
        case.refresh();
        assert!(case.is_caught_up());

        let mut case = of_two_informers(4);
        let (ticket, answer) = delete(&mut case);
        case.stores.0[0].held.clear();
        case.answer_selected(ticket, answer, Selection::Unknown);
        assert!(case.is_caught_up(), "the second informer has seen it go, or excludes it");
    }
}

#[test]
fn a_delete_needs_no_refresh_where_an_own_write_tells_that_the_object_is_excluded() {
    let mut case = of_two_informers(3);
    let ticket = case.begin(Verb::Change, Some("web-0"), None);
    let selects = |informer: InformerId| match informer.index() {
        0 => Selection::Selected,
        _ => Selection::Excluded,
    };
    let answer = Answer::Object(written("a", 4));
    case.writes.answered(ticket, answer, selects, &case.stores);
    let ticket = case.begin(Verb::Delete, Some("web-0"), None);
    case.stores.0[0].held.clear();
    case.answer_selected(ticket, Answer::Deleted { uid: None }, Selection::Unknown);
    assert!(case.missing().is_empty());
}

#[test]
fn an_object_that_a_write_ended_must_be_gone_whatever_its_version() {
    let mut case = Case::new(&[PODS]);
    case.hold("a", 4);
    let ticket = case.begin(Verb::Change, Some("web-0"), None);
    case.answer(ticket, Answer::Object(Written { is_gone: true, ..written("a", 4) }));
    assert!(
        !case.is_caught_up(),
        "servers answer the removal of the last finalizer with the version before"
    );
    case.stores.0[0].held.clear();
    assert!(case.is_caught_up());
}

#[test]
fn an_unknown_outcome_needs_a_refresh_that_was_requested_later() {
    let mut case = Case::new(&[PODS]);
    let ticket = case.begin(Verb::Create, None, None);
    let early = case.writes.request_refresh();
    case.answer(ticket, Answer::Unknown);
    assert!(case.writes.unsettled(&set()).is_empty(), "nobody knows the name");
    let wanted = case.writes.refreshes(&set(), &case.stores);
    assert_eq!(wanted.len(), 1);
    for (informer, since) in wanted {
        assert!(since > early);
        case.writes.refreshed(informer, early);
    }
    assert!(matches!(case.missing()[..], [Missing::Unsettled { .. }]));
    case.refresh();
    assert!(case.is_caught_up());
}

#[test]
fn a_read_settles_an_unknown_outcome() {
    let unknown = |verb, uid| {
        let mut case = Case::new(&[PODS]);
        case.hold("a", 4);
        let ticket = case.begin(verb, Some("web-0"), uid);
        case.answer(ticket, Answer::Unknown);
        assert_eq!(case.writes.refreshes(&set(), &case.stores).len(), 1);
        case
    };
    let mut case = unknown(Verb::Create, None);
    case.settle(&Found::Absent);
    assert!(case.is_caught_up(), "it was not created");

    let mut case = unknown(Verb::Change, None);
    case.settle(&Found::Object(written("a", 7)));
    assert!(case.writes.refreshes(&set(), &case.stores).is_empty());
    assert!(matches!(case.missing()[..], [Missing::Version { .. }]));
    case.stores.0[0].version = 7;
    assert!(case.is_caught_up());

    for found in [Found::Absent, Found::Object(written("b", 5))] {
        let mut case = unknown(Verb::Delete, Some("a"));
        case.settle(&found);
        assert!(matches!(case.missing()[..], [Missing::Delete { .. }]));
        case.stores.0[0].held.clear();
        assert!(case.is_caught_up());
    }
}

#[test]
fn an_absence_without_uid_leaves_it_to_a_refresh() {
    let mut case = Case::new(&[PODS]);
    let ticket = case.begin(Verb::Delete, Some("web-0"), None);
    case.answer(ticket, Answer::Deleted { uid: None });
    case.settle(&Found::Absent);
    assert!(!case.is_caught_up() && case.writes.unsettled(&set()).is_empty());
    case.refresh();
    assert!(case.is_caught_up());
}

#[test]
fn a_read_that_was_no_answer_is_waited_for_like_a_write() {
    let mut case = Case::new(&[PODS]);
    case.hold("a", 4);
    let ticket = case.begin(Verb::Change, Some("web-0"), None);
    let found = Found::Object(written("b", 9));
    case.writes.settled(ticket, found, |_| Selection::Selected, &case.stores);
    assert_eq!(case.missing().len(), 2, "the one was deleted and the other created");
    (case.stores.0[0].version, ()) = (9, case.hold("b", 9));
    assert!(case.is_caught_up());
}

#[test]
fn an_answer_without_labels_is_read_again_unless_the_store_has_the_object() {
    let mut case = Case::new(&[PODS]);
    case.change(7, Selection::Unknown);
    assert_eq!(case.writes.unsettled(&set()).len(), 1);
    case.settle(&Found::Object(written("a", 7)));
    assert!(matches!(case.missing()[..], [Missing::Version { .. }]));

    let mut case = Case::new(&[PODS]);
    case.hold("a", 4);
    case.change(7, Selection::Unknown);
    assert!(case.writes.unsettled(&set()).is_empty() && !case.is_caught_up());
    case.stores.0[0].version = 7;
    assert!(case.is_caught_up());
}

#[test]
fn a_changed_history_an_absent_resource_and_a_stop_end_the_wait() {
    let changes: [Option<History>; 3] =
        [Some(History { epoch: 1, removals: 0 }), Some(History { epoch: 0, removals: 1 }), None];
    for change in changes {
        let mut case = Case::new(&[PODS]);
        case.change(7, Selection::Selected);
        assert!(!case.is_caught_up());
        case.stores.0[0].history = change;
        assert!(case.is_caught_up());
    }
}

#[test]
fn a_history_that_changes_during_a_write_leaves_it_to_a_refresh() {
    let mut case = Case::new(&[PODS]);
    let ticket = case.begin(Verb::Change, Some("web-0"), None);
    case.stores.0[0].history = Some(History { epoch: 1, removals: 0 });
    case.answer(ticket, Answer::Object(written("a", 7)));
    case.stores.0[0].version = 8;
    assert!(matches!(case.missing()[..], [Missing::Refresh { .. }]));
    case.refresh();
    assert!(case.is_caught_up());
}

#[test]
fn an_own_write_that_cannot_be_decoded_is_told_until_the_store_shows_it() {
    let mut case = Case::new(&[PODS]);
    case.hold("a", 4);
    case.change(7, Selection::Selected);
    (case.stores.0[0].version, case.stores.0[0].undecodable) = (7, vec![pod()]);
    assert!(
        matches!(&case.missing()[..], [Missing::Undecodable { cause, .. }] if cause == "spec: no number")
    );
    case.hold("a", 7);
    assert!(case.is_caught_up(), "it is a later state that cannot be decoded");
}

#[test]
fn what_nobody_asks_for_again_is_swept() {
    let mut case = Case::new(&[PODS]);
    let mut most = 0;
    for n in 0..10_000u64 {
        let key = ObjectKey::namespaced("shop", &n.to_string());
        let write = Write {
            resource: PODS,
            verb: Verb::Create,
            namespace: "shop".into(),
            name: None,
            uid: None,
        };
        let ticket = case.writes.begin(key, write, &case.stores);
        let answer = Answer::Object(written(&n.to_string(), n));
        case.writes.answered(ticket, answer, |_| Selection::Selected, &case.stores);
        case.stores.0[0].version = n;
        case.writes.sweep(&case.stores);
        most = most.max(case.writes.remembered());
    }
    assert!(most <= FIRST_SWEEP, "{most}");
}

#[test]
fn what_was_forgotten_is_not_remembered_by_its_answer() {
    let mut case = Case::new(&[PODS]);
    let ticket = case.begin(Verb::Create, Some("web-0"), None);
    case.writes.forget_all();
    case.answer(ticket, Answer::Object(written("a", 7)));
    assert!(case.is_caught_up());
}
