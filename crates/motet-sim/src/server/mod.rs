//! The server: the real hub with its broker in memory, behind links that can break.

mod link;

use std::collections::{BTreeMap, HashMap};

use core::time::Duration;

use motet_protocol::{Instant, Position, Rng, StreamEpoch};
use motet_realtime::broker::{Broker as _, MemoryBroker, MemoryBrokerOptions};
use motet_realtime::hub::{ApiCallId, ApiPublish, ApiRequest, Hub, Input, Output, SessionId};
use motet_realtime::message::{
    Command, DisconnectCode, Features, PushEvent, Reply, ReplyBody, Request,
};
use motet_realtime::server::{
    Allow, ConnectionClaims, HubOptions, Namespace, Namespaces, TokenClaims, TokenError, TokenKind,
};

pub(crate) use link::{ConnectionId, Downstream, Link, Upstream};

use crate::invariants::delivery::Kept;
use crate::invariants::log::Accepted;
use crate::media::lock::Agent;
use crate::setup::Setup;
use crate::world::context::{AppCall, ContextId, Task};
use crate::world::event::Event;
use crate::world::{MS, SECOND, World};

/// The server and what judges note about it.
pub(crate) struct Server {
    hub: Hub<u64>,
    broker: MemoryBroker<u64>,
    options: HubOptions,
    /// It takes connections.
    pub(crate) up: bool,
    /// How often it has started with an empty memory.
    pub(crate) life: u32,
    /// Expired tokens are refused as expired, others for good.
    pub(crate) refuse_for_good: bool,
    timer: (Option<Instant>, u32),
    calls: u64,
    /// Commands that await their reply, with the topic they concern and whether they subscribe.
    commands: HashMap<(ConnectionId, u32), (usize, bool)>,
    /// Topics of each open connection.
    subscribed: BTreeMap<ConnectionId, Vec<usize>>,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Server").field("up", &self.up).field("life", &self.life).finish()
    }
}

fn options(setup: &Setup) -> HubOptions {
    let everybody = Allow { client: true, anonymous: true, subscriber: false };
    let nobody = Allow { client: false, anonymous: false, subscriber: false };
    let kept = Namespace {
        name: "kept".to_owned(),
        history_size: setup.retained,
        history_ttl: Duration::from_secs(3_600),
        force_positioning: true,
        allow_positioning: true,
        force_recovery: true,
        allow_recovery: true,
        subscribe: everybody,
        publish: everybody,
        history_right: everybody,
        ..Namespace::default()
    };
    let live = Namespace {
        name: "live".to_owned(),
        subscribe: everybody,
        publish: everybody,
        ..Namespace::default()
    };
    let shut =
        Namespace { name: "shut".to_owned(), subscribe: nobody, publish: nobody, ..live.clone() };
    HubOptions {
        namespaces: Namespaces::new(live.clone(), [kept, live, shut]),
        ping_interval: Duration::from_secs(5),
        pong_timeout: Duration::from_secs(2),
        expired_close_delay: Duration::from_secs(3),
        channel_position_check_delay: Duration::from_secs(10),
        features: if setup.extended { Features::ALL } else { Features::default() },
        allow_anonymous_connect_without_token: !setup.tokens,
        report_accepted: true,
        ..HubOptions::default()
    }
}

impl Server {
    pub(crate) fn new(setup: &Setup, rng: &mut Rng) -> Self {
        let options = options(setup);
        Self {
            hub: Hub::new(options.clone(), rng.fork()),
            broker: MemoryBroker::new(rng.fork(), MemoryBrokerOptions::default()),
            options,
            up: true,
            life: 0,
            refuse_for_good: true,
            timer: (None, 0),
            calls: 0,
            commands: HashMap::new(),
            subscribed: BTreeMap::new(),
        }
    }
}

