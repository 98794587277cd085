//! Start, stop, the page's comings and goings, and the node's deaths.

use core::time::Duration;

use motet_protocol::{BackoffPolicy, ClientId, Error, ErrorCode, Instant, NodeId, RestartBudget};

use super::Client;
use super::api::{ClientConfig, ClientOutput, ClientStatus, ErrorSource, PageEvent};
use crate::frame::{PageFrame, ToNode};
use crate::packet::Packet;
use crate::table::TransportStatus;

/// How long the driver may take to start a node.
const LAUNCH_MAX: Duration = Duration::from_secs(15);
/// How long a node may hand its topics over when the client closes.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// How long something may wait for the node before it is asked whether it lives.
const PING_AFTER: Duration = Duration::from_secs(1);
/// Longest time between such questions, while all of them are answered.
const PING_AFTER_MAX: Duration = Duration::from_secs(8);
/// A shared node that nothing is asked of is asked for a sign of life after so long without one:
/// twenty idle pages exchange fewer than two messages a second with it.
const SHARED_IDLE_PING: Duration = Duration::from_secs(30);
/// How long it may take to answer.
const PONG_MAX: Duration = Duration::from_secs(2);
/// Window and jitter of node restarts.
const RESTART_WINDOW: Duration = Duration::from_secs(60);
const RESTART_JITTER: Duration = Duration::from_millis(200);
/// Five failed starts in a row take several seconds, so that a server that is being replaced is
/// back before the minute's restarts are spent.
const LAUNCH_BACKOFF: BackoffPolicy = BackoffPolicy::millis(1_000, 16_000);
/// A restart that comes so soon is no state of its own.
const RESTART_SOON: Duration = Duration::from_millis(300);

/// Where the client's life with its node stands. Times are waking time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The driver starts a node.
    Launching {
        until: Instant,
    },
    /// The port is open and Attach sent.
    Attaching {
        since: Instant,
    },
    Attached,
    /// The node is gone; the next one starts then.
    Restarting {
        at: Instant,
        why: Error,
    },
    /// The page is cached or frozen.
    Suspended,
    Failed(Error),
    Closing {
        until: Instant,
    },
    Closed,
}

#[derive(Debug)]
pub(super) struct Life {
    phase: Phase,
    /// The application wants the bus to run.
    wanted: bool,
    /// Number of the last start.
    start: u32,
    /// It has run before: what follows is recovery.
    has_run: bool,
    /// The node is shared with other pages: it outlives this one.
    shared: bool,
    restarts: RestartBudget,
    /// Starts in a row that failed.
    failed_launches: u32,
    transport: TransportStatus,
    /// Why the node's connection makes no further attempt.
    terminal: Option<Error>,
    /// The node owns topics.
    owns: bool,
    /// When the node said something last.
    heard: Instant,
    /// When it was asked whether it lives, while it has not answered.
    pinged: Option<Instant>,
    ping_after: Duration,
}

impl Life {
    pub(super) fn new(config: &ClientConfig) -> Self {
        Self {
            phase: Phase::Idle,
            wanted: false,
            start: 0,
            has_run: false,
            shared: false,
            restarts: RestartBudget::new(config.node_restarts, RESTART_WINDOW, RESTART_JITTER),
            failed_launches: 0,
            transport: TransportStatus::Idle,
            terminal: None,
            owns: false,
            heard: Instant::ZERO,
            pinged: None,
            ping_after: PING_AFTER,
        }
    }

