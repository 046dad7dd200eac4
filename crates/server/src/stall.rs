//! Clients that stop reading are cut off, and cost nobody else anything.
//!
//! Two things can stand still: a socket that takes no more bytes, and one stream of an HTTP/2
//! connection whose window stays closed while the connection goes on. The first ends the
//! connection, the second the stream alone. What counts as progress is what leaves this process,
//! not what is put into a buffer of ours.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tracing::debug;

/// A client that takes nothing of what it is sent for this long is cut off.
const STALL_MAX: Duration = Duration::from_secs(45);

/// A socket that fails when its peer takes nothing for [`STALL_MAX`]. It stands below TLS, whose
/// buffers would hide a stall.
pub(crate) struct Unstalled<S> {
    stream: S,
    /// Runs while a write is waiting.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Unstalled<S> {
    pub(crate) fn new(stream: S) -> Unstalled<S> {
        Unstalled {
            stream,
            stall: None,
        }
    }

    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stall = None;
            return outcome;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(STALL_MAX)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client stopped reading",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has nothing to flush, so being done with it is no progress.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

tokio::task_local! {
    /// Whether the stream of this task holds a frame that its client has not made room for.
    static HELD: Arc<AtomicBool>;
}

/// Notes that a body is asked for more: what it gave before is on its way.
pub(crate) fn asked() {
    note(false);
}

/// Notes that a body gave a frame, which waits until the client makes room for it.
pub(crate) fn gave() {
    note(true);
}

fn note(held: bool) {
    // There is none outside HTTP/2, where the socket tells.
    let _ = HELD.try_with(|own| own.store(held, Ordering::Relaxed));
}

/// Runs the streams of an HTTP/2 connection, each until it ends or stands still.
#[derive(Clone)]
pub(crate) struct Streams;

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let held = Arc::<AtomicBool>::default();
        let stalled = Stalled {
            held: Arc::clone(&held),
            since: None,
        };
        let running = HELD.scope(held, stream);
        tokio::spawn(async move {
            // The stream comes first, so that what it notes is seen at once.
            tokio::select! {
                biased;
                _ = running => {}
                () = stalled => debug!("the client stopped reading a stream"),
            }
        });
    }
}

/// Resolves when a frame was held for [`STALL_MAX`]. It is polled with the stream that it is
/// about, so nobody has to wake it.
struct Stalled {
    held: Arc<AtomicBool>,
    since: Option<Pin<Box<Sleep>>>,
}

impl Future for Stalled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.held.load(Ordering::Relaxed) {
            self.since = None;
            return Poll::Pending;
        }
        let since = self.since.get_or_insert_with(|| Box::pin(sleep(STALL_MAX)));
        since.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests;
