//! The fuzz corpora, replayed: every packet decodes whole and survives a second trip.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use motet_cluster::compact::Compact;
use motet_cluster::frame::{Frame, ToNode, ToPage};
use motet_cluster::name::check_topic;
use motet_cluster::{ClusterName, Packet};

/// The files of a corpus: name and content.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut seeds = Vec::new();
    for file in fs::read_dir(&folder).expect("a folder of seeds") {
        let file = file.expect("a seed");
        let bytes = fs::read(file.path()).expect("a readable seed");
        seeds.push((file.file_name().to_string_lossy().into_owned(), bytes));
    }
    assert!(!seeds.is_empty(), "{} has seeds", folder.display());
    seeds
}

fn replay<F>(target: &str)
where
    F: Compact + Clone + Debug + PartialEq + minicbor::Encode<()>,
{
    for (name, bytes) in seeds(target) {
        let (packet, skipped) = Packet::<F, ()>::decode(&bytes, Vec::new()).expect("a packet");
        assert_eq!(skipped, 0, "{target}/{name}");
        assert_eq!(Packet::decode(&packet.encode(), Vec::new()), Ok((packet, 0)));
    }
}

#[test]
fn every_packet_of_the_corpora_comes_back_as_it_was() {
    replay::<Frame>("node_packet");
    replay::<ToNode>("to_node_packet");
    replay::<ToPage>("to_page_packet");
}

#[test]
fn every_lock_of_the_corpus_is_read_back() {
    let cluster = ClusterName::new("fuzz");
    for (name, text) in seeds("lock_name") {
        let text = String::from_utf8(text).expect("a name");
        let full = format!("{}/{text}", cluster.as_str());
        let lock = cluster.parse_lock(&full);
        assert_eq!(lock.map(|lock| cluster.lock(lock)), Some(full), "{name}");
    }
}

#[test]
fn the_topics_of_the_corpus_are_accepted_or_refused_by_their_kind() {
    for (name, topic) in seeds("topic_name") {
        let topic = String::from_utf8(topic).expect("a name");
        let good = matches!(name.as_str(), "plain" | "longest");
        assert_eq!(check_topic(&topic).is_ok(), good, "{name}");
    }
}
