//! A few nodes on a loss-free medium with a hand-driven server: enough to state each rule alone.
//! The simulator (`motet-sim`) does the rest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use motet_cluster::frame::{Frame, JoinFrame, JoinedFrame, ToNode, ToPage};
use motet_cluster::lock::{HeldLock, LockEvent, LockMode, LockOp};
use motet_cluster::name::LockName;
use motet_cluster::node::{Identity, Node, NodeConfig, NodeInput, NodeOutput};
use motet_cluster::{Packet, table};
use motet_protocol::transport::{
    HistoryPage, Publication, TransportEvent, TransportFeatures, TransportOp,
};
use motet_protocol::{
    CallId, ClientId, Instant, NodeId, Position, Rng, RouteFence, StreamEpoch, TabId,
};

type Request = (NodeId, u32);

#[derive(Default)]
pub(crate) struct LockManager {
    held: BTreeMap<LockName, Vec<(Request, LockMode)>>,
    queued: Vec<(Request, LockName, LockMode)>,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) nodes: BTreeMap<NodeId, Node<u64>>,
    pub(crate) frozen: BTreeSet<NodeId>,
    locks: LockManager,
    inputs: VecDeque<(NodeId, NodeInput<u64>)>,
    /// Server subscriptions, by topic.
    pub(crate) server: BTreeMap<String, BTreeSet<NodeId>>,
    pub(crate) streams: BTreeMap<String, Vec<Publication<u64>>>,
    pub(crate) connections: BTreeSet<NodeId>,
    /// Every change of server subscriptions, in order.
    pub(crate) server_log: Vec<(NodeId, &'static str, String)>,
    pub(crate) data: Vec<(NodeId, Frame)>,
    /// Every release, with the node it went to.
    pub(crate) released: Vec<(NodeId, RouteFence)>,
    /// Every report's decisions of others, with the node it went to.
    pub(crate) reports: Vec<(NodeId, Vec<RouteFence>)>,
    pub(crate) pages: BTreeMap<NodeId, Vec<ToPage>>,
    pub(crate) announced: u64,
    /// The most publications that the server gives in one answer, however many are asked for.
    pub(crate) history_page_max: usize,
    /// The server keeps what was published.
    pub(crate) history: bool,
}

pub(crate) fn node(n: u64) -> NodeId {
    NodeId::from_bits(n)
}

pub(crate) fn client(n: u64) -> ClientId {
    ClientId::from_bits(n)
}

impl World {
    pub(crate) fn new(nodes: u64) -> Self {
        let mut world = Self {
            now: Instant::from_micros(1_000),
            nodes: BTreeMap::new(),
            frozen: BTreeSet::new(),
            locks: LockManager::default(),
            inputs: VecDeque::new(),
            server: BTreeMap::new(),
            streams: BTreeMap::new(),
            connections: BTreeSet::new(),
            server_log: Vec::new(),
            data: Vec::new(),
            released: Vec::new(),
            reports: Vec::new(),
            pages: BTreeMap::new(),
            announced: 0,
            history_page_max: usize::MAX,
            history: true,
        };
        (1..=nodes).for_each(|n| world.start(n));
        world
    }

    pub(crate) fn start(&mut self, n: u64) {
        let identity = Identity { node: node(n), tab: TabId::from_bits(n), visible: true };
        let core =
            Node::new(self.now, NodeConfig::default(), identity, Rng::from_seed([n as u8; 32]));
        self.nodes.insert(node(n), core);
        self.input(n, NodeInput::Start);
        let attach = ToNode::Attach {
            client: client(n),
            tab: TabId::from_bits(n),
            visible: true,
            build: String::new(),
        };
        self.page(n, attach);
        self.run();
    }

    pub(crate) fn input(&mut self, n: u64, input: NodeInput<u64>) {
        self.inputs.push_back((node(n), input));
    }

    pub(crate) fn page(&mut self, n: u64, frame: ToNode) {
        self.input(
            n,
            NodeInput::Port { client: client(n), packet: Packet::single(node(n), frame) },
        );
    }

    pub(crate) fn subscribe(&mut self, n: u64, topic: &str) {
        self.page(n, ToNode::Subscribe { topics: vec![topic.to_owned()] });
        self.run();
    }

    pub(crate) fn join(
        &mut self,
        n: u64,
        topic: &str,
        position: Option<Position>,
        replay: u32,
    ) -> JoinedFrame {
        let call = CallId::from_bits(self.pages.len() as u64 + 77);
        let join = JoinFrame { topic: topic.to_owned(), client: client(n), call, position, replay };
        self.pages.entry(node(n)).or_default().clear();
        self.page(n, ToNode::Join(join));
        self.run();
        let answers = self.pages.get(&node(n)).into_iter().flatten();
        let mut joined = answers.filter_map(|frame| match frame {
            ToPage::Joined(joined) => Some(joined.clone()),
            _ => None,
        });
        joined.next_back().expect("the owner answers")
    }

