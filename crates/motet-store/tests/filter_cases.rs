//! Filters and documents by hand, one per rule.

use motet_store::Error;
use motet_store::filter::{FILTER_CONDITIONS_MAX, FILTER_DEPTH_MAX, FILTER_PATTERNS_MAX, Filter};
use serde_json::{Value, json};

/// Each filter with documents that match and documents that do not.
fn check(cases: Vec<(Value, Vec<Value>, Vec<Value>)>) {
    for (filter, yes, no) in cases {
        let parsed = Filter::parse(&filter).expect("it is a filter");
        for document in yes {
            assert!(parsed.matches(&document), "{filter} matches {document}");
        }
        for document in no {
            assert!(!parsed.matches(&document), "{filter} does not match {document}");
        }
    }
}

fn place_of_error(filter: &Value) -> String {
    match Filter::parse(filter) {
        Err(Error::FilterInvalid { at, .. }) => at,
        other => panic!("{filter}: {other:?}"),
    }
}

#[test]
fn a_plain_value_equals_a_field_or_an_element() {
    check(vec![
        (json!({}), vec![json!({}), json!({"a": 1})], vec![]),
        (
            json!({"a": 1}),
            vec![json!({"a": 1.0}), json!({"a": [0, 1]})],
            vec![json!({"a": "1"}), json!({"a": [[1]]}), json!({"b": 1}), json!({"a": true})],
        ),
        (
            json!({"a": [1, 2]}),
            vec![json!({"a": [1, 2]}), json!({"a": [[1, 2], 3]})],
            vec![json!({"a": [2, 1]}), json!({"a": [1, 2, 3]}), json!({"a": 1})],
        ),
        (
            json!({"a": {"x": 1, "y": 2}}),
            vec![json!({"a": {"y": 2, "x": 1}})],
            vec![json!({"a": {"x": 1}}), json!({"a": {"x": 1, "y": 2, "z": 3}})],
        ),
        (json!({"a": {}}), vec![json!({"a": {}}), json!({"a": [{}]})], vec![json!({"a": []})]),
        (json!({"a": {"$eq": {"$b": 1}}}), vec![json!({"a": {"$b": 1}})], vec![json!({"a": 1})]),
    ]);
}

#[test]
fn null_equals_what_is_null_or_absent() {
    check(vec![
        (
            json!({"a": null}),
            vec![json!({"a": null}), json!({}), json!({"a": [null]})],
            vec![json!({"a": 0}), json!({"a": []}), json!({"a": false})],
        ),
        (
            json!({"a.b": null}),
            vec![
                json!({"a": {}}),
                json!({"a": 5}),
                json!({"a": null}),
                json!({"a": [{"b": 1}, {}]}),
            ],
            vec![json!({"a": [{"b": 1}]}), json!({"a": []}), json!({"a": [1, 2]})],
        ),
        (
            json!({"a": {"$ne": null}}),
            vec![json!({"a": 1}), json!({"a": []})],
            vec![json!({}), json!({"a": null}), json!({"a": [1, null]})],
        ),
        (
            json!({"a": {"$exists": true}}),
            vec![json!({"a": null}), json!({"a": []})],
            vec![json!({})],
        ),
        (
            json!({"a.b": {"$exists": false}}),
            vec![json!({"a": [1]}), json!({"a": [{"c": 1}]})],
            vec![json!({"a": [{}, {"b": null}]})],
        ),
        (json!({"a": {"$type": "null"}}), vec![json!({"a": null})], vec![json!({})]),
    ]);
}

