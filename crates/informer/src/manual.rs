//! The manual: what is promised, how it differs from what you know, what to do when something
//! fails.
//!
//! | page | answers |
//! |---|---|
//! | [`guarantees`] | what the library promises, G1 to G35 |
//! | [`proof`] | which tests show it, on which server, and which planted bugs they catch |
//! | [`from_client_go`] | coming from Go: what is called how here, and what behaves differently |
//! | [`from_kube_rs`] | coming from `kube::runtime`: what replaces `watcher`, `reflector` and `Store` |
//! | [`from_controllers`] | coming from kube-runtime's or controller-runtime's `Controller` |
//! | [`failure_modes`] | what goes wrong, what the status says then, what to do |
//! | [`sizing`] | what a cache costs, and how to make it cost less |
//! | [`read_your_writes`] | acting on a cache that is a moment behind |
//! | [`leader_election`] | one of several replicas acts, and what Kubernetes cannot promise |
//! | [`testing`] | testing your own controller, with faults |
//!
//! The pages are empty modules: all they have is their text.

#[doc = include_str!("manual/guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("manual/proof.md")]
pub mod proof {}

#[doc = include_str!("manual/from_client_go.md")]
pub mod from_client_go {}

#[doc = include_str!("manual/from_kube_rs.md")]
pub mod from_kube_rs {}

#[doc = include_str!("manual/from_controllers.md")]
pub mod from_controllers {}

#[doc = include_str!("manual/failure_modes.md")]
pub mod failure_modes {}

#[doc = include_str!("manual/sizing.md")]
pub mod sizing {}

#[doc = include_str!("manual/read_your_writes.md")]
pub mod read_your_writes {}

#[doc = include_str!("manual/leader_election.md")]
pub mod leader_election {}

#[doc = include_str!("manual/testing.md")]
pub mod testing {}
