//! A page: its client, the port to its node, its locks.

use motet_cluster::Packet;
use motet_cluster::client::{Client, ClientConfig, ClientInput, ClientOutput};
use motet_cluster::frame::{Frame, ToNode};
use motet_cluster::lock::{LockEvent, LockMode, LockOp, LockRequest};
use motet_cluster::name::{LockName, SHARDS};
use motet_cluster::node::ToNodePacket;
use motet_protocol::{Error, ErrorCode, NodeId, TabId};

use super::app::App;
use crate::media::channel::{Channel, ListenerId};
use crate::media::lock::Agent;
use crate::media::port::PortId;
use crate::media::wire::Post;
use crate::setup::HostMode;
use crate::world::World;
use crate::world::context::{Context, ContextId, Kind, Slot, Task};

/// How long a node may take to start: a shared worker that dies meanwhile says nothing.
const START_TIMEOUT: u64 = 3_000_000;

/// A lock of the page's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageLock {
    /// Proof of the tab's identity.
    Tab(TabId),
    /// Others learn by it that the page is gone.
    Own(motet_protocol::ClientId),
    /// The page learns by it that its node is gone.
    Node(u32, NodeId),
}

/// A page's driver.
#[derive(Debug)]
pub(crate) struct Page {
    /// `None` until the tab's identity is settled.
    pub(crate) client: Option<Client<u64>>,
    pub(crate) agent: Agent,
    pub(crate) mode: HostMode,
    pub(crate) app: App,
    home: ContextId,
    /// The last start that the client asked for, while it is wanted.
    start: Option<u32>,
    pub(crate) port: Option<PortId>,
    worker: Option<ContextId>,
    locks: Vec<(LockRequest, PageLock)>,
    last_request: LockRequest,
    /// Posts that wait until the page's own lock is held.
    held_back: Vec<Post>,
    shards: [Option<ListenerId>; SHARDS as usize],
    /// Names the page's passing BroadcastChannel object.
    announcer: ListenerId,
}

impl Page {
    /// The dedicated worker of the page.
    pub(crate) fn worker(&self) -> Option<ContextId> {
        self.worker
    }

    /// The start whose node the page uses or awaits.
    pub(crate) fn start(&self) -> Option<u32> {
        self.start
    }

    fn lock_of(&self, wanted: impl Fn(PageLock) -> bool) -> Option<LockRequest> {
        self.locks.iter().find(|(_, lock)| wanted(*lock)).map(|(request, _)| *request)
    }
}

impl World {
    /// A new document of a tab: its driver first settles the tab's identity.
    pub(crate) fn create_page(&mut self, tab: usize) -> ContextId {
        let id = self.contexts.len();
        let context = Context::new(Kind::Page, tab, self.now, &mut self.rng);
        self.contexts.push(context);
        let agent = self.new_agent(id);
        let announcer = self.channels.sender();
        let mut page = Box::new(Page {
            client: None,
            agent,
            mode: self.tabs[tab].mode,
            app: App::default(),
            home: id,
            start: None,
            port: None,
            worker: None,
            locks: Vec::new(),
            last_request: 0,
            held_back: Vec::new(),
            shards: [None; SHARDS as usize],
            announcer,
        });
        let identity = self.tabs[tab].identity;
        self.page_ask(&mut page, PageLock::Tab(identity), LockMode::ExclusiveIfAvailable);
        self.contexts[id].page = Some(page);
        id
    }

    fn page_ask(&mut self, page: &mut Page, lock: PageLock, mode: LockMode) {
        page.last_request += 1;
        page.locks.push((page.last_request, lock));
        let name = match lock {
            PageLock::Tab(tab) => LockName::Tab(tab),
            PageLock::Own(client) => LockName::Page(client),
            PageLock::Node(_, node) => LockName::Node(node),
        };
        self.ask_lock(page.agent, LockOp::Request { request: page.last_request, name, mode });
    }

    fn page_release(&mut self, page: &mut Page, request: LockRequest) {
        page.locks.retain(|(held, _)| *held != request);
        self.ask_lock(page.agent, LockOp::Release { request });
    }

    pub(crate) fn page_task(&mut self, id: ContextId, task: Task) {
        match task {
            Task::Timer(..) => self.page_input(id, ClientInput::Tick),
            Task::Browser(event) => self.page_input(id, ClientInput::Page(event)),
            Task::App(call) => self.app_call(id, call),
            Task::ToPage(port, post) => {
                let page = self.contexts[id].page.as_ref();
                if page.is_some_and(|page| page.port == Some(port))
                    && let Some(packet) = post.packet()
                {
                    self.page_input(id, ClientInput::Port(packet));
                }
            }
            Task::NodeUp { start, port, node } => self.node_up(id, start, port, node),
            Task::NodeDown(start) => self.node_down(id, start),
            Task::NodeLate(start) => {
                let page = self.contexts[id].page.as_ref();
                if page.is_some_and(|page| page.port.is_none()) {
                    self.node_down(id, start);
                }
            }
            _ => {}
        }
    }

