//! The page's driver: feeds the client core and does what it asks for.

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use motet_cluster::ClusterName;
use motet_cluster::client::{Client, ClientInput, ClientOutput, ErrorSource, PageEvent};
use motet_cluster::name::SHARDS;
use motet_protocol::{Error, ErrorCode, Rng, TabId};
use wasm_bindgen::prelude::*;

use super::handlers::Handlers;
use super::hooks::Hooks;
use super::lifecycle::{Lifecycle, is_visible};
use super::node_link::NodeLink;
use super::options::{PageOptions, client_config};
use super::report;
use super::tab::{Claimed, TabClaim};
use crate::channel::Channel;
use crate::clock::now;
use crate::lock::LockRequest;
use crate::platform::{Callback, queue_microtask};
use crate::post;
use crate::seed::random_generator;
use crate::timer::Timer;

pub(super) struct Driver {
    me: Weak<Self>,
    pub(super) cluster: ClusterName,
    pub(super) hooks: Hooks,
    pub(super) core: RefCell<Client<JsValue>>,
    rng: RefCell<Rng>,
    /// How far the start has come that gives the tab its identity.
    pub(super) start: Cell<Start>,
    /// Inputs wait here while outputs are carried out, and until the application's task ends.
    inputs: RefCell<VecDeque<ClientInput<JsValue>>>,
    running: Cell<bool>,
    scheduled: Cell<bool>,
    microtask: Callback,
    timer: Timer,
    pub(super) handlers: RefCell<Handlers>,
    pub(super) node: RefCell<Option<NodeLink>>,
    /// The start of a node that is under way.
    pub(super) launching: Cell<Option<u32>>,
    /// Held while this page uses a shared node: the node waits for it to fall free.
    pub(super) page_lock: RefCell<Option<LockRequest>>,
    /// Payloads that are to be moved to the node instead of copied.
    pub(super) transfers: RefCell<Vec<JsValue>>,
    shards: RefCell<[Option<Channel>; SHARDS as usize]>,
    tab: RefCell<Option<TabClaim>>,
    /// It was told that the tab's id cannot be stored.
    storage_missed: Cell<bool>,
    lifecycle: RefCell<Option<Lifecycle>>,
    /// Messages that were no packet, and frames that were malformed.
    pub(super) bad_frames: Cell<u32>,
}

/// A bus starts with the claim to its tab's identity; without one no node is started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Nobody has asked for it, or the browser refuses the lock of the identity.
    Unclaimed,
    Claiming,
    Claimed,
}

impl Driver {
    pub(super) fn new(options: &PageOptions, hooks: Hooks) -> Rc<Self> {
        let mut rng = random_generator();
        let config = client_config(options, is_visible());
        let core = Client::new(now(), config, rng.fork());
        let driver = Rc::new_cyclic(|me: &Weak<Self>| {
            let (by_task, by_timer) = (me.clone(), me.clone());
            Self {
                me: me.clone(),
                cluster: ClusterName::new(&options.fingerprint()),
                hooks,
                core: RefCell::new(core),
                start: Cell::new(Start::Unclaimed),
                rng: RefCell::new(rng),
                inputs: RefCell::default(),
                running: Cell::new(false),
                scheduled: Cell::new(false),
                microtask: Callback::new(move |_| upgrade(&by_task, Self::task_ended)),
                timer: Timer::new(move || upgrade(&by_timer, Self::timer_fired)),
                handlers: RefCell::default(),
                node: RefCell::new(None),
                launching: Cell::new(None),
                page_lock: RefCell::new(None),
                transfers: RefCell::default(),
                shards: RefCell::default(),
                tab: RefCell::new(None),
                storage_missed: Cell::new(false),
                lifecycle: RefCell::new(None),
                bad_frames: Cell::new(0),
            }
        });
        let me = driver.me.clone();
        let has_worker = move || me.upgrade().is_some_and(|driver| driver.has_own_node());
        let lifecycle = Lifecycle::listen(has_worker, driver.listener(Self::page_event));
        *driver.lifecycle.borrow_mut() = Some(lifecycle);
        driver
    }

