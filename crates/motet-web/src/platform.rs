//! Globals that pages and workers share, bound directly: one import each, no cast to a scope type.

use js_sys::{Object, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub(crate) fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    pub(crate) fn fill_random(bytes: &Uint8Array) -> Uint8Array;

    #[wasm_bindgen(js_name = setTimeout)]
    pub(crate) fn set_timeout(callback: &JsValue, delay_ms: i32) -> i32;

    #[wasm_bindgen(js_name = clearTimeout)]
    pub(crate) fn clear_timeout(timer: i32);

    #[wasm_bindgen(js_name = queueMicrotask)]
    pub(crate) fn queue_microtask(callback: &JsValue);

    #[wasm_bindgen(catch, js_name = structuredClone)]
    pub(crate) fn structured_clone(value: &JsValue) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(catch, js_namespace = ["navigator", "locks"], js_name = request)]
    pub(crate) fn request_lock(
        name: &str,
        options: &Object,
        granted: &JsValue,
    ) -> Result<Pending, JsValue>;

    #[wasm_bindgen(catch, js_namespace = ["navigator", "locks"], js_name = query)]
    pub(crate) fn query_locks() -> Result<Pending, JsValue>;

    /// A promise.
    pub(crate) type Pending;

    #[wasm_bindgen(method)]
    pub(crate) fn then(this: &Pending, done: &JsValue, failed: &JsValue);

    /// What a lock is asked for with.
    pub(crate) type LockOptions;

    #[wasm_bindgen(method, setter, structural, js_name = mode)]
    pub(crate) fn set_mode(this: &LockOptions, mode: &str);

    #[wasm_bindgen(method, setter, structural, js_name = ifAvailable)]
    pub(crate) fn set_if_available(this: &LockOptions, value: bool);

    #[wasm_bindgen(method, setter, structural, js_name = steal)]
    pub(crate) fn set_steal(this: &LockOptions, value: bool);

    #[wasm_bindgen(method, setter, structural, js_name = signal)]
    pub(crate) fn set_signal(this: &LockOptions, signal: &JsValue);
}

/// What the browser's functions call back with at most one value.
pub(crate) type Callback = Closure<dyn Fn(JsValue)>;

/// A callback whose life the garbage collector decides: for promises, which may outlive whoever
/// made them.
pub(crate) fn detached(callback: impl Fn(JsValue) + 'static) -> JsValue {
    let callback: Callback = Closure::new(callback);
    callback.into_js_value()
}
