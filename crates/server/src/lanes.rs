//! Where a connection is served: by whichever worker is free, or always by the same one.
//!
//! Workers take tasks from each other. That suits reads: none waits behind a busy worker. A write
//! waits for the disk in the middle, and whoever is free then goes on with it, mostly another
//! worker than the one whose caches have what it needs. So a connection that writes moves to a
//! lane, a runtime with one worker of its own, and back when it reads for long. It is the same
//! connection all the time: what moves is the task that drives it and the registration of its
//! socket.
//!
//! Only HTTP/1.1 moves. The requests of an HTTP/2 connection are tasks of their own, many at a
//! time, and one lane would be too little for them.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// After this many short reads in a row, nobody takes a connection for one that writes.
const READS_MAX: u32 = 32;

/// The lanes of a server; without any, each connection stays where it began.
pub(crate) struct Lanes(Vec<Lane>);

struct Lane {
    runtime: Handle,
    connections: AtomicUsize,
}

impl Lanes {
    /// Lanes on these runtimes, each of which should have one worker.
    pub(crate) fn new(runtimes: Vec<Handle>) -> Lanes {
        let lane = |runtime| Lane {
            runtime,
            connections: AtomicUsize::new(0),
        };
        Lanes(runtimes.into_iter().map(lane).collect())
    }

    /// What a new connection has to know of where it is, if it can be anywhere else.
    pub(crate) fn place(&self) -> Option<Arc<Place>> {
        (!self.0.is_empty()).then(Arc::default)
    }

    /// Drives a connection to its end, wherever its requests want it to be.
    pub(crate) async fn drive<C>(&self, mut connection: Pin<Box<C>>, place: Option<Arc<Place>>)
    where
        C: Future<Output = ()> + Send + 'static,
    {
        let Some(place) = place else {
            return connection.await;
        };
        while let Some(moving) = until_it_moves(connection, Arc::clone(&place)).await {
            let connections = |lane: &&Lane| lane.connections.load(Relaxed);
            let lane = self.0.iter().min_by_key(connections);
            let lane = lane.expect("only who has lanes gives out places");
            let staying = until_it_moves(moving, Arc::clone(&place));
            match Stay::new(lane.runtime.spawn(staying), lane).ended().await {
                Some(back) => connection = back,
                None => return,
            }
        }
    }
}

/// Polls a connection until it is over, or until a request wants it to be elsewhere.
async fn until_it_moves<C>(mut connection: Pin<Box<C>>, place: Arc<Place>) -> Option<Pin<Box<C>>>
where
    C: Future<Output = ()>,
{
    place.arrive();
    let moves = poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(false),
        Poll::Pending if place.is_wrong() => Poll::Ready(true),
        Poll::Pending => Poll::Pending,
    });
    moves.await.then_some(connection)
}

/// A connection's time on a lane. Whoever stops waiting for its end ends the connection.
struct Stay<'a, C> {
    task: JoinHandle<Option<Pin<Box<C>>>>,
    lane: &'a Lane,
}

impl<C> Stay<'_, C> {
    fn new(task: JoinHandle<Option<Pin<Box<C>>>>, lane: &Lane) -> Stay<'_, C> {
        lane.connections.fetch_add(1, Relaxed);
        Stay { task, lane }
    }

    /// The connection, if it is to go on elsewhere.
    async fn ended(mut self) -> Option<Pin<Box<C>>> {
        // A task that panicked has said so, and its connection is gone.
        (&mut self.task).await.ok().flatten()
    }
}

impl<C> Drop for Stay<'_, C> {
    fn drop(&mut self) {
        self.lane.connections.fetch_sub(1, Relaxed);
        self.task.abort();
    }
}

/// What a request is like, for the choice of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Changes one object.
    Write,
    /// Is over at once.
    Read,
    /// May take a worker for long, or lasts.
    Long,
}

/// Where a connection is, and where it should be.
///
/// Only the connection's own task reads and writes it; it moves with the task, and the runtime
/// orders what happened before a move and after it.
#[derive(Default)]
pub(crate) struct Place {
    on_lane: AtomicBool,
    wants_lane: AtomicBool,
    /// Reads since the last write.
    reads: AtomicU32,
    /// Whether the socket is still registered where the connection came from.
    left_socket: AtomicBool,
}

impl Place {
    /// Waits until the connection is where a request like this one is served best.
    pub(crate) async fn suit(&self, errand: Errand) {
        let reads = match errand {
            Errand::Write => 0,
            Errand::Read => READS_MAX.min(self.reads.load(Relaxed) + 1),
            Errand::Long => READS_MAX,
        };
        self.reads.store(reads, Relaxed);
        match reads {
            0 => self.wants_lane.store(true, Relaxed),
            READS_MAX => self.wants_lane.store(false, Relaxed),
            _ => {}
        }
        // Nobody has to wake this: whoever drives the connection looks at the place after each
        // poll, and polls again once the connection has moved.
        poll_fn(|_| match self.is_wrong() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }

    fn is_wrong(&self) -> bool {
        self.on_lane.load(Relaxed) != self.wants_lane.load(Relaxed)
    }

    /// The connection is where it wants to be.
    fn arrive(&self) {
        let here = self.wants_lane.load(Relaxed);
        if self.on_lane.swap(here, Relaxed) != here {
            self.left_socket.store(true, Relaxed);
        }
    }
}

/// A socket that follows its connection.
pub(crate) struct Socket {
    /// There is one, but for the moment of a move.
    stream: Option<TcpStream>,
    place: Option<Arc<Place>>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, place: Option<Arc<Place>>) -> Socket {
        Socket {
            stream: Some(stream),
            place,
        }
    }

    /// The socket, registered with the runtime that drives the connection.
    fn here(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let place = self.place.as_deref();
        if place.is_some_and(|place| place.left_socket.swap(false, Relaxed)) {
            let socket = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
            self.stream = Some(TcpStream::from_std(socket.into_std()?)?);
        }
        let stream = self.stream.as_mut();
        stream
            .map(Pin::new)
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().here()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().here()?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().here()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().here()?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().here()?.poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
