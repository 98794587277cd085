use serde_json::{Value, json};

use super::http::{Answer, get, post};
use super::{code, start};
use crate::process::Server;

async fn transact(server: &Server, writes: Value) -> Answer {
    post(server, "/api/default/transactions", &json!({"writes": writes}).to_string()).await
}

#[tokio::test]
async fn a_transaction_does_all_its_writes_in_order() {
    let server = start();
    let answer = transact(
        &server,
        json!([
            {"op": "create", "type": "A", "key": "a", "value": {"n": 1}},
            {"op": "patch", "type": "A", "key": "a", "patch": {"inc": {"n": 1}}, "ifVersion": 1},
            {"op": "put", "type": "B", "key": "b", "value": null, "ttlMs": 60000},
            {"op": "update", "type": "A", "key": "a", "value": {"n": 5}},
            {"op": "put", "type": "A", "key": "c", "value": 1, "ifVersion": 0},
            {"op": "remove", "type": "A", "key": "c"},
        ]),
    )
    .await;
    assert_eq!((answer.status, &answer.json), (200, &json!({"versions": [1, 2, 3, 4, 5, 6]})));
    assert_eq!(get(&server, "/api/default/types/A/a").await.json["value"], json!({"n": 5}));
    assert_eq!(get(&server, "/api/default/types/A/c").await.status, 404);
    assert!(get(&server, "/api/default/types/B/b").await.json["expiresMs"].is_u64());
    assert_eq!(transact(&server, json!([])).await.json, json!({"versions": []}));
}

#[tokio::test]
async fn a_transaction_with_a_write_that_fails_does_nothing() {
    let server = start();
    let good = json!({"op": "put", "type": "A", "key": "a", "value": 1});
    for (bad, status, expected) in [
        (json!({"op": "update", "type": "A", "key": "x", "value": 1}), 404, "NOT_FOUND"),
        (json!({"op": "remove", "type": "A", "key": "x", "ifVersion": 9}), 409, "VERSION_MISMATCH"),
        (json!({"op": "create", "type": "A", "key": "a", "value": 1}), 409, "ALREADY_EXISTS"),
        (json!({"op": "put", "type": "~a", "key": "a", "value": 1}), 400, "NAME_INVALID"),
        (json!({"op": "put", "type": "A", "key": "", "value": 1}), 400, "KEY_INVALID"),
        (json!({"op": "write", "type": "A", "key": "a", "value": 1}), 400, "REQUEST_INVALID"),
        (json!({"op": "put", "type": "A", "key": "a"}), 400, "REQUEST_INVALID"),
        (
            json!({"op": "put", "type": "A", "key": "a", "value": 1, "ttl": 5}),
            400,
            "REQUEST_INVALID",
        ),
        (
            json!({"op": "put", "type": "A", "key": "a", "value": 1, "ttlMs": 0}),
            400,
            "REQUEST_INVALID",
        ),
        (json!({"op": "remove", "type": "A", "key": "a", "value": 1}), 400, "REQUEST_INVALID"),
        (json!({"op": "patch", "type": "A", "key": "a", "patch": {"x": 1}}), 400, "PATCH_INVALID"),
    ] {
        let refused = transact(&server, json!([good, bad])).await;
        assert_eq!((refused.status, code(&refused.json)), (status, expected), "{bad}");
        assert_eq!(get(&server, "/api/default/types/A/a").await.status, 404, "{bad}");
    }
}
