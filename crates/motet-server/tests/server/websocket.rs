//! A plain WebSocket client that speaks JSON by hand.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::process::Server;

pub(crate) const LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<TcpStream>,
    waiting: Vec<Value>,
}

impl Client {
    /// A WebSocket without a word said on it.
    pub(crate) async fn open(server: &Server) -> Self {
        Self::try_open(server, None).await.expect("a WebSocket")
    }

    /// The same, with a query.
    pub(crate) async fn open_with(server: &Server, query: &str) -> Self {
        let url = format!("ws://{}/connection/websocket{query}", server.address);
        let stream = TcpStream::connect(server.address).await.expect("connected");
        client_async(url, stream).await.expect("a WebSocket").0.into()
    }

    pub(crate) async fn try_open(server: &Server, origin: Option<&str>) -> Result<Self, Error> {
        let url = format!("ws://{}/connection/websocket", server.address);
        let mut request = url.into_client_request()?;
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().expect("a header"));
        }
        let stream = TcpStream::connect(server.address).await?;
        let (socket, _) = client_async(request, stream).await?;
        Ok(Self { socket, waiting: Vec::new() })
    }

    /// A connected anonymous client.
    pub(crate) async fn connected(server: &Server) -> Self {
        let mut client = Self::open(server).await;
        client.send(r#"{"id":1,"connect":{}}"#).await;
        let reply = client.next().await;
        assert!(reply["connect"]["client"].is_string(), "{reply}");
        client
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.expect("sent");
    }

    /// The next message; pings are answered and skipped.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            if !self.waiting.is_empty() {
                let message = self.waiting.remove(0);
                if message.as_object().is_some_and(serde_json::Map::is_empty) {
                    self.send("{}").await;
                    continue;
                }
                return message;
            }
            match timeout(LIMIT, self.socket.next()).await.expect("a message in time") {
                Some(Ok(Message::Text(text))) => {
                    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
                    self.waiting.extend(text.lines().map(parse));
                }
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }

    /// The close code the server ends the connection with.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            match timeout(LIMIT, self.socket.next()).await.expect("the end in time") {
                Some(Ok(Message::Close(frame))) => {
                    return frame.expect("a code").code.into();
                }
                Some(Ok(_)) => {}
                other => panic!("expected a close frame, got {other:?}"),
            }
        }
    }
}

impl From<WebSocketStream<TcpStream>> for Client {
    fn from(socket: WebSocketStream<TcpStream>) -> Self {
        Self { socket, waiting: Vec::new() }
    }
}
