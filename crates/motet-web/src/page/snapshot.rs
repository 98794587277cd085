//! What the page shows of itself and its cluster, told row by row. Reading changes nothing.

use motet_cluster::client::{Client, ClientInput, KnownMember, TopicPhase};
use motet_cluster::name::topic_key;
use motet_cluster::table::{RouteState, TransportStatus};
use motet_protocol::{Instant, NodeId};
use wasm_bindgen::prelude::*;

use super::driver::{Driver, Start};
use crate::clock::now;
use crate::error_object::to_object;

#[wasm_bindgen]
extern "C" {
    /// The facade's collector.
    pub type SnapshotSink;

    #[wasm_bindgen(method, structural, js_name = identity)]
    fn identity(
        this: &SnapshotSink,
        tab: &str,
        node: Option<String>,
        coordinator: Option<String>,
        incarnation: &str,
        epoch: f64,
    );

    #[wasm_bindgen(method, structural, js_name = node)]
    fn node(
        this: &SnapshotSink,
        node: &str,
        tab: &str,
        order: f64,
        visible: bool,
        transport: u8,
        leaving: bool,
        registered_at_ms: f64,
        last_beat_ago_ms: Option<f64>,
    );

    #[wasm_bindgen(method, structural, js_name = route)]
    fn route(
        this: &SnapshotSink,
        topic: &str,
        key: &str,
        owner: &str,
        generation: f64,
        handoff_from: Option<String>,
        state: u8,
        error: &JsValue,
        subscribers: u32,
        updated_at_ms: f64,
        confirmed_at_ms: Option<f64>,
    );

    #[wasm_bindgen(method, structural, js_name = subscription)]
    fn subscription(
        this: &SnapshotSink,
        topic: &str,
        phase: u8,
        epoch: Option<&str>,
        offset: f64,
        handlers: u32,
        held: u32,
        kept: u32,
    );

    #[wasm_bindgen(method, structural, js_name = pending)]
    fn pending(
        this: &SnapshotSink,
        call: f64,
        topic: &str,
        attempt: u32,
        age_ms: f64,
        remaining_ms: f64,
    );

    #[wasm_bindgen(method, structural, js_name = counter)]
    fn counter(this: &SnapshotSink, name: &str, value: f64);
}

impl Driver {
    pub(super) fn snapshot(&self, sink: &SnapshotSink) {
        // Asked after this task, and shown by the next snapshot.
        self.tell(ClientInput::Inspect);
        let core = self.core.borrow();
        if self.start.get() == Start::Claimed {
            tell_identity(&core, sink);
        }
        tell_tables(&core, sink);
        tell_topics(&core, sink);
        tell_counters(&core, sink);
        sink.counter("badMessages", self.bad_frames.get().into());
    }
}

fn tell_identity(core: &Client<JsValue>, sink: &SnapshotSink) {
    let (identity, fence) = (core.identity(), core.fence());
    sink.identity(
        &identity.tab.to_hex(),
        identity.node.map(NodeId::to_hex),
        core.coordinator().map(NodeId::to_hex),
        &NodeId::from_bits(fence.incarnation).to_hex(),
        fence.epoch as f64,
    );
}

fn tell_tables(core: &Client<JsValue>, sink: &SnapshotSink) {
    for known in core.members() {
        let KnownMember { member, since, .. } = known;
        let transport = match member.transport {
            TransportStatus::Idle => 0,
            TransportStatus::Connecting => 1,
            TransportStatus::Connected => 2,
            TransportStatus::Errored => 3,
        };
        let (node, tab) = (member.node.to_hex(), member.tab.to_hex());
        sink.node(
            &node,
            &tab,
            member.order as f64,
            member.visible,
            transport,
            member.leaving,
            millis(*since),
            core.silence_of(known, now()).map(|silence| silence.as_millis() as f64),
        );
    }
    for known in core.routes() {
        let route = &known.route;
        let (state, error) = match &route.state {
            RouteState::Assigned => (0, JsValue::UNDEFINED),
            RouteState::Subscribing => (1, JsValue::UNDEFINED),
            RouteState::Subscribed => (2, JsValue::UNDEFINED),
            RouteState::Failed(error) => (3, to_object(error)),
        };
        sink.route(
            &route.topic,
            &topic_key(&route.topic),
            &route.owner.to_hex(),
            route.fence.generation.get() as f64,
            route.handoff_from.map(NodeId::to_hex),
            state,
            &error,
            route.subscribers,
            millis(known.updated),
            known.confirmed.map(millis),
        );
    }
}

fn millis(at: Instant) -> f64 {
    at.as_micros() as f64 / 1_000.0
}

fn tell_topics(core: &Client<JsValue>, sink: &SnapshotSink) {
    for view in core.subscriptions() {
        let phase = match view.phase {
            TopicPhase::Joining => 0,
            TopicPhase::Live => 1,
            TopicPhase::CatchingUp => 2,
        };
        sink.subscription(
            view.topic,
            phase,
            view.position.map(|position| position.epoch.as_str()),
            view.position.map_or(0.0, |position| position.offset as f64),
            view.handlers as u32,
            view.held as u32,
            view.kept as u32,
        );
    }
    for call in core.pending_publishes() {
        let age = call.age_ms as f64;
        let number = call.correlation.bits() as f64;
        sink.pending(number, &call.topic, call.attempt, age, call.remaining_ms as f64);
    }
}

fn tell_counters(core: &Client<JsValue>, sink: &SnapshotSink) {
    let counters = core.counters();
    for (name, value) in [
        ("delivered", counters.delivered),
        ("repeats", counters.repeats),
        ("idRepeats", counters.id_repeats),
        ("gaps", counters.gaps),
        ("joins", counters.joins),
        ("badFrames", counters.bad_frames),
        ("nodeBadFrames", counters.node_bad_frames),
        ("staleFrames", counters.stale_frames),
        ("settled", counters.settled),
        ("latePublishAnswers", counters.late_publish_answers),
        ("nodeRestarts", counters.node_restarts),
        ("ringBytes", counters.ring_bytes),
    ] {
        sink.counter(name, value as f64);
    }
}
