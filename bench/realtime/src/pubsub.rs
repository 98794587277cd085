//! What a publisher and a subscriber say to each of the systems.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::counter::{Counter, Fixed};
use crate::frame::{self, Decoder};

/// Bytes of a published payload.
pub(crate) const PAYLOAD_BYTES: usize = 128;
const CHANNEL: &str = "bench";
/// How long a server may take to answer a command of the set-up.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Commands in one WebSocket message, which may have 64 KiB.
const COMMANDS_PER_FRAME: u64 = 250;

/// A protocol spoken over one TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Motet,
    Nats,
    Redis,
}

impl Protocol {
    /// A connection that is subscribed.
    pub(crate) fn subscriber(self, address: SocketAddr) -> Result<(TcpStream, Counter)> {
        let mut stream = connect(address)?;
        let counter = match self {
            Self::Motet => {
                let commands = format!(
                    "{{\"id\":1,\"connect\":{{}}}}\n{{\"id\":2,\"subscribe\":{{\"channel\":\"{CHANNEL}\"}}}}"
                );
                centrifuge(&mut stream, address, &commands, "\"id\":2")?;
                Counter::Motet(Box::default())
            }
            Self::Nats => {
                nats(&mut stream, &format!("SUB {CHANNEL} 1\r\n"))?;
                Counter::Nats(Box::default())
            }
            Self::Redis => {
                stream.write_all(format!("SUBSCRIBE {CHANNEL}\r\n").as_bytes())?;
                expect(&mut stream, ":1\r\n")?;
                Counter::Redis(Fixed::new(redis_message_bytes()))
            }
        };
        Ok((stream, counter))
    }

    /// A connection that may publish.
    pub(crate) fn publisher(self, address: SocketAddr) -> Result<TcpStream> {
        let mut stream = connect(address)?;
        match self {
            Self::Motet => {
                centrifuge(&mut stream, address, "{\"id\":1,\"connect\":{}}", "\"id\":1")?;
            }
            Self::Nats => nats(&mut stream, "")?,
            Self::Redis => {
                stream.write_all(b"PING\r\n")?;
                expect(&mut stream, "+PONG\r\n")?;
            }
        }
        Ok(stream)
    }

    /// Appends publications, the first one numbered `from` (from 1).
    pub(crate) fn append_publications(self, out: &mut Vec<u8>, from: u64, count: u64) {
        match self {
            Self::Motet => {
                for first in (from..from + count).step_by(COMMANDS_PER_FRAME as usize) {
                    let end = (first + COMMANDS_PER_FRAME).min(from + count);
                    let commands: Vec<_> = (first..end).map(centrifuge_publication).collect();
                    frame::append_text(out, commands.join("\n").as_bytes());
                }
            }
            Self::Nats => {
                let command = format!("PUB {CHANNEL} {PAYLOAD_BYTES}\r\n{}\r\n", plain_payload());
                (0..count).for_each(|_| out.extend_from_slice(command.as_bytes()));
            }
            Self::Redis => {
                let command = format!(
                    "*3\r\n$7\r\nPUBLISH\r\n${}\r\n{CHANNEL}\r\n${PAYLOAD_BYTES}\r\n{}\r\n",
                    CHANNEL.len(),
                    plain_payload()
                );
                (0..count).for_each(|_| out.extend_from_slice(command.as_bytes()));
            }
        }
    }

    /// The answer to a ping.
    pub(crate) fn pong(self) -> Vec<u8> {
        let mut pong = Vec::new();
        match self {
            Self::Motet => frame::append_text(&mut pong, b"{}"),
            Self::Nats => pong.extend_from_slice(b"PONG\r\n"),
            Self::Redis => {}
        }
        pong
    }
}

fn centrifuge_publication(id: u64) -> String {
    let text = "x".repeat(PAYLOAD_BYTES - 2);
    // Number 1 was the connect command.
    let id = id + 1;
    format!("{{\"id\":{id},\"publish\":{{\"channel\":\"{CHANNEL}\",\"data\":\"{text}\"}}}}")
}

fn plain_payload() -> String {
    "x".repeat(PAYLOAD_BYTES)
}

fn redis_message_bytes() -> usize {
    let head =
        format!("*3\r\n$7\r\nmessage\r\n${}\r\n{CHANNEL}\r\n${PAYLOAD_BYTES}\r\n", CHANNEL.len());
    head.len() + PAYLOAD_BYTES + 2
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)
        .with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    Ok(stream)
}

fn centrifuge(
    stream: &mut TcpStream,
    address: SocketAddr,
    commands: &str,
    until: &str,
) -> Result<()> {
    stream.write_all(frame::upgrade(address.port()).as_bytes())?;
    let answer = expect(stream, "\r\n\r\n")?;
    frame::upgraded(&answer)?;
    let mut out = Vec::new();
    frame::append_text(&mut out, commands.as_bytes());
    stream.write_all(&out)?;
    let answer = whole_frame(stream, until)?;
    if memchr::memmem::find(&answer, b"\"error\"").is_some() {
        bail!("the server refused a command: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

/// Reads frames until one has ended that holds the text.
fn whole_frame(stream: &mut TcpStream, text: &str) -> Result<Vec<u8>> {
    let mut decoder = Decoder::default();
    let mut answer = Vec::new();
    let mut part = [0; 4_096];
    loop {
        let count = stream.read(&mut part).with_context(|| format!("waiting for {text:?}"))?;
        if count == 0 {
            bail!("the server closed the connection instead of sending {text:?}");
        }
        let mut input = &part[..count];
        while let Some(piece) = decoder.next(&mut input)? {
            answer.extend_from_slice(piece.bytes);
            if piece.ends && memchr::memmem::find(&answer, text.as_bytes()).is_some() {
                return Ok(answer);
            }
        }
    }
}

fn nats(stream: &mut TcpStream, commands: &str) -> Result<()> {
    expect(stream, "\r\n")?;
    let greeting = format!("CONNECT {{\"verbose\":false}}\r\n{commands}PING\r\n");
    stream.write_all(greeting.as_bytes())?;
    expect(stream, "PONG\r\n")?;
    Ok(())
}

/// Reads until the text is there. Nothing else may follow it: the set-up publishes nothing.
fn expect(stream: &mut TcpStream, text: &str) -> Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut part = [0; 4_096];
    while memchr::memmem::find(&answer, text.as_bytes()).is_none() {
        let count = stream.read(&mut part).with_context(|| format!("waiting for {text:?}"))?;
        if count == 0 {
            bail!("the server closed the connection instead of sending {text:?}");
        }
        answer.extend_from_slice(&part[..count]);
    }
    Ok(answer)
}
