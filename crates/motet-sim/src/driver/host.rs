//! The host of a node: a worker, a shared worker, or the page itself.

use motet_cluster::frame::ToNode;
use motet_cluster::lock::{LockEvent, LockMode, LockOp, LockRequest};
use motet_cluster::name::LockName;
use motet_cluster::node::{
    Identity, Node, NodeConfig, NodeInput, NodeOutput, NodePacket, ToNodePacket,
};
use motet_protocol::{Fence, NodeId};

use super::transport::Transport;
use crate::media::channel::{Channel, ListenerId};
use crate::media::lock::Agent;
use crate::media::port::{Port, PortId};
use crate::media::wire::Post;
use crate::world::context::{ContextId, Kind, Slot, Task};
use crate::world::{MS, World};

/// How long a port's first message waits for its host, at most.
const PAGE_HOST_DELAY: u64 = 200;

/// A node's driver.
pub(crate) struct Host {
    pub(crate) node: Node<u64>,
    pub(crate) id: NodeId,
    pub(crate) agent: Agent,
    announce: ListenerId,
    inbox: ListenerId,
    /// Names the objects that only post.
    senders: [ListenerId; 2],
    pub(crate) ports: Vec<PortId>,
    /// The request for the node's own lock, until it is granted.
    life: Option<LockRequest>,
    /// Its newest requests for the coordinator's lock and for a term: what it governs by.
    office: Option<LockRequest>,
    term: Option<(LockRequest, Fence)>,
    /// Pages that are told of the node once its own lock is held: their wait for it must come
    /// second.
    awaited: Vec<(PortId, u32)>,
    pub(crate) transport: Transport,
}

impl core::fmt::Debug for Host {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Host").field("id", &self.id).finish_non_exhaustive()
    }
}

impl World {
    pub(crate) fn host_task(&mut self, id: ContextId, task: Task) {
        match task {
            Task::Timer(Slot::Transport, _) => self.transport_tick(id),
            Task::Timer(..) => self.host_input(id, NodeInput::Tick),
            Task::Boot(start) => self.boot(id, start),
            Task::Connect(port, start) => self.accept_port(id, port, start),
            Task::ToHost(port, post) => self.port_message(id, port, &post),
            Task::Socket(connection, message) => self.socket_message(id, connection, message),
            _ => {}
        }
    }

    fn boot(&mut self, id: ContextId, start: u32) {
        let in_page = self.contexts[id].kind == Kind::Page;
        let page = self.contexts[id].page.as_ref();
        let wanted = !in_page || page.is_some_and(|page| page.start() == Some(start));
        if self.contexts[id].host.is_some() || !wanted {
            return;
        }
        let tab = self.contexts[id].tab;
        let node = NodeId::random(&mut self.rng);
        let config = NodeConfig {
            max_active_nodes: self.setup.max_active_nodes,
            shared: self.contexts[id].kind == Kind::Shared,
            ..NodeConfig::default()
        };
        let identity =
            Identity { node, tab: self.tabs[tab].identity, visible: self.tabs[tab].visible };
        let now = self.local_now(id);
        let agent = self.new_agent(id);
        let host = Host {
            node: Node::new(now, config, identity, self.rng.fork()),
            id: node,
            agent,
            announce: self.channels.open(Channel::Announce, id),
            inbox: self.channels.open(Channel::Inbox(node), id),
            senders: [self.channels.sender(), self.channels.sender()],
            ports: Vec::new(),
            life: None,
            office: None,
            term: None,
            awaited: Vec::new(),
            transport: Transport::new(self.setup.tokens, self.rng.fork()),
        };
        self.note(|| format!("node {node} starts in context {id} of tab {tab}"));
        self.contexts[id].host = Some(Box::new(host));
        self.checks.node_started(node, id);
        self.host_input(id, NodeInput::Start);
        if in_page {
            self.ports.push(Port::new(id, id));
            self.send(id, PAGE_HOST_DELAY, Task::Connect(self.ports.len() - 1, start));
        }
    }

