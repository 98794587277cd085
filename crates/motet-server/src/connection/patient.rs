//! A byte stream that waits only so long for its peer to take what is written.

use core::time::Duration;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

use super::stream::Transport;

/// How long a peer may take nothing once the server stops.
const STOPPING_PATIENCE: Duration = Duration::from_secs(1);

/// A byte stream that fails when its peer takes nothing of what is written for too long. Somebody
/// who asks and does not read would otherwise keep place and memory for as long as he likes.
pub struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Turns true when the server stops.
    stop: watch::Receiver<bool>,
    hurried: bool,
    /// Until when the peer has to take something. Set while it does not.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S: Transport> Patient<S> {
    /// Watches a stream.
    pub fn new(stream: S, patience: Duration, stop: watch::Receiver<bool>) -> Self {
        Self { stream, patience, stop, hurried: false, deadline: None }
    }

    /// The stream, no longer watched.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Passes on the outcome of a write, which is an error when there was none for too long.
    fn outcome<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let stopping = *self.stop.borrow();
        if stopping && !core::mem::replace(&mut self.hurried, true) {
            self.deadline = None;
        }
        let patience = if stopping { self.patience.min(STOPPING_PATIENCE) } else { self.patience };
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(deadline.as_mut().poll(context));
        // The system would keep what is not taken for minutes.
        self.stream.reset_when_dropped();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: Transport> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Transport> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.outcome(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.outcome(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.outcome(context, shut)
    }
}
