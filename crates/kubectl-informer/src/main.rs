//! The `kubectl-informer` binary: all it does is in the library.

use std::process::ExitCode;

/// Many small objects of many sizes come and go; this allocator keeps them close together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kubectl_informer::main()
}
