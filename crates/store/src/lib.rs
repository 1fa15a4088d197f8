//! Where counters live.
//!
//! # Layout
//! - [`charge`]: the batch of charges that crosses the contract, and what comes back.
//! - [`store`]: the contract, [`Store`].
//! - [`memory`]: the store in this process, [`MemoryStore`].

pub mod charge;
pub mod memory;
pub mod store;

pub use charge::{At, Batch, Charge, Key, LimitId, Op, Row};
pub use memory::{MemorySettings, MemoryStore};
pub use store::{Counted, CounterPage, PageQuery, Store, StoreError, StoreStats};
