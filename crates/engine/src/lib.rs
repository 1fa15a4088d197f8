//! x
pub mod policy;
