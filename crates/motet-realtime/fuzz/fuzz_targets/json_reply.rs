//! Decodes a Json frame of replies; what decodes survives a second trip.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use motet_realtime::codec::{Limits, json};

fuzz_target!(|bytes: &[u8]| {
    let frame = Bytes::copy_from_slice(bytes);
    let Ok(replies) = json::Replies::new(frame, Limits::REPLIES) else { return };
    for reply in replies.map_while(Result::ok) {
        let mut frame = Vec::new();
        json::append_reply(&mut frame, &reply).expect("what was decoded is JSON");
        let mut again = json::Replies::new(frame.into(), Limits::REPLIES)
            .expect("a message that fitted before fits again");
        assert_eq!(again.next().expect("one message").expect("it decodes"), reply);
    }
});
