//! A hub, its clients, and the links between them.

use core::time::Duration;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use motet_protocol::transport::{TransportEvent, TransportOp};
use motet_protocol::{Instant, Position, Rng};
use motet_realtime::broker::{
    Broker, BrokerEvent, BrokerRequest, MemoryBroker, MemoryBrokerOptions,
};
use motet_realtime::client::{self, Client, ClientConfig, SocketId};
use motet_realtime::codec::{Encoding, Framing, Limits};
use motet_realtime::hub::{
    ApiCallId, ApiPublish, ApiRequest, ApiResult, EmbeddedHub, Hub, Input, Output, SessionId,
};
use motet_realtime::message::{Command, DisconnectCode, Push, Reply};
use motet_realtime::server::{Allow, HubOptions, Namespace, Namespaces, TokenClaims, TokenError};

pub(crate) type Event = TransportEvent<Bytes>;

const FRAME_BYTES_MAX: usize = 64 << 10;
const EVERYBODY: Allow = Allow { client: true, anonymous: true, subscriber: true };

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn options(history_size: usize) -> HubOptions {
    let open = Namespace {
        history_size,
        history_ttl: seconds(3_600),
        force_recovery: history_size > 0,
        subscribe: EVERYBODY,
        publish: EVERYBODY,
        history_right: EVERYBODY,
        ..Namespace::default()
    };
    HubOptions {
        namespaces: Namespaces::new(open, []),
        allow_anonymous_connect_without_token: true,
        recovery_max_publication_limit: history_size.max(1),
        ..HubOptions::default()
    }
}

/// A broker that outlives the hubs that use it.
#[derive(Clone)]
struct SharedBroker(Rc<RefCell<MemoryBroker<Bytes>>>);

impl SharedBroker {
    fn new(seed: u8) -> Self {
        let rng = Rng::from_seed([seed; 32]);
        Self(Rc::new(RefCell::new(MemoryBroker::new(rng, MemoryBrokerOptions::default()))))
    }
}

impl Broker<Bytes> for SharedBroker {
    fn handle(&mut self, now: Instant, request: BrokerRequest<Bytes>) {
        self.0.borrow_mut().handle(now, request);
    }

    fn poll_output(&mut self) -> Option<BrokerEvent<Bytes>> {
        self.0.borrow_mut().poll_output()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.0.borrow().next_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.borrow_mut().handle_timeout(now);
    }
}

/// One client and everything it has heard.
pub(crate) struct Peer {
    client: Client<Bytes>,
    /// The session of its present socket, while that is open.
    session: Option<SessionId>,
    /// From the wish to open one until the client is told of its end.
    has_socket: bool,
    asleep: bool,
    /// Packets of one direction never overtake each other.
    last_up: Instant,
    last_down: Instant,
    pub(crate) sockets: u32,
    pub(crate) events: Vec<Event>,
    /// How many of the events were searched for wishes.
    pub(crate) answered: usize,
}

enum Packet {
    Open { peer: usize, socket: SocketId, session: SessionId },
    Opened { peer: usize, socket: SocketId },
    Up { session: SessionId, frame: Bytes },
    Down { peer: usize, session: SessionId, frame: Bytes },
    Closed { peer: usize, socket: SocketId, code: u32 },
    Gone { session: SessionId },
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) rng: Rng,
    encoding: Encoding,
    options: HubOptions,
    hub: Option<EmbeddedHub<Bytes, SharedBroker>>,
    broker: SharedBroker,
    pub(crate) peers: Vec<Peer>,
    /// Which peer, and which of its sockets, a session belongs to.
    sessions: BTreeMap<SessionId, (usize, SocketId)>,
    wire: BTreeMap<(Instant, u64), Packet>,
    tokens: BTreeMap<String, Result<TokenClaims<Bytes>, TokenError>>,
    next: u64,
    pub(crate) api: Vec<Option<ApiResult<Bytes>>>,
}

impl World {
    pub(crate) fn new(options: HubOptions, encoding: Encoding, seed: u8) -> Self {
        let mut world = Self {
            now: Instant::from_micros(1),
            rng: Rng::from_seed([seed; 32]),
            encoding,
            options,
            hub: None,
            broker: SharedBroker::new(seed),
            peers: Vec::new(),
            sessions: BTreeMap::new(),
            wire: BTreeMap::new(),
            tokens: BTreeMap::new(),
            next: 0,
            api: Vec::new(),
        };
        world.start();
        world
    }

