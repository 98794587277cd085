//! Tokens of every algorithm against the verifier, with keys made for the test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use motet_realtime::server::{TokenClaims, TokenError, TokenKind};
use motet_server::auth::Verifier;
use motet_server::config::{ClientKeys, TokenKeys};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
    PKCS_RSA_SHA256, RsaKeySize,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn keys(token: TokenKeys) -> ClientKeys {
    ClientKeys { token, ..ClientKeys::default() }
}

fn hmac_keys() -> ClientKeys {
    keys(TokenKeys { hmac_secret_key: "secret".to_owned(), ..TokenKeys::default() })
}

fn sign(algorithm: Algorithm, kid: Option<&str>, claims: &Value, key: &EncodingKey) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).expect("signed")
}

fn hmac(algorithm: Algorithm, secret: &str, claims: &Value) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes()).expect("a secret");
    sign(algorithm, None, claims, &key)
}

async fn user(verifier: &Verifier, token: &str) -> Result<String, TokenError> {
    match verifier.verify(TokenKind::Connection, token).await? {
        TokenClaims::Connection(claims) => Ok(claims.user),
        TokenClaims::Subscription(_) => panic!("asked for a connection"),
    }
}

#[tokio::test]
async fn hmac_tokens_of_all_sizes_are_accepted_and_forged_ones_refused() {
    let verifier = Verifier::new(&hmac_keys()).expect("keys");
    for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
        let token = hmac(algorithm, "secret", &json!({ "sub": "42" }));
        assert_eq!(user(&verifier, &token).await, Ok("42".to_owned()));
        let forged = hmac(algorithm, "another", &json!({ "sub": "42" }));
        assert_eq!(user(&verifier, &forged).await, Err(TokenError::Invalid));
    }
    for text in ["", "a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiI0MiJ9."] {
        assert_eq!(user(&verifier, text).await, Err(TokenError::Invalid), "{text}");
    }
}

#[tokio::test]
async fn expiry_audience_issuer_and_kind_are_checked() {
    let mut config = hmac_keys();
    config.token.audience = "app".to_owned();
    config.token.issuer = "login".to_owned();
    let verifier = Verifier::new(&config).expect("keys");
    let verdict = |extra: Value| {
        let mut claims = json!({ "sub": "42", "aud": "app", "iss": "login" });
        for (name, value) in extra.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        hmac(Algorithm::HS256, "secret", &claims)
    };
    assert!(user(&verifier, &verdict(json!({ "exp": now() + 60 }))).await.is_ok());
    for (extra, error) in [
        (json!({ "exp": now() - 1 }), TokenError::Expired),
        (json!({ "expire_at": now() - 1 }), TokenError::Expired),
        (json!({ "aud": "other" }), TokenError::Invalid),
        (json!({ "iss": "other" }), TokenError::Invalid),
        (json!({ "channel": "a" }), TokenError::Invalid),
    ] {
        assert_eq!(user(&verifier, &verdict(extra.clone())).await, Err(error), "{extra}");
    }
    let bare = hmac(Algorithm::HS256, "secret", &json!({ "sub": "42" }));
    assert_eq!(user(&verifier, &bare).await, Err(TokenError::Invalid), "no audience at all");
}

#[tokio::test]
async fn a_previous_secret_is_good_for_what_was_issued_before_the_change() {
    let mut config = hmac_keys();
    config.token.hmac_previous_secret_key = "before".to_owned();
    config.token.hmac_previous_secret_key_valid_until = 1_000;
    let verifier = Verifier::new(&config).expect("keys");
    let old = |iat: u64| hmac(Algorithm::HS256, "before", &json!({ "sub": "42", "iat": iat }));
    assert!(user(&verifier, &old(1_000)).await.is_ok());
    assert_eq!(user(&verifier, &old(1_001)).await, Err(TokenError::Invalid));
}

#[tokio::test]
async fn rsa_and_elliptic_keys_are_accepted_and_a_public_key_is_no_hmac_secret() {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
    let config = keys(TokenKeys {
        rsa_public_key: rsa.public_key_pem(),
        ecdsa_public_key: pair.public_key_pem(),
        ..TokenKeys::default()
    });
    let verifier = Verifier::new(&config).expect("keys");
    let claims = json!({ "sub": "42" });
    let public_key = rsa.public_key_pem();
    let rsa = EncodingKey::from_rsa_pem(rsa.serialize_pem().as_bytes()).expect("a key");
    for algorithm in [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512] {
        let token = sign(algorithm, None, &claims, &rsa);
        assert_eq!(user(&verifier, &token).await, Ok("42".to_owned()), "{algorithm:?}");
    }
    let elliptic = EncodingKey::from_ec_pem(pair.serialize_pem().as_bytes()).expect("a key");
    let token = sign(Algorithm::ES256, None, &claims, &elliptic);
    assert_eq!(user(&verifier, &token).await, Ok("42".to_owned()));
    let confused = hmac(Algorithm::HS256, &public_key, &claims);
    assert_eq!(user(&verifier, &confused).await, Err(TokenError::Invalid));
}

