//! The server over real sockets: every endpoint, hostile input, reloading, draining, and who may.

mod admin;
mod check;
mod connections;
mod hostile;
mod reload;
mod serve;
mod support;
