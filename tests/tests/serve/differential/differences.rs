//! The known differences between the endpoint's answers and the API server's, with their reasons.
//!
//! Each rewrites the API server's answers to the requests that it is about. What comes out must be
//! the endpoint's answers, and none may have been the same without: the list is exact.

use std::fmt::Write;

use http::Method;
use serde_json::{Value, json};

use super::answer::Answer;
use super::requests::Request;

/// One known difference.
pub(crate) struct Difference {
    /// What the endpoint answers, in a sentence.
    pub(crate) what: &'static str,
    /// Why.
    pub(crate) why: &'static str,
    /// Whether it is about this request, whose answer the API server has given.
    pub(crate) is_about: fn(&Request, &Answer) -> bool,
    /// Makes the endpoint's answer of the API server's. What cannot be told beforehand is taken
    /// from the endpoint's, the last argument.
    pub(crate) rewrite: fn(&Request, &mut Answer, &Answer),
}

/// All of them, in the order in which they rewrite.
pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        what: "Warnings that an API version is deprecated are not sent (`Warning: 299 - \"v1 \
            Endpoints is deprecated in v1.33+; …\"`).",
        why: "The list of deprecated versions is a part of the API server and changes with it; \
            answers that are passed on keep their warnings.",
        is_about: |request, _| request.path.starts_with("/api/v1/endpoints"),
        rewrite: |_, answer, _| answer.set_header("warning", None),
    },
    Difference {
        what: "The continue token of a list of Events has a `/` before the first key.",
        why: "The API server keeps no cache of Events and writes their tokens elsewhere than all \
            others, which have it. Both read either form.",
        is_about: |request, _| request.path.ends_with("/events?limit=1"),
        rewrite: |_, answer, _| replace(answer, "'start':'default/", "'start':'/default/"),
    },
    Difference {
        what: "Metadata of DaemonSets and of `autoscaling/v1` HorizontalPodAutoscalers, alone and \
            in tables, has the annotations that the objects have in that version.",
        why: "The API server takes metadata from its internal version, before it converts some \
            fields to annotations (`deprecated.daemonset.template.generation`, \
            `autoscaling.alpha.kubernetes.io/…`); the endpoint holds the converted objects. For \
            the same reason the targets of such an autoscaler are listed in another order.",
        is_about: |request, _| {
            let is_converted = request.path.starts_with("/apis/autoscaling/v1/")
                || request.path == "/apis/apps/v1/daemonsets";
            let accept = request.header("accept").unwrap_or_default();
            is_converted && accept.contains("as=")
        },
        rewrite: |_, answer, through| {
            // All else is compared: the annotations are taken out of the endpoint's answer.
            answer.body = with_annotations(&answer.body, &through.body);
        },
    },
    Difference {
        what: "In JSON, `volumeClaimTemplates` of StatefulSets have neither `kind` nor \
            `apiVersion`.",
        why: "Objects are held as protobuf, which has these only once for each object. Clients \
            that ask for protobuf get the same from both.",
        is_about: |request, _| {
            request.path.starts_with("/apis/apps/v1/statefulsets")
                && request.header("accept").is_none()
        },
        rewrite: |_, answer, _| {
            let kind = "{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",";
            replace(answer, kind, "{");
        },
    },
    Difference {
        what: "A watch from before the endpoint's first list is answered `410 Expired`; clients \
            then list.",
        why: "Changes are known from the first list on, and the list that follows is answered from \
            the cache.",
        is_about: |request, answer| {
            request.path.ends_with("watch=1&timeoutSeconds=1&resourceVersion=1")
                && answer.status == 200
        },
        rewrite: |_, answer, through| {
            // The oldest version is that of the first list.
            let oldest = through.body.first().and_then(|it| it.split(['(', ')']).nth(1));
            let is_number = |it: &&str| it.parse::<u64>().is_ok();
            let oldest = oldest.filter(is_number).unwrap_or("a number");
            let message = format!("too old resource version: 1 ({oldest})");
            let event = json!({ "type": "ERROR", "object": status(410, "Expired", &message) });
            answer.body = vec![event.to_string()];
        },
    },
    Difference {
        what: "A watch that accepts YAML first and JSON second gets JSON.",
        why: "The API server refuses the watch with 406 as soon as YAML is named first.",
        is_about: |request, _| {
            request.is_watch()
                && request.header("accept") == Some("application/yaml,application/json")
        },
        rewrite: |_, answer, through| {
            answer.status = 200;
            answer.set_header("content-type", Some("application/json"));
            answer.body.clone_from(&through.body);
        },
    },
    Difference {
        what: "A watch of a custom resource that accepts only lists of metadata is refused.",
        why: "The API server begins an empty stream, and fails at the first event.",
        is_about: |request, _| {
            let accept = request.header("accept").unwrap_or_default();
            request.is_watch()
                && request.path.starts_with("/apis/differences.example.com/")
                && accept.contains("as=PartialObjectMetadataList")
        },
        rewrite: |_, answer, _| {
            let mut status = status(500, "", "content is not a list");
            status.as_object_mut().map(|it| it.remove("reason"));
            answer.status = 500;
            answer.body = vec![status.to_string()];
        },
    },
    Difference {
        what: "Empty segments of a path are ignored (`/api/v1//pods`), and `%2e%2e` is no name.",
        why: "The API server's router takes `//` for an empty name in some places and for a \
            redirect in others. A path that another server might resolve is not passed on.",
        is_about: |request, _| request.path.contains("//") || request.path.contains("%2e%2e"),
        rewrite: |request, answer, through| {
            answer.status = match &*request.path {
                "/api/v1//pods" => 200,
                "/api/v1/namespaces//pods" | "//api/v1/pods" => 404,
                _ => 400,
            };
            answer.headers.clone_from(&through.headers);
            answer.body.clone_from(&through.body);
        },
    },
    Difference {
        what: "Paths of the form `/api/v1/watch/…` are not found.",
        why: "They are deprecated since Kubernetes 1.11; use the parameter `watch`.",
        is_about: |request, _| {
            request.path.starts_with("/api/v1/watch/") && !request.path.ends_with("/z")
        },
        rewrite: |_, answer, _| {
            let message = "the server could not find the requested resource";
            answer.status = 404;
            let mut status = status(404, "NotFound", message);
            status["details"] = json!({});
            answer.body = vec![status.to_string()];
        },
    },
    Difference {
        what: "`/`, `/healthz`, `/livez` and `/readyz` are the endpoint's own.",
        why: "They tell how the endpoint is, and what it serves.",
        is_about: |request, _| ["/", "/healthz", "/livez", "/readyz"].contains(&&*request.path),
        rewrite: |_, answer, through| {
            answer.headers.clone_from(&through.headers);
            answer.body.clone_from(&through.body);
        },
    },
    Difference {
        what: "`/openapi/v3/` is the same as `/openapi/v3`.",
        why: "Slashes at the end of a path are ignored everywhere.",
        is_about: |request, _| request.path == "/openapi/v3/",
        rewrite: |_, answer, through| {
            answer.status = 200;
            answer.set_header("content-type", through.header("content-type"));
            answer.body.clone_from(&through.body);
        },
    },
    Difference {
        what: "HEAD is answered as GET is, without the body.",
        why: "That is what HTTP says; the API server answers 405.",
        is_about: |request, _| request.method == Method::HEAD,
        rewrite: |_, answer, _| {
            answer.status = 200;
        },
    },
    Difference {
        what: "Every other method is answered 403, not 405.",
        why: "The endpoint writes nothing with its own account, and says so.",
        is_about: |request, _| [Method::OPTIONS, Method::TRACE].contains(&request.method),
        rewrite: |request, answer, _| {
            let message = format!(
                "{} is not answered here: this endpoint reads, with an account of its own; send \
                 writes to the API server itself",
                request.method
            );
            answer.status = 403;
            answer.body = vec![status(403, "Forbidden", &message).to_string()];
        },
    },
];

