//! The pages of a node, each behind its port.

use core::cell::RefCell;

use litemap::LiteMap;
use motet_cluster::frame::ToNode;
use motet_cluster::node::{ToNodePacket, ToPagePacket};
use motet_protocol::ClientId;
use wasm_bindgen::prelude::*;
use web_sys::MessagePort;

use crate::platform::Callback;
use crate::post;

/// Ports that have not said who they are; more are refused (a page says so at once).
const NAMELESS_MAX: usize = 64;

/// An open port; closed when dropped.
pub(super) struct Port {
    port: MessagePort,
    _listener: Callback,
}

impl Port {
    pub(super) fn listen(port: MessagePort, listener: Callback) -> Self {
        port.set_onmessage(Some(listener.as_ref().unchecked_ref()));
        port.set_onmessageerror(Some(listener.as_ref().unchecked_ref()));
        Self { port, _listener: listener }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.port.set_onmessage(None);
        self.port.set_onmessageerror(None);
        self.port.close();
    }
}

/// Ports by page, and those of pages that have not said Attach yet.
#[derive(Default)]
pub(super) struct Ports {
    named: RefCell<LiteMap<ClientId, Port>>,
    nameless: RefCell<LiteMap<u32, Port>>,
    /// Which page speaks through which port.
    names: RefCell<LiteMap<u32, ClientId>>,
}

impl Ports {
    /// Takes a new port under a number of its own.
    pub(super) fn add(&self, number: u32, port: Port) {
        let mut nameless = self.nameless.borrow_mut();
        if nameless.len() >= NAMELESS_MAX {
            let oldest = nameless.keys().next().copied();
            oldest.and_then(|number| nameless.remove(&number));
        }
        nameless.insert(number, port);
    }

    /// The page that speaks through this port: known from its first packet, which attaches it.
    pub(super) fn client(&self, number: u32, packet: &ToNodePacket<JsValue>) -> Option<ClientId> {
        if let Some(client) = self.names.borrow().get(&number) {
            return Some(*client);
        }
        let Some(ToNode::Attach { client, .. }) = packet.frames.first() else { return None };
        let port = self.nameless.borrow_mut().remove(&number)?;
        self.names.borrow_mut().retain(|_, other| other != client);
        self.names.borrow_mut().insert(number, *client);
        // A page that comes back under its id has left its former port.
        self.named.borrow_mut().insert(*client, port);
        Some(*client)
    }

    /// Posts to a page; one that has gone meanwhile hears nothing.
    pub(super) fn post(&self, client: ClientId, packet: &ToPagePacket<JsValue>) {
        if let Some(port) = self.named.borrow().get(&client) {
            drop(port.port.post_message(&post::to_message(packet)));
        }
    }

    /// The pages that have said who they are.
    pub(super) fn clients(&self) -> Vec<ClientId> {
        self.named.borrow().keys().copied().collect()
    }

    pub(super) fn close_all(&self) {
        self.named.take();
        self.nameless.take();
        self.names.take();
    }
}
