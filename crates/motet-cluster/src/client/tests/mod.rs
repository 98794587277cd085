//! The client against a hand-driven node and owner, in simulated time.

mod adversity;
mod delivery;
mod lifecycle;
mod properties;
mod publish;
mod subscription;

use core::time::Duration;

use motet_protocol::{
    CallId, CorrelationId, Error, ErrorCode, Fence, Generation, Instant, NodeId, Offset, Position,
    Rng, RouteFence, StreamEpoch, TabId,
};

use super::*;
use crate::frame::{Frame, GapReason, Heard, JoinFrame, JoinedFrame, MessageHead, ToNode, ToPage};
use crate::packet::Packet;
use crate::table::{Member, Route, RouteState, TransportStatus};

pub(super) const NODE: NodeId = NodeId::from_bits(1);
pub(super) const OWNER: NodeId = NodeId::from_bits(2);
pub(super) const OTHER: NodeId = NodeId::from_bits(3);

/// What handlers saw, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A live message: epoch, offset.
    Live(String, Offset),
    /// A replayed one, and for whom.
    Old(Recipients, Offset),
    /// A gap: from, to, why.
    Gap(Offset, Option<Offset>, GapReason),
}

pub(super) fn fence(generation: u64) -> RouteFence {
    RouteFence {
        fence: Fence { incarnation: 1, epoch: 1 },
        generation: Generation::new(generation.try_into().expect("from 1")),
    }
}

pub(super) fn at(epoch: &str, offset: Offset) -> Position {
    Position::new(StreamEpoch::new(epoch), offset)
}

pub(super) fn route(topic: &str, owner: NodeId, generation: u64) -> Route {
    Route {
        topic: topic.into(),
        owner,
        fence: fence(generation),
        handoff_from: None,
        state: RouteState::Subscribed,
        subscribers: 1,
    }
}

pub(super) fn member(node: NodeId) -> Member {
    Member {
        node,
        tab: TabId::from_bits(node.bits()),
        order: node.bits(),
        visible: true,
        transport: TransportStatus::Connected,
        leaving: false,
        idempotent: false,
    }
}

/// Heads whose payload says its own offset.
fn heads<F>(
    packet: &mut Packet<F, u64>,
    offsets: impl Iterator<Item = Offset>,
) -> Vec<MessageHead> {
    offsets
        .map(|offset| MessageHead {
            offset,
            size: 10,
            slot: packet.attach(offset),
            message_id: None,
            timestamp_ms: None,
        })
        .collect()
}

pub(super) struct Rig {
    pub(super) client: Client<u64>,
    pub(super) now: Instant,
    /// Nodes are started in a SharedWorker.
    pub(super) shared: bool,
    /// Outputs not looked at yet.
    pub(super) out: Vec<ClientOutput<u64>>,
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(configure: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::new(TabId::from_bits(7));
        configure(&mut config);
        let now = Instant::from_micros(5_000_000);
        let client = Client::new(now, config, Rng::from_seed([9; 32]));
        Self { client, now, shared: false, out: Vec::new() }
    }

    /// A client whose node is a cluster member.
    pub(super) fn running() -> Self {
        Self::running_with(|_| {})
    }

    pub(super) fn running_with(configure: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut rig = Self::with(configure);
        rig.input(ClientInput::Start);
        rig.node_up(1);
        rig.out.clear();
        rig
    }

    /// A running client with one handler (id 1) on topic `t`, live at offset 10 of epoch `a`.
    pub(super) fn live() -> Self {
        Self::live_with(|_| {})
    }

    pub(super) fn live_with(configure: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut rig = Self::running_with(configure);
        rig.subscribe(1, "t", 0);
        rig.routes(&[route("t", OWNER, 1)]);
        let join = rig.join();
        rig.joined(&join, 1, at("a", 10), 11..11);
        rig.out.clear();
        rig
    }

    pub(super) fn node_up(&mut self, start: u32) {
        self.node_up_under(start, fence(1).fence);
    }

    pub(super) fn node_up_under(&mut self, start: u32, fence: Fence) {
        self.input(ClientInput::NodeStarted { start, shared: self.shared });
        self.port(ToPage::Attached { node: NODE, build: String::new() });
        self.port(ToPage::Coordinator { node: Some(NODE), fence });
    }

    pub(super) fn input(&mut self, input: ClientInput<u64>) {
        self.client.handle(self.now, input);
        while let Some(output) = self.client.poll_output() {
            self.out.push(output);
        }
    }

    pub(super) fn page(&mut self, event: PageEvent) {
        self.input(ClientInput::Page(event));
    }

