//! The contract, scenario by scenario, each written once and run on both arms: the testkit, and a real etcd and
//! kube-apiserver. Tests are named for the guarantee that they prove.

mod common;
mod convergence;
mod faults;
mod handlers;
mod history;
mod lifecycle;
mod objects;
mod resources;
mod server;
mod status;
mod store;
mod syncing;
