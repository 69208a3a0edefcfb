//! Kubernetes' read protocol.
#![forbid(unsafe_code)]

pub mod table;
