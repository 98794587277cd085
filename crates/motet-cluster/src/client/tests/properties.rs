//! Any interleaving of posts, answers, route changes and page events, with loss: what handlers see
//! is in order, without repeats, without a hole that no gap covers, and complete once the world is
//! quiet (B10, `ordered-once`, `no-silent-loss`).

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Messages that the server keeps.
const RETAINED: Offset = 12;

#[derive(Clone, Debug)]
enum Step {
    /// The server accepts messages; the owner posts them, unless the post is lost.
    Accept { count: Offset, lost: bool },
    /// The owner says where the topic stands.
    Head,
    /// One post of one of the two owners' channels arrives.
    Post { channel: usize },
    /// One frame of the port arrives; an answer may be lost instead.
    Frame { lost: bool },
    /// The owner answers a question that it has received, in so many parts.
    Answer { which: usize, parts: usize },
    /// Another owner, at once or after a message was posted by the old one.
    Move { straggler: bool },
    /// The server's stream starts anew.
    Reset,
    /// Time passes.
    Pass { ms: u64 },
    /// The page goes away and comes back.
    Away,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..4_u64, prop::bool::weighted(0.2))
            .prop_map(|(count, lost)| Step::Accept { count, lost }),
        1 => Just(Step::Head),
        8 => (0..2_usize).prop_map(|channel| Step::Post { channel }),
        6 => prop::bool::weighted(0.15).prop_map(|lost| Step::Frame { lost }),
        5 => (0..4_usize, 1..4_usize).prop_map(|(which, parts)| Step::Answer { which, parts }),
        2 => any::<bool>().prop_map(|straggler| Step::Move { straggler }),
        1 => Just(Step::Reset),
        4 => prop_oneof![1..30_u64, 100..800_u64].prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Away),
    ]
}

/// The server, two nodes that own the topic in turn, and what is under way from them.
struct World {
    rig: Rig,
    /// Number and length of the server's stream.
    epoch: u64,
    top: Offset,
    generation: u64,
    channels: [VecDeque<Packet<Frame, u64>>; 2],
    port: VecDeque<Packet<ToPage, u64>>,
    questions: Vec<JoinFrame>,
    start: u32,
    /// Where the handlers stand; none before the first Ready.
    place: Option<(String, Offset)>,
    /// The last event was a gap of unknown length.
    open_gap: bool,
}

