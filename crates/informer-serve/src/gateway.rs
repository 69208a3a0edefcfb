//! The short paths: `/deploy?labels[k8s-app]=kube-dns`, for those who write no client.

pub(crate) mod answer;
mod current;
mod page;
mod query;
mod routes;

pub(crate) use page::Pages;
pub(crate) use query::MAX_QUERY_BYTES;
pub(crate) use routes::{HELP, router};