#[test]
fn comparisons_stay_within_a_class() {
    check(vec![
        (
            json!({"a": {"$gt": 5}}),
            vec![json!({"a": 5.1}), json!({"a": [1, 9]})],
            vec![
                json!({"a": 5}),
                json!({"a": "9"}),
                json!({"a": true}),
                json!({}),
                json!({"a": [5]}),
            ],
        ),
        (
            json!({"a": {"$lt": "b"}}),
            vec![json!({"a": "a"}), json!({"a": ""})],
            vec![json!({"a": 1}), json!({"a": null}), json!({"a": "b"})],
        ),
        (json!({"a": {"$gte": null}}), vec![json!({"a": null}), json!({})], vec![json!({"a": 0})]),
        (json!({"a": {"$gt": null}}), vec![], vec![json!({}), json!({"a": null}), json!({"a": 0})]),
        (
            json!({"a": {"$lt": true}}),
            vec![json!({"a": false})],
            vec![json!({"a": true}), json!({"a": 0})],
        ),
        (
            json!({"a": {"$gt": [1, 2]}}),
            vec![json!({"a": [1, 3]}), json!({"a": [[2]]})],
            vec![json!({"a": [1, 2]}), json!({"a": [0, 5]})],
        ),
        (
            json!({"a": {"$gt": "\u{ffff}"}}),
            vec![json!({"a": "\u{10000}"})],
            vec![json!({"a": "z"})],
        ),
    ]);
}

#[test]
fn integers_past_the_exact_range_of_floats_are_told_apart() {
    let power = 1_u64 << 53;
    check(vec![
        (json!({"a": power + 1}), vec![json!({"a": power + 1})], vec![json!({"a": power})]),
        (
            json!({"a": {"$gt": power as f64}}),
            vec![json!({"a": power + 1})],
            vec![json!({"a": power})],
        ),
        (
            json!({"a": {"$in": [u64::MAX]}}),
            vec![json!({"a": u64::MAX})],
            vec![json!({"a": u64::MAX - 1})],
        ),
        (json!({"a": {"$mod": [10, 3]}}), vec![json!({"a": power + 1})], vec![json!({"a": power})]),
    ]);
}

#[test]
fn two_conditions_may_be_met_by_two_elements_but_not_inside_elem_match() {
    check(vec![
        (json!({"a": {"$gt": 8, "$lt": 2}}), vec![json!({"a": [1, 9]})], vec![json!({"a": [5]})]),
        (
            json!({"a": {"$elemMatch": {"$gt": 2, "$lt": 8}}}),
            vec![json!({"a": [1, 5]})],
            vec![json!({"a": [1, 9]}), json!({"a": 5}), json!({"a": [[5]]})],
        ),
        (json!({"a.x": 1, "a.y": 2}), vec![json!({"a": [{"x": 1}, {"y": 2}]})], vec![]),
        (
            json!({"a": {"$elemMatch": {"x": 1, "y": 2}}}),
            vec![json!({"a": [{"x": 1, "y": 2}]})],
            vec![json!({"a": [{"x": 1}, {"y": 2}]}), json!({"a": {"x": 1, "y": 2}})],
        ),
        (json!({"a": {"$elemMatch": {}}}), vec![json!({"a": [{}]})], vec![json!({"a": [1]})]),
        (
            json!({"a": {"$elemMatch": {"$or": [{"x": 1}, {"y": null}]}}}),
            vec![json!({"a": [{}]})],
            vec![json!({"a": [{"y": 1}]}), json!({"a": [7]})],
        ),
        (
            json!({"a": {"$elemMatch": {"$elemMatch": {"$eq": 1}}}}),
            vec![json!({"a": [[1]]})],
            vec![json!({"a": [1]})],
        ),
        (
            json!({"a": {"$elemMatch": {"$not": {"$gt": 2}}}}),
            vec![json!({"a": [9, 1]})],
            vec![json!({"a": [9]}), json!({"a": []})],
        ),
    ]);
}

