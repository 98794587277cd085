//! What waits to be written to one connection.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use motet_realtime::codec::Encoding;
use motet_realtime::message::Disconnect;

/// Bytes of commands that one connection may have under way to the hub. Beyond it the connection
/// is not read, so a client that sends faster than the hub works is slowed down, not buffered.
const IN_FLIGHT_BYTES_MAX: usize = 64 << 10;

/// Bytes of answers beyond which the connection's next command waits. A client that asks for much
/// is not slow before it could read a word of it: it gets the answers as fast as it reads them.
const ANSWER_BYTES_TARGET: usize = 256 << 10;

/// The outgoing queue of one connection, shared by the hub and the connection's task.
pub struct Outgoing {
    encoding: Encoding,
    bytes_max: usize,
    state: Mutex<State>,
    /// The hub keeps the connection's commands until fewer answers wait.
    held: AtomicBool,
    in_flight: AtomicUsize,
}

struct State {
    /// Chunks of one or more encoded messages each.
    chunks: VecDeque<(Kind, Bytes)>,
    pushed_bytes: usize,
    answer_bytes: usize,
    /// Since when the first chunk waits.
    waiting_since: Instant,
    /// The beginning of the first chunk was taken as part of a message.
    in_message: bool,
    /// What waited was dropped; nothing is queued any more.
    given_up: bool,
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
    /// Write a part of a message that is too long for one frame.
    WritePart {
        /// The part.
        bytes: Bytes,
        /// The message begins with it.
        is_first: bool,
        /// The message ends with it.
        is_last: bool,
    },
    /// Send a ping frame.
    Ping,
    /// Close with this code.
    Close(Disconnect),
}

impl Outgoing {
    /// An empty queue.
    #[must_use]
    pub fn new(encoding: Encoding, bytes_max: usize) -> Self {
        let state = State {
            chunks: VecDeque::new(),
            pushed_bytes: 0,
            answer_bytes: 0,
            waiting_since: Instant::now(),
            in_message: false,
            given_up: false,
            ping: false,
            closing: None,
            waker: None,
        };
        Self {
            encoding,
            bytes_max,
            state: Mutex::new(state),
            held: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
        }
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
        if state.closing.is_some() || state.given_up {
            return Pushed::Closing;
        }
        match kind {
            Kind::Push if state.pushed_bytes + chunk.len() > self.bytes_max => {
                state.give_up();
                return Pushed::Overflow;
            }
            Kind::Push => state.pushed_bytes += chunk.len(),
            // The client asked, and is asked to wait before it asks for more.
            Kind::Answer => state.answer_bytes += chunk.len(),
        }
        if state.chunks.is_empty() {
            state.waiting_since = Instant::now();
        }
        state.chunks.push_back((kind, chunk));
        let waker = state.waker.take();
        drop(guard);
        wake(waker);
        Pushed::Queued
    }

    /// Whether the connection's next command has to wait because too many answers do. If so,
    /// [`Self::take_release`] tells when it need not any more.
    #[must_use]
    pub fn hold_commands(&self) -> bool {
        let state = self.lock();
        let full = state.answer_bytes > ANSWER_BYTES_TARGET;
        if full {
            self.held.store(true, Ordering::Relaxed);
        }
        full
    }

    /// Whether the connection's commands waited and need not any more; said once.
    #[must_use]
    pub fn take_release(&self) -> bool {
        if !self.held.load(Ordering::Relaxed) {
            return false;
        }
        let state = self.lock();
        state.answer_bytes <= ANSWER_BYTES_TARGET && self.held.swap(false, Ordering::Relaxed)
    }

    /// How much waits, and for how long: the bytes times the milliseconds since something was
    /// taken.
    #[must_use]
    pub fn burden(&self, now: Instant) -> u128 {
        let state = self.lock();
        let bytes = (state.pushed_bytes + state.answer_bytes) as u128;
        bytes * (now.saturating_duration_since(state.waiting_since).as_millis() + 1)
    }

