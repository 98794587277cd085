//! One topic of the page: who listens, where it stands in the stream, and the question it has out.

use core::time::Duration;
use std::sync::Arc;

use motet_protocol::fault::planted;
use motet_protocol::{
    CallId, Error, Instant, MessageWindow, NodeId, Position, RouteFence, StreamEpoch,
};

use super::api::{ClientOutput, Delivery, HandlerId, Recipients, SubscriptionState};
use super::hole::Held;
use super::outbox::Env;
use super::ring::{Message, Ring};
use crate::frame::{JoinFrame, MessageHead, ToNode};
use crate::name::shard_of;
use crate::table::{Route, RouteState};

/// First wait for an answer to a Join; doubled up to [`JOIN_RETRY_MAX`].
const JOIN_RETRY: Duration = Duration::from_millis(500);
/// First wait after somebody answered that it cannot tell: the owner and its subscribers hear of
/// a new route over different channels, so the other side is usually a few milliseconds behind.
const JOIN_REFUSED_RETRY: Duration = Duration::from_millis(20);
const JOIN_RETRY_MAX: Duration = Duration::from_secs(4);
/// A hole that nobody could be asked about is given up after this time.
const UNASKED_HOLE_MAX: Duration = Duration::from_secs(5);

/// One subscription call of the application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handler {
    pub(super) id: HandlerId,
    /// Earlier messages it wants.
    pub(super) replay: u32,
}

/// The question for the owner that is out, or waits for a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    /// The attempt that is out; none while no owner is known.
    pub(super) call: Option<CallId>,
    /// The route it went by.
    fence: Option<RouteFence>,
    /// It asks for a place, so that its answer may begin with earlier messages.
    pub(super) first: bool,
    /// Since when an answer is wanted.
    pub(super) since: Instant,
    /// When the question could be put first.
    sent: Option<Instant>,
    /// When it is asked again.
    retry: Instant,
    /// Attempts in a row that nobody answered.
    unanswered: u32,
    /// Answers in a row that could not tell.
    pub(super) refused: u32,
}

#[derive(Debug)]
pub(super) struct Topic<P> {
    pub(super) name: String,
    pub(super) shard: u8,
    pub(super) handlers: Vec<Handler>,
    /// End of the time it stays subscribed without handlers.
    linger: Option<Instant>,
    /// The newest decision about its route, from the node or from Data itself.
    pub(super) fence: Option<RouteFence>,
    /// The owner by that decision.
    pub(super) owner: Option<NodeId>,
    /// The newest decision that the node told: Data may have named a newer one.
    pub(super) told: Option<(RouteFence, NodeId)>,
    /// The node knows an owner that has not failed.
    routed: bool,
    /// The last message delivered or covered by a gap; none before the first Joined.
    pub(super) position: Option<Position>,
    /// The epoch before the present one: a straggler of it is no news.
    pub(super) left: Option<StreamEpoch>,
    /// The server keeps history, as the owner said last.
    pub(super) history: bool,
    pub(super) join: Option<Join>,
    /// Something was dropped that contradicts what is known: only an answer to a question asked
    /// after it tells which is right.
    doubt: bool,
    pub(super) held: Held<P>,
    /// Where the owner says the topic stands, when that is beyond the position.
    pub(super) ahead: Option<Position>,
    /// The question that is out was asked after that was said.
    pub(super) ahead_asked: bool,
    /// Since when something is known to be missing.
    pub(super) hole_since: Option<Instant>,
    pub(super) ring: Ring<P>,
    ids: MessageWindow<Arc<str>>,
    state: SubscriptionState,
}

impl<P: Clone> Topic<P> {
    pub(super) fn new(name: String) -> Self {
        Self {
            shard: shard_of(&name),
            name,
            handlers: Vec::new(),
            linger: None,
            fence: None,
            owner: None,
            told: None,
            routed: false,
            position: None,
            left: None,
            history: false,
            join: None,
            doubt: false,
            held: Held::new(),
            ahead: None,
            ahead_asked: false,
            hole_since: None,
            ring: Ring::new(),
            ids: MessageWindow::default(),
            state: SubscriptionState::Pending,
        }
    }

    pub(super) const fn state(&self) -> &SubscriptionState {
        &self.state
    }

