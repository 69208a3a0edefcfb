//! The lines of `watch`: one for each event.

use std::fmt::Write;

use informer::{Deleted, Event, FinalState, Resource, UpdateReason};
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde::Serialize;

use crate::age;
use crate::args::WatchOutput;
use crate::object::{Full, changed_paths};

/// How many changed fields a line names.
const NAMED_CHANGES: usize = 8;

/// How lines look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineFormat {
    pub(crate) output: Option<WatchOutput>,
    /// Whether lines say which resource they are about.
    pub(crate) with_resource: bool,
}

/// What an event is, in the words of the lines.
struct Facts<'a> {
    word: &'static str,
    object: &'a DynamicObject,
    old: Option<&'a DynamicObject>,
    initial: bool,
    resync: bool,
    unknown: bool,
}

impl LineFormat {
    /// Appends the line of one event.
    pub(crate) fn append(
        self,
        text: &mut String,
        resource: &Resource,
        event: &Event<DynamicObject>,
        now: Timestamp,
    ) {
        let facts = Facts::of(event);
        if self.output == Some(WatchOutput::Json) {
            text.push_str(&facts.json(resource));
            text.push('\n');
            return;
        }
        let key = event.key();
        text.push_str(facts.word);
        text.push(' ');
        if !key.namespace().is_empty() {
            text.push_str(key.namespace());
            text.push('/');
        }
        text.push_str(key.name());
        if self.output != Some(WatchOutput::Name) {
            if self.with_resource || self.output == Some(WatchOutput::Wide) {
                // Writing to a string does not fail.
                let _ = write!(text, " {}", resource.group_resource());
            }
            if self.output == Some(WatchOutput::Wide) {
                facts.wide(text, now);
            }
            facts.marks(text);
        }
        text.push('\n');
    }
}

impl<'a> Facts<'a> {
    fn of(event: &'a Event<DynamicObject>) -> Self {
        let plain =
            |word, object| Self { word, object, old: None, initial: false, resync: false, unknown: false };
        match event {
            Event::Added { object, initial, .. } => Self { initial: *initial, ..plain("add", object) },
            Event::Updated { new, reason: UpdateReason::Resync, .. } => {
                Self { resync: true, ..plain("update", new) }
            }
            Event::Updated { old, new, reason: UpdateReason::Change, .. } => {
                Self { old: Some(old), ..plain("update", new) }
            }
            Event::Deleted(Deleted { last, final_state, .. }) => {
                Self { unknown: *final_state == FinalState::Unknown, ..plain("delete", last) }
            }
        }
    }

    fn marks(&self, text: &mut String) {
        let marks = [
            (self.initial, " (initial)"),
            (self.resync, " (resync)"),
            (self.unknown, " (final state unknown)"),
        ];
        for (_, mark) in marks.iter().filter(|(applies, _)| *applies) {
            text.push_str(mark);
        }
    }

    fn wide(&self, text: &mut String, now: Timestamp) {
        let metadata = &self.object.metadata;
        let mut column = |name: &str, value: &str| {
            let _ = write!(text, " {name}={value}");
        };
        column("version", metadata.resource_version.as_deref().unwrap_or_default());
        if let Some(created) = &metadata.creation_timestamp {
            column("age", &age::age(created.0, now));
        }
        column("uid", metadata.uid.as_deref().unwrap_or_default());
        let labels: Vec<String> =
            metadata.labels.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
        if !labels.is_empty() {
            column("labels", &labels.join(","));
        }
        if let Some(old) = self.old {
            let changed = changed_paths(old, self.object, NAMED_CHANGES);
            if !changed.is_empty() {
                column("changed", &changed.join(","));
            }
        }
    }

    fn json(&self, resource: &Resource) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            r#type: &'static str,
            resource: String,
            initial: bool,
            resync: bool,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            final_state_unknown: bool,
            object: Full<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            old: Option<Full<'a>>,
        }
        let line = Line {
            r#type: self.word,
            resource: resource.to_string(),
            initial: self.initial,
            resync: self.resync,
            final_state_unknown: self.unknown,
            object: Full::new(resource, self.object),
            old: self.old.map(|it| Full::new(resource, it)),
        };
        // Objects have string keys and finite numbers only: they came from JSON.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use informer::ObjectKey;
    use serde_json::{Value, json};

    use super::*;

    fn lines(format: LineFormat) -> String {
        let resource = Resource {
            group: "apps".into(),
            version: "v1".into(),
            plural: "deployments".into(),
            kind: "Deployment".into(),
            namespaced: true,
        };
        let object = |version: &str, replicas: i64| -> Arc<DynamicObject> {
            Arc::new(
                serde_json::from_value(json!({
                    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": version,
                        "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}},
                    "spec": {"replicas": replicas},
                }))
                .unwrap(),
            )
        };
        let key = ObjectKey::namespaced("shop", "web");
        let (old, new) = (object("1", 1), object("2", 2));
        let deleted =
            |final_state| Event::Deleted(Deleted { key: key.clone(), last: new.clone(), final_state });
        let updated = |old: &Arc<DynamicObject>, reason| Event::Updated {
            key: key.clone(),
            old: old.clone(),
            new: new.clone(),
            reason,
        };
        let events = [
            Event::Added { key: key.clone(), object: old.clone(), initial: true },
            Event::Added { key: key.clone(), object: old.clone(), initial: false },
            updated(&old, UpdateReason::Change),
            updated(&new, UpdateReason::Resync),
            deleted(FinalState::Known),
            deleted(FinalState::Unknown),
        ];
        let mut text = String::new();
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        for event in &events {
            format.append(&mut text, &resource, event, now);
        }
        text
    }

    #[test]
    fn plain_lines() {
        insta::assert_snapshot!(lines(LineFormat { output: None, with_resource: false }), @r"
        add shop/web (initial)
        add shop/web
        update shop/web
        update shop/web (resync)
        delete shop/web
        delete shop/web (final state unknown)
        ");
        let several = lines(LineFormat { output: None, with_resource: true });
        assert_eq!(several.lines().next(), Some("add shop/web deployments.apps (initial)"));
    }

    #[test]
    fn bare_and_wide_lines() {
        let bare = lines(LineFormat { output: Some(WatchOutput::Name), with_resource: true });
        assert!(bare.lines().all(|it| it.split(' ').count() == 2), "{bare}");
        insta::assert_snapshot!(lines(LineFormat { output: Some(WatchOutput::Wide), with_resource: false }), @r"
        add shop/web deployments.apps version=1 age=60s uid=u-1 labels=app=web (initial)
        add shop/web deployments.apps version=1 age=60s uid=u-1 labels=app=web
        update shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web changed=spec.replicas
        update shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web (resync)
        delete shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web
        delete shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web (final state unknown)
        ");
    }

    #[test]
    fn json_lines() {
        let text = lines(LineFormat { output: Some(WatchOutput::Json), with_resource: false });
        let parsed: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(parsed[0]["type"], "add");
        assert_eq!(parsed[0]["initial"], true);
        assert_eq!(parsed[1]["initial"], false);
        assert_eq!(parsed[2]["object"]["spec"]["replicas"], 2);
        assert_eq!(parsed[2]["old"]["spec"]["replicas"], 1);
        assert_eq!(parsed[2]["object"]["kind"], "Deployment");
        assert_eq!((&parsed[3]["resync"], &parsed[3]["old"]), (&json!(true), &Value::Null));
        assert_eq!(parsed[5]["finalStateUnknown"], true);
    }
}
