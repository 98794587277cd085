//! What waits to be written to one connection.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use motet_realtime::codec::Encoding;
use motet_realtime::message::Disconnect;

/// Bytes of commands that one connection may have under way to the hub. Beyond it the connection
/// is not read, so a client that sends faster than the hub works is slowed down, not buffered.
const IN_FLIGHT_BYTES_MAX: usize = 64 << 10;

/// Bytes of answers that may wait besides. A client that asks for a long history is not slow before
/// it could read a word of it; one that asks and never reads still is.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The outgoing queue of one connection, shared by the hub and the connection's task.
pub struct Outgoing {
    encoding: Encoding,
    bytes_max: usize,
    state: Mutex<State>,
    in_flight: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// Chunks of one or more encoded messages each.
    chunks: VecDeque<(Kind, Bytes)>,
    pushed_bytes: usize,
    answer_bytes: usize,
    /// A ping frame is to be sent, ahead of the chunks: they may be many.
    ping: bool,
    /// The connection is to be closed once the chunks are written.
    closing: Option<Disconnect>,
    /// The connection's task, when it waits for something to write or for leave to read.
    waker: Option<Waker>,
}

/// Why a chunk is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The server has something to say.
    Push,
    /// The client asked.
    Answer,
}

/// What became of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is queued.
    Queued,
    /// The queue was full: everything in it was dropped, the connection is to be closed as slow.
    Overflow,
    /// The connection is closing; nothing is queued any more.
    Closing,
}

/// What the connection's task is to do next.
#[derive(Debug)]
pub enum Next {
    /// Write these chunks.
    Write(Vec<Bytes>),
    /// Send a ping frame.
    Ping,
    /// Close with this code.
    Close(Disconnect),
}

impl Outgoing {
    /// An empty queue.
    #[must_use]
    pub fn new(encoding: Encoding, bytes_max: usize) -> Self {
        Self { encoding, bytes_max, state: Mutex::default(), in_flight: AtomicUsize::new(0) }
    }

    /// The connection's encoding.
    #[must_use]
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Queues a chunk.
    pub fn push(&self, kind: Kind, chunk: Bytes) -> Pushed {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closing.is_some() {
            return Pushed::Closing;
        }
        let (bytes, bytes_max) = match kind {
            Kind::Push => (&mut state.pushed_bytes, self.bytes_max),
            Kind::Answer => (&mut state.answer_bytes, self.bytes_max.max(ANSWER_BYTES_MAX)),
        };
        if *bytes + chunk.len() > bytes_max {
            state.chunks.clear();
            (state.pushed_bytes, state.answer_bytes) = (0, 0);
            return Pushed::Overflow;
        }
        *bytes += chunk.len();
        state.chunks.push_back((kind, chunk));
        let waker = state.waker.take();
        drop(guard);
        wake(waker);
        Pushed::Queued
    }

    /// Sends a ping frame; one that is not out yet stands for all.
    pub fn ping(&self) {
        let mut state = self.lock();
        state.ping = true;
        let waker = state.waker.take();
        drop(state);
        wake(waker);
    }

    /// Closes the connection once what is queued is written.
    pub fn close(&self, disconnect: Disconnect) {
        let mut state = self.lock();
        state.closing.get_or_insert(disconnect);
        let waker = state.waker.take();
        drop(state);
        wake(waker);
    }

    /// Takes what is to be written, at most about `bytes_max`; the closing comes last.
    pub fn poll_next(&self, context: &mut Context<'_>, bytes_max: usize) -> Poll<Next> {
        let mut state = self.lock();
        if core::mem::take(&mut state.ping) {
            return Poll::Ready(Next::Ping);
        }
        if state.chunks.is_empty() {
            return match state.closing.clone() {
                Some(disconnect) => Poll::Ready(Next::Close(disconnect)),
                None => {
                    register(&mut state, context);
                    Poll::Pending
                }
            };
        }
        let mut chunks = Vec::new();
        let mut taken = 0;
        while taken < bytes_max {
            let Some((kind, chunk)) = state.chunks.pop_front() else { break };
            match kind {
                Kind::Push => state.pushed_bytes -= chunk.len(),
                Kind::Answer => state.answer_bytes -= chunk.len(),
            }
            taken += chunk.len();
            chunks.push(chunk);
        }
        if state.chunks.is_empty() {
            // An idle connection keeps no buffer.
            state.chunks = VecDeque::new();
        }
        Poll::Ready(Next::Write(chunks))
    }

