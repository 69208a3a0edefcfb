//! Controllers on informers: the example, as a process, and kube-runtime's, fed by an informer.

mod example;
mod kube_runtime;
mod metrics;