impl World {
    fn server_now(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    /// A host opens a connection. Nothing tells it that the network does not carry.
    pub(crate) fn open_connection(&mut self, context: ContextId, agent: Agent) -> ConnectionId {
        let id = self.links.len();
        self.links.push(Link::new(context, agent, self.online));
        let handshake = 2 * self.setup.network_delay;
        self.links[id].last_arrival[0] = self.now + handshake;
        if self.online {
            self.send_up(id, Upstream::Open);
        }
        id
    }

    /// A message on its way to the server.
    pub(crate) fn send_up(&mut self, id: ConnectionId, message: Upstream) {
        if !self.links[id].carries {
            return;
        }
        let delay = self.setup.network_delay;
        let arrival = self.now + delay + self.rng.below(delay);
        let last = &mut self.links[id].last_arrival[0];
        *last = arrival.max(*last);
        let at = *last;
        self.agenda.insert(at, Event::Up(id, message));
    }

    /// A message on its way to the client.
    fn send_down(&mut self, id: ConnectionId, message: Downstream) {
        if !self.links[id].carries {
            return;
        }
        let delay = self.setup.network_delay;
        let arrival = self.now + delay + self.rng.below(delay);
        let link = &mut self.links[id];
        link.last_arrival[1] = arrival.max(link.last_arrival[1]);
        let (at, context) = (link.last_arrival[1], link.context);
        let task = Task::Socket(id, message);
        self.agenda.insert(at, Event::Arrive { context, sender: None, task });
    }

    /// The client's end closes; of a renderer that crashed the server hears a little later.
    pub(crate) fn client_closes(&mut self, id: ConnectionId, told: bool) {
        self.links[id].client_open = false;
        if told {
            self.send_up(id, Upstream::Closed);
        } else if self.links[id].carries {
            let at = self.now + self.setup.network_delay + self.rng.below(20 * MS);
            self.agenda.insert(at, Event::Up(id, Upstream::Closed));
        }
    }

    pub(crate) fn server_hears(&mut self, id: ConnectionId, message: Upstream) {
        let session = SessionId(id as u64);
        match message {
            Upstream::Open => {
                if self.server.up && self.links[id].carries && self.links[id].client_open {
                    self.links[id].server_open = true;
                    self.server.subscribed.insert(id, Vec::new());
                    self.server.hub.handle(self.server_now(), Input::Open(session));
                    self.send_down(id, Downstream::Opened);
                } else {
                    self.send_down(id, Downstream::Closed(None));
                }
            }
            Upstream::Command(command) => {
                if !self.links[id].server_open {
                    return;
                }
                self.note_command(id, &command);
                self.server.hub.handle(self.server_now(), Input::Command(session, *command));
            }
            Upstream::Closed => {
                if self.links[id].server_open {
                    self.server_forgets(id);
                    self.server.hub.handle(self.server_now(), Input::Closed(session));
                }
            }
        }
        self.drain_server();
    }

    fn note_command(&mut self, id: ConnectionId, command: &Command<u64>) {
        let (channel, subscribes) = match &command.request {
            Some(Request::Subscribe(request)) => (&request.channel, true),
            Some(Request::Unsubscribe(request)) => (&request.channel, false),
            _ => return,
        };
        if let Some(topic) = self.topic_index(channel) {
            self.server.commands.insert((id, command.id), (topic, subscribes));
        }
    }

    pub(crate) fn server_timer(&mut self, stamp: u32) {
        if self.server.timer.1 == stamp && self.server.up {
            self.server.timer.0 = None;
            let now = self.server_now();
            self.server.broker.handle_timeout(now);
            self.server.hub.handle(now, Input::Timeout);
            self.drain_server();
        }
    }

    fn drain_server(&mut self) {
        let now = self.server_now();
        loop {
            while let Some(event) = self.server.broker.poll_output() {
                self.server.hub.handle(now, Input::Broker(event));
            }
            let Some(output) = self.server.hub.poll_output() else { break };
            self.server_output(output);
        }
        let due = [self.server.hub.next_timeout(), self.server.broker.next_timeout()];
        let due = due.into_iter().flatten().min();
        if self.server.timer.0 != due {
            self.server.timer = (due, self.server.timer.1 + 1);
            if let Some(due) = due {
                let at = due.as_micros().max(self.now);
                self.agenda.insert(at, Event::ServerTimer(self.server.timer.1));
            }
        }
    }

    fn server_output(&mut self, output: Output<u64>) {
        let now = self.server_now();
        match output {
            Output::Broker(request) => self.server.broker.handle(now, request),
            Output::Reply(session, reply) => {
                let id = session.0 as ConnectionId;
                self.note_reply(id, &reply);
                self.send_down(id, Downstream::Reply(Box::new(reply)));
            }
            Output::Fanout(push, sessions) => {
                for session in sessions.iter() {
                    let reply = Reply::push(push.clone());
                    self.send_down(session.0 as ConnectionId, Downstream::Reply(Box::new(reply)));
                }
            }
            Output::Close(session, disconnect) => {
                let id = session.0 as ConnectionId;
                self.server_forgets(id);
                self.send_down(id, Downstream::Closed(Some(disconnect.code.0)));
            }
            Output::Verify { op, kind, token } => {
                let verdict = self.verify(kind, &token);
                self.server.hub.handle(now, Input::Verified(op, verdict));
            }
            Output::Accepted { channel, position, data } => {
                let Some(topic) = self.topic_index(&channel) else { return };
                let position = position.map(|position| {
                    Position::new(StreamEpoch::new(position.epoch), position.offset)
                });
                self.note(|| format!("server accepts {data} on topic {topic} at {position:?}"));
                let entry = Accepted { payload: data, position, server_life: self.server.life };
                self.checks.accepted(topic, entry, self.now);
            }
            // No client here asks for frames.
            Output::ApiReply(..) | Output::FramePing(_) => {}
        }
    }

    fn verify(&self, kind: TokenKind, token: &str) -> Result<TokenClaims<u64>, TokenError> {
        if kind != TokenKind::Connection || !self.tokens_valid || token != "valid" {
            return Err(if self.server.refuse_for_good {
                TokenError::Invalid
            } else {
                TokenError::Expired
            });
        }
        let seconds = u64::from(self.setup.token_seconds);
        let mut claims = ConnectionClaims::user("somebody");
        claims.expires_in = (seconds > 0).then(|| Duration::from_secs(seconds));
        Ok(TokenClaims::Connection(Box::new(claims)))
    }

    fn note_reply(&mut self, id: ConnectionId, reply: &Reply<u64>) {
        let command = self.server.commands.remove(&(id, reply.id));
        let topic = match (&reply.body, command) {
            (ReplyBody::Subscribe(_), Some((topic, true))) => {
                self.note_subscription(id, topic, true);
                return;
            }
            (ReplyBody::Unsubscribe, Some((topic, false))) => Some(topic),
            (ReplyBody::Push(push), _) => match &push.event {
                PushEvent::Unsubscribe(_) => self.topic_index(&push.channel),
                _ => None,
            },
            _ => None,
        };
        if let Some(topic) = topic {
            self.note_subscription(id, topic, false);
        }
    }

    fn note_subscription(&mut self, id: ConnectionId, topic: usize, holds: bool) {
        let link = &self.links[id];
        let node = self.node_of(link.context, link.agent);
        let Some(topics) = self.server.subscribed.get_mut(&id) else { return };
        let held = topics.contains(&topic);
        if holds == held {
            return;
        }
        if holds {
            topics.push(topic);
        } else {
            topics.retain(|other| *other != topic);
        }
        self.note(|| format!("server: connection {id} of {node:?} holds topic {topic}: {holds}"));
        if holds {
            self.judge_holders(topic);
        }
    }

    /// Connections that hold a topic at the server.
    pub(crate) fn holders(&self, topic: usize) -> impl Iterator<Item = &Link> {
        let subscribed = self.server.subscribed.iter();
        subscribed
            .filter(move |(_, topics)| topics.contains(&topic))
            .map(|(id, _)| &self.links[*id])
    }

    /// Connections that the server has.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &Link> {
        self.server.subscribed.keys().map(|id| &self.links[*id])
    }

