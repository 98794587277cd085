use serde_json::json;

use super::http::{get, put, send};
use super::{code, start};

const ORDER: &str = "/api/default/definitions/Order";

#[tokio::test]
async fn what_a_type_asks_is_set_read_and_held_against_its_documents() {
    let server = start();
    let definition = json!({
        "ttlMs": 3_600_000,
        "schema": {"json": {"type": "object", "required": ["customer"]}, "enforced": true},
        "references": [{"path": "customer", "to": "Customer", "onDelete": "restrict"}],
    });
    let defined = put(&server, ORDER, &definition.to_string()).await;
    assert_eq!((defined.status, &defined.json), (200, &json!({})));
    assert_eq!(get(&server, ORDER).await.json, definition);

    let order = "/api/default/types/Order/o-1";
    let refused = put(&server, order, "{}").await;
    assert_eq!((refused.status, code(&refused.json)), (422, "SCHEMA_VIOLATION"));
    let details = &refused.json["error"]["details"];
    assert_eq!((&details["type"], &details["key"]), (&json!("Order"), &json!("o-1")));
    let refused = put(&server, order, "{\"customer\":\"c-1\"}").await;
    assert_eq!((refused.status, code(&refused.json)), (409, "REFERENCE_MISSING"));
    assert_eq!(refused.json["error"]["details"]["at"], "customer");
    let customer = "/api/default/types/Customer/c-1";
    assert_eq!(put(&server, customer, "{}").await.status, 200);
    assert_eq!(put(&server, order, "{\"customer\":\"c-1\"}").await.status, 200);
    assert!(get(&server, order).await.json["expiresMs"].is_u64());
    let refused = send(&server, "DELETE", customer, "", "").await;
    assert_eq!((refused.status, code(&refused.json)), (409, "REFERENCE_RESTRICTED"));
}

#[tokio::test]
async fn what_does_not_fit_a_recorded_schema_is_written_and_listed_page_by_page() {
    let server = start();
    let definition = r#"{"schema":{"json":{"type":"string"},"enforced":false}}"#;
    assert_eq!(put(&server, ORDER, definition).await.status, 200);
    for key in ["a", "b", "c"] {
        assert_eq!(put(&server, &format!("/api/default/types/Order/{key}"), "1").await.status, 200);
    }
    let keys = async |query: &str| {
        let listed = get(&server, &format!("{ORDER}/violations{query}")).await.json;
        let violations = listed["violations"].as_array().expect("violations").clone();
        assert!(
            violations.iter().all(|one| one["why"].as_str().is_some_and(|why| !why.is_empty()))
        );
        violations.iter().map(|one| one["key"].to_string()).collect::<String>()
    };
    assert_eq!(keys("").await, "\"a\"\"b\"\"c\"");
    assert_eq!(keys("?limit=2").await, "\"a\"\"b\"");
    assert_eq!(keys("?after=b").await, "\"c\"");
    let refused = get(&server, &format!("{ORDER}/violations?limit=0")).await;
    assert_eq!((refused.status, code(&refused.json)), (400, "REQUEST_INVALID"));
}

#[tokio::test]
async fn what_cannot_be_asked_of_a_type_is_refused_and_the_type_left_as_it_was() {
    let server = start();
    for (definition, expected) in [
        (r#"{"schema":{"json":{"type":"no such type"}}}"#, "SCHEMA_INVALID"),
        (r#"{"references":[{"path":"a..b","to":"T"}]}"#, "PATH_INVALID"),
        (r#"{"references":[{"path":"a","to":"~T"}]}"#, "NAME_INVALID"),
        (r#"{"references":[{"path":"a","to":"T","onDelete":"explode"}]}"#, "REQUEST_INVALID"),
        (r#"{"ttlMs":0}"#, "REQUEST_INVALID"),
        (r#"{"ttl":5}"#, "REQUEST_INVALID"),
        ("[1]", "REQUEST_INVALID"),
    ] {
        let refused = put(&server, ORDER, definition).await;
        assert_eq!((refused.status, code(&refused.json)), (400, expected), "{definition}");
    }
    for path in ["~done", "~done/violations"] {
        let refused = get(&server, &format!("/api/default/definitions/{path}")).await;
        assert_eq!((refused.status, code(&refused.json)), (400, "NAME_INVALID"), "{path}");
    }
    assert_eq!(get(&server, ORDER).await.json, json!({"references": []}));
    assert_eq!(put(&server, "/api/default/types/Order/o", "1").await.status, 200);
}
