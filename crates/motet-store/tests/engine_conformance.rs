//! What every engine does, asked of each of them.

mod conformance;
mod engines;

use std::sync::Arc;

use conformance::Fresh;
use motet_store::engine::memory::Memory;

macro_rules! conformance_of {
    ($engine:ident, $fresh:expr, [$($group:ident::$case:ident),* $(,)?]) => {
        mod $engine {
            use super::*;

            $(#[test]
            fn $case() {
                conformance::$group::$case(&$fresh);
            })*
        }
    };
}

macro_rules! every_case_of {
    ($engine:ident, $fresh:expr) => {
        conformance_of!(
            $engine,
            $fresh,
            [
                reading::many_keys_are_answered_at_their_places_and_absent_ones_as_absent,
                reading::ranges_agree_with_a_sorted_map_for_all_ends_and_both_directions,
                reading::a_range_ends_where_the_reader_breaks_off,
                reading::keys_are_bytes_and_sort_as_such,
                reading::the_longest_key_is_kept_whole_and_one_byte_more_is_refused,
                reading::tables_do_not_see_each_other,
                reading::a_large_value_comes_back_whole,
                views::a_view_sees_nothing_that_was_written_after_it_was_taken,
                views::a_view_never_sees_a_part_of_a_transaction,
                views::many_views_at_once_each_see_their_own_time,
                writing::a_decider_sees_what_those_before_it_in_its_group_wrote,
                writing::a_rejection_writes_nothing_and_concerns_nobody_else,
                writing::of_two_writes_to_one_key_the_later_one_holds,
                writing::removing_what_is_absent_is_no_error,
                writing::a_transaction_that_is_too_large_is_refused_and_the_others_succeed,
                writing::no_deciders_are_answered_with_no_results,
                writing::a_decider_that_answers_later_is_waited_for,
                clocks::concurrent_writers_number_their_changes_without_a_gap_and_each_once,
                clocks::a_stamp_is_later_than_that_of_every_change_before,
                clocks::what_changes_nothing_in_the_log_uses_no_clock,
                clocks::whatever_is_written_moves_the_time_and_nothing_else_does,
                clocks::one_decider_may_use_several_clocks,
                calls::a_point_read_is_one_call_and_a_query_over_an_index_two,
            ]
        );
    };
}

every_case_of!(memory, || Fresh { engine: Arc::new(Memory::default()), _dir: None });

#[cfg(unix)]
every_case_of!(lmdb, || {
    let dir = tempfile::tempdir().expect("a directory");
    Fresh { engine: Arc::new(engines::open(dir.path())), _dir: Some(dir) }
});
