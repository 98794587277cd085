//! The connection itself: attempts, loss, close.

use core::time::Duration;

use motet_protocol::transport::{TransportEvent, TransportFeatures};
use motet_protocol::{Error, ErrorCode, Instant};

use super::call::Purpose;
use super::io::{Output, SocketId};
use super::subscription::{Afterwards, Phase, Refresh};
use super::{Client, refusal, timer};
use crate::message::{
    ConnectRequest, ConnectResult, Disconnect, DisconnectCode, ErrorReply, Features, Request,
    ServerErrorCode, Verdict,
};

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Nobody wants one.
    Idle,
    /// The application was asked for a token.
    AwaitingToken { until: Instant },
    /// A socket is being opened.
    Opening { socket: SocketId, until: Instant },
    /// The connect command is on its way.
    Connecting { socket: SocketId },
    /// Connected.
    Connected { socket: SocketId },
    /// The socket was asked to close; no other is opened before it has.
    Closing { socket: SocketId, until: Instant, then: Next },
    /// The next attempt has its time.
    BackingOff { until: Instant },
    /// The server refused for good.
    Refused,
}

/// What follows when there is no socket any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Idle,
    Attempt { at: Instant },
    Refused,
}

/// The server's pings on this connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ping {
    /// Silence allowed; none is measured when the server sends no pings.
    allowed: Option<Duration>,
    /// When silence will have lasted too long.
    pub(super) deadline: Option<Instant>,
    /// Whether pings are to be answered.
    pub(super) answered: bool,
}

impl Ping {
    /// Something was heard.
    pub(super) fn heard(&mut self, now: Instant) {
        self.deadline = self.allowed.map(|allowed| now + allowed);
    }
}

