//! Tidegate's server: decisions over HTTP, an admin listener, metrics, and reloading.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_server::{LimitsFile, Server, Settings};
//!
//! let (file, loaded) = LimitsFile::open("limits.yaml")?;
//! let settings = Settings { file: Some(file), ..Settings::new() };
//! let server = Server::bind(loaded.policy, settings).await?;
//! println!("listening on {}", server.check_addr());
//! server.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - [`server`]: two listeners around one engine, from bound to drained.
//! - `http`: the door itself; `json`: reading strictly; [`bounds`]: how much of everything it takes.
//! - `admin`: who may use the admin listener.
//! - [`reload`]: the limits file, read anew when it changes. `shared_store`: watched, and told in the log.
//! - `metrics`: what is counted. [`logs`]: how it speaks.

mod admin;
pub mod bounds;
mod http;
mod json;
pub mod logs;
mod metrics;
pub mod reload;
pub mod server;
mod shared_store;

pub use admin::OpenToAll;
pub use bounds::Bounds;
pub use reload::LimitsFile;
pub use server::{Server, Settings, StartError};
