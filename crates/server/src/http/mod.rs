//! The HTTP door.
//!
//! # Layout
//! - [`listener`], [`connection`], [`write_deadline`]: sockets and connections, with their bounds.
//! - [`router`], [`guard`], [`state`]: which paths there are, and what holds for each request.
//! - [`body`], [`asked`], [`query`], [`segment`]: from bytes to a request.
//! - [`check`], [`batch`], [`answer`]: decisions.
//! - [`limits`], [`usage`], [`blocks`], [`overrides`], [`reload`], [`scrape`]: for operators.
//! - [`health`], [`openapi`], [`problem`]: for machines.

mod answer;
mod asked;
mod batch;
mod blocks;
mod body;
mod check;
mod connection;
mod guard;
mod health;
mod held_body;
mod intervention;
mod limits;
mod listener;
mod openapi;
mod overrides;
mod problem;
mod query;
mod reload;
mod router;
mod scrape;
mod segment;
mod state;
mod usage;
mod when;
mod write_deadline;

pub(crate) use listener::{Listener, Served, bind};
pub(crate) use problem::{Problem, quoted};
pub(crate) use router::{admin_router, check_router};
pub(crate) use state::{Readiness, Shared};