    fn server_forgets(&mut self, id: ConnectionId) {
        self.links[id].server_open = false;
        self.server.subscribed.remove(&id);
    }

    /// Somebody outside publishes.
    pub(crate) fn server_publishes(&mut self, topic: usize, count: u32) {
        if !self.server.up {
            return;
        }
        for _ in 0..count {
            self.last_payload += 1;
            self.server.calls += 1;
            let publish = ApiPublish {
                data: self.last_payload,
                skip_history: false,
                tags: BTreeMap::new(),
                idempotency_key: String::new(),
                version: None,
            };
            let request = ApiRequest::Publish(publish, self.setup.topics[topic].name.clone());
            let call = ApiCallId(self.server.calls);
            self.server.hub.handle(self.server_now(), Input::Api(call, request));
            self.drain_server();
        }
    }

    /// What the server still keeps of a topic, by the log; `None` when nobody knows its stream.
    pub(crate) fn kept(&self, topic: usize) -> Option<Kept> {
        let (epoch, head, first) = self.checks.log.stream_of(topic, self.server.life)?;
        let retained = self.setup.retained as u64;
        Some(Kept { epoch, oldest: (head + 1).saturating_sub(retained).max(first) })
    }

    /// The server stops; with an empty memory its streams start anew when it is back.
    pub(crate) fn server_stops(&mut self, empty: bool) {
        if !self.server.up {
            return;
        }
        self.server.up = false;
        let told = self.chance(500);
        for id in self.server.subscribed.keys().copied().collect::<Vec<_>>() {
            let code = told.then_some(DisconnectCode::SHUTDOWN.0);
            self.server_forgets(id);
            self.send_down(id, Downstream::Closed(code));
        }
        self.server.commands.clear();
        self.server.timer = (None, self.server.timer.1 + 1);
        self.server.hub = Hub::new(self.server.options.clone(), self.rng.fork());
        if empty {
            self.server.life += 1;
            let rng = self.rng.fork();
            self.server.broker = MemoryBroker::new(rng, MemoryBrokerOptions::default());
        }
    }

