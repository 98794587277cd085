//! Errors as JavaScript sees them: the numbers and texts that travel, nothing that is in the table.

use motet_protocol::{Error, ErrorCode};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A plain object; the facade makes an exception with the table's texts of it.
    pub(crate) type ErrorObject;

    #[wasm_bindgen(method, setter, structural, js_name = code)]
    fn set_code(this: &ErrorObject, code: u16);

    #[wasm_bindgen(method, setter, structural, js_name = serverCode)]
    fn set_server_code(this: &ErrorObject, code: u32);

    #[wasm_bindgen(method, setter, structural, js_name = detail)]
    fn set_detail(this: &ErrorObject, detail: &str);

    #[wasm_bindgen(method, setter, structural, js_name = retryAfterMs)]
    fn set_retry_after_ms(this: &ErrorObject, delay: u32);
}

/// `{ code, serverCode?, detail?, retryAfterMs? }`.
pub(crate) fn to_object(error: &Error) -> JsValue {
    let object: ErrorObject = js_sys::Object::new().unchecked_into();
    object.set_code(error.code.number());
    if let Some(code) = error.server_code {
        object.set_server_code(code);
    }
    if let Some(detail) = &error.detail {
        object.set_detail(detail);
    }
    if let Some(delay) = error.retry_after_ms {
        object.set_retry_after_ms(delay);
    }
    object.into()
}

/// An error by its number in the table, as the facade knows it.
pub(crate) fn from_number(code: u16, detail: Option<String>) -> Error {
    let code = ErrorCode::from_number(code).unwrap_or(ErrorCode::NodeUnavailable);
    Error { detail, ..Error::new(code) }
}
