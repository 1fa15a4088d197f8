//! The command line, through the real binary.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how a test fails")]

mod check;
mod explain;
mod files;
mod help;
mod live;
mod operators;
mod process;
mod terminal;
mod top;
