//! Verifies bytes as a token, and as the claims of tokens that are signed with the right key.
#![no_main]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt as _;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey};
use libfuzzer_sys::fuzz_target;
use motet_realtime::server::TokenKind;
use motet_server::auth::Verifier;
use motet_server::config::Config;

const SECRET: &str = "a secret of the fuzz target";
const HEADER: &[u8] = br#"{"alg":"HS256","typ":"JWT"}"#;

static VERIFIER: LazyLock<Verifier> = LazyLock::new(|| {
    let text = format!("[client.token]\nhmac_secret_key = \"{SECRET}\"\n");
    let config = Config::parse("fuzz", &text).expect("a configuration");
    Verifier::new(&config.client).expect("a key")
});

fuzz_target!(|bytes: &[u8]| {
    if let Ok(token) = str::from_utf8(bytes) {
        verify(token);
    }
    verify(&signed(bytes));
});

fn verify(token: &str) {
    for kind in [TokenKind::Connection, TokenKind::Subscription] {
        let verdict = VERIFIER.verify(kind, token).now_or_never();
        let _ = verdict.expect("a key that is configured is not waited for");
    }
}

fn signed(claims: &[u8]) -> String {
    let message = [HEADER, claims].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    let key = EncodingKey::from_secret(SECRET.as_bytes()).expect("a key");
    let signature = sign(message.as_bytes(), &key, Algorithm::HS256).expect("signed");
    format!("{message}.{signature}")
}
