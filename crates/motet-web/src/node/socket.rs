//! The node's WebSocket: opens, frames, closes.

use core::cell::RefCell;
use std::rc::Rc;

use js_sys::{ArrayBuffer, JsString};
use motet_protocol::Error;
use motet_realtime::client::{Input, SocketId};
use motet_realtime::codec::{Framing, Limits};
use motet_realtime::message::{Command, DisconnectCode, Reply};
use wasm_bindgen::prelude::*;
use web_sys::{BinaryType, CloseEvent, MessageEvent, WebSocket};

use super::{json, protobuf};
use crate::platform::Callback;

const PROTOBUF: &str = "centrifuge-protobuf";
/// What platforms report for a connection that never opened or broke off.
const ABNORMAL: DisconnectCode = DisconnectCode(1006);

/// Something a socket told.
pub(super) struct SocketNews {
    socket: SocketId,
    kind: Kind,
}

enum Kind {
    Opened,
    Frame(JsValue),
    Closed(DisconnectCode, String),
}

impl SocketNews {
    /// Hands on what it means for the transport.
    pub(super) fn inputs(self, mut push: impl FnMut(Input<JsValue>)) {
        let socket = self.socket;
        let each = |reply: Option<(Reply<JsValue>, u32)>| match reply {
            Some((reply, bytes)) => Input::Message { socket, reply, bytes },
            None => Input::Malformed { socket },
        };
        match self.kind {
            Kind::Opened => push(Input::Opened { socket }),
            Kind::Closed(code, reason) => push(Input::Closed { socket, code, reason }),
            Kind::Frame(frame) => {
                if let Some(text) = frame.dyn_ref::<JsString>()
                    && text.length() as usize <= Limits::REPLIES.frame_bytes_max
                {
                    json::for_each_reply(text, |reply| push(each(reply)));
                } else if let Some(bytes) = frame.dyn_ref::<ArrayBuffer>() {
                    protobuf::for_each_reply(bytes, |reply| push(each(reply)));
                } else {
                    push(Input::Malformed { socket });
                }
            }
        }
    }
}

/// The one socket of the transport.
pub(super) struct Sockets {
    url: String,
    protobuf: bool,
    hear: Rc<dyn Fn(SocketNews)>,
    framing: RefCell<Framing>,
    current: RefCell<Option<Socket>>,
}

struct Socket {
    id: SocketId,
    socket: WebSocket,
    _listeners: [Callback; 3],
}

impl Sockets {
    /// `message_size_limit` is what the server takes in one frame.
    pub(super) fn new(
        url: String,
        protobuf: bool,
        message_size_limit: usize,
        hear: impl Fn(SocketNews) + 'static,
    ) -> Self {
        let framing = RefCell::new(Framing::new(message_size_limit));
        Self { url, protobuf, hear: Rc::new(hear), framing, current: RefCell::new(None) }
    }

    /// Opens a socket; one before it that has not closed is abandoned.
    pub(super) fn open(&self, id: SocketId) {
        self.abandon();
        self.framing.borrow_mut().begin();
        let opened = if self.protobuf {
            WebSocket::new_with_str(&self.url, PROTOBUF)
        } else {
            WebSocket::new(&self.url)
        };
        match opened {
            Ok(socket) => *self.current.borrow_mut() = Some(self.listen(id, socket)),
            // The facade has checked the URL; a security policy may still refuse it.
            Err(_) => {
                let kind = Kind::Closed(ABNORMAL, String::new());
                (self.hear)(SocketNews { socket: id, kind });
            }
        }
    }

    fn listen(&self, id: SocketId, socket: WebSocket) -> Socket {
        let listener = |kind: fn(JsValue) -> Kind| {
            let hear = self.hear.clone();
            Callback::new(move |event| hear(SocketNews { socket: id, kind: kind(event) }))
        };
        let opened = listener(|_| Kind::Opened);
        let message = listener(|event| Kind::Frame(event.unchecked_into::<MessageEvent>().data()));
        let closed = listener(|event| {
            let event: CloseEvent = event.unchecked_into();
            Kind::Closed(DisconnectCode(event.code().into()), event.reason())
        });
        socket.set_binary_type(BinaryType::Arraybuffer);
        socket.set_onopen(Some(opened.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(message.as_ref().unchecked_ref()));
        // An error is always followed by a close.
        socket.set_onclose(Some(closed.as_ref().unchecked_ref()));
        Socket { id, socket, _listeners: [opened, message, closed] }
    }

    /// Writes commands, in as few frames as the server accepts. Returns those that were left out.
    pub(super) fn send(&self, id: SocketId, commands: Vec<Command<JsValue>>) -> Vec<(u32, Error)> {
        let current = self.current.borrow();
        let Some(current) = current.as_ref().filter(|current| current.id == id) else {
            return Vec::new();
        };
        let mut framing = self.framing.borrow_mut();
        // Sending throws only while a socket is opening; the transport sends after it has opened.
        // On a closing socket the browser drops what is sent, and the close is what the transport
        // hears.
        if self.protobuf {
            framing.pack(commands, protobuf::encode_command, |frame: Vec<u8>| {
                drop(current.socket.send_with_u8_array(&frame));
            })
        } else {
            framing.pack(
                commands,
                |command| json::encode_command(&command),
                |frame: String| drop(current.socket.send_with_str(&frame)),
            )
        }
    }

    /// The commands that the server did not take, when this news is that it has closed the
    /// connection for one.
    pub(super) fn refused(&self, news: &SocketNews) -> Vec<(SocketId, u32, Error)> {
        let current = self.current.borrow().as_ref().map(|current| current.id);
        match news.kind {
            Kind::Closed(DisconnectCode::MESSAGE_TOO_BIG, _) if current == Some(news.socket) => {
                let refused = self.framing.borrow_mut().refused();
                refused.into_iter().map(|(id, error)| (news.socket, id, error)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What the server refused for its size may be tried again.
    pub(super) fn forget_refusals(&self) {
        self.framing.borrow_mut().forget_refusals();
    }

    pub(super) fn close(&self, id: SocketId) {
        if let Some(current) = self.current.borrow().as_ref().filter(|current| current.id == id) {
            drop(current.socket.close());
        }
    }

    /// Closes the socket and hears no more of it.
    pub(super) fn abandon(&self) {
        if let Some(Socket { socket, .. }) = self.current.take() {
            socket.set_onopen(None);
            socket.set_onmessage(None);
            socket.set_onclose(None);
            drop(socket.close());
        }
    }
}
