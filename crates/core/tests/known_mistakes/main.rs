//! Mistakes that rate limiters have been seen to make, each with the right answer. The figures come
//! from exact arithmetic, by hand; times are milliseconds after an instant that begins a window.

// Lints that are milder in tests are milder in all of this crate.
#![cfg(test)]

mod answers;
mod calendar;
mod cell;
mod counting;
mod numbers;
mod weighted_counter;
