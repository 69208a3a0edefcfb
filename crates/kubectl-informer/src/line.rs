//! The lines of `watch`: one for each event.

mod changes;

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use clap::ColorChoice;
use informer::diff::TextStyle;
use informer::{Deleted, Event, FieldPath, FinalState, ObjectKey, Resource, UpdateReason};
use jiff::Timestamp;
use k8s_serve::table::age_of;
use serde::Serialize;

use crate::args::WatchOutput;
use crate::object::{Object, changed_paths, full_name};

/// How many changed fields a line names.
const NAMED_CHANGES: usize = 8;

/// How lines look.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineFormat {
    pub(crate) output: Option<WatchOutput>,
    /// Whether lines say which resource they are about.
    pub(crate) with_resource: bool,
    /// Whether changes of fields have colors.
    pub(crate) color: ColorChoice,
}

/// What an event is, in the words of the lines.
struct Facts<'a> {
    word: &'static str,
    object: &'a Object,
    /// What it was before an update.
    old: Option<&'a Object>,
    /// What was shown of it before a delete, if that was not its last state.
    earlier: Option<&'a Object>,
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
        event: &Event<Object>,
        now: Timestamp,
        style: &TextStyle,
    ) {
        let facts = Facts::of(event);
        match self.output {
            Some(WatchOutput::Json) => {
                text.push_str(&facts.json(resource));
                text.push('\n');
            }
            Some(WatchOutput::Diff) => changes::append(text, resource, &facts, now, style),
            Some(WatchOutput::Wide | WatchOutput::Name) | None => {
                self.line(text, resource, event.key(), &facts, now);
            }
        }
    }

    fn line(
        self,
        text: &mut String,
        resource: &Resource,
        key: &ObjectKey,
        facts: &Facts<'_>,
        now: Timestamp,
    ) {
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
    fn of(event: &'a Event<Object>) -> Self {
        let plain = |word, object| Self {
            word,
            object,
            old: None,
            earlier: None,
            initial: false,
            resync: false,
            unknown: false,
        };
        match event {
            Event::Added { object, initial, .. } => {
                Self { initial: *initial, ..plain("add", object) }
            }
            Event::Updated { new, reason: UpdateReason::Resync, .. } => {
                Self { resync: true, ..plain("update", new) }
            }
            Event::Updated { old, new, reason: UpdateReason::Change, .. } => {
                Self { old: Some(old), ..plain("update", new) }
            }
            Event::Deleted(Deleted { old, last, final_state, .. }) => Self {
                unknown: *final_state == FinalState::Unknown,
                earlier: (!Arc::ptr_eq(old, last)).then_some(&**old),
                ..plain("delete", last)
            },
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
        let mut column = |name: &str, value: &str| {
            let _ = write!(text, " {name}={value}");
        };
        column("version", &self.object.resource_version());
        if let Some(created) = CREATED.as_ref().and_then(|it| self.object.field(it)) {
            column("age", &age_of(&created, now));
        }
        column("uid", &self.object.uid());
        let mut labels = self.object.labels();
        labels.sort_unstable();
        if !labels.is_empty() {
            let labels: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            column("labels", &labels.join(","));
        }
        let Some(old) = self.old else { return };
        match changed_paths(old, self.object, NAMED_CHANGES) {
            Ok(changed) if changed.is_empty() => {}
            Ok(changed) => column("changed", &changed.join(",")),
            Err(error) => tracing::warn!(name = full_name(old), %error, "cannot tell what changed"),
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
            object: Option<&'a Object>,
            #[serde(skip_serializing_if = "Option::is_none")]
            old: Option<&'a Object>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<String>,
        }
        let mut line = Line {
            r#type: self.word,
            resource: resource.to_string(),
            initial: self.initial,
            resync: self.resync,
            final_state_unknown: self.unknown,
            object: Some(self.object),
            old: self.old,
            error: None,
        };
        let text = serde_json::to_string(&line).or_else(|error| {
            let error = format!("{}: {error}", full_name(self.object));
            line = Line { object: None, old: None, error: Some(error), ..line };
            serde_json::to_string(&line)
        });
        // What an object has of line ends stands between its members: a server may send it
        // indented.
        text.unwrap_or_default().replace(['\r', '\n'], " ")
    }
}

/// When objects were created.
static CREATED: LazyLock<Option<FieldPath>> =
    LazyLock::new(|| "metadata.creationTimestamp".parse().ok());

#[cfg(test)]
mod tests {
    use k8s_protobuf::encode;
    use serde_json::{Value, json};

    use super::*;

    /// The lines of objects that are kept as JSON; those that are kept as protobuf have the same.
    fn lines(format: LineFormat) -> String {
        let in_json =
            lines_of(format, |it| Object::from_json(format!("{it:#}").as_bytes()).unwrap());
        let in_protobuf = lines_of(format, |it| {
            let mut bytes = Vec::new();
            encode::object(it, &mut bytes).unwrap();
            Object::from_protobuf(&bytes).unwrap()
        });
        if format.output != Some(WatchOutput::Json) {
            assert_eq!(in_json, in_protobuf);
        }
        in_json
    }

    fn lines_of(format: LineFormat, keep: impl Fn(&Value) -> Object) -> String {
        let resource = Resource {
            group: "apps".into(),
            version: "v1".into(),
            plural: "deployments".into(),
            kind: "Deployment".into(),
            namespaced: true,
        };
        let object = |version: &str, replicas: i64| {
            let value = json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": version,
                    "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"tier": "x", "app": "web"}},
                "spec": {"replicas": replicas},
            });
            Arc::new(keep(&value))
        };
        let key = ObjectKey::namespaced("shop", "web");
        let (old, new) = (object("1", 1), object("2", 2));
        let deleted = |final_state| {
            Event::Deleted(Deleted {
                key: key.clone(),
                old: old.clone(),
                last: new.clone(),
                final_state,
            })
        };
        let updated = |old: &Arc<Object>, reason| Event::Updated {
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
            format.append(&mut text, &resource, event, now, &TextStyle::default());
        }
        text
    }

    #[test]
    fn plain_lines() {
        insta::assert_snapshot!(lines(LineFormat { output: None, with_resource: false, ..LineFormat::default() }), @r"
        add shop/web (initial)
        add shop/web
        update shop/web
        update shop/web (resync)
        delete shop/web
        delete shop/web (final state unknown)
        ");
        let several =
            lines(LineFormat { output: None, with_resource: true, ..LineFormat::default() });
        assert_eq!(several.lines().next(), Some("add shop/web deployments.apps (initial)"));
    }

    #[test]
    fn bare_and_wide_lines() {
        let bare = lines(LineFormat {
            output: Some(WatchOutput::Name),
            with_resource: true,
            ..LineFormat::default()
        });
        assert!(bare.lines().all(|it| it.split(' ').count() == 2), "{bare}");
        insta::assert_snapshot!(lines(LineFormat { output: Some(WatchOutput::Wide), with_resource: false, ..LineFormat::default() }), @r"
        add shop/web deployments.apps version=1 age=60s uid=u-1 labels=app=web,tier=x (initial)
        add shop/web deployments.apps version=1 age=60s uid=u-1 labels=app=web,tier=x
        update shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web,tier=x changed=spec.replicas
        update shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web,tier=x (resync)
        delete shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web,tier=x
        delete shop/web deployments.apps version=2 age=60s uid=u-1 labels=app=web,tier=x (final state unknown)
        ");
    }

    #[test]
    fn lines_with_changes_below() {
        let format = LineFormat { output: Some(WatchOutput::Diff), ..LineFormat::default() };
        insta::assert_snapshot!(lines(format), @r"
        00:01:00Z add shop/web deployments.apps (initial)
        00:01:00Z add shop/web deployments.apps
        00:01:00Z update shop/web deployments.apps
          ~ spec.replicas: 1 -> 2
        00:01:00Z update shop/web deployments.apps (resync)
        00:01:00Z delete shop/web deployments.apps
          ~ spec.replicas: 1 -> 2
        00:01:00Z delete shop/web deployments.apps (final state unknown)
          ~ spec.replicas: 1 -> 2
        ");
    }

    #[test]
    fn json_lines() {
        let text = lines(LineFormat {
            output: Some(WatchOutput::Json),
            with_resource: false,
            ..LineFormat::default()
        });
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

    #[test]
    fn what_cannot_be_read_is_told_in_its_line() {
        let broken = Arc::new(crate::object::tests::broken());
        let event = Event::Added {
            key: ObjectKey::namespaced("x", "broken"),
            object: broken,
            initial: false,
        };
        let resource = Resource::of::<k8s_openapi::api::core::v1::Pod>();
        let mut text = String::new();
        let format = LineFormat {
            output: Some(WatchOutput::Json),
            with_resource: false,
            ..LineFormat::default()
        };
        format.append(&mut text, &resource, &event, Timestamp::now(), &TextStyle::default());
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["type"], &line["object"]), (&json!("add"), &Value::Null), "{text}");
        assert!(line["error"].as_str().unwrap().starts_with("x/broken: "), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
