//! The node's driver: joins the cluster core to its transport, and both to the browser.

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use motet_cluster::frame::ToPage;
use motet_cluster::node::{Node, NodeEvent, NodeInput, NodeOutput, NodePacket};
use motet_cluster::{ClusterName, Packet, name::SHARDS};
use motet_protocol::transport::TransportOp;
use motet_protocol::{Error, ErrorCode, Instant, NodeId};
use motet_realtime::client::{Client, Input, Output};
use wasm_bindgen::prelude::*;
use web_sys::MessagePort;

use super::inboxes::Inboxes;
use super::locks::Locks;
use super::options::{NodeOptions, identity, message_size_limit, node_config, transport_config};
use super::ports::{Port, Ports};
use super::socket::{SocketNews, Sockets};
use crate::channel::{Channel, on_message};
use crate::clock::now;
use crate::post;
use crate::seed::random_generator;
use crate::timer::Timer;

/// Pages hear of bad frames at most so often: a flood of them must not become a flood of reports.
const BAD_FRAMES_TOLD_EVERY: Duration = Duration::from_millis(500);

/// What one of the two cores is to hear.
enum Heard {
    Node(NodeInput<JsValue>),
    Transport(Input<JsValue>),
}

pub(super) struct Driver {
    me: Weak<Self>,
    cluster: ClusterName,
    node: RefCell<Node<JsValue>>,
    transport: RefCell<Client<JsValue>>,
    inputs: RefCell<VecDeque<Heard>>,
    running: Cell<bool>,
    ended: Cell<bool>,
    timer: Timer,
    locks: Locks,
    ports: Ports,
    last_port: Cell<u32>,
    sockets: Sockets,
    channels: RefCell<Option<Channels>>,
    inboxes: Inboxes,
    /// Messages that were no packet, and frames that were malformed or not allowed.
    bad_frames: Cell<u32>,
    /// When the pages are told of them.
    bad_frames_told_at: Cell<Option<Instant>>,
    /// The pages were told that a member runs another build.
    skew_told: Cell<bool>,
}

/// The channels of a node. Data channels open when something is posted on them first: a node
/// listens on none.
struct Channels {
    announce: Channel,
    _inbox: Channel,
    data: [Option<Channel>; SHARDS as usize],
}

impl Driver {
    pub(super) fn start(options: &NodeOptions) -> Result<Rc<Self>, JsValue> {
        let mut rng = random_generator();
        let cluster = ClusterName::new(&options.fingerprint());
        let identity = identity(options, &mut rng);
        let transport = Client::new(transport_config(options), rng.fork());
        let driver = Rc::new_cyclic(|me: &Weak<Self>| Self {
            me: me.clone(),
            node: RefCell::new(Node::new(now(), node_config(options), identity, rng)),
            transport: RefCell::new(transport),
            inputs: RefCell::default(),
            running: Cell::new(false),
            ended: Cell::new(false),
            timer: Timer::new({
                let me = me.clone();
                move || upgrade(&me, Self::timer_fired)
            }),
            locks: Locks::new(
                cluster.clone(),
                listener(me, |driver, event| {
                    driver.hear(Heard::Node(NodeInput::Lock(event)));
                }),
            ),
            ports: Ports::default(),
            last_port: Cell::new(0),
            sockets: Sockets::new(
                options.url(),
                options.protobuf(),
                message_size_limit(options),
                listener(me, Self::socket_news),
            ),
            channels: RefCell::new(None),
            inboxes: Inboxes::new(cluster.clone()),
            bad_frames: Cell::new(0),
            bad_frames_told_at: Cell::new(None),
            skew_told: Cell::new(false),
            cluster,
        });
        driver.open_channels()?;
        driver.hear(Heard::Node(NodeInput::Start));
        Ok(driver)
    }

    fn open_channels(&self) -> Result<(), JsValue> {
        let inbox = self.cluster.inbox_channel(self.node.borrow().id());
        let channels = Channels {
            announce: Channel::listen(
                &self.cluster.announce_channel(),
                listener(&self.me, |driver, message| {
                    driver.packet(&message, NodeInput::Announce);
                }),
            )?,
            _inbox: Channel::listen(
                &inbox,
                listener(&self.me, |driver, message| {
                    driver.packet(&message, NodeInput::Inbox);
                }),
            )?,
            data: Default::default(),
        };
        *self.channels.borrow_mut() = Some(channels);
        Ok(())
    }

