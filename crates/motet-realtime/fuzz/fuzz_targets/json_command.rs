//! Decodes a Json frame of commands; what decodes survives a second trip.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use motet_realtime::codec::{Limits, json};

fuzz_target!(|bytes: &[u8]| {
    let frame = Bytes::copy_from_slice(bytes);
    let Ok(commands) = json::Commands::new(frame, Limits::COMMANDS) else { return };
    for command in commands.map_while(Result::ok) {
        let mut frame = Vec::new();
        json::append_command(&mut frame, &command).expect("what was decoded is JSON");
        let mut again = json::Commands::new(frame.into(), Limits::REPLIES)
            .expect("a message that fitted before fits again");
        assert_eq!(again.next().expect("one message").expect("it decodes"), command);
    }
});
