//! Kubernetes' read API from informers' caches.
//!
//! An [`Endpoint`] answers get, list and watch as a kube-apiserver does, for kubectl, client-go,
//! kube-rs and everything else that speaks to one. An informer starts at the first list or watch of
//! a resource and is shared by all later ones; whatever is not answered from a cache is passed on.
//!
//! ```text
//! kubectl --server http://127.0.0.1:8888 get pods -A
//! GET /api/v1/pods?watch=1&resourceVersion=…  Kubernetes' own paths: /api /apis /openapi /version
//! GET /deploy?labels[k8s-app]=kube-dns        a plural, singular or short name, as kubectl knows it
//! GET /core/v1/pods?namespace=web&limit=100   group (core for the core group), version, plural name
//! GET /core/v1/pods/web/web-0                 one object
//! GET /core/v1/nodes/node-1                   one object of a cluster-scoped resource
//! GET /livez  /readyz  /metrics               these win over short names
//! GET /                                       in a browser: the status page
//! ```
//!
//! # Who answers
//! | request | answered by |
//! |---|---|
//! | list or watch of a resource that can be held | the cache; it is started by the first one |
//! | get of an object whose resource is held | the cache |
//! | `/api`, `/apis`, `/openapi`, `/version` | the API server; remembered for 5 s, then by its ETag |
//! | subresources, objects of resources that are not held, [`strict`](Options::strict) resources, what does not fit the limits or may not be listed, pages and versions that the cache no longer has or not yet | the API server |
//! | reviews of one's own rights (`kubectl auth can-i`) | the API server |
//! | all other writes, `exec`, `attach`, `portforward`, `proxy`, upgraded connections but for watches over WebSocket, impersonation | over TLS the API server, with the caller's token; else nobody: 403 |
//!
//! What [`Options::allow`] does not name, Secrets unless named, is never held: over TLS the API
//! server answers it to the caller's token, elsewhere nobody does. What an extension API server
//! serves may differ from caller to caller: it is held only if [`Options::allow`] or
//! [`Options::cache`] names it, and passed on else.
//!
//! # Who may read
//! | address | who |
//! |---|---|
//! | loopback, plain HTTP | every program of this machine, what the endpoint's account may read; the `Host` and `Origin` headers are checked |
//! | any, TLS | callers with a bearer token, or a certificate of [`Tls::with_client_ca`]: what the API server allows them |
//! | any other, plain HTTP | nobody |
//!
//! Over TLS a request is answered if kube-apiserver would answer it to the same caller. A
//! `TokenReview` tells who that is, a `SubjectAccessReview` whether they may: for verb, group,
//! version, resource, subresource, namespace, name and selectors as kube-apiserver derives them, or
//! for the path. Short paths are reviewed as the list or get that they are; `/metrics` and `/` as
//! paths. `/livez`, `/readyz` and `/healthz` need no credentials, members of `system:masters` no
//! review. Who is not known gets 401, who may not 403, in the API server's words, before anything is
//! started or looked up.
//!
//! Answers are believed for 10 s. Open watches are reviewed every 40 to 50 s, those that are
//! forwarded too, and end with a 403 or 401 event within 70 s after the right or the token is taken
//! away. While the API server does not
//! answer reviews, requests are answered 503 once the 10 s are over, and open watches go on for two
//! to three minutes.
//!
//! The endpoint's own account must be allowed to create `tokenreviews` and `subjectaccessreviews`:
//! bind the ClusterRole `system:auth-delegator` to it.
//!
//! # The status page
//! Browsers get a page at `/`: collections in figures, their changes field by field, objects. Where
//! access is controlled it needs the right to `get` the path `/`, and shows what the caller may list
//! and watch. Browsers have no bearer tokens: `kubectl --server … proxy` adds them.
//!
//! # How fresh
//! `resourceVersion=""` is answered from the cache, with the version that it stands for. A version
//! that the cache has not reached is waited for, 3 s at most, then asked of the API server. When
//! nothing of a resource was received for [`Options::max_staleness`], its reads are answered 503;
//! open watches stay open. A watch goes on from any version whose changes are still in the
//! [log](k8s_serve::log); older ones are answered 410.
//!
//! # Parameters of the short paths
//! | parameter of lists | |
//! |---|---|
//! | `labels[key]=value` | only objects with this label; may be repeated, and all must match |
//! | `labelSelector=` | the full grammar of label selectors |
//! | `fieldSelector=` | the API server's fields, such as `spec.nodeName=node-1`, or any other by its path in the cached object |
//! | `namespace=` | only this namespace |
//! | `limit=`, `continue=` | pages of one snapshot; 410 once that snapshot is gone |
//!
//! Lists are `List` objects whose `metadata.resourceVersion` is the version that the cache stands
//! for, errors are `Status` objects, as everywhere in Kubernetes.
//!
//! # Objects
//! Objects are kept as the bytes that the server sent, protobuf of built-in kinds, and are written
//! while an answer is sent: as the server itself would have written them. An object that cannot be
//! written, because its bytes are malformed, is an error and never left out: the answer is 500 or,
//! once it has begun, ends with a broken connection. `managedFields` are left out unless
//! [`Options::keep_managed_fields`] is set.
//!
//! # Examples
//! In a program of your own:
//! ```
//! use informer_serve::{Endpoint, Options};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! # let server = informer_testkit::TestServer::start().await?;
//! # let client = server.client()?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let until_ctrl_c = async {};
//! let endpoint = Endpoint::new(client, Options::default());
//! endpoint.serve(listener, until_ctrl_c).await;
//! # Ok(())
//! # }
//! ```
//! An operator that exposes its own caches: `examples/operator.rs`.

#![forbid(unsafe_code)]

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod access;
mod api;
mod audit;
mod backend;
mod body;
mod catalog;
mod collection;
mod collections;
mod definition;
mod documents;
mod endpoint;
mod extensions;
mod forward;
mod gateway;
mod guard;
mod history;
mod listen;
mod metrics;
mod object;
mod options;
mod per_user;
mod refusal;
mod rights;
mod sending;
mod sockets;
mod status_page;
#[cfg(test)]
mod tests;
mod tls;
mod unheld;

pub use endpoint::{Endpoint, is_exposed};
pub use forward::{Upstream, UpstreamError};
pub use object::Object;
pub use options::Options;
pub use tls::{Tls, TlsError, TlsFile};
