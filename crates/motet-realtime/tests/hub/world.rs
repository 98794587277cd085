//! A hub, its connections and their tokens, driven by a clock that the test turns.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use motet_protocol::{Instant, Rng};
use motet_realtime::broker::{MemoryBroker, MemoryBrokerOptions};
use motet_realtime::hub::{
    ApiCallId, ApiError, ApiRequest, ApiResult, EmbeddedHub, Hub, Input, Output, SessionId,
};
use motet_realtime::message::{
    Command, ConnectRequest, ConnectResult, Features, Publication, PublishRequest, PushEvent,
    Reply, ReplyBody, Request, SubscribeRequest, SubscribeResult, UnsubscribeRequest,
};
use motet_realtime::server::{
    Allow, ConnectionClaims, HubOptions, Namespace, Namespaces, SubscriptionClaims, TokenClaims,
    TokenError,
};

pub(crate) const EVERYBODY: Allow = Allow { client: true, anonymous: true, subscriber: true };

/// A namespace in which everybody may do everything, with a stream of `size` publications.
pub(crate) fn open_namespace(name: &str, size: usize) -> Namespace {
    Namespace {
        name: name.to_owned(),
        presence: true,
        history_size: size,
        history_ttl: Duration::from_secs(300),
        force_recovery: size > 0,
        subscribe: EVERYBODY,
        publish: EVERYBODY,
        presence_right: EVERYBODY,
        history_right: EVERYBODY,
        ..Namespace::default()
    }
}

/// Channels without namespace keep a stream; `plain:` keeps none; `closed:` grants nothing.
pub(crate) fn options() -> HubOptions {
    let closed = Namespace { name: "closed".to_owned(), ..Namespace::default() };
    let named = [open_namespace("plain", 0), open_namespace("small", 2), closed];
    HubOptions {
        namespaces: Namespaces::new(open_namespace("", 1_000), named),
        allow_anonymous_connect_without_token: true,
        ..HubOptions::default()
    }
}

pub(crate) struct World {
    pub(crate) now: Instant,
    hub: EmbeddedHub<u64>,
    /// What each connection was sent and has not looked at.
    inbox: BTreeMap<SessionId, VecDeque<Reply<u64>>>,
    pub(crate) closed: BTreeMap<SessionId, u32>,
    pub(crate) frame_pings: Vec<SessionId>,
    api: BTreeMap<ApiCallId, Result<ApiResult<u64>, ApiError>>,
    pub(crate) accepted: Vec<(String, u64)>,
    tokens: BTreeMap<String, Result<TokenClaims<u64>, TokenError>>,
    next: u64,
}

impl World {
    pub(crate) fn new(options: HubOptions) -> Self {
        let broker = MemoryBroker::new(Rng::from_seed([2; 32]), MemoryBrokerOptions::default());
        let hub = Hub::new(options, Rng::from_seed([1; 32]));
        Self {
            now: Instant::ZERO,
            hub: EmbeddedHub::new(hub, broker),
            inbox: BTreeMap::new(),
            closed: BTreeMap::new(),
            frame_pings: Vec::new(),
            api: BTreeMap::new(),
            accepted: Vec::new(),
            tokens: BTreeMap::new(),
            next: 0,
        }
    }

    pub(crate) fn input(&mut self, input: Input<u64>) {
        self.hub.handle(self.now, input);
        while let Some(output) = self.hub.poll_output(self.now) {
            self.take(output);
        }
    }

    fn take(&mut self, output: Output<u64>) {
        match output {
            Output::Reply(session, reply) => {
                self.inbox.entry(session).or_default().push_back(reply);
            }
            Output::Fanout(push, sessions) => {
                for session in sessions.iter() {
                    let reply = Reply::push(push.clone());
                    self.inbox.entry(*session).or_default().push_back(reply);
                }
            }
            Output::FramePing(session) => self.frame_pings.push(session),
            Output::Close(session, disconnect) => {
                self.closed.insert(session, disconnect.code.0);
            }
            Output::Verify { op, token, .. } => {
                let verdict = self.tokens.get(&token).cloned().unwrap_or(Err(TokenError::Invalid));
                self.hub.handle(self.now, Input::Verified(op, verdict));
            }
            Output::Broker(_) => unreachable!("the embedded hub answers these"),
            Output::ApiReply(call, result) => {
                self.api.insert(call, result);
            }
            Output::Accepted { channel, data, .. } => {
                self.accepted.push((channel.to_string(), data));
            }
        }
    }

