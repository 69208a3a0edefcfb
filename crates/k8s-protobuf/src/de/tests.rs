use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::{encode, from_slice};

fn pod(spec: &Value) -> Vec<u8> {
    let mut body = Vec::new();
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": spec });
    encode::object(&object, &mut body).unwrap();
    body
}

#[test]
fn a_pod_is_decoded_into_its_type() {
    let body = pod(&json!({ "nodeName": "n1", "containers": [{ "name": "web" }, { "name": "log" }] }));
    let pod: Pod = from_slice(&body).unwrap();
    let spec = pod.spec.unwrap();
    assert_eq!(spec.node_name.as_deref(), Some("n1"));
    assert_eq!(spec.containers.iter().map(|container| &*container.name).collect::<Vec<_>>(), ["web", "log"]);
    assert_eq!(spec.containers.capacity(), 2, "the length is known beforehand");
}
