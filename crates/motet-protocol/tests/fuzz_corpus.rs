//! The fuzz corpus, replayed: an envelope survives a second trip, the rest is one of two errors.

use std::fs;
use std::path::Path;

use motet_protocol::{ErrorCode, decode_envelope};

#[test]
fn every_seed_is_an_envelope_that_comes_back_or_a_typed_refusal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/envelope");
    let mut decoded = 0;
    for file in fs::read_dir(&folder).expect("a folder of seeds") {
        let bytes = fs::read(file.expect("a seed").path()).expect("a readable seed");
        match decode_envelope(&bytes) {
            Ok(envelope) => {
                let encoded = minicbor::to_vec(&envelope).expect("a vector has room");
                assert_eq!(decode_envelope(&encoded), Ok(envelope));
                decoded += 1;
            }
            Err(error) => {
                let codes = [ErrorCode::BadFrame, ErrorCode::UnsupportedSchema];
                assert!(codes.contains(&error.code), "{error:?}");
            }
        }
    }
    assert!(decoded >= 5, "{decoded} seeds are envelopes");
}
