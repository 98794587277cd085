//! One member of the cluster: membership, coordination, ownership, and its pages.

mod api;
mod election;
mod following;
mod frames;
mod locks;
mod out;
mod pages;
mod relay;
mod waking;

use core::time::Duration;
use std::collections::VecDeque;

use litemap::LiteMap;
use motet_protocol::transport::{TransportEvent, TransportFeatures, TransportOp};
use motet_protocol::{AwakeClock, ClientId, Fence, Instant, NodeId, Rng};

pub use api::{
    Identity, NodeConfig, NodeEvent, NodeInput, NodeOutput, NodePacket, ToNodePacket, ToPagePacket,
};
pub(crate) use out::Out;

use self::election::{Election, Query};
use self::locks::{Locks, Purpose};
use self::pages::Pages;
use self::relay::Relay;
use crate::coordinator::Coordinator;
use crate::frame::Frame;
use crate::owner::{Owner, OwnerLimits};
use crate::replica::Replica;
use crate::table::{Member, TransportStatus};

/// A node that leaves waits so long for others to take its topics; its page waits 2 s.
const LEAVE_WAIT: Duration = Duration::from_millis(1_500);

/// First wait before a Hello is repeated; doubled up to [`HELLO_WAIT_MAX`].
const HELLO_WAIT: Duration = Duration::from_millis(250);
const HELLO_WAIT_MAX: Duration = Duration::from_secs(4);
/// Well below the time in which a silent owner is replaced, less the stall threshold.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// What a node is to the cluster at this moment.
enum Role {
    /// No coordinator is known.
    Joining { hello_at: Instant, wait: Duration },
    /// Somebody else governs.
    Following,
    /// Holds the coordinator lock and looks for its fence.
    Electing(Election),
    /// Governs.
    Governing(Box<Coordinator>),
}

/// What the coordinator must know of a node that changes often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) visible: bool,
    pub(crate) transport: TransportStatus,
    pub(crate) idempotent: bool,
    pub(crate) tokenless: bool,
}

/// A node core. See the crate's documentation for how to drive it.
pub struct Node<P> {
    me: NodeId,
    tab: motet_protocol::TabId,
    config: NodeConfig,
    rng: Rng,
    clock: AwakeClock,
    out: Out<P>,
    locks: Locks,
    queries: VecDeque<Query>,
    role: Role,
    /// Its own lock is held: others can tell that it lives.
    alive: bool,
    /// The highest fence ever seen: nothing lower is obeyed.
    known: Fence,
    /// Who acts, or acted, under that fence: its decisions count until a higher fence is known,
    /// also those that arrive after the end of its term.
    author: Option<NodeId>,
    coordinator: Option<NodeId>,
    /// Last sign of life of the coordinator, and when it was asked for one since.
    heard: Instant,
    pinged: Option<Instant>,
    /// It came late to its turn to steal, and listens until then.
    listening: Option<Instant>,
    /// Since when nobody governs.
    orphaned: Option<Instant>,
    /// The last election took the lock from a holder that did not answer.
    deposed: Option<NodeId>,
    /// An owner, and who holds the office, looks at the clock at least this often, so that it
    /// notices every stall that could have cost it its role before it acts on what was queued.
    look_at: Option<Instant>,
    /// After a stall: when to ask again whether the routes stand.
    revalidate_at: Option<Instant>,
    /// The table was asked for since, of a coordinator that governed then.
    table_asked: bool,
    order: u64,
    replica: Replica,
    /// When each other member was heard last.
    signs_of_life: LiteMap<NodeId, Instant>,
    pages: Pages,
    owner: Owner<P>,
    relay: Relay,
    visible: bool,
    transport: TransportStatus,
    features: TransportFeatures,
    reported_status: Status,
    want_added: LiteMap<String, ()>,
    want_removed: LiteMap<String, ()>,
    /// The page that waits for the node's end.
    closing: Option<ClientId>,
    leaving: bool,
    /// Until then the node waits for others to take its topics.
    leave_by: Option<Instant>,
    bad_frames: u32,
}

