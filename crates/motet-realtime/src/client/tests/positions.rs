use super::*;

fn live_at(offset: u64) -> Rig {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.stand("news", stream("e", offset));
    rig.clear();
    rig
}

fn confirm_leave(rig: &mut Rig) {
    rig.answer(rig.unsubscribe_id("news"), ReplyBody::Unsubscribe);
    rig.wait(Duration::from_millis(100));
}

#[test]
fn a_position_is_handed_out_only_where_the_server_keeps_one() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.stand(
        "news",
        SubscribeResult { epoch: "e".into(), offset: 3, ..SubscribeResult::default() },
    );
    rig.live("news", 9);
    rig.live("news", 4);
    let Some(TransportEvent::Subscribed { position: None, .. }) = rig.events.first() else {
        panic!()
    };
    assert_eq!(offsets(&rig.events), [0, 0], "without a position offsets mean nothing");
}

#[test]
fn live_publications_advance_and_repeats_are_dropped() {
    let mut rig = live_at(5);
    for offset in [6, 7, 6, 7, 5, 8] {
        rig.live("news", offset);
    }
    assert_eq!(offsets(&rig.events), [6, 7, 8]);
    assert!(rig.frames.is_empty());
}

#[test]
fn a_publication_outside_the_stream_passes_without_a_place() {
    let mut rig = live_at(5);
    rig.live("news", 0);
    rig.live("news", 6);
    assert_eq!(offsets(&rig.events), [0, 6]);
}

#[test]
fn a_hole_is_recovered_instead_of_passed_on() {
    let mut rig = live_at(5);
    rig.live("news", 6);
    rig.live("news", 8);
    rig.live("news", 9);
    assert_eq!(offsets(&rig.take_events()), [6]);
    assert_eq!(rig.names(), ["unsubscribe news"]);
    confirm_leave(&mut rig);
    assert_eq!(rig.names(), ["unsubscribe news", "subscribe news 6@e"]);
    rig.stand("news", recovery("e", 6, 9));
    rig.live("news", 10);
    let [subscribed, _] = &rig.events[..] else { panic!("{:?}", rig.events) };
    let TransportEvent::Subscribed { position: at, recovered: true, publications, .. } = subscribed
    else {
        panic!()
    };
    assert_eq!(*at, Some(position("e", 9)));
    assert!(publications.iter().map(|p| (p.offset, p.payload)).eq([(7, 70), (8, 80), (9, 90)]));
    assert!(publications.iter().all(|publication| publication.size == 30));
    assert_eq!(offsets(&rig.events), [10]);
}

#[test]
fn another_life_of_the_stream_is_a_hole() {
    let mut rig = live_at(5);
    let publication = Publication { offset: 1, epoch: "f".into(), ..Publication::new(1) };
    rig.say(Reply::push(Push::publication("news", publication)));
    assert_eq!(rig.names(), ["unsubscribe news"]);
    confirm_leave(&mut rig);
    let failed = SubscribeResult { was_recovering: true, ..stream("f", 1) };
    rig.stand("news", failed);
    let [TransportEvent::Subscribed { position: at, recovered: false, .. }] = &rig.events[..]
    else {
        panic!()
    };
    assert_eq!(*at, Some(position("f", 1)));
}

#[test]
fn the_epoch_of_a_first_publication_fits_and_fills_an_empty_one() {
    let mut rig = live_at(0);
    let publication = Publication { offset: 1, epoch: "e".into(), ..Publication::new(1) };
    rig.say(Reply::push(Push::publication("news", publication)));
    assert_eq!(offsets(&rig.events), [1]);
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.stand("news", stream("", 0));
    let publication = Publication { offset: 1, epoch: "x".into(), ..Publication::new(1) };
    rig.say(Reply::push(Push::publication("news", publication)));
    assert_eq!(offsets(&rig.events), [1]);
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.open();
    assert_eq!(rig.sent().last().map(name), Some("subscribe news 1@x".into()));
}

#[test]
fn a_subscribe_with_a_position_recovers_what_followed_it() {
    let mut rig = Rig::connected();
    let since = Some(position("e", 0));
    rig.op(TransportOp::Subscribe { topic: "news".into(), since });
    assert_eq!(rig.names(), ["subscribe news 0@e"]);
    rig.stand("news", recovery("e", 0, 2));
    let [TransportEvent::Subscribed { position: at, recovered: true, publications, .. }] =
        &rig.events[..]
    else {
        panic!()
    };
    assert_eq!((at.clone(), publications.len()), (Some(position("e", 2)), 2));
}

#[test]
fn a_recovery_that_found_nothing_stays_where_it_was() {
    let mut rig = live_at(5);
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.open();
    rig.accept(ConnectResult::default());
    rig.stand("news", recovery("e", 5, 5));
    rig.live("news", 6);
    assert_eq!(offsets(&rig.events), [6]);
}

#[test]
fn a_failed_recovery_is_told_and_continues_at_the_top() {
    let mut rig = live_at(5);
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.open();
    rig.accept(ConnectResult::default());
    rig.take_events();
    rig.stand("news", SubscribeResult { was_recovering: true, ..stream("e", 900) });
    rig.live("news", 901);
    let [TransportEvent::Subscribed { position: at, recovered: false, .. }, _] = &rig.events[..]
    else {
        panic!()
    };
    assert_eq!(*at, Some(position("e", 900)));
    assert_eq!(offsets(&rig.events), [901]);
}

#[test]
fn a_stream_that_is_positioned_only_is_never_asked_to_recover() {
    let mut rig = Rig::connected();
    rig.subscribe("news");
    rig.stand("news", SubscribeResult { recoverable: false, ..stream("e", 5) });
    let Some(TransportEvent::Subscribed { position: Some(_), .. }) = rig.events.first() else {
        panic!()
    };
    rig.closed(1006);
    rig.wait(seconds(1));
    rig.clear();
    rig.open();
    assert_eq!(rig.names(), ["connect", "subscribe news"]);
}

#[test]
fn application_ids_and_times_come_out_of_their_tags() {
    let mut rig = live_at(5);
    let tags = [("motet_id", "m7"), ("motet_ts", "-12"), ("other", "x")];
    let publication = Publication {
        offset: 6,
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..Publication::new(60)
    };
    rig.say(Reply::push(Push::publication("news", publication)));
    let [TransportEvent::Publication { topic, publication }] = &rig.events[..] else { panic!() };
    assert_eq!(topic, "news");
    assert_eq!(publication.message_id.as_deref(), Some("m7"));
    assert_eq!(publication.timestamp_ms, Some(-12));
    assert_eq!((publication.size, publication.payload), (90, 60));
}

#[test]
fn publications_of_topics_that_nobody_wants_are_dropped() {
    let mut rig = live_at(5);
    rig.live("other", 1);
    assert!(rig.events.is_empty());
}
