//! One page's handle on the bus.
//!
//! A [`Client`] keeps what the application wants (handlers, publications) apart from what the
//! cluster has made of it (routes, positions), so that a node, an owner or the whole page can go
//! away and come back: the intent is told anew, and each topic asks with its last position for
//! what it missed.

mod api;
mod delivery;
mod hole;
mod lifecycle;
mod outbox;
mod port;
mod publish;
mod replica;
mod ring;
mod snapshot;
mod topic;

#[cfg(test)]
mod tests;

use litemap::LiteMap;
use motet_protocol::{AwakeClock, ClientId, CorrelationId, ErrorCode, Instant, NodeId, Rng};

pub use api::{
    ClientConfig, ClientIdentity, ClientInput, ClientOutput, ClientStatus, Delivery, ErrorSource,
    Gap, HandlerId, PageEvent, PendingPublish, PublishCall, Recipients, SubscriptionState,
};
pub use replica::{KnownMember, KnownRoute};
pub use snapshot::{ClientCounters, SubscriptionView, TopicPhase};

use self::lifecycle::Life;
use self::outbox::Env;
use self::publish::Publications;
use self::replica::Replica;
use self::topic::{Handler, Topic};
use crate::frame::{Frame, ToNode};
use crate::name::{SHARDS, TOPICS_PER_PAGE_MAX, check_topic};
use crate::node::NodePacket;

/// One page's handle on the bus, as a state machine without I/O.
///
/// The driver hands in what happens with [`Client::handle`], carries out what
/// [`Client::poll_output`] returns until it returns nothing, and calls with
/// [`ClientInput::Tick`] at [`Client::next_timeout`].
///
/// ```
/// use motet_cluster::client::{Client, ClientConfig, ClientInput, ClientOutput, ClientStatus};
/// use motet_protocol::{Instant, Rng, TabId};
///
/// let config = ClientConfig::new(TabId::from_bits(1));
/// let mut client = Client::<String>::new(Instant::ZERO, config, Rng::from_seed([1; 32]));
/// client.handle(Instant::ZERO, ClientInput::Start);
/// assert_eq!(client.poll_output(), Some(ClientOutput::StartNode { start: 1 }));
/// assert_eq!(client.poll_output(), Some(ClientOutput::Status(ClientStatus::Starting)));
/// assert_eq!(client.poll_output(), None);
/// ```
#[derive(Debug)]
pub struct Client<P> {
    clock: AwakeClock,
    env: Env<P>,
    life: Life,
    status: ClientStatus,
    coordinator: Option<NodeId>,
    topics: LiteMap<String, Topic<P>>,
    /// Subscribed topics on each data channel.
    shards: [u32; SHARDS as usize],
    publications: Publications<P>,
    replica: Replica,
    /// Tokens that the application was asked for, and when.
    tokens_asked: LiteMap<Option<String>, Instant>,
    /// When the node was asked last whom it has heard of.
    inspected: Option<Instant>,
}

impl<P: Clone> Client<P> {
    /// A client that has not started. `rng` decides ids and jitter.
    #[must_use]
    pub fn new(now: Instant, config: ClientConfig, mut rng: Rng) -> Self {
        let client = ClientId::random(&mut rng);
        let identity = ClientIdentity { client, tab: config.tab, node: None };
        Self {
            clock: AwakeClock::new(now),
            life: Life::new(&config),
            env: Env::new(now, config, rng, identity),
            status: ClientStatus::Idle,
            coordinator: None,
            topics: LiteMap::new(),
            shards: [0; SHARDS as usize],
            publications: Publications::new(),
            replica: Replica::new(),
            tokens_asked: LiteMap::new(),
            inspected: None,
        }
    }

    /// Tells the client what happened.
    pub fn handle(&mut self, now: Instant, input: ClientInput<P>) {
        let stall = self.clock.advance(now, self.next_timeout());
        self.env.now = self.clock.now();
        if stall.is_some() {
            self.thaw();
        }
        match input {
            ClientInput::Start => self.start(),
            ClientInput::Close => self.close(),
            ClientInput::Tick => {}
            ClientInput::Subscribe { handler, topic, replay } => {
                self.subscribe(Handler { id: handler, replay }, topic);
            }
            ClientInput::Unsubscribe { handler } => self.unsubscribe(handler),
            ClientInput::Publish { correlation, call } => self.publish(correlation, call),
            ClientInput::Abort { correlation } => {
                self.publications.abort(&mut self.env, correlation);
            }
            ClientInput::NodeStarted { start, shared } => self.node_started(start, shared),
            ClientInput::Tab(tab) => self.env.identity.tab = tab,
            ClientInput::NodeGone { start, error } => self.node_gone(start, error),
            ClientInput::Port(packet) => self.on_port(packet),
            ClientInput::Data(packet) => self.on_data(packet),
            ClientInput::Page(event) => self.on_page(event),
            ClientInput::Token { topic, token } => {
                self.tokens_asked.remove(&topic);
                self.env.outbox.send(ToNode::Token { topic, token });
            }
            ClientInput::Retry => self.env.outbox.send(ToNode::Retry),
            ClientInput::Inspect => self.inspect(),
        }
        if self.env.due().is_some_and(|due| self.env.now >= due) {
            self.run_timers();
        }
        self.refresh_status();
    }

    /// What the driver has to do next; `None` when there is nothing more.
    pub fn poll_output(&mut self) -> Option<ClientOutput<P>> {
        self.env.outbox.pop()
    }

