//! What the page's handle tells its facade: one object of functions, none of which may throw.

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// The facade's functions. A throw of theirs is swallowed: it must not cross the core.
    pub type Hooks;

    /// Start a host for the node; answered by `nodeReady` or `nodeGone` with the same number.
    #[wasm_bindgen(method, structural, catch, js_name = startNode)]
    pub(crate) fn start_node(
        this: &Hooks,
        start: u32,
        tab: &str,
        visible: bool,
    ) -> Result<(), JsValue>;

    /// Give up the start of the host that is under way, and end what it has started.
    #[wasm_bindgen(method, structural, catch, js_name = abandonNode)]
    pub(crate) fn abandon_node(this: &Hooks) -> Result<(), JsValue>;

    /// The lifecycle changed; `status` is an index into the facade's list.
    #[wasm_bindgen(method, structural, catch, js_name = status)]
    pub(crate) fn status(
        this: &Hooks,
        status: u8,
        node: Option<String>,
        error: &JsValue,
    ) -> Result<(), JsValue>;

    /// A topic's subscription changed.
    #[wasm_bindgen(method, structural, catch, js_name = subscription)]
    pub(crate) fn subscription(
        this: &Hooks,
        topic: &str,
        state: u8,
        epoch: Option<&str>,
        offset: f64,
        error: &JsValue,
    ) -> Result<(), JsValue>;

    /// Messages of a topic may be missing; `to_offset` is NaN when it is not known how many.
    #[wasm_bindgen(method, structural, catch, js_name = gap)]
    pub(crate) fn gap(
        this: &Hooks,
        topic: &str,
        from_epoch: &str,
        from_offset: f64,
        to_epoch: Option<&str>,
        to_offset: f64,
        reason: u8,
    ) -> Result<(), JsValue>;

    /// A publication has its outcome; `error` is undefined when it was acknowledged.
    #[wasm_bindgen(method, structural, catch, js_name = settled)]
    pub(crate) fn settled(this: &Hooks, call: u32, error: &JsValue) -> Result<(), JsValue>;

    /// A token is needed: for a topic, or for the connection.
    #[wasm_bindgen(method, structural, catch, js_name = tokenWanted)]
    pub(crate) fn token_wanted(this: &Hooks, topic: Option<&str>) -> Result<(), JsValue>;

    /// Something to report; `cause` is what a handler threw.
    #[wasm_bindgen(method, structural, catch, js_name = failed)]
    pub(crate) fn failed(
        this: &Hooks,
        source: u8,
        error: &JsValue,
        cause: &JsValue,
    ) -> Result<(), JsValue>;
}
