//! Long answers: cut, counted, and as fast as they are read.

use serde_json::{Value, json};

use crate::api::call;
use crate::connections::metric;
use crate::process::{OPEN, Server};
use crate::websocket::Client;

/// A server on which `count` publications of so many bytes were made in channel `a`.
async fn published(config: &str, count: usize, bytes: usize) -> Server {
    let server = Server::start(config);
    let body = json!({ "channel": "a", "data": "x".repeat(bytes) }).to_string();
    for _ in 0..count {
        assert!(call(&server, "publish", &body).await["result"].is_object());
    }
    server
}

fn offsets(answer: &Value) -> Vec<u64> {
    let publications = answer["publications"].as_array().expect("publications");
    publications.iter().map(|one| one["offset"].as_u64().expect("an offset")).collect()
}

#[tokio::test]
async fn a_backlog_larger_than_a_reply_is_not_recovered_and_history_gives_all_of_it() {
    let server = published(OPEN, 20, 1_000_000).await;
    let mut client = Client::connected(&server).await;
    client.send(r#"{"id":2,"subscribe":{"channel":"a","recover":true,"offset":0}}"#).await;
    let reply = client.next().await;
    let result = &reply["subscribe"];
    assert_eq!((&result["was_recovering"], &result["recovered"]), (&json!(true), &Value::Null));
    assert_eq!((&result["offset"], &result["publications"]), (&json!(20), &Value::Null));
    let mut read = Vec::new();
    while read.len() < 20 {
        let since = json!({ "offset": read.last().copied().unwrap_or(0) });
        let history = json!({ "channel": "a", "limit": -1, "since": since });
        client.send(&json!({ "id": 3, "history": history }).to_string()).await;
        let page = offsets(&client.next().await["history"]);
        assert!(!page.is_empty(), "each page goes on");
        read.extend(page);
    }
    assert_eq!(read, (1..=20).collect::<Vec<_>>());
    client.send(r#"{"id":4,"unsubscribe":{"channel":"a"}}"#).await;
    assert_eq!(client.next().await["id"], 4);
    client.send(r#"{"id":5,"subscribe":{"channel":"a","recover":true,"offset":17}}"#).await;
    let reply = client.next().await;
    assert_eq!(reply["subscribe"]["recovered"], true, "what fits is recovered");
    assert_eq!(offsets(&reply["subscribe"]), [18, 19, 20]);
}

#[tokio::test]
async fn whoever_asks_for_much_at_once_gets_it_as_fast_as_it_reads() {
    let server = published(OPEN, 20, 200_000).await;
    let mut client = Client::connected(&server).await;
    let ask = |id: u64| json!({ "id": id, "history": { "channel": "a", "limit": 20 } }).to_string();
    let frame: Vec<_> = (2..22).map(ask).collect();
    client.send(&frame.join("\n")).await;
    // Answered before the others are read, so most of them were held back.
    let mut other = Client::connected(&server).await;
    other.send(&ask(2)).await;
    assert_eq!(offsets(&other.next().await["history"]).len(), 20);
    assert!(metric(&server, "motet_waiting_bytes").await < 10_000_000);
    for id in 2..22 {
        let answer = client.next().await;
        assert_eq!((answer["id"].as_u64(), offsets(&answer["history"]).len()), (Some(id), 20));
    }
    assert_eq!(metric(&server, "motet_waiting_bytes").await, 0);
}

#[tokio::test]
async fn when_too_much_waits_in_all_whoever_reads_least_is_closed_and_others_are_served() {
    let limits = "insecure = true\nqueue_total_max_size = 3000000\nhistory_max_size = 1000000\n[";
    let server = published(&OPEN.replace("insecure = true\n[", limits), 10, 90_000).await;
    let ask = |id: u64| json!({ "id": id, "history": { "channel": "a", "limit": 10 } }).to_string();
    let frame: Vec<_> = (2..40).map(ask).collect();
    let mut stuck = Vec::new();
    while metric(&server, "motet_disconnects_total{code=\"3008\"}").await == 0 {
        let mut client = Client::connected(&server).await;
        client.send(&frame.join("\n")).await;
        stuck.push(client);
        assert!(stuck.len() < 20, "too much waits");
    }
    let mut reader = Client::connected(&server).await;
    reader.send(&frame.join("\n")).await;
    for id in 2..40 {
        assert_eq!(reader.next().await["id"], id);
    }
    assert!(metric(&server, "motet_waiting_bytes").await <= 3_000_000);
}

#[tokio::test]
async fn a_payload_that_is_not_json_costs_a_json_client_that_subscription_and_no_other() {
    let server = Server::start(OPEN);
    let mut client = Client::connected(&server).await;
    for (id, channel) in [(2, "a"), (3, "b")] {
        client.send(&json!({ "id": id, "subscribe": { "channel": channel } }).to_string()).await;
        assert_eq!(client.next().await["id"], id);
    }
    call(&server, "publish", r#"{"channel":"a","data":1}"#).await;
    call(&server, "publish", r#"{"channel":"a","b64data":"//79"}"#).await;
    call(&server, "publish", r#"{"channel":"b","data":2}"#).await;
    let first = client.next().await;
    assert_eq!(first["push"]["pub"]["data"], 1, "{first}");
    let end = client.next().await;
    assert_eq!(
        (&end["push"]["channel"], &end["push"]["unsubscribe"]["code"]),
        (&json!("a"), &json!(2000))
    );
    let reason = end["push"]["unsubscribe"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("Protobuf"), "{reason}");
    assert_eq!(client.next().await["push"]["pub"]["data"], 2);

    client.send(r#"{"id":4,"history":{"channel":"a","limit":10}}"#).await;
    let refused = client.next().await;
    assert_eq!(refused["error"]["code"], 108, "{refused}");
    client.send(r#"{"id":5,"subscribe":{"channel":"a","recover":true,"offset":1}}"#).await;
    let reply = client.next().await;
    let result = &reply["subscribe"];
    assert_eq!((&result["recovered"], &result["offset"]), (&Value::Null, &json!(2)), "{reply}");
    call(&server, "publish", r#"{"channel":"a","data":3}"#).await;
    assert_eq!(client.next().await["push"]["pub"]["offset"], 3);
}

#[tokio::test]
async fn subscribing_alone_leaves_nothing_behind() {
    let server = Server::start(OPEN);
    let mut client = Client::connected(&server).await;
    for id in 1..=500 {
        let name = format!("room {id}");
        let subscribe = json!({ "id": 2 * id, "subscribe": { "channel": name } });
        let unsubscribe = json!({ "id": 2 * id + 1, "unsubscribe": { "channel": name } });
        client.send(&format!("{subscribe}\n{unsubscribe}")).await;
        assert!(client.next().await["subscribe"]["epoch"].is_string());
        assert_eq!(client.next().await["id"], 2 * id + 1);
    }
    assert_eq!(metric(&server, "motet_streams").await, 0);
}

#[tokio::test]
async fn what_the_broker_has_no_room_for_is_refused_and_counted() {
    let server = Server::start(&format!("{OPEN}[broker]\nbytes_max = 10000\n"));
    let mut client = Client::connected(&server).await;
    let data = "x".repeat(6_000);
    let publish = json!({ "channel": "a", "data": data });
    assert!(call(&server, "publish", &publish.to_string()).await["result"].is_object());
    let refused = call(&server, "publish", &publish.to_string()).await;
    assert_eq!(refused["error"]["code"], 106, "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("no room")));
    client.send(&json!({ "id": 2, "publish": publish }).to_string()).await;
    assert_eq!(client.next().await["error"]["code"], 106);
    assert_eq!(metric(&server, "motet_publications_refused_total").await, 2);
    assert_eq!(metric(&server, "motet_streams").await, 1);
}
