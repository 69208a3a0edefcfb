//! A time limit on writes to a connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Fails a write that makes no progress for `limit`, because the peer does not read.
///
/// The timer exists only while a write is pending.
#[derive(Debug)]
pub(crate) struct StallGuard<S> {
    io: S,
    limit: Duration,
    pending: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    pub(crate) fn new(io: S, limit: Duration) -> Self {
        Self { io, limit, pending: None }
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if polled.is_ready() {
            self.pending = None;
            return polled;
        }
        let limit = self.limit;
        let timer = self.pending.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(context, bytes);
        self.written(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.written(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    // Flush and shutdown have no time limit, because they do not wait for the peer on a TCP stream.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn only_writes_without_progress_fail() {
        let (ours, mut theirs) = duplex(1000);
        let mut ours = StallGuard::new(ours, LIMIT);
        let steady = async {
            let mut buffer = [0; 10];
            for _ in 0..100 {
                tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
                theirs.read_exact(&mut buffer).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(ours.write_all(&[0; 2000]), steady);
        written.unwrap();
        assert!(ours.pending.is_none());

        // The time between writes does not count.
        let started = Instant::now();
        let failed = ours.write_all(&[0; 2000]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_reader_is_no_stall() {
        let (ours, mut theirs) = duplex(10);
        let mut ours = StallGuard::new(ours, LIMIT);
        let mut buffer = [0; 10];
        for _ in 0..3 {
            ours.write_all(&buffer).await.unwrap();
            tokio::time::sleep(LIMIT * 2).await;
            theirs.read_exact(&mut buffer).await.unwrap();
            let slow = async {
                tokio::time::sleep(LIMIT / 2).await;
                theirs.read_exact(&mut [0; 10]).await.unwrap();
            };
            let (written, ()) = tokio::join!(ours.write_all(&[0; 20]), slow);
            written.unwrap();
            theirs.read_exact(&mut [0; 10]).await.unwrap();
        }
    }
}
