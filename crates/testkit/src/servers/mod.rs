//! Real Redis and Valkey servers, started for a test and gone with it.
//!
//! `scripts/setup.sh servers` installs the programs (the tests' script does so by itself); a test
//! that needs one that is missing fails and says so. Everything here blocks its thread, for some
//! tens of milliseconds at a start, and panics with the end of the server's log when something is
//! not as it should be. Servers listen on 127.0.0.1 only.
//!
//! # Layout
//! - [`flavor`]: which servers there are, and where their programs lie.
//! - [`server`]: one server: start, kill, pause, restart, ask. [`builder`]: how it is set up.
//! - [`tls`]: the certificates of a server and its clients.
//! - [`replicated`], [`sentinel`], [`cluster`]: several servers. [`migration`]: a slot between two.
//! - [`fault_proxy`]: a connection that is slow, stalls, breaks. `tunnel`: its bytes.
//! - `process`: a process, which dies with the test. `port`: a port that stays free for it.
//! - [`reply`]: the protocol, as much of it as the kit needs. `deadline`: how long it waits.
#![expect(clippy::expect_used, clippy::panic, reason = "tests use this, and what fails here fails the test")]

pub mod builder;
pub mod cluster;
mod deadline;
pub mod fault_proxy;
pub mod flavor;
pub mod migration;
mod port;
mod process;
pub mod replicated;
pub mod reply;
pub mod sentinel;
pub mod server;
pub mod tls;
mod tunnel;

pub use builder::{AppendFsync, ServerBuilder};
pub use cluster::{Cluster, SLOTS};
pub use fault_proxy::FaultProxy;
pub use flavor::Flavor;
pub use migration::Migration;
pub use replicated::Replicated;
pub use reply::{Connection, Reply};
pub use sentinel::Sentinel;
pub use server::Server;
pub use tls::{ClientCertificates, TlsFiles};