impl<P: Clone> Node<P> {
    /// A node that begins with [`NodeInput::Start`].
    pub fn new(now: Instant, config: NodeConfig, identity: Identity, mut rng: Rng) -> Self {
        let limits = OwnerLimits {
            ring_messages: config.ring_messages,
            ring_bytes: config.ring_bytes,
            batch_window: config.batch_window,
        };
        let me = identity.node;
        Self {
            me,
            tab: identity.tab,
            owner: Owner::new(me, limits, rng.fork()),
            rng,
            clock: AwakeClock::new(now),
            out: Out::new(me),
            locks: Locks::default(),
            queries: VecDeque::new(),
            role: Role::Joining { hello_at: now, wait: HELLO_WAIT },
            alive: false,
            known: Fence::default(),
            author: None,
            coordinator: None,
            heard: now,
            pinged: None,
            listening: None,
            orphaned: None,
            deposed: None,
            look_at: None,
            revalidate_at: None,
            table_asked: false,
            order: 0,
            replica: Replica::new(config.known_topics),
            signs_of_life: LiteMap::new(),
            pages: Pages::default(),
            relay: Relay::default(),
            visible: identity.visible,
            transport: TransportStatus::Idle,
            features: TransportFeatures::default(),
            reported_status: Status { visible: identity.visible, ..Status::default() },
            want_added: LiteMap::new(),
            want_removed: LiteMap::new(),
            closing: None,
            leaving: false,
            leave_by: None,
            bad_frames: 0,
            config,
        }
    }

