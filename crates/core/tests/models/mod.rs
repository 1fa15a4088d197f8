//! Brute-force models of the counting rules: slow, exact, and written from the definitions alone.
//!
//! They share no arithmetic with the crate. Each keeps everything that was ever admitted and looks
//! through all of it for every question. Times are microseconds since the Unix epoch.

mod calendar;
mod fixed_window;
mod sliding_counter;
mod sliding_window;
mod token_bucket;

pub(crate) use calendar::{CalendarModel, CivilModel};
pub(crate) use fixed_window::FixedWindowModel;
pub(crate) use sliding_counter::SlidingCounterModel;
pub(crate) use sliding_window::SlidingWindowModel;
pub(crate) use token_bucket::TokenBucketModel;

/// What a model can be asked. `at` is a time inside the cell, as `enter` gave it, or later.
pub(crate) trait Model {
    /// The time inside the cell when the clock says `now`.
    fn enter(&mut self, now: u64) -> u64;

    /// Whether `cost` would be admitted at `at`, if nothing were taken until then.
    fn admits(&self, at: u64, cost: u64) -> bool;

    /// Records `cost`, admitted at `at`.
    fn take(&mut self, at: u64, cost: u64);

    /// What `Standing::reset` has to say at `at`, in microseconds.
    fn reset(&self, at: u64) -> u64;
}

/// A model whose quota, or burst, can be changed on the way, as a reloaded file does.
pub(crate) trait Quota: Model {
    /// From here on `quota`; what was taken stays taken.
    fn set_quota(&mut self, quota: u64);
}