#[test]
fn a_key_whose_tokens_could_never_be_verified_is_refused_with_what_is_supported() {
    let p521 = KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512).expect("a key").public_key_pem();
    let ed = KeyPair::generate_for(&PKCS_ED25519).expect("a key").public_key_pem();
    for (pem, parts) in [
        (p521, ["P-256 (ES256) or P-384 (ES384)", "ES512"]),
        (ed, ["expected the PEM", "elliptic"]),
        ("no key".to_owned(), ["expected the PEM", "elliptic"]),
    ] {
        let mut config = ClientKeys::default();
        config.token.ecdsa_public_key.clone_from(&pem);
        let text = Verifier::new(&config).err().expect("refused").to_string();
        assert!(text.starts_with("client.token.ecdsa_public_key: "), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");

        let mut config = ClientKeys::default();
        config.subscription_token.enabled = true;
        config.subscription_token.ecdsa_public_key = pem;
        let text = Verifier::new(&config).err().expect("refused").to_string();
        assert!(text.starts_with("client.subscription_token.ecdsa_public_key: "), "{text}");
    }
}

#[tokio::test]
async fn a_token_of_an_algorithm_that_is_not_supported_is_refused() {
    let verifier = Verifier::new(&hmac_keys()).expect("keys");
    for algorithm in ["ES512", "ES256K", "none", "PS256"] {
        let part = |value: Value| {
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string())
        };
        let token = format!(
            "{}.{}.{}",
            part(json!({ "alg": algorithm, "typ": "JWT" })),
            part(json!({ "sub": "42" })),
            part(json!("signature")),
        );
        assert_eq!(user(&verifier, &token).await, Err(TokenError::Invalid), "{algorithm}");
    }
}

/// Serves a key set and counts how often it is asked.
async fn serve_keys(set: JwkSet) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let body = serde_json::to_string(&set).expect("JSON");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 4096];
            // The request is small and comes in one piece; what it asks for does not matter.
            if stream.read(&mut request).await.unwrap_or(0) == 0 {
                continue;
            }
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    (address, asked)
}

fn named(key: &DecodingKey, algorithm: Algorithm, kid: &str) -> Jwk {
    let mut jwk = Jwk::from_decoding_key(key, Some(algorithm)).expect("a key");
    jwk.common.key_id = Some(kid.to_owned());
    jwk
}

#[tokio::test]
async fn keys_of_a_key_set_are_fetched_once_and_cached_by_id() {
    let ed = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let ec = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).expect("a key");
    let ed_public = DecodingKey::from_ed_pem(ed.public_key_pem().as_bytes()).expect("a key");
    let ec_public = DecodingKey::from_ec_pem(ec.public_key_pem().as_bytes()).expect("a key");
    let set = JwkSet {
        keys: vec![
            named(&ed_public, Algorithm::EdDSA, "ed"),
            named(&ec_public, Algorithm::ES384, "ec"),
        ],
    };
    let ed = EncodingKey::from_ed_pem(ed.serialize_pem().as_bytes()).expect("a key");
    let ec = EncodingKey::from_ec_pem(ec.serialize_pem().as_bytes()).expect("a key");
    let (address, asked) = serve_keys(set).await;
    let endpoint = format!("http://{address}/keys");
    let config = keys(TokenKeys { jwks_public_endpoint: endpoint, ..TokenKeys::default() });
    let verifier = Verifier::new(&config).expect("keys");
    let claims = json!({ "sub": "42" });
    for _ in 0..3 {
        let token = sign(Algorithm::EdDSA, Some("ed"), &claims, &ed);
        assert_eq!(user(&verifier, &token).await, Ok("42".to_owned()));
        let token = sign(Algorithm::ES384, Some("ec"), &claims, &ec);
        assert_eq!(user(&verifier, &token).await, Ok("42".to_owned()));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    for kid in ["made up", "another", "ec"] {
        let token = sign(Algorithm::EdDSA, Some(kid), &claims, &ed);
        assert_eq!(user(&verifier, &token).await, Err(TokenError::Invalid), "{kid}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "made-up ids do not turn into requests");
}

#[tokio::test]
async fn a_key_set_that_cannot_be_had_is_told_apart_from_a_bad_token() {
    let ed = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let ed = EncodingKey::from_ed_pem(ed.serialize_pem().as_bytes()).expect("a key");
    let endpoint = "http://127.0.0.1:1/keys".to_owned();
    let config = keys(TokenKeys { jwks_public_endpoint: endpoint, ..TokenKeys::default() });
    let verifier = Verifier::new(&config).expect("keys");
    let token = sign(Algorithm::EdDSA, Some("ed"), &json!({ "sub": "42" }), &ed);
    assert_eq!(user(&verifier, &token).await, Err(TokenError::KeysUnavailable));
}
