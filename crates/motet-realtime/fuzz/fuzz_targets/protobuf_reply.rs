//! Decodes a Protobuf frame of replies; what decodes survives a second trip.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use motet_realtime::codec::{Limits, protobuf};

fuzz_target!(|bytes: &[u8]| {
    let frame = Bytes::copy_from_slice(bytes);
    let Ok(replies) = protobuf::Replies::new(frame, Limits::REPLIES) else { return };
    for reply in replies.map_while(Result::ok) {
        let mut frame = Vec::new();
        protobuf::append_reply(&mut frame, &reply);
        let mut again = protobuf::Replies::new(frame.into(), Limits::REPLIES)
            .expect("a message that fitted before fits again");
        assert_eq!(again.next().expect("one message").expect("it decodes"), reply);
    }
});
