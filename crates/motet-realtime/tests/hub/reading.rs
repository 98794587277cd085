use motet_realtime::hub::SessionId;
use motet_realtime::message::{
    HistoryRequest, HistoryResult, PresenceRequest, PresenceStatsRequest, ReplyBody, Request,
    StreamPosition,
};

use motet_realtime::server::HubOptions;

use crate::world::{World, options};

fn history(
    world: &mut World,
    session: SessionId,
    request: HistoryRequest,
) -> Result<HistoryResult<u64>, u32> {
    match world.ask(session, Request::History(request)) {
        ReplyBody::History(result) => Ok(result),
        ReplyBody::Error(error) => Err(error.code.0),
        body => panic!("expected history, got {body:?}"),
    }
}

fn of(channel: &str, limit: i32) -> HistoryRequest {
    HistoryRequest { channel: channel.to_owned(), limit, ..HistoryRequest::default() }
}

fn since(offset: u64, epoch: &str) -> Option<StreamPosition> {
    Some(StreamPosition { offset, epoch: epoch.to_owned() })
}

#[test]
fn history_is_paged_in_both_directions_and_capped() {
    let mut world = World::new(options());
    let session = world.client();
    for number in 1..=310 {
        world.publish(session, "a", number);
    }
    let offsets = |world: &mut World, request| -> Vec<u64> {
        let page = history(world, session, request).expect("a page");
        page.publications.iter().map(|p| p.offset).collect()
    };
    assert!(offsets(&mut world, of("a", 0)).is_empty());
    assert_eq!(offsets(&mut world, of("a", 2)), [1, 2]);
    assert_eq!(offsets(&mut world, of("a", -1)).len(), 300);
    assert_eq!(offsets(&mut world, of("a", 1_000)).len(), 300);
    let after = HistoryRequest { since: since(308, ""), ..of("a", 10) };
    assert_eq!(offsets(&mut world, after), [309, 310]);
    let newest = HistoryRequest { reverse: true, ..of("a", 2) };
    assert_eq!(offsets(&mut world, newest.clone()), [310, 309]);
    let before = HistoryRequest { since: since(3, ""), limit: 10, ..newest };
    assert_eq!(offsets(&mut world, before), [2, 1]);
}

#[test]
fn each_refused_history_request_has_its_code() {
    let mut world = World::new(options());
    let session = world.client();
    world.publish(session, "a", 1);
    let mut code = |request| history(&mut world, session, request).expect_err("an error");
    assert_eq!(code(HistoryRequest { since: since(0, ""), reverse: true, ..of("a", 1) }), 107);
    assert_eq!(code(HistoryRequest { since: since(1, "another"), ..of("a", 1) }), 112);
    assert_eq!(code(of("plain:a", 1)), 108);
    assert_eq!(code(of("closed:a", 1)), 103);
    assert_eq!(code(of("nowhere:a", 1)), 102);
}

#[test]
fn presence_lists_connections_and_counts_users() {
    let mut world = World::new(options());
    for user in ["1", "1", "2"] {
        let session = world.user(user);
        world.subscribe(session, "a");
    }
    let session = world.client();
    let request = Request::Presence(PresenceRequest { channel: "a".to_owned() });
    let ReplyBody::Presence(result) = world.ask(session, request) else { panic!("presence") };
    let mut users: Vec<_> = result.presence.values().map(|info| info.user.as_str()).collect();
    users.sort_unstable();
    assert_eq!(users, ["1", "1", "2"]);
    let request = Request::PresenceStats(PresenceStatsRequest { channel: "a".to_owned() });
    let ReplyBody::PresenceStats(stats) = world.ask(session, request) else { panic!("stats") };
    assert_eq!((stats.num_clients, stats.num_users), (3, 2));
    let request = Request::Presence(PresenceRequest { channel: "closed:a".to_owned() });
    assert_eq!(world.error(session, request), 103);
}

#[test]
fn a_history_page_ends_before_it_is_too_large_and_the_next_one_goes_on_after_it() {
    let mut world = World::new(HubOptions { history_bytes_max: 2_000, ..options() });
    let session = world.client();
    for number in 1..=20 {
        world.publish(session, "a", number);
    }
    let (mut read, mut pages) = (Vec::new(), 0);
    while read.last() != Some(&20) {
        let from = since(read.last().copied().unwrap_or(0), "");
        let page = history(&mut world, session, HistoryRequest { since: from, ..of("a", -1) });
        let page = page.expect("a page");
        assert_eq!(page.offset, 20, "every page names the top");
        let bytes: usize = page.publications.iter().map(|p| p.encoded_size_max(0)).sum();
        assert!(bytes <= 2_000 && !page.publications.is_empty(), "{bytes}");
        read.extend(page.publications.iter().map(|p| p.offset));
        pages += 1;
    }
    assert_eq!(read, (1..=20).collect::<Vec<_>>());
    assert!(pages > 3, "{pages}");
}
