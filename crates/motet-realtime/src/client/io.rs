//! What goes into a client and what comes out.

use motet_protocol::Error;
use motet_protocol::transport::{TransportEvent, TransportOp};

use crate::message::{Command, DisconnectCode, Reply};

/// Number of a socket. Each attempt opens a new one; what an old one still says is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// What a driver tells a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<P> {
    /// The node asks for something.
    Op(TransportOp<P>),
    /// A socket is open.
    Opened {
        /// Which.
        socket: SocketId,
    },
    /// A message arrived. The messages of one frame come one after the other.
    Message {
        /// On which socket.
        socket: SocketId,
        /// The message.
        reply: Reply<P>,
        /// Its bytes on the wire, from which publications learn their size.
        bytes: u32,
    },
    /// A frame arrived that is no message: the connection cannot be trusted any more.
    Malformed {
        /// On which socket.
        socket: SocketId,
    },
    /// A command of [`Output::Send`] was not taken: it cannot be encoded, or is larger than the
    /// server allows. It was left out, or the server has closed the socket for it; the driver says
    /// so before it says that the socket is closed.
    NotSent {
        /// On which socket.
        socket: SocketId,
        /// The command's id.
        id: u32,
        /// Why.
        error: Error,
    },
    /// A socket is closed, or could not be opened. Nothing follows from it.
    Closed {
        /// Which.
        socket: SocketId,
        /// Its close code; 1006 where the platform names none.
        code: DisconnectCode,
        /// Its close reason.
        reason: String,
    },
    /// The time of `next_timeout` has come.
    Tick,
}

/// What a client asks of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Something for the node.
    Event(TransportEvent<P>),
    /// Open a socket. The one before it is closed, or was asked to close so long ago that its
    /// driver must abandon it.
    OpenSocket {
        /// Its number.
        socket: SocketId,
    },
    /// Write these commands, in this order. They belong in one frame; a driver begins another
    /// only where a frame would exceed what servers accept (64 KiB).
    Send {
        /// On which socket.
        socket: SocketId,
        /// The commands.
        commands: Vec<Command<P>>,
    },
    /// Close a socket, whether or not it is open yet; answered by [`Input::Closed`].
    CloseSocket {
        /// Which.
        socket: SocketId,
    },
}