fn payload(epoch: &str, offset: Offset) -> u64 {
    offset * 1_000 + epoch.parse::<u64>().expect("a number")
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            rig: Rig::running(),
            epoch: 1,
            top: 5,
            generation: 1,
            channels: [VecDeque::new(), VecDeque::new()],
            port: VecDeque::new(),
            questions: Vec::new(),
            start: 1,
            place: None,
            open_gap: false,
        };
        world.rig.subscribe(1, "t", 3);
        world.tell_route();
        world
    }

    fn owner(&self) -> NodeId {
        [OWNER, OTHER][(self.generation % 2) as usize]
    }

    fn tell_route(&mut self) {
        let frame = ToPage::Routes {
            fence: fence(1).fence,
            routes: vec![route("t", self.owner(), self.generation)],
            dropped: Vec::new(),
            full: false,
        };
        self.port.push_back(Packet::single(NODE, frame));
    }

    fn heads<F>(&self, packet: &mut Packet<F, u64>, from: Offset, to: Offset) -> Vec<MessageHead> {
        let mut heads = heads(packet, from..=to);
        for head in &mut heads {
            head.slot = packet.attach(payload(&self.epoch.to_string(), head.offset));
        }
        heads
    }

    fn post(&mut self, from: Offset) {
        let mut packet = Packet::new(self.owner());
        let messages = self.heads(&mut packet, from, self.top);
        packet.frames.push(Frame::Data {
            topic: "t".into(),
            fence: fence(self.generation),
            epoch: StreamEpoch::new(self.epoch.to_string()),
            messages,
        });
        self.channels[(self.generation % 2) as usize].push_back(packet);
    }

    fn post_head(&mut self) {
        let frame = Frame::Head {
            topic: "t".into(),
            fence: fence(self.generation),
            position: at(&self.epoch.to_string(), self.top),
            history: true,
        };
        let packet = Packet::single(self.owner(), frame);
        self.channels[(self.generation % 2) as usize].push_back(packet);
    }

    /// Answers a question as an owner with history does.
    fn answer(&mut self, join: &JoinFrame, parts: usize) {
        let epoch = self.epoch.to_string();
        let kept = self.top.saturating_sub(RETAINED);
        let (after, missing, replayed) = match &join.position {
            None => {
                let replay = Offset::from(join.replay).min(self.top - kept);
                (self.top - replay, None, replay as usize)
            }
            Some(at) if at.epoch.as_str() != epoch => (kept, Some(GapReason::StreamReset), 0),
            Some(at) if at.offset < kept => (kept, Some(GapReason::NotRetained), 0),
            Some(at) => (at.offset.min(self.top), None, 0),
        };
        let size = (self.top - after).div_ceil(parts as u64).max(1);
        let mut done = after;
        loop {
            let end = (done + size).min(self.top);
            let mut packet = Packet::new(NODE);
            let messages = self.heads(&mut packet, done + 1, end);
            packet.frames.push(ToPage::Joined(JoinedFrame {
                topic: "t".into(),
                client: join.client,
                call: join.call,
                fence: fence(self.generation),
                position: at(&epoch, end),
                missing: missing.filter(|_| done == after),
                replayed: if replayed > 0 { messages.len() as u32 } else { 0 },
                messages,
                more: end < self.top,
                history: true,
            }));
            self.port.push_back(packet);
            done = end;
            if done == self.top {
                return;
            }
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Accept { count, lost } => {
                self.top += count;
                if !lost {
                    self.post(self.top - count + 1);
                }
            }
            Step::Head => self.post_head(),
            Step::Post { channel } => {
                if let Some(packet) = self.channels[channel].pop_front() {
                    self.rig.input(ClientInput::Data(packet));
                }
            }
            Step::Frame { lost } => {
                let answers =
                    |packet: &Packet<ToPage, u64>| matches!(packet.frames[..], [ToPage::Joined(_)]);
                if let Some(packet) = self.port.pop_front()
                    && !(lost && answers(&packet))
                {
                    self.rig.input(ClientInput::Port(packet));
                }
            }
            Step::Answer { which, parts } => {
                if !self.questions.is_empty() {
                    let join = self.questions.remove(which % self.questions.len());
                    self.answer(&join, parts);
                }
            }
            Step::Move { straggler } => {
                if straggler {
                    self.top += 1;
                    self.post(self.top);
                }
                self.generation += 1;
                self.tell_route();
            }
            Step::Reset => {
                self.epoch += 1;
                self.top = 0;
                self.post_head();
            }
            Step::Pass { ms } => self.rig.pass_alive(ms),
            Step::Away => self.go_away(),
        }
        self.look();
    }

    fn go_away(&mut self) {
        self.rig.page(PageEvent::Hide);
        self.look();
        self.channels = [VecDeque::new(), VecDeque::new()];
        self.port.clear();
        self.questions.clear();
        self.rig.sleep(10_000);
        self.rig.page(PageEvent::Show);
        self.start += 1;
        self.rig.node_up(self.start);
        self.tell_route();
    }

    /// Takes what the client asked and checks what handlers saw.
    fn look(&mut self) {
        for output in core::mem::take(&mut self.rig.out) {
            match output {
                ClientOutput::Port(packet) => {
                    let join = |frame| match frame {
                        ToNode::Join(join) => Some(join),
                        _ => None,
                    };
                    self.questions.extend(packet.frames.into_iter().filter_map(join));
                }
                ClientOutput::Subscription {
                    state: SubscriptionState::Ready(position), ..
                } => {
                    let place = (position.epoch.as_str().to_owned(), position.offset);
                    assert!(
                        self.place.is_none() || self.open_gap || self.place == Some(place.clone()),
                        "ready elsewhere: {place:?}, not {:?}",
                        self.place
                    );
                    self.place = Some(place);
                    self.open_gap = false;
                }
                ClientOutput::Deliver(delivery) => self.check(&delivery),
                ClientOutput::Gap { gap, .. } => {
                    let place = self.place.as_mut().expect("no gap before Ready");
                    let from = (gap.from.epoch.as_str().to_owned(), gap.from.offset);
                    if core::mem::take(&mut self.open_gap) {
                        assert_ne!(from.0, place.0, "the same reset told twice");
                        *place = from;
                    } else {
                        assert_eq!(from, *place);
                    }
                    match gap.to {
                        Some(to) => {
                            assert!(to.epoch == gap.from.epoch && to.offset > gap.from.offset);
                            place.1 = to.offset;
                        }
                        None => self.open_gap = true,
                    }
                }
                _ => {}
            }
        }
        assert!(self.questions.len() < 1_000, "questions without end");
    }

    fn check(&mut self, delivery: &Delivery<u64>) {
        let epoch = delivery.position.epoch.as_str();
        let offset = delivery.position.offset;
        assert_eq!(delivery.payload, payload(epoch, offset));
        let Some(place) = &mut self.place else {
            assert!(delivery.replayed, "live before Ready: {delivery:?}");
            return;
        };
        if !core::mem::take(&mut self.open_gap) {
            // The rest of a replayed tail that came in parts lies after Ready.
            assert_eq!((epoch, offset), (&*place.0, place.1 + 1), "{delivery:?}");
        }
        *place = (epoch.to_owned(), offset);
    }

    /// The world goes quiet: everything under way arrives, every question is answered.
    fn calm_down(&mut self) {
        self.post_head();
        for _ in 0..400 {
            for channel in 0..2 {
                self.apply(&Step::Post { channel });
            }
            self.apply(&Step::Frame { lost: false });
            while !self.questions.is_empty() {
                self.apply(&Step::Answer { which: 0, parts: 1 });
            }
            self.apply(&Step::Pass { ms: 20 });
        }
    }
}

