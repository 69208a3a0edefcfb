//! Controllers on informers: under faults, the examples as processes, and kube-runtime's, fed by an
//! informer.

mod example;
mod faults;
mod kube_runtime;
mod meddler;
mod metrics;
mod stopped;