    /// A listener that does not keep the driver alive.
    pub(super) fn listener<T>(&self, hear: impl Fn(&Self, T) + 'static) -> impl Fn(T) + 'static {
        let me = self.me.clone();
        move |value| upgrade(&me, |driver| hear(driver, value))
    }

    /// Begins with claiming the tab's identity. What the application asks for meanwhile, or before
    /// it starts the bus, is the core's: it has its limits and deadlines.
    pub(super) fn start(&self) {
        match self.start.get() {
            Start::Unclaimed => {
                self.start.set(Start::Claiming);
                self.claim_tab(Self::settled);
            }
            Start::Claiming => {}
            Start::Claimed => self.tell(ClientInput::Start),
        }
    }

    /// The claim is settled, for the first time or again after the page was away. The core learns
    /// of a refused one when it asks for a node.
    fn settled(&self, tab: Option<TabId>) {
        let first = self.start.get() == Start::Claiming;
        self.start.set(if tab.is_some() { Start::Claimed } else { Start::Unclaimed });
        if let Some(tab) = tab {
            self.hear(ClientInput::Tab(tab));
        }
        if first {
            self.hear(ClientInput::Start);
        }
    }

    /// An input of the application: handled when its task ends, so that a hundred subscriptions in
    /// one task reach the node as one packet.
    pub(super) fn tell(&self, input: ClientInput<JsValue>) {
        self.inputs.borrow_mut().push_back(input);
        if !self.running.get() && !self.scheduled.replace(true) {
            queue_microtask(self.microtask.as_ref());
        }
    }

    /// An input of the browser: handled now, unless an output is being carried out.
    pub(super) fn hear(&self, input: ClientInput<JsValue>) {
        self.inputs.borrow_mut().push_back(input);
        self.run();
    }

    fn task_ended(&self) {
        self.scheduled.set(false);
        self.run();
    }

    fn timer_fired(&self) {
        self.timer.fired();
        let due = self.core.borrow().next_timeout();
        match due {
            Some(due) if due <= now() => self.hear(ClientInput::Tick),
            _ => self.timer.arm(now(), due),
        }
    }

    fn run(&self) {
        if self.running.replace(true) {
            return;
        }
        while self.handle_inputs() {
            while let Some(output) = self.poll() {
                self.carry_out(output);
            }
        }
        self.running.set(false);
        let due = self.core.borrow().next_timeout();
        self.timer.arm(now(), due);
    }

    fn handle_inputs(&self) -> bool {
        let inputs = self.inputs.take();
        let any = !inputs.is_empty();
        let mut states = Vec::new();
        let mut core = self.core.borrow_mut();
        for input in inputs {
            let subscribed = match &input {
                ClientInput::Subscribe { topic, .. } => Some(topic.clone()),
                _ => None,
            };
            core.handle(now(), input);
            // A handler that comes later does not change the topic's state, but must learn it.
            if let Some(view) = subscribed.and_then(|topic| core.subscription(&topic)) {
                states.push((view.topic.to_owned(), view.state.clone()));
            }
        }
        drop(core);
        for (topic, state) in states {
            report::tell(&self.hooks, ClientOutput::Subscription { topic, state });
        }
        any
    }

    fn poll(&self) -> Option<ClientOutput<JsValue>> {
        self.core.borrow_mut().poll_output()
    }

    fn carry_out(&self, output: ClientOutput<JsValue>) {
        match output {
            ClientOutput::StartNode { start } => self.start_node(start),
            ClientOutput::StopNode => self.stop_node(),
            ClientOutput::Port(packet) => self.to_node(packet),
            ClientOutput::Announce(packet) => self.announce(&post::to_message(&packet)),
            ClientOutput::OpenShard(shard) => self.open_shard(shard),
            ClientOutput::CloseShard(shard) => {
                self.shards.borrow_mut()[usize::from(shard)] = None;
            }
            ClientOutput::Deliver(delivery) if delivery.payload.is_undefined() => {
                // Of earlier messages a late handler gets those that there are.
                if !delivery.replayed {
                    report::too_deep(&self.hooks, &delivery.topic, &delivery.position);
                }
            }
            ClientOutput::Deliver(delivery) => {
                let begun = self.handlers.borrow_mut().begin(&delivery);
                if let Some(begun) = begun {
                    begun.deliver(&delivery, |cause| self.handler_threw(&delivery.topic, &cause));
                }
            }
            other => report::tell(&self.hooks, other),
        }
    }

    fn handler_threw(&self, topic: &str, cause: &JsValue) {
        let error = Error::new(ErrorCode::DispatchFailed).with_detail(topic);
        report::failed(&self.hooks, ErrorSource::Dispatch, &error, cause);
    }

    /// Says something to all nodes. The channel is not kept open: a cached page that has one is
    /// thrown out of the cache by the first message on it.
    fn announce(&self, message: &JsValue) {
        let channel = Channel::open(&self.cluster.announce_channel());
        if channel.and_then(|channel| channel.post(message)).is_err() {
            let error = Error::new(ErrorCode::ChannelUnavailable);
            report::failed(&self.hooks, ErrorSource::Coordination, &error, &JsValue::UNDEFINED);
        }
    }

    fn open_shard(&self, shard: u8) {
        let name = self.cluster.data_channel(shard);
        let listener =
            self.listener(|driver, message: JsValue| match post::from_message(&message) {
                Ok((packet, skipped)) => {
                    driver.count_bad_frames(skipped);
                    driver.hear(ClientInput::Data(packet));
                }
                Err(_) => driver.count_bad_frames(1),
            });
        match Channel::listen(&name, listener) {
            Ok(channel) => self.shards.borrow_mut()[usize::from(shard)] = Some(channel),
            Err(cause) => {
                let error = Error::new(ErrorCode::ChannelUnavailable).with_detail(name);
                report::failed(&self.hooks, ErrorSource::Coordination, &error, &cause);
            }
        }
    }

    pub(super) fn count_bad_frames(&self, count: u32) {
        self.bad_frames.set(self.bad_frames.get().saturating_add(count));
    }

    fn page_event(&self, event: PageEvent) {
        match event {
            PageEvent::Show | PageEvent::Resume if self.start.get() != Start::Unclaimed => {
                self.claim_tab(move |driver, tab| {
                    driver.settled(tab);
                    driver.hear(ClientInput::Page(event));
                });
            }
            PageEvent::Hide | PageEvent::Freeze => {
                self.hear(ClientInput::Page(event));
                // Whoever waits for these locks must not wait for a page that sleeps.
                self.tab.take();
                self.page_lock.take();
            }
            event => self.hear(ClientInput::Page(event)),
        }
    }

    fn claim_tab(&self, then: impl Fn(&Self, Option<TabId>) + 'static) {
        self.tab.take();
        let done = self.listener(move |driver, claimed| {
            if let Some(Claimed { stored: false, .. }) = claimed
                && !driver.storage_missed.replace(true)
            {
                let error = Error::new(ErrorCode::StorageUnavailable);
                report::failed(&driver.hooks, ErrorSource::Storage, &error, &JsValue::UNDEFINED);
            }
            then(driver, claimed.map(|Claimed { tab, .. }| tab));
        });
        let claim = TabClaim::new(&self.cluster, &mut self.rng.borrow_mut(), done);
        *self.tab.borrow_mut() = Some(claim);
    }

    /// Lets go of everything that would keep the page from being collected or cached.
    pub(super) fn end(&self) {
        self.timer.disarm();
        self.lifecycle.take();
        self.stop_node();
        self.tab.take();
        self.shards.take();
        self.handlers.borrow_mut().clear();
    }
}

fn upgrade(me: &Weak<Driver>, then: impl FnOnce(&Driver)) {
    if let Some(driver) = me.upgrade() {
        then(&driver);
    }
}
