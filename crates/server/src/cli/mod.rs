//! The command line: one file a subcommand. A subcommand gets its arguments and [`Output`], writes
//! what it found, and says how the process ends.
//!
//! Exit codes: 0 well, 1 a fault in what was given or found, 2 a wrong command line (by clap).

mod hints;
mod serve;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A rate limiter and quota engine for AI gateways.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, propagate_version = true)]
pub(crate) struct Cli {
    /// Write JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server on a limits file.
    Serve(serve::ServeArgs),
}

/// Runs the command that the process was started with.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    let output = Output { json: cli.json };
    let ended = match cli.command {
        Command::Serve(args) => serve::run(args, output),
    };
    match ended {
        Ok(code) => code,
        // `tidegate … | head` closes the pipe early: nobody is left to tell.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::FAILURE
        }
    }
}

/// How a subcommand writes: text or JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Whether `--json` was given.
    pub(crate) json: bool,
}

impl Output {
    /// Tells on standard error why the command cannot go on.
    fn error(self, error: &anyhow::Error) {
        let told = if self.json {
            serde_json::json!({"error": format!("{error:#}")}).to_string()
        } else {
            format!("tidegate: {error:#}")
        };
        // Where standard error is closed, there is nowhere left to say it.
        let _ = writeln!(io::stderr(), "{told}");
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
