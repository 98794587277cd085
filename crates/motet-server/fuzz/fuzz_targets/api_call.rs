//! Reads a body as that of each call of the API; what is refused is a bad request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_realtime::hub::ApiErrorCode;
use motet_server::http::Call;

fuzz_target!(|bytes: &[u8]| {
    for method in Call::METHODS {
        match Call::parse(method, bytes) {
            Ok(call) => assert_eq!(call.method, method),
            Err(error) => assert_eq!(error.code, ApiErrorCode::BadRequest, "{method}"),
        }
    }
});