    /// Drops what waits; nothing is queued any more.
    pub fn give_up(&self) {
        self.lock().give_up();
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
        let next = state.take_part(bytes_max).unwrap_or_else(|| state.take_chunks(bytes_max));
        state.waiting_since = Instant::now();
        if state.chunks.is_empty() {
            // An idle connection keeps no buffer.
            state.chunks = VecDeque::new();
        }
        Poll::Ready(next)
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

impl State {
    /// The next part of a first chunk that is, or was, longer than `bytes_max`.
    fn take_part(&mut self, bytes_max: usize) -> Option<Next> {
        let is_first = !self.in_message;
        let (kind, chunk) = self.chunks.front_mut()?;
        if is_first && chunk.len() <= bytes_max {
            return None;
        }
        let kind = *kind;
        let bytes = chunk.split_to(chunk.len().min(bytes_max));
        let is_last = chunk.is_empty();
        if is_last {
            self.chunks.pop_front();
        }
        self.in_message = !is_last;
        self.taken(kind, bytes.len());
        Some(Next::WritePart { bytes, is_first, is_last })
    }

    /// Whole chunks, about as many as `bytes_max` says.
    fn take_chunks(&mut self, bytes_max: usize) -> Next {
        let mut chunks = Vec::new();
        let mut taken = 0;
        while taken < bytes_max {
            let fits = |(_, chunk): &mut (Kind, Bytes)| chunk.len() <= bytes_max;
            let Some((kind, chunk)) = self.chunks.pop_front_if(fits) else { break };
            self.taken(kind, chunk.len());
            taken += chunk.len();
            chunks.push(chunk);
        }
        Next::Write(chunks)
    }

    const fn taken(&mut self, kind: Kind, bytes: usize) {
        match kind {
            Kind::Push => self.pushed_bytes -= bytes,
            Kind::Answer => self.answer_bytes -= bytes,
        }
    }

    fn give_up(&mut self) {
        self.given_up = true;
        self.chunks = VecDeque::new();
        (self.pushed_bytes, self.answer_bytes) = (0, 0);
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
    fn long_answers_make_no_client_slow_but_its_next_command_waits_until_they_are_taken() {
        let queue = queue(10);
        let long = Bytes::from(vec![0; ANSWER_BYTES_TARGET]);
        queue.push(Kind::Answer, long.clone());
        assert!(!queue.hold_commands() && !queue.take_release());
        assert_eq!(queue.push(Kind::Answer, long), Pushed::Queued);
        assert_eq!(queue.push(Kind::Push, Bytes::from_static(b"1234567890")), Pushed::Queued);
        assert!(queue.hold_commands() && !queue.take_release());
        assert!(queue.poll_next(&mut context(), ANSWER_BYTES_TARGET).is_ready());
        assert!(queue.take_release() && !queue.take_release(), "it is said once");
        assert!(!queue.hold_commands());
    }

    #[test]
    fn a_long_chunk_is_taken_in_parts_and_the_short_ones_around_it_whole() {
        let queue = queue(100);
        for chunk in [&b"a"[..], b"b", b"cdefghij", b"k", b"l"] {
            queue.push(Kind::Push, Bytes::from_static(chunk));
        }
        let mut taken = Vec::new();
        while let Poll::Ready(next) = queue.poll_next(&mut context(), 3) {
            taken.push(match next {
                Next::Write(chunks) => (chunks.concat(), true, true),
                Next::WritePart { bytes, is_first, is_last } => (bytes.to_vec(), is_first, is_last),
                other => panic!("{other:?}"),
            });
        }
        let wanted = [
            (b"ab".to_vec(), true, true),
            (b"cde".to_vec(), true, false),
            (b"fgh".to_vec(), false, false),
            (b"ij".to_vec(), false, true),
            (b"kl".to_vec(), true, true),
        ];
        assert_eq!(taken, wanted);
        assert_eq!(queue.burden(Instant::now()), 0);
    }

    #[test]
    fn the_burden_of_a_queue_grows_with_its_bytes_and_with_the_time_that_nobody_reads() {
        let (short, long) = (queue(1_000), queue(1_000));
        short.push(Kind::Push, Bytes::from_static(&[0; 10]));
        long.push(Kind::Push, Bytes::from_static(&[0; 100]));
        let now = Instant::now();
        let later = now + core::time::Duration::from_secs(10);
        assert!(long.burden(now) > short.burden(now));
        assert!(short.burden(later) > long.burden(now));
        long.give_up();
        assert_eq!(long.burden(later), 0);
        assert_eq!(long.push(Kind::Answer, Bytes::from_static(b"a")), Pushed::Closing);
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
