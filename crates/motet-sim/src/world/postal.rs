//! How things get from one context to another, and how long they take.

use motet_cluster::lock::{LockEvent, LockOp};

use super::context::{ContextId, Task};
use super::event::Event;
use super::{MS, World};
use crate::media::channel::{Channel, ListenerId};
use crate::media::lock::{Agent, News};
use crate::media::port::PortId;
use crate::media::wire::Post;
use crate::setup::USUAL_SLOWEST;

impl World {
    /// Mostly short, at times long.
    fn delay(&mut self, least: u64, spread: u64) -> u64 {
        let slow = if self.setup.slowest > USUAL_SLOWEST { 6 } else { 1 };
        match self.rng.below(200) {
            draw if draw < slow => least + self.rng.below(self.setup.slowest),
            1..15 => least + self.rng.below(5 * MS),
            _ => least + self.rng.below(spread),
        }
    }

    /// Posts on a channel. `object` hears nothing of it; `order` names the sender whose posts keep
    /// their order.
    pub(crate) fn post_channel(
        &mut self,
        context: ContextId,
        object: Option<ListenerId>,
        order: ListenerId,
        channel: Channel,
        post: &Post,
    ) {
        for hearer in self.channels.hearers(channel, object) {
            let arrival = self.now + self.delay(150, 400);
            let at = self.channels.in_order(order, hearer.id, arrival);
            let task = Task::Channel(hearer.id, post.clone());
            let sender = Some((context, self.now));
            self.agenda.insert(at, Event::Arrive { context: hearer.context, sender, task });
        }
    }

    /// Posts on a port, from one end to the other.
    pub(crate) fn post_port(&mut self, id: PortId, to_host: bool, post: Post) {
        let arrival = self.now + self.delay(30, 200);
        let port = &mut self.ports[id];
        let last = &mut port.last_arrival[usize::from(to_host)];
        *last = arrival.max(*last);
        let at = *last;
        let (context, from, task) = if to_host {
            (port.host, port.page, Task::ToHost(id, post))
        } else {
            (port.page, port.host, Task::ToPage(id, post))
        };
        self.agenda.insert(at, Event::Arrive { context, sender: Some((from, self.now)), task });
    }

    /// A task for a context, after a while, behind what the same port has carried.
    pub(crate) fn send_behind(&mut self, id: PortId, to_host: bool, after: u64, task: Task) {
        let port = &mut self.ports[id];
        let last = &mut port.last_arrival[usize::from(to_host)];
        *last = (self.now + after).max(*last);
        let at = *last;
        let (context, from) = if to_host { (port.host, port.page) } else { (port.page, port.host) };
        self.agenda.insert(at, Event::Arrive { context, sender: Some((from, self.now)), task });
    }

    /// A task for a context, after a while.
    pub(crate) fn send(&mut self, context: ContextId, after: u64, task: Task) {
        self.agenda.insert(self.now + after, Event::Arrive { context, sender: None, task });
    }

    /// A new user of the lock manager.
    pub(crate) fn new_agent(&mut self, context: ContextId) -> Agent {
        self.lock_arrivals.push([0; 2]);
        self.locks.agent(context)
    }

    /// A request on its way to the lock manager.
    pub(crate) fn ask_lock(&mut self, agent: Agent, op: LockOp) {
        let arrival = self.now + self.delay(80, 200);
        let last = &mut self.lock_arrivals[agent][0];
        *last = arrival.max(*last);
        let at = *last;
        self.agenda.insert(at, Event::Lock(agent, op));
    }

    /// Everything of an agent will be free after a while.
    pub(crate) fn forget_agent(&mut self, agent: Agent, after: u64) {
        let at = (self.now + after).max(self.lock_arrivals[agent][0]);
        self.agenda.insert(at, Event::AgentGone(agent));
    }

    /// News of the lock manager on their way.
    pub(crate) fn tell(&mut self, news: Vec<News>) {
        for News { agent, event } in news {
            let Some(context) = self.locks.context_of(agent) else { continue };
            let arrival = self.now + self.delay(60, 200);
            let last = &mut self.lock_arrivals[agent][1];
            *last = arrival.max(*last);
            let at = *last;
            let task = Task::Lock(agent, event);
            self.agenda.insert(at, Event::Arrive { context, sender: None, task });
        }
    }

    pub(crate) fn lock_task(&mut self, id: ContextId, agent: Agent, event: LockEvent) {
        if self.contexts[id].page.as_ref().is_some_and(|page| page.agent == agent) {
            self.page_lock(id, &event);
        } else if self.contexts[id].host.as_ref().is_some_and(|host| host.agent == agent) {
            self.host_lock(id, event);
        }
    }

    /// Whether a post is written as a newer build would.
    pub(crate) fn newer(&mut self) -> bool {
        self.setup.newer_per_mille > 0 && self.chance(self.setup.newer_per_mille)
    }
}
