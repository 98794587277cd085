//! BroadcastChannel: every object of a name hears every other object's posts.

use std::collections::BTreeMap;

use motet_protocol::NodeId;

use crate::world::context::ContextId;

/// A channel of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Channel {
    /// All nodes.
    Announce,
    /// One node.
    Inbox(NodeId),
    /// Pages with a topic of that shard.
    Data(u8),
}

/// One BroadcastChannel object; never used again.
pub(crate) type ListenerId = u32;

/// An open object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    pub(crate) id: ListenerId,
    pub(crate) context: ContextId,
}

/// All open objects.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    next: ListenerId,
    open: BTreeMap<Channel, Vec<Listener>>,
    channel_of: BTreeMap<ListenerId, Channel>,
    /// When the last message of one object to another arrives: none overtakes it.
    last_arrival: BTreeMap<(ListenerId, ListenerId), u64>,
}

impl Channels {
    pub(crate) fn open(&mut self, channel: Channel, context: ContextId) -> ListenerId {
        self.next += 1;
        self.open.entry(channel).or_default().push(Listener { id: self.next, context });
        self.channel_of.insert(self.next, channel);
        self.next
    }

    /// An object that only posts; its posts keep their order.
    pub(crate) fn sender(&mut self) -> ListenerId {
        self.next += 1;
        self.next
    }

    pub(crate) fn close(&mut self, id: ListenerId) {
        let Some(channel) = self.channel_of.remove(&id) else { return };
        if let Some(listeners) = self.open.get_mut(&channel) {
            listeners.retain(|listener| listener.id != id);
        }
    }

    /// The channel of an object that is still open.
    pub(crate) fn channel_of(&self, id: ListenerId) -> Option<Channel> {
        self.channel_of.get(&id).copied()
    }

    /// Closes everything of a context that is gone.
    pub(crate) fn context_gone(&mut self, context: ContextId) {
        for listeners in self.open.values_mut() {
            for listener in listeners.iter().filter(|listener| listener.context == context) {
                self.channel_of.remove(&listener.id);
            }
            listeners.retain(|listener| listener.context != context);
        }
    }

    /// Who hears a post of this object (or of a passing one: `None`).
    pub(crate) fn hearers(&self, channel: Channel, from: Option<ListenerId>) -> Vec<Listener> {
        let listeners = self.open.get(&channel).map_or(&[][..], Vec::as_slice);
        listeners.iter().filter(|listener| Some(listener.id) != from).copied().collect()
    }

    /// A time of arrival that keeps the order of one sender's messages to one hearer.
    pub(crate) fn in_order(&mut self, from: ListenerId, to: ListenerId, arrival: u64) -> u64 {
        let last = self.last_arrival.entry((from, to)).or_insert(0);
        *last = arrival.max(*last);
        *last
    }

    /// Open objects of a context.
    pub(crate) fn of_context(&self, context: ContextId) -> Vec<Channel> {
        let open = self.open.iter();
        open.filter(|(_, listeners)| listeners.iter().any(|l| l.context == context))
            .map(|(channel, _)| *channel)
            .collect()
    }
}
