//! The inboxes of other nodes, for posting.
//!
//! Opening a channel takes the browser longer than all else that a node does for a message, so
//! those in use stay open.

use core::cell::RefCell;
use std::rc::Rc;

use motet_cluster::ClusterName;
use motet_protocol::NodeId;
use wasm_bindgen::prelude::*;

use crate::channel::Channel;

/// So many are remembered: the topics' owners, and those whose publications this node sends.
const KNOWN_MAX: usize = 8;
/// An open channel hears what others post on it, payloads with it. One that has heard more than this
/// since it was posted on last costs more than it saves, and is shut.
const OVERHEARD_MAX: u32 = 4;
/// For so many posts an inbox that was shut is opened for each alone. Then it is tried again, so that
/// where many post in turn, what is overheard is no more than a third of what is said.
const SHUT_POSTS: u32 = 16;

pub(super) struct Inboxes {
    cluster: ClusterName,
    /// The one that was posted on last comes last.
    known: Rc<RefCell<Vec<Inbox>>>,
}

struct Inbox {
    of: NodeId,
    channel: Option<Channel>,
    overheard: u32,
    /// Posts before it is kept open again.
    shut_for: u32,
}

impl Inboxes {
    pub(super) fn new(cluster: ClusterName) -> Self {
        Self { cluster, known: Rc::default() }
    }

    /// Posts to a node; one that has gone meanwhile hears nothing.
    pub(super) fn post(&self, to: NodeId, message: &JsValue) {
        let mut inbox = self.take(to);
        inbox.overheard = 0;
        let Ok(channel) = inbox.channel.take().map_or_else(|| self.open(to), Ok) else { return };
        // What is posted can be copied: it came from other contexts, or from the codec.
        drop(channel.post(message));
        if inbox.shut_for == 0 {
            inbox.channel = Some(channel);
        } else {
            inbox.shut_for -= 1;
        }
        self.known.borrow_mut().push(inbox);
    }

    pub(super) fn close_all(&self) {
        self.known.take();
    }

    /// Takes an inbox out, or makes room for a new one.
    fn take(&self, of: NodeId) -> Inbox {
        let mut known = self.known.borrow_mut();
        match known.iter().position(|inbox| inbox.of == of) {
            Some(index) => known.remove(index),
            None => {
                if known.len() >= KNOWN_MAX {
                    known.remove(0);
                }
                Inbox { of, channel: None, overheard: 0, shut_for: 0 }
            }
        }
    }

    fn open(&self, of: NodeId) -> Result<Channel, JsValue> {
        let known = Rc::downgrade(&self.known);
        Channel::overhear(&self.cluster.inbox_channel(of), move || {
            let Some(known) = known.upgrade() else { return };
            let mut known = known.borrow_mut();
            let Some(inbox) = known.iter_mut().find(|inbox| inbox.of == of) else { return };
            inbox.overheard += 1;
            if inbox.overheard > OVERHEARD_MAX {
                inbox.channel = None;
                inbox.shut_for = SHUT_POSTS;
            }
        })
    }
}
