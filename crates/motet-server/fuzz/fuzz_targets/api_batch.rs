//! Reads the body of a batch and each call in it; what is read is one method with one JSON body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_server::http::{Batch, Call};

fuzz_target!(|bytes: &[u8]| {
    let Ok(batch) = Batch::parse(bytes) else { return };
    for command in batch.commands {
        let method = command.method.as_str();
        if let Ok(call) = Call::parse(method, command.body.get().as_bytes()) {
            assert_eq!(call.method, method);
        }
    }
});
