//! The hub: all connections of one server, the channels between them, and the rules of both.
//!
//! A [`Hub`] is sans-IO. It is told what happened ([`Input`]) with [`Hub::handle`], says what it
//! wants done ([`Output`]) through [`Hub::poll_output`], and when it wants to be called through
//! [`Hub::next_timeout`]. Commands of one connection are carried out one after the other in the
//! order in which they came, so replies come in that order too.
//!
//! A publication to many subscribers is one [`Output::Fanout`] with a shared list of connections:
//! the driver encodes it once per encoding and queues the same bytes everywhere.

mod answer;
mod api;
mod api_call;
mod channel;
mod close;
mod command;
mod connect;
mod embedded;
mod event;
mod fanout;
mod position;
mod publish;
mod read;
mod refresh;
mod settle;
mod subscribe;
mod timer;

pub use api::{ApiError, ApiErrorCode, ApiPublish, ApiRequest, ApiResult, ApiSubscribe, HubStats};
pub use embedded::EmbeddedHub;
pub use event::{ApiCallId, Input, Output, SessionId};

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use motet_protocol::{Instant, Rng};

use self::api_call::ApiCall;
use self::channel::Channel;
use self::timer::Timer;
use crate::broker::{BrokerOp, BrokerRequest, OpId};
use crate::message::{Reply, ReplyBody};
use crate::payload::Payload;
use crate::server::{HubOptions, Session};

/// All connections of one server and the channels between them.
pub struct Hub<P> {
    options: HubOptions,
    rng: Rng,
    sessions: HashMap<SessionId, Box<Session<P>>>,
    /// Connections by user; anonymous ones too, under the empty name.
    users: HashMap<String, BTreeSet<SessionId>>,
    channels: HashMap<Arc<str>, Channel<P>>,
    /// How many of `channels` are patterns.
    patterns: usize,
    timers: BTreeSet<(Instant, Timer)>,
    /// Who waits for which answer. Answers that nobody waits for are dropped.
    pending: HashMap<OpId, Waiter>,
    api_calls: HashMap<ApiCallId, ApiCall<P>>,
    /// Publications that are reported once the broker has taken them.
    reports: HashMap<OpId, (Arc<str>, P)>,
    next_op: u64,
    outputs: VecDeque<Output<P>>,
    stopping: bool,
}

/// Who waits for the answer to a request.
#[derive(Clone, Debug)]
enum Waiter {
    /// A session's current command.
    Command(SessionId),
    /// A subscription on its way.
    Subscription(SessionId, Arc<str>),
    /// A call of the API; the number says which part of it.
    Api(ApiCallId, usize),
    /// A channel's position check.
    Position(Arc<str>),
}

impl<P: Payload> Hub<P> {
    /// An empty hub. `rng` draws client ids and ping times.
    #[must_use]
    pub fn new(options: HubOptions, rng: Rng) -> Self {
        Self {
            options,
            rng,
            sessions: HashMap::new(),
            users: HashMap::new(),
            channels: HashMap::new(),
            patterns: 0,
            timers: BTreeSet::new(),
            pending: HashMap::new(),
            api_calls: HashMap::new(),
            reports: HashMap::new(),
            next_op: 0,
            outputs: VecDeque::new(),
            stopping: false,
        }
    }

    /// Takes what happened. `now` never goes back.
    pub fn handle(&mut self, now: Instant, input: Input<P>) {
        match input {
            Input::Open(session) => self.open(now, session),
            Input::FramePings(session) => self.use_frame_pings(session),
            Input::FramePong(session) => self.take_frame_pong(session),
            Input::Command(session, command) => self.take_command(now, session, command),
            Input::Malformed(session) => self.disconnect_bad_request(session),
            Input::Slow(session) => {
                self.disconnect(session, crate::message::DisconnectCode::SLOW);
            }
            Input::Unfit(session, channel) => self.end_unfit(session, &channel),
            Input::Closed(session) => self.forget_session(session),
            Input::Verified(op, result) => self.take_verdict(now, op, result),
            Input::Broker(event) => self.take_broker_event(now, event),
            Input::Api(call, request) => self.take_api_call(now, call, request),
            Input::Shutdown => self.shut_down(),
            Input::Timeout => self.take_timeout(now),
        }
    }

    /// The next thing to be done, if any.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        self.outputs.pop_front()
    }

    /// When the hub wants [`Input::Timeout`].
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Whether a connection's next command would have to wait for an earlier one.
    #[must_use]
    pub fn is_busy(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.waiting.is_some())
    }

    fn send(&mut self, session: SessionId, reply: Reply<P>) {
        self.outputs.push_back(Output::Reply(session, reply));
    }

    fn answer(&mut self, session: SessionId, command: u32, body: ReplyBody<P>) {
        self.send(session, Reply::new(command, body));
    }

    fn draw_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    /// Asks the broker and notes who waits for the answer.
    fn ask(&mut self, channel: &Arc<str>, request: BrokerOp<P>, waiter: Waiter) -> OpId {
        let op = self.draw_op();
        self.pending.insert(op, waiter);
        self.outputs.push_back(Output::Broker(BrokerRequest {
            op,
            channel: channel.clone(),
            request,
        }));
        op
    }

    /// Tells the broker something whose answer nobody needs.
    fn tell(&mut self, channel: &Arc<str>, request: BrokerOp<P>) {
        let op = self.draw_op();
        self.outputs.push_back(Output::Broker(BrokerRequest {
            op,
            channel: channel.clone(),
            request,
        }));
    }

    /// The key under which a channel is known, shared where it can be.
    fn channel_key(&self, channel: &str) -> Arc<str> {
        self.channels
            .get_key_value(channel)
            .map_or_else(|| Arc::from(channel), |(key, _)| key.clone())
    }
}
