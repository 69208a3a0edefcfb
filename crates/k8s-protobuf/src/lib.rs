//! Kubernetes' protobuf, without a second set of types.
//!
//! API servers send every built-in kind as protobuf when asked for
//! `application/vnd.kubernetes.protobuf`. It is smaller than JSON and cheaper for the server, and
//! its lengths let a reader take one field without decoding the rest. The crate is built on one
//! table of messages and fields, generated from the published Go API types:
//!
//! - [`Envelope`]: the envelope of an object, and [`Kind`], its kind;
//! - [`from_slice`] and [`from_message`]: objects as any type that serde can deserialize;
//! - with the feature `k8s-openapi`, its types of the most common kinds without serde, field by
//!   field;
//! - [`Metadata`]: an object's identity, labels and annotations; [`without_managed_fields`] cuts
//!   managedFields;
//! - [`FieldPath`]: a field such as `spec.nodeName`, read without decoding the rest;
//! - [`to_json`]: the text that Go writes for the same object;
//! - [`Reader`]: the fields of any message, where no other reader fits;
//! - [`encode`]: writing protobuf, for servers.
//!
//! No tokio, no kube, no build script and no protoc.

#![forbid(unsafe_code)]

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// What the tests share names the crate from outside.
#[cfg(test)]
extern crate self as k8s_protobuf;

#[cfg(test)]
mod agreement;
#[cfg(test)]
#[cfg_attr(not(feature = "k8s-openapi"), expect(dead_code, reason = "others compare the JSON"))]
#[path = "../tests/corpus/mod.rs"]
mod corpus;
mod de;
pub mod encode;
mod envelope;
mod error;
mod json;
mod metadata;
mod path;
mod recursion;
mod schema;
mod special;
mod utf8;
mod wire;

#[cfg(feature = "k8s-openapi")]
pub use de::partial_metadata;
pub use de::{from_message, from_message_seed, from_slice};
pub use envelope::{CONTENT_TYPE, Envelope, MAGIC, is_protobuf};
pub use error::Error;
pub use json::{item_to_json, message_to_json, to_json};
pub use metadata::{Entries, Metadata, without_managed_fields};
pub use path::{FieldPath, Scalar, Segment};
pub use recursion::hides_levels;
pub use schema::Kind;
pub use wire::{Reader, Value};
