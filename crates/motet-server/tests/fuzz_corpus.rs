//! The fuzz corpora, replayed: what the server reads of strangers' text is accepted, or refused by a
//! typed error.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt as _;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey};
use motet_realtime::hub::ApiErrorCode;
use motet_realtime::server::TokenKind;
use motet_server::auth::Verifier;
use motet_server::config::Config;
use motet_server::http::{Batch, Call};

/// The files of a corpus.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).expect("a folder of seeds");
    files.map(|file| fs::read(file.expect("a seed").path()).expect("a readable seed")).collect()
}

#[test]
fn every_batch_of_the_corpus_is_read_call_by_call_or_refused() {
    let (mut calls, mut refused) = (0, 0);
    for seed in seeds("api_batch") {
        let Ok(batch) = Batch::parse(&seed) else {
            refused += 1;
            continue;
        };
        for command in batch.commands {
            match Call::parse(&command.method, command.body.get().as_bytes()) {
                Ok(call) => assert_eq!(call.method, command.method),
                Err(error) => assert_eq!(error.code, ApiErrorCode::MethodNotFound),
            }
            calls += 1;
        }
    }
    assert!(calls >= 7 && refused >= 3, "{calls} calls, {refused} bodies refused");
}

#[test]
fn every_body_of_the_corpus_is_some_method_s_or_a_bad_request() {
    let mut understood = [0; Call::METHODS.len()];
    for seed in seeds("api_call") {
        for (method, count) in Call::METHODS.iter().zip(&mut understood) {
            match Call::parse(method, &seed) {
                Ok(call) => {
                    assert_eq!(call.method, *method);
                    *count += 1;
                }
                Err(error) => assert_eq!(error.code, ApiErrorCode::BadRequest, "{method}"),
            }
        }
    }
    assert!(understood.iter().all(|count| *count > 0), "{understood:?}");
}

#[test]
fn every_configuration_of_the_corpus_makes_a_hub_or_is_refused_by_the_name_of_its_file() {
    let mut accepted = 0;
    for seed in seeds("configuration") {
        let text = String::from_utf8(seed).expect("text");
        match Config::parse("motet.toml", &text) {
            Ok(config) => {
                let _ = (config.hub_options(), config.broker_options());
                accepted += 1;
            }
            Err(error) => assert!(error.to_string().contains("motet.toml"), "{error}"),
        }
    }
    assert_eq!(accepted, 2, "one with keys and one without");
}

#[test]
fn every_token_of_the_corpus_is_verified_or_refused_without_waiting() {
    let secret = "a secret of this test";
    let text = format!("[client.token]\nhmac_secret_key = \"{secret}\"\n");
    let config = Config::parse("test", &text).expect("a configuration");
    let verifier = Verifier::new(&config.client).expect("a key");
    let verify = |kind, token: &str| {
        let verdict = verifier.verify(kind, token).now_or_never();
        verdict.expect("a key that is configured is not waited for").is_ok()
    };
    let key = EncodingKey::from_secret(secret.as_bytes()).expect("a key");
    let mut accepted = [0, 0];
    for seed in seeds("token") {
        let header: &[u8] = br#"{"alg":"HS256","typ":"JWT"}"#;
        let message = [header, &seed].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        let signature = sign(message.as_bytes(), &key, Algorithm::HS256).expect("signed");
        let token = format!("{message}.{signature}");
        let kinds = [TokenKind::Connection, TokenKind::Subscription];
        for (kind, count) in kinds.into_iter().zip(&mut accepted) {
            *count += usize::from(verify(kind, &token));
            assert!(!verify(kind, &String::from_utf8_lossy(&seed)), "it is not signed");
        }
    }
    assert!(accepted.iter().all(|count| *count > 0), "{accepted:?}");
}
