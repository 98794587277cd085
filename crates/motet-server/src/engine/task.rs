//! The hub's task.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant as Clock;

use bytes::Bytes;
use motet_protocol::{Instant, Rng};
use motet_realtime::broker::{MemoryBroker, OpId};
use motet_realtime::hub::{
    ApiCallId, ApiError, ApiResult, EmbeddedHub, Hub, Input, Output, SessionId,
};
use motet_realtime::message::{Command, Disconnect, DisconnectCode};
use motet_realtime::server::{TokenClaims, TokenError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use super::delivery::Delivery;
use super::handle::{HubHandle, ToHub};
use crate::auth::Verifier;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::publication_log::PublicationLog;

/// Messages taken at a time. What they cause is delivered together.
const BATCH_MAX: usize = 256;

type Verdict = (OpId, Result<TokenClaims<Bytes>, TokenError>);
type ApiAnswer = oneshot::Sender<Result<ApiResult<Bytes>, ApiError>>;

/// Everything that the hub's task is made of.
pub struct Engine {
    /// The configuration.
    pub config: Arc<Config>,
    /// Checks tokens.
    pub verifier: Verifier,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// The audit log of accepted publications.
    pub publication_log: Option<PublicationLog>,
}

/// Starts the hub's task.
#[must_use]
pub fn spawn(engine: Engine) -> (HubHandle, tokio::task::JoinHandle<()>) {
    let (sender, inbox) = mpsc::unbounded_channel();
    let (verdict_sender, verdicts) = mpsc::unbounded_channel();
    let mut rng = Rng::from_seed(random_seed());
    let broker = MemoryBroker::new(rng.fork(), engine.config.broker_options());
    let hub = Hub::new(engine.config.hub_options(), rng);
    let task = Task {
        origin: Clock::now(),
        hub: EmbeddedHub::new(hub, broker),
        delivery: Delivery::new(engine.metrics.clone()),
        verifier: Arc::new(engine.verifier),
        verdict_sender,
        metrics: engine.metrics,
        publication_log: engine.publication_log,
        api_calls: HashMap::new(),
        next_api_call: 0,
    };
    let running = tokio::spawn(task.run(inbox, verdicts));
    (HubHandle::new(sender), running)
}

struct Task {
    origin: Clock,
    hub: EmbeddedHub<Bytes>,
    delivery: Delivery,
    verifier: Arc<Verifier>,
    verdict_sender: mpsc::UnboundedSender<Verdict>,
    metrics: Arc<Metrics>,
    publication_log: Option<PublicationLog>,
    api_calls: HashMap<ApiCallId, ApiAnswer>,
    next_api_call: u64,
}

impl Task {
    async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<ToHub>,
        mut verdicts: mpsc::UnboundedReceiver<Verdict>,
    ) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let due = self.hub.next_timeout();
            let wake_at = due.map(|due| self.clock_time(due));
            tokio::select! {
                received = inbox.recv_many(&mut batch, BATCH_MAX) => {
                    if received == 0 {
                        break;
                    }
                }
                Some((op, verdict)) = verdicts.recv() => {
                    self.input(Input::Verified(op, verdict));
                }
                () = sleep_until(wake_at.unwrap_or_else(tokio::time::Instant::now)),
                    if wake_at.is_some() =>
                {
                    self.input(Input::Timeout);
                }
            }
            for message in batch.drain(..) {
                self.take(message);
            }
            self.settle();
        }
        if let Some(log) = self.publication_log.take() {
            log.close().await;
        }
    }

    fn take(&mut self, message: ToHub) {
        match message {
            ToHub::Open { session, outgoing, frame_pings } => {
                self.metrics.connections_opened.inc();
                self.delivery.add(session, outgoing);
                self.input(Input::Open(session));
                if frame_pings {
                    self.input(Input::FramePings(session));
                }
            }
            ToHub::FramePong(session) => self.input(Input::FramePong(session)),
            ToHub::Commands { session, commands, bytes } => {
                self.take_commands(session, commands);
                if let Some(outgoing) = self.delivery.find(session) {
                    outgoing.taken_by_hub(bytes);
                }
            }
            ToHub::Malformed(session) => self.input(Input::Malformed(session)),
            ToHub::Closed(session) => {
                self.metrics.connections_closed.inc();
                self.delivery.remove(session);
                self.input(Input::Closed(session));
            }
            ToHub::Api(request, answer) => {
                self.next_api_call += 1;
                let call = ApiCallId(self.next_api_call);
                self.api_calls.insert(call, answer);
                self.input(Input::Api(call, *request));
            }
            ToHub::Stats(answer) => {
                // An error says that the asker has gone.
                answer.send(self.hub.stats()).ok();
            }
            ToHub::Shutdown(answer) => {
                self.input(Input::Shutdown);
                answer.send(()).ok();
            }
        }
    }

    fn take_commands(&mut self, session: SessionId, commands: Vec<Command<Bytes>>) {
        self.metrics.commands_received.inc_by(u64::try_from(commands.len()).unwrap_or(u64::MAX));
        for command in commands {
            self.input(Input::Command(session, command));
        }
    }

    fn input(&mut self, input: Input<Bytes>) {
        let now = self.now();
        self.hub.handle(now, input);
        while let Some(output) = self.hub.poll_output(now) {
            self.output(output);
        }
    }

    fn output(&mut self, output: Output<Bytes>) {
        match output {
            Output::Reply(session, reply) => self.delivery.reply(session, &reply),
            Output::Fanout(push, to) => self.delivery.fan_out(push, to),
            Output::FramePing(session) => self.delivery.ping(session),
            Output::Close(session, disconnect) => self.delivery.close(session, disconnect),
            Output::Verify { op, kind, token } => {
                let (verifier, sender) = (self.verifier.clone(), self.verdict_sender.clone());
                tokio::spawn(async move {
                    let verdict = verifier.verify(kind, &token).await;
                    // An error says that the server is stopping.
                    sender.send((op, verdict)).ok();
                });
            }
            Output::Broker(_) => unreachable!("the embedded hub answers its broker's requests"),
            Output::ApiReply(call, result) => {
                if let Some(answer) = self.api_calls.remove(&call) {
                    // An error says that the caller has gone.
                    answer.send(result).ok();
                }
            }
            Output::Accepted { channel, position, data } => {
                self.metrics.publications_accepted.inc();
                if let Some(log) = &mut self.publication_log {
                    log.append(&channel, position.as_ref(), &data);
                }
            }
        }
    }

    /// Delivers what is left, and closes whom it could not be delivered to.
    fn settle(&mut self) {
        self.delivery.flush();
        for failed in self.delivery.take_failed() {
            let input = if failed.code == DisconnectCode::SLOW {
                Input::Slow(failed.session)
            } else {
                let disconnect = Disconnect::from(failed.code);
                self.delivery.close(failed.session, disconnect);
                Input::Closed(failed.session)
            };
            self.input(input);
        }
        self.delivery.flush();
    }

    fn now(&self) -> Instant {
        let micros = self.origin.elapsed().as_micros();
        Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    fn clock_time(&self, instant: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.origin + (instant - Instant::ZERO))
    }
}

/// A seed from the system's source of randomness.
fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("the system has a source of randomness");
    seed
}
