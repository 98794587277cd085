//! What each frame is read from: its fields, in the order of their numbers.

use core::num::NonZeroU64;

use motet_protocol::{
    CallId, ClientId, Error, ErrorCode, FENCE_NUMBER_MAX, Fence, Generation, NodeId, Position,
    RouteFence, StreamEpoch, TabId,
};

use super::{Compact, Reader};
use crate::frame::{
    Frame, GapReason, Heard, JoinFrame, JoinedFrame, MessageHead, PublishFrame, ReportedRoute,
    ToNode, ToPage,
};
use crate::table::{Member, Route, RouteState, TransportStatus};

/// An array with a field at each place.
macro_rules! structs {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl Compact for $name {
            fn read(input: &mut Reader<'_>) -> Self {
                let mut left = input.array();
                let value = Self { $($field: input.field(&mut left)),* };
                input.pass(left);
                value
            }
        }
    )*};
}

/// An array of the variant's number and an array with its fields. The value after `else` stands
/// for a variant that is not known here.
macro_rules! enums {
    ($($name:ident { $($number:literal $variant:ident { $($field:tt),* $(,)? })* else $other:expr })*) => {$(
        impl Compact for $name {
            fn read(input: &mut Reader<'_>) -> Self {
                let mut outer = input.array();
                let number: u32 = input.field(&mut outer);
                if outer == 0 {
                    input.fail();
                    return $other;
                }
                let mut left = input.array();
                let value = match number {
                    $($number => Self::$variant { $($field: input.field(&mut left)),* },)*
                    _ => {
                        input.fail();
                        $other
                    }
                };
                input.pass(left + (outer - 1));
                value
            }
        }
    )*};
}

/// The variant's number alone.
macro_rules! numbers {
    ($($name:ident { $first:ident $(, $number:literal $variant:ident)* $(,)? })*) => {$(
        impl Compact for $name {
            fn read(input: &mut Reader<'_>) -> Self {
                match input.unsigned(u64::from(u32::MAX)) {
                    0 => Self::$first,
                    $($number => Self::$variant,)*
                    _ => {
                        input.fail();
                        Self::$first
                    }
                }
            }
        }
    )*};
}

macro_rules! ids {
    ($($name:ident),*) => {$(
        impl Compact for $name {
            fn read(input: &mut Reader<'_>) -> Self {
                Self::from_bits(u64::read(input))
            }
        }
    )*};
}

ids!(NodeId, ClientId, TabId, CallId);

impl Compact for Generation {
    fn read(input: &mut Reader<'_>) -> Self {
        NonZeroU64::new(input.unsigned(FENCE_NUMBER_MAX)).map_or_else(
            || {
                input.fail();
                Self::FIRST
            },
            Self::new,
        )
    }
}

impl Compact for Fence {
    fn read(input: &mut Reader<'_>) -> Self {
        let mut left = input.array();
        let FenceNumber(incarnation) = input.field(&mut left);
        let FenceNumber(epoch) = input.field(&mut left);
        input.pass(left);
        Self { incarnation, epoch }
    }
}

struct FenceNumber(u64);

impl Compact for FenceNumber {
    fn read(input: &mut Reader<'_>) -> Self {
        Self(input.unsigned(FENCE_NUMBER_MAX))
    }
}

impl Compact for StreamEpoch {
    fn read(input: &mut Reader<'_>) -> Self {
        Self::new(input.text())
    }
}

impl Compact for ErrorCode {
    fn read(input: &mut Reader<'_>) -> Self {
        let number = input.unsigned(u64::from(u16::MAX)) as u16;
        // A newer build may have codes of its own: the frame around one must still be understood.
        Self::from_number(number).unwrap_or(Self::Unrecognised)
    }
}

structs! {
    RouteFence { fence, generation }
    Position { epoch, offset }
    Error { code, server_code, detail, retry_after_ms }
    MessageHead { offset, size, slot, message_id, timestamp_ms }
    ReportedRoute { topic, owner, fence, state }
    PublishFrame {
        call, topic, slot, size, idempotency_key, message_id, timestamp_ms, remaining_ms,
    }
    JoinFrame { topic, client, call, position, replay }
    JoinedFrame { topic, client, call, fence, position, missing, replayed, messages, more, history }
    Member { node, tab, order, visible, transport, leaving, idempotent }
    Route { topic, owner, fence, handoff_from, state, subscribers }
    Heard { node, ago_ms }
}

numbers! {
    GapReason { NotRetained, 1 StreamReset, 2 OwnerChanged, 3 ConnectionLost, 4 RepairTimeout, 5 Overflow }
    TransportStatus { Idle, 1 Connecting, 2 Connected, 3 Errored }
}

enums! {
    Frame {
        0 Hello { capabilities, build }
        1 Claim { fence, rebuild }
        2 Members { fence, members, gone, full, capabilities }
        3 Assign { fence, routes, dropped, full }
        4 Beat { fence }
        5 Leaving { node, graceful }
        6 Revalidate { fence }
        7 Report { fence, known, member, owned, wanted, seen, capabilities, build }
        8 Want { added, removed }
        9 Status { visible, transport, idempotent, tokenless }
        10 Confirm { topic, fence, state }
        11 Pulse { fence }
        12 Ping { fence }
        13 Released { topic, fence, position }
        14 Join { 0 }
        15 Joined { 0 }
        16 NotOwner { topic, client, call }
        17 Publish { 0 }
        18 Published { call, error }
        19 RingWanted { topic, fence, client }
        20 Ring { topic, fence, epoch, messages }
        21 Data { topic, fence, epoch, messages }
        22 Head { topic, fence, position, history }
        else Self::Beat { fence: Fence::default() }
    }
    ToNode {
        0 Attach { client, tab, visible, build }
        1 Subscribe { topics }
        2 Unsubscribe { topics }
        3 Join { 0 }
        4 Publish { 0 }
        5 Visible { visible }
        6 Nudge {}
        7 Token { topic, token }
        8 Retry {}
        9 Ring { topic, fence, epoch, messages }
        10 Ping {}
        11 Bye {}
        else Self::Ping
    }
    ToPage {
        0 Attached { node, build }
        1 Coordinator { node, fence }
        2 Members { members, gone, full }
        3 Routes { fence, routes, dropped, full }
        4 Transport { status, error, terminal }
        5 Joined { 0 }
        6 NotOwner { topic, call }
        7 Published { call, error, idempotent }
        8 TokenWanted { topic }
        9 RingWanted { topic, fence }
        10 Pong { node, heard }
        11 Closed {}
        12 Report { error }
        13 Detached {}
        14 BadFrames { count }
        else Self::Closed
    }
    RouteState {
        0 Assigned {}
        1 Subscribing {}
        2 Subscribed {}
        3 Failed { 0 }
        else Self::Assigned
    }
}
