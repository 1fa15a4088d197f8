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
    /// A word that names no level: read as the name of a part of the program, it would silence all
    /// others.
    #[error(
        "the log level {0:?} is none of error, warn, info, debug, trace, off; a part of the program is written part=level"
    )]
    Level(String),
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
    if let Some(word) = directives.and_then(misspelt_level) {
        return Err(LogsError::Level(word.to_owned()));
    }
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

/// The first word of a list of directives that is meant as a level and is none.
fn misspelt_level(directives: &str) -> Option<&str> {
    let mut words = directives.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.find(|word| !word.contains(['=', ':', '[']) && word.parse::<tracing::metadata::LevelFilter>().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_level_is_told() {
        for right in ["info", "WARN", "off", "info,audit=warn", "tidegate_server=debug", ""] {
            assert_eq!(misspelt_level(right), None, "{right}");
        }
        assert_eq!(misspelt_level("warning"), Some("warning"));
        assert_eq!(misspelt_level("info, loud"), Some("loud"));
    }
}