#[test]
fn negations_match_where_no_value_does() {
    check(vec![
        (json!({"a": {"$ne": 1}}), vec![json!({}), json!({"a": [2]})], vec![json!({"a": [1, 2]})]),
        (
            json!({"a": {"$nin": [1, null]}}),
            vec![json!({"a": 2})],
            vec![json!({}), json!({"a": [1]})],
        ),
        (json!({"a": {"$nin": []}}), vec![json!({})], vec![]),
        (json!({"a": {"$in": []}}), vec![], vec![json!({}), json!({"a": []})]),
        (
            json!({"a": {"$not": {"$gt": 1, "$lt": 5}}}),
            vec![json!({"a": 9}), json!({})],
            vec![json!({"a": 3}), json!({"a": [0, 9]})],
        ),
        (json!({"$nor": [{"a": 1}, {"b": 1}]}), vec![json!({"a": 2})], vec![json!({"b": 1})]),
    ]);
}

#[test]
fn lengths_lists_types_and_remainders_are_asked_of_the_right_values() {
    check(vec![
        (
            json!({"a": {"$size": 1.0}}),
            vec![json!({"a": [[1, 2]]})],
            vec![json!({"a": []}), json!({"a": "x"}), json!({"a": [1, 2]})],
        ),
        (json!({"a": {"$size": 2}}), vec![json!({"a": [1, 2]})], vec![json!({"a": [[1, 2]]})]),
        (json!({"a": {"$all": [1, 2]}}), vec![json!({"a": [2, 1, 0]})], vec![json!({"a": [1]})]),
        (json!({"a": {"$all": [5]}}), vec![json!({"a": 5})], vec![json!({})]),
        (
            json!({"a": {"$all": [[1]]}}),
            vec![json!({"a": [1]}), json!({"a": [[1]]})],
            vec![json!({"a": 1})],
        ),
        (json!({"a": {"$all": []}}), vec![], vec![json!({"a": []}), json!({})]),
        (
            json!({"a": {"$all": [{"$elemMatch": {"$gt": 5}}, {"$elemMatch": {"$lt": 2}}]}}),
            vec![json!({"a": [1, 6]})],
            vec![json!({"a": [3, 6]})],
        ),
        (
            json!({"a": {"$type": ["array", "bool"]}}),
            vec![json!({"a": []}), json!({"a": true})],
            vec![json!({"a": 1}), json!({})],
        ),
        (json!({"a": {"$type": "number"}}), vec![json!({"a": ["x", 1]})], vec![json!({"a": "1"})]),
        (
            json!({"a": {"$mod": [4, 0]}}),
            vec![json!({"a": 8.0}), json!({"a": -4})],
            vec![json!({"a": 4.5}), json!({"a": "4"}), json!({"a": null})],
        ),
    ]);
}

#[test]
fn regular_expressions_look_into_strings() {
    check(vec![
        (
            json!({"a": {"$regex": "^b"}}),
            vec![json!({"a": "bc"}), json!({"a": [1, "b"]})],
            vec![json!({"a": "ab"}), json!({"a": 1}), json!({})],
        ),
        (
            json!({"a": {"$regex": "B$", "$options": "i", "$ne": "b"}}),
            vec![json!({"a": "ab"})],
            vec![json!({"a": "b"})],
        ),
        (
            json!({"a": {"$not": {"$regex": "b"}}}),
            vec![json!({"a": 1}), json!({})],
            vec![json!({"a": "b"})],
        ),
    ]);
}

#[test]
fn paths_go_through_objects_positions_and_elements() {
    check(vec![
        (
            json!({"a.b.c": 1}),
            vec![json!({"a": {"b": [{"c": 0}, {"c": 1}]}})],
            vec![json!({"a": 1})],
        ),
        (
            json!({"a.0": 1}),
            vec![json!({"a": [1]}), json!({"a": {"0": 1}})],
            vec![json!({"a": [0, 1]}), json!({"a": [{"0": 1}]})],
        ),
        (json!({"a.1.b": 1}), vec![json!({"a": [0, {"b": 1}]})], vec![json!({"a": [{"b": 1}]})]),
        (json!({"a.5": null}), vec![json!({"a": []}), json!({"a": [1]})], vec![]),
        (json!({"a.0.b": 1}), vec![json!({"a": [[{"b": 1}]]})], vec![]),
    ]);
}

