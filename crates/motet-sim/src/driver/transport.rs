//! The node's transport: the real client session, joined with links to the server.

use motet_protocol::transport::{TransportEvent, TransportOp};
use motet_protocol::{Instant, Rng};
use motet_realtime::client::{Client, ClientConfig, Input, Output, SocketId};
use motet_realtime::message::DisconnectCode;

use super::host::Host;
use crate::server::{ConnectionId, Downstream, Upstream};
use crate::world::context::{ContextId, Slot, Task};
use crate::world::{MS, SECOND, World};

/// Close code of a connection whose end nobody explained.
const ABNORMAL: u32 = 1006;

/// The transport of one node.
#[derive(Debug)]
pub(crate) struct Transport {
    client: Client<u64>,
    /// Sockets that its driver has not seen closed.
    sockets: Vec<(SocketId, ConnectionId)>,
}

impl Transport {
    pub(crate) fn new(token_needed: bool, rng: Rng) -> Self {
        let mut config = ClientConfig::new("motet-sim".to_owned(), String::new());
        config.token_needed = token_needed;
        Self { client: Client::new(config, rng), sockets: Vec::new() }
    }

    pub(crate) fn operate(&mut self, now: Instant, op: TransportOp<u64>) {
        self.client.handle(now, Input::Op(op));
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.client.next_timeout()
    }

    /// Connections of all its sockets.
    pub(crate) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.sockets.iter().map(|(_, connection)| *connection)
    }

    fn connection_of(&self, socket: SocketId) -> Option<ConnectionId> {
        let found = self.sockets.iter().find(|(known, _)| *known == socket);
        found.map(|(_, connection)| *connection)
    }
}

impl World {
    pub(crate) fn transport_tick(&mut self, id: ContextId) {
        self.transport_input(id, Input::Tick);
    }

    fn transport_input(&mut self, id: ContextId, input: Input<u64>) {
        let now = self.local_now(id);
        let Some(mut host) = self.contexts[id].host.take() else { return };
        host.transport.client.handle(now, input);
        self.drain_host(id, &mut host);
        let due = [host.node.next_timeout(), host.transport.next_timeout()];
        self.contexts[id].host = Some(host);
        self.arm(id, Slot::Node, due[0]);
        self.arm(id, Slot::Transport, due[1]);
    }

    /// Carries out what the transport asks of its driver, up to the next event for the node.
    pub(crate) fn transport_outputs(
        &mut self,
        id: ContextId,
        host: &mut Host,
    ) -> Option<TransportEvent<u64>> {
        while let Some(output) = host.transport.client.poll_output() {
            match output {
                Output::Event(event) => {
                    self.note(|| format!("node {} hears {event:?}", host.id));
                    return Some(event);
                }
                Output::OpenSocket { socket } => {
                    let connection = self.open_connection(id, host.agent);
                    host.transport.sockets.push((socket, connection));
                    if !self.online && self.chance(500) {
                        let after = 30 * MS + self.rng.below(400 * MS);
                        self.send(id, after, Task::Socket(connection, Downstream::Closed(None)));
                    }
                }
                Output::Send { socket, commands } => {
                    let Some(connection) = host.transport.connection_of(socket) else { continue };
                    for command in commands {
                        self.send_up(connection, Upstream::Command(Box::new(command)));
                    }
                }
                Output::CloseSocket { socket } => {
                    if let Some(connection) = host.transport.connection_of(socket) {
                        self.close_socket(id, connection);
                    }
                }
            }
        }
        None
    }

    /// The client closes a socket. The platform says so after the closing handshake, or gives up
    /// on it some time later.
    fn close_socket(&mut self, id: ContextId, connection: ConnectionId) {
        let after = if self.links[connection].carries {
            2 * self.setup.network_delay
        } else {
            2 * SECOND + self.rng.below(18 * SECOND)
        };
        self.client_closes(connection, true);
        self.send(id, after, Task::Socket(connection, Downstream::Closed(None)));
    }

    pub(crate) fn socket_message(
        &mut self,
        id: ContextId,
        connection: ConnectionId,
        message: Downstream,
    ) {
        let Some(host) = self.contexts[id].host.as_mut() else { return };
        let sockets = &mut host.transport.sockets;
        let Some(at) = sockets.iter().position(|(_, known)| *known == connection) else { return };
        let socket = sockets[at].0;
        let input = match message {
            Downstream::Opened => Input::Opened { socket },
            Downstream::Reply(reply) => Input::Message { socket, reply: *reply, bytes: 8 },
            Downstream::Closed(code) => {
                sockets.swap_remove(at);
                self.links[connection].client_open = false;
                let code = DisconnectCode(code.unwrap_or(ABNORMAL));
                Input::Closed { socket, code, reason: String::new() }
            }
        };
        self.transport_input(id, input);
    }
}
