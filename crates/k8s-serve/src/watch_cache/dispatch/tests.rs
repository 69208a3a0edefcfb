//! Rules that one short history shows; the others are in [`model`].

mod model;

use bytes::Bytes;
use informer_core::ObjectKey;
use informer_core::wire::{Encoding, Wire};

use super::*;
use crate::form::{Form, FormKind, Shape};
use crate::resource::Resource;
use crate::writer::Writer;

/// An object, as far as it is selected by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pod {
    key: ObjectKey,
    version: u64,
    app: Option<&'static str>,
    node: &'static str,
}

impl Pod {
    fn new(namespace: &str, name: &str, version: u64) -> Self {
        Self { key: ObjectKey::namespaced(namespace, name), version, app: None, node: "" }
    }
}

impl Object for Pod {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.app.filter(|_| key == "app")
    }

    fn field(&self, path: &str) -> std::borrow::Cow<'_, str> {
        match path {
            "metadata.name" => self.key.name().into(),
            "metadata.namespace" => self.key.namespace().into(),
            "spec.nodeName" => self.node.into(),
            _ => "".into(),
        }
    }

    /// As many bytes as the version says, up to 300.
    fn wire(&self) -> Wire<'_> {
        let length = usize::try_from(self.version * 37 % 300).unwrap_or_default();
        Wire { encoding: Encoding::Json, bytes: &[b'x'; 300][..length] }
    }
}

fn pods() -> Resource {
    Resource { namespaced: true, ..Resource::new("", "v1", "pods", "Pod") }
}

fn interest(namespace: Option<&str>, query: &str) -> Arc<Interest> {
    Interest::of_query(&pods(), namespace, query).unwrap()
}

/// `a/x` is created at a version.
fn created(version: u64) -> Change<Pod> {
    Change { version, before: None, after: Some(Pod::new("a", "x", version)) }
}

#[test]
fn what_nobody_reads_is_not_kept_for_a_watcher_that_does_not_read_either() {
    let mut dispatch = Dispatch::new(0, Capacity::Changes(10));
    let mut place = dispatch.enter(0, &interest(None, "")).unwrap();
    for version in 1..=1000 {
        dispatch.push(version, [created(version)]);
    }
    assert!(dispatch.selections[&place.selection].hits.len() <= 11);
    assert!(dispatch.read(&mut place, Room::ALL).is_err());
}

#[test]
fn more_than_the_log_holds_at_once_is_lost_to_those_that_were_current_too() {
    let mut dispatch = Dispatch::new(0, Capacity::Changes(2));
    let everything = interest(None, "");
    // Two, so that what both have read stays noted.
    let mut places = [(); 2].map(|()| dispatch.enter(0, &everything).unwrap());
    let mut selective = dispatch.enter(0, &interest(Some("b"), "")).unwrap();
    dispatch.push(1, [created(1)]);
    for place in &mut places {
        assert_eq!(dispatch.read(place, Room::ALL).unwrap().changes.len(), 1);
    }
    dispatch.push(6, (2..=6).map(created));
    for place in &mut places {
        assert!(dispatch.read(place, Room::ALL).is_err(), "changes 2 to 4 are lost silently");
    }
    assert!(dispatch.read(&mut selective, Room::ALL).unwrap().changes.is_empty());
}

#[test]
fn encoded_events_are_bounded_and_go_before_changes_do() {
    let mut dispatch = Dispatch::new(0, Capacity::Bytes(20_000));
    let everything = interest(None, "");
    let mut place = dispatch.enter(0, &everything).unwrap();
    for version in 1..=10 {
        dispatch.push(version, [created(version)]);
    }
    let writer = Writer::new(Arc::new(pods()), Form(FormKind::Json(Shape::Full)), None);
    let events = dispatch.read(&mut place, Room::ALL).unwrap();
    for (event, logged) in &events.changes {
        let encoded = || Ok(Bytes::from(vec![b'x'; 3_000]));
        logged.encoded(*event, writer.rendering(), encoded).unwrap();
    }
    drop(events);
    let held = dispatch.weight();
    assert!((13_000..=20_000).contains(&held), "{held} bytes are held");
    dispatch.push(11, [created(11)]);
    let held = dispatch.weight();
    assert!((10_000..13_500).contains(&held), "{held} bytes are left");
    assert_eq!(dispatch.read(&mut place, Room::ALL).unwrap().changes.len(), 1);
    // The changes are all there.
    let mut late = dispatch.enter(0, &everything).unwrap();
    assert_eq!(dispatch.read(&mut late, Room::ALL).unwrap().changes.len(), 11);
}