    /// When to call with [`ClientInput::Tick`]; `None` while nothing is timed.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.env.due().map(|due| self.clock.monotonic(due))
    }

    fn run_timers(&mut self) {
        self.env.clear_due();
        self.run_life();
        self.publications.tick(&mut self.env);
        let now = self.env.now;
        let over = self.topics.values().filter(|topic| topic.is_over(now));
        let over: Vec<String> = over.map(|topic| topic.name.clone()).collect();
        for topic in over {
            self.end_topic(&topic);
        }
        for (_, topic) in &mut self.topics {
            topic.expire_hole(&mut self.env);
            topic.retry_join(&mut self.env);
            topic.wake(&mut self.env);
        }
        self.bound_rings();
    }

    // Subscriptions.

    fn subscribe(&mut self, handler: Handler, name: String) {
        let refusal = if self.life.is_closed() {
            Some(ErrorCode::Closed.into())
        } else if self.topics.len() >= TOPICS_PER_PAGE_MAX && !self.topics.contains_key(&name) {
            Some(ErrorCode::Backpressure.into())
        } else {
            check_topic(&name).err()
        };
        if let Some(error) = refusal {
            let state = SubscriptionState::Failed(error);
            self.env.outbox.push(ClientOutput::Subscription { topic: name, state });
            return;
        }
        if let Some(topic) = self.topics.get_mut(&name) {
            topic.add_handler(&mut self.env, handler);
            return;
        }
        let mut topic = Topic::new(name.clone());
        // Listening comes first: what is posted while the owner is being asked is buffered.
        self.want_shard(topic.shard);
        self.env.outbox.subscribe(&name);
        topic.add_handler(&mut self.env, handler);
        topic.announce(&mut self.env);
        if let Some(error) = self.life.failure() {
            topic.fail(&mut self.env, error.clone());
        }
        if self.env.outbox.is_open() {
            topic.want_join(&mut self.env);
        }
        if let Some(route) = self.replica.route(&name) {
            topic.on_route(&mut self.env, route);
        }
        self.topics.insert(name, topic);
    }

    fn unsubscribe(&mut self, handler: HandlerId) {
        let has_it = |topic: &Topic<P>| topic.handlers.iter().any(|one| one.id == handler);
        let found = self.topics.iter_mut().find(|(_, topic)| has_it(topic));
        let Some((_, topic)) = found else { return };
        topic.remove_handler(&mut self.env, handler);
        if self.life.is_away() && topic.handlers.is_empty() {
            let name = topic.name.clone();
            // A page that is away has no timer, so nothing lingers.
            self.env.clear_due();
            self.end_topic(&name);
        }
    }

    fn end_topic(&mut self, name: &str) {
        let Some(topic) = self.topics.remove(name) else { return };
        self.env.ring_bytes -= topic.ring.bytes();
        self.env.outbox.unsubscribe(name);
        self.leave_shard(topic.shard);
    }

    fn want_shard(&mut self, shard: u8) {
        let wanted = &mut self.shards[shard as usize];
        *wanted += 1;
        if *wanted == 1 && !self.life.is_away() {
            self.env.outbox.push(ClientOutput::OpenShard(shard));
        }
    }

    fn leave_shard(&mut self, shard: u8) {
        let wanted = &mut self.shards[shard as usize];
        *wanted -= 1;
        if *wanted == 0 && !self.life.is_away() {
            self.env.outbox.push(ClientOutput::CloseShard(shard));
        }
    }

    /// Outputs for every data channel in use.
    fn each_shard(&mut self, output: fn(u8) -> ClientOutput<P>) {
        for shard in 0..SHARDS {
            if self.shards[shard as usize] > 0 {
                self.env.outbox.push(output(shard));
            }
        }
    }

    /// Keeps the rings within the page's limit, at the cost of the largest.
    fn bound_rings(&mut self) {
        while self.env.ring_bytes > self.env.config.ring_bytes_total {
            let rings = self.topics.iter_mut().map(|(_, topic)| &mut topic.ring);
            let Some(largest) = rings.max_by_key(|ring| ring.bytes()) else { return };
            let before = largest.bytes();
            largest.halve();
            self.env.ring_bytes -= before - largest.bytes();
        }
    }

    // Publications.

    fn publish(&mut self, correlation: CorrelationId, call: PublishCall<P>) {
        match self.life.refusal() {
            None => self.publications.push(&mut self.env, correlation, call),
            Some(error) => {
                self.env.counters.settled += 1;
                self.env.outbox.push(ClientOutput::Settled { correlation, result: Err(error) });
            }
        }
    }

    // The data channels.

    fn on_data(&mut self, packet: NodePacket<P>) {
        if !self.life.listens() {
            return;
        }
        for frame in packet.frames {
            match frame {
                Frame::Data { topic, fence, epoch, messages } => {
                    let Some(topic) = self.topics.get_mut(&topic) else { continue };
                    match delivery::messages(messages, &packet.payloads) {
                        Some(messages) => {
                            topic.on_data(&mut self.env, packet.from, fence, &epoch, messages);
                        }
                        None => self.env.counters.bad_frames += 1,
                    }
                }
                Frame::Head { topic, fence, position, history } => {
                    let Some(topic) = self.topics.get_mut(&topic) else { continue };
                    topic.on_head(&mut self.env, packet.from, fence, position, history);
                }
                _ => self.env.counters.bad_frames += 1,
            }
        }
        self.bound_rings();
    }
}
