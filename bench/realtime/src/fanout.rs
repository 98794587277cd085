//! One publisher, many subscribers, one thread that reads them all.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::counter::Counter;
use crate::pubsub::Protocol;

const PUBLISHER: Token = Token(usize::MAX - 1);
const READ_BYTES: usize = 128 << 10;
const EVENTS: usize = 1_024;
/// How long what is under way may take to arrive once nothing is published any more.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

struct Subscriber {
    stream: TcpStream,
    counter: Counter,
    received: u64,
}

/// New deliveries of one subscriber: all after `before` and up to `after`.
pub(crate) struct Delivered {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// The connections to one server.
pub(crate) struct Fanout {
    protocol: Protocol,
    poll: Poll,
    events: Events,
    publisher: TcpStream,
    outbox: Vec<u8>,
    subscribers: Vec<Subscriber>,
    published: u64,
    buffer: Vec<u8>,
}

impl Fanout {
    /// Connects and subscribes.
    pub(crate) fn open(protocol: Protocol, address: SocketAddr, count: usize) -> Result<Self> {
        let poll = Poll::new()?;
        let mut subscribers = Vec::with_capacity(count);
        for index in 0..count {
            let (stream, counter) = protocol.subscriber(address)?;
            let mut stream = nonblocking(stream)?;
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            subscribers.push(Subscriber { stream, counter, received: 0 });
        }
        let mut publisher = nonblocking(protocol.publisher(address)?)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut publisher, PUBLISHER, both)?;
        Ok(Self {
            protocol,
            poll,
            events: Events::with_capacity(EVENTS),
            publisher,
            outbox: Vec::new(),
            subscribers,
            published: 0,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Publications so far.
    pub(crate) fn published(&self) -> u64 {
        self.published
    }

    /// Publications that every subscriber has.
    pub(crate) fn delivered_to_all(&self) -> u64 {
        self.subscribers.iter().map(|subscriber| subscriber.received).min().unwrap_or(0)
    }

    /// Deliveries so far, over all subscribers.
    pub(crate) fn deliveries(&self) -> u64 {
        self.subscribers.iter().map(|subscriber| subscriber.received).sum()
    }

    /// Hands publications to the kernel, or keeps them until the socket takes them.
    pub(crate) fn publish(&mut self, count: u64) -> Result<()> {
        self.protocol.append_publications(&mut self.outbox, self.published + 1, count);
        self.published += count;
        self.flush()
    }

    /// Reads what there is, waiting at most so long; tells of every subscriber that got something.
    pub(crate) fn turn(&mut self, wait: Duration, mut tell: impl FnMut(&Delivered)) -> Result<()> {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other.context("waiting for sockets")?,
        }
        let mut publisher_ready = false;
        for event in &self.events {
            if event.token() == PUBLISHER {
                publisher_ready = true;
                continue;
            }
            let subscriber = &mut self.subscribers[event.token().0];
            let before = subscriber.received;
            read(subscriber, self.protocol, &mut self.buffer)?;
            if subscriber.received > before {
                tell(&Delivered { before, after: subscriber.received });
            }
        }
        if publisher_ready {
            self.discard_answers()?;
        }
        self.flush()
    }

    /// Waits until everybody has everything, and checks that nobody has more.
    pub(crate) fn drain(&mut self) -> Result<()> {
        let begun = Instant::now();
        while self.delivered_to_all() < self.published {
            if begun.elapsed() > DRAIN_LIMIT {
                bail!(
                    "{:?}: of {} publications a subscriber got {}",
                    self.protocol,
                    self.published,
                    self.delivered_to_all()
                );
            }
            self.turn(Duration::from_millis(10), |_| ())?;
        }
        let due = self.published * self.subscribers.len() as u64;
        if self.deliveries() != due {
            bail!("{:?}: {} deliveries instead of {due}", self.protocol, self.deliveries());
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        while !self.outbox.is_empty() {
            match self.publisher.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("publishing"),
            }
        }
        Ok(())
    }

    /// A subscriber's count is the proof of a publication; the publisher's answers are not needed.
    fn discard_answers(&mut self) -> Result<()> {
        loop {
            match self.publisher.read(&mut self.buffer) {
                Ok(0) => bail!("{:?}: the server closed the publisher", self.protocol),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("reading the publisher's answers"),
            }
        }
    }
}

fn nonblocking(stream: std::net::TcpStream) -> Result<TcpStream> {
    stream.set_nonblocking(true)?;
    Ok(TcpStream::from_std(stream))
}

/// Reads until the socket has nothing more, as edge-triggered readiness asks for.
fn read(subscriber: &mut Subscriber, protocol: Protocol, buffer: &mut [u8]) -> Result<()> {
    loop {
        let count = match subscriber.stream.read(buffer) {
            Ok(0) => bail!("{protocol:?}: the server closed a subscriber"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("reading a subscriber"),
        };
        let counted = subscriber.counter.feed(&buffer[..count])?;
        subscriber.received += counted.deliveries;
        if counted.pings > 0 {
            // A pong is a few bytes into an otherwise silent direction: it always fits.
            subscriber.stream.write_all(&protocol.pong()).context("answering a ping")?;
        }
        if count < buffer.len() {
            return Ok(());
        }
    }
}
