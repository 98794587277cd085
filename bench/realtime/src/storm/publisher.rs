//! Publishes to all channels in turn, and knows what the server acknowledged.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep, timeout};

use crate::client::Client;

/// Messages a second over all channels.
const PER_SECOND: u32 = 100;
const CONNECT_AGAIN: Duration = Duration::from_millis(20);
/// How long the last acknowledgements may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A message that the server accepted.
pub(super) struct Acknowledged {
    pub(super) channel: usize,
    /// Unique over all channels.
    pub(super) number: u32,
    /// Which of the server's processes accepted it, in their order.
    pub(super) server: u32,
}

/// The publishing task.
pub(super) struct Publisher {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Vec<Acknowledged>>>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    id: u32,
    error: Option<serde_json::Value>,
}

impl Publisher {
    pub(super) fn start(address: SocketAddr, channels: usize) -> Self {
        let (stop, stopped) = oneshot::channel();
        let state = State {
            address,
            channels,
            last: 0,
            under_way: HashMap::new(),
            done: Vec::new(),
            server: 0,
        };
        Self { stop, task: tokio::spawn(state.run(stopped)) }
    }

    /// Stops publishing; gives what was acknowledged.
    pub(super) async fn stop(self) -> Result<Vec<Acknowledged>> {
        self.stop.send(()).ok();
        self.task.await.context("the publisher ended early")?
    }
}

struct State {
    address: SocketAddr,
    channels: usize,
    last: u32,
    /// Channel by command id of what is not answered yet; the id is the message's number.
    under_way: HashMap<u32, usize>,
    done: Vec<Acknowledged>,
    server: u32,
}

impl State {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) -> Result<Vec<Acknowledged>> {
        let mut ticks = interval(Duration::from_secs(1) / PER_SECOND);
        let mut client = self.connect().await;
        loop {
            let outcome = tokio::select! {
                _ = &mut stopped => break,
                message = client.next() => message.and_then(|line| self.answered(&line)),
                _ = ticks.tick() => self.publish(&mut client).await,
            };
            if outcome.is_err() {
                // What was not answered may or may not have been accepted: nobody is owed it.
                self.under_way.clear();
                self.server += 1;
                client = self.connect().await;
            }
        }
        let due = Instant::now() + ANSWER_LIMIT;
        while !self.under_way.is_empty() {
            let line = timeout(due - Instant::now(), client.next())
                .await
                .context("publications were not answered")??;
            self.answered(&line)?;
        }
        Ok(self.done)
    }

    async fn connect(&self) -> Client {
        loop {
            // Number 1 is the connect command's.
            match Client::open(self.address, "{\"id\":1,\"connect\":{}}").await {
                Ok(client) => return client,
                Err(_) => sleep(CONNECT_AGAIN).await,
            }
        }
    }

    async fn publish(&mut self, client: &mut Client) -> Result<()> {
        self.last += 1;
        let number = self.last + 1;
        let channel = number as usize % self.channels;
        self.under_way.insert(number, channel);
        client
            .send(&format!(
                "{{\"id\":{number},\"publish\":{{\"channel\":\"storm:{channel}\",\"data\":{{\"n\":{number}}}}}}}"
            ))
            .await
    }

    fn answered(&mut self, line: &str) -> Result<()> {
        let answer: Answer = serde_json::from_str(line)?;
        if let Some(channel) = self.under_way.remove(&answer.id)
            && answer.error.is_none()
        {
            self.done.push(Acknowledged { channel, number: answer.id, server: self.server });
        }
        Ok(())
    }
}
