//! What the tests of several crates share. Never built into anything that is shipped.
//!
//! # Layout
//! - [`limiter`]: an engine at a clock that the test sets.
//! - [`door`]: what a door is asked and what it says.
//! - [`golden`]: rows of limits files, questions and expected answers, and the runner that puts
//!   them to a door. The rows themselves are data, in `tests/specification/golden/`.
//! - [`servers`]: real Redis and Valkey servers: alone, replicated, behind Sentinel, in a cluster,
//!   behind a connection with faults.

#[cfg(feature = "engine")]
pub mod door;
#[cfg(feature = "engine")]
pub mod golden;
#[cfg(feature = "engine")]
pub mod limiter;
pub mod servers;

#[cfg(feature = "engine")]
pub use door::{Ask, Door, EngineDoor, Field, Said, SaidHeaders, SaidLimit};
#[cfg(feature = "engine")]
pub use golden::{Expect, ExpectLimit, Failures, Report, Row, Step};
#[cfg(feature = "engine")]
pub use limiter::{Limiter, START, attributes, policy, ready};
