//! Who is in which channel, exactly.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::message::ClientInfo;

pub(super) struct Presence<P> {
    channels: HashMap<Arc<str>, Members<P>>,
}

struct Members<P> {
    clients: BTreeMap<String, ClientInfo<P>>,
    /// Connections per user, so that counting users needs no scan.
    users: HashMap<String, u32>,
}

impl<P: Clone> Presence<P> {
    pub(super) fn new() -> Self {
        Self { channels: HashMap::new() }
    }

    pub(super) fn add(&mut self, channel: &Arc<str>, info: ClientInfo<P>) {
        let members = self
            .channels
            .entry(channel.clone())
            .or_insert_with(|| Members { clients: BTreeMap::new(), users: HashMap::new() });
        let user = info.user.clone();
        if let Some(previous) = members.clients.insert(info.client.clone(), info) {
            members.forget_user(&previous.user);
        }
        *members.users.entry(user).or_default() += 1;
    }

    pub(super) fn remove(&mut self, channel: &Arc<str>, client: &str) {
        let Some(members) = self.channels.get_mut(channel) else { return };
        if let Some(info) = members.clients.remove(client) {
            members.forget_user(&info.user);
        }
        if members.clients.is_empty() {
            self.channels.remove(channel);
        }
    }

    pub(super) fn list(&self, channel: &Arc<str>) -> BTreeMap<String, ClientInfo<P>> {
        self.channels.get(channel).map_or_else(BTreeMap::new, |members| members.clients.clone())
    }

    /// Connections and different users.
    pub(super) fn count(&self, channel: &Arc<str>) -> (u32, u32) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.channels
            .get(channel)
            .map_or((0, 0), |members| (count(members.clients.len()), count(members.users.len())))
    }
}

impl<P> Members<P> {
    fn forget_user(&mut self, user: &str) {
        if let Some(connections) = self.users.get_mut(user) {
            *connections -= 1;
            if *connections == 0 {
                self.users.remove(user);
            }
        }
    }
}
