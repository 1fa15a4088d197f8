//! x
pub mod memory;