    fn accept_port(&mut self, id: ContextId, port: PortId, start: u32) {
        let Some(host) = self.contexts[id].host.as_mut() else {
            // The script has not started yet: the event waits for it.
            self.send(id, MS, Task::Connect(port, start));
            return;
        };
        host.ports.push(port);
        if host.life.is_some() {
            host.awaited.push((port, start));
        } else {
            let node = host.id;
            self.send_behind(port, false, 100, Task::NodeUp { start, port, node });
        }
    }

    fn port_message(&mut self, id: ContextId, port: PortId, post: &Post) {
        let Some(host) = self.contexts[id].host.as_ref() else { return };
        if !host.ports.contains(&port) || !self.ports[port].host_open {
            return;
        }
        let Some(packet): Option<ToNodePacket<u64>> = post.packet() else { return };
        for frame in &packet.frames {
            if let ToNode::Attach { client, .. } = frame {
                self.ports[port].client = Some(*client);
            }
        }
        if let Some(client) = self.ports[port].client {
            self.host_input(id, NodeInput::Port { client, packet });
        }
    }

    pub(crate) fn host_lock(&mut self, id: ContextId, event: LockEvent) {
        if let LockEvent::Granted { request } = event
            && let Some(host) = self.contexts[id].host.as_mut()
            && host.life == Some(request)
        {
            host.life = None;
            let node = host.id;
            for (port, start) in core::mem::take(&mut host.awaited) {
                self.send_behind(port, false, 100, Task::NodeUp { start, port, node });
            }
        }
        if let LockEvent::Snapshot { .. } = event
            && let Some(host) = self.contexts[id].host.as_ref()
        {
            self.checks.owners.knows_locks(host.id);
        }
        if let LockEvent::Lost { request } = event
            && let Some(host) = self.contexts[id].host.as_ref()
            && let Some((term, fence)) = host.term
            && (request == term || Some(request) == host.office)
        {
            self.checks.coordinators.deposed(host.id, fence);
        }
        self.host_input(id, NodeInput::Lock(event));
    }

    pub(crate) fn channel_task(&mut self, id: ContextId, task: Task) {
        let Task::Channel(listener, post) = task else { return };
        let Some(channel) = self.channels.channel_of(listener) else { return };
        let Some(packet): Option<NodePacket<u64>> = post.packet() else { return };
        match channel {
            Channel::Data(_) => {
                self.page_input(id, motet_cluster::client::ClientInput::Data(packet));
                return;
            }
            Channel::Announce | Channel::Inbox(_) => {}
        }
        let Some(host) = self.contexts[id].host.as_ref() else { return };
        self.checks.hears(host.id, &packet);
        let input = match channel {
            Channel::Announce => NodeInput::Announce(packet),
            _ => NodeInput::Inbox(packet),
        };
        self.host_input(id, input);
    }

    /// Hands the context's node an input and does what node and transport ask for.
    pub(crate) fn host_input(&mut self, id: ContextId, input: NodeInput<u64>) {
        let now = self.local_now(id);
        let Some(mut host) = self.contexts[id].host.take() else { return };
        host.node.handle(now, input);
        self.drain_host(id, &mut host);
        let due = [host.node.next_timeout(), host.transport.next_timeout()];
        self.contexts[id].host = Some(host);
        self.arm(id, Slot::Node, due[0]);
        self.arm(id, Slot::Transport, due[1]);
    }

    /// Carries out everything that node and transport ask for.
    pub(crate) fn drain_host(&mut self, id: ContextId, host: &mut Host) {
        let now = self.local_now(id);
        let mut outputs = 0;
        // The browser's driver has the node handle all that a frame of the server brought before it
        // asks for outputs, so that what came last may be said first. Other drivers need not.
        let frames_whole = host.id.bits().is_multiple_of(2);
        loop {
            while frames_whole && let Some(event) = self.transport_outputs(id, host) {
                host.node.handle(now, NodeInput::Transport(event));
            }
            if let Some(output) = host.node.poll_output() {
                outputs += 1;
                self.node_output(id, host, output);
            } else if let Some(event) = self.transport_outputs(id, host) {
                host.node.handle(now, NodeInput::Transport(event));
            } else {
                break;
            }
        }
        self.checks.outputs(self.now, outputs);
    }