    /// Whether the connection is to be closed. If not, its task is woken when it is.
    pub fn poll_closing(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.closing.is_some() {
            return Poll::Ready(());
        }
        register(&mut state, context);
        Poll::Pending
    }

    /// Whether the connection may be read. If not, its task is woken when it may.
    pub fn poll_may_read(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.in_flight.load(Ordering::Acquire) < IN_FLIGHT_BYTES_MAX {
            return Poll::Ready(());
        }
        register(&mut self.lock(), context);
        // The hub may have caught up between the look and the registration.
        if self.in_flight.load(Ordering::Acquire) < IN_FLIGHT_BYTES_MAX {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// A frame of so many bytes is on its way to the hub.
    pub fn sent_to_hub(&self, bytes: usize) {
        self.in_flight.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The hub has dealt with so many bytes.
    pub fn taken_by_hub(&self, bytes: usize) {
        let before = self.in_flight.fetch_sub(bytes, Ordering::AcqRel);
        if before >= IN_FLIGHT_BYTES_MAX && before - bytes < IN_FLIGHT_BYTES_MAX {
            let waker = self.lock().waker.take();
            wake(waker);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the lock")
    }
}

fn register(state: &mut State, context: &Context<'_>) {
    match &mut state.waker {
        Some(waker) => waker.clone_from(context.waker()),
        none => *none = Some(context.waker().clone()),
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(bytes_max: usize) -> Outgoing {
        Outgoing::new(Encoding::Json, bytes_max)
    }

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn a_full_queue_drops_everything_and_says_so() {
        let queue = queue(10);
        assert_eq!(queue.push(Kind::Push, Bytes::from_static(b"123456")), Pushed::Queued);
        assert_eq!(queue.push(Kind::Push, Bytes::from_static(b"78901")), Pushed::Overflow);
        assert!(queue.poll_next(&mut context(), 100).is_pending());
    }

    #[test]
    fn long_answers_make_no_client_slow_until_they_are_far_too_many() {
        let queue = queue(10);
        let megabyte = Bytes::from(vec![0; 1 << 20]);
        for _ in 0..16 {
            assert_eq!(queue.push(Kind::Answer, megabyte.clone()), Pushed::Queued);
        }
        assert_eq!(queue.push(Kind::Push, Bytes::from_static(b"1234567890")), Pushed::Queued);
        assert_eq!(queue.push(Kind::Answer, megabyte), Pushed::Overflow);
    }

    #[test]
    fn what_is_queued_is_written_before_the_close_and_nothing_after_it() {
        let queue = queue(100);
        queue.push(Kind::Push, Bytes::from_static(b"a"));
        queue.close(Disconnect::default());
        assert_eq!(queue.push(Kind::Push, Bytes::from_static(b"b")), Pushed::Closing);
        let Poll::Ready(Next::Write(chunks)) = queue.poll_next(&mut context(), 100) else {
            panic!("a chunk")
        };
        assert_eq!(chunks, [Bytes::from_static(b"a")]);
        assert!(matches!(queue.poll_next(&mut context(), 100), Poll::Ready(Next::Close(_))));
    }

    #[test]
    fn reading_stops_while_too_much_is_under_way_to_the_hub() {
        let queue = queue(100);
        queue.sent_to_hub(IN_FLIGHT_BYTES_MAX);
        assert!(queue.poll_may_read(&mut context()).is_pending());
        queue.taken_by_hub(1);
        assert!(queue.poll_may_read(&mut context()).is_ready());
    }
}
