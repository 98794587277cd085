//! What is read is what the derived decoders read.

use motet_protocol::{
    CallId, ClientId, Error, ErrorCode, FENCE_NUMBER_MAX, Fence, Generation, NodeId, Position,
    RouteFence, StreamEpoch, TabId,
};
use proptest::prelude::*;

use super::{Compact, Reader};
use crate::frame::{
    Frame, GapReason, Heard, JoinFrame, JoinedFrame, MessageHead, PublishFrame, ReportedRoute,
    ToNode, ToPage,
};
use crate::table::{Member, Route, RouteState, TransportStatus};

fn route_fence() -> RouteFence {
    let fence = Fence { incarnation: FENCE_NUMBER_MAX, epoch: 300 };
    RouteFence { fence, generation: Generation::FIRST.next() }
}

fn error() -> Error {
    let mut error = Error::new(ErrorCode::SubscribeRejected).with_detail("price.feed");
    error.server_code = Some(103);
    error
}

fn position() -> Position {
    Position::new(StreamEpoch::new("abcd"), 70_000)
}

fn heads() -> Vec<MessageHead> {
    let head = |offset, id: Option<&str>, timestamp_ms| MessageHead {
        offset,
        size: 7,
        slot: 3,
        message_id: id.map(Into::into),
        timestamp_ms,
    };
    vec![head(1, None, None), head(2, Some("m-2"), None), head(3, None, Some(-5))]
}

fn member() -> Member {
    Member {
        node: NodeId::from_bits(1),
        tab: TabId::from_bits(2),
        order: 3,
        visible: true,
        transport: TransportStatus::Connected,
        leaving: false,
        idempotent: true,
    }
}

fn route(state: RouteState, handoff_from: Option<NodeId>) -> Route {
    Route {
        topic: "t".repeat(200),
        owner: NodeId::from_bits(1 << 40),
        fence: route_fence(),
        handoff_from,
        state,
        subscribers: 2,
    }
}

fn publish() -> PublishFrame {
    PublishFrame {
        call: CallId::from_bits(9),
        topic: "chat".into(),
        slot: 0,
        size: 20,
        idempotency_key: Some("k".into()),
        message_id: None,
        timestamp_ms: Some(1 << 41),
        remaining_ms: 10_000,
    }
}

fn join() -> JoinFrame {
    JoinFrame {
        topic: "chat".into(),
        client: ClientId::from_bits(4),
        call: CallId::from_bits(5),
        position: None,
        replay: 20,
    }
}

fn joined() -> JoinedFrame {
    JoinedFrame {
        topic: "chat".into(),
        client: ClientId::from_bits(4),
        call: CallId::from_bits(5),
        fence: route_fence(),
        position: position(),
        missing: Some(GapReason::NotRetained),
        replayed: 1,
        messages: heads(),
        more: true,
        history: false,
    }
}

/// One of every kind.
fn frames() -> Vec<Frame> {
    let (fence, topic) = (route_fence().fence, || "chat".to_owned());
    let node = NodeId::from_bits(7);
    let reported =
        |state| ReportedRoute { topic: "r".into(), owner: node, fence: route_fence(), state };
    vec![
        Frame::Hello { capabilities: 3, build: "b".into() },
        Frame::Claim { fence, rebuild: true },
        Frame::Members {
            fence,
            members: vec![member()],
            gone: vec![node],
            full: true,
            capabilities: 0,
        },
        Frame::Assign {
            fence,
            routes: vec![
                route(RouteState::Assigned, Some(node)),
                route(RouteState::Failed(error()), None),
            ],
            dropped: vec![topic()],
            full: false,
        },
        Frame::Beat { fence },
        Frame::Leaving { node, graceful: false },
        Frame::Revalidate { fence },
        Frame::Report {
            fence,
            known: fence,
            member: member(),
            owned: vec![reported(Some(RouteState::Subscribed)), reported(None)],
            wanted: vec![topic()],
            seen: vec![],
            capabilities: 1,
            build: String::new(),
        },
        Frame::Want { added: vec![topic()], removed: vec![] },
        Frame::Status {
            visible: true,
            transport: TransportStatus::Errored,
            idempotent: false,
            tokenless: true,
        },
        Frame::Confirm { topic: topic(), fence: route_fence(), state: RouteState::Subscribing },
        Frame::Pulse { fence },
        Frame::Ping { fence },
        Frame::Released { topic: topic(), fence: route_fence(), position: Some(position()) },
        Frame::Join(join()),
        Frame::Joined(joined()),
        Frame::NotOwner {
            topic: topic(),
            client: ClientId::from_bits(1),
            call: CallId::from_bits(2),
        },
        Frame::Publish(publish()),
        Frame::Published { call: CallId::from_bits(2), error: Some(error()) },
        Frame::RingWanted { topic: topic(), fence: route_fence(), client: ClientId::from_bits(1) },
        Frame::Ring {
            topic: topic(),
            fence: route_fence(),
            epoch: position().epoch,
            messages: heads(),
        },
        Frame::Data {
            topic: topic(),
            fence: route_fence(),
            epoch: position().epoch,
            messages: heads(),
        },
        Frame::Head { topic: topic(), fence: route_fence(), position: position(), history: true },
    ]
}

