//! What a connection's task writes, counted at its stream.

use std::future::poll_fn;
use std::io;

use motet_realtime::message::{Publication, Push, Reply};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::super::Kind;
use super::super::upgrade::socket_config;
use super::*;
use crate::auth::Verifier;
use crate::config::Config;
use crate::engine::{self, Engine};
use crate::metrics::Metrics;

/// A peer that says nothing. Notes each write as one entry, as each would be one system call.
#[derive(Default)]
struct Peer {
    writes: Vec<Vec<u8>>,
    is_stuck: bool,
}

impl AsyncRead for Peer {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Peer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_stuck {
            return Poll::Pending;
        }
        self.writes.push(bytes.to_vec());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Transport for Peer {
    fn reset_when_dropped(&self) {}
}

async fn connection(outgoing: Arc<Outgoing>) -> Connection<Peer> {
    let config = Config::default();
    let limits = ConnectionLimits { message_bytes_max: config.websocket.message_size_limit };
    let verifier = Verifier::new(&config.client).expect("no keys are valid keys");
    let config = Arc::new(config);
    let metrics = Arc::new(Metrics::new());
    let (hub, _) = engine::spawn(Engine { config, verifier, metrics, publication_log: None });
    let socket_config = socket_config(limits.message_bytes_max);
    let socket =
        WebSocketStream::from_raw_socket(Peer::default(), Role::Server, Some(socket_config));
    Connection::new(socket.await, hub.draw_session(), outgoing, hub, limits)
}

/// Runs the task until it waits; what it wrote meanwhile.
async fn writes(connection: &mut Connection<Peer>) -> Vec<Vec<u8>> {
    poll_fn(|context| {
        assert!(Pin::new(&mut *connection).poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    core::mem::take(&mut connection.socket.get_mut().writes)
}

fn queue(outgoing: &Outgoing, numbers: core::ops::Range<usize>, padding: usize) {
    for number in numbers {
        let data = format!("\"{number}{}\"", " ".repeat(padding));
        let push = Push::publication("news", Publication::new(Bytes::from(data)));
        let mut chunk = Vec::new();
        outgoing.encoding().append_reply(&mut chunk, &Reply::push(push)).expect("it is JSON");
        outgoing.push(Kind::Push, Bytes::from(chunk));
    }
}

/// How many messages a write carries, which must be one frame of the encoding and nothing else.
fn messages_in_the_frame(encoding: Encoding, bytes: &[u8]) -> usize {
    let (head, length) = match bytes[1] {
        126 => (4, usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))),
        127 => (
            10,
            usize::try_from(u64::from_be_bytes(bytes[2..10].try_into().expect("8 bytes")))
                .expect("it fits"),
        ),
        short => (2, usize::from(short)),
    };
    assert_eq!(bytes[0], if encoding == Encoding::Json { 0x81 } else { 0x82 }, "a whole message");
    assert_eq!(bytes.len() - head, length, "one frame");
    let frame = Bytes::copy_from_slice(&bytes[head..]);
    let replies = encoding.replies(frame, Limits::REPLIES).expect("a frame");
    replies.inspect(|reply| assert!(reply.is_ok(), "{reply:?}")).count()
}

#[tokio::test]
async fn what_is_queued_is_one_frame_and_one_write() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let outgoing = Arc::new(Outgoing::new(encoding, 1 << 20));
        let mut connection = connection(outgoing.clone()).await;
        queue(&outgoing, 0..100, 64);
        let written = writes(&mut connection).await;
        let counts: Vec<_> =
            written.iter().map(|bytes| messages_in_the_frame(encoding, bytes)).collect();
        assert_eq!(counts, [100], "{encoding:?}");
        assert!(writes(&mut connection).await.is_empty());
    }
}

#[tokio::test]
async fn what_gathers_while_the_socket_is_stuck_is_one_write() {
    let outgoing = Arc::new(Outgoing::new(Encoding::Json, 1 << 20));
    let mut connection = connection(outgoing.clone()).await;
    connection.socket.get_mut().is_stuck = true;
    queue(&outgoing, 0..1, 0);
    for number in 1..100 {
        assert!(writes(&mut connection).await.is_empty());
        queue(&outgoing, number..number + 1, 0);
    }
    connection.socket.get_mut().is_stuck = false;
    let written = writes(&mut connection).await;
    let counts: Vec<_> =
        written.iter().map(|bytes| messages_in_the_frame(Encoding::Json, bytes)).collect();
    assert_eq!(counts, [1, 99], "the one that was under way, then all others");
}

#[tokio::test]
async fn more_than_a_frame_holds_is_a_write_for_each_full_frame() {
    let outgoing = Arc::new(Outgoing::new(Encoding::Json, 1 << 20));
    let mut connection = connection(outgoing.clone()).await;
    queue(&outgoing, 0..200, 1_000);
    let written = writes(&mut connection).await;
    let counts: Vec<_> =
        written.iter().map(|bytes| messages_in_the_frame(Encoding::Json, bytes)).collect();
    assert_eq!(counts.iter().sum::<usize>(), 200);
    let (_, full) = written.split_last().expect("written");
    assert!(full.iter().all(|bytes| bytes.len() >= FRAME_BYTES_TARGET), "{counts:?}");
}
