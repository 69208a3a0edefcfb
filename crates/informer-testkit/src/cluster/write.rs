//! The write side: what create, update, patch and delete do to the state.

use std::sync::Arc;

use informer_core::ObjectKey;
use k8s_serve::{Resource, Status};
use serde::Deserialize;
use serde_json::Value;

use super::custom;
use super::patch::{self, PatchKind};
use super::state::{State, fields, mix, now};
use crate::json::Fields;
use crate::object::Object;

/// What a write is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) part: Part,
}

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, where that is a subresource.
    Main,
    /// The status alone.
    Status,
    /// All, status included: what writes from within the process do.
    Whole,
}

/// What a delete may ask for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) preconditions: Preconditions,
    pub(crate) dry_run: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl Target {
    fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(
            if self.resource.namespaced { &self.namespace } else { "" },
            &self.name,
        )
    }
}

impl State {
    /// Creates an object. The name is taken from it, or made from its `generateName`.
    pub(super) fn create(
        &mut self,
        target: &Target,
        mut body: Fields,
        dry_run: bool,
    ) -> Result<Object, Status> {
        let resource = &*target.resource;
        check_type(resource, &body)?;
        let mut metadata = body.object("metadata");
        let mut target = target.clone();
        target.name = self.name(resource, &mut metadata)?;
        if metadata.text("resourceVersion").is_some_and(|v| !v.is_empty())
            && target.part != Part::Whole
        {
            return Err(Status::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        check_namespace(resource, &target.namespace, &mut metadata)?;
        if resource.namespaced {
            self.require_namespace(&target.namespace)?;
        }
        if self.get(resource, &target.key()).is_some() {
            return Err(Status::already_exists(resource, &target.name));
        }

        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
            metadata.remove(field);
        }
        metadata.set("uid", &self.next_uid().into());
        metadata.set("creationTimestamp", &now().into());
        if counts_generations(resource) {
            metadata.set("generation", &1.into());
        }
        if target.part == Part::Main && resource.has_status {
            body.remove("status");
            set_first_status(resource, &mut metadata, &mut body);
        }
        if custom::defines_resources(resource) {
            custom::accept(&target.name, &mut body)?;
        }
        if dry_run {
            return self.assemble(resource, metadata, body);
        }
        let object = self.put(resource, metadata, body)?;
        self.follow_definitions(resource);
        Ok(object)
    }

    /// Replaces an object, or its status.
    pub(super) fn update(
        &mut self,
        target: &Target,
        body: Fields,
        dry_run: bool,
    ) -> Result<Object, Status> {
        let resource = &*target.resource;
        check_type(resource, &body)?;
        let mut metadata = body.object("metadata");
        check_namespace(resource, &target.namespace, &mut metadata)?;
        match metadata.text("name") {
            Some(name) if name != target.name => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    target.name
                )));
            }
            _ => metadata.set("name", &target.name.as_str().into()),
        }
        let before = self.existing(target)?;
        if resource.custom
            && target.part != Part::Whole
            && metadata.text("resourceVersion").is_none_or(|v| v.is_empty())
        {
            let fault = "Invalid value: 0x0: must be specified for an update";
            return Err(Status::invalid(
                &resource.group,
                &resource.kind,
                &target.name,
                "metadata.resourceVersion",
                fault,
            ));
        }
        self.replace(target, &before, metadata, body, dry_run)
    }

    /// Changes parts of an object.
    pub(super) fn patch(
        &mut self,
        target: &Target,
        kind: PatchKind,
        patch: &Value,
        dry_run: bool,
    ) -> Result<Object, Status> {
        let before = match (self.existing(target), kind) {
            (Ok(before), _) => before,
            (Err(_), PatchKind::Apply) if target.part != Part::Status => {
                let mut body = fields(patch);
                let mut metadata = body.object("metadata");
                metadata.set("name", &target.name.as_str().into());
                body.set_object("metadata", &metadata);
                return self.create(target, body, dry_run);
            }
            (Err(status), _) => return Err(status),
        };
        let mut value: Value = serde_json::from_slice(before.json())
            .map_err(|error| Status::new(500, "InternalError", error.to_string()))?;
        // A version in the patch is a precondition, the one of the object is not.
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        patch::apply(kind, &mut value, patch).map_err(|fault| {
            Status::new(422, "Invalid", fault).about(&target.resource, &target.name)
        })?;
        let body = fields(&value);
        check_type(&target.resource, &body)?;
        let metadata = body.object("metadata");
        self.replace(target, &before, metadata, body, dry_run)
    }

    /// Deletes an object; one with finalizers is only marked. Returns it and whether it is gone.
    pub(super) fn delete(
        &mut self,
        target: &Target,
        options: &DeleteOptions,
        dry_run: bool,
    ) -> Result<(Object, bool), Status> {
        let resource = &*target.resource;
        let before = self.existing(target)?;
        let wanted = &options.preconditions;
        let precondition = |name: &str, wanted: &str, is: &str| {
            let why = format!(
                "Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {is}"
            );
            Err(Status::conflict(resource, &target.name, &why))
        };
        let (uid, version) = (before.uid().to_string(), before.version().to_string());
        match (&wanted.uid, &wanted.resource_version) {
            (Some(wanted), _) if *wanted != uid => return precondition("UID", wanted, &uid),
            (_, Some(wanted)) if *wanted != version => {
                return precondition("ResourceVersion", wanted, &version);
            }
            _ => {}
        }
        let (mut metadata, rest) = before.fields();
        let finalizers: Vec<String> =
            metadata.read("finalizers").ok().flatten().unwrap_or_default();
        if dry_run || !options.dry_run.is_empty() {
            return Ok((before, finalizers.is_empty()));
        }
        if !finalizers.is_empty() {
            if metadata.raw("deletionTimestamp").is_some() {
                return Ok((before, false));
            }
            metadata.set("deletionTimestamp", &now().into());
            metadata.set("deletionGracePeriodSeconds", &0.into());
            return Ok((self.put(resource, metadata, rest)?, false));
        }
        Ok((self.remove(resource, &before), true))
    }

    /// Takes an object out, and with it what cannot be without it: the content of a namespace, the
    /// objects of a definition.
    fn remove(&mut self, resource: &Resource, object: &Object) -> Object {
        if resource.name() == "namespaces" {
            self.empty_namespace(object.key().name());
        }
        if custom::defines_resources(resource) {
            self.delete_defined(object);
        }
        let last = self.take(resource, object.key()).unwrap_or_else(|| object.clone());
        self.follow_definitions(resource);
        last
    }

    fn empty_namespace(&mut self, namespace: &str) {
        for resource in self.resources.iter().filter(|r| r.namespaced).cloned().collect::<Vec<_>>()
        {
            let keys: Vec<ObjectKey> =
                self.collection(&resource).map_or_else(Vec::new, |collection| {
                    collection
                        .iter()
                        .map(Object::key)
                        .filter(|key| key.namespace() == namespace)
                        .cloned()
                        .collect()
                });
            for key in keys {
                self.take(&resource, &key);
            }
        }
    }

    /// Stores what shall become of an object.
    fn replace(
        &mut self,
        target: &Target,
        before: &Object,
        mut metadata: Fields,
        mut rest: Fields,
        dry_run: bool,
    ) -> Result<Object, Status> {
        let resource = &*target.resource;
        let version = metadata.text("resourceVersion").map(|v| v.into_owned()).unwrap_or_default();
        if !version.is_empty() && version != "0" && version != before.version().to_string() {
            return Err(Status::stale(resource, &target.name));
        }
        if let Some(uid) =
            metadata.text("uid").filter(|uid| !uid.is_empty() && **uid != before.uid().to_string())
        {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                before.uid()
            );
            return Err(Status::conflict(resource, &target.name, &why));
        }
        let (old_metadata, old_rest) = before.fields();
        for name in ["apiVersion", "kind", "metadata"] {
            rest.remove(name);
        }
        match target.part {
            Part::Whole => {}
            Part::Main if resource.has_status => rest.copy_from(&old_rest, "status"),
            Part::Main => {}
            Part::Status => {
                let status = rest;
                rest = old_rest.clone();
                rest.copy_from(&status, "status");
                let managers = metadata;
                metadata = old_metadata.clone();
                if managers.raw("managedFields").is_some() {
                    metadata.copy_from(&managers, "managedFields");
                }
            }
        }
        const KEPT: [&str; 9] = [
            "name",
            "namespace",
            "generateName",
            "selfLink",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
        ];
        for name in KEPT {
            metadata.copy_from(&old_metadata, name);
        }
        if custom::defines_resources(resource) {
            custom::accept(&target.name, &mut rest)?;
        }
        let same_rest = rest.same_as(&old_rest, &[]);
        if same_rest && metadata.same_as(&old_metadata, &["resourceVersion"]) {
            return Ok(before.clone());
        }
        if counts_generations(resource) && !rest.same_as(&old_rest, &["status"]) {
            let generation: u64 =
                old_metadata.read("generation").ok().flatten().unwrap_or_default();
            metadata.set("generation", &(generation + 1).into());
        }
        if dry_run {
            return self.assemble(resource, metadata, rest);
        }
        let finalizers: Vec<String> =
            metadata.read("finalizers").ok().flatten().unwrap_or_default();
        if finalizers.is_empty() && metadata.raw("deletionTimestamp").is_some() {
            // The answer is the object as it was sent, with the version before the deletion.
            let sent = self.assemble(resource, metadata, rest)?.at_version(before.version());
            let last = self.remove(resource, before);
            return Ok(if target.part == Part::Whole { last } else { sent });
        }
        let object = self.put(resource, metadata, rest)?;
        self.follow_definitions(resource);
        Ok(object)
    }

    fn existing(&self, target: &Target) -> Result<Object, Status> {
        self.get(&target.resource, &target.key())
            .cloned()
            .ok_or_else(|| Status::not_found(&target.resource, &target.name))
    }

    /// The name of a new object.
    fn name(&mut self, resource: &Resource, metadata: &mut Fields) -> Result<String, Status> {
        let text = |metadata: &Fields, field: &str| {
            metadata.text(field).map(|text| text.into_owned()).filter(|text| !text.is_empty())
        };
        let name = match (text(metadata, "name"), text(metadata, "generateName")) {
            (Some(name), _) => name,
            (None, Some(prefix)) => {
                const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
                let mut random = mix(self.next_id());
                let suffix: String = (0..5)
                    .map(|_| {
                        let letter = LETTERS[(random % LETTERS.len() as u64) as usize];
                        random /= LETTERS.len() as u64;
                        char::from(letter)
                    })
                    .collect();
                format!("{prefix}{suffix}")
            }
            (None, None) => {
                let fault = "Required value: name or generateName is required";
                return Err(Status::invalid(
                    &resource.group,
                    &resource.kind,
                    "",
                    "metadata.name",
                    fault,
                ));
            }
        };
        // Names in RBAC are otherwise free, as in `system:node-proxier` or `a b`.
        let is_free = resource.group == "rbac.authorization.k8s.io";
        if name.contains(['/', '%'])
            || name.starts_with('.')
            || !is_free && name.contains(char::is_whitespace)
        {
            let fault = format!("Invalid value: {name:?}: must be usable as a path segment");
            return Err(Status::invalid(
                &resource.group,
                &resource.kind,
                &name,
                "metadata.name",
                &fault,
            ));
        }
        metadata.set("name", &name.as_str().into());
        Ok(name)
    }

    fn follow_definitions(&mut self, resource: &Resource) {
        if custom::defines_resources(resource) {
            self.serve_definitions();
        }
    }
}