    /// Ended, or about to.
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. } | Phase::Closed)
    }

    /// No channel is open: the page is suspended.
    pub(super) const fn is_away(&self) -> bool {
        matches!(self.phase, Phase::Suspended)
    }

    /// Data counts: the bus is meant to run, whether or not its node does.
    pub(super) const fn listens(&self) -> bool {
        matches!(
            self.phase,
            Phase::Launching { .. }
                | Phase::Attaching { .. }
                | Phase::Attached
                | Phase::Restarting { .. }
        )
    }

    /// Why nothing can be published at present, if so.
    pub(super) fn refusal(&self) -> Option<Error> {
        match &self.phase {
            Phase::Suspended => Some(ErrorCode::Suspended.into()),
            Phase::Closing { .. } | Phase::Closed => Some(ErrorCode::Closed.into()),
            Phase::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Why the bus has failed for good, if so.
    pub(super) const fn failure(&self) -> Option<&Error> {
        match &self.phase {
            Phase::Failed(error) => Some(error),
            _ => None,
        }
    }

    pub(super) fn transport(&mut self, status: TransportStatus, terminal: Option<Error>) {
        self.transport = status;
        self.terminal = terminal;
    }

    pub(super) const fn set_owns(&mut self, owns: bool) {
        self.owns = owns;
    }

    fn forget_node(&mut self) {
        self.transport = TransportStatus::Idle;
        self.terminal = None;
        self.owns = false;
        self.pinged = None;
        self.ping_after = PING_AFTER;
    }
}

impl<P: Clone> Client<P> {
    // What the application asks for.

    pub(super) fn start(&mut self) {
        match self.life.phase {
            Phase::Idle | Phase::Failed(_) => {
                self.life.wanted = true;
                for (_, topic) in &mut self.topics {
                    topic.unsettle(&mut self.env);
                }
                self.launch();
            }
            // A suspended page starts when it is shown.
            Phase::Suspended => self.life.wanted = true,
            _ => {}
        }
    }

    pub(super) fn close(&mut self) {
        if self.life.is_closed() {
            return;
        }
        self.publications.settle_all(&mut self.env, &ErrorCode::Closed.into());
        if !self.life.is_away() {
            self.each_shard(ClientOutput::CloseShard);
        }
        self.topics.clear();
        self.shards.fill(0);
        self.env.ring_bytes = 0;
        match self.life.phase {
            Phase::Attaching { .. } | Phase::Attached => {
                self.env.outbox.send(ToNode::Bye);
                let until = self.env.now + CLOSE_MAX;
                self.env.wake_at(until);
                self.life.phase = Phase::Closing { until };
            }
            _ => self.finish_close(false),
        }
    }

    /// The end: the node has handed its topics over, or is ended before it could.
    fn finish_close(&mut self, handed_over: bool) {
        if handed_over {
            self.env.outbox.push(ClientOutput::StopNode);
        } else {
            self.leave_node();
        }
        self.forget_node();
        self.life.phase = Phase::Closed;
        self.env.clear_due();
    }

    // The node's life.

    fn launch(&mut self) {
        self.life.start += 1;
        self.env.counters.node_restarts += u64::from(self.life.start > 1);
        let until = self.env.now + LAUNCH_MAX;
        self.env.wake_at(until);
        self.life.phase = Phase::Launching { until };
        self.env.outbox.push(ClientOutput::StartNode { start: self.life.start });
    }

    pub(super) fn node_started(&mut self, start: u32, shared: bool) {
        if start != self.life.start || !matches!(self.life.phase, Phase::Launching { .. }) {
            return;
        }
        self.life.shared = shared;
        self.open_port();
        self.life.phase = Phase::Attaching { since: self.env.now };
    }

    /// Tells a new node all that the page wants.
    fn open_port(&mut self) {
        self.life.heard = self.env.now;
        self.env.wake_at(self.env.now + PING_AFTER);
        self.env.outbox.open(ToNode::Attach {
            client: self.env.identity.client,
            tab: self.env.identity.tab,
            visible: self.env.config.visible,
            build: self.env.config.build.clone(),
        });
        if self.life.shared && self.life.has_run {
            // Its connection may be waiting out a backoff that nobody was there to cut short.
            self.env.outbox.send(ToNode::Nudge);
        }
        for (_, topic) in &mut self.topics {
            self.env.outbox.subscribe(&topic.name);
            topic.want_join(&mut self.env);
        }
    }

    pub(super) fn attached(&mut self, node: NodeId) {
        match self.life.phase {
            Phase::Attaching { .. } => {
                self.life.failed_launches = 0;
                self.life.phase = Phase::Attached;
            }
            Phase::Attached if self.env.identity.node != Some(node) => self.attach_anew(),
            _ => return,
        }
        self.env.identity.node = Some(node);
        self.env.outbox.sender(node);
    }

    /// What is behind the port knows nothing of this page: the host was started anew, or it took
    /// the page for gone.
    fn attach_anew(&mut self) {
        self.publications.node_lost(&mut self.env);
        self.forget_node();
        self.open_port();
    }

    /// The node says that it does not know this page.
    pub(super) fn detached(&mut self) {
        if matches!(self.life.phase, Phase::Attached) {
            self.attach_anew();
            self.life.phase = Phase::Attaching { since: self.env.now };
        }
    }

    /// The driver says that the node is gone.
    pub(super) fn node_gone(&mut self, start: u32, error: Error) {
        if start != self.life.start {
            return;
        }
        match self.life.phase {
            Phase::Launching { .. } | Phase::Attaching { .. } | Phase::Attached => {
                self.env.outbox.close();
                self.replace_node(error);
            }
            Phase::Closing { .. } => {
                self.finish_close(true);
            }
            _ => {}
        }
    }

    /// The node has not answered in time. It is ended, so that it cannot act any more.
    fn node_silent(&mut self) {
        self.leave_node();
        self.replace_node(ErrorCode::NodeUnavailable.into());
    }

    /// The node does not want this page.
    pub(super) fn node_refuses(&mut self, error: Error) {
        self.leave_node();
        self.replace_node(error);
    }

    /// Plans the next node, or gives up when the error says that it would fare no better.
    fn replace_node(&mut self, error: Error) {
        self.publications.node_lost(&mut self.env);
        self.forget_node();
        if error.retryable() {
            let at = self.next_launch();
            self.env.wake_at(at);
            self.life.phase = Phase::Restarting { at, why: error.clone() };
        } else {
            self.publications.settle_all(&mut self.env, &error);
            for (_, topic) in &mut self.topics {
                topic.fail(&mut self.env, error.clone());
            }
            self.life.phase = Phase::Failed(error.clone());
        }
        self.env.report(ErrorSource::Coordination, error);
    }

    /// When the next node may start: one that ran is replaced at once, and so is the first that
    /// cannot be started; those that follow wait longer and longer.
    fn next_launch(&mut self) -> Instant {
        let mut earliest = self.env.now;
        if matches!(self.life.phase, Phase::Launching { .. }) {
            if let Some(retry) = self.life.failed_launches.checked_sub(1) {
                let half = LAUNCH_BACKOFF.ceiling(retry) / 2;
                earliest = earliest + half + self.env.rng.jitter(half);
            }
            self.life.failed_launches += 1;
        }
        self.life.restarts.next(earliest, &mut self.env.rng)
    }

    /// Forgets what only the node knew.
    fn forget_node(&mut self) {
        self.env.outbox.close();
        self.env.identity.node = None;
        self.life.forget_node();
        self.coordinator = None;
        self.replica.clear();
        for (_, topic) in &mut self.topics {
            topic.forget_routes(&mut self.env);
        }
    }

    /// Says goodbye on behalf of the node, as far as it got, and ends it.
    fn leave_node(&mut self) {
        match (self.env.identity.node, self.life.shared) {
            (_, true) => {
                // The node lives on for other pages. In a Closing client Bye was said before.
                if !self.life.is_closed() {
                    self.env.outbox.send(ToNode::Bye);
                }
                self.env.outbox.flush();
            }
            (Some(node), false) => {
                let leaving = PageFrame::Leaving { node, graceful: false };
                self.env.outbox.push(ClientOutput::Announce(Packet::single(node, leaving)));
            }
            (None, false) => {}
        }
        let launched = matches!(
            self.life.phase,
            Phase::Launching { .. }
                | Phase::Attaching { .. }
                | Phase::Attached
                | Phase::Closing { .. }
        );
        if launched {
            self.env.outbox.push(ClientOutput::StopNode);
        }
        self.env.outbox.close();
    }

    /// The node has handed everything over.
    pub(super) fn node_closed(&mut self) {
        if matches!(self.life.phase, Phase::Closing { .. }) {
            self.finish_close(true);
        }
    }

    // The page's comings and goings.

    pub(super) fn on_page(&mut self, event: PageEvent) {
        match event {
            PageEvent::Hide | PageEvent::Freeze => self.suspend(),
            PageEvent::Show | PageEvent::Resume => self.resume(),
            PageEvent::Visible(visible) => {
                self.env.config.visible = visible;
                self.env.outbox.send(ToNode::Visible { visible });
            }
            PageEvent::Online => self.env.outbox.send(ToNode::Nudge),
        }
    }

    fn suspend(&mut self) {
        match self.life.phase {
            Phase::Suspended | Phase::Closed => return,
            Phase::Closing { .. } => {
                self.finish_close(false);
                return;
            }
            _ => {}
        }
        self.publications.settle_all(&mut self.env, &ErrorCode::Suspended.into());
        self.leave_node();
        self.forget_node();
        self.each_shard(ClientOutput::CloseShard);
        self.life.phase = Phase::Suspended;
        let idle = self.topics.values().filter(|topic| topic.handlers.is_empty());
        let idle: Vec<String> = idle.map(|topic| topic.name.clone()).collect();
        for topic in idle {
            self.end_topic(&topic);
        }
        for (_, topic) in &mut self.topics {
            topic.drop_held();
        }
        self.env.clear_due();
    }

    fn resume(&mut self) {
        if self.life.phase != Phase::Suspended {
            // The page slept without a word of warning.
            self.thaw();
            return;
        }
        self.env.identity.client = ClientId::random(&mut self.env.rng);
        self.life.phase = Phase::Idle;
        self.each_shard(ClientOutput::OpenShard);
        if self.life.wanted {
            self.launch();
        }
    }

    /// The page slept: messages may have passed by, and the node may have died unnoticed.
    pub(super) fn thaw(&mut self) {
        if !matches!(self.life.phase, Phase::Attaching { .. } | Phase::Attached) {
            return;
        }
        for (_, topic) in &mut self.topics {
            topic.after_sleep(&mut self.env);
        }
        self.life.pinged = Some(self.env.now);
        self.env.wake_at(self.env.now + PONG_MAX);
        self.ping();
    }

    // Time.

    /// The node said something.
    pub(super) fn heard(&mut self) {
        self.life.heard = self.env.now;
        self.life.pinged = None;
    }

    pub(super) fn run_life(&mut self) {
        let now = self.env.now;
        match self.life.phase {
            Phase::Launching { until } if now >= until => self.node_silent(),
            Phase::Closing { until } if now >= until => self.finish_close(false),
            Phase::Restarting { at, .. } if now >= at => self.launch(),
            Phase::Launching { until: at }
            | Phase::Closing { until: at }
            | Phase::Restarting { at, .. } => self.env.wake_at(at),
            Phase::Attaching { .. } | Phase::Attached => self.watch_node(),
            Phase::Idle | Phase::Suspended | Phase::Failed(_) | Phase::Closed => {}
        }
    }

    /// Asks the node whether it lives when something has waited for it, and replaces it when it
    /// does not answer.
    fn watch_node(&mut self) {
        let now = self.env.now;
        if let Some(pinged) = self.life.pinged {
            if now >= pinged + PONG_MAX {
                self.node_silent();
            } else {
                self.env.wake_at(pinged + PONG_MAX);
            }
            return;
        }
        let waiting = self.waiting_since();
        let at = match waiting {
            Some(since) => since.max(self.life.heard) + self.life.ping_after,
            // Its own node has peers that watch it; a shared one may be the whole cluster.
            None if self.life.shared => self.life.heard + SHARED_IDLE_PING,
            None => {
                self.life.ping_after = PING_AFTER;
                return;
            }
        };
        if now < at {
            self.env.wake_at(at);
            return;
        }
        self.life.ping_after = match waiting {
            Some(_) => (self.life.ping_after * 2).min(PING_AFTER_MAX),
            None => PING_AFTER,
        };
        self.life.pinged = Some(now);
        self.env.wake_at(now + PONG_MAX);
        self.ping();
    }

    /// Since when something waits for the node.
    fn waiting_since(&self) -> Option<Instant> {
        let attaching = match self.life.phase {
            Phase::Attaching { since } => Some(since),
            _ => None,
        };
        let joins = self.topics.values().filter_map(|topic| topic.join.map(|join| join.since));
        joins.chain(attaching).chain(self.publications.in_flight_since()).min()
    }

    // Status.

    /// Tells the client's state when it has changed.
    pub(super) fn refresh_status(&mut self) {
        let status = self.present_status();
        self.life.has_run |= matches!(status, ClientStatus::Running { .. });
        if self.status != status {
            self.status = status.clone();
            self.env.outbox.push(ClientOutput::Status(status));
        }
    }

    fn present_status(&self) -> ClientStatus {
        let coming =
            if self.life.has_run { ClientStatus::Recovering } else { ClientStatus::Starting };
        match &self.life.phase {
            Phase::Idle => ClientStatus::Idle,
            Phase::Launching { .. } | Phase::Attaching { .. } => coming,
            Phase::Attached => self.attached_status(coming),
            // The restart budget is spent, or no node can be started.
            Phase::Restarting { at, why } if *at - self.env.now > RESTART_SOON => {
                ClientStatus::Degraded { node: None, error: why.clone() }
            }
            Phase::Restarting { .. } => coming,
            Phase::Suspended => ClientStatus::Suspended,
            Phase::Failed(error) => ClientStatus::Failed(error.clone()),
            Phase::Closing { .. } => ClientStatus::Closing,
            Phase::Closed => ClientStatus::Closed,
        }
    }

    fn attached_status(&self, coming: ClientStatus) -> ClientStatus {
        let Some(node) = self.env.identity.node.filter(|_| self.coordinator.is_some()) else {
            return coming;
        };
        if !self.life.owns || self.life.transport == TransportStatus::Connected {
            return ClientStatus::Running { node };
        }
        match &self.life.terminal {
            Some(error) => ClientStatus::Degraded { node: Some(node), error: error.clone() },
            None => coming,
        }
    }
}
