//! Server connections: ordered both ways, until they break; a half-open one swallows everything.

use motet_realtime::message::{Command, Reply};

use crate::media::lock::Agent;
use crate::world::context::ContextId;

/// Index of a connection; never used again.
pub(crate) type ConnectionId = usize;

/// What reaches the server.
#[derive(Debug)]
pub(crate) enum Upstream {
    /// A client wants to connect.
    Open,
    /// A command.
    Command(Box<Command<u64>>),
    /// The connection is gone.
    Closed,
}

/// What reaches the client.
#[derive(Debug)]
pub(crate) enum Downstream {
    /// The connection stands.
    Opened,
    /// A reply or push.
    Reply(Box<Reply<u64>>),
    /// The connection is gone, with the server's close code if it gave one.
    Closed(Option<u32>),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    /// Where its client is.
    pub(crate) context: ContextId,
    /// Which host of that context.
    pub(crate) agent: Agent,
    /// Messages arrive; otherwise they vanish and nobody is told.
    pub(crate) carries: bool,
    /// The client's end is open.
    pub(crate) client_open: bool,
    /// The server has it.
    pub(crate) server_open: bool,
    /// When the last message up and the last one down arrives: none overtakes it.
    pub(crate) last_arrival: [u64; 2],
}

impl Link {
    pub(crate) const fn new(context: ContextId, agent: Agent, carries: bool) -> Self {
        Self {
            context,
            agent,
            carries,
            client_open: true,
            server_open: false,
            last_arrival: [0; 2],
        }
    }
}
