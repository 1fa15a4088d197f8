//! Where counters live.
//!
//! # Layout
//! - [`charge`]: the batch of charges that crosses the contract, and what comes back.
//! - [`store`]: the contract, [`Store`].
//! - [`memory`]: the store in this process, [`MemoryStore`].
//! - `redis`: the store that a fleet shares, `RedisStore` (with the feature `redis`).

pub mod charge;
pub mod memory;
#[cfg(feature = "redis")]
pub mod redis;
pub mod store;
mod working;

pub use charge::{At, Batch, Charge, Key, LimitId, Op, Row};
pub use memory::{MemorySettings, MemoryStore};
#[cfg(feature = "redis")]
pub use redis::{Fault, RedisCounts, RedisSettings, RedisSettingsError, RedisStore, Slot};
pub use store::{Counted, CounterPage, PageQuery, Store, StoreError, StoreStats};