#[test]
fn what_is_no_filter_is_refused_at_its_place() {
    let cases = [
        (json!([]), ""),
        (json!(5), ""),
        (json!({"$where": "1"}), "$where"),
        (json!({"$gt": 5}), "$gt"),
        (json!({"$and": []}), "$and"),
        (json!({"$or": [{"a": 1}, 2]}), "$or[1]"),
        (json!({"a": {"$above": 1}}), "a.$above"),
        (json!({"a": {"$gt": 1, "b": 2}}), "a.b"),
        (json!({"a": {"$or": [{"$gt": 1}]}}), "a.$or"),
        (json!({"a": {"$in": 1}}), "a.$in"),
        (json!({"a": {"$in": [1, {"$gt": 1}]}}), "a.$in[1]"),
        (json!({"a": {"$all": [{"$gt": 1}]}}), "a.$all[0]"),
        (json!({"a": {"$exists": 1}}), "a.$exists"),
        (json!({"a": {"$type": "date"}}), "a.$type"),
        (json!({"a": {"$type": []}}), "a.$type"),
        (json!({"a": {"$mod": [0, 1]}}), "a.$mod"),
        (json!({"a": {"$mod": [2]}}), "a.$mod"),
        (json!({"a": {"$mod": [2.5, 1]}}), "a.$mod"),
        (json!({"a": {"$size": -1}}), "a.$size"),
        (json!({"a": {"$size": 1.5}}), "a.$size"),
        (json!({"a": {"$regex": 1}}), "a.$regex"),
        (json!({"a": {"$regex": "("}}), "a.$regex"),
        (json!({"a": {"$regex": "x", "$options": "g"}}), "a.$regex"),
        (json!({"a": {"$options": "i"}}), "a.$options"),
        (json!({"a": {"$not": 1}}), "a.$not"),
        (json!({"a": {"$not": {}}}), "a.$not"),
        (json!({"a": {"$elemMatch": [1]}}), "a.$elemMatch"),
        (json!({"a": {"$elemMatch": {"b": {"$x": 1}}}}), "a.$elemMatch.b.$x"),
        (json!({"a..b": 1}), "a..b"),
        (json!({"": 1}), ""),
    ];
    for (filter, place) in cases {
        assert_eq!(place_of_error(&filter), place, "{filter}");
    }
}

#[test]
fn lookaround_and_backreferences_have_a_code_of_their_own() {
    for regex in ["a(?=b)", r"(a)\1"] {
        let error = Filter::parse(&json!({"a": {"$regex": regex}})).unwrap_err();
        assert_eq!(error.code().name(), "REGEX_UNSUPPORTED", "{error}");
    }
    let error = Filter::parse(&json!({"a": {"$x": 1}})).unwrap_err();
    assert_eq!(error.code().name(), "FILTER_INVALID", "{error}");
}

#[test]
fn a_filter_has_limits() {
    let nested = |depth: usize| (1..depth).fold(json!({"a": 1}), |f, _| json!({"$and": [f]}));
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX)).is_ok());
    assert!(place_of_error(&nested(FILTER_DEPTH_MAX + 1)).starts_with("$and[0].$and[0]"));

    let wide = |conditions: usize| json!({"$or": vec![json!({"a": 1}); conditions - 1]});
    assert!(Filter::parse(&wide(FILTER_CONDITIONS_MAX)).is_ok());
    assert_eq!(place_of_error(&wide(FILTER_CONDITIONS_MAX + 1)), "$or[999].a");

    let pattern = json!({"a": {"$regex": "x"}});
    let patterns = json!({"$and": vec![pattern; FILTER_PATTERNS_MAX + 1]});
    assert_eq!(place_of_error(&patterns), "$and[32].a.$regex");
    assert_eq!(place_of_error(&json!({"a": {"$in": vec![1; 10_001]}})), "a.$in");
}