    /// A message is published: the server hands it to whoever subscribes.
    pub(crate) fn publish(&mut self, topic: &str, payload: u64) {
        let stream = self.streams.entry(topic.to_owned()).or_default();
        let offset = stream.len() as u64 + 1;
        let publication =
            Publication { offset, message_id: None, timestamp_ms: None, size: 8, payload };
        stream.push(publication.clone());
        for node in self.server.get(topic).into_iter().flatten() {
            let event = TransportEvent::Publication {
                topic: topic.to_owned(),
                publication: publication.clone(),
            };
            self.inputs.push_back((*node, NodeInput::Transport(event)));
        }
        self.run();
    }

    /// Runs until nobody has anything to say at this instant.
    pub(crate) fn run(&mut self) {
        for _ in 0..100_000 {
            let next = self.inputs.iter().position(|(node, _)| !self.frozen.contains(node));
            let Some(index) = next else { return };
            let (to, input) = self.inputs.remove(index).expect("found above");
            let Some(core) = self.nodes.get_mut(&to) else { continue };
            core.handle(self.now, input);
            let mut outputs = Vec::new();
            while let Some(output) = core.poll_output() {
                outputs.push(output);
            }
            outputs.into_iter().for_each(|output| self.output(to, output));
        }
        panic!("the nodes talk without end");
    }