    pub(super) fn attach(&self, port: MessagePort) {
        let number = self.last_port.get().wrapping_add(1);
        self.last_port.set(number);
        let hear = listener(&self.me, move |driver, message| driver.page_message(number, &message));
        self.ports.add(number, Port::listen(port, on_message(hear)));
        // The new page knows nothing of those that came before it.
        if self.bad_frames.get() > 0 {
            self.tell_bad_frames_later();
        }
    }

    fn page_message(&self, number: u32, message: &JsValue) {
        let Ok((packet, skipped)) = post::from_message(message) else {
            return self.count_bad_frames(1);
        };
        self.count_bad_frames(skipped);
        match self.ports.client(number, &packet) {
            Some(client) => self.hear(Heard::Node(NodeInput::Port { client, packet })),
            None => self.count_bad_frames(1),
        }
    }

    fn packet(
        &self,
        message: &JsValue,
        input: impl FnOnce(NodePacket<JsValue>) -> NodeInput<JsValue>,
    ) {
        match post::from_message(message) {
            Ok((packet, skipped)) => {
                self.count_bad_frames(skipped);
                self.hear(Heard::Node(input(packet)));
            }
            Err(_) => self.count_bad_frames(1),
        }
    }

    fn count_bad_frames(&self, count: u32) {
        if count > 0 {
            self.bad_frames.set(self.bad_frames.get().saturating_add(count));
            self.tell_bad_frames_later();
        }
    }

    fn tell_bad_frames_later(&self) {
        if self.bad_frames_told_at.get().is_none() {
            self.bad_frames_told_at.set(Some(now() + BAD_FRAMES_TOLD_EVERY));
            self.timer.arm(now(), self.due());
        }
    }

    /// Says something to all pages; false when there is none.
    fn tell_pages(&self, frame: ToPage) -> bool {
        let packet = Packet::single(self.node.borrow().id(), frame);
        let clients = self.ports.clients();
        clients.iter().for_each(|client| self.ports.post(*client, &packet));
        !clients.is_empty()
    }

    /// Once is enough: that tabs run different builds is for a reload to change.
    fn tell_skew(&self, node: NodeId) {
        if !self.skew_told.get() {
            let error = Error::new(ErrorCode::BuildSkew).with_detail(node.to_hex());
            self.skew_told.set(self.tell_pages(ToPage::Report { error }));
        }
    }

    fn socket_news(&self, news: SocketNews) {
        let mut inputs = self.inputs.borrow_mut();
        for (socket, id, error) in self.sockets.refused(&news) {
            inputs.push_back(Heard::Transport(Input::NotSent { socket, id, error }));
        }
        news.inputs(|input| inputs.push_back(Heard::Transport(input)));
        drop(inputs);
        self.run();
    }

    fn hear(&self, heard: Heard) {
        self.inputs.borrow_mut().push_back(heard);
        self.run();
    }

    fn due(&self) -> Option<Instant> {
        let node = self.node.borrow().next_timeout();
        let transport = self.transport.borrow().next_timeout();
        [node, transport, self.bad_frames_told_at.get()].into_iter().flatten().min()
    }

    fn timer_fired(&self) {
        self.timer.fired();
        let at = now();
        let due = |timeout: Option<Instant>| timeout.is_some_and(|due| due <= at);
        if due(self.bad_frames_told_at.get()) {
            self.bad_frames_told_at.set(None);
            self.tell_pages(ToPage::BadFrames { count: self.bad_frames.get() });
        }
        if due(self.transport.borrow().next_timeout()) {
            self.inputs.borrow_mut().push_back(Heard::Transport(Input::Tick));
        }
        if due(self.node.borrow().next_timeout()) {
            self.inputs.borrow_mut().push_back(Heard::Node(NodeInput::Tick));
        }
        self.run();
    }

