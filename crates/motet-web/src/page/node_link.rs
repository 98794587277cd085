//! The page's end of its node: the port, and the locks that tell one of the other's death.

use core::cell::RefCell;

use js_sys::Function;
use motet_cluster::ClusterName;
use motet_cluster::frame::ToPage;
use motet_cluster::lock::LockMode;
use motet_cluster::name::LockName;
use motet_cluster::node::ToPagePacket;
use wasm_bindgen::prelude::*;
use web_sys::MessagePort;

use crate::channel::on_message;
use crate::lock::{LockNews, LockRequest};
use crate::platform::Callback;

/// A node that runs, seen from its page; ended (or, when it is shared, left) when dropped.
pub(super) struct NodeLink {
    pub(super) start: u32,
    pub(super) port: MessagePort,
    stop: Function,
    _listener: Callback,
    death: RefCell<Option<LockRequest>>,
}

impl NodeLink {
    /// `stop` ends a node of the page's own; for a shared one it does nothing but forget it.
    pub(super) fn new(
        start: u32,
        port: MessagePort,
        stop: Function,
        listener: impl Fn(JsValue) + 'static,
    ) -> Self {
        let listener = on_message(listener);
        port.set_onmessage(Some(listener.as_ref().unchecked_ref()));
        port.set_onmessageerror(Some(listener.as_ref().unchecked_ref()));
        Self { start, port, stop, _listener: listener, death: RefCell::new(None) }
    }

    /// Begins to wait for the node's lock, once the node is known to hold it.
    ///
    /// It is known when the node has a coordinator: the node asked for its own lock before it asked
    /// for anything else. Asking earlier could win the lock before the node.
    pub(super) fn watch(
        &self,
        cluster: &ClusterName,
        packet: &ToPagePacket<JsValue>,
        dead: impl Fn() + 'static,
    ) {
        let member = |frame: &ToPage| matches!(frame, ToPage::Coordinator { node: Some(_), .. });
        if self.death.borrow().is_some() || !packet.frames.iter().any(member) {
            return;
        }
        let name = cluster.lock(LockName::Node(packet.from));
        // Shared, so that it stands in nobody's way.
        let wait = LockRequest::new(&name, LockMode::Shared, move |news| {
            if news == LockNews::Granted {
                dead();
            }
        });
        *self.death.borrow_mut() = Some(wait);
    }
}

impl Drop for NodeLink {
    fn drop(&mut self) {
        self.port.set_onmessage(None);
        self.port.set_onmessageerror(None);
        self.port.close();
        drop(self.stop.call0(&JsValue::UNDEFINED));
    }
}