    /// An owner is known, nothing is asked and nothing is missing.
    pub(super) const fn is_live(&self) -> bool {
        self.routed && self.position.is_some() && self.join.is_none() && self.hole_since.is_none()
    }

    pub(super) fn set_state(&mut self, env: &mut Env<P>, state: SubscriptionState) {
        if self.state != state {
            self.state = state;
            self.announce(env);
        }
    }

    /// Tells the present state.
    pub(super) fn announce(&self, env: &mut Env<P>) {
        let state = self.state.clone();
        env.outbox.push(ClientOutput::Subscription { topic: self.name.clone(), state });
    }

    /// Says `Ready` when the topic is caught up and said otherwise before.
    pub(super) fn refresh_state(&mut self, env: &mut Env<P>) {
        let waiting =
            matches!(self.state, SubscriptionState::Pending | SubscriptionState::Recovering);
        if waiting
            && self.is_live()
            && let Some(position) = self.position.clone()
        {
            self.set_state(env, SubscriptionState::Ready(position));
        }
    }

    /// Messages may be missed until the topic is caught up.
    pub(super) fn unsettle(&mut self, env: &mut Env<P>) {
        let state = match self.position {
            Some(_) => SubscriptionState::Recovering,
            None => SubscriptionState::Pending,
        };
        self.set_state(env, state);
    }

    // Handlers.

    pub(super) fn add_handler(&mut self, env: &mut Env<P>, handler: Handler) {
        let asked = self.replay();
        self.linger = None;
        self.handlers.push(handler);
        if self.position.is_some() {
            self.replay_to(env, handler);
        } else if handler.replay > asked && self.join.is_some_and(|join| join.call.is_some()) {
            // The question that is out asks for less than this handler wants.
            self.join_anew(env);
        }
    }

    /// Brings a late handler what the page has kept.
    fn replay_to(&self, env: &mut Env<P>, handler: Handler) {
        for (position, message) in self.ring.tail(handler.replay as usize) {
            let delivery = self.delivery(position, message.clone(), true);
            let to = Recipients::One(handler.id);
            env.outbox.push(ClientOutput::Deliver(Delivery { to, ..delivery }));
        }
    }

    pub(super) fn remove_handler(&mut self, env: &mut Env<P>, handler: HandlerId) {
        self.handlers.retain(|present| present.id != handler);
        if self.handlers.is_empty() {
            let end = env.now + env.config.linger;
            self.linger = Some(end);
            env.wake_at(end);
        }
    }