    fn run(&self) {
        if self.ended.get() || self.running.replace(true) {
            return;
        }
        while let Some(heard) = self.next_heard() {
            match heard {
                Heard::Node(input) => self.node.borrow_mut().handle(now(), input),
                Heard::Transport(input) => self.transport.borrow_mut().handle(now(), input),
            }
            // What waits is handled before outputs are drained: a frame of a hundred publications
            // leaves as few packets.
            if self.inputs.borrow().is_empty() {
                self.drain();
            }
        }
        self.running.set(false);
        if self.ended.get() {
            self.release();
        } else {
            self.timer.arm(now(), self.due());
        }
    }

    fn next_heard(&self) -> Option<Heard> {
        self.inputs.borrow_mut().pop_front()
    }

    fn drain(&self) {
        while let Some(output) = self.poll_transport() {
            self.carry_out_for_transport(output);
        }
        while let Some(output) = self.poll_node() {
            self.carry_out(output);
        }
    }

    fn poll_transport(&self) -> Option<Output<JsValue>> {
        self.transport.borrow_mut().poll_output()
    }

    fn poll_node(&self) -> Option<NodeOutput<JsValue>> {
        self.node.borrow_mut().poll_output()
    }

    fn carry_out_for_transport(&self, output: Output<JsValue>) {
        match output {
            Output::Event(event) => self.hear(Heard::Node(NodeInput::Transport(event))),
            Output::OpenSocket { socket } => self.sockets.open(socket),
            Output::Send { socket, commands } => {
                let unsent = self.sockets.send(socket, commands);
                for (id, error) in unsent {
                    self.hear(Heard::Transport(Input::NotSent { socket, id, error }));
                }
            }
            Output::CloseSocket { socket } => self.sockets.close(socket),
        }
    }

    // Posts cannot fail for their payloads: they came from other contexts, or from the codec, which
    // leaves out what nests too deep to be copied.
    fn carry_out(&self, output: NodeOutput<JsValue>) {
        match output {
            NodeOutput::Announce(packet) => {
                if let Some(channels) = self.channels.borrow().as_ref() {
                    drop(channels.announce.post(&post::to_message(&packet)));
                }
            }
            NodeOutput::Inbox { to, packet } => self.inboxes.post(to, &post::to_message(&packet)),
            NodeOutput::Data { shard, packet } => self.post_data(shard, &packet),
            NodeOutput::Port { client, packet } => self.ports.post(client, &packet),
            NodeOutput::Lock(op) => self.locks.operate(&op),
            NodeOutput::Transport(op) => {
                if matches!(op, TransportOp::Retry) {
                    self.sockets.forget_refusals();
                }
                self.hear(Heard::Transport(Input::Op(op)));
            }
            NodeOutput::Event(NodeEvent::BadFrames(_)) => self.count_bad_frames(1),
            NodeOutput::Event(NodeEvent::BuildSkew(node)) => self.tell_skew(node),
            // For simulators and tests; in a browser the page's snapshot shows the same.
            NodeOutput::Event(_) => {}
        }
    }

    fn post_data(&self, shard: u8, packet: &NodePacket<JsValue>) {
        let mut channels = self.channels.borrow_mut();
        let Some(channels) = channels.as_mut() else { return };
        let slot = &mut channels.data[usize::from(shard)];
        if slot.is_none() {
            *slot = Channel::open(&self.cluster.data_channel(shard)).ok();
        }
        if let Some(channel) = slot {
            drop(channel.post(&post::to_message(packet)));
        }
    }

    pub(super) fn end(&self) {
        self.ended.set(true);
        if !self.running.get() {
            self.release();
        }
    }

    fn release(&self) {
        self.timer.disarm();
        self.locks.release_all();
        self.sockets.abandon();
        self.channels.take();
        self.inboxes.close_all();
        self.ports.close_all();
        self.inputs.take();
    }
}

fn listener<T>(me: &Weak<Driver>, hear: impl Fn(&Driver, T) + 'static) -> impl Fn(T) + 'static {
    let me = me.clone();
    move |value| upgrade(&me, |driver| hear(driver, value))
}

fn upgrade(me: &Weak<Driver>, then: impl FnOnce(&Driver)) {
    if let Some(driver) = me.upgrade() {
        then(&driver);
    }
}
