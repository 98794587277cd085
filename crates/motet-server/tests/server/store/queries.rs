use serde_json::{Value, json};

use super::http::{post, put};
use super::{code, start};
use crate::process::Server;

const QUERY: &str = "/api/default/types/Order/query";

async fn with_orders(count: u32) -> Server {
    let server = start();
    let writes: Vec<_> = (0..count)
        .map(|n| {
            let value = json!({"n": n, "even": n % 2 == 0, "deep": {"x": n % 3}});
            json!({"op": "put", "type": "Order", "key": format!("o-{n:04}"), "value": value})
        })
        .collect();
    let body = json!({"writes": writes}).to_string();
    assert_eq!(post(&server, "/api/default/transactions", &body).await.status, 200);
    server
}

async fn keys(server: &Server, query: Value) -> Vec<String> {
    let answer = post(server, QUERY, &query.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let items = answer.json["items"].as_array().expect("items").clone();
    items.iter().map(|item| item["key"].as_str().expect("a key").to_owned()).collect()
}

#[tokio::test]
async fn a_query_of_nothing_but_a_filter_gives_a_hundred_documents() {
    let server = with_orders(150).await;
    let answer = post(&server, QUERY, r#"{"filter":{}}"#).await;
    assert_eq!(answer.json["items"].as_array().map(Vec::len), Some(100));
    let first = &answer.json["items"][0];
    assert_eq!(
        *first,
        json!({
            "key": "o-0000", "version": 1, "value": {"n": 0, "even": true, "deep": {"x": 0}},
        })
    );
    assert!(answer.json["next"].is_string());
    let absent = post(&server, "/api/default/types/Absent/query", "{}").await;
    assert_eq!(absent.json, json!({"items": []}));
}

#[tokio::test]
async fn sort_limit_projection_and_pages_are_as_asked() {
    let server = with_orders(20).await;
    let even = json!({"even": true});
    for (sort, first) in [
        (json!("-n"), "o-0018"),
        (json!("n"), "o-0000"),
        (json!([["deep.x", "desc"], ["n", "asc"]]), "o-0002"),
        (json!(["-deep.x", "-n"]), "o-0014"),
    ] {
        let found = keys(&server, json!({"filter": even, "sort": sort, "limit": 1})).await;
        assert_eq!(found, [first], "{sort}");
    }
    let projected = json!({"filter": {"n": 3}, "project": ["deep.x"]}).to_string();
    let answer = post(&server, QUERY, &projected).await;
    assert_eq!(answer.json["items"][0]["value"], json!({"deep": {"x": 0}}));

    let (mut all, mut after) = (Vec::new(), Value::Null);
    loop {
        let query = json!({"sort": "-n", "limit": 7, "after": after}).to_string();
        let page = post(&server, QUERY, &query).await.json;
        let items = page["items"].as_array().expect("items");
        all.extend(items.iter().map(|item| item["value"]["n"].as_u64().expect("a number")));
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(all, (0..20).rev().collect::<Vec<u64>>());
}

#[tokio::test]
async fn counts_and_explanations_are_given() {
    let server = with_orders(20).await;
    let count =
        post(&server, "/api/default/types/Order/count", r#"{"filter":{"even":true}}"#).await;
    assert_eq!(count.json, json!({"count": 10}));
    let body = r#"{"filter":{"n":{"$lt":5}},"limit":3}"#;
    let explain = post(&server, "/api/default/types/Order/explain", body).await.json;
    assert_eq!((&explain["index"], &explain["returned"]), (&Value::Null, &json!(3)));
    assert!(explain["documentsExamined"].as_u64().expect("a number") >= 3);
}

#[tokio::test]
async fn what_is_no_query_is_refused_with_its_code_and_place() {
    let server = with_orders(1).await;
    for (body, expected, at) in [
        (json!({"filter": {"n": {"$near": 1}}}), "FILTER_INVALID", "n.$near"),
        (json!({"filter": {"n": {"$regex": "(?=a)"}}}), "REGEX_UNSUPPORTED", "n.$regex"),
        (json!({"filter": [1]}), "REQUEST_INVALID", "filter"),
        (json!([{}]), "REQUEST_INVALID", "body"),
        (json!({"sort": "a..b"}), "PATH_INVALID", "a..b"),
        (json!({"sort": [["n", "up"]]}), "REQUEST_INVALID", "sort"),
        (json!({"limit": 1001}), "REQUEST_INVALID", "limit"),
        (json!({"limit": 0}), "REQUEST_INVALID", "limit"),
        (json!({"limits": 5}), "REQUEST_INVALID", "limits"),
        (json!({"project": ["a..b"]}), "PATH_INVALID", "a..b"),
    ] {
        let refused = post(&server, QUERY, &body.to_string()).await;
        assert_eq!((refused.status, code(&refused.json)), (400, expected), "{body}");
        assert_eq!(refused.json["error"]["details"]["at"], at, "{}", refused.text);
    }
    let refused = post(&server, QUERY, r#"{"after":"made up"}"#).await;
    assert_eq!((refused.status, code(&refused.json)), (400, "CURSOR_INVALID"));
}

#[tokio::test]
async fn the_order_of_fields_and_numbers_are_kept() {
    let server = start();
    let text = r#"{"z":9007199254740993,"a":0.1,"e":1e+300,"n":[-0.30000000000000004]}"#;
    put(&server, "/api/default/types/Order/k", text).await;
    let answer = post(&server, QUERY, "{}").await;
    assert!(answer.text.contains(text), "{}", answer.text);
}