    /// Lets time pass, with every timer called when it is due.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(due) = self.client.next_timeout().filter(|due| *due <= end) {
            assert!(due > self.now || self.out.len() < 100_000, "a timer that is always due");
            self.now = self.now.max(due);
            self.input(ClientInput::Tick);
        }
        self.now = end;
    }

    /// Lets time pass with a node that answers when it is asked whether it lives.
    pub(super) fn pass_alive(&mut self, ms: u64) {
        for _ in 0..ms / 100 {
            self.pass(100);
            self.port(ToPage::Pong { node: NODE, heard: Vec::new() });
        }
        self.pass(ms % 100);
    }

    /// Lets time pass in which nobody calls.
    pub(super) fn sleep(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    pub(super) fn port(&mut self, frame: ToPage) {
        self.input(ClientInput::Port(Packet::single(NODE, frame)));
    }

    pub(super) fn subscribe(&mut self, handler: HandlerId, topic: &str, replay: u32) {
        self.input(ClientInput::Subscribe { handler, topic: topic.into(), replay });
    }

    pub(super) fn routes(&mut self, routes: &[Route]) {
        let fence = routes.iter().map(|route| route.fence.fence).max().unwrap_or_default();
        self.port(ToPage::Routes {
            fence,
            routes: routes.to_vec(),
            dropped: Vec::new(),
            full: false,
        });
    }

    pub(super) fn data(
        &mut self,
        from: NodeId,
        generation: u64,
        epoch: &str,
        offsets: core::ops::RangeInclusive<Offset>,
    ) {
        let mut packet = Packet::new(from);
        let messages = heads(&mut packet, offsets);
        packet.frames.push(Frame::Data {
            topic: "t".into(),
            fence: fence(generation),
            epoch: StreamEpoch::new(epoch),
            messages,
        });
        self.input(ClientInput::Data(packet));
    }

    pub(super) fn head(&mut self, from: NodeId, generation: u64, position: Position) {
        let fence = fence(generation);
        let frame = Frame::Head { topic: "t".into(), fence, position, history: true };
        self.input(ClientInput::Data(Packet::single(from, frame)));
    }

    /// The answer that leads to `position` with the messages of these offsets.
    pub(super) fn answer(
        join: &JoinFrame,
        generation: u64,
        position: Position,
        offsets: core::ops::Range<Offset>,
    ) -> (JoinedFrame, Vec<u64>) {
        let mut packet = Packet::<ToPage, u64>::new(NODE);
        let messages = heads(&mut packet, offsets);
        let frame = JoinedFrame {
            topic: join.topic.clone(),
            client: join.client,
            call: join.call,
            fence: fence(generation),
            position,
            missing: None,
            replayed: 0,
            messages,
            more: false,
            history: true,
        };
        (frame, packet.payloads)
    }

    pub(super) fn send_joined(&mut self, (frame, payloads): (JoinedFrame, Vec<u64>)) {
        let frames = vec![ToPage::Joined(frame)];
        self.input(ClientInput::Port(Packet { from: NODE, frames, payloads }));
    }

    pub(super) fn joined(
        &mut self,
        join: &JoinFrame,
        generation: u64,
        position: Position,
        offsets: core::ops::Range<Offset>,
    ) {
        self.send_joined(Self::answer(join, generation, position, offsets));
    }

    pub(super) fn publish(&mut self, number: u64, topic: &str) {
        self.input(ClientInput::Publish {
            correlation: CorrelationId::from_bits(number),
            call: PublishCall {
                topic: topic.into(),
                payload: number,
                size: 8,
                message_id: None,
                timestamp_ms: None,
                idempotency_key: None,
                deadline: None,
            },
        });
    }

    pub(super) fn published(&mut self, call: CallId, code: Option<ErrorCode>, idempotent: bool) {
        let error = code.map(Error::new);
        self.port(ToPage::Published { call, error, idempotent });
    }

    // What came out.

    /// Frames for the node, taken out of the outputs.
    pub(super) fn frames(&mut self) -> Vec<ToNode> {
        let mut frames = Vec::new();
        self.out.retain(|output| match output {
            ClientOutput::Port(packet) => {
                frames.extend(packet.frames.iter().cloned());
                false
            }
            _ => true,
        });
        frames
    }

    pub(super) fn joins(&mut self) -> Vec<JoinFrame> {
        let join = |frame| match frame {
            ToNode::Join(join) => Some(join),
            _ => None,
        };
        self.frames().into_iter().filter_map(join).collect()
    }

    /// The only question asked since the frames were looked at last.
    pub(super) fn join(&mut self) -> JoinFrame {
        let mut joins = self.joins();
        assert_eq!(joins.len(), 1, "one question");
        joins.remove(0)
    }

    /// What handlers saw, taken out of the outputs.
    pub(super) fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        self.out.retain(|output| match output {
            ClientOutput::Deliver(delivery) => {
                let Position { epoch, offset } = delivery.position.clone();
                seen.push(if delivery.replayed {
                    Seen::Old(delivery.to, offset)
                } else {
                    Seen::Live(epoch.as_str().into(), offset)
                });
                false
            }
            ClientOutput::Gap { gap, .. } => {
                let to = gap.to.as_ref().map(|to| to.offset);
                seen.push(Seen::Gap(gap.from.offset, to, gap.reason));
                false
            }
            _ => true,
        });
        seen
    }

    /// Outcomes of publications, taken out of the outputs.
    pub(super) fn settled(&mut self) -> Vec<(u64, Option<ErrorCode>)> {
        let mut settled = Vec::new();
        self.out.retain(|output| match output {
            ClientOutput::Settled { correlation, result } => {
                settled.push((correlation.bits(), result.as_ref().err().map(|error| error.code)));
                false
            }
            _ => true,
        });
        settled
    }

    pub(super) fn statuses(&mut self) -> Vec<ClientStatus> {
        let mut statuses = Vec::new();
        self.out.retain(|output| match output {
            ClientOutput::Status(status) => {
                statuses.push(status.clone());
                false
            }
            _ => true,
        });
        statuses
    }

    /// Subscription states of `t`, taken out of the outputs.
    pub(super) fn states(&mut self) -> Vec<SubscriptionState> {
        let mut states = Vec::new();
        self.out.retain(|output| match output {
            ClientOutput::Subscription { state, .. } => {
                states.push(state.clone());
                false
            }
            _ => true,
        });
        states
    }
}

pub(super) fn live(offsets: core::ops::RangeInclusive<Offset>) -> Vec<Seen> {
    offsets.map(|offset| Seen::Live("a".into(), offset)).collect()
}
