//! From an HTTP request to a WebSocket: the handshake and the choice of the encoding.

use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::TokioIo;
use motet_realtime::codec::Encoding;
use thiserror::Error;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{Patient, ServerStream};

const PROTOBUF_PROTOCOL: &str = "centrifuge-protobuf";
const JSON_PROTOCOL: &str = "centrifuge-json";
/// Bytes of a handshake's key (RFC 6455, 4.1).
const KEY_BYTES: usize = 16;
/// Bytes of the read buffer that every connection holds, idle or not.
const READ_BUFFER_BYTES: usize = 1 << 10;

/// Why a request cannot become a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The request is no WebSocket handshake.
    #[error("this is a WebSocket endpoint: connect with a WebSocket client")]
    NoHandshake,
    /// The key is not 16 bytes in base64.
    #[error("Sec-WebSocket-Key must be 16 random bytes in base64")]
    Key,
    /// The WebSocket version is not 13.
    #[error("only WebSocket version 13 is spoken here")]
    Version,
}

/// A handshake that was understood.
pub struct Upgrade {
    encoding: Encoding,
    frame_pings: bool,
    accept_key: String,
    /// The subprotocol to confirm.
    protocol: Option<&'static str>,
    on_upgrade: hyper::upgrade::OnUpgrade,
}

impl Upgrade {
    /// Reads a handshake.
    ///
    /// # Errors
    /// [`UpgradeError`] when the request is none.
    pub fn read<B>(request: &mut Request<B>) -> Result<Self, UpgradeError> {
        let headers = request.headers();
        let key = headers.get(SEC_WEBSOCKET_KEY).ok_or(UpgradeError::NoHandshake)?;
        let asks = request.method() == Method::GET
            && has_token(headers, &CONNECTION, "upgrade")
            && has_token(headers, &UPGRADE, "websocket");
        if !asks {
            return Err(UpgradeError::NoHandshake);
        }
        if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err(UpgradeError::Version);
        }
        if STANDARD.decode(key).map_or(0, |key| key.len()) != KEY_BYTES {
            return Err(UpgradeError::Key);
        }
        let protocol = [PROTOBUF_PROTOCOL, JSON_PROTOCOL]
            .into_iter()
            .find(|protocol| has_token(headers, &SEC_WEBSOCKET_PROTOCOL, protocol));
        let wants_protobuf = protocol == Some(PROTOBUF_PROTOCOL)
            || request.uri().query().is_some_and(asks_for_protobuf);
        let encoding = if wants_protobuf { Encoding::Protobuf } else { Encoding::Json };
        let frame_pings = request.uri().query().is_some_and(asks_for_frame_pings);
        let accept_key = derive_accept_key(key.as_bytes());
        let on_upgrade = hyper::upgrade::on(request);
        Ok(Self { encoding, frame_pings, accept_key, protocol, on_upgrade })
    }

    /// The encoding that the client chose.
    #[must_use]
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether the client wants to be pinged by WebSocket frames instead of messages.
    #[must_use]
    pub const fn frame_pings(&self) -> bool {
        self.frame_pings
    }

    /// The response that completes the handshake.
    #[must_use]
    pub fn response<B: Default>(&self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let accept = HeaderValue::from_str(&self.accept_key).expect("base64 is a header value");
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = self.protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        response
    }

    /// The socket, once the response is sent. `None` when the peer went away before that.
    pub async fn socket(self, message_bytes_max: usize) -> Option<WebSocketStream<ServerStream>> {
        let upgraded = self.on_upgrade.await.ok()?;
        // Taken out of hyper's wrappers, so that a connection costs no more than its stream.
        let parts = upgraded.downcast::<TokioIo<Patient<ServerStream>>>().ok()?;
        let config = socket_config(message_bytes_max);
        let (stream, early) = (parts.io.into_inner().into_inner(), parts.read_buf.to_vec());
        let role = Role::Server;
        Some(WebSocketStream::from_partially_read(stream, early, role, Some(config)).await)
    }
}

/// How a connection's WebSocket is tuned. Nothing is gathered inside it: a frame is handed over
/// only when it holds everything that waits, so it is written at once.
pub(super) fn socket_config(message_bytes_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(message_bytes_max))
        .max_frame_size(Some(message_bytes_max))
}

/// Whether a comma-separated header has this token, in any case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(token)))
}

fn asks_for_protobuf(query: &str) -> bool {
    query.split('&').any(|pair| pair == "format=protobuf" || pair == "cf_protocol=protobuf")
}

fn asks_for_frame_pings(query: &str) -> bool {
    query.split('&').any(|pair| pair == "cf_ws_frame_ping_pong=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(uri: &str, protocol: Option<&str>) -> Request<()> {
        let mut builder = Request::builder()
            .uri(uri)
            .header(CONNECTION, "keep-alive, Upgrade")
            .header(UPGRADE, "WebSocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==");
        if let Some(protocol) = protocol {
            builder = builder.header(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        builder.body(()).expect("a request")
    }

    #[test]
    fn the_accept_key_is_that_of_the_rfc() {
        let upgrade = Upgrade::read(&mut handshake("/", None)).expect("a handshake");
        let response = upgrade.response::<()>();
        assert_eq!(response.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn protobuf_is_chosen_by_query_or_subprotocol() {
        for (uri, protocol, encoding) in [
            ("/", None, Encoding::Json),
            ("/", Some("centrifuge-json"), Encoding::Json),
            ("/?format=protobuf", None, Encoding::Protobuf),
            ("/?a=b&cf_protocol=protobuf", None, Encoding::Protobuf),
            ("/", Some("centrifuge-json, centrifuge-protobuf"), Encoding::Protobuf),
        ] {
            let upgrade = Upgrade::read(&mut handshake(uri, protocol)).expect("a handshake");
            assert_eq!(upgrade.encoding(), encoding, "{uri} {protocol:?}");
        }
    }

    #[test]
    fn anything_else_is_told_that_this_is_a_websocket_endpoint() {
        let mut request = Request::builder().uri("/").body(()).expect("a request");
        assert_eq!(Upgrade::read(&mut request).err(), Some(UpgradeError::NoHandshake));
        let mut old = handshake("/", None);
        old.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("8"));
        assert_eq!(Upgrade::read(&mut old).err(), Some(UpgradeError::Version));
    }

    #[test]
    fn a_key_that_is_not_16_bytes_in_base64_is_refused() {
        for key in ["", "x", "not base64", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZSE="] {
            let mut request = handshake("/", None);
            let value = HeaderValue::from_static(key);
            request.headers_mut().insert(SEC_WEBSOCKET_KEY, value);
            assert_eq!(Upgrade::read(&mut request).err(), Some(UpgradeError::Key), "{key}");
        }
    }
}
