//! Members of parsed messages.

use js_sys::Array;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = JSON, js_name = parse)]
    pub(super) fn parse(text: &JsValue) -> Result<Object, JsValue>;

    #[wasm_bindgen(catch, js_namespace = JSON, js_name = stringify)]
    pub(super) fn stringify(value: &JsValue) -> Result<Option<String>, JsValue>;

    /// Any object of a message. Each getter reads one member; a member of another type than
    /// expected reads as the browser converts it, an absent one as `None`.
    #[derive(Clone)]
    pub(super) type Object;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn id(this: &Object) -> Option<u32>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn error(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn push(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn connect(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn subscribe(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn unsubscribe(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn publish(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn history(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn refresh(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural, js_name = sub_refresh)]
    pub(super) fn sub_refresh(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn disconnect(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn motet(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural, js_name = pub)]
    pub(super) fn publication(this: &Object) -> Option<Object>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn tags(this: &Object) -> Option<Object>;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn channel(this: &Object) -> Option<String>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn message(this: &Object) -> Option<String>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn reason(this: &Object) -> Option<String>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn client(this: &Object) -> Option<String>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn version(this: &Object) -> Option<String>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn epoch(this: &Object) -> Option<String>;
    #[wasm_bindgen(method, getter, structural, js_name = motet_id)]
    pub(super) fn message_id(this: &Object) -> Option<String>;
    #[wasm_bindgen(method, getter, structural, js_name = motet_ts)]
    pub(super) fn timestamp_ms(this: &Object) -> Option<String>;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn code(this: &Object) -> Option<u32>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn ttl(this: &Object) -> Option<u32>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn ping(this: &Object) -> Option<f64>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn offset(this: &Object) -> Option<f64>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn time(this: &Object) -> Option<f64>;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn temporary(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn expires(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn pong(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn recoverable(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn recovered(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn positioned(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural, js_name = was_recovering)]
    pub(super) fn was_recovering(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn idempotency(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural, js_name = ordered_publish)]
    pub(super) fn ordered_publish(this: &Object) -> Option<bool>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn wildcards(this: &Object) -> Option<bool>;

    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn data(this: &Object) -> JsValue;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn publications(this: &Object) -> Option<Array>;
}
