//! A small client for measurements with very many connections: Centrifuge JSON over a WebSocket.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::frame::{self, Decoder};

/// How long a connection may take to be a WebSocket.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 4_096;

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    decoder: Decoder,
    frame: Vec<u8>,
    lines: VecDeque<String>,
    pings: u64,
}

impl Client {
    /// Connects and sends commands, a JSON object a line.
    pub(crate) async fn open(address: SocketAddr, commands: &str) -> Result<Self> {
        let opening = async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (decoder, frame, lines) = (Decoder::default(), Vec::new(), VecDeque::new());
            let mut client = Self { stream, decoder, frame, lines, pings: 0 };
            client.upgrade(address).await?;
            client.send(commands).await?;
            anyhow::Ok(client)
        };
        timeout(CONNECT_LIMIT, opening).await.context("the connection took too long")?
    }

    /// Pings so far; each was answered.
    pub(crate) fn pings(&self) -> u64 {
        self.pings
    }

    pub(crate) async fn send(&mut self, commands: &str) -> Result<()> {
        let mut out = Vec::new();
        frame::append_text(&mut out, commands.as_bytes());
        Ok(self.stream.write_all(&out).await?)
    }

    /// The next message, pings included. Dropping the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<String> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                if line == "{}" {
                    self.pings += 1;
                    self.send("{}").await?;
                }
                return Ok(line);
            }
            let mut part = [0; READ_BYTES];
            let count = self.stream.read(&mut part).await?;
            if count == 0 {
                bail!("the server closed the connection");
            }
            self.feed(&part[..count])?;
        }
    }

    async fn upgrade(&mut self, address: SocketAddr) -> Result<()> {
        self.stream.write_all(frame::upgrade(address.port()).as_bytes()).await?;
        let mut answer = Vec::new();
        loop {
            let mut part = [0; READ_BYTES];
            let count = self.stream.read(&mut part).await?;
            if count == 0 {
                bail!("the server closed the connection before it was a WebSocket");
            }
            answer.extend_from_slice(&part[..count]);
            if let Some(end) = frame::upgraded(&answer)? {
                return self.feed(&answer[end..]);
            }
        }
    }

    fn feed(&mut self, mut input: &[u8]) -> Result<()> {
        while let Some(piece) = self.decoder.next(&mut input)? {
            self.frame.extend_from_slice(piece.bytes);
            if !piece.ends {
                continue;
            }
            let text = std::str::from_utf8(&self.frame).context("a text frame is UTF-8")?;
            self.lines.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
            self.frame.clear();
        }
        Ok(())
    }
}
