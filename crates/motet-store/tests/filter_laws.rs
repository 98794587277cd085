//! Laws that hold for every filter and every document.

use motet_store::filter::{Constraint, Filter};
use motet_store::value::{Class, Direction, Path, compare, encode};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const COMPARISONS: [&str; 6] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];
const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|boolean| json!(boolean)),
        (-2_i64..4).prop_map(|number| json!(number)),
        select(vec![json!(1.0), json!(0.5), json!(-0.0), json!(9_007_199_254_740_993_u64)]),
        select(vec!["", "a", "b", "ab", "1", "\u{10000}"]).prop_map(|text| json!(text)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c", "0"]).prop_map(str::to_owned)
}

fn document() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), value()), 0..5)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn path() -> impl Strategy<Value = String> {
    let step = select(vec!["a", "b", "c", "0", "1"]);
    let rest = prop::collection::vec(step, 0..3);
    (name(), rest).prop_map(|(first, rest)| [&[&*first], &rest[..]].concat().join("."))
}

/// The operators of one field.
fn condition() -> impl Strategy<Value = Value> {
    let values = || prop::collection::vec(scalar(), 0..3);
    let leaf = prop_oneof![
        4 => (select(COMPARISONS.to_vec()), value()).prop_map(|(op, value)| json!({op: value})),
        1 => (select(vec!["$in", "$nin", "$all"]), values()).prop_map(|(op, v)| json!({op: v})),
        1 => any::<bool>().prop_map(|there| json!({"$exists": there})),
        1 => select(vec!["null", "number", "string", "array"]).prop_map(|t| json!({"$type": t})),
        1 => (0..3).prop_map(|size| json!({"$size": size})),
        1 => (1..4, -1..3).prop_map(|(by, left)| json!({"$mod": [by, left]})),
        1 => select(vec!["a", "^b?$", "."]).prop_map(|regex| json!({"$regex": regex})),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|condition| json!({"$not": condition})),
            inner.clone().prop_map(|condition| json!({"$elemMatch": condition})),
            (path(), inner.clone()).prop_map(|(p, c)| json!({"$elemMatch": {p: c}})),
            (inner.clone(), inner).prop_map(|(a, b)| merged(a, b)),
        ]
    })
}

fn merged(a: Value, b: Value) -> Value {
    let (Value::Object(mut a), Value::Object(b)) = (a, b) else { panic!("both are objects") };
    a.extend(b);
    Value::Object(a)
}

fn filter() -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        3 => (path(), condition()).prop_map(|(path, condition)| json!({path: condition})),
        1 => (path(), value()).prop_map(|(path, value)| json!({path: value})),
    ];
    field.prop_recursive(2, 6, 3, |inner| {
        let filters = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (select(vec!["$and", "$or", "$nor"]), filters).prop_map(|(op, list)| json!({op: list})),
            (inner.clone(), inner).prop_map(|(a, b)| merged(a, b)),
        ]
    })
}

