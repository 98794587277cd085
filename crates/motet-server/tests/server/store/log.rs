use std::time::Duration;

use motet_store::{Retention, Store};
use serde_json::{Value, json};

use super::http::{get, post, put, send};
use super::{LOCAL, code, start};
use crate::process::Server;

#[tokio::test]
async fn the_log_has_every_change_in_order_and_is_read_page_by_page() {
    let server = start();
    for value in ["1", "2", "3"] {
        put(&server, "/api/default/types/T/k", value).await;
    }
    send(&server, "DELETE", "/api/default/types/T/k", "", "").await;
    let page = get(&server, "/api/default/log?limit=2").await.json;
    assert_eq!(page["head"], 4);
    let first = &page["changes"][0];
    for (field, expected) in [
        ("clock", json!(1)),
        ("type", json!("T")),
        ("key", json!("k")),
        ("op", json!("put")),
        ("previous", Value::Null),
        ("transaction", json!(1)),
        ("value", json!(1)),
    ] {
        assert_eq!(first[field], expected, "{field}");
    }
    assert_eq!(first["origin"].as_str().map(str::len), Some(16));
    assert_eq!(page["changes"][1]["previous"], 1);
    let rest = get(&server, "/api/default/log?after=2").await.json;
    assert_eq!(rest["changes"].as_array().map(Vec::len), Some(2));
    assert_eq!(rest["changes"][1]["op"], "remove");
    let none = get(&server, "/api/default/log?after=4").await.json;
    assert_eq!(none, json!({"changes": [], "head": 4, "compactedTo": 0}));
    for wrong in ["limit=0", "limit=1001", "after=-1", "compactedTo=-1", "since=1"] {
        let refused = get(&server, &format!("/api/default/log?{wrong}")).await;
        assert_eq!((refused.status, code(&refused.json)), (400, "REQUEST_INVALID"), "{wrong}");
    }
}

#[tokio::test]
async fn changes_that_are_no_longer_kept_are_said_to_be_gone() {
    let server = start();
    let retention = "/api/default/log/retention";
    let first = json!({"bytes": 1_u64 << 30, "pinBytes": 10_u64 << 30, "latest": false});
    assert_eq!(get(&server, retention).await.json, first);
    for value in 0..5 {
        put(&server, "/api/default/types/T/k", &value.to_string()).await;
    }
    let kept = r#"{"ageMs":1,"bytes":60}"#;
    assert_eq!(put(&server, retention, kept).await.json, json!({}));
    assert_eq!(
        get(&server, retention).await.json,
        json!({"ageMs": 1, "bytes": 60, "pinBytes": 10_u64 << 30, "latest": false})
    );
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    let gone = loop {
        let answer = get(&server, "/api/default/log").await;
        if answer.status != 200 {
            break answer;
        }
        assert!(tokio::time::Instant::now() < end, "the log is trimmed soon");
    };
    assert_eq!((gone.status, code(&gone.json)), (410, "LOG_TRUNCATED"));
    assert!(gone.json["error"]["details"]["keptFrom"].as_u64().expect("a clock") > 1);
    let status = get(&server, "/api/default/status").await.json;
    assert_eq!((&status["head"], &status["maintenanceError"]), (&json!(5), &Value::Null));
}

