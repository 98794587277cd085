//! The inboxes of other nodes, for posting.
//!
//! Opening a channel takes the browser longer than all else that a node does for a message, so
//! those in use stay open.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use motet_cluster::ClusterName;
use motet_protocol::NodeId;
use wasm_bindgen::prelude::*;

use crate::channel::Channel;

/// So many stay open: the topics' owners, and those whose publications this node sends.
const OPEN_MAX: usize = 8;
/// An open channel hears what others post on it. One that has heard more than this since it was
/// posted on last costs more than it saves.
const OVERHEARD_MAX: u32 = 4;

pub(super) struct Inboxes {
    cluster: ClusterName,
    /// The one that was posted on last comes last.
    open: Rc<RefCell<Vec<Inbox>>>,
}

struct Inbox {
    of: NodeId,
    channel: Channel,
    overheard: Rc<Cell<u32>>,
}

impl Inboxes {
    pub(super) fn new(cluster: ClusterName) -> Self {
        Self { cluster, open: Rc::default() }
    }

    /// Posts to a node; one that has gone meanwhile hears nothing.
    pub(super) fn post(&self, to: NodeId, message: &JsValue) {
        let Ok(inbox) = self.take(to).map_or_else(|| self.open(to), Ok) else { return };
        inbox.overheard.set(0);
        // What is posted can be copied: it came from other contexts, or from the codec.
        drop(inbox.channel.post(message));
        let mut open = self.open.borrow_mut();
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push(inbox);
    }

    pub(super) fn close_all(&self) {
        self.open.take();
    }

    fn take(&self, of: NodeId) -> Option<Inbox> {
        let mut open = self.open.borrow_mut();
        let index = open.iter().position(|inbox| inbox.of == of)?;
        Some(open.remove(index))
    }

    fn open(&self, of: NodeId) -> Result<Inbox, JsValue> {
        let overheard = Rc::new(Cell::new(0));
        let (open, heard) = (Rc::downgrade(&self.open), overheard.clone());
        let channel = Channel::overhear(&self.cluster.inbox_channel(of), move || {
            heard.set(heard.get() + 1);
            if heard.get() > OVERHEARD_MAX
                && let Some(open) = open.upgrade()
            {
                open.borrow_mut().retain(|inbox| inbox.of != of);
            }
        })?;
        Ok(Inbox { of, channel, overheard })
    }
}
