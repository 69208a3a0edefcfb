//! The `kubectl-informer` binary.
fn main() {}
