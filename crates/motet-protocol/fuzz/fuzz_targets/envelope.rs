//! Decodes an envelope; what decodes survives a second trip, what does not is one of two errors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_protocol::{ErrorCode, decode_envelope};

fuzz_target!(|bytes: &[u8]| match decode_envelope(bytes) {
    Ok(envelope) => {
        let encoded = minicbor::to_vec(&envelope).expect("a vector has room");
        assert_eq!(decode_envelope(&encoded), Ok(envelope));
    }
    Err(error) => {
        assert!(matches!(error.code, ErrorCode::BadFrame | ErrorCode::UnsupportedSchema));
    }
});