#[tokio::test]
async fn a_log_that_keeps_the_latest_change_of_each_document_is_read_from_its_beginning() {
    let server = start();
    let retention = "/api/default/log/retention";
    let kept = r#"{"bytes":0,"latest":true}"#;
    assert_eq!(put(&server, retention, kept).await.json, json!({}));
    let shown = json!({"bytes": 0, "pinBytes": 10_u64 << 30, "latest": true});
    assert_eq!(get(&server, retention).await.json, shown);
    for key in ["a", "b", "c", "a", "b", "d"] {
        put(&server, &format!("/api/default/types/T/{key}"), "1").await;
    }
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    let first = loop {
        let page = get(&server, "/api/default/log?limit=2").await.json;
        if page["compactedTo"] == 5 {
            break page;
        }
        assert!(tokio::time::Instant::now() < end, "the log is compacted soon: {page}");
    };
    let clocks = |page: &Value| -> Vec<u64> {
        let changes = page["changes"].as_array().expect("changes").iter();
        changes.map(|change| change["clock"].as_u64().expect("a clock")).collect()
    };
    assert_eq!(clocks(&first), [3, 4]);
    let rest = get(&server, "/api/default/log?after=4&compactedTo=5").await.json;
    assert_eq!((clocks(&rest), &rest["head"]), (vec![5, 6], &json!(6)));
    let unnamed = get(&server, "/api/default/log?after=4").await;
    assert_eq!((unnamed.status, code(&unnamed.json)), (410, "LOG_TRUNCATED"));
    assert_eq!(put(&server, retention, r#"{"latest":1}"#).await.status, 400);
}

#[tokio::test]
async fn a_reader_ahead_of_the_log_is_told_so_and_one_at_its_head_gets_nothing_new() {
    let server = start();
    put(&server, "/api/default/types/T/k", "1").await;
    let at_head = get(&server, "/api/default/log?after=1").await;
    assert_eq!(
        (at_head.status, &at_head.json),
        (200, &json!({"changes": [], "head": 1, "compactedTo": 0}))
    );
    let ahead = get(&server, "/api/default/log?after=2").await;
    assert_eq!((ahead.status, code(&ahead.json)), (409, "LOG_POSITION_AHEAD"));
}

#[tokio::test]
async fn setting_the_retention_leaves_what_pins_keep_and_the_latest_changes_as_they_are() {
    let server = start();
    let env = Store::open(server.file("data")).expect("a store").env("default").expect("opened");
    env.set_retention(Retention::everything().pin_bytes(123).latest()).expect("set");
    let retention = "/api/default/log/retention";
    assert_eq!(put(&server, retention, r#"{"bytes":60}"#).await.status, 200);
    let kept = env.retention().expect("read");
    assert_eq!((kept.bytes, kept.pin_bytes, kept.latest), (Some(60), 123, true));
    assert_eq!(put(&server, retention, r#"{"latest":false}"#).await.status, 200);
    let kept = env.retention().expect("read");
    assert_eq!((kept.bytes, kept.pin_bytes, kept.latest), (None, 123, false));
}

#[tokio::test]
async fn d4_pins_are_set_listed_and_taken_away() {
    let server = start();
    let (pins, mirror) = ("/api/default/log/pins", "/api/default/log/pins/mirror");
    for value in ["1", "2", "3"] {
        put(&server, "/api/default/types/T/k", value).await;
    }
    assert_eq!(put(&server, mirror, r#"{"after":1}"#).await.json, json!({}));
    let listed = get(&server, pins).await.json;
    assert_eq!(listed, json!({"pins": [{"name": "mirror", "after": 1}]}));

    let kept = r#"{"bytes":0,"pinBytes":1000000}"#;
    assert_eq!(put(&server, "/api/default/log/retention", kept).await.status, 200);
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    while get(&server, "/api/default/log").await.status != 410 {
        assert!(tokio::time::Instant::now() < end, "what is not pinned is trimmed soon");
    }
    let changes = get(&server, "/api/default/log?after=1").await.json;
    assert_eq!(changes["changes"].as_array().map(Vec::len), Some(2), "{changes}");

    for (body, status, told) in [
        (r#"{"after":0}"#, 410, "LOG_TRUNCATED"),
        (r#"{"after":9}"#, 409, "LOG_POSITION_AHEAD"),
        ("{}", 400, "REQUEST_INVALID"),
    ] {
        let refused = put(&server, mirror, body).await;
        assert_eq!((refused.status, code(&refused.json)), (status, told), "{body}");
    }
    assert_eq!(send(&server, "DELETE", mirror, "", "").await.json, json!({}));
    assert_eq!(get(&server, pins).await.json, json!({"pins": []}));
}

#[tokio::test]
async fn a_backup_is_a_store_with_what_was_there_when_it_was_made() {
    let server = start();
    put(&server, "/api/default/types/T/k", "1").await;
    let backup = post(&server, "/api/default/backup", "").await;
    assert_eq!(backup.status, 200, "{}", backup.text);
    put(&server, "/api/default/types/T/k", "2").await;
    let name = backup.json["name"].as_str().expect("a name");
    assert!(backup.json["bytes"].as_u64().expect("a size") > 4096);
    let store = Store::open(server.file("backups").join(name)).expect("a store");
    let env = store.existing_env("default").expect("opened").expect("it is in the backup");
    assert_eq!(env.get("T", "k").expect("read").expect("a document").value, 1);
    let absent = post(&server, "/api/other/backup", "").await;
    assert_eq!((absent.status, code(&absent.json)), (404, "ENVIRONMENT_NOT_FOUND"));

    let without = Server::start(&LOCAL.replace("backup_path = \"backups\"\n", ""));
    let refused = post(&without, "/api/default/backup", "").await;
    assert_eq!((refused.status, code(&refused.json)), (409, "BACKUP_UNAVAILABLE"));
}