/// `apiVersion` and `kind` may be missing, but not wrong.
fn check_type(resource: &Resource, body: &Fields) -> Result<(), Status> {
    let expected = resource.api_version();
    match (body.text("apiVersion"), body.text("kind")) {
        (Some(version), _) if version != expected => Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        ))),
        (_, Some(kind)) if kind != resource.kind.as_str() => Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: converting is not possible",
            resource.version, resource.kind
        ))),
        _ => Ok(()),
    }
}

fn check_namespace(
    resource: &Resource,
    namespace: &str,
    metadata: &mut Fields,
) -> Result<(), Status> {
    if !resource.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    match metadata.text("namespace").filter(|own| !own.is_empty()) {
        Some(own) if own != namespace => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        _ => {
            metadata.set("namespace", &namespace.into());
            Ok(())
        }
    }
}

/// What the server itself writes into the status of a new object.
fn set_first_status(resource: &Resource, metadata: &mut Fields, body: &mut Fields) {
    match resource.name().as_str() {
        "pods" => {
            body.set("status", &serde_json::json!({"phase": "Pending", "qosClass": "BestEffort"}))
        }
        "namespaces" => {
            body.set("spec", &serde_json::json!({"finalizers": ["kubernetes"]}));
            body.set("status", &serde_json::json!({"phase": "Active"}));
            let mut labels: std::collections::BTreeMap<String, String> =
                metadata.read("labels").ok().flatten().unwrap_or_default();
            if let Some(name) = metadata.text("name") {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name.into_owned());
            }
            metadata.set("labels", &serde_json::json!(labels));
        }
        _ if !resource.custom => body.set("status", &serde_json::json!({})),
        _ => {}
    }
}

/// Whether `metadata.generation` counts the changes of the spec.
fn counts_generations(resource: &Resource) -> bool {
    const GROUPS: [&str; 5] =
        ["apps", "batch", "policy", "networking.k8s.io", "apiextensions.k8s.io"];
    resource.custom
        || GROUPS.contains(&resource.group.as_str())
        || matches!(resource.name().as_str(), "pods" | "replicationcontrollers")
}
