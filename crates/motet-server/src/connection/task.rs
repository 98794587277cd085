//! The task of one connection: frames in, frames out.
//!
//! Everything that waits when the task runs goes out in as few frames as the frame size allows
//! and in one write. Reading goes on while a write is stuck, so a peer that does not read is
//! still heard, and its silence is still noticed.

use core::time::Duration;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Sink, Stream};
use motet_realtime::codec::{Encoding, Limits};
use motet_realtime::hub::SessionId;
use motet_realtime::message::{Command, Disconnect, DisconnectCode, Request};
use tokio::io::ReadBuf;
use tokio::time::Sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::queue::{Next, Outgoing};
use super::stream::Transport;
use crate::engine::HubHandle;

/// Payload bytes of one frame, about. A longer message goes out in several, so that no connection
/// needs, or keeps, a buffer for all of it.
const FRAME_BYTES_TARGET: usize = 64 << 10;
/// How long a closing connection may take to take what is queued and to answer the close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// WebSocket close codes (RFC 6455, 7.4.1).
const CLOSE_PROTOCOL_ERROR: u32 = 1002;
const CLOSE_INVALID_PAYLOAD: u32 = 1007;
/// For a code that does not fit into a close frame.
const FALLBACK_CLOSE_CODE: u16 = 3000;

/// Sizes that a connection obeys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) message_bytes_max: usize,
}

/// Serves a connection that the hub knows of until it ends, then tells the hub.
pub(crate) async fn run<S: Transport>(
    socket: WebSocketStream<S>,
    session: SessionId,
    outgoing: Arc<Outgoing>,
    hub: HubHandle,
    limits: ConnectionLimits,
) {
    Connection::new(socket, session, outgoing, hub.clone(), limits).await;
    hub.closed(session);
}

struct Connection<S> {
    socket: WebSocketStream<S>,
    session: SessionId,
    outgoing: Arc<Outgoing>,
    hub: HubHandle,
    limits: ConnectionLimits,
    /// Set once the connection is to be closed: a peer that does not read cannot delay it.
    deadline: Option<Pin<Box<Sleep>>>,
    hearing: Hearing,
    close_queued: bool,
    /// Something was handed to the socket and not flushed.
    dirty: bool,
    /// A ping frame was sent and not answered yet.
    pinged: bool,
}

/// What becomes of what the peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hearing {
    /// It is taken as frames.
    Frames,
    /// The framing is broken: bytes are read and dropped, so that the close frame is not lost
    /// with a reset connection.
    Nothing,
}