    /// Nobody listens, and nobody has come back in time.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.linger.is_some_and(|end| now >= end)
    }

    /// Earlier messages that the most demanding handler wants.
    fn replay(&self) -> u32 {
        self.handlers.iter().map(|handler| handler.replay).max().unwrap_or(0)
    }

    // The route.

    /// A row of the node's table.
    pub(super) fn on_route(&mut self, env: &mut Env<P>, route: &Route) {
        self.told = Some((route.fence, route.owner));
        // While no owner is known the node's word counts, even if Data named a higher fence: when
        // everybody who remembered the old incarnation is gone, the new one may compare lower.
        if self.routed && self.fence.is_some_and(|known| route.fence < known) {
            return;
        }
        if let RouteState::Failed(error) = &route.state {
            self.fence = Some(route.fence);
            self.fail(env, error.clone());
            return;
        }
        let raised = self.fence != Some(route.fence);
        let moved = self.owner.replace(route.owner) != Some(route.owner);
        let first = !self.routed;
        self.fence = Some(route.fence);
        self.routed = true;
        if moved || matches!(self.state, SubscriptionState::Failed(_)) {
            self.unsettle(env);
        }
        // Whoever could not tell may be able to now. Waiting for a timer would take a second in a
        // hidden page.
        let again = |join: Join| join.fence != self.fence || join.refused > 0;
        if raised || first || self.join.is_some_and(again) {
            self.join_anew(env);
        }
    }

    /// The server refused the topic, or the bus failed, for good.
    pub(super) fn fail(&mut self, env: &mut Env<P>, error: Error) {
        self.routed = false;
        self.owner = None;
        self.join = None;
        self.set_state(env, SubscriptionState::Failed(error));
    }

    /// Nobody owns the topic at present.
    pub(super) fn lose_route(&mut self, env: &mut Env<P>) {
        self.owner = None;
        self.routed = false;
        self.join = None;
        self.want_join(env);
        self.unsettle(env);
    }

    /// The node is gone, or the page goes away: routes and fences are learnt anew, because nobody
    /// may be left who remembers the old ones. Position and kept messages stay.
    pub(super) fn forget_routes(&mut self, env: &mut Env<P>) {
        self.told = None;
        self.fence = None;
        self.owner = None;
        self.routed = false;
        self.join = None;
        self.unsettle(env);
    }

    /// Gives up what waits behind a hole: it is asked for again with the position.
    pub(super) fn drop_held(&mut self) {
        self.held.clear();
        self.ahead = None;
        self.hole_since = None;
    }

    // The question.

    /// Asks the owner for the topic's place, unless that is being asked.
    pub(super) fn want_join(&mut self, env: &mut Env<P>) {
        let complete = self.position.is_some() && self.hole_since.is_none();
        if self.join.is_some() || complete && planted("keep-position-after-show-without-join") {
            return;
        }
        let since = env.now;
        self.join = Some(Join {
            call: None,
            fence: None,
            first: false,
            since,
            sent: None,
            retry: since,
            unanswered: 0,
            refused: 0,
        });
        self.send_join(env);
    }

    /// What was just dropped makes the owner's word necessary.
    pub(super) fn doubt(&mut self, env: &mut Env<P>) {
        self.doubt = true;
        self.want_join(env);
    }

    /// The question is answered, or given up.
    pub(super) fn end_join(&mut self, env: &mut Env<P>) {
        self.join = None;
        if self.doubt {
            self.want_join(env);
        }
    }

    /// Asks anew: what was asked before is answered by nobody, or no more of use.
    pub(super) fn join_anew(&mut self, env: &mut Env<P>) {
        self.join = None;
        self.want_join(env);
    }

    fn send_join(&mut self, env: &mut Env<P>) {
        let replay = if self.position.is_none() { self.replay() } else { 0 };
        let Some(join) = &mut self.join else { return };
        let wait = (JOIN_RETRY * (1 << join.unanswered.min(3))).min(JOIN_RETRY_MAX);
        join.retry = env.now + wait;
        env.wake_at(join.retry);
        if !self.routed || !env.outbox.is_open() {
            return;
        }
        let call = CallId::random(&mut env.rng);
        join.call = Some(call);
        join.sent.get_or_insert(env.now);
        join.fence = self.fence;
        join.first = self.position.is_none();
        self.held.mark_asked();
        self.ahead_asked = true;
        self.doubt = false;
        env.counters.joins += 1;
        env.outbox.send(ToNode::Join(JoinFrame {
            topic: self.name.clone(),
            client: env.identity.client,
            call,
            position: self.position.clone(),
            replay,
        }));
    }

    /// Whether this is the attempt whose answer is awaited.
    pub(super) fn awaits(&self, call: CallId) -> bool {
        self.join.is_some_and(|join| join.call == Some(call))
    }

    /// Part of the answer came, the rest is under way.
    pub(super) fn join_goes_on(&mut self, env: &mut Env<P>) {
        let Some(join) = &mut self.join else { return };
        join.refused = 0;
        join.retry = env.now + JOIN_RETRY;
        env.wake_at(join.retry);
    }

    /// Who was asked does not own the topic: the owner has not been asked yet.
    pub(super) fn join_misdirected(&mut self, env: &mut Env<P>) {
        if let Some(join) = &mut self.join {
            join.sent = None;
        }
        self.join_refused(env);
    }

    /// The asked node could not tell: asked again soon, later each time.
    pub(super) fn join_refused(&mut self, env: &mut Env<P>) {
        let Some(join) = &mut self.join else { return };
        let wait = JOIN_REFUSED_RETRY * (1 << join.refused.min(8));
        join.refused += 1;
        join.retry = env.now + wait.min(JOIN_RETRY_MAX);
        env.wake_at(join.retry);
    }

    // Time.

    /// The page slept: messages may have passed by. A hole has its full time again, because the
    /// answer may be in the queue behind this.
    pub(super) fn after_sleep(&mut self, env: &mut Env<P>) {
        if self.hole_since.is_some() {
            self.hole_since = Some(env.now);
        }
        self.join_anew(env);
    }

    /// Asks again what nobody answered. A hole's own time is up elsewhere.
    pub(super) fn retry_join(&mut self, env: &mut Env<P>) {
        let Some(join) = &mut self.join else { return };
        if env.now >= join.retry {
            join.unanswered += u32::from(join.call.is_some());
            self.send_join(env);
        }
    }

    /// Sets the topic's timers again.
    pub(super) fn wake(&self, env: &mut Env<P>) {
        let hole = self.hole_end(env);
        let retry = self.join.map(|join| join.retry);
        for at in [self.linger, hole, retry].into_iter().flatten() {
            env.wake_at(at);
        }
    }

    /// When a hole is given up: some time after the owner could be asked. A page that has no node
    /// yet, or knows no owner, cannot be told that what it misses is lost.
    pub(super) fn hole_end(&self, env: &Env<P>) -> Option<Instant> {
        let since = self.hole_since?;
        Some(match self.join.and_then(|join| join.sent) {
            Some(sent) => sent.max(since) + self.hole_patience(env),
            None => since + UNASKED_HOLE_MAX,
        })
    }

    /// How long a hole is left open. Before the first Joined nothing is promised yet, and the
    /// messages to be replayed are worth more patience.
    pub(super) fn hole_patience(&self, env: &Env<P>) -> Duration {
        match self.position {
            Some(_) => env.config.hole_wait,
            None => env.config.hole_wait * 4,
        }
    }

    // Delivery of one message.

    /// Hands a message to the handlers that want it, and keeps it. `ago` counts replayed messages
    /// from the newest, 1; none for live ones.
    pub(super) fn deliver(&mut self, env: &mut Env<P>, message: Message<P>, ago: Option<u64>) {
        let epoch = match &mut self.position {
            Some(position) => {
                position.offset = message.offset;
                position.epoch.clone()
            }
            None => return,
        };
        if env.config.dedupe_by_id
            && let Some(id) = &message.message_id
            && !self.ids.insert(env.now, Arc::from(id.as_str()))
        {
            env.counters.id_repeats += 1;
            return;
        }
        let position = Position::new(epoch.clone(), message.offset);
        let wants = |handler: &Handler| ago.is_none_or(|ago| u64::from(handler.replay) >= ago);
        let wanting = self.handlers.iter().filter(|handler| wants(handler)).count();
        if wanting > 0 {
            env.counters.delivered += 1;
            let delivery = self.delivery(position, message.clone(), ago.is_some());
            if wanting == self.handlers.len() {
                env.outbox.push(ClientOutput::Deliver(delivery));
            } else {
                for handler in self.handlers.iter().filter(|handler| wants(handler)) {
                    let to = Recipients::One(handler.id);
                    env.outbox.push(ClientOutput::Deliver(Delivery { to, ..delivery.clone() }));
                }
            }
        }
        if env.config.ring_messages > 0 {
            let before = self.ring.bytes();
            self.ring.push(&epoch, message, env.config.ring_messages, env.config.ring_bytes);
            env.ring_bytes = env.ring_bytes + self.ring.bytes() - before;
        }
    }

    fn delivery(&self, position: Position, message: Message<P>, replayed: bool) -> Delivery<P> {
        Delivery {
            topic: self.name.clone(),
            to: Recipients::All,
            position,
            replayed,
            message_id: message.message_id,
            timestamp_ms: message.timestamp_ms,
            size: message.size,
            payload: message.payload,
        }
    }

    /// The kept messages, for an owner that has no history.
    pub(super) fn send_ring(&self, env: &mut Env<P>, fence: RouteFence) {
        let Some(position) = &self.position else { return };
        env.outbox.send_with(|packet| {
            let kept = self.ring.of_epoch(&position.epoch);
            let messages = kept.map(|message| MessageHead {
                offset: message.offset,
                size: message.size,
                slot: packet.attach(message.payload.clone()),
                message_id: message.message_id.clone(),
                timestamp_ms: message.timestamp_ms,
            });
            let messages = messages.collect();
            let epoch = position.epoch.clone();
            ToNode::Ring { topic: self.name.clone(), fence, epoch, messages }
        });
    }
}
