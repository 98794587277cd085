//! A page's handle on the bus.

mod driver;
mod handlers;
mod hooks;
mod host;
mod lifecycle;
mod node_link;
mod options;
mod report;
mod snapshot;
mod tab;

use std::rc::Rc;

use core::time::Duration;

use js_sys::Function;
use motet_cluster::client::{ClientInput, PublishCall};
use motet_protocol::CorrelationId;
use wasm_bindgen::prelude::*;
use web_sys::MessagePort;

use self::driver::Driver;
pub use self::handlers::Handler;
pub use self::hooks::Hooks;
pub use self::options::PageOptions;
pub use self::snapshot::SnapshotSink;
use crate::error_object::from_number;

/// One page's handle on a cluster: everything the facade calls.
#[wasm_bindgen(js_name = PageBus)]
pub struct PageBus(Rc<Driver>);

#[wasm_bindgen(js_class = PageBus)]
impl PageBus {
    /// A handle that does nothing until it is started. Hooks are never called during a call of
    /// these methods, but later.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(options: &PageOptions, hooks: Hooks) -> Self {
        Self(Driver::new(options, hooks))
    }

    /// Begins, or begins again after a failure.
    pub fn start(&self) {
        self.0.start();
    }

    /// Leaves the cluster, handing topics over first. The status says when it is done.
    pub fn close(&self) {
        self.0.tell(ClientInput::Close);
    }

    /// Ends at once: releases channels, ports, locks, timers and the node.
    pub fn end(&self) {
        self.0.end();
    }

    /// Adds a handler to a topic and gives its id.
    pub fn subscribe(&self, topic: String, handler: Handler, replay: u32) -> u32 {
        let id = self.0.handlers.borrow_mut().add(&topic, handler);
        self.0.tell(ClientInput::Subscribe { handler: id, topic, replay });
        id
    }

    /// Takes a handler away; harmless when it is gone.
    pub fn unsubscribe(&self, handler: u32) {
        if self.0.handlers.borrow_mut().remove(handler) {
            self.0.tell(ClientInput::Unsubscribe { handler });
        }
    }

    /// Publishes; settled by the hook under the caller's number. `size` is what the facade knows of
    /// the payload's bytes. A payload that is transferred leaves the page with its first attempt.
    #[allow(clippy::too_many_arguments, reason = "plain arguments cross the boundary cheaply")]
    pub fn publish(
        &self,
        call: u32,
        topic: String,
        payload: JsValue,
        size: u32,
        message_id: Option<String>,
        timestamp_ms: Option<f64>,
        idempotency_key: Option<String>,
        deadline_ms: Option<u32>,
        transfer: bool,
    ) {
        if transfer {
            self.0.transfers.borrow_mut().push(payload.clone());
        }
        let call_of_core = PublishCall {
            topic,
            payload,
            size,
            message_id,
            timestamp_ms: timestamp_ms.map(|ms| ms as i64),
            idempotency_key,
            deadline: deadline_ms.map(|ms| Duration::from_millis(ms.into())),
        };
        let correlation = CorrelationId::from_bits(call.into());
        self.0.tell(ClientInput::Publish { correlation, call: call_of_core });
    }

    /// Gives up waiting for a publish.
    pub fn abort(&self, call: u32) {
        self.0.tell(ClientInput::Abort { correlation: CorrelationId::from_bits(call.into()) });
    }

    /// Answers the hook that wants a token; neither is ever kept.
    pub fn token(&self, topic: Option<String>, token: Option<String>) {
        self.0.tell(ClientInput::Token { topic, token });
    }

    /// Tells the collector what there is to see.
    pub fn snapshot(&self, sink: &SnapshotSink) {
        self.0.snapshot(sink);
    }

    /// Tries again what the server refused for good.
    pub fn retry(&self) {
        self.0.tell(ClientInput::Retry);
    }

    /// The host that the hook was asked for runs; `stop` ends it.
    #[wasm_bindgen(js_name = nodeReady)]
    pub fn node_ready(&self, start: u32, port: MessagePort, stop: Function, shared: bool) {
        self.0.node_ready(start, port, stop, shared);
    }

    /// The host could not be started, or died; `code` is a number of the error table.
    #[wasm_bindgen(js_name = nodeGone)]
    pub fn node_gone(&self, start: u32, code: u16, detail: Option<String>) {
        self.0.node_gone(start, from_number(code, detail));
    }
}
