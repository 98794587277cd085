//! Decodes a Protobuf frame of commands; what decodes survives a second trip.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use motet_realtime::codec::{Limits, protobuf};

fuzz_target!(|bytes: &[u8]| {
    let frame = Bytes::copy_from_slice(bytes);
    let Ok(commands) = protobuf::Commands::new(frame, Limits::COMMANDS) else { return };
    for command in commands.map_while(Result::ok) {
        let mut frame = Vec::new();
        protobuf::append_command(&mut frame, &command);
        let mut again = protobuf::Commands::new(frame.into(), Limits::REPLIES)
            .expect("a message that fitted before fits again");
        assert_eq!(again.next().expect("one message").expect("it decodes"), command);
    }
});
