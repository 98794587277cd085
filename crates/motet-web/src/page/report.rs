//! Outputs that only tell: each becomes one call of a hook.

use motet_cluster::client::{ClientOutput, ClientStatus, ErrorSource, Gap, SubscriptionState};
use motet_cluster::frame::GapReason;
use motet_protocol::{Error, NodeId, Position};
use wasm_bindgen::prelude::*;

use super::hooks::Hooks;
use crate::error_object::to_object;

const NOTHING: JsValue = JsValue::UNDEFINED;

/// Tells the facade. A hook that throws loses the news and nothing else.
pub(super) fn tell(hooks: &Hooks, output: ClientOutput<JsValue>) {
    let _ = match output {
        ClientOutput::Gap { topic, gap } => tell_gap(hooks, &topic, &gap),
        ClientOutput::Settled { correlation, result } => {
            let error = result.map_or_else(|error| to_object(&error), |()| NOTHING);
            hooks.settled(correlation.bits() as u32, &error)
        }
        ClientOutput::Subscription { topic, state } => tell_subscription(hooks, &topic, &state),
        ClientOutput::Status(status) => tell_status(hooks, &status),
        ClientOutput::TokenWanted { topic } => hooks.token_wanted(topic.as_deref()),
        ClientOutput::Error { source, error } => {
            hooks.failed(source_number(source), &to_object(&error), &NOTHING)
        }
        _ => Ok(()),
    };
}

pub(super) fn failed(hooks: &Hooks, source: ErrorSource, error: &Error, cause: &JsValue) {
    let _ = hooks.failed(source_number(source), &to_object(error), cause);
}

fn tell_gap(hooks: &Hooks, topic: &str, gap: &Gap) -> Result<(), JsValue> {
    let reason = match gap.reason {
        GapReason::NotRetained => 0,
        GapReason::StreamReset => 1,
        GapReason::OwnerChanged => 2,
        GapReason::ConnectionLost => 3,
        GapReason::RepairTimeout => 4,
        GapReason::Overflow => 5,
    };
    hooks.gap(
        topic,
        gap.from.epoch.as_str(),
        gap.from.offset as f64,
        gap.to.as_ref().map(|to| to.epoch.as_str()),
        gap.to.as_ref().map_or(f64::NAN, |to| to.offset as f64),
        reason,
    )
}

/// A message whose payload the node could not hand over is a gap of its own.
pub(super) fn too_deep(hooks: &Hooks, topic: &str, at: &Position) {
    const TOO_DEEP: u8 = 6;
    let (epoch, offset) = (at.epoch.as_str(), at.offset as f64);
    let _ = hooks.gap(topic, epoch, offset - 1.0, Some(epoch), offset, TOO_DEEP);
}

fn tell_subscription(hooks: &Hooks, topic: &str, state: &SubscriptionState) -> Result<(), JsValue> {
    match state {
        SubscriptionState::Pending => hooks.subscription(topic, 0, None, 0.0, &NOTHING),
        SubscriptionState::Ready(position) => {
            let epoch = Some(position.epoch.as_str());
            hooks.subscription(topic, 1, epoch, position.offset as f64, &NOTHING)
        }
        SubscriptionState::Recovering => hooks.subscription(topic, 2, None, 0.0, &NOTHING),
        SubscriptionState::Failed(error) => {
            hooks.subscription(topic, 3, None, 0.0, &to_object(error))
        }
    }
}

fn tell_status(hooks: &Hooks, status: &ClientStatus) -> Result<(), JsValue> {
    match status {
        ClientStatus::Idle => hooks.status(0, None, &NOTHING),
        ClientStatus::Starting => hooks.status(1, None, &NOTHING),
        ClientStatus::Running { node } => hooks.status(2, Some(node.to_hex()), &NOTHING),
        ClientStatus::Suspended => hooks.status(3, None, &NOTHING),
        ClientStatus::Recovering => hooks.status(4, None, &NOTHING),
        ClientStatus::Degraded { node, error } => {
            hooks.status(5, node.map(NodeId::to_hex), &to_object(error))
        }
        ClientStatus::Failed(error) => hooks.status(6, None, &to_object(error)),
        ClientStatus::Closing => hooks.status(7, None, &NOTHING),
        ClientStatus::Closed => hooks.status(8, None, &NOTHING),
    }
}

const fn source_number(source: ErrorSource) -> u8 {
    match source {
        ErrorSource::Dispatch => 0,
        ErrorSource::Transport => 1,
        ErrorSource::Coordination => 2,
        ErrorSource::Config => 3,
        ErrorSource::Storage => 4,
    }
}
