//! Tables: the cells of any object of any kind, and JSONPaths.

use jiff::Timestamp;
use k8s_serve::table::Columns;
use serde_json::{Value, json};

const KINDS: [(&str, &str); 16] = [
    ("", "Pod"),
    ("", "Node"),
    ("", "Service"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "PersistentVolumeClaim"),
    ("", "ResourceQuota"),
    ("apps", "Deployment"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "Ingress"),
    ("resource.k8s.io", "ResourcePoolStatusRequest"),
    ("example.com", "Widget"),
];

/// A line with a type and a path, then an object. The row of what is read for the columns is that
/// of the whole object.
pub fn tables(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((column, object)) = text.split_once('\n') else { return };
    let (column_type, path) = column.split_once(' ').unwrap_or(("string", column));
    let Ok(object) = serde_json::from_str::<Value>(object) else { return };
    let definition = json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": [
        {"name": "A", "type": column_type, "jsonPath": path},
    ]}]}});
    let custom = Columns::of_definition(&definition, "v1").expect("the version is there");
    let built_in = KINDS.map(|(group, kind)| Columns::of_kind(group, kind));
    for columns in std::iter::once(custom).chain(built_in) {
        let row = columns.row(&object, Timestamp::UNIX_EPOCH);
        assert!(row.cells.len() >= columns.definitions().len(), "{row:?}");
        let read = columns.read(&object).expect("any value can be read");
        assert_eq!(columns.row(&read, Timestamp::UNIX_EPOCH), row);
    }
}
