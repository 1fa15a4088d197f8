//! What every store must do: the sentences of [`Store`]'s contract as functions that run against any
//! implementation, and the means to check one against the counting rules themselves. For tests only.
//!
//! # Layout
//! - [`contract`]: one function for each sentence; [`shared_contract_tests!`], [`contract_tests!`]
//!   and [`listing_tests!`] make a test of each.
//! - [`limits`]: limits and charges to test with.
//! - [`mod@reference`]: the plainest store there can be, which others are compared with.
//! - [`walk`]: random walks, step by step the same on a store and on the reference.
//! - [`history`]: concurrent runs, recorded, and whether one order explains them.
//!
//! [`Store`]: tidegate_store::Store
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops, and says where")]

pub mod contract;
pub mod history;
pub mod limits;
pub mod reference;
pub mod walk;

pub use history::{History, Recorder};
pub use limits::{Kind, Known, START, block_on};
pub use reference::{Reference, ReferenceStore};
