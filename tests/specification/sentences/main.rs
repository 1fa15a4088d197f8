//! What Tidegate was asked to do, sentence by sentence.
//!
//! - `hierarchical_limiter` (h…): the atomic limiter agent → org → everyone, and the month's ceiling.
//! - `contextforge_plugin` (p…): limits per user, tenant and tool, their algorithms, stores and modes.
//! - `decisions` (d…): what the two leave open, decided once for all doors.
//! - `pending`: the sentences that a capability still has to bring. `ledger` checks that every sentence
//!   is either shown by a test of its number or pending, and says how far it is.
//!
//! A sentence keeps its number for ever. When a capability is built, its rows leave `pending` and come
//! back as tests of the same number.

#![cfg(test)]

mod contextforge_plugin;
mod decisions;
mod hierarchical_limiter;
mod http_door;
mod ledger;
mod pending;