impl<P: Clone> Client<P> {
    /// Whether this socket is the one in use; what others say is history.
    pub(super) fn speaks(&self, socket: SocketId) -> bool {
        matches!(self.link, Link::Connecting { socket: current } | Link::Connected { socket: current } if current == socket)
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.link, Link::Connected { .. })
    }

    /// Whether subscribe commands can be sent: at once behind the connect command.
    pub(super) fn is_talking(&self) -> bool {
        matches!(self.link, Link::Connecting { .. } | Link::Connected { .. })
    }

    pub(super) fn open(&mut self, now: Instant) {
        match &mut self.link {
            Link::Idle => self.attempt(now),
            Link::Closing { then: then @ Next::Idle, .. } => *then = Next::Attempt { at: now },
            _ => {}
        }
    }

    /// Ends everything; what was not delivered yet is not delivered any more.
    pub(super) fn close(&mut self, now: Instant) {
        self.outputs.retain(|output| !matches!(output, Output::Event(_)));
        self.end_session();
        self.topics.clear();
        self.topics_due = None;
        self.held.take();
        self.token = None;
        self.token_seen = false;
        self.refusal = None;
        self.retry.reset();
        match self.link {
            Link::Opening { socket, .. }
            | Link::Connecting { socket }
            | Link::Connected { socket } => self.close_socket(now, socket, Next::Idle),
            Link::Closing { ref mut then, .. } => *then = Next::Idle,
            _ => self.link = Link::Idle,
        }
    }

    pub(super) fn nudge(&mut self, now: Instant) {
        self.retry.reset();
        match &mut self.link {
            Link::BackingOff { .. } => self.attempt(now),
            Link::Closing { then: Next::Attempt { at }, .. } => *at = now,
            _ => {}
        }
        self.retry_topics_now(now);
    }

    /// Tries again after a refusal for good; the token that may have caused it is gone.
    pub(super) fn retry_refused(&mut self, now: Instant) {
        match &mut self.link {
            Link::Refused => {
                self.retry.reset();
                self.attempt(now);
            }
            Link::Closing { then: then @ Next::Refused, .. } => {
                *then = Next::Attempt { at: now };
            }
            _ => self.nudge(now),
        }
    }

    pub(super) fn attempt(&mut self, now: Instant) {
        self.refusal = None;
        self.event(TransportEvent::Connecting);
        if self.token.is_none() && (self.config.token_needed || self.token_seen) {
            self.event(TransportEvent::TokenWanted { topic: None });
            self.link = Link::AwaitingToken { until: now + self.config.token_timeout };
        } else {
            self.open_socket(now);
        }
    }

    pub(super) fn open_socket(&mut self, now: Instant) {
        self.socket.0 += 1;
        let socket = self.socket;
        self.outputs.push_back(Output::OpenSocket { socket });
        self.link = Link::Opening { socket, until: now + self.config.open_timeout };
    }

    fn close_socket(&mut self, now: Instant, socket: SocketId, then: Next) {
        self.outputs.push_back(Output::CloseSocket { socket });
        self.link = Link::Closing { socket, until: now + self.config.close_timeout, then };
    }

    /// Connect and everything wanted, in one frame.
    pub(super) fn opened(&mut self, now: Instant, opened: SocketId) {
        let Link::Opening { socket, .. } = self.link else { return };
        if socket != opened {
            return;
        }
        self.link = Link::Connecting { socket };
        self.stall = timer::Stall::default();
        let request = ConnectRequest {
            token: self.token.clone().unwrap_or_default(),
            data: self.config.data.clone(),
            name: self.config.name.clone(),
            version: self.config.version.clone(),
            motet: self.config.features,
            ..ConnectRequest::default()
        };
        self.send(now, Purpose::Connect, Request::Connect(Box::new(request)));
        self.subscribe_waiting(now);
    }

    pub(super) fn connected(&mut self, now: Instant, result: &ConnectResult<P>) {
        let Link::Connecting { socket } = self.link else { return };
        self.link = Link::Connected { socket };
        self.retry.succeeded(now);
        self.extension = result.motet.is_some() && self.config.features.is_some();
        let offered = self.config.features.unwrap_or_default();
        let features = result.motet.unwrap_or_default().intersection(offered);
        self.features = in_force(features);
        let allowed = (result.ping > 0)
            .then(|| Duration::from_secs(result.ping.into()) + self.config.ping_grace);
        self.ping = Ping { allowed, deadline: None, answered: result.pong };
        self.ping.heard(now);
        self.schedule_refresh(now, result.expires, result.ttl);
        self.event(TransportEvent::Connected(self.features));
        self.subscribe_waiting(now);
        self.send_held(now);
    }

    pub(super) fn connect_refused(&mut self, now: Instant, refusal: ErrorReply) {
        if refusal.code == ServerErrorCode::TOKEN_EXPIRED {
            self.token = None;
        }
        let verdict = refusal.verdict();
        self.lose(now, refusal::connect(refusal), verdict);
    }

    /// The server ends the connection by a message instead of a close code.
    pub(super) fn dismissed(&mut self, now: Instant, end: Disconnect) {
        self.heed(end.code);
        let verdict = end.code.verdict();
        self.lose(now, refusal::disconnected(end), verdict);
    }

    pub(super) fn malformed(&mut self, now: Instant) {
        self.lose(now, ErrorCode::BadFrame.into(), Verdict::Retry);
    }

    /// The socket reports its end.
    pub(super) fn closed(
        &mut self,
        now: Instant,
        closed: SocketId,
        code: DisconnectCode,
        reason: String,
    ) {
        match self.link {
            Link::Closing { socket, then, .. } if socket == closed => self.go_on(now, then),
            Link::Opening { socket, .. }
            | Link::Connecting { socket }
            | Link::Connected { socket }
                if socket == closed =>
            {
                self.heed(code);
                // Without a socket there is nothing left to close.
                self.link = Link::Idle;
                self.lose(now, refusal::disconnected(Disconnect { code, reason }), code.verdict());
            }
            _ => {}
        }
    }

    /// What a close code says about tokens and positions.
    fn heed(&mut self, code: DisconnectCode) {
        if code == DisconnectCode::CONNECTION_EXPIRED || code == DisconnectCode::STATE_INVALIDATED {
            self.token = None;
        }
        if code == DisconnectCode::STATE_INVALIDATED {
            for (_, subscription) in &mut self.topics {
                subscription.invalidate();
            }
        }
    }

    /// The connection, or the attempt, has failed. Closes the socket if there is one.
    pub(super) fn lose(&mut self, now: Instant, error: Error, verdict: Verdict) {
        let terminal = verdict == Verdict::Terminal;
        if terminal || self.refresh_is_overdue(now) {
            self.token = None;
        }
        let then = if terminal {
            Next::Refused
        } else {
            Next::Attempt { at: self.retry.after_failure(now, &mut self.rng) }
        };
        match self.link {
            Link::Opening { socket, .. }
            | Link::Connecting { socket }
            | Link::Connected { socket } => self.close_socket(now, socket, then),
            _ => self.settle(then),
        }
        self.refusal = terminal.then(|| error.clone());
        self.event(TransportEvent::Disconnected { error, terminal });
        self.fail_calls();
        self.end_session();
        self.topics_lost();
    }

    fn refresh_is_overdue(&self, now: Instant) -> bool {
        self.refresh.due().is_some_and(|due| due <= now)
            || matches!(self.refresh, Refresh::AwaitingToken { .. })
    }

    fn settle(&mut self, then: Next) {
        self.link = match then {
            Next::Idle => Link::Idle,
            Next::Attempt { at } => Link::BackingOff { until: at },
            Next::Refused => Link::Refused,
        };
    }

    /// There is no socket any more.
    pub(super) fn go_on(&mut self, now: Instant, then: Next) {
        self.settle(then);
        if matches!(self.link, Link::BackingOff { until } if until <= now) {
            self.attempt(now);
        }
    }

    /// Forgets what belonged to the connection alone.
    fn end_session(&mut self) {
        self.pending.clear();
        self.calls.end().for_each(drop);
        self.refresh = Refresh::None;
        self.ping = Ping::default();
        self.features = TransportFeatures::default();
        self.extension = false;
        self.stall = timer::Stall::default();
    }

    /// Subscriptions become intent again.
    fn topics_lost(&mut self) {
        let mut given_up = Vec::new();
        for (topic, subscription) in &mut self.topics {
            subscription.refresh = Refresh::None;
            match subscription.phase {
                Phase::Leaving { then, .. } => {
                    subscription.phase = Phase::Waiting;
                    if then != Afterwards::Repair {
                        given_up.push((topic.clone(), then));
                    }
                }
                Phase::Subscribing { .. } | Phase::Live => subscription.phase = Phase::Waiting,
                Phase::Waiting | Phase::AwaitingToken { .. } | Phase::BackingOff { .. } => {}
            }
        }
        for (topic, then) in given_up {
            if then == Afterwards::Forget {
                self.topics.remove(&topic);
            }
            self.event(TransportEvent::Unsubscribed { topic, error: None, terminal: true });
        }
    }
}

const fn in_force(features: Features) -> TransportFeatures {
    TransportFeatures {
        idempotency: features.idempotency,
        ordered_publish: features.ordered_publish,
        wildcards: features.wildcards,
    }
}