    fn node_output(&mut self, id: ContextId, host: &mut Host, output: NodeOutput<u64>) {
        match output {
            NodeOutput::Announce(packet) => {
                self.checks.node_posts(host.id, &packet, self.now);
                self.see_routes(&packet);
                self.note(|| format!("node {} announces {:?}", host.id, packet.frames));
                let post = Post::of(&packet, self.newer());
                self.post_channel(id, Some(host.announce), host.announce, Channel::Announce, &post);
            }
            NodeOutput::Inbox { to, packet } => {
                self.checks.node_posts(host.id, &packet, self.now);
                self.judge_release(host, &packet);
                self.note(|| format!("node {} to {to} {:?}", host.id, packet.frames));
                let post = Post::of(&packet, self.newer());
                // Its own inbox object does not hear it, whichever object it posts with.
                let own = Some(host.inbox);
                self.post_channel(id, own, host.senders[0], Channel::Inbox(to), &post);
            }
            NodeOutput::Data { shard, packet } => {
                self.checks.node_posts(host.id, &packet, self.now);
                self.note(|| format!("node {} data {:?}", host.id, packet.frames));
                let post = Post::of(&packet, self.newer());
                self.post_channel(id, None, host.senders[1], Channel::Data(shard), &post);
            }
            NodeOutput::Port { client, packet } => {
                self.checks.tells_page(host.id, &packet, self.now);
                let ports = &self.ports;
                let port =
                    host.ports.iter().rev().find(|port| ports[**port].client == Some(client));
                if let Some(port) = port.copied() {
                    self.checks.port_posts(1);
                    let post = Post::of(&packet, self.newer());
                    if self.ports[port].page_open {
                        self.post_port(port, false, post);
                    }
                }
            }
            NodeOutput::Lock(op) => {
                self.note(|| format!("node {} {op:?}", host.id));
                if let LockOp::Request { request, name, mode } = op {
                    match name {
                        LockName::Node(node) if node == host.id => host.life = Some(request),
                        LockName::Coordinator => host.office = Some(request),
                        // Others wait for its end in shared mode.
                        LockName::Term(fence) if mode != LockMode::Shared => {
                            host.term = Some((request, fence));
                        }
                        _ => {}
                    }
                }
                self.ask_lock(host.agent, op);
            }
            NodeOutput::Transport(op) => {
                self.note(|| format!("node {} transport {op:?}", host.id));
                host.transport.operate(self.local_now(id), op);
            }
            NodeOutput::Event(event) => {
                self.note(|| format!("node {} event {event:?}", host.id));
            }
        }
    }

    /// The page ends the node that it hosts itself.
    pub(crate) fn drop_page_host(&mut self, id: ContextId) {
        if let Some(host) = self.contexts[id].host.take() {
            self.let_host_go(id, &host, 0, true);
            self.arm(id, Slot::Node, None);
            self.arm(id, Slot::Transport, None);
        }
    }

    /// What remains of a node whose host is gone: channels, ports, locks, its connection.
    pub(crate) fn let_host_go(&mut self, id: ContextId, host: &Host, locks_after: u64, told: bool) {
        self.channels.close(host.announce);
        self.channels.close(host.inbox);
        for port in &host.ports {
            self.ports[*port].host_open = false;
        }
        self.forget_agent(host.agent, locks_after);
        for connection in host.transport.connections() {
            self.client_closes(connection, told);
        }
        self.checks.node_ended(host.id);
        self.note(|| format!("node {} of context {id} is gone", host.id));
    }
}
