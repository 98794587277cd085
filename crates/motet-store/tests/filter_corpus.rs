//! The fuzz corpus of filters, replayed.

use std::fs;
use std::path::Path;

use motet_store::filter::Filter;
use serde_json::{Value, json};

#[test]
fn every_filter_of_the_fuzz_corpus_is_read_and_negated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/filter");
    let mut read = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is readable") {
        let bytes = fs::read(entry.expect("the corpus is readable").path());
        let bytes = bytes.expect("the corpus is readable");
        let (filter, document): (Value, Value) =
            serde_json::from_slice(&bytes).expect("a seed is a filter and a document");
        let Ok(parsed) = Filter::parse(&filter) else { continue };
        let negated = Filter::parse(&json!({"$nor": [filter]})).expect("a filter can be negated");
        assert_ne!(parsed.matches(&document), negated.matches(&document));
        read += 1;
    }
    assert!(read > 0, "{} has filters", folder.display());
}
