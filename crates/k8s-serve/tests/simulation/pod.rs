//! The objects: as the API server sends them, and as a replica serves them.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use informer_core::ObjectKey;
use informer_core::ingest::{Decoder, Phase, Undecodable};
use informer_core::wire::{Encoding, ObjectHead, Wire};
use k8s_serve::Object;

/// What an object is selected by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) app: Option<&'static str>,
    pub(crate) node: &'static str,
}

pub(crate) const APPS: [Option<&str>; 3] = [None, Some("web"), Some("db")];
pub(crate) const NODES: [&str; 3] = ["", "node1", "node2"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) key: ObjectKey,
    pub(crate) uid: u64,
    pub(crate) version: u64,
    /// Tells this state from all others of all histories.
    pub(crate) stamp: u64,
    pub(crate) look: Look,
    json: Bytes,
}

/// What the store and the watch cache hold.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) Arc<Pod>);

pub(crate) struct PodDecoder;

impl Pod {
    pub(crate) fn new(key: ObjectKey, uid: u64, version: u64, stamp: u64, look: Look) -> Self {
        let (namespace, name) = (key.namespace(), key.name());
        let app = APPS.iter().position(|it| *it == look.app).unwrap_or_default();
        let node = NODES.iter().position(|it| *it == look.node).unwrap_or_default();
        // The rest stands in one label, which is quick to find.
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"u{uid}","resourceVersion":"{version}","labels":{{"it":"{uid}-{stamp}-{app}-{node}"}}}}}}"#
        );
        Self { key, uid, version, stamp, look, json: json.into() }
    }

    pub(crate) fn json(&self) -> Bytes {
        self.json.clone()
    }
}

impl Decoder for PodDecoder {
    type Object = Pod;

    fn decode(&mut self, object: Wire<'_>, head: &ObjectHead<'_>) -> Result<Pod, Undecodable> {
        let of = |text: &str| {
            let mut parts = text.split('-').map(|it| it.parse::<u64>().expect("a number"));
            [(); 4].map(|()| parts.next().expect("four numbers"))
        };
        let failed = || Undecodable { phase: Phase::Decode, cause: String::new() };
        let [uid, stamp, app, node] = of(object.label("it").ok_or_else(failed)?);
        let version = head.version.number().ok_or_else(failed)?;
        let at = |it: u64| usize::try_from(it).expect("an index");
        let look = Look { app: APPS[at(app)], node: NODES[at(node)] };
        Ok(Pod::new(head.key(), uid, version, stamp, look))
    }
}

impl Object for Shared {
    fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    fn version(&self) -> u64 {
        self.0.version
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.0.look.app.filter(|_| key == "app")
    }

    fn field(&self, path: &str) -> Cow<'_, str> {
        match path {
            "metadata.name" => self.0.key.name().into(),
            "metadata.namespace" => self.0.key.namespace().into(),
            "spec.nodeName" => self.0.look.node.into(),
            _ => "".into(),
        }
    }

    fn wire(&self) -> Wire<'_> {
        Wire { encoding: Encoding::Json, bytes: &self.0.json }
    }
}
