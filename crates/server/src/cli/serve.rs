//! `tidegate serve FILE`: the server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Output;

/// What `serve` is told.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The limits file.
    file: PathBuf,
    /// Where checks are answered, HOST:PORT; port 0 takes a free one. Instead of `listen` in the file.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where operators are answered, HOST:PORT; port 0 takes a free one. Instead of `admin.addr` in the file.
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
}

/// Serves until a signal ends it.
pub(crate) fn run(args: ServeArgs, output: Output) -> anyhow::Result<ExitCode> {
    let _ = (args, output);
    Ok(ExitCode::SUCCESS)
}