    pub(crate) fn add_peer(&mut self, config: ClientConfig<Bytes>) -> usize {
        self.peers.push(Peer {
            client: Client::new(config, self.rng.fork()),
            session: None,
            has_socket: false,
            asleep: false,
            answered: 0,
            last_up: self.now,
            last_down: self.now,
            sockets: 0,
            events: Vec::new(),
        });
        self.peers.len() - 1
    }

    /// A peer with default options that is told to connect.
    pub(crate) fn open_peer(&mut self) -> usize {
        let peer = self.add_peer(ClientConfig::new("test".into(), "1".into()));
        self.op(peer, TransportOp::Open);
        peer
    }

    pub(crate) fn token(&mut self, token: &str, claims: Result<TokenClaims<Bytes>, TokenError>) {
        self.tokens.insert(token.to_owned(), claims);
    }

    fn start(&mut self) {
        let hub = Hub::new(self.options.clone(), self.rng.fork());
        self.hub = Some(EmbeddedHub::new(hub, self.broker.clone()));
    }

    /// The server process ends without a word.
    pub(crate) fn crash(&mut self) {
        self.hub = None;
        let sessions: Vec<_> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.cut_session(session, 1006);
        }
    }

    /// A server starts, with the streams of the one before or with none.
    pub(crate) fn restart(&mut self, keeps_streams: bool) {
        if !keeps_streams {
            let seed = u8::try_from(self.rng.below(256)).expect("below 256");
            self.broker = SharedBroker::new(seed);
        }
        self.start();
    }

    /// The link of a peer breaks.
    pub(crate) fn cut(&mut self, peer: usize) {
        if let Some(session) = self.peers[peer].session {
            self.cut_session(session, 1006);
        }
    }

    /// Both ends learn of it; what was under way is lost.
    fn cut_session(&mut self, session: SessionId, code: u32) {
        let Some((peer, socket)) = self.sessions.remove(&session) else { return };
        self.wire.retain(|_, packet| match packet {
            Packet::Up { session: of, .. } | Packet::Down { session: of, .. } => *of != session,
            _ => true,
        });
        self.peers[peer].session = None;
        self.send_down(peer, Packet::Closed { peer, socket, code });
        self.send_up(peer, Packet::Gone { session });
    }

    fn latency(&mut self) -> Duration {
        Duration::from_millis(1) + self.rng.jitter(Duration::from_millis(40))
    }

    fn put(&mut self, at: Instant, packet: Packet) {
        self.next += 1;
        self.wire.insert((at, self.next), packet);
    }

    fn send_up(&mut self, peer: usize, packet: Packet) {
        let at = (self.now + self.latency()).max(self.peers[peer].last_up);
        self.peers[peer].last_up = at;
        self.put(at, packet);
    }

    fn send_down(&mut self, peer: usize, packet: Packet) {
        let at = (self.now + self.latency()).max(self.peers[peer].last_down);
        self.peers[peer].last_down = at;
        self.put(at, packet);
    }

    pub(crate) fn op(&mut self, peer: usize, op: TransportOp<Bytes>) {
        self.client_input(peer, client::Input::Op(op));
    }

    pub(crate) fn subscribe(&mut self, peer: usize, topic: &str, since: Option<Position>) {
        self.op(peer, TransportOp::Subscribe { topic: topic.to_owned(), since });
    }

    fn client_input(&mut self, peer: usize, input: client::Input<Bytes>) {
        let now = self.now;
        self.peers[peer].client.handle(now, input);
        while let Some(output) = self.peers[peer].client.poll_output() {
            match output {
                client::Output::Event(event) => self.peers[peer].events.push(event),
                client::Output::OpenSocket { socket } => {
                    assert!(!self.peers[peer].has_socket, "two sockets at once");
                    self.peers[peer].has_socket = true;
                    self.next += 1;
                    let session = SessionId(self.next);
                    self.peers[peer].session = Some(session);
                    self.peers[peer].sockets += 1;
                    self.sessions.insert(session, (peer, socket));
                    self.send_up(peer, Packet::Open { peer, socket, session });
                }
                client::Output::Send { commands, .. } => {
                    // Written into a link that broke a moment ago, it goes nowhere.
                    let Some(session) = self.peers[peer].session else { continue };
                    for frame in self.frames(commands) {
                        self.send_up(peer, Packet::Up { session, frame: frame.into() });
                    }
                }
                client::Output::CloseSocket { .. } => {
                    if let Some(session) = self.peers[peer].session {
                        self.cut_session(session, 1000);
                    }
                }
            }
        }
    }

    fn frames(&self, commands: Vec<Command<Bytes>>) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let encode = |command| {
            let mut frame = Vec::new();
            self.encoding.append_command(&mut frame, &command).expect("payloads are JSON");
            // A line ends where the next one begins.
            if self.encoding == Encoding::Json {
                frame.push(b'\n');
            }
            Ok(frame)
        };
        let left_out =
            Framing::new(FRAME_BYTES_MAX).pack(commands, encode, |frame| frames.push(frame));
        assert_eq!(left_out, []);
        frames
    }

    pub(crate) fn hub_input(&mut self, input: Input<Bytes>) {
        let now = self.now;
        let Some(hub) = &mut self.hub else { return };
        hub.handle(now, input);
        while let Some(output) = self.hub.as_mut().and_then(|hub| hub.poll_output(now)) {
            match output {
                Output::Reply(session, reply) => self.reply(session, &reply),
                Output::Fanout(push, sessions) => self.fan_out(push, &sessions),
                Output::Close(session, end) => {
                    if let Some((peer, socket)) = self.sessions.remove(&session) {
                        self.peers[peer].session = None;
                        let code = end.code.0;
                        self.send_down(peer, Packet::Closed { peer, socket, code });
                    }
                }
                Output::Verify { op, token, .. } => {
                    let verdict =
                        self.tokens.get(&token).cloned().unwrap_or(Err(TokenError::Invalid));
                    let hub = self.hub.as_mut().expect("it has just spoken");
                    hub.handle(now, Input::Verified(op, verdict));
                }
                Output::Broker(_) => unreachable!("the embedded hub answers these"),
                Output::ApiReply(_, result) => self.api.push(result.ok()),
                Output::Accepted { .. } | Output::FramePing(_) => {}
            }
        }
    }

    fn fan_out(&mut self, push: Push<Bytes>, sessions: &[SessionId]) {
        let reply = Reply::push(push);
        for session in sessions {
            self.reply(*session, &reply);
        }
    }

    fn reply(&mut self, session: SessionId, reply: &Reply<Bytes>) {
        let Some((peer, _)) = self.sessions.get(&session).copied() else { return };
        let mut frame = Vec::new();
        self.encoding.append_reply(&mut frame, reply).expect("payloads are JSON");
        self.send_down(peer, Packet::Down { peer, session, frame: frame.into() });
    }

    /// Publishes by the server's API.
    pub(crate) fn publish(&mut self, channel: &str, number: u64) {
        let publication = ApiPublish {
            data: Bytes::from(number.to_string()),
            skip_history: false,
            tags: BTreeMap::new(),
            idempotency_key: String::new(),
            version: None,
        };
        self.next += 1;
        let request = ApiRequest::Publish(publication, channel.to_owned());
        self.hub_input(Input::Api(ApiCallId(self.next), request));
    }

    /// The publications that a channel keeps, oldest first.
    pub(crate) fn history(&mut self, channel: &str) -> Vec<u64> {
        self.next += 1;
        let channel = channel.to_owned();
        let request = ApiRequest::History { channel, limit: -1, since: None, reverse: false };
        self.hub_input(Input::Api(ApiCallId(self.next), request));
        match self.api.pop() {
            Some(Some(ApiResult::History(page))) => {
                page.publications.iter().map(|publication| number(&publication.data)).collect()
            }
            other => panic!("no history: {other:?}"),
        }
    }

    pub(crate) fn sleep(&mut self, peer: usize) {
        self.peers[peer].asleep = true;
    }

    /// The peer finds its timer overdue first, and then what lies in its socket.
    pub(crate) fn wake(&mut self, peer: usize) {
        self.peers[peer].asleep = false;
        self.client_input(peer, client::Input::Tick);
    }

    pub(crate) fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let wire = self.wire.iter().find(|(_, packet)| !self.is_held_up(packet));
            let wire = wire.map(|((at, _), _)| *at);
            let hub = self.hub.as_ref().and_then(EmbeddedHub::next_timeout);
            let awake = self.peers.iter().enumerate().filter(|(_, peer)| !peer.asleep);
            let client = awake
                .filter_map(|(at, peer)| peer.client.next_timeout().map(|due| (due, at)))
                .min();
            let due = [wire, hub, client.map(|(due, _)| due)].into_iter().flatten().min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            if wire == Some(due) {
                self.deliver();
            } else if hub == Some(due) {
                self.hub_input(Input::Timeout);
            } else if let Some((_, peer)) = client {
                self.client_input(peer, client::Input::Tick);
            }
        }
        self.now = end;
    }

    /// A sleeping peer reads nothing.
    fn is_held_up(&self, packet: &Packet) -> bool {
        match packet {
            Packet::Opened { peer, .. }
            | Packet::Down { peer, .. }
            | Packet::Closed { peer, .. } => self.peers[*peer].asleep,
            Packet::Open { .. } | Packet::Up { .. } | Packet::Gone { .. } => false,
        }
    }

    fn deliver(&mut self) {
        let key =
            self.wire.iter().find(|(_, packet)| !self.is_held_up(packet)).map(|(key, _)| *key);
        let Some(packet) = key.and_then(|key| self.wire.remove(&key)) else { return };
        match packet {
            Packet::Open { peer, socket, session } => {
                if !self.sessions.contains_key(&session) {
                    return;
                }
                if self.hub.is_none() {
                    return self.cut_session(session, 1006);
                }
                self.hub_input(Input::Open(session));
                self.send_down(peer, Packet::Opened { peer, socket });
            }
            Packet::Opened { peer, socket } => {
                self.client_input(peer, client::Input::Opened { socket });
            }
            Packet::Up { session, frame } => {
                let commands = self.encoding.commands(frame, Limits::COMMANDS).expect("a frame");
                for command in commands {
                    self.hub_input(Input::Command(session, command.expect("a command")));
                }
            }
            Packet::Down { peer, session, frame } => {
                if self.peers[peer].session.is_some_and(|present| present != session) {
                    return;
                }
                let bytes = u32::try_from(frame.len()).expect("a small frame");
                let socket = self.socket_of(peer);
                for reply in self.encoding.replies(frame, Limits::REPLIES).expect("a frame") {
                    let reply = reply.expect("a reply");
                    self.client_input(peer, client::Input::Message { socket, reply, bytes });
                }
            }
            Packet::Closed { peer, socket, code } => {
                self.peers[peer].has_socket = false;
                let (code, reason) = (DisconnectCode(code), String::new());
                self.client_input(peer, client::Input::Closed { socket, code, reason });
            }
            Packet::Gone { session } => self.hub_input(Input::Closed(session)),
        }
    }

    fn socket_of(&self, peer: usize) -> SocketId {
        SocketId(u64::from(self.peers[peer].sockets))
    }
}

