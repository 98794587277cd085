//! A cluster member and its server connection.

mod driver;
mod inboxes;
mod json;
mod locks;
mod options;
mod ports;
mod protobuf;
mod socket;

use std::rc::Rc;

use wasm_bindgen::prelude::*;
use web_sys::MessagePort;

use self::driver::Driver;
pub use self::options::NodeOptions;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// A running node, as its host sees it.
#[wasm_bindgen(js_name = ClusterNode)]
pub struct ClusterNode(Rc<Driver>);

#[wasm_bindgen(js_class = ClusterNode)]
impl ClusterNode {
    /// Starts a node.
    ///
    /// # Errors
    ///
    /// What the browser threw when its channels could not be opened.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &NodeOptions) -> Result<Self, JsValue> {
        // The trap that follows a panic says nothing of its cause.
        std::panic::set_hook(Box::new(|panic| console_error(&panic.to_string())));
        Driver::start(options).map(Self)
    }

    /// Takes a page's port.
    pub fn attach(&self, port: MessagePort) {
        self.0.attach(port);
    }

    /// Ends the node at once: its locks fall free, its socket and channels close.
    pub fn end(&self) {
        self.0.end();
    }
}
