//! `kubectl informer serve` before a real API server, and its clients that nobody here wrote: the
//! answers are the API server's, and kubectl, client-go and kube-rs run on it.

mod access;
mod accounts;
mod client_go;
mod controller_runtime;
mod differential;
mod election;
mod endpoint;
mod extensions;
mod forwarding;
mod histories;
mod kube_rs;
mod kubectl;
mod kubectl_writes;
mod nested;
mod outage;
mod process;
mod scene;
mod text;
