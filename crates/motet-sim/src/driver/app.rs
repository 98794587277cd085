//! The application in a page: handlers, publications, tokens. What it sees is what judges see.

use core::time::Duration;

use motet_cluster::client::{ClientInput, ClientOutput, ClientStatus, HandlerId, PublishCall};
use motet_protocol::CorrelationId;

use super::page::Page;
use crate::invariants::delivery::StreamKey;
use crate::world::World;
use crate::world::context::{AppCall, ContextId, Task};

/// Time a publication has.
const PUBLISH_DEADLINE: Duration = Duration::from_secs(8);

/// What the application of one page knows.
#[derive(Debug, Default)]
pub(crate) struct App {
    /// Its handlers, by topic index.
    pub(crate) handlers: Vec<(HandlerId, usize)>,
    last_handler: HandlerId,
    /// Publications that wait, oldest first.
    pub(crate) waiting: Vec<CorrelationId>,
    pub(crate) closing: bool,
    pub(crate) closed: bool,
    pub(crate) suspended: bool,
}

impl App {
    /// Whether somebody listens on this topic.
    pub(crate) fn listens(&self, topic: usize) -> bool {
        self.handlers.iter().any(|(_, subscribed)| *subscribed == topic)
    }
}

impl World {
    /// The application of a fresh page subscribes what its tab wants.
    pub(crate) fn app_load(&mut self, id: ContextId) {
        for (topic, replay) in self.tabs[self.contexts[id].tab].wanted.clone() {
            self.app_call(id, AppCall::Subscribe(topic, replay));
        }
    }

    pub(crate) fn app_call(&mut self, id: ContextId, call: AppCall) {
        let Some(page) = self.contexts[id].page.as_mut() else { return };
        if page.client.is_none() || page.app.closing {
            return;
        }
        match call {
            AppCall::Subscribe(topic, replay) => {
                page.app.last_handler += 1;
                let handler = page.app.last_handler;
                page.app.handlers.push((handler, topic));
                self.checks.subscribed(StreamKey { page: id, topic });
                let topic = self.setup.topics[topic].name.clone();
                self.page_input(id, ClientInput::Subscribe { handler, topic, replay });
            }
            AppCall::Unsubscribe(topic) => {
                let Some(at) = page.app.handlers.iter().position(|(_, known)| *known == topic)
                else {
                    return;
                };
                let (handler, _) = page.app.handlers.remove(at);
                if !page.app.listens(topic) {
                    self.checks.unsubscribed(StreamKey { page: id, topic });
                }
                self.page_input(id, ClientInput::Unsubscribe { handler });
            }
            AppCall::Publish(topic, count) => {
                for _ in 0..count {
                    self.app_publish(id, topic);
                }
            }
            AppCall::Abort => {
                if let Some(correlation) = page.app.waiting.first().copied() {
                    self.page_input(id, ClientInput::Abort { correlation });
                }
            }
            AppCall::Close => {
                page.app.closing = true;
                for topic in 0..self.setup.topics.len() {
                    self.checks.unsubscribed(StreamKey { page: id, topic });
                }
                self.checks.closing(id);
                self.page_input(id, ClientInput::Close);
            }
            AppCall::Retry => self.page_input(id, ClientInput::Retry),
            AppCall::Token(valid, topic) => {
                let topic = topic.map(|topic| self.setup.topics[topic].name.clone());
                let token = Some(if valid { "valid" } else { "stale" }.to_owned());
                self.page_input(id, ClientInput::Token { topic, token });
            }
        }
    }

    fn app_publish(&mut self, id: ContextId, topic: usize) {
        self.last_payload += 1;
        let payload = self.last_payload;
        let correlation = CorrelationId::from_bits(payload);
        if let Some(page) = self.contexts[id].page.as_mut() {
            page.app.waiting.push(correlation);
        }
        self.checks.publishing(id, topic, payload);
        let call = PublishCall {
            topic: self.setup.topics[topic].name.clone(),
            payload,
            size: 8,
            message_id: None,
            timestamp_ms: None,
            idempotency_key: None,
            deadline: Some(PUBLISH_DEADLINE),
        };
        self.page_input(id, ClientInput::Publish { correlation, call });
    }

    /// What the client tells the application.
    pub(crate) fn app_output(&mut self, id: ContextId, page: &mut Page, output: ClientOutput<u64>) {
        match output {
            ClientOutput::Deliver(delivery) => {
                let Some(topic) = self.topic_index(&delivery.topic) else { return };
                let heard = page.app.listens(topic);
                let key = StreamKey { page: id, topic };
                let line = self.checks.delivered(key, &delivery, heard, self.now);
                self.note(|| format!("page {id} {line}"));
            }
            ClientOutput::Gap { topic, gap } => {
                let Some(topic) = self.topic_index(&topic) else { return };
                self.note(|| format!("page {id} topic {topic} gap {gap:?}"));
                let kept = self.kept(topic);
                self.checks.gap(StreamKey { page: id, topic }, &gap, kept.as_ref(), self.now);
            }
            ClientOutput::Settled { correlation, result } => {
                page.app.waiting.retain(|waiting| *waiting != correlation);
                self.note(|| format!("page {id} publication {correlation} {result:?}"));
                self.checks.settled(correlation.bits(), &result, self.now);
            }
            ClientOutput::Subscription { topic, state } => {
                let Some(topic) = self.topic_index(&topic) else { return };
                self.note(|| format!("page {id} topic {topic} {state:?}"));
                self.checks.subscription(StreamKey { page: id, topic }, &state, self.now);
            }
            ClientOutput::Status(status) => {
                self.note(|| format!("page {id} {status:?}"));
                if status == ClientStatus::Closed {
                    page.app.closed = true;
                    self.checks.calls.closed(id);
                }
                page.app.suspended = status == ClientStatus::Suspended;
            }
            ClientOutput::TokenWanted { topic } => {
                let valid = self.tokens_valid;
                let topic = topic.and_then(|topic| self.topic_index(&topic));
                let thinking = 1_000 + self.rng.below(40_000);
                self.send(id, thinking, Task::App(AppCall::Token(valid, topic)));
            }
            ClientOutput::Error { source, error } => {
                self.note(|| format!("page {id} {source:?} {error:?}"));
            }
            _ => {}
        }
    }

    /// The index of a topic by its name.
    pub(crate) fn topic_index(&self, name: &str) -> Option<usize> {
        self.setup.topics.iter().position(|topic| topic.name == name)
    }
}
