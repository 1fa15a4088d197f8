//! The server over real sockets: every endpoint, hostile input, reloading, draining, and who may.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how a test fails")]

mod admin;
mod check;
mod connections;
mod hostile;
mod process;
mod reload;
mod serve;
mod shared_store;
mod support;
