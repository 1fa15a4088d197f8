//! The contract of a store, sentence by sentence. Each function wants a store of its own.

mod batches;
mod keys;
mod limits;
mod listing;
mod time;

pub use batches::{
    a_batch_is_charged_whole_or_not_at_all, a_capacity_is_admitted_exactly, a_permissive_charge_takes_what_is_admitted,
    a_permissive_charge_vetoes_nothing, a_refusal_leaves_every_counter, charges_of_one_counter_add_up_in_order,
    costs_beyond_every_capacity_are_refused_for_good, peeks_make_no_counter, peeks_move_nothing, peeks_veto,
};
pub use keys::{keys_do_not_touch, limits_do_not_touch, reset_forgets_one_counter};
pub use limits::{
    a_rule_of_another_layout_is_an_error, an_unknown_limit_is_an_error, install_forgets_what_another_layout_left,
    install_forgets_what_it_does_not_name, install_keeps_what_it_names,
};
pub use listing::{
    a_bad_cursor_is_an_error, listing_bears_inserts, listing_is_complete, listing_leaves_out_what_has_gone,
    listing_misses_nothing,
};
pub use time::{a_clock_set_back_gives_nothing, a_peek_ahead_of_time_moves_nothing, what_has_expired_is_as_never_seen};

/// A test for each sentence of the contract that any store keeps. `$make` makes an empty store,
/// `$run` runs a future to its end.
#[macro_export]
macro_rules! shared_contract_tests {
    ($make:expr, $run:expr) => {
        $crate::tests_of!(
            $make,
            $run,
            a_batch_is_charged_whole_or_not_at_all,
            a_capacity_is_admitted_exactly,
            a_permissive_charge_takes_what_is_admitted,
            a_permissive_charge_vetoes_nothing,
            a_refusal_leaves_every_counter,
            charges_of_one_counter_add_up_in_order,
            costs_beyond_every_capacity_are_refused_for_good,
            peeks_move_nothing,
            peeks_veto,
            keys_do_not_touch,
            limits_do_not_touch,
            reset_forgets_one_counter,
            a_rule_of_another_layout_is_an_error,
            an_unknown_limit_is_an_error,
            install_keeps_what_it_names,
            a_clock_set_back_gives_nothing,
            a_peek_ahead_of_time_moves_nothing,
            what_has_expired_is_as_never_seen,
        );
    };
}

/// The same for a store that nobody shares: what it does not know it forgets, and it knows how much it
/// keeps.
#[macro_export]
macro_rules! contract_tests {
    ($make:expr, $run:expr) => {
        $crate::shared_contract_tests!($make, $run);
        $crate::tests_of!(
            $make,
            $run,
            install_forgets_what_another_layout_left,
            install_forgets_what_it_does_not_name,
            peeks_make_no_counter,
        );
    };
}

/// A test for each sentence of the contract that a store keeps which knows whose counters it has.
#[macro_export]
macro_rules! listing_tests {
    ($make:expr, $run:expr) => {
        $crate::tests_of!(
            $make,
            $run,
            a_bad_cursor_is_an_error,
            listing_bears_inserts,
            listing_is_complete,
            listing_leaves_out_what_has_gone,
        );
    };
}

/// The same for a shared store.
#[macro_export]
macro_rules! shared_listing_tests {
    ($make:expr, $run:expr) => {
        $crate::tests_of!(
            $make,
            $run,
            a_bad_cursor_is_an_error,
            listing_is_complete,
            listing_leaves_out_what_has_gone,
            listing_misses_nothing,
        );
    };
}

/// A test for each of these functions.
#[doc(hidden)]
#[macro_export]
macro_rules! tests_of {
    ($make:expr, $run:expr, $($sentence:ident,)+) => {
        $(#[test]
        fn $sentence() {
            let store = $make();
            $run($crate::contract::$sentence(&store));
        })+
    };
}
