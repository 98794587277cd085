use serde_json::{Value, json};

use super::http::{get, put, send};
use super::{code, start};

const ORDER: &str = "/api/default/types/Order/o-1";

#[tokio::test]
async fn a_document_is_put_read_patched_and_removed() {
    let server = start();
    let absent = get(&server, ORDER).await;
    assert_eq!((absent.status, code(&absent.json)), (404, "NOT_FOUND"));
    assert_eq!(absent.json["error"]["retryable"], false);
    assert_eq!(absent.json["error"]["details"]["key"], "o-1");

    let first = put(&server, ORDER, r#"{"total":10,"b":1.50}"#).await;
    assert_eq!((first.status, &first.json), (200, &json!({"version": 1})));
    assert_eq!(first.header("etag"), Some("\"1\""));
    let read = get(&server, ORDER).await;
    assert_eq!(read.text, r#"{"key":"o-1","version":1,"value":{"total":10,"b":1.5}}"#);
    assert_eq!(read.header("etag"), Some("\"1\""));
    assert_eq!(read.header("content-type"), Some("application/json"));

    let patch = r#"{"inc":{"total":5},"set":{"a.b":[1]}}"#;
    let patched = send(&server, "PATCH", ORDER, "", patch).await;
    assert_eq!((patched.status, &patched.json), (200, &json!({"version": 2})));
    let read = get(&server, ORDER).await;
    assert_eq!(read.json["value"], json!({"total": 15, "b": 1.5, "a": {"b": [1]}}));

    let removed = send(&server, "DELETE", ORDER, "", "").await;
    assert_eq!((removed.status, &removed.json), (200, &json!({"version": 3})));
    assert_eq!(get(&server, ORDER).await.status, 404);
    let again = send(&server, "DELETE", ORDER, "", "").await;
    assert_eq!((again.status, code(&again.json)), (404, "NOT_FOUND"));
    assert_eq!(get(&server, "/api/default/types").await.json, json!({"types": ["Order"]}));
}

#[tokio::test]
async fn conditions_of_the_head_decide_whether_a_write_is_done() {
    let server = start();
    let only_new = "If-None-Match: *\r\n";
    assert_eq!(send(&server, "PUT", ORDER, only_new, "1").await.status, 200);
    let taken = send(&server, "PUT", ORDER, only_new, "2").await;
    assert_eq!((taken.status, code(&taken.json)), (409, "ALREADY_EXISTS"));

    let stale = send(&server, "PUT", ORDER, "If-Match: \"7\"\r\n", "2").await;
    assert_eq!((stale.status, code(&stale.json)), (412, "VERSION_MISMATCH"));
    let details = &stale.json["error"]["details"];
    assert_eq!((&details["expected"], &details["found"]), (&json!(7), &json!(1)));
    for method in ["PATCH", "DELETE"] {
        let body = if method == "PATCH" { "{}" } else { "" };
        let stale = send(&server, method, ORDER, "If-Match: \"7\"\r\n", body).await;
        assert_eq!((stale.status, code(&stale.json)), (412, "VERSION_MISMATCH"), "{method}");
    }
    assert_eq!(get(&server, ORDER).await.json["value"], 1, "nothing was done");
    assert_eq!(send(&server, "PUT", ORDER, "If-Match: \"1\"\r\n", "2").await.status, 200);

    let other = "/api/default/types/Order/o-2";
    let absent = send(&server, "PUT", other, "If-Match: *\r\n", "2").await;
    assert_eq!((absent.status, code(&absent.json)), (404, "NOT_FOUND"));
    let wrong = send(&server, "PUT", other, "If-Match: W/\"1\"\r\n", "2").await;
    assert_eq!((wrong.status, code(&wrong.json)), (400, "REQUEST_INVALID"));
    assert_eq!(wrong.json["error"]["details"]["at"], "If-Match");
}

#[tokio::test]
async fn a_document_with_a_lifetime_ends() {
    let server = start();
    assert_eq!(put(&server, &format!("{ORDER}?ttlMs=60000"), "1").await.status, 200);
    assert!(get(&server, ORDER).await.json["expiresMs"].as_u64().expect("a time") > 1 << 40);
    assert_eq!(put(&server, &format!("{ORDER}?ttlMs=1"), "1").await.status, 200);
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
    while get(&server, ORDER).await.status != 404 {
        assert!(tokio::time::Instant::now() < end, "it ends after a millisecond");
    }
    for wrong in ["ttlMs=0", "ttlMs=-1", "ttlMs=soon", "ttl=5"] {
        let refused = put(&server, &format!("{ORDER}?{wrong}"), "1").await;
        assert_eq!((refused.status, code(&refused.json)), (400, "REQUEST_INVALID"), "{wrong}");
    }
}

#[tokio::test]
async fn any_text_is_a_key_and_so_are_the_names_of_routes() {
    let server = start();
    for (encoded, key) in [
        ("a%2Fb", "a/b"),
        ("%C3%A4%20%3F%23", "\u{e4} ?#"),
        ("%00", "\u{0}"),
        ("%2e%2e", ".."),
        ("query", "query"),
        ("count", "count"),
        ("%69ndexes", "indexes"),
    ] {
        let path = format!("/api/default/types/T/{encoded}");
        assert_eq!(put(&server, &path, "1").await.status, 200, "{key:?}");
        assert_eq!(get(&server, &path).await.json["key"], key);
    }
    let long = format!("/api/default/types/T/{}", "k".repeat(481));
    let refused = put(&server, &long, "1").await;
    assert_eq!((refused.status, code(&refused.json)), (400, "KEY_INVALID"));
    let refused = put(&server, "/api/default/types/T/%ff", "1").await;
    assert_eq!((refused.status, code(&refused.json)), (400, "REQUEST_INVALID"));
    for name in ["~jobs", "9", "a%2Fb"] {
        for path in [format!("/api/default/types/{name}/k"), format!("/api/{name}/types/T/k")] {
            let refused = put(&server, &path, "1").await;
            assert_eq!((refused.status, code(&refused.json)), (400, "NAME_INVALID"), "{path}");
        }
    }
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let server = start();
    put(&server, ORDER, r#"{"total":"many"}"#).await;
    for (patch, expected) in [
        (r#"{"inc":{"total":1}}"#, "PATCH_INVALID"),
        (r#"{"add":{"total":1}}"#, "PATCH_INVALID"),
        (r#"{"set":{"a..b":1}}"#, "PATH_INVALID"),
        ("[1]", "PATCH_INVALID"),
    ] {
        let refused = send(&server, "PATCH", ORDER, "", patch).await;
        assert_eq!((refused.status, code(&refused.json)), (400, expected), "{patch}");
    }
    let read = get(&server, ORDER).await.json;
    assert_eq!((&read["version"], &read["value"]), (&json!(1), &json!({"total": "many"})));
}

#[tokio::test]
async fn reading_makes_no_environment_and_writing_does() {
    let server = start();
    for path in ["/api/other/types", "/api/other/types/T/k", "/api/other/log"] {
        let absent = get(&server, path).await;
        assert_eq!((absent.status, code(&absent.json)), (404, "ENVIRONMENT_NOT_FOUND"), "{path}");
    }
    assert_eq!(put(&server, "/api/other/types/T/k", "1").await.status, 200);
    assert_eq!(get(&server, "/api/other/types/T/k").await.json["value"], 1);
    let default: Value = get(&server, "/api/default/types").await.json;
    assert_eq!(default, json!({"types": []}), "environments know nothing of each other");
}
