//! The memory broker keeps the contract of every broker.

#![allow(clippy::print_stderr, reason = "names the case that failed")]

use motet_protocol::Rng;
use motet_realtime::broker::conformance::{Bench, cases};
use motet_realtime::broker::{MemoryBroker, MemoryBrokerOptions};

#[test]
fn the_memory_broker_passes_every_case_of_the_conformance_suite() {
    for (name, case) in cases::<u64, MemoryBroker<u64>>() {
        eprintln!("case: {name}");
        let broker = MemoryBroker::new(Rng::from_seed([1; 32]), MemoryBrokerOptions::default());
        case(&mut Bench::new(broker, |_| false, |number| number));
    }
}
