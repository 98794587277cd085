//! Checks a topic's name; what is accepted is short printable ASCII and has a data channel, and a
//! refusal quotes a bounded part of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_cluster::name::{SHARDS, TOPIC_BYTES_MAX, check_topic, shard_of, topic_key};

/// How much of a refused name its error quotes.
const QUOTED_CHARS_MAX: usize = 64;

fuzz_target!(|topic: &str| {
    match check_topic(topic) {
        Ok(()) => {
            assert!((1..=TOPIC_BYTES_MAX).contains(&topic.len()));
            assert!(topic.bytes().all(|byte| matches!(byte, b'!'..=b'~') && byte != b'*'));
        }
        Err(error) => {
            let quoted = error.detail.unwrap_or_default();
            assert!(topic.starts_with(&*quoted) && quoted.chars().count() <= QUOTED_CHARS_MAX);
        }
    }
    assert!(shard_of(topic) < SHARDS);
    assert_eq!(topic_key(topic).len(), 16);
});
