//! The opening exchange of a session.

use std::collections::BTreeMap;

use super::{Features, SubscribeRequest, SubscribeResult};

/// Opens a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest<P> {
    /// Connection token; empty where the server asks for none.
    pub token: String,
    /// Application data for the server.
    pub data: Option<P>,
    /// Server-side subscriptions to recover, by channel.
    pub subs: BTreeMap<String, SubscribeRequest<P>>,
    /// Name of the client software.
    pub name: String,
    /// Version of the client software.
    pub version: String,
    /// Headers that the client could not send with the upgrade request.
    pub headers: BTreeMap<String, String>,
    /// Capability bits of the client.
    pub flag: i64,
    /// Features of the Motet extension that the client understands.
    pub motet: Option<Features>,
}

impl<P> Default for ConnectRequest<P> {
    fn default() -> Self {
        Self {
            token: String::new(),
            data: None,
            subs: BTreeMap::new(),
            name: String::new(),
            version: String::new(),
            headers: BTreeMap::new(),
            flag: 0,
            motet: None,
        }
    }
}

/// The session is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectResult<P> {
    /// Id of this connection.
    pub client: String,
    /// The server's version.
    pub version: String,
    /// Whether the connection expires unless it is refreshed by the client.
    pub expires: bool,
    /// Seconds until it does.
    pub ttl: u32,
    /// Application data for the client.
    pub data: Option<P>,
    /// Server-side subscriptions, by channel.
    pub subs: BTreeMap<String, SubscribeResult<P>>,
    /// Seconds between the server's pings; 0 when it sends none.
    pub ping: u32,
    /// Whether pings are to be answered.
    pub pong: bool,
    /// Session id; only on emulated transports.
    pub session: String,
    /// Node id; only on emulated transports.
    pub node: String,
    /// The server's wall clock, milliseconds since 1970; 0 when it is not told.
    pub time: i64,
    /// Features of the Motet extension that are in force on this connection.
    pub motet: Option<Features>,
}

impl<P> Default for ConnectResult<P> {
    fn default() -> Self {
        Self {
            client: String::new(),
            version: String::new(),
            expires: false,
            ttl: 0,
            data: None,
            subs: BTreeMap::new(),
            ping: 0,
            pong: false,
            session: String::new(),
            node: String::new(),
            time: 0,
            motet: None,
        }
    }
}
