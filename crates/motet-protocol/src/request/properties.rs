//! Whatever happens in whatever order, every request settles exactly once and nothing is left.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::ack::{Ack, AckStatus};
use crate::error::{Error, ErrorCode};
use crate::id::{CallId, CorrelationId};
use crate::rng::Rng;
use crate::time::Instant;

const MAX_PENDING: usize = 8;

/// One thing that happens. Numbers pick among what exists at that moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Ask { peer: Option<u8>, policy: RequestPolicy, resend: Resend },
    Poll(u8),
    Wait { millis: u32, fire: bool },
    Ack { attempt: usize, status: AckStatus },
    Reply { attempt: usize, from: u8, result: Result<u32, ErrorCode> },
    Undelivered { attempt: usize },
    Assign { request: usize, peer: u8 },
    Abort { request: usize },
    PeerGone(u8),
    TransportClosed,
    SettleAll,
}

fn policy() -> impl Strategy<Value = RequestPolicy> {
    let timeout = (1_u64..4_000).prop_map(Duration::from_millis);
    let deadline = proptest::option::of((1_u64..9_000).prop_map(Duration::from_millis));
    let ack = proptest::option::of((1_u64..2_000).prop_map(Duration::from_millis));
    (timeout, ack, deadline, 0_u32..4, any::<bool>()).prop_map(
        |(timeout, ack_timeout, deadline, max_attempts, reroute)| RequestPolicy {
            ack_timeout,
            deadline,
            max_attempts,
            reroute,
            ..RequestPolicy::once(timeout)
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let resend =
        prop_oneof![Just(Resend::OnProof), Just(Resend::SameReceiver), Just(Resend::Anywhere)];
    let status = prop_oneof![
        Just(AckStatus::Accepted),
        Just(AckStatus::Duplicate),
        Just(AckStatus::Busy),
        Just(AckStatus::Rejected)
    ];
    let result = prop_oneof![
        any::<u32>().prop_map(Ok),
        proptest::sample::select(ErrorCode::ALL).prop_map(Err)
    ];
    let peer = || 0_u8..3;
    let some = || any::<usize>();
    prop_oneof![
        4 => (proptest::option::weighted(0.8, peer()), policy(), resend)
            .prop_map(|(peer, policy, resend)| Event::Ask { peer, policy, resend }),
        6 => any::<u8>().prop_map(Event::Poll),
        5 => (0_u32..5_000, any::<bool>()).prop_map(|(millis, fire)| Event::Wait { millis, fire }),
        3 => (some(), status).prop_map(|(attempt, status)| Event::Ack { attempt, status }),
        3 => (some(), peer(), result)
            .prop_map(|(attempt, from, result)| Event::Reply { attempt, from, result }),
        1 => some().prop_map(|attempt| Event::Undelivered { attempt }),
        2 => (some(), peer()).prop_map(|(request, peer)| Event::Assign { request, peer }),
        1 => some().prop_map(|request| Event::Abort { request }),
        1 => peer().prop_map(Event::PeerGone),
        1 => Just(Event::TransportClosed),
        1 => Just(Event::SettleAll),
    ]
}

/// The table, and an independent record of what went in and came out.
struct World {
    table: RequestManager<u64, u32, u8>,
    now: Instant,
    asked: Vec<CorrelationId>,
    sent: Vec<(CorrelationId, CallId, u8)>,
    resend: BTreeMap<CorrelationId, Resend>,
    /// Attempts of which it is proven that they are not being carried out.
    disproved: BTreeSet<CallId>,
    /// Requests that were answered with a reply by somebody they were sent to.
    answered: Vec<CorrelationId>,
    settled: BTreeMap<CorrelationId, RequestState>,
}

impl World {
    fn new() -> Self {
        let limits = RequestLimits { max_pending: MAX_PENDING, ..RequestLimits::default() };
        Self {
            table: RequestManager::new(limits, Rng::from_seed([5; 32]), Instant::ZERO),
            now: Instant::ZERO,
            asked: Vec::new(),
            sent: Vec::new(),
            resend: BTreeMap::new(),
            disproved: BTreeSet::new(),
            answered: Vec::new(),
            settled: BTreeMap::new(),
        }
    }

    fn poll(&mut self) -> bool {
        match self.table.poll_output() {
            Some(RequestOutput::Send { correlation, call, peer, .. }) => {
                assert!(!self.settled.contains_key(&correlation), "sent after the end");
                assert!(self.table.context(correlation).is_some(), "nothing to send");
                self.check_resend(correlation, peer);
                self.sent.push((correlation, call, peer));
            }
            Some(RequestOutput::Settled(end)) => {
                assert!(end.state.terminal());
                assert_eq!(end.state == RequestState::Completed, end.result.is_ok());
                let done = end.state == RequestState::Completed;
                assert!(!done || self.answered.contains(&end.correlation), "false success");
                assert_eq!(self.asked.get(end.context as usize), Some(&end.correlation));
                let before = self.settled.insert(end.correlation, end.state);
                assert_eq!(before, None, "settled twice");
            }
            Some(RequestOutput::Cancel { .. } | RequestOutput::Progress { .. }) => {}
            None => return false,
        }
        true
    }

    /// No second attempt while an earlier one may be carried out, unless repeating is safe.
    fn check_resend(&self, correlation: CorrelationId, peer: u8) {
        let resend = self.resend[&correlation];
        let earlier = self
            .sent
            .iter()
            .filter(|(id, call, _)| *id == correlation && !self.disproved.contains(call));
        for (_, _, earlier_peer) in earlier {
            match resend {
                Resend::OnProof => panic!("may be done twice"),
                Resend::SameReceiver => assert_eq!(*earlier_peer, peer, "may be done twice"),
                Resend::Anywhere => {}
            }
        }
    }

    fn pick<T: Copy>(from: &[T], index: usize) -> Option<T> {
        (!from.is_empty()).then(|| from[index % from.len()])
    }

    fn answer(&mut self, attempt: usize, from: u8, result: Result<u32, ErrorCode>) {
        let Some((id, call, peer)) = Self::pick(&self.sent, attempt) else { return };
        // Mostly the receiver itself, sometimes a stranger.
        let from = if from == 0 { (peer + 1) % 3 } else { peer };
        if from == peer {
            match result {
                Ok(_) => self.answered.push(id),
                Err(ErrorCode::RequestTimeout | ErrorCode::OutcomeUnknown) => {}
                Err(_) => drop(self.disproved.insert(call)),
            }
        }
        self.table.reply(self.now, from, id, call, result.map_err(Error::new));
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Ask { peer, policy, resend } => {
                let context = self.asked.len() as u64;
                let request = Request { peer, message_type: "t".into(), policy, resend, context };
                if let Ok(id) = self.table.request(self.now, request) {
                    self.resend.insert(id, resend);
                    self.asked.push(id);
                }
            }
            Event::Poll(times) => {
                (0..times % 8).all(|_| self.poll());
            }
            Event::Wait { millis, fire } => {
                self.now += Duration::from_millis(u64::from(millis));
                if fire {
                    self.table.handle_timeout(self.now);
                }
            }
            Event::Ack { attempt, status } => {
                if let Some((id, call, peer)) = Self::pick(&self.sent, attempt) {
                    if matches!(status, AckStatus::Busy | AckStatus::Rejected) {
                        self.disproved.insert(call);
                    }
                    self.table.acked(self.now, peer, id, call, &Ack::new(status, call));
                }
            }
            Event::Reply { attempt, from, result } => self.answer(attempt, from, result),
            Event::Undelivered { attempt } => {
                if let Some((id, call, _)) = Self::pick(&self.sent, attempt) {
                    self.disproved.insert(call);
                    let error = Error::new(ErrorCode::TransportUnavailable);
                    self.table.undelivered(self.now, id, call, error);
                }
            }
            Event::Assign { request, peer } => {
                if let Some(id) = Self::pick(&self.asked, request) {
                    self.table.assign(self.now, id, peer);
                }
            }
            Event::Abort { request } => {
                if let Some(id) = Self::pick(&self.asked, request) {
                    self.table.abort(self.now, id, CancelReason::User);
                }
            }
            Event::PeerGone(peer) => self.table.peer_gone(self.now, peer),
            Event::TransportClosed => self.table.transport_closed(self.now),
            Event::SettleAll => self.table.settle_all(self.now, ErrorCode::Suspended),
        }
        assert!(self.table.len() <= MAX_PENDING);
        assert_eq!(self.table.timers.len(), self.table.len(), "one timer per request");
        assert!(self.table.ready.len() <= self.table.len(), "a settled request is in the queue");
    }

    /// Lets time pass, on time, until nothing is pending.
    fn run_out(&mut self) {
        let mut rounds = 0;
        loop {
            while self.poll() {}
            let Some(due) = self.table.next_timeout() else { return };
            self.now = self.now.max(due);
            self.table.handle_timeout(self.now);
            rounds += 1;
            assert!(rounds < 10_000, "something is pending for ever");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_settles_exactly_once_and_the_table_returns_to_nothing(
        events in proptest::collection::vec(event(), 1..80)
    ) {
        let mut world = World::new();
        for event in events {
            world.apply(event);
        }
        let last = world.now;
        world.run_out();
        prop_assert_eq!(world.settled.len(), world.asked.len());
        prop_assert!(world.table.is_empty());
        // 4 attempts of 4 s and their delays, one drain, one watch.
        prop_assert!(world.now - last <= Duration::from_secs(20));
    }

    #[test]
    fn closing_at_any_moment_leaves_nothing(
        events in proptest::collection::vec(event(), 1..40)
    ) {
        let mut world = World::new();
        for event in events {
            world.apply(event);
        }
        world.table.close(world.now);
        prop_assert_eq!(world.table.next_timeout(), None);
        while world.poll() {}
        prop_assert_eq!(world.settled.len(), world.asked.len());
        prop_assert!(world.table.is_empty());
    }
}
