//! What the page's node says.

use core::time::Duration;

use motet_protocol::{Error, ErrorCode, Fence, NodeId};

use super::api::{ClientOutput, ErrorSource};
use super::{Client, delivery};
use crate::frame::{JoinedFrame, ToNode, ToPage};
use crate::node::ToPagePacket;
use crate::table::{Route, TransportStatus};

/// An application that has given no token in this time is asked again.
const TOKEN_PATIENCE: Duration = Duration::from_secs(10);

/// Between two questions that snapshots ask.
const INSPECTION_INTERVAL: Duration = Duration::from_secs(1);

impl<P: Clone> Client<P> {
    pub(super) fn on_port(&mut self, packet: ToPagePacket<P>) {
        for frame in packet.frames {
            // A frame may end the node's life; what follows it is a former node's then.
            if !self.env.outbox.is_open() {
                return;
            }
            let attached = matches!(frame, ToPage::Attached { .. });
            if !attached && self.env.identity.node.is_some_and(|node| node != packet.from) {
                self.env.counters.bad_frames += 1;
                continue;
            }
            self.heard();
            self.on_frame(frame, &packet.payloads);
        }
        self.bound_rings();
    }

    fn on_frame(&mut self, frame: ToPage, payloads: &[P]) {
        match frame {
            ToPage::Attached { node, build } => {
                if build != self.env.config.build {
                    let error = Error::new(ErrorCode::BuildSkew).with_detail(build);
                    self.env.report(ErrorSource::Coordination, error);
                }
                self.env.counters.node_bad_frames = 0;
                self.attached(node);
            }
            ToPage::Coordinator { node, fence } => self.on_coordinator(node, fence),
            ToPage::Members { members, gone, full } => {
                self.replica.set_members(self.env.now, members, &gone, full);
            }
            ToPage::Routes { fence, routes, dropped, full } => {
                self.on_routes(fence, &routes, dropped, full);
            }
            ToPage::Transport { status, error, terminal } => {
                self.on_transport(status, error, terminal);
            }
            ToPage::Joined(frame) => self.on_joined(frame, payloads),
            ToPage::NotOwner { topic, call } => {
                if let Some(topic) = self.topics.get_mut(&topic)
                    && topic.awaits(call)
                {
                    topic.join_misdirected(&mut self.env);
                }
            }
            ToPage::Published { call, error, idempotent } => {
                self.publications.on_published(&mut self.env, call, error, idempotent);
            }
            ToPage::TokenWanted { topic } => {
                // A token may take its time; that the page runs is said at once.
                self.env.outbox.send(ToNode::Visible { visible: self.env.config.visible });
                self.ask_application(topic);
            }
            ToPage::RingWanted { topic, fence } => {
                if let Some(topic) = self.topics.get(&topic) {
                    topic.send_ring(&mut self.env, fence);
                }
            }
            ToPage::Pong { heard, .. } => self.replica.heard_of(self.env.now, &heard),
            ToPage::Closed => self.node_closed(),
            ToPage::Detached => self.detached(),
            ToPage::BadFrames { count } => self.env.counters.node_bad_frames = count.into(),
            ToPage::Report { error } => self.on_report(error),
        }
    }

    /// A node asks again to see that the page runs; the application is asked once at a time.
    fn ask_application(&mut self, topic: Option<String>) {
        let now = self.env.now;
        let asked = self.tokens_asked.get(&topic).is_some_and(|at| now < *at + TOKEN_PATIENCE);
        if !asked {
            self.tokens_asked.insert(topic.clone(), now);
            self.env.outbox.push(ClientOutput::TokenWanted { topic });
        }
    }

    fn on_coordinator(&mut self, node: Option<NodeId>, fence: Fence) {
        if self.replica.adopt(fence) {
            self.coordinator = node;
        }
        if node.is_some() {
            self.publications.open(&mut self.env);
        }
    }

    fn on_routes(&mut self, fence: Fence, routes: &[Route], dropped: Vec<String>, full: bool) {
        if !self.replica.adopt(fence) {
            self.env.counters.stale_frames += 1;
            return;
        }
        let before = self.replica.told();
        let own = self.env.identity.node;
        for route in routes {
            let topics = &self.topics;
            let keep =
                |route: &Route| own == Some(route.owner) || topics.contains_key(&route.topic);
            if self.replica.set_route(self.env.now, route, &keep)
                && let Some(topic) = self.topics.get_mut(&route.topic)
            {
                topic.on_route(&mut self.env, route);
            }
        }
        let left_out = if full { self.replica.told_before(before) } else { Vec::new() };
        for topic in dropped.into_iter().chain(left_out) {
            self.replica.drop_route(&topic);
            if let Some(topic) = self.topics.get_mut(&topic) {
                topic.lose_route(&mut self.env);
            }
        }
        self.life.set_owns(self.replica.routes().any(|known| own == Some(known.route.owner)));
    }

    fn on_joined(&mut self, mut frame: JoinedFrame, payloads: &[P]) {
        let Some(topic) = self.topics.get_mut(&frame.topic) else { return };
        if frame.client != self.env.identity.client {
            self.env.counters.bad_frames += 1;
            return;
        }
        match delivery::messages(core::mem::take(&mut frame.messages), payloads) {
            Some(messages) => topic.on_joined(&mut self.env, &frame, messages),
            None => {
                self.env.counters.bad_frames += 1;
                topic.join_refused(&mut self.env);
            }
        }
    }

    fn on_transport(&mut self, status: TransportStatus, error: Option<Error>, terminal: bool) {
        if let Some(error) = &error {
            self.env.report(ErrorSource::Transport, error.clone());
        }
        self.life.transport(status, error.filter(|_| terminal));
    }

    fn on_report(&mut self, error: Error) {
        let source = match error.code {
            ErrorCode::TokenUnavailable
            | ErrorCode::TransportUnavailable
            | ErrorCode::ConnectRejected
            | ErrorCode::SubscribeRejected
            | ErrorCode::PublishRejected => ErrorSource::Transport,
            ErrorCode::ConfigInvalid
            | ErrorCode::ClusterConfigMismatch
            | ErrorCode::TransportUnsupported => ErrorSource::Config,
            _ => ErrorSource::Coordination,
        };
        if error.code == ErrorCode::BuildSkew && self.env.identity.node.is_none() {
            // The node refuses the page; another attempt would be refused as well.
            self.node_refuses(error);
            return;
        }
        self.env.report(source, error);
    }

    pub(super) fn inspect(&mut self) {
        let now = self.env.now;
        if self.inspected.is_none_or(|at| now >= at + INSPECTION_INTERVAL) {
            self.inspected = Some(now);
            self.ping();
        }
    }

    /// Asks the node whether it lives.
    pub(super) fn ping(&mut self) {
        self.env.outbox.send(ToNode::Ping);
    }
}