    fn node_up(&mut self, id: ContextId, start: u32, port: PortId, node: NodeId) {
        let Some(mut page) = self.contexts[id].page.take() else { return };
        let wanted = page.start == Some(start) && page.port.is_none();
        let shared = page.mode == HostMode::Shared;
        if wanted {
            page.port = Some(port);
            if page.mode != HostMode::Page {
                self.page_ask(&mut page, PageLock::Node(start, node), LockMode::Shared);
            }
        } else {
            self.ports[port].page_open = false;
        }
        self.contexts[id].page = Some(page);
        if wanted {
            self.page_input(id, ClientInput::NodeStarted { start, shared });
        }
    }

    /// The node of a start is gone, by its lock or by its host's error.
    fn node_down(&mut self, id: ContextId, start: u32) {
        let Some(mut page) = self.contexts[id].page.take() else { return };
        let wanted = page.start == Some(start);
        if wanted {
            self.stop_node(&mut page);
        }
        self.contexts[id].page = Some(page);
        if wanted {
            let error = Error::new(ErrorCode::NodeUnavailable);
            self.page_input(id, ClientInput::NodeGone { start, error });
        }
    }

    pub(crate) fn page_lock(&mut self, id: ContextId, event: &LockEvent) {
        let (LockEvent::Granted { request }
        | LockEvent::Refused { request }
        | LockEvent::Lost { request }) = event
        else {
            return;
        };
        let request = *request;
        let Some(mut page) = self.contexts[id].page.take() else { return };
        let lock = page.locks.iter().find(|(held, _)| *held == request).map(|(_, lock)| *lock);
        let mut gone = None;
        let mut ready = false;
        match (lock, event) {
            (Some(PageLock::Tab(tab)), LockEvent::Granted { .. }) if page.client.is_none() => {
                let config = self.client_config(id, tab);
                let rng = self.rng.fork();
                page.client = Some(Client::new(self.local_now(id), config, rng));
                ready = true;
            }
            (Some(PageLock::Tab(_)), LockEvent::Refused { .. }) => {
                page.locks.retain(|(held, _)| *held != request);
                let identity = TabId::random(&mut self.rng);
                let tab = self.contexts[id].tab;
                self.tabs[tab].identity = identity;
                self.page_ask(&mut page, PageLock::Tab(identity), LockMode::ExclusiveIfAvailable);
            }
            (Some(PageLock::Own(_)), LockEvent::Granted { .. }) => {
                self.release_posts(&mut page);
            }
            (Some(PageLock::Node(start, _)), LockEvent::Granted { .. }) => {
                self.page_release(&mut page, request);
                gone = Some(start);
            }
            (Some(lock), LockEvent::Lost { .. }) => {
                page.locks.retain(|(held, _)| *held != request);
                let mode = match lock {
                    PageLock::Node(..) => LockMode::Shared,
                    PageLock::Tab(_) | PageLock::Own(_) => LockMode::Exclusive,
                };
                self.page_ask(&mut page, lock, mode);
            }
            _ => {}
        }
        self.contexts[id].page = Some(page);
        if ready {
            self.page_input(id, ClientInput::Start);
            self.app_load(id);
        }
        if let Some(start) = gone {
            self.node_down(id, start);
        }
    }

    /// The page is cached or frozen: its driver lets go of the tab's lock.
    pub(crate) fn page_rests(&mut self, id: ContextId) {
        let Some(mut page) = self.contexts[id].page.take() else { return };
        while let Some(request) = page.lock_of(|lock| matches!(lock, PageLock::Tab(_))) {
            self.page_release(&mut page, request);
        }
        self.contexts[id].page = Some(page);
    }

    /// The page is back: the tab's lock is asked for again.
    pub(crate) fn page_wakes(&mut self, id: ContextId) {
        let Some(mut page) = self.contexts[id].page.take() else { return };
        let identity = self.tabs[self.contexts[id].tab].identity;
        self.page_ask(&mut page, PageLock::Tab(identity), LockMode::ExclusiveIfAvailable);
        self.contexts[id].page = Some(page);
    }

    fn client_config(&self, id: ContextId, tab: TabId) -> ClientConfig {
        let mut config = ClientConfig::new(tab);
        config.visible = self.tabs[self.contexts[id].tab].visible;
        config
    }

    fn release_posts(&mut self, page: &mut Page) {
        let Some(port) = page.port else { return };
        for post in core::mem::take(&mut page.held_back) {
            self.post_port(port, true, post);
        }
    }