/// Any JSON, with names that are or look like operators.
fn anything() -> impl Strategy<Value = Value> {
    let names = select(vec![
        "a",
        "a.b",
        "",
        ".",
        "$",
        "$and",
        "$or",
        "$nor",
        "$not",
        "$eq",
        "$in",
        "$gt",
        "$regex",
        "$options",
        "$elemMatch",
        "$all",
        "$size",
        "$mod",
        "$type",
        "$exists",
        "$where",
    ]);
    let text = select(vec!["", "i", "(", "number", "a+", r"\1", "(?=x)"]).prop_map(|s| json!(s));
    let leaf = prop_oneof![scalar(), text, any::<f64>().prop_map(|float| json!(float))];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone().prop_map(str::to_owned), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn matches(filter: &Value, document: &Value) -> bool {
    Filter::parse(filter).expect("the generator makes filters").matches(document)
}

fn is_in_ranges(constraint: &Constraint<'_>, value: Option<&Value>, direction: Direction) -> bool {
    let mut key = Vec::new();
    let _ = encode(&mut key, value, direction);
    constraint.entry_ranges(direction).iter().any(|range| range.from <= key && key < range.to)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_a_filter_never_panics(filter in anything(), document in value()) {
        if let Ok(filter) = Filter::parse(&filter) {
            let _ = filter.matches(&document);
            let _ = filter.bounds();
        }
    }

    #[test]
    fn what_the_generator_makes_is_a_filter(filter in filter()) {
        prop_assert!(Filter::parse(&filter).is_ok(), "{:?}", Filter::parse(&filter).err());
    }

    #[test]
    fn not_matches_exactly_where_its_conditions_do_not(
        path in path(), condition in condition(), document in document(),
    ) {
        let plain = matches(&json!({&path: condition}), &document);
        prop_assert_eq!(matches(&json!({&path: {"$not": condition}}), &document), !plain);
    }

    #[test]
    fn de_morgan_holds(a in filter(), b in filter(), document in document()) {
        let is = |filter: Value| matches(&filter, &document);
        let (not_a, not_b) = (json!({"$nor": [a]}), json!({"$nor": [b]}));
        prop_assert_eq!(is(json!({"$nor": [a]})), !is(a.clone()));
        prop_assert_eq!(is(json!({"$and": [a, b]})), is(a.clone()) && is(b.clone()));
        prop_assert_eq!(is(json!({"$nor": [a, b]})), is(json!({"$and": [not_a, not_b]})));
        prop_assert_eq!(
            is(json!({"$nor": [{"$and": [a, b]}]})), is(json!({"$or": [not_a, not_b]}))
        );
    }

    #[test]
    fn in_and_all_are_what_their_equalities_are(
        path in path(), values in prop::collection::vec(value(), 1..4), document in document(),
    ) {
        let is = |filter: Value| matches(&filter, &document);
        let each: Vec<_> = values.iter().map(|value| json!({&path: {"$eq": value}})).collect();
        let any = is(json!({"$or": each}));
        prop_assert_eq!(is(json!({&path: {"$in": values}})), any);
        prop_assert_eq!(is(json!({&path: {"$nin": values}})), !any);
        prop_assert_eq!(is(json!({&path: {"$all": values}})), is(json!({"$and": each})));
    }

    #[test]
    fn a_comparison_matches_by_one_of_the_values_that_an_index_holds(
        path in path(), operand in value(), document in document(),
    ) {
        let values = Path::parse(&path).expect("it is a path").values(&document).into_iter();
        let values: Vec<_> = values.map(|value| value.unwrap_or(&Value::Null)).collect();
        for (operator, orders) in [("$eq", [0, 0]), ("$gte", [0, 1]), ("$lt", [-1, -1])] {
            let expected = values.iter().any(|value| {
                Class::of(value) == Class::of(&operand)
                    && orders.contains(&(compare(value, &operand) as i32))
            });
            let filter = json!({&path: {operator: operand}});
            prop_assert_eq!(matches(&filter, &document), expected, "{}", filter);
        }
    }

    #[test]
    fn every_match_meets_every_constraint(filter in filter(), document in document()) {
        let filter = Filter::parse(&filter).expect("it is a filter");
        let bounds = if filter.matches(&document) { filter.bounds() } else { Vec::new() };
        for bounds in bounds {
            let values = bounds.path().values(&document);
            for (constraint, direction) in
                bounds.each().iter().flat_map(|one| DIRECTIONS.map(|way| (one, way)))
            {
                prop_assert!(values.iter().any(|value| constraint.contains(*value)));
                prop_assert!(values.iter().any(|v| is_in_ranges(constraint, *v, direction)));
            }
            if !bounds.path().is_multiple(&document) {
                let together = bounds.together();
                prop_assert!(values.iter().any(|value| together.contains(*value)));
                prop_assert!(values.iter().any(|v| is_in_ranges(&together, *v, DIRECTIONS[1])));
            }
        }
    }

    #[test]
    fn a_path_that_is_not_multiple_has_one_value(path in path(), document in document()) {
        let path = Path::parse(&path).expect("it is a path");
        let one = path.values(&document).len() == 1;
        prop_assert!(one || path.is_multiple(&document));
    }
}