pub(crate) fn number(payload: &Bytes) -> u64 {
    std::str::from_utf8(payload).expect("text").parse().expect("a number")
}

impl Peer {
    /// What the peer was handed of a topic, in order: recovered and live.
    pub(crate) fn received(&self, topic: &str) -> Vec<u64> {
        let mut received = Vec::new();
        for event in &self.events {
            match event {
                TransportEvent::Subscribed { topic: of, publications, .. } if of == topic => {
                    received.extend(publications.iter().map(|p| number(&p.payload)));
                }
                TransportEvent::Publication { topic: of, publication } if of == topic => {
                    received.push(number(&publication.payload));
                }
                _ => {}
            }
        }
        received
    }

    /// Whether each subscription of a topic was recovered, in order.
    pub(crate) fn recoveries(&self, topic: &str) -> Vec<bool> {
        let recovered = |event: &Event| match event {
            TransportEvent::Subscribed { topic: of, recovered, .. } if of == topic => {
                Some(*recovered)
            }
            _ => None,
        };
        self.events.iter().filter_map(recovered).collect()
    }

    /// Server codes of the disconnects, in order.
    pub(crate) fn disconnects(&self) -> Vec<u32> {
        let code = |event: &Event| match event {
            TransportEvent::Disconnected { error, .. } => {
                Some(error.server_code.unwrap_or_default())
            }
            _ => None,
        };
        self.events.iter().filter_map(code).collect()
    }
}