    /// Hands the page's client an input and does what it asks for.
    pub(crate) fn page_input(&mut self, id: ContextId, input: ClientInput<u64>) {
        let now = self.local_now(id);
        let Some(mut page) = self.contexts[id].page.take() else { return };
        let mut due = None;
        if let Some(client) = &mut page.client {
            client.handle(now, input);
            let mut outputs = 0;
            while let Some(output) = page.client.as_mut().and_then(Client::poll_output) {
                outputs += 1;
                self.page_output(id, &mut page, output);
            }
            self.checks.outputs(self.now, outputs);
            due = page.client.as_ref().and_then(Client::next_timeout);
        }
        self.contexts[id].page = Some(page);
        self.arm(id, Slot::Client, due);
    }

    fn page_output(&mut self, id: ContextId, page: &mut Page, output: ClientOutput<u64>) {
        match output {
            ClientOutput::StartNode { start } => self.start_node(id, page, start),
            ClientOutput::StopNode => self.stop_node(page),
            ClientOutput::Port(packet) => self.page_posts(page, &packet),
            ClientOutput::Announce(packet) => {
                let frames = packet.frames.into_iter().map(Frame::from).collect();
                let packet = Packet { from: packet.from, frames, payloads: packet.payloads };
                let post = Post::of(&packet, self.newer());
                self.checks.page_posts(&packet);
                self.post_channel(id, None, page.announcer, Channel::Announce, &post);
            }
            ClientOutput::OpenShard(shard) => {
                let slot = &mut page.shards[usize::from(shard % SHARDS)];
                if slot.is_none() {
                    *slot = Some(self.channels.open(Channel::Data(shard), id));
                }
            }
            ClientOutput::CloseShard(shard) => {
                if let Some(listener) = page.shards[usize::from(shard % SHARDS)].take() {
                    self.channels.close(listener);
                }
            }
            output => self.app_output(id, page, output),
        }
    }

    fn page_posts(&mut self, page: &mut Page, packet: &ToNodePacket<u64>) {
        let Some(port) = page.port else { return };
        self.checks.port_posts(1);
        let post = Post::of(packet, self.newer());
        if page.mode != HostMode::Shared {
            self.post_port(port, true, post);
            return;
        }
        // The page's lock must be held before the node begins to wait for it.
        for frame in &packet.frames {
            if let ToNode::Attach { client, .. } = frame
                && page.lock_of(|lock| matches!(lock, PageLock::Own(_))).is_none()
            {
                self.page_ask(page, PageLock::Own(*client), LockMode::Exclusive);
                page.held_back.push(post);
                return;
            }
        }
        if page.held_back.is_empty() {
            self.post_port(port, true, post);
        } else {
            page.held_back.push(post);
        }
    }

    fn start_node(&mut self, id: ContextId, page: &mut Page, start: u32) {
        self.let_node_go(page);
        page.start = Some(start);
        self.send(id, START_TIMEOUT, Task::NodeLate(start));
        let spawn = 8_000 + self.rng.below(30_000);
        match page.mode {
            HostMode::Page => self.send(id, 1_000, Task::Boot(start)),
            HostMode::Dedicated => {
                let worker = self.create_worker(Kind::Worker, self.contexts[id].tab);
                page.worker = Some(worker);
                self.send(worker, spawn, Task::Boot(start));
                self.connect_port(id, worker, start, spawn + 1);
            }
            HostMode::Shared => {
                let shared = match self.shared {
                    Some(shared) if self.contexts[shared].alive() => shared,
                    _ => {
                        let shared = self.create_worker(Kind::Shared, self.contexts[id].tab);
                        self.shared = Some(shared);
                        self.send(shared, spawn, Task::Boot(start));
                        shared
                    }
                };
                self.connect_port(id, shared, start, spawn + 1);
            }
        }
    }

    fn create_worker(&mut self, kind: Kind, tab: usize) -> ContextId {
        let id = self.contexts.len();
        let context = Context::new(kind, tab, self.now, &mut self.rng);
        self.contexts.push(context);
        id
    }

    fn connect_port(&mut self, page: ContextId, host: ContextId, start: u32, after: u64) {
        self.ports.push(crate::media::port::Port::new(page, host));
        let port = self.ports.len() - 1;
        self.send_behind(port, true, after, Task::Connect(port, start));
    }

    fn stop_node(&mut self, page: &mut Page) {
        page.start = None;
        self.let_node_go(page);
    }

    /// Closes the port, gives up the locks that go with it, and ends the page's own node.
    fn let_node_go(&mut self, page: &mut Page) {
        if let Some(port) = page.port.take() {
            self.ports[port].page_open = false;
        }
        if page.mode == HostMode::Page {
            self.drop_page_host(page.home);
        }
        page.held_back.clear();
        let goes = |lock| matches!(lock, PageLock::Node(..) | PageLock::Own(_));
        while let Some(request) = page.lock_of(goes) {
            self.page_release(page, request);
        }
        if let Some(worker) = page.worker.take() {
            self.terminate(worker);
        }
    }
}
