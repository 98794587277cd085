//! Starting, using and ending the page's node.

use js_sys::Function;
use motet_cluster::Packet;
use motet_cluster::client::ClientInput;
use motet_cluster::frame::{PublishFrame, ToNode, ToPage};
use motet_cluster::lock::LockMode;
use motet_cluster::name::LockName;
use motet_cluster::node::ToNodePacket;
use motet_protocol::{Error, ErrorCode};
use wasm_bindgen::prelude::*;
use web_sys::MessagePort;

use super::driver::{Driver, Start};
use super::lifecycle::is_visible;
use super::node_link::NodeLink;
use crate::lock::{LockNews, LockRequest};
use crate::platform::structured_clone;
use crate::post;

impl Driver {
    pub(super) fn start_node(&self, start: u32) {
        self.node.take();
        if self.start.get() != Start::Claimed {
            let error = Error::new(ErrorCode::LocksUnavailable);
            return self.hear(ClientInput::NodeGone { start, error });
        }
        let tab = self.core.borrow().identity().tab.to_hex();
        self.launching.set(Some(start));
        if self.hooks.start_node(start, &tab, is_visible()).is_err() {
            let error = Error::new(ErrorCode::HostUnavailable);
            self.hear(ClientInput::NodeGone { start, error });
        }
    }

    /// The host runs. A shared node is told of this page only once the page holds its lock: the
    /// node takes a lock that is free for a page that is gone.
    pub(super) fn node_ready(&self, start: u32, port: MessagePort, stop: Function, shared: bool) {
        let listener =
            self.listener(move |driver, message: JsValue| driver.node_message(start, &message));
        let link = NodeLink::new(start, port, stop, listener);
        if self.launching.get() != Some(start) {
            // It was given up meanwhile; dropping the link ends it.
            return;
        }
        self.launching.set(None);
        *self.node.borrow_mut() = Some(link);
        if !shared {
            return self.hear(ClientInput::NodeStarted { start, shared });
        }
        let name = self.cluster.lock(LockName::Page(self.core.borrow().identity().client));
        let granted = self.listener(move |driver, news| {
            if news == LockNews::Granted {
                driver.hear(ClientInput::NodeStarted { start, shared });
            }
        });
        let lock = LockRequest::new(&name, LockMode::Exclusive, granted);
        *self.page_lock.borrow_mut() = Some(lock);
    }

    pub(super) fn node_gone(&self, start: u32, error: Error) {
        if self.launching.get() == Some(start) {
            self.launching.set(None);
        }
        if self.node.borrow().as_ref().is_some_and(|node| node.start == start) {
            self.stop_node();
        }
        self.hear(ClientInput::NodeGone { start, error });
    }

    /// Ends the page's own node, also one that is being started, or leaves the shared one.
    pub(super) fn stop_node(&self) {
        if self.launching.take().is_some() {
            drop(self.hooks.abandon_node());
        }
        self.node.take();
        self.page_lock.take();
    }

    /// Whether the page's node is its own, or is being started; a shared one is told of the page by
    /// its lock.
    pub(super) fn has_own_node(&self) -> bool {
        let shared = self.page_lock.borrow().is_some();
        self.launching.get().is_some() || (self.node.borrow().is_some() && !shared)
    }

    fn node_message(&self, start: u32, message: &JsValue) {
        let Ok((packet, skipped)) = post::from_message(message) else {
            return self.count_bad_frames(1);
        };
        self.count_bad_frames(skipped);
        if let Some(node) = self.node.borrow().as_ref() {
            node.watch(&self.cluster, &packet, {
                let dead = self.listener(move |driver, ()| {
                    driver.node_gone(start, Error::new(ErrorCode::NodeUnavailable));
                });
                move || dead(())
            });
        }
        self.hear(ClientInput::Port(packet));
    }

    pub(super) fn to_node(&self, packet: ToNodePacket<JsValue>) {
        let from = packet.from;
        let refused = match self.node.borrow().as_ref() {
            Some(node) => send(&node.port, packet, &mut self.transfers.borrow_mut()),
            None => return,
        };
        // The port answers in the node's place: these publications cannot leave the page.
        for (publish, code) in refused {
            let error = Some(Error::new(code).with_detail(publish.topic));
            let answer = ToPage::Published { call: publish.call, error, idempotent: false };
            self.hear(ClientInput::Port(Packet::single(from, answer)));
        }
    }
}

/// Posts a packet; gives back the publications that cannot leave, having posted the rest.
fn send(
    port: &MessagePort,
    packet: ToNodePacket<JsValue>,
    transfers: &mut Vec<JsValue>,
) -> Vec<(PublishFrame, ErrorCode)> {
    if post(port, &packet, transfers).is_ok() {
        return Vec::new();
    }
    let Packet { from, frames, mut payloads } = packet;
    let mut rest = Packet::new(from);
    let mut refused = Vec::new();
    for frame in frames {
        match frame {
            ToNode::Publish(publish) => match refusal(&payloads, publish.slot) {
                Some(code) => {
                    payloads[publish.slot as usize] = JsValue::UNDEFINED;
                    refused.push((publish, code));
                }
                None => rest.frames.push(ToNode::Publish(publish)),
            },
            frame => rest.frames.push(frame),
        }
    }
    rest.payloads = payloads;
    // What is left came from other contexts, so it can be copied.
    drop(post(port, &rest, transfers));
    refused
}

fn post(
    port: &MessagePort,
    packet: &ToNodePacket<JsValue>,
    transfers: &mut Vec<JsValue>,
) -> Result<(), JsValue> {
    let message = post::to_message(packet);
    let moved = js_sys::Array::new();
    if !transfers.is_empty() {
        for payload in &packet.payloads {
            if let Some(index) = transfers.iter().position(|wanted| wanted == payload) {
                moved.push(&buffer_of(&transfers.swap_remove(index)));
            }
        }
    }
    port.post_message_with_transferable(&message, &moved)
}

fn buffer_of(payload: &JsValue) -> JsValue {
    match payload.dyn_ref::<js_sys::Uint8Array>() {
        Some(array) => array.buffer().into(),
        None => payload.clone(),
    }
}

/// Why a payload cannot be posted. One that has been moved was in an earlier attempt.
fn refusal(payloads: &[JsValue], slot: u32) -> Option<ErrorCode> {
    let payload = payloads.get(slot as usize)?;
    if structured_clone(payload).is_ok() {
        return None;
    }
    let binary = payload.is_instance_of::<js_sys::Uint8Array>()
        || payload.is_instance_of::<js_sys::ArrayBuffer>();
    Some(if binary { ErrorCode::OutcomeUnknown } else { ErrorCode::Uncloneable })
}
