//! The client's session: keeps one connection to a server and what is wanted over it.
//!
//! [`Client`] implements Motet's transport seam. It is told what to hold ([`TransportOp`]) and
//! keeps that intent across lost connections: it reconnects with full-jitter backoff, subscribes
//! everything again and recovers each topic from the last position it handed out. A driver opens
//! sockets, moves messages and calls at the time of [`Client::next_timeout`].
//!
//! Connect and all subscribe commands travel in one frame. A socket is opened only after the one
//! before it is closed. What the server says about a subscription that was given up, replaced or
//! never asked for is ignored.

mod call;
mod config;
mod held;
mod io;
mod link;
mod live;
mod message_in;
mod refresh;
mod refusal;
mod request;
mod retry;
mod subscribe;
mod subscription;
mod timer;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use litemap::LiteMap;
use motet_protocol::transport::{TransportEvent, TransportFeatures, TransportOp};
use motet_protocol::{Error, Instant, Rng};

pub use config::{ClientConfig, TopicTokens};
pub use io::{Input, Output, SocketId};

use crate::message::Command;
use call::Calls;
use held::{Held, NodeCall};
use link::Link;
use retry::Retry;
use subscription::{Refresh, Subscription};

/// One connection to a server, and what is wanted over it.
#[derive(Debug)]
pub struct Client<P> {
    config: ClientConfig<P>,
    rng: Rng,
    link: Link,
    /// Why the server refused for good, while that stands.
    refusal: Option<Error>,
    /// The last socket that was opened.
    socket: SocketId,
    token: Option<String>,
    /// A token was used before, so one is needed again.
    token_seen: bool,
    refresh: Refresh,
    retry: Retry,
    /// What the connected server can do; nothing between connections.
    features: TransportFeatures,
    /// Whether the connected server speaks the Motet extension.
    extension: bool,
    /// The server pings this often, and wants an answer.
    ping: link::Ping,
    calls: Calls,
    /// Commands that were not handed to the socket yet.
    pending: Vec<Command<P>>,
    held: Held<P>,
    topics: LiteMap<String, Subscription>,
    /// Not later than the first time at which a subscription needs something.
    topics_due: Option<Instant>,
    stall: timer::Stall,
    outputs: VecDeque<Output<P>>,
}

impl<P: Clone> Client<P> {
    /// A client that waits for [`TransportOp::Open`].
    #[must_use]
    pub fn new(config: ClientConfig<P>, rng: Rng) -> Self {
        Self {
            retry: Retry::new(config.backoff),
            config,
            rng,
            link: Link::Idle,
            refusal: None,
            socket: SocketId::default(),
            token: None,
            token_seen: false,
            refresh: Refresh::None,
            features: TransportFeatures::default(),
            extension: false,
            ping: link::Ping::default(),
            calls: Calls::default(),
            pending: Vec::new(),
            held: Held::new(),
            topics: LiteMap::new(),
            topics_due: None,
            stall: timer::Stall::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes one input. Afterwards, drain [`Client::poll_output`].
    pub fn handle(&mut self, now: Instant, input: Input<P>) {
        match input {
            Input::Op(op) => self.operate(now, op),
            Input::Opened { socket } => self.opened(now, socket),
            Input::Message { socket, reply, bytes } => {
                if self.speaks(socket) {
                    self.message(now, reply, bytes);
                }
            }
            Input::Malformed { socket } => {
                if self.speaks(socket) {
                    self.malformed(now);
                }
            }
            Input::NotSent { socket, id, error } => {
                if self.speaks(socket) {
                    self.not_sent(now, id, error);
                }
            }
            Input::Closed { socket, code, reason } => self.closed(now, socket, code, reason),
            Input::Tick => self.tick(now),
        }
    }

    /// The next thing for the driver to do. Commands come last, all in one.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.pending.is_empty() {
            return None;
        }
        self.calls.written();
        let commands = core::mem::take(&mut self.pending);
        Some(Output::Send { socket: self.socket, commands })
    }

    fn operate(&mut self, now: Instant, op: TransportOp<P>) {
        match op {
            TransportOp::Open => self.open(now),
            TransportOp::Close => self.close(now),
            TransportOp::Subscribe { topic, since } => self.want(now, topic, since),
            TransportOp::Unsubscribe { topic } => self.give_up(now, topic),
            TransportOp::Publish(request) => {
                let deadline = now + request.remaining;
                self.call(now, NodeCall::Publish(request, deadline));
            }
            TransportOp::History(request) => self.call(now, NodeCall::History(request)),
            TransportOp::Token { topic: None, token } => self.token_given(now, token),
            TransportOp::Token { topic: Some(topic), token } => {
                self.topic_token_given(now, &topic, token);
            }
            TransportOp::Nudge => self.nudge(now),
            TransportOp::Retry => self.retry_refused(now),
        }
    }

    fn event(&mut self, event: TransportEvent<P>) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Queues a command for the next frame.
    fn send(
        &mut self,
        now: Instant,
        purpose: call::Purpose,
        request: crate::message::Request<P>,
    ) -> u32 {
        let id = self.calls.begin(purpose, now + self.config.command_timeout);
        self.pending.push(Command::new(id, request));
        id
    }
}