fn to_node() -> Vec<ToNode> {
    vec![
        ToNode::Attach {
            client: ClientId::from_bits(1),
            tab: TabId::from_bits(2),
            visible: true,
            build: "b".into(),
        },
        ToNode::Subscribe { topics: vec!["a".into(), "b".into()] },
        ToNode::Unsubscribe { topics: vec![] },
        ToNode::Join(join()),
        ToNode::Publish(publish()),
        ToNode::Visible { visible: false },
        ToNode::Nudge,
        ToNode::Token { topic: None, token: Some("t".into()) },
        ToNode::Retry,
        ToNode::Ring {
            topic: "a".into(),
            fence: route_fence(),
            epoch: position().epoch,
            messages: heads(),
        },
        ToNode::Ping,
        ToNode::Bye,
    ]
}

fn to_page() -> Vec<ToPage> {
    let (fence, node) = (route_fence().fence, NodeId::from_bits(7));
    vec![
        ToPage::Attached { node, build: "b".into() },
        ToPage::Coordinator { node: None, fence },
        ToPage::Members { members: vec![member()], gone: vec![], full: false },
        ToPage::Routes {
            fence,
            routes: vec![route(RouteState::Subscribed, None)],
            dropped: vec![],
            full: true,
        },
        ToPage::Transport { status: TransportStatus::Connecting, error: None, terminal: false },
        ToPage::Transport {
            status: TransportStatus::Errored,
            error: Some(error()),
            terminal: true,
        },
        ToPage::Joined(joined()),
        ToPage::NotOwner { topic: "a".into(), call: CallId::from_bits(1) },
        ToPage::Published { call: CallId::from_bits(1), error: None, idempotent: true },
        ToPage::TokenWanted { topic: Some("a".into()) },
        ToPage::RingWanted { topic: "a".into(), fence: route_fence() },
        ToPage::Pong { node, heard: vec![Heard { node, ago_ms: 2_500 }] },
        ToPage::Closed,
        ToPage::Report { error: error() },
        ToPage::BadFrames { count: 70_000 },
    ]
}

fn read<T: Compact>(bytes: &[u8]) -> Option<T> {
    let mut input = Reader::new(bytes);
    let value = T::read(&mut input);
    (!input.failed() && input.rest().is_empty()).then_some(value)
}

fn encoded<T: minicbor::Encode<()>>(value: &T) -> Vec<u8> {
    minicbor::to_vec(value).expect("a vector has room")
}

fn check<T>(values: &[T])
where
    T: Compact + PartialEq + core::fmt::Debug + minicbor::Encode<()>,
    T: for<'b> minicbor::Decode<'b, ()>,
{
    for value in values {
        let bytes = encoded(value);
        assert_eq!(read::<T>(&bytes).as_ref(), Some(value));
        assert_eq!(minicbor::decode::<T>(&bytes).ok().as_ref(), Some(value));
        for cut in 0..bytes.len() {
            assert_eq!(read::<T>(&bytes[..cut]), None, "{value:?} cut at {cut}");
        }
    }
}

#[test]
fn every_frame_comes_back_as_it_was_and_no_part_of_one_does() {
    check(&frames());
    check(&to_node());
    check(&to_page());
}

#[test]
fn fields_of_a_newer_build_are_passed_over() {
    let mut encoder = minicbor::Encoder::new(Vec::new());
    let known = Fence { incarnation: 1, epoch: 2 };
    let begun = encoder.array(2).and_then(|e| e.u32(4)).and_then(|e| e.array(2));
    begun.and_then(|e| e.encode(known)).expect("a vector has room");
    let appended = encoder.map(1).and_then(|e| e.str("new")).and_then(|e| e.array(2));
    appended.and_then(|e| e.bytes(&[1, 2])).and_then(|e| e.f64(0.5)).expect("a vector has room");
    let beat = Frame::Beat { fence: Fence { incarnation: 1, epoch: 2 } };
    assert_eq!(read::<Frame>(&encoder.into_writer()), Some(beat));
}

#[test]
fn an_error_code_of_a_newer_build_does_not_lose_its_frame() {
    let mut encoder = minicbor::Encoder::new(Vec::new());
    let report = encoder.array(2).and_then(|e| e.u32(12)).and_then(|e| e.array(1));
    report.and_then(|e| e.array(1)).and_then(|e| e.u16(60_000)).expect("a vector has room");
    let error = ErrorCode::Unrecognised.into();
    assert_eq!(read::<ToPage>(&encoder.into_writer()), Some(ToPage::Report { error }));
}

proptest! {
    /// Changed bytes are read as the derived decoder reads them, or not at all.
    #[test]
    fn damaged_frames_are_never_read_as_something_else(
        index in 0..frames().len(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encoded(&frames()[index]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Some(frame) = read::<Frame>(&bytes) {
            prop_assert_eq!(minicbor::decode::<Frame>(&bytes).ok(), Some(frame));
        }
    }

    #[test]
    fn any_bytes_are_read_in_bounded_steps(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read::<Frame>(&bytes);
        let _ = read::<ToNode>(&bytes);
        let _ = read::<ToPage>(&bytes);
        Reader::new(&bytes).skip();
    }
}