impl<S: Transport> Future for Connection<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.deadline.is_none() && this.outgoing.poll_closing(context).is_ready() {
            this.deadline = Some(Box::pin(tokio::time::sleep(CLOSE_TIMEOUT)));
        }
        if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            if this.dirty {
                // The peer does not take what is written, not even the close.
                this.socket.get_ref().reset_when_dropped();
            }
            return Poll::Ready(());
        }
        loop {
            if let Poll::Ready(Err(_)) = this.poll_write(context) {
                return Poll::Ready(());
            }
            match this.hearing {
                Hearing::Nothing => return this.poll_drain(context),
                Hearing::Frames => {
                    if ready!(this.poll_read(context)).is_err() {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }
}

impl<S: Transport> Connection<S> {
    fn new(
        socket: WebSocketStream<S>,
        session: SessionId,
        outgoing: Arc<Outgoing>,
        hub: HubHandle,
        limits: ConnectionLimits,
    ) -> Self {
        Self {
            socket,
            session,
            outgoing,
            hub,
            limits,
            deadline: None,
            hearing: Hearing::Frames,
            close_queued: false,
            dirty: false,
            pinged: false,
        }
    }

    /// Writes what waits. Pending when everything is written or the socket takes no more.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            if self.dirty {
                ready!(Pin::new(&mut self.socket).poll_flush(context))?;
                self.dirty = false;
            }
            if self.close_queued {
                return Poll::Pending;
            }
            ready!(Pin::new(&mut self.socket).poll_ready(context))?;
            let message = match ready!(self.outgoing.poll_next(context, FRAME_BYTES_TARGET)) {
                Next::Write(chunks) => self.frame(chunks),
                Next::WritePart { bytes, is_first, is_last } => {
                    let data = if is_first { self.data() } else { Data::Continue };
                    Message::Frame(Frame::message(bytes, OpCode::Data(data), is_last))
                }
                Next::Ping => {
                    self.pinged = true;
                    Message::Ping(Bytes::new())
                }
                Next::Close(disconnect) => {
                    self.close_queued = true;
                    let code = u16::try_from(disconnect.code.0).unwrap_or(FALLBACK_CLOSE_CODE);
                    let code = CloseCode::from(code);
                    Message::Close(Some(CloseFrame { code, reason: disconnect.reason.into() }))
                }
            };
            if self.outgoing.take_release() {
                self.hub.go_on(self.session);
            }
            Pin::new(&mut self.socket).start_send(message)?;
            self.dirty = true;
        }
    }

    /// One data frame of several chunks. Chunks are already encoded, so the frame is sent as it
    /// is, without another look at its text.
    fn frame(&self, mut chunks: Vec<Bytes>) -> Message {
        let encoding = self.outgoing.encoding();
        let payload = if chunks.len() == 1 {
            chunks.remove(0)
        } else {
            let bytes = chunks.iter().map(|chunk| chunk.len() + 1).sum();
            let mut frame = Vec::with_capacity(bytes);
            for chunk in &chunks {
                encoding.append_encoded(&mut frame, chunk);
            }
            Bytes::from(frame)
        };
        Message::Frame(Frame::message(payload, OpCode::Data(self.data()), true))
    }

    fn data(&self) -> Data {
        match self.outgoing.encoding() {
            Encoding::Json => Data::Text,
            Encoding::Protobuf => Data::Binary,
        }
    }

    /// Takes frames. Ready with an error when the connection has ended, ready without one when
    /// something is to be written first.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        loop {
            let closing = self.deadline.is_some();
            if !closing {
                ready!(self.outgoing.poll_may_read(context));
            }
            let message = match ready!(Pin::new(&mut self.socket).poll_next(context)) {
                None => return Poll::Ready(Err(Ended)),
                Some(Ok(message)) => message,
                Some(Err(error)) => {
                    let Some(disconnect) = farewell(&error) else {
                        return Poll::Ready(Err(Ended));
                    };
                    self.outgoing.close(disconnect);
                    self.deadline
                        .get_or_insert_with(|| Box::pin(tokio::time::sleep(CLOSE_TIMEOUT)));
                    self.hearing = Hearing::Nothing;
                    // Polls the deadline too.
                    context.waker().wake_by_ref();
                    return Poll::Ready(Ok(()));
                }
            };
            match message {
                Message::Text(text) if !closing => self.take_frame(text.into(), Encoding::Json),
                Message::Binary(bytes) if !closing => self.take_frame(bytes, Encoding::Protobuf),
                Message::Close(_) => {
                    // The answer is queued inside the socket; it goes out if it can go at once.
                    let _ = Pin::new(&mut self.socket).poll_flush(context);
                    return Poll::Ready(Err(Ended));
                }
                Message::Ping(_) => {
                    // So is the answer to a ping.
                    self.dirty = true;
                    return Poll::Ready(Ok(()));
                }
                // Only the awaited one: a flood of them is none of the hub's business.
                Message::Pong(_) if core::mem::take(&mut self.pinged) => {
                    self.hub.frame_pong(self.session);
                }
                _ => {}
            }
        }
    }

    /// Reads and drops until the peer closes; the deadline bounds it.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            let stream = Pin::new(self.socket.get_mut());
            let read = ready!(stream.poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }

    fn take_frame(&mut self, frame: Bytes, kind: Encoding) {
        let encoding = self.outgoing.encoding();
        let bytes = frame.len();
        if kind != encoding {
            return self.hub.malformed(self.session);
        }
        let limits = Limits {
            frame_bytes_max: self.limits.message_bytes_max,
            message_bytes_max: self.limits.message_bytes_max,
        };
        let Ok(decoded) = encoding.commands(frame, limits) else {
            return self.hub.malformed(self.session);
        };
        let mut commands = Vec::new();
        let mut malformed = false;
        for command in decoded {
            match command {
                Ok(command) if lacks_payload(&command, encoding) => malformed = true,
                Ok(command) => commands.push(compact(command)),
                Err(_) => malformed = true,
            }
            if malformed {
                break;
            }
        }
        if !commands.is_empty() {
            self.outgoing.sent_to_hub(bytes);
            self.hub.commands(self.session, commands, bytes);
        }
        if malformed {
            self.hub.malformed(self.session);
        }
    }
}

/// The connection has ended.
struct Ended;

/// The close that tells a peer what it did wrong; `None` when it cannot be told any more.
fn farewell(error: &Error) -> Option<Disconnect> {
    let (code, reason) = match error {
        Error::Capacity(_) => (DisconnectCode::MESSAGE_TOO_BIG.0, "message size limit exceeded"),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return None,
        Error::Protocol(_) => (CLOSE_PROTOCOL_ERROR, "protocol error"),
        Error::Utf8(_) => (CLOSE_INVALID_PAYLOAD, "text is not UTF-8"),
        _ => return None,
    };
    Some(Disconnect { code: DisconnectCode(code), reason: reason.to_owned() })
}

/// Whether a publication comes without its `data`. In Protobuf it is one of no bytes; in JSON it
/// is nothing at all, and the protocol demands something.
fn lacks_payload(command: &Command<Bytes>, encoding: Encoding) -> bool {
    let publish = match &command.request {
        Some(Request::Publish(publish)) => publish,
        _ => return false,
    };
    encoding == Encoding::Json && publish.data.is_empty()
}

/// A decoded payload is a view into its whole frame. A publication may be kept for long, so it
/// gets a buffer of its own size.
fn compact(mut command: Command<Bytes>) -> Command<Bytes> {
    if let Some(Request::Publish(publish)) = &mut command.request {
        publish.data = Bytes::copy_from_slice(&publish.data);
    }
    command
}

#[cfg(test)]
mod tests;