    pub(crate) fn server_starts(&mut self) {
        if !self.server.up {
            self.note(|| "the server is up".to_owned());
            self.server.up = true;
            self.drain_server();
        }
    }

    /// Connections break; each side notices for itself.
    pub(crate) fn drop_connections(&mut self, node_context: Option<ContextId>) -> bool {
        let open = self.links.iter().enumerate().filter(|(_, link)| {
            link.client_open && link.carries && node_context.is_none_or(|id| id == link.context)
        });
        let ids: Vec<_> = open.map(|(id, _)| id).collect();
        for id in &ids {
            self.send_down(*id, Downstream::Closed(None));
            let at = self.now + self.rng.below(800 * MS);
            self.agenda.insert(at, Event::Up(*id, Upstream::Closed));
            self.links[*id].carries = false;
        }
        !ids.is_empty()
    }

    /// Connections carry nothing any more, and nobody is told.
    pub(crate) fn half_open(&mut self, node_context: Option<ContextId>) -> bool {
        let mut any = false;
        for link in &mut self.links {
            if link.client_open && node_context.is_none_or(|id| id == link.context) {
                any |= link.carries;
                link.carries = false;
            }
        }
        any
    }

    /// The network carries nothing, for old and new connections alike.
    pub(crate) fn network_fails(&mut self) -> bool {
        let was = self.online;
        self.online = false;
        self.half_open(None);
        was
    }

    pub(crate) fn network_returns(&mut self) {
        if self.online {
            return;
        }
        self.online = true;
        for tab in 0..self.tabs.len() {
            if let Some(page) = self.open_page(tab) {
                let event = motet_cluster::client::PageEvent::Online;
                self.send(page, MS, Task::Browser(event));
            }
        }
    }

    /// Tokens are refused from now on.
    pub(crate) fn tokens_fail(&mut self, for_good: bool) {
        self.tokens_valid = false;
        self.server.refuse_for_good = for_good;
    }

    pub(crate) fn tokens_return(&mut self) {
        if self.tokens_valid {
            return;
        }
        self.tokens_valid = true;
        for tab in 0..self.tabs.len() {
            if let Some(page) = self.open_page(tab) {
                // The second time is for those who were refused with the old token just now.
                for after in [MS, SECOND] {
                    self.send(page, after, Task::App(AppCall::Retry));
                }
            }
        }
    }
}
