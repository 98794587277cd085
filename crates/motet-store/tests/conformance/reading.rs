//! Keys, values and ranges.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use motet_store::Error;
use motet_store::engine::{Decision, Direction, Engine, Range, Table, Writes};

use super::Make;
use crate::engines::{all, decider, entries, get, putting, removing, view, write, write_all};

fn put_all(engine: &dyn Engine, table: Table, keys: &[&[u8]]) {
    let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
    let written = write(
        engine,
        decider(move |_| {
            let mut writes = Writes::default();
            for key in &keys {
                writes.put(table, key, &[b"value of ", key.as_slice()].concat());
            }
            Ok(Decision { writes, changes: 0 })
        }),
    );
    written.expect("a write");
}

pub(crate) fn many_keys_are_answered_at_their_places_and_absent_ones_as_absent(make: Make<'_>) {
    let fresh = make();
    put_all(&*fresh.engine, Table::Documents, &[b"a", b"c"]);
    let keys: [&[u8]; 6] = [b"c", b"b", b"a", b"c", b"", b"aa"];
    let mut found = vec![None; keys.len()];
    let view = view(&*fresh.engine);
    pollster::block_on(view.get_many(Table::Documents, &keys, &mut |place, value| {
        assert!(found[place].replace(value.map(<[u8]>::to_vec)).is_none(), "{place} twice");
    }))
    .expect("a read");
    let found: Vec<_> = found.into_iter().map(|value| value.expect("every place")).collect();
    let (a, c) = (Some(b"value of a".to_vec()), Some(b"value of c".to_vec()));
    assert_eq!(found, [c.clone(), None, a, c, None, None]);
}

pub(crate) fn ranges_agree_with_a_sorted_map_for_all_ends_and_both_directions(make: Make<'_>) {
    let fresh = make();
    let keys: [&[u8]; 7] = [b"\x00", b"a", b"a\x00", b"ab", b"b", b"\xff", b"\xff\xff"];
    put_all(&*fresh.engine, Table::Index, &keys);
    let model: BTreeMap<Vec<u8>, Vec<u8>> =
        all(&*view(&*fresh.engine), Table::Index).into_iter().collect();
    assert_eq!(model.len(), keys.len());
    let ends: [&[u8]; 11] = [
        b"",
        b"\x00",
        b"\x00\x00",
        b"a",
        b"a\x00",
        b"aa",
        b"ab",
        b"b",
        b"c",
        b"\xff",
        b"\xff\xff\xff",
    ];
    let bounds: Vec<Bound<&[u8]>> = ends
        .iter()
        .flat_map(|end| [Bound::Included(*end), Bound::Excluded(*end)])
        .chain([Bound::Unbounded])
        .collect();
    let view = view(&*fresh.engine);
    for from in &bounds {
        for to in &bounds {
            // Filtered, for the map's own ranges panic on inverted ends.
            let mut expected: Vec<_> = model
                .iter()
                .filter(|(key, _)| {
                    let above = match from {
                        Bound::Included(from) => key.as_slice() >= *from,
                        Bound::Excluded(from) => key.as_slice() > *from,
                        Bound::Unbounded => true,
                    };
                    above
                        && match to {
                            Bound::Included(to) => key.as_slice() <= *to,
                            Bound::Excluded(to) => key.as_slice() < *to,
                            Bound::Unbounded => true,
                        }
                })
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let forward = entries(&*view, Table::Index, *from, *to, Direction::Forward);
            assert_eq!(forward, expected, "{from:?} to {to:?}");
            expected.reverse();
            let backward = entries(&*view, Table::Index, *from, *to, Direction::Backward);
            assert_eq!(backward, expected, "{from:?} to {to:?}, backward");
        }
    }
}

pub(crate) fn a_range_ends_where_the_reader_breaks_off(make: Make<'_>) {
    let fresh = make();
    put_all(&*fresh.engine, Table::Documents, &[b"a", b"b", b"c", b"d"]);
    let view = view(&*fresh.engine);
    for (direction, expected) in [(Direction::Forward, b"ab"), (Direction::Backward, b"dc")] {
        let mut seen = Vec::new();
        let range = Range {
            table: Table::Documents,
            from: Bound::Unbounded,
            to: Bound::Unbounded,
            direction,
        };
        pollster::block_on(view.range(range, &mut |key, _| {
            seen.extend_from_slice(key);
            if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }))
        .expect("a range");
        assert_eq!(seen, expected);
    }
}

pub(crate) fn keys_are_bytes_and_sort_as_such(make: Make<'_>) {
    let fresh = make();
    let every: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let mut keys: Vec<&[u8]> = every.iter().map(<[u8; 1]>::as_slice).collect();
    keys.reverse();
    put_all(&*fresh.engine, Table::Documents, &keys);
    let found = all(&*view(&*fresh.engine), Table::Documents);
    keys.reverse();
    let found: Vec<&[u8]> = found.iter().map(|(key, _)| key.as_slice()).collect();
    assert_eq!(found, keys);
}

pub(crate) fn the_longest_key_is_kept_whole_and_one_byte_more_is_refused(make: Make<'_>) {
    let fresh = make();
    let max = fresh.engine.capabilities().max_key_len;
    let longest = vec![0xff; max];
    let results = write_all(
        &*fresh.engine,
        vec![
            putting(longest.clone(), "longest"),
            putting(vec![1; max + 1], "too long"),
            putting("", "empty"),
            removing(""),
            putting("after", "it"),
        ],
    );
    assert!(results[0].is_ok() && results[4].is_ok(), "{results:?}");
    for (refused, length) in [(1, max + 1), (2, 0), (3, 0)] {
        let error = results[refused].as_ref().expect_err("a refusal");
        assert!(
            matches!(error, Error::KeyInvalid { bytes, max: limit } if *bytes == length && *limit == max),
            "{error}"
        );
    }
    let view = view(&*fresh.engine);
    assert_eq!(get(&*view, Table::Documents, &longest), Some(b"longest".to_vec()));
    assert_eq!(get(&*view, Table::Documents, &vec![0xff; max + 1]), None);
    assert_eq!(all(&*view, Table::Documents).len(), 2);
}

pub(crate) fn tables_do_not_see_each_other(make: Make<'_>) {
    let fresh = make();
    for table in [Table::Documents, Table::Log, Table::Index] {
        put_all(&*fresh.engine, table, &[table.name().as_bytes()]);
    }
    let view = view(&*fresh.engine);
    for table in [Table::Documents, Table::Log, Table::Index] {
        let found = all(&*view, table);
        assert_eq!(found.len(), 1, "{table:?}");
        assert_eq!(found[0].0, table.name().as_bytes());
    }
}

pub(crate) fn a_large_value_comes_back_whole(make: Make<'_>) {
    let fresh = make();
    let value: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    write(&*fresh.engine, putting("large", value.clone())).expect("a write");
    write(&*fresh.engine, putting("empty", "")).expect("a write");
    let view = view(&*fresh.engine);
    assert_eq!(get(&*view, Table::Documents, b"large"), Some(value));
    assert_eq!(get(&*view, Table::Documents, b"empty"), Some(Vec::new()));
}