    /// Lets time pass, calling the hub whenever it wants to be called.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(due) = self.hub.next_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.input(Input::Timeout);
        }
        self.now = until;
    }

    /// Turns the clock to when the hub next wants to be called.
    pub(crate) fn pass_to_next_timer(&mut self) {
        let due = self.hub.next_timeout().expect("a timer");
        self.pass(due - self.now);
    }

    pub(crate) fn open(&mut self) -> SessionId {
        self.next += 1;
        let session = SessionId(self.next);
        self.input(Input::Open(session));
        session
    }

    pub(crate) fn send(&mut self, session: SessionId, command: Command<u64>) {
        self.input(Input::Command(session, command));
    }

    /// Sends a request and returns the body of its reply; pushes stay in the inbox.
    pub(crate) fn ask(&mut self, session: SessionId, request: Request<u64>) -> ReplyBody<u64> {
        self.next += 1;
        let id = u32::try_from(self.next).expect("few commands");
        self.send(session, Command::new(id, request));
        let inbox = self.inbox.entry(session).or_default();
        let at = inbox.iter().position(|reply| reply.id == id).expect("a reply");
        inbox.remove(at).expect("just found").body
    }

    pub(crate) fn error(&mut self, session: SessionId, request: Request<u64>) -> u32 {
        match self.ask(session, request) {
            ReplyBody::Error(error) => error.code.0,
            body => panic!("expected an error, got {body:?}"),
        }
    }

    /// Everything a connection was sent since the last look.
    pub(crate) fn inbox(&mut self, session: SessionId) -> Vec<Reply<u64>> {
        self.inbox.remove(&session).unwrap_or_default().into()
    }

    /// Publications a connection was pushed since the last look.
    pub(crate) fn pushed(&mut self, session: SessionId) -> Vec<Publication<u64>> {
        let publication = |reply: Reply<u64>| match reply.body {
            ReplyBody::Push(push) => match push.event {
                PushEvent::Publication(publication) => Some(*publication),
                _ => None,
            },
            _ => None,
        };
        self.inbox(session).into_iter().filter_map(publication).collect()
    }

    pub(crate) fn connect_with(
        &mut self,
        request: ConnectRequest<u64>,
    ) -> (SessionId, ReplyBody<u64>) {
        let session = self.open();
        let body = self.ask(session, Request::Connect(Box::new(request)));
        (session, body)
    }

    /// A connected anonymous client that speaks the Motet extension.
    pub(crate) fn client(&mut self) -> SessionId {
        self.client_result(ConnectRequest {
            motet: Some(Features::ALL),
            ..ConnectRequest::default()
        })
        .0
    }

    /// A connected client of this user.
    pub(crate) fn user(&mut self, user: &str) -> SessionId {
        let token = format!("token of {user}");
        self.connection_token(&token, ConnectionClaims::user(user));
        self.client_result(ConnectRequest { token, ..ConnectRequest::default() }).0
    }

    pub(crate) fn client_result(
        &mut self,
        request: ConnectRequest<u64>,
    ) -> (SessionId, ConnectResult<u64>) {
        match self.connect_with(request) {
            (session, ReplyBody::Connect(result)) => (session, *result),
            (_, body) => panic!("expected a connection, got {body:?}"),
        }
    }

    pub(crate) fn connection_token(&mut self, token: &str, claims: ConnectionClaims<u64>) {
        self.tokens.insert(token.to_owned(), Ok(TokenClaims::Connection(Box::new(claims))));
    }

    pub(crate) fn subscription_token(&mut self, token: &str, claims: SubscriptionClaims<u64>) {
        self.tokens.insert(token.to_owned(), Ok(TokenClaims::Subscription(Box::new(claims))));
    }

    pub(crate) fn expired_token(&mut self, token: &str) {
        self.tokens.insert(token.to_owned(), Err(TokenError::Expired));
    }

    pub(crate) fn subscribe_with(
        &mut self,
        session: SessionId,
        request: SubscribeRequest<u64>,
    ) -> SubscribeResult<u64> {
        match self.ask(session, Request::Subscribe(Box::new(request))) {
            ReplyBody::Subscribe(result) => *result,
            body => panic!("expected a subscription, got {body:?}"),
        }
    }

    pub(crate) fn subscribe(&mut self, session: SessionId, channel: &str) -> SubscribeResult<u64> {
        self.subscribe_with(session, subscribe_to(channel))
    }

    pub(crate) fn unsubscribe(&mut self, session: SessionId, channel: &str) {
        let request = UnsubscribeRequest { channel: channel.to_owned() };
        let body = self.ask(session, Request::Unsubscribe(request));
        assert!(matches!(body, ReplyBody::Unsubscribe), "{body:?}");
    }

    pub(crate) fn publish(&mut self, session: SessionId, channel: &str, data: u64) {
        let body = self.ask(session, publish_to(channel, data));
        assert!(matches!(body, ReplyBody::Publish), "{body:?}");
    }

    pub(crate) fn api(&mut self, request: ApiRequest<u64>) -> Result<ApiResult<u64>, ApiError> {
        self.next += 1;
        let call = ApiCallId(self.next);
        self.input(Input::Api(call, request));
        self.api.remove(&call).expect("an answer")
    }

    pub(crate) fn presence_count(&mut self, channel: &str) -> u32 {
        match self.api(ApiRequest::PresenceStats(channel.to_owned())) {
            Ok(ApiResult::PresenceStats { num_clients, .. }) => num_clients,
            result => panic!("expected counts, got {result:?}"),
        }
    }
}

pub(crate) fn subscribe_to(channel: &str) -> SubscribeRequest<u64> {
    SubscribeRequest { channel: channel.to_owned(), ..SubscribeRequest::default() }
}

pub(crate) fn publish_to(channel: &str, data: u64) -> Request<u64> {
    Request::Publish(PublishRequest { channel: channel.to_owned(), data, kind: 0, motet: None })
}
