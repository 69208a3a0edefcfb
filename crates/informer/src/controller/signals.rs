//! The signals that end a process.

/// Resolves when the process is told to end: at Ctrl-C (SIGINT), and on Unix at SIGTERM, which is
/// what a kubelet sends. For
/// [`graceful_shutdown_on`](crate::Controller::graceful_shutdown_on).
///
/// From its first poll on, these signals do not end the process any more. That is a choice for a
/// whole process, so it is the application's: the library handles no signals unless this is called.
///
/// # Cancel safety
/// Dropping the future ends the wait; a signal that comes later is ignored, as tokio does not give
/// up its handlers.
pub async fn shutdown_signal() {
    let interrupted = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!("Ctrl-C cannot be waited for: {error}");
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => {}
        () = terminated() => {}
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => _ = terminate.recv().await,
        Err(error) => {
            tracing::warn!("SIGTERM cannot be waited for: {error}");
            std::future::pending().await
        }
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}
