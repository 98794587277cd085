//! How the rest of the server speaks to the hub's task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use motet_realtime::broker::MemoryBrokerStats;
use motet_realtime::hub::{ApiError, ApiRequest, ApiResult, HubStats, SessionId};
use motet_realtime::message::Command;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::connection::Outgoing;

/// The hub's task has ended: the server is stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server is stopping")]
pub struct EngineGone;

/// Numbers about the hub and what it keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Connections and channels.
    pub hub: HubStats,
    /// Streams and publications.
    pub broker: MemoryBrokerStats,
    /// Bytes that wait to be written to connections.
    pub waiting_bytes: usize,
}

/// Sends to the hub's task.
///
/// The channel itself is unbounded; what is in it is bounded by its senders: a connection is not
/// read while its commands under way exceed a limit, and an API call waits for its answer.
#[derive(Clone)]
pub struct HubHandle {
    inbox: mpsc::UnboundedSender<ToHub>,
    next_session: Arc<AtomicU64>,
}

/// What the hub's task is sent.
pub(super) enum ToHub {
    Open { session: SessionId, outgoing: Arc<Outgoing>, frame_pings: bool },
    FramePong(SessionId),
    Commands { session: SessionId, commands: Vec<Command<Bytes>>, bytes: usize },
    GoOn(SessionId),
    Malformed(SessionId),
    Closed(SessionId),
    Api(Box<ApiRequest<Bytes>>, oneshot::Sender<Result<ApiResult<Bytes>, ApiError>>),
    Stats(oneshot::Sender<EngineStats>),
    Shutdown(oneshot::Sender<()>),
}

impl HubHandle {
    pub(super) fn new(inbox: mpsc::UnboundedSender<ToHub>) -> Self {
        Self { inbox, next_session: Arc::default() }
    }

    /// A name for a new connection.
    #[must_use]
    pub fn draw_session(&self) -> SessionId {
        SessionId(self.next_session.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A connection was opened; `frame_pings` when it is to be pinged by frames.
    pub fn open(&self, session: SessionId, outgoing: Arc<Outgoing>, frame_pings: bool) {
        self.send(ToHub::Open { session, outgoing, frame_pings });
    }

    /// A connection answered a ping frame.
    pub fn frame_pong(&self, session: SessionId) {
        self.send(ToHub::FramePong(session));
    }

    /// A connection sent commands in a frame of so many bytes.
    pub fn commands(&self, session: SessionId, commands: Vec<Command<Bytes>>, bytes: usize) {
        self.send(ToHub::Commands { session, commands, bytes });
    }

    /// A connection has been sent so much of its answers that its commands may go on.
    pub fn go_on(&self, session: SessionId) {
        self.send(ToHub::GoOn(session));
    }

    /// A connection sent something that is no command.
    pub fn malformed(&self, session: SessionId) {
        self.send(ToHub::Malformed(session));
    }

    /// A connection is gone.
    pub fn closed(&self, session: SessionId) {
        self.send(ToHub::Closed(session));
    }

    /// Calls the API.
    ///
    /// # Errors
    /// [`EngineGone`] when the server is stopping.
    pub async fn api(
        &self,
        request: ApiRequest<Bytes>,
    ) -> Result<Result<ApiResult<Bytes>, ApiError>, EngineGone> {
        let (answer, answered) = oneshot::channel();
        self.send(ToHub::Api(Box::new(request), answer));
        answered.await.map_err(|_| EngineGone)
    }

    /// Numbers about the hub and what it keeps.
    ///
    /// # Errors
    /// [`EngineGone`] when the server is stopping.
    pub async fn stats(&self) -> Result<EngineStats, EngineGone> {
        let (answer, answered) = oneshot::channel();
        self.send(ToHub::Stats(answer));
        answered.await.map_err(|_| EngineGone)
    }

    /// Asks every connection to come back elsewhere; returns when all close frames are queued.
    pub async fn shut_down(&self) {
        let (answer, answered) = oneshot::channel();
        self.send(ToHub::Shutdown(answer));
        // An error says that the task has ended already.
        answered.await.ok();
    }

    fn send(&self, message: ToHub) {
        // Fails only when the hub's task has ended, and with it the server.
        self.inbox.send(message).ok();
    }
}