    pub(crate) fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let awake = self.nodes.iter().filter(|(id, _)| !self.frozen.contains(id));
            let next = awake.filter_map(|(id, core)| Some((core.next_timeout()?, *id))).min();
            match next {
                Some((at, id)) if at <= until => {
                    self.now = self.now.max(at);
                    self.inputs.push_back((id, NodeInput::Tick));
                    self.run();
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// The context dies: its locks fall free, its socket closes, its queue is gone.
    pub(crate) fn kill(&mut self, n: u64) {
        let dead = node(n);
        self.nodes.remove(&dead);
        self.connections.remove(&dead);
        for (topic, subscribers) in &mut self.server {
            if subscribers.remove(&dead) {
                self.server_log.push((dead, "lost", topic.clone()));
            }
        }
        self.locks.queued.retain(|(request, _, _)| request.0 != dead);
        for held in self.locks.held.values_mut() {
            held.retain(|(request, _)| request.0 != dead);
        }
        self.grant();
        self.run();
    }

    pub(crate) fn coordinator(&self) -> Vec<u64> {
        self.nodes
            .values()
            .filter(|core| core.governs().is_some())
            .map(|core| core.id().bits())
            .collect()
    }

    pub(crate) fn owner(&self, topic: &str) -> Vec<u64> {
        self.server.get(topic).into_iter().flatten().map(|node| node.bits()).collect()
    }

    /// The route as a page of `n` knows it.
    pub(crate) fn route(&self, n: u64, topic: &str) -> table::Route {
        let mut known = None;
        for frame in self.pages.get(&node(n)).into_iter().flatten() {
            if let ToPage::Routes { routes, .. } = frame {
                known = routes.iter().find(|route| route.topic == topic).cloned().or(known);
            }
        }
        known.expect("the page was told the route")
    }

    fn output(&mut self, from: NodeId, output: NodeOutput<u64>) {
        match output {
            NodeOutput::Announce(packet) => {
                self.announced += 1;
                let others: Vec<_> = self.nodes.keys().filter(|id| **id != from).copied().collect();
                for id in others {
                    self.inputs.push_back((id, NodeInput::Announce(recoded(&packet))));
                }
            }
            NodeOutput::Inbox { to, packet } => {
                assert_ne!(to, from, "a node never posts to itself");
                for frame in &packet.frames {
                    match frame {
                        Frame::Released { fence, .. } => self.released.push((to, *fence)),
                        Frame::Report { seen, .. } => {
                            let seen = seen.iter().map(|route| route.fence).collect();
                            self.reports.push((to, seen));
                        }
                        _ => {}
                    }
                }
                self.inputs.push_back((to, NodeInput::Inbox(recoded(&packet))));
            }
            NodeOutput::Data { packet, .. } => {
                self.data.extend(packet.frames.into_iter().map(|frame| (from, frame)));
            }
            NodeOutput::Port { packet, .. } => {
                self.pages.entry(from).or_default().extend(packet.frames)
            }
            NodeOutput::Lock(op) => self.lock(from, &op),
            NodeOutput::Transport(op) => self.transport(from, op),
            NodeOutput::Event(_) => {}
        }
    }

    fn event(&mut self, to: NodeId, event: TransportEvent<u64>) {
        self.inputs.push_back((to, NodeInput::Transport(event)));
    }

    fn transport(&mut self, from: NodeId, op: TransportOp<u64>) {
        match op {
            TransportOp::Open => {
                if self.connections.insert(from) {
                    let features =
                        TransportFeatures { idempotency: true, ..TransportFeatures::default() };
                    self.event(from, TransportEvent::Connected(features));
                }
            }
            TransportOp::Close => {
                self.connections.remove(&from);
            }
            TransportOp::Subscribe { topic, since } => {
                if self.server.entry(topic.clone()).or_default().insert(from) {
                    self.server_log.push((from, "subscribe", topic.clone()));
                }
                let stream = self.streams.get(&topic).cloned().unwrap_or_default();
                let position = self
                    .history
                    .then(|| Position::new(StreamEpoch::new("epoch"), stream.len() as u64));
                let from_offset = since.as_ref().map_or(u64::MAX, |since| since.offset);
                let publications = stream.into_iter().filter(|p| p.offset > from_offset).collect();
                let recovered = since.is_some();
                self.event(
                    from,
                    TransportEvent::Subscribed { topic, position, recovered, publications },
                );
            }
            TransportOp::Unsubscribe { topic } => {
                if self.server.entry(topic.clone()).or_default().remove(&from) {
                    self.server_log.push((from, "unsubscribe", topic.clone()));
                }
                self.event(
                    from,
                    TransportEvent::Unsubscribed { topic, error: None, terminal: false },
                );
            }
            TransportOp::Publish(request) => {
                self.publish_now(&request.topic, request.payload);
                self.event(from, TransportEvent::Published { call: request.call, result: Ok(()) });
            }
            TransportOp::History(request) => {
                let stream = self.streams.get(&request.topic).cloned().unwrap_or_default();
                let position = Position::new(StreamEpoch::new("epoch"), stream.len() as u64);
                let since = request.since.map(|since| since.offset);
                let mut publications = stream;
                if request.reverse {
                    publications.reverse();
                    publications.retain(|p| since.is_none_or(|since| p.offset < since));
                } else {
                    publications.retain(|p| since.is_none_or(|since| p.offset > since));
                }
                publications.truncate(self.history_page_max.min(request.limit as usize));
                let result = Ok(HistoryPage { position, publications });
                self.event(from, TransportEvent::History { call: request.call, result });
            }
            TransportOp::Token { .. } | TransportOp::Nudge | TransportOp::Retry => {}
        }
    }

    fn publish_now(&mut self, topic: &str, payload: u64) {
        let stream = self.streams.entry(topic.to_owned()).or_default();
        let offset = stream.len() as u64 + 1;
        stream.push(Publication { offset, message_id: None, timestamp_ms: None, size: 8, payload });
    }

    fn lock(&mut self, from: NodeId, op: &LockOp) {
        match *op {
            LockOp::Request { request, name, mode } => {
                if mode == LockMode::Steal {
                    for ((node, lost), _) in self.locks.held.remove(&name).unwrap_or_default() {
                        self.inputs
                            .push_back((node, NodeInput::Lock(LockEvent::Lost { request: lost })));
                    }
                    self.locks.queued.insert(0, ((from, request), name, mode));
                } else {
                    self.locks.queued.push(((from, request), name, mode));
                }
            }
            LockOp::Release { request } => {
                self.locks.queued.retain(|(known, _, _)| *known != (from, request));
                for held in self.locks.held.values_mut() {
                    held.retain(|(known, _)| *known != (from, request));
                }
            }
            LockOp::Query => {
                let held = self.locks.held.iter().flat_map(|(name, holders)| {
                    holders
                        .iter()
                        .map(|((node, _), _)| HeldLock { name: *name, holder: node.to_hex() })
                });
                let held = held.collect();
                self.inputs.push_back((from, NodeInput::Lock(LockEvent::Snapshot { held })));
            }
        }
        self.grant();
    }

    fn grant(&mut self) {
        let mut blocked: BTreeSet<LockName> = BTreeSet::new();
        let mut index = 0;
        while index < self.locks.queued.len() {
            let (request, name, mode) = self.locks.queued[index];
            let held = self.locks.held.entry(name).or_default();
            let shared =
                mode == LockMode::Shared && held.iter().all(|(_, m)| *m == LockMode::Shared);
            if !blocked.contains(&name) && (held.is_empty() || shared) {
                held.push((request, mode));
                self.locks.queued.remove(index);
                let event = LockEvent::Granted { request: request.1 };
                self.inputs.push_back((request.0, NodeInput::Lock(event)));
            } else if mode == LockMode::ExclusiveIfAvailable {
                self.locks.queued.remove(index);
                let event = LockEvent::Refused { request: request.1 };
                self.inputs.push_back((request.0, NodeInput::Lock(event)));
            } else {
                blocked.insert(name);
                index += 1;
            }
        }
    }
}

/// What the packet is after a trip over a channel.
fn recoded(packet: &Packet<Frame, u64>) -> Packet<Frame, u64> {
    let (decoded, skipped) =
        Packet::decode(&packet.encode(), packet.payloads.clone()).expect("our own packet");
    assert_eq!(skipped, 0);
    decoded
}
