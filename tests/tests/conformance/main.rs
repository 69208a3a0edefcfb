//! The contract, scenario by scenario, each written once and run on both arms: the testkit, and a real etcd and
//! kube-apiserver. Tests are named for the guarantee that they prove.

mod history;
#[allow(dead_code, reason = "each module uses a part of it")]
mod objects;
