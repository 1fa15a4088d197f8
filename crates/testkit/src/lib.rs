//! What the tests of several crates share. Never built into anything that is shipped.
//!
//! # Layout
//! - [`limiter`]: an engine at a clock that the test sets.
//! - [`door`]: what a door is asked and what it says.
//! - [`golden`]: rows of limits files, questions and expected answers, and the runner that puts
//!   them to a door. The rows themselves are data, in `tests/specification/golden/`.

pub mod door;
pub mod golden;
pub mod limiter;

pub use door::{Ask, Door, EngineDoor, Field, Said, SaidHeaders, SaidLimit};
pub use golden::{Expect, ExpectLimit, Failures, Report, Row, Step};
pub use limiter::{Limiter, START, attributes, policy, ready};