/// Runs a schedule to its quiet end.
fn run(steps: &[Step]) {
    let mut world = World::new();
    for step in steps {
        world.apply(step);
    }
    world.calm_down();
    let end = at(&world.epoch.to_string(), world.top);
    let view = world.rig.client.subscription("t").expect("subscribed");
    assert_eq!((view.position, view.phase), (Some(&end), TopicPhase::Live));
    assert_eq!(view.state.clone(), ready(view.state), "told ready at last");
}

fn ready(state: &SubscriptionState) -> SubscriptionState {
    match state {
        SubscriptionState::Ready(position) => SubscriptionState::Ready(position.clone()),
        _ => SubscriptionState::Pending,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn b10_no_interleaving_makes_a_repeat_a_disorder_or_a_hole_that_no_gap_covers(
        steps in prop::collection::vec(step(), 1..200)
    ) {
        run(&steps);
    }
}

/// Every planted fault of delivery is one that these schedules see.
#[cfg(feature = "planted-faults")]
#[test]
fn planted_faults_of_delivery_do_not_go_unseen() {
    use motet_protocol::fault::plant;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    for fault in [
        "deliver-repeats",
        "skip-hole-check",
        "ignore-route-fence-on-data",
        "forget-gap-on-reset",
        "keep-position-after-show-without-join",
    ] {
        let config = Config {
            cases: 3_000,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..Config::default()
        };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, rng);
        plant(Some(fault));
        let result = runner.run(&prop::collection::vec(step(), 1..200), |steps| {
            run(&steps);
            Ok(())
        });
        plant(None);
        assert!(result.is_err(), "{fault} was not seen");
    }
}
