//! Reads a filter and a document, `[filter, document]` as JSON, and asks the one about the other.
//! Whatever matches meets the filter's bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_store::filter::Filter;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok((filter, document)) = serde_json::from_slice::<(Value, Value)>(bytes) else { return };
    let Ok(filter) = Filter::parse(&filter) else { return };
    if !filter.matches(&document) {
        return;
    }
    for bounds in filter.bounds() {
        let values = bounds.path().values(&document);
        for constraint in bounds.each() {
            assert!(values.iter().any(|value| constraint.contains(*value)));
        }
    }
});
