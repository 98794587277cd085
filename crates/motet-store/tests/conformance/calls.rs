//! How often an engine is asked: over a network each call is a round trip.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use motet_store::Error;
use motet_store::engine::{
    Answer, Capabilities, Commit, Decide, Decision, Direction, Engine, OnEntry, OnValue, Range,
    Read, Table, View, Writes,
};

use super::Make;
use crate::engines::{decider, get, view, write};

/// An engine that counts the reads of its views.
struct Counting {
    engine: Arc<dyn Engine>,
    calls: Arc<AtomicUsize>,
}

struct CountingView {
    view: Box<dyn View>,
    calls: Arc<AtomicUsize>,
}

impl Engine for Counting {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn view(&self) -> Answer<'_, Result<Box<dyn View>, Error>> {
        let calls = Arc::clone(&self.calls);
        let view = pollster::block_on(self.engine.view());
        Answer::now(view.map(|view| Box::new(CountingView { view, calls }) as Box<dyn View>))
    }

    fn write(&self, deciders: Vec<Box<dyn Decide>>) -> Answer<'_, Vec<Result<Commit, Error>>> {
        self.engine.write(deciders)
    }
}

impl View for CountingView {}

impl Read for CountingView {
    fn get_many<'a>(
        &'a self,
        table: Table,
        keys: &'a [&'a [u8]],
        each: &'a mut OnValue<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.view.get_many(table, keys, each)
    }

    fn range<'a>(
        &'a self,
        range: Range<'a>,
        each: &'a mut OnEntry<'a>,
    ) -> Answer<'a, Result<(), Error>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.view.range(range, each)
    }
}

pub(crate) fn a_point_read_is_one_call_and_a_query_over_an_index_two(make: Make<'_>) {
    let fresh = make();
    let calls = Arc::new(AtomicUsize::new(0));
    let engine = Counting { engine: Arc::clone(&fresh.engine), calls: Arc::clone(&calls) };
    let documents = decider(|_| {
        let mut writes = Writes::default();
        for number in 0..100_u8 {
            writes.put(Table::Documents, &[number], &[number]);
            writes.put(Table::Index, &[number % 10, number], b"");
        }
        Ok(Decision { writes, changes: 0 })
    });
    write(&engine, documents).expect("a write");
    let view = view(&engine);
    assert_eq!(get(&*view, Table::Documents, &[7]), Some(vec![7]));
    assert_eq!(calls.swap(0, Ordering::Relaxed), 1);

    let mut keys = Vec::new();
    let range = Range {
        table: Table::Index,
        from: Bound::Included(&[3]),
        to: Bound::Excluded(&[4]),
        direction: Direction::Forward,
    };
    pollster::block_on(view.range(range, &mut |key, _| {
        keys.push(key[1..].to_vec());
        ControlFlow::Continue(())
    }))
    .expect("a range");
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut sum = 0;
    pollster::block_on(view.get_many(Table::Documents, &keys, &mut |_, value| {
        sum += value.map_or(0, |value| u32::from(value[0]));
    }))
    .expect("a read");
    assert_eq!((keys.len(), sum), (10, (0..10).map(|ten| ten * 10 + 3).sum()));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
