use core::cmp::Ordering;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::value::{compare, equal};

fn any_number() -> impl Strategy<Value = Value> {
    let near_powers = (0_u32..64, -2_i128..=2).prop_map(|(power, off)| {
        let number = (1_i128 << power) + off;
        u64::try_from(number).map_or_else(|_| json!(number as i64), |number| json!(number))
    });
    prop_oneof![
        (-3_i64..4).prop_map(|number| json!(number)),
        (-6_i32..7).prop_map(|halves| json!(f64::from(halves) / 2.0)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(|f| json!(f)),
        near_powers.clone(),
        near_powers.prop_map(|number| json!(number.as_f64())),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    let characters =
        prop::sample::select(vec!['\0', '\u{1}', '\u{2}', 'a', 'b', '\u{ffff}', '\u{10000}']);
    prop::collection::vec(characters, 0..4).prop_map(String::from_iter)
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|boolean| json!(boolean)),
        any_number(),
        any_text().prop_map(|text| json!(text)),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn encoded(value: &Value, direction: Direction) -> (Vec<u8>, Encoded) {
    let mut key = Vec::new();
    let whole = encode(&mut key, Some(value), direction);
    (key, whole)
}

fn ascending(value: &Value) -> Vec<u8> {
    encoded(value, Direction::Ascending).0
}

fn tuple(values: &[(Value, Direction)]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, direction) in values {
        assert_eq!(encode(&mut key, Some(value), *direction), Encoded::Exact);
    }
    key
}

fn directed(a: &Value, b: &Value, direction: Direction) -> Ordering {
    match direction {
        Direction::Ascending => compare(a, b),
        Direction::Descending => compare(b, a),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn bytes_compare_as_values_do(a in any_value(), b in any_value()) {
        for direction in [Direction::Ascending, Direction::Descending] {
            let ((key_a, whole_a), (key_b, whole_b)) = (encoded(&a, direction), encoded(&b, direction));
            prop_assert_eq!((whole_a, whole_b), (Encoded::Exact, Encoded::Exact));
            prop_assert_eq!(key_a.cmp(&key_b), directed(&a, &b, direction), "{} and {}", a, b);
        }
    }

    #[test]
    fn numbers_compare_exactly(a in any_number(), b in any_number()) {
        prop_assert_eq!(ascending(&a).cmp(&ascending(&b)), compare(&a, &b), "{} and {}", a, b);
    }

    #[test]
    fn no_encoding_is_the_start_of_another(a in any_value(), b in any_value()) {
        prop_assume!(!equal(&a, &b));
        prop_assert!(!ascending(&a).starts_with(&ascending(&b)), "{} and {}", a, b);
    }

    #[test]
    fn tuples_compare_part_by_part(
        a in any_value(), b in any_value(), c in any_value(), d in any_value(),
        first_descends: bool, second_descends: bool,
    ) {
        let way = |descends| if descends { Direction::Descending } else { Direction::Ascending };
        let (first, second) = (way(first_descends), way(second_descends));
        let one = tuple(&[(a.clone(), first), (c.clone(), second)]);
        let other = tuple(&[(b.clone(), first), (d.clone(), second)]);
        let order = directed(&a, &b, first).then_with(|| directed(&c, &d, second));
        prop_assert_eq!(one.cmp(&other), order);
    }

    #[test]
    fn long_values_sort_right_among_those_that_differ_early(a in "[ab]{370,420}", b in "[ab]{370,420}") {
        let (a, b) = (json!(a), json!(b));
        let (key_a, key_b) = (ascending(&a), ascending(&b));
        prop_assert!(key_a.len() <= VALUE_BYTES_MAX && key_b.len() <= VALUE_BYTES_MAX);
        prop_assert_eq!(key_a.cmp(&key_b), compare(&a, &b));
    }
}

#[test]
fn the_classes_bytes_enclose_their_values() {
    let values = [json!(null), json!(-1e300), json!(0), json!(u64::MAX), json!("\u{10ffff}")];
    let more = [json!({"a": 1}), json!([[]]), json!(false), json!(true)];
    for value in values.iter().chain(&more) {
        let (first, past) = class_bytes(Class::of(value));
        let byte = ascending(value)[0];
        assert!(first <= byte && byte < past, "{value}");
    }
}

#[test]
fn an_absent_value_is_encoded_as_null() {
    let mut absent = Vec::new();
    assert_eq!(encode(&mut absent, None, Direction::Ascending), Encoded::Exact);
    assert_eq!(absent, ascending(&json!(null)));
}

#[test]
fn numbers_of_few_bits_take_few_bytes() {
    for (number, bytes) in [(json!(0), 1), (json!(1), 4), (json!(255), 4), (json!(-1001), 5)] {
        assert_eq!(ascending(&number).len(), bytes, "{number}");
    }
    assert_eq!(ascending(&json!(u64::MAX)).len(), 12);
}

#[test]
fn a_long_value_is_its_prefix_and_a_hash() {
    let long = |end: &str| json!("x".repeat(1_000) + end);
    let (key, whole) = encoded(&long("a"), Direction::Ascending);
    assert_eq!((key.len(), whole), (VALUE_BYTES_MAX, Encoded::Shortened));
    assert_eq!(key, ascending(&long("a")), "equal values have equal bytes");
    let other = ascending(&long("b"));
    assert_ne!(key, other);
    assert_eq!(key[..VALUE_PREFIX_BYTES], other[..VALUE_PREFIX_BYTES]);
}

#[test]
fn the_hash_of_a_long_value_does_not_change_between_versions() {
    let key = ascending(&json!("x".repeat(1_000)));
    let hash: String = key[VALUE_PREFIX_BYTES..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, "85702e80da6277689314a134d2e749a4");
}

#[test]
fn a_value_that_is_just_short_enough_stands_whole() {
    // A byte of the class in front and one at the end.
    let text = |bytes: usize| json!("x".repeat(bytes - 2));
    let (key, whole) = encoded(&text(VALUE_PREFIX_BYTES), Direction::Descending);
    assert_eq!((key.len(), whole), (VALUE_PREFIX_BYTES, Encoded::Exact));
    let (key, whole) = encoded(&text(VALUE_PREFIX_BYTES + 1), Direction::Descending);
    assert_eq!((key.len(), whole), (VALUE_BYTES_MAX, Encoded::Shortened));
}

#[test]
fn long_equal_objects_are_encoded_equally_whatever_the_order_of_their_fields() {
    let text = "y".repeat(300);
    let a: Value = serde_json::from_str(&format!(r#"{{"p": "{text}", "q": "{text}"}}"#)).unwrap();
    let b: Value = serde_json::from_str(&format!(r#"{{"q": "{text}", "p": "{text}"}}"#)).unwrap();
    assert_eq!(ascending(&a), ascending(&b));
}

#[test]
fn every_key_that_starts_with_a_key_is_below_its_successor() {
    let key = ascending(&json!("a"));
    let next = successor(&key).unwrap();
    let mut longer = key.clone();
    longer.extend_from_slice(&[u8::MAX; 4]);
    assert!(key < longer && longer < next);
    assert_eq!(successor(&[1, 0xff, 0xff]), Some(vec![2]));
    assert_eq!(successor(&[0xff]), None);
    assert_eq!(successor(&[]), None);
}
