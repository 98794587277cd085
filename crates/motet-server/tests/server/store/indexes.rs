use std::time::Duration;

use serde_json::{Value, json};

use super::http::{get, post, put, send};
use super::{code, start};
use crate::process::Server;

const INDEXES: &str = "/api/default/types/Order/indexes";

async fn until_ready(server: &Server) -> Value {
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let index = get(server, INDEXES).await.json["indexes"][0].clone();
        if index["state"] != "building" {
            return index;
        }
        assert!(tokio::time::Instant::now() < end, "{index}");
    }
}

#[tokio::test]
async fn an_index_is_made_listed_used_and_dropped() {
    let server = start();
    put(&server, "/api/default/types/Order/o-1", r#"{"total":5,"open":true}"#).await;
    let spec = json!({
        "fields": [{"path": "total", "descending": true}], "where": {"open": true},
    });
    let path = format!("{INDEXES}/by_total");
    assert_eq!(put(&server, &path, &spec.to_string()).await.json, json!({}));
    let index = until_ready(&server).await;
    let expected = json!({
        "name": "by_total", "state": "ready", "spec": {
            "fields": [{"path": "total", "descending": true}], "unique": false,
            "where": {"open": true},
        },
    });
    assert_eq!(index, expected);
    let query = r#"{"filter":{"open":true,"total":{"$gt":1}}}"#;
    let explain = post(&server, "/api/default/types/Order/explain", query).await.json;
    assert_eq!(explain["index"], "by_total");

    assert_eq!(put(&server, &path, &spec.to_string()).await.status, 200, "the same again");
    let other = put(&server, &path, r#"{"fields":[{"path":"x"}]}"#).await;
    assert_eq!((other.status, code(&other.json)), (409, "INDEX_EXISTS"));
    assert_eq!(send(&server, "DELETE", &path, "", "").await.json, json!({}));
    let again = send(&server, "DELETE", &path, "", "").await;
    assert_eq!((again.status, code(&again.json)), (404, "INDEX_NOT_FOUND"));
    assert_eq!(get(&server, INDEXES).await.json, json!({"indexes": []}));
}

#[tokio::test]
async fn a_unique_index_refuses_the_second_document_and_names_the_first() {
    let server = start();
    let path = format!("{INDEXES}/mail");
    put(&server, &path, r#"{"fields":[{"path":"mail"}],"unique":true}"#).await;
    put(&server, "/api/default/types/Order/a", r#"{"mail":"x"}"#).await;
    let second = put(&server, "/api/default/types/Order/b", r#"{"mail":"x"}"#).await;
    assert_eq!((second.status, code(&second.json)), (409, "UNIQUE_VIOLATION"));
    let details = &second.json["error"]["details"];
    assert_eq!((&details["index"], &details["key"]), (&json!("mail"), &json!("a")));
}

#[tokio::test]
async fn an_index_that_cannot_be_is_refused() {
    let server = start();
    let path = format!("{INDEXES}/i");
    for (spec, expected) in [
        (json!({"fields": []}), "INDEX_INVALID"),
        (json!({"fields": [{"path": ""}]}), "PATH_INVALID"),
        (json!({"fields": [{"path": "a"}], "where": {"$x": 1}}), "FILTER_INVALID"),
        (json!({"fields": [{"path": "a", "order": 1}]}), "REQUEST_INVALID"),
        (json!({}), "REQUEST_INVALID"),
    ] {
        let refused = put(&server, &path, &spec.to_string()).await;
        assert_eq!((refused.status, code(&refused.json)), (400, expected), "{spec}");
    }
}