/// The one that is found by comparing values where the texts differ.
pub(crate) const ORDER_OF_FIELDS: Difference = Difference {
    what: "Objects of built-in kinds have the same fields and values in JSON, in another order in \
        places.",
    why: "Objects are held as protobuf, whose fields come in the order of their numbers. In \
        protobuf, and of custom resources in JSON, the bytes are the API server's.",
    is_about: |_, _| false,
    rewrite: |_, _, _| {},
};

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

fn replace(answer: &mut Answer, from: &str, to: &str) {
    for part in &mut answer.body {
        *part = part.replace(from, to);
    }
}

/// The endpoint's parts, if they are the API server's once their annotations and the order of
/// targets are left out.
fn with_annotations(direct: &[String], through: &[String]) -> Vec<String> {
    let bare = |parts: &[String]| -> Vec<String> {
        parts.iter().map(|part| without_annotations(part)).collect()
    };
    if bare(direct) == bare(through) { through.to_vec() } else { direct.to_vec() }
}

fn without_annotations(part: &str) -> String {
    let Ok(mut table) = serde_json::from_str::<Value>(part) else { return String::new() };
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        if let Some(metadata) = row["object"]["metadata"].as_object_mut() {
            metadata.remove("annotations");
        }
        for cell in row["cells"].as_array_mut().into_iter().flatten() {
            let Value::String(text) = cell else { continue };
            let mut targets: Vec<_> = text.split(", ").collect();
            targets.sort_unstable();
            *text = targets.join(", ");
        }
    }
    table.to_string()
}

/// The list as a page of the documentation.
pub(crate) fn page() -> String {
    let mut page = "\
# Where `kubectl informer serve` answers differently

Answers are compared with those of the API server behind the endpoint by
`tests/tests/serve/differential.rs`: about a thousand reads, valid and not, their status, the
headers that clients act upon, and their bodies. These are all the differences. The test fails for
any other, and for one of these that no longer occurs; it also writes this page.

By design, and taken out before the comparison:
- `metadata.managedFields` are left out, unless `--managed-fields keep` is given;
- the version of a list or a bookmark is that of the collection, not of the whole API server;
- headers about a single request (`Audit-Id`, `X-Kubernetes-Pf-*`, `Date`) are not compared.

| the endpoint | why |
|---|---|
"
    .to_owned();
    for Difference { what, why, .. } in [&ORDER_OF_FIELDS].into_iter().chain(DIFFERENCES) {
        // A String takes all.
        let _ = writeln!(page, "| {} | {} |", what.replace('|', "\\|"), why.replace('|', "\\|"));
    }
    page
}
