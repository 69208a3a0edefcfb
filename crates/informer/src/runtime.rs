//! The tokio runtime that informers run on.

use std::future::pending;

use tokio::runtime::Handle;

/// The runtime of the caller.
#[track_caller]
pub(crate) fn current() -> Handle {
    let Ok(runtime) = Handle::try_current() else {
        panic!(
            "informers run on a tokio runtime, and there is none here: call this in async code (`#[tokio::main]`), or after `let _entered = runtime.enter();`"
        )
    };
    runtime
}

/// Whether the runtime was shut down, so that nothing runs on it any more.
pub(crate) fn has_ended(runtime: &Handle) -> bool {
    // A runtime that has ended drops at once what it is given.
    let probe = runtime.spawn(pending::<()>());
    let has_ended = probe.is_finished();
    probe.abort();
    has_ended
}