#[test]
fn what_is_lost_to_others_is_no_loss_to_a_selection() {
    let mut dispatch = Dispatch::new(0, Capacity::Changes(5));
    let mut selective = dispatch.enter(0, &interest(Some("b"), "")).unwrap();
    let mut all = dispatch.enter(0, &interest(None, "")).unwrap();
    for version in 1..=100 {
        let woken = dispatch.push(version, [created(version)]);
        assert_eq!(woken, [all.selection]);
    }
    assert_eq!(dispatch.progress(&mut selective), Some(100));
    assert!(dispatch.read(&mut selective, Room::ALL).unwrap().changes.is_empty());
    assert!(dispatch.read(&mut all, Room::ALL).is_err());
}

#[test]
fn what_another_history_has_dropped_is_no_loss() {
    let mut dispatch = Dispatch::new(100, Capacity::Changes(1));
    let everything = interest(None, "");
    let mut slow = dispatch.enter(100, &everything).unwrap();
    dispatch.push(110, [created(109), created(110)]);
    assert!(dispatch.read(&mut slow, Room::ALL).is_err());
    dispatch.restart(50);
    assert!(dispatch.enter(53, &everything).is_err(), "53 is of the other history, as 110 is");
    assert!(dispatch.enter(110, &everything).is_err());
    let mut ahead = dispatch.enter(113, &everything).unwrap();
    for version in 111..=113 {
        dispatch.push(version, [created(version)]);
    }
    assert!(dispatch.read(&mut ahead, Room::ALL).unwrap().changes.is_empty());
    assert_eq!(dispatch.progress(&mut ahead), Some(113));
}

#[test]
fn what_leaves_a_selection_within_a_gap_comes_before_all_that_changed() {
    let mut dispatch = Dispatch::new(10, Capacity::Changes(100));
    let with = |app, name, version| Some(Pod { app, ..Pod::new("a", name, version) });
    let mut web = dispatch.enter(10, &interest(None, "labelSelector=app%3Dweb")).unwrap();
    let mut all = dispatch.enter(10, &interest(None, "")).unwrap();
    let changes = [
        Change { version: 15, before: None, after: with(Some("web"), "y", 15) },
        Change { version: 17, before: with(Some("web"), "x", 9), after: with(None, "x", 17) },
    ];
    dispatch.relist(20, changes.clone());
    let mut told = |place: &mut Place| {
        let events = dispatch.read(place, Room::ALL).unwrap();
        let told = events.changes.iter().map(|(event, it)| (*event, it.change().version));
        (told.collect::<Vec<_>>(), events.mark)
    };
    // It may have left at 12, and be changed again at 17.
    let of_web = vec![(EventType::Deleted, 10), (EventType::Added, 15)];
    assert_eq!(told(&mut web), (of_web, Some(20)));
    let of_all = vec![(EventType::Added, 15), (EventType::Modified, 17)];
    assert_eq!(told(&mut all), (of_all, Some(20)));
    let known = dispatch.changes_after(10).unwrap();
    assert!(known.iter().map(|it| it.change()).eq(&changes));
}

#[test]
fn who_leaves_leaves_nothing_behind() {
    let mut dispatch = Dispatch::<Pod>::new(0, Capacity::Changes(5));
    let empty = format!("{:?}", dispatch.index);
    let interests = model::INTERESTS.map(|(namespace, query, _)| interest(namespace, query));
    let enter = |dispatch: &mut Dispatch<Pod>| {
        let twice = interests.iter().chain(&interests);
        twice.map(|it| dispatch.enter(0, it).unwrap()).collect::<Vec<_>>()
    };
    let places = enter(&mut dispatch);
    assert_eq!((dispatch.selections(), dispatch.watchers()), (interests.len(), places.len()));
    let last = places.iter().filter(|place| dispatch.leave(place)).count();
    assert_eq!(last, interests.len());
    assert_eq!((dispatch.selections(), dispatch.watchers()), (0, 0));
    assert!(dispatch.ids.is_empty());
    assert_eq!(format!("{:?}", dispatch.index), empty);
}