    /// The node's id.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.me
    }

    /// The coordinator's fence while this node governs.
    #[must_use]
    pub fn governs(&self) -> Option<Fence> {
        match &self.role {
            Role::Governing(coordinator) => Some(coordinator.fence()),
            _ => None,
        }
    }

    /// Hands the node an input. `now` is the driver's monotonic clock.
    pub fn handle(&mut self, now: Instant, input: NodeInput<P>) {
        let due = self.next_timeout();
        if let Some(stall) = self.clock.advance(now, due) {
            self.woke(stall);
        }
        let now = self.clock.now();
        match input {
            NodeInput::Start => self.locks.request(Purpose::Life, false, self.me, &mut self.out),
            NodeInput::Tick => {}
            NodeInput::Announce(packet) | NodeInput::Inbox(packet) => self.packet(&packet, now),
            NodeInput::Port { client, packet } => self.port(client, &packet, now),
            NodeInput::PortGone { client } => self.page_gone(client),
            NodeInput::Lock(event) => self.lock_event(event, now),
            NodeInput::Transport(event) => self.transport_event(event),
        }
        self.settle(now);
        self.tick(now);
        self.settle(now);
        self.owner.post_due(now, &mut self.out);
        self.look_at = self.must_notice_stalls().then(|| now + LOOK_INTERVAL);
        self.out.flush();
    }

    /// The next thing the driver should do; drain it after every input.
    pub fn poll_output(&mut self) -> Option<NodeOutput<P>> {
        self.out.poll()
    }

    /// When the node wants its next [`NodeInput::Tick`], on the driver's monotonic clock.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let governing = match &self.role {
            Role::Governing(coordinator) => coordinator.next_timeout(),
            _ => None,
        };
        let timers = [
            governing,
            self.membership_timeout(),
            self.look_at,
            self.leave_by,
            self.revalidate_at,
            self.owner.next_timeout(),
            self.relay.next_timeout(),
        ];
        timers.into_iter().flatten().min().map(|awake| self.clock.monotonic(awake))
    }

    fn must_notice_stalls(&self) -> bool {
        !self.owner.is_empty() || matches!(self.role, Role::Electing(_) | Role::Governing(_))
    }

    fn tick(&mut self, now: Instant) {
        self.membership_tick(now);
        self.leave_tick(now);
        self.revalidate_tick(now);
        self.relay_tick(now);
        if let Role::Governing(coordinator) = &mut self.role
            && self.revalidate_at.is_none()
        {
            coordinator.tick(now, &mut self.out);
        }
    }

    /// Lets what this input caused take its course inside the node: what it says to itself, what
    /// must reach the coordinator, and what the coordinator decides on it.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(packet) = self.out.take_local() {
                self.packet(&packet, now);
            }
            self.tell_coordinator();
            if let Role::Governing(coordinator) = &mut self.role
                && self.revalidate_at.is_none()
            {
                coordinator.announce_changes(&mut self.out);
            }
            match self.out.take_local() {
                Some(packet) => self.packet(&packet, now),
                None => break,
            }
        }
        self.hold_connection();
        self.end_if_released(now);
    }

    /// Confirmations, wants and status, once somebody governs. Before that a report will say it.
    fn tell_coordinator(&mut self) {
        let confirmations = self.owner.take_confirmations();
        let Some(coordinator) = self.coordinator else { return };
        for (topic, fence, state) in confirmations {
            self.out.send(coordinator, Frame::Confirm { topic, fence, state });
        }
        self.tell_wants(coordinator);
        let status = self.status();
        if self.reported_status != status {
            self.reported_status = status;
            let Status { visible, transport, idempotent, tokenless } = status;
            self.out.send(coordinator, Frame::Status { visible, transport, idempotent, tokenless });
        }
    }

    fn status(&self) -> Status {
        Status {
            visible: self.visible,
            transport: self.transport,
            idempotent: self.features.idempotency,
            // While the connection stands, it has its token.
            tokenless: self.relay.tokenless() && self.transport != TransportStatus::Connected,
        }
    }

    fn tell_wants(&mut self, coordinator: NodeId) {
        let added = core::mem::take(&mut self.want_added);
        let removed = core::mem::take(&mut self.want_removed);
        if !added.is_empty() || !removed.is_empty() {
            self.out
                .send(coordinator, Frame::Want { added: names(added), removed: names(removed) });
        }
    }

    fn member(&self) -> Member {
        Member {
            node: self.me,
            tab: self.tab,
            order: self.order,
            visible: self.visible,
            transport: self.transport,
            leaving: self.leaving,
            idempotent: self.features.idempotency,
        }
    }

    fn wants_connection(&self) -> bool {
        self.owner.wants_connection() || self.relay.sends()
    }

    /// Opens or closes the server connection: it is there only while something needs it (B3). One
    /// that was refused for good is kept as that, or each publication would ask anew.
    fn hold_connection(&mut self) {
        let wanted = self.wants_connection();
        if wanted && self.transport == TransportStatus::Idle {
            self.transport = TransportStatus::Connecting;
            self.out.transport(TransportOp::Open);
            self.pages_transport(None, false);
        } else if !wanted && self.transport != TransportStatus::Idle && !self.owner.is_refused() {
            self.transport = TransportStatus::Idle;
            self.out.transport(TransportOp::Close);
            self.owner.admitted();
            self.pages_transport(None, false);
        }
    }

    fn transport_event(&mut self, event: TransportEvent<P>) {
        match event {
            TransportEvent::Connecting => {
                self.owner.admitted();
                self.transport = TransportStatus::Connecting;
                self.pages_transport(None, false);
            }
            TransportEvent::Connected(features) => {
                self.transport = TransportStatus::Connected;
                self.owner.admitted();
                self.features = features;
                self.pages_transport(None, false);
            }
            TransportEvent::Disconnected { error, terminal } => {
                self.transport = TransportStatus::Errored;
                self.owner.disconnected(&error, terminal, &mut self.out);
                self.pages_transport(Some(error), terminal);
            }
            TransportEvent::Subscribed { topic, position, recovered, publications } => {
                self.owner.subscribed(&topic, position, recovered, publications, &mut self.out);
            }
            TransportEvent::Unsubscribed { topic, error, terminal } => {
                self.owner.unsubscribed(&topic, error, terminal, &mut self.out);
            }
            TransportEvent::Publication { topic, publication } => {
                self.owner.publication(&topic, publication)
            }
            TransportEvent::Published { call, result } => self.published_here(call, result.err()),
            TransportEvent::History { call, result } => {
                self.owner.history(call, result, &mut self.out)
            }
            TransportEvent::TokenWanted { topic } => self.token_wanted(topic),
        }
    }

    /// Nobody took the topics in time: they are released at the server all the same.
    fn leave_tick(&mut self, now: Instant) {
        if self.leave_by.is_some_and(|by| by <= now) {
            self.leave_by = None;
            self.owner.end(&mut self.out);
        }
    }

    /// Says Closed to the page that waits once nothing is left to hand over.
    fn end_if_released(&mut self, now: Instant) {
        if !self.leaving {
            return;
        }
        if !self.owner.is_empty() {
            // What it had, and what a decision gave it that crossed with its Leaving.
            self.leave_by.get_or_insert(now + LEAVE_WAIT);
            return;
        }
        if self.relay.sends() {
            return;
        }
        self.leave_by = None;
        if let Some(client) = self.closing.take() {
            self.out.page(client, crate::frame::ToPage::Closed);
        }
    }
}

fn names(topics: LiteMap<String, ()>) -> Vec<String> {
    topics.into_iter().map(|(topic, ())| topic).collect()
}
