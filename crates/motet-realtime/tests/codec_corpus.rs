//! The fuzz corpora, replayed: every file is decoded, and what decodes survives a second trip.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use motet_realtime::codec::{Encoding, Limits};

fn corpus(target: &str) -> Vec<Bytes> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder)
        .expect("the corpus is readable and what was decoded is encoded again")
        .map(|entry| {
            fs::read(
                entry.expect("the corpus is readable and what was decoded is encoded again").path(),
            )
        });
    let corpus: Vec<_> = files
        .map(|bytes| {
            Bytes::from(
                bytes.expect("the corpus is readable and what was decoded is encoded again"),
            )
        })
        .collect();
    assert!(!corpus.is_empty(), "{} has seeds", folder.display());
    corpus
}

fn replay_commands(encoding: Encoding, target: &str) {
    for bytes in corpus(target) {
        let Ok(commands) = encoding.commands(bytes, Limits::COMMANDS) else { continue };
        for command in commands.map_while(Result::ok) {
            let mut frame = Vec::new();
            encoding
                .append_command(&mut frame, &command)
                .expect("the corpus is readable and what was decoded is encoded again");
            let mut again = encoding
                .commands(frame.into(), Limits::REPLIES)
                .expect("the corpus is readable and what was decoded is encoded again");
            assert_eq!(
                again
                    .next()
                    .expect("the corpus is readable and what was decoded is encoded again")
                    .expect("the corpus is readable and what was decoded is encoded again"),
                command
            );
        }
    }
}

fn replay_replies(encoding: Encoding, target: &str) {
    for bytes in corpus(target) {
        let Ok(replies) = encoding.replies(bytes, Limits::REPLIES) else { continue };
        for reply in replies.map_while(Result::ok) {
            let mut frame = Vec::new();
            encoding
                .append_reply(&mut frame, &reply)
                .expect("the corpus is readable and what was decoded is encoded again");
            let mut again = encoding
                .replies(frame.into(), Limits::REPLIES)
                .expect("the corpus is readable and what was decoded is encoded again");
            assert_eq!(
                again
                    .next()
                    .expect("the corpus is readable and what was decoded is encoded again")
                    .expect("the corpus is readable and what was decoded is encoded again"),
                reply
            );
        }
    }
}

#[test]
fn the_corpus_of_json_commands_is_harmless() {
    replay_commands(Encoding::Json, "json_command");
}

#[test]
fn the_corpus_of_json_replies_is_harmless() {
    replay_replies(Encoding::Json, "json_reply");
}

#[test]
fn the_corpus_of_protobuf_commands_is_harmless() {
    replay_commands(Encoding::Protobuf, "protobuf_command");
}

#[test]
fn the_corpus_of_protobuf_replies_is_harmless() {
    replay_replies(Encoding::Protobuf, "protobuf_reply");
}
