//! Consistency of what is read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use motet_store::engine::{Decision, Table, Writes};

use super::Make;
use crate::engines::{all, decider, get, putting, view, write};

pub(crate) fn a_view_sees_nothing_that_was_written_after_it_was_taken(make: Make<'_>) {
    let fresh = make();
    write(&*fresh.engine, putting("k", "1")).expect("a write");
    let before = view(&*fresh.engine);
    write(&*fresh.engine, putting("k", "2")).expect("a write");
    write(&*fresh.engine, putting("l", "2")).expect("a write");
    assert_eq!(get(&*before, Table::Documents, b"k"), Some(b"1".to_vec()));
    assert_eq!(all(&*before, Table::Documents).len(), 1);
    let after = view(&*fresh.engine);
    assert_eq!(get(&*after, Table::Documents, b"k"), Some(b"2".to_vec()));
    assert_eq!(all(&*after, Table::Documents).len(), 2);
}

/// Every transaction sets four keys in two tables to one number.
pub(crate) fn a_view_never_sees_a_part_of_a_transaction(make: Make<'_>) {
    let fresh = make();
    let keys: [(Table, &[u8]); 4] = [
        (Table::Documents, b"a"),
        (Table::Index, b"a"),
        (Table::Documents, b"z"),
        (Table::Index, b"z"),
    ];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..500_u32 {
                let written = write(
                    &*fresh.engine,
                    decider(move |_| {
                        let mut writes = Writes::default();
                        for (table, key) in keys {
                            writes.put(table, key, &number.to_be_bytes());
                        }
                        Ok(Decision { writes, changes: 0 })
                    }),
                );
                written.expect("a write");
            }
            done.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = None;
                while !done.load(Ordering::Acquire) {
                    let view = view(&*fresh.engine);
                    let seen = keys.map(|(table, key)| get(&*view, table, key));
                    assert!(seen.iter().all(|value| *value == seen[0]), "{seen:?}");
                    assert!(seen[0] >= last, "a later view sees less");
                    last.clone_from(&seen[0]);
                }
            });
        }
    });
}

pub(crate) fn many_views_at_once_each_see_their_own_time(make: Make<'_>) {
    let fresh = make();
    let mut views = Vec::new();
    for number in 0..100_u32 {
        write(&*fresh.engine, putting("k", number.to_be_bytes())).expect("a write");
        views.push(view(&*fresh.engine));
    }
    for (number, view) in (0..100_u32).zip(&views) {
        let seen = get(&**view, Table::Documents, b"k");
        assert_eq!(seen, Some(number.to_be_bytes().to_vec()));
    }
}
