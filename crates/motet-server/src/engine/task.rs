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

use super::delivery::{Cause, Delivery};
use super::handle::{EngineStats, HubHandle, ToHub};
use super::held::{Frame, Held};
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
        delivery: Delivery::new(engine.metrics.clone(), engine.config.client.queue_total_max_size),
        held: Held::default(),
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
    held: Held,
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
            while self.go_on() {
                self.settle();
            }
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
                self.take_commands(session, commands, bytes);
            }
            ToHub::GoOn(session) => self.held.look_at(session),
            ToHub::Malformed(session) => self.input(Input::Malformed(session)),
            ToHub::Closed(session) => {
                self.metrics.connections_closed.inc();
                self.delivery.remove(session);
                self.held.forget(session);
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
                answer.send(self.stats()).ok();
            }
            ToHub::Shutdown(answer) => {
                self.input(Input::Shutdown);
                answer.send(()).ok();
            }
        }
    }

    fn stats(&self) -> EngineStats {
        EngineStats {
            hub: self.hub.stats(),
            broker: self.hub.broker().stats(),
            waiting_bytes: self.delivery.waiting_bytes(),
        }
    }

    fn take_commands(&mut self, session: SessionId, commands: Vec<Command<Bytes>>, bytes: usize) {
        self.metrics.commands_received.inc_by(u64::try_from(commands.len()).unwrap_or(u64::MAX));
        let frame = Frame { commands: commands.into(), bytes };
        let frame = if self.held.holds(session) {
            Some(self.take_pongs(session, frame))
        } else {
            self.carry_out(session, frame)
        };
        if let Some(frame) = frame {
            self.held.push_back(session, frame);
        }
    }

    /// A pong overtakes the commands that wait: it says that the connection lives.
    fn take_pongs(&mut self, session: SessionId, mut frame: Frame) -> Frame {
        let pongs = frame.commands.iter().filter(|command| command.is_pong()).count();
        frame.commands.retain(|command| !command.is_pong());
        for _ in 0..pongs {
            self.input(Input::Command(session, Command::pong()));
        }
        frame
    }

    /// Carries out the commands of a frame. Returns what has to wait.
    fn carry_out(&mut self, session: SessionId, mut frame: Frame) -> Option<Frame> {
        while !frame.commands.is_empty() {
            let full = || self.delivery.find(session).is_some_and(|queue| queue.hold_commands());
            if self.hub.is_busy(session) || full() {
                return Some(self.take_pongs(session, frame));
            }
            let command = frame.commands.pop_front()?;
            self.input(Input::Command(session, command));
        }
        if let Some(outgoing) = self.delivery.find(session) {
            outgoing.taken_by_hub(frame.bytes);
        }
        None
    }

    /// Carries on with what waited and need not any more. False when there was nothing to look at.
    fn go_on(&mut self) -> bool {
        let ready = self.held.take_ready();
        let any = !ready.is_empty();
        for session in ready {
            let mut frames = self.held.take(session);
            while let Some(frame) = frames.pop_front() {
                if let Some(rest) = self.carry_out(session, frame) {
                    frames.push_front(rest);
                    self.held.put_back(session, frames);
                    break;
                }
            }
        }
        any
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
            Output::Reply(session, reply) => {
                self.delivery.reply(session, reply);
                self.held.look_at(session);
            }
            Output::Fanout(push, to) => self.delivery.fan_out(push, to),
            Output::FramePing(session) => self.delivery.ping(session),
            Output::Close(session, disconnect) => {
                self.held.forget(session);
                self.delivery.close(session, disconnect);
            }
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
            let input = match failed.cause {
                Cause::Slow => Input::Slow(failed.session),
                Cause::Unfit(channel) => Input::Unfit(failed.session, channel),
                Cause::UnfitAnswer => {
                    let disconnect = Disconnect::from(DisconnectCode::INAPPROPRIATE_PROTOCOL);
                    self.held.forget(failed.session);
                    self.delivery.close(failed.session, disconnect);
                    Input::Closed(failed.session)
                }
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
