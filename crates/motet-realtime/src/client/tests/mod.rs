//! Each rule of the client's session, in simulated time.

mod calls;
mod connection;
mod positions;
mod silence;
mod subscriptions;
mod tokens;

use core::time::Duration;

use motet_protocol::transport::{TransportEvent, TransportOp};
use motet_protocol::{Instant, Position, Rng, StreamEpoch};

use super::{Client, ClientConfig, Input, Output, SocketId};
use crate::message::{
    Command, ConnectResult, DisconnectCode, Features, Publication, Push, PushEvent, Reply,
    ReplyBody, Request, SubscribeResult, Unsubscribe, UnsubscribeCode,
};

type Event = TransportEvent<u64>;

/// What was done with sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Socket {
    Open(u64),
    Close(u64),
}

/// A client, its driver and a clock.
struct Rig {
    client: Client<u64>,
    now: Instant,
    socket: SocketId,
    events: Vec<Event>,
    frames: Vec<Vec<Command<u64>>>,
    sockets: Vec<Socket>,
}

fn config() -> ClientConfig<u64> {
    ClientConfig::new("app".into(), "1".into())
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn position(epoch: &str, offset: u64) -> Position {
    Position::new(StreamEpoch::new(epoch), offset)
}

impl Rig {
    fn new() -> Self {
        Self::with(config(), 1)
    }

    fn with(config: ClientConfig<u64>, seed: u8) -> Self {
        Self {
            client: Client::new(config, Rng::from_seed([seed; 32])),
            now: Instant::from_micros(1_000_000),
            socket: SocketId::default(),
            events: Vec::new(),
            frames: Vec::new(),
            sockets: Vec::new(),
        }
    }

    /// A rig that is connected, with a clean record.
    fn connected() -> Self {
        let mut rig = Self::new();
        rig.connect(ConnectResult::default());
        rig
    }

    fn connect(&mut self, result: ConnectResult<u64>) {
        self.op(TransportOp::Open);
        self.open();
        self.accept(result);
        self.clear();
    }

    fn clear(&mut self) {
        self.events.clear();
        self.frames.clear();
        self.sockets.clear();
    }

    fn input(&mut self, input: Input<u64>) {
        self.client.handle(self.now, input);
        for output in self.client.drain() {
            match output {
                Output::Event(event) => self.events.push(event),
                Output::OpenSocket { socket } => {
                    assert!(socket > self.socket, "sockets are numbered upwards");
                    self.socket = socket;
                    self.sockets.push(Socket::Open(socket.0));
                }
                Output::Send { socket, commands } => {
                    assert_eq!(socket, self.socket);
                    self.frames.push(commands);
                }
                Output::CloseSocket { socket } => self.sockets.push(Socket::Close(socket.0)),
            }
        }
    }

    fn op(&mut self, op: TransportOp<u64>) {
        self.input(Input::Op(op));
    }

    fn subscribe(&mut self, topic: &str) {
        self.op(TransportOp::Subscribe { topic: topic.into(), since: None });
    }

    fn unsubscribe(&mut self, topic: &str) {
        self.op(TransportOp::Unsubscribe { topic: topic.into() });
    }

    fn token(&mut self, topic: Option<&str>, token: Option<&str>) {
        let (topic, token) = (topic.map(Into::into), token.map(Into::into));
        self.op(TransportOp::Token { topic, token });
    }

    /// A driver that is on time, for this long.
    fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(due) = self.client.next_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.input(Input::Tick);
        }
        self.now = end;
    }

    /// A driver that is on time, until the client wants to be called.
    fn wait_until_due(&mut self) {
        let due = self.client.next_timeout().expect("something is planned");
        self.wait(due - self.now);
    }

    /// A driver that sleeps through everything and then finds its timer overdue.
    fn sleep(&mut self, duration: Duration) {
        self.now += duration;
        self.input(Input::Tick);
    }

    fn open(&mut self) {
        self.input(Input::Opened { socket: self.socket });
    }

    fn closed(&mut self, code: u32) {
        let (socket, code) = (self.socket, DisconnectCode(code));
        self.input(Input::Closed { socket, code, reason: String::new() });
    }

    fn say(&mut self, reply: Reply<u64>) {
        self.input(Input::Message { socket: self.socket, reply, bytes: 90 });
    }

    fn answer(&mut self, id: u32, body: ReplyBody<u64>) {
        self.say(Reply::new(id, body));
    }

    fn accept(&mut self, result: ConnectResult<u64>) {
        let id = self.id_of(|request| matches!(request, Request::Connect(_)));
        self.answer(id, ReplyBody::Connect(Box::new(result)));
    }

    /// Accepts the last subscribe command for a topic.
    fn stand(&mut self, topic: &str, result: SubscribeResult<u64>) {
        let id = self.subscribe_id(topic);
        self.answer(id, ReplyBody::Subscribe(Box::new(result)));
    }

    fn live(&mut self, topic: &str, offset: u64) {
        let publication = Publication { offset, ..Publication::new(offset * 10) };
        self.say(Reply::push(Push::publication(topic, publication)));
    }

    fn push_unsubscribe(&mut self, topic: &str, code: UnsubscribeCode) {
        let event = PushEvent::Unsubscribe(Unsubscribe::from(code));
        self.say(Reply::push(Push { channel: topic.into(), event }));
    }

    fn sent(&self) -> impl Iterator<Item = &Command<u64>> {
        self.frames.iter().flatten()
    }

    /// Id of the last command that is such a request.
    fn id_of(&self, is: impl Fn(&Request<u64>) -> bool) -> u32 {
        let ids = self.sent().filter(|c| c.request.as_ref().is_some_and(&is)).map(|c| c.id);
        ids.last().expect("such a command was sent")
    }

    fn subscribe_id(&self, topic: &str) -> u32 {
        self.id_of(|request| matches!(request, Request::Subscribe(s) if s.channel == topic))
    }

    fn unsubscribe_id(&self, topic: &str) -> u32 {
        self.id_of(|request| matches!(request, Request::Unsubscribe(u) if u.channel == topic))
    }

    /// Id of the last command.
    fn last_id(&self) -> u32 {
        self.sent().last().expect("a command was sent").id
    }

    /// The commands sent since the record was cleared, by name.
    fn names(&self) -> Vec<String> {
        self.sent().map(name).collect()
    }

    fn take_events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }
}

