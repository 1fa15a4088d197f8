//! `tidegate health`: whether a server is ready, for probes in containers without another client.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::client::{AdminArgs, target};
use super::{Output, block_on};

const MORE: &str = "\
Asks /readyz, which either listener answers without a token: not ready while the server drains.

Exit codes: 0 ready, 1 not ready or not to be reached, 2 a wrong command line.

Examples:
  tidegate health
  tidegate health --admin http://127.0.0.1:8080      asks the check listener";

/// What `health` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(crate) struct HealthArgs {
    #[command(flatten)]
    admin: AdminArgs,
}

/// Asks once.
pub(crate) fn run(args: &HealthArgs, output: Output) -> anyhow::Result<ExitCode> {
    let client = args.admin.client()?;
    block_on(async { Ok(client.probe(&target(&["readyz"], &[])).await?) })?;
    if output.json {
        output.document(&serde_json::json!({ "ready": true }))?;
    } else {
        writeln!(anstream::stdout(), "The server at {} is ready.", client.address())?;
    }
    Ok(ExitCode::SUCCESS)
}
