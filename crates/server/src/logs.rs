//! Structured logs on standard error.
//!
//! What operators do (reloads, blocks, overrides, resets, refused admin requests) has the target
//! `audit`.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text for people; with colours on a terminal.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why there are no logs.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// What to log cannot be read.
    #[error(
        "the log level {directives:?} cannot be read: {source}; write error, warn, info, debug or trace, or a list such as info,audit=warn"
    )]
    Directives {
        /// What was given.
        directives: String,
        /// Why.
        source: ParseError,
    },
    /// Somebody else in this process logs already.
    #[error("the process has a log already: {0}")]
    Taken(Box<dyn std::error::Error + Send + Sync>),
}

/// Begins to log to standard error, panics included. `directives` is a level or a list such as
/// `info,tidegate_server=debug`; none given, it is what `RUST_LOG` says, or else `info`.
///
/// # Errors
/// [`LogsError`].
pub fn begin(format: Format, directives: Option<&str>) -> Result<(), LogsError> {
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let directives = directives.map(ToOwned::to_owned).or(from_environment).unwrap_or_else(|| "info".into());
    let filter = EnvFilter::try_new(&directives).map_err(|source| LogsError::Directives { directives, source })?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        Format::Text => logs.with_ansi(io::stderr().is_terminal()).try_init(),
        Format::Json => logs.json().flatten_event(true).try_init(),
    }
    .map_err(LogsError::Taken)?;
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a fault of the server; please report it")));
    Ok(())
}