fn name(command: &Command<u64>) -> String {
    match &command.request {
        None => "pong".into(),
        Some(Request::Connect(request)) => format!("connect {}", request.token).trim().into(),
        Some(Request::Subscribe(request)) if request.recover => {
            format!("subscribe {} {}@{}", request.channel, request.offset, request.epoch)
        }
        Some(Request::Subscribe(request)) => {
            format!("subscribe {} {}", request.channel, request.token).trim().into()
        }
        Some(Request::Unsubscribe(request)) => format!("unsubscribe {}", request.channel),
        Some(Request::Publish(request)) => format!("publish {}", request.data),
        Some(Request::History(request)) => format!("history {}", request.channel),
        Some(Request::Refresh(request)) => format!("refresh {}", request.token),
        Some(Request::SubRefresh(request)) => {
            format!("sub_refresh {} {}", request.channel, request.token)
        }
        Some(other) => panic!("a client does not send {other:?}"),
    }
}

/// The server keeps a stream that can be recovered.
fn stream(epoch: &str, offset: u64) -> SubscribeResult<u64> {
    SubscribeResult {
        recoverable: true,
        positioned: true,
        epoch: epoch.into(),
        offset,
        ..SubscribeResult::default()
    }
}

/// The server answers a recovery from `from` with publications up to `to`.
fn recovery(epoch: &str, from: u64, to: u64) -> SubscribeResult<u64> {
    let publications = (from + 1..=to)
        .map(|offset| Publication { offset, ..Publication::new(offset * 10) })
        .collect();
    SubscribeResult { publications, recovered: true, was_recovering: true, ..stream(epoch, from) }
}

fn extension(features: Features) -> ConnectResult<u64> {
    ConnectResult { motet: Some(features), ..ConnectResult::default() }
}

fn disconnected(event: &Event) -> Option<(u32, bool)> {
    match event {
        TransportEvent::Disconnected { error, terminal } => {
            Some((error.server_code.unwrap_or_default(), *terminal))
        }
        _ => None,
    }
}

/// Topic, server code, whether for good; code 0 when it was asked for.
fn unsubscribed(event: &Event) -> Option<(&str, u32, bool)> {
    match event {
        TransportEvent::Unsubscribed { topic, error, terminal } => {
            let code = error.as_ref().map_or(0, |error| error.server_code.unwrap_or(1));
            Some((topic, code, *terminal))
        }
        _ => None,
    }
}

/// Offsets of the live publications among events.
fn offsets(events: &[Event]) -> Vec<u64> {
    let offset = |event: &Event| match event {
        TransportEvent::Publication { publication, .. } => Some(publication.offset),
        _ => None,
    };
    events.iter().filter_map(offset).collect()
}
