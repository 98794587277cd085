//! The application's handlers, and handing messages to them.

use std::rc::Rc;

use litemap::LiteMap;
use motet_cluster::client::{Delivery, HandlerId, Recipients};
use motet_protocol::StreamEpoch;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// `(payload, offset, epoch, replayed, size, messageId, timestampMs)`.
    pub type Handler;

    // Plain arguments: an object per message would cost as much as the rest of the delivery.
    #[wasm_bindgen(method, catch, js_name = call)]
    fn call(
        this: &Handler,
        context: &JsValue,
        payload: &JsValue,
        offset: f64,
        epoch: &JsValue,
        replayed: bool,
        size: u32,
        message_id: Option<&str>,
        timestamp_ms: Option<f64>,
    ) -> Result<(), JsValue>;
}

/// Handlers of one topic, replaced as a whole so that a delivery under way keeps its own.
type Present = Rc<Vec<(HandlerId, Handler)>>;

#[derive(Default)]
pub(super) struct Handlers {
    topics: LiteMap<String, Topic>,
    topic_of: LiteMap<HandlerId, String>,
    last_id: HandlerId,
}

#[derive(Default)]
struct Topic {
    present: Present,
    /// The stream epoch as a JavaScript string, made once instead of per message.
    epoch: Option<(StreamEpoch, JsValue)>,
}

/// A delivery that has begun: who gets it is settled.
pub(super) struct Begun {
    present: Present,
    epoch: JsValue,
}

impl Handlers {
    /// Adds a handler and gives its id, which is in use no more than once.
    pub(super) fn add(&mut self, topic: &str, handler: Handler) -> HandlerId {
        self.last_id = self.last_id.wrapping_add(1);
        let entry = self.topics.entry(topic.to_owned()).or_default();
        let mut present = others(&entry.present, self.last_id);
        present.push((self.last_id, handler));
        entry.present = Rc::new(present);
        self.topic_of.insert(self.last_id, topic.to_owned());
        self.last_id
    }

    /// Takes a handler away; `false` when it is not there.
    pub(super) fn remove(&mut self, id: HandlerId) -> bool {
        let Some(topic) = self.topic_of.remove(&id) else { return false };
        if let Some(entry) = self.topics.get_mut(&topic) {
            let kept = others(&entry.present, id);
            if kept.is_empty() {
                self.topics.remove(&topic);
            } else {
                entry.present = Rc::new(kept);
            }
        }
        true
    }

    pub(super) fn clear(&mut self) {
        self.topics.clear();
        self.topic_of.clear();
    }

    /// Settles who gets a message of this topic; `None` when nobody is there.
    pub(super) fn begin(&mut self, delivery: &Delivery<JsValue>) -> Option<Begun> {
        let topic = self.topics.get_mut(&delivery.topic)?;
        let position = &delivery.position;
        let epoch = match &topic.epoch {
            Some((known, text)) if *known == position.epoch => text.clone(),
            _ => {
                let text = JsValue::from_str(position.epoch.as_str());
                topic.epoch = Some((position.epoch.clone(), text.clone()));
                text
            }
        };
        Some(Begun { present: topic.present.clone(), epoch })
    }
}

fn others(present: &Present, without: HandlerId) -> Vec<(HandlerId, Handler)> {
    let kept = present.iter().filter(|(id, _)| *id != without);
    kept.map(|(id, handler)| (*id, Handler::from(JsValue::from(handler)))).collect()
}

impl Begun {
    /// Calls the handlers. `thrown` hears what one of them threw; the others are served.
    pub(super) fn deliver(self, delivery: &Delivery<JsValue>, thrown: impl Fn(JsValue)) {
        for (id, handler) in self.present.iter() {
            if matches!(delivery.to, Recipients::One(only) if only != *id) {
                continue;
            }
            let outcome = handler.call(
                &JsValue::UNDEFINED,
                &delivery.payload,
                delivery.position.offset as f64,
                &self.epoch,
                delivery.replayed,
                delivery.size,
                delivery.message_id.as_deref(),
                delivery.timestamp_ms.map(|ms| ms as f64),
            );
            if let Err(error) = outcome {
                thrown(error);
            }
        }
    }
}
