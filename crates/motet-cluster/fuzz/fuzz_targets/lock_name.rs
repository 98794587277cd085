//! Reads the name of a lock, whole and behind the cluster's prefix; what is read is written and
//! read again as the same lock.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motet_cluster::ClusterName;

fuzz_target!(|text: &str| {
    let cluster = ClusterName::new("fuzz");
    for name in [text.to_owned(), format!("{}/{text}", cluster.as_str())] {
        if let Some(lock) = cluster.parse_lock(&name) {
            assert_eq!(cluster.parse_lock(&cluster.lock(lock)), Some(lock));
        }
    }
});
