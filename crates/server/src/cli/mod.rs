//! The command line: one file a subcommand. A subcommand gets its arguments and [`Output`], writes
//! what it found, and says how the process ends.
//!
//! Exit codes: 0 well, 1 a fault in what was given or found, 2 a wrong command line (by clap).
//!
//! # Layout
//! - [`serve`], [`hints`]: the server.
//! - [`check`], [`explain`], [`init`], [`schema`], [`completions`]: work on a limits file alone.
//! - [`usage`], [`top`], [`blocks`], [`reset`], [`health`]: ask a running server through [`client`].
//! - [`attributes`], [`counters`], [`limits_file`], [`style`], [`table`]: what they share.

mod attributes;
mod blocks;
mod check;
mod client;
mod completions;
mod counters;
mod explain;
mod health;
mod hints;
mod init;
mod limits_file;
mod reset;
mod schema;
mod serve;
mod style;
mod table;
mod top;
mod usage;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

const MORE: &str = "\
Begin:
  tidegate init limits.yaml                    writes a commented limits file
  tidegate check limits.yaml                   says what is wrong with it, line by line
  tidegate explain limits.yaml --attr org=acme --attr agent=a1
  tidegate serve limits.yaml                   answers POST /v1/check
  tidegate top                                 shows who is near a limit

Exit codes: 0 well, 1 a fault in what was given or found, 2 a wrong command line.
Colours go to terminals only; NO_COLOR=1 turns them off.";

/// A rate limiter and quota engine for AI gateways
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = MORE, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Write JSON instead of text
    #[arg(long, global = true, display_order = 100)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server on a limits file.
    Serve(serve::ServeArgs),
    /// Say what is wrong with limits files
    Check(check::CheckArgs),
    /// Say which limits a request would meet, and why not the others
    Explain(explain::ExplainArgs),
    /// Write a commented limits file to begin with
    Init(init::InitArgs),
    /// Show how full a running server's counters are
    Usage(usage::UsageArgs),
    /// Watch the counters nearest to their limit
    Top(top::TopArgs),
    /// Stop requests with some attributes for a time
    Block(blocks::BlockArgs),
    /// List the blocks in force
    Blocks(blocks::BlocksArgs),
    /// End a block before its time
    Unblock(blocks::UnblockArgs),
    /// Start counters afresh
    Reset(reset::ResetArgs),
    /// Ask whether a server is ready
    Health(health::HealthArgs),
    /// Write the JSON Schema of the limits file
    #[command(after_long_help = schema::MORE)]
    Schema,
    /// Write what makes the Tab key complete this command
    Completions(completions::CompletionsArgs),
}

/// Runs the command that the process was started with.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    let output = Output { json: cli.json };
    match cli.command.run(output) {
        Ok(code) => code,
        // `tidegate … | head` closes the pipe early: nobody is left to tell.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<clap::Error>() {
            Some(wrong) => {
                // Where standard error is closed, there is nowhere left to say it.
                let _ = wrong.print();
                ExitCode::from(2)
            }
            None => {
                output.error(&error);
                ExitCode::FAILURE
            }
        },
    }
}

impl Command {
    fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self {
            Self::Serve(args) => serve::run(args, output),
            Self::Check(args) => check::run(&args, output),
            Self::Explain(args) => explain::run(&args, output),
            Self::Init(args) => init::run(&args, output),
            Self::Usage(args) => usage::run(&args, output),
            Self::Top(args) => top::run(&args, output),
            Self::Block(args) => blocks::block(&args, output),
            Self::Blocks(args) => blocks::blocks(&args, output),
            Self::Unblock(args) => blocks::unblock(&args, output),
            Self::Reset(args) => reset::run(&args, output),
            Self::Health(args) => health::run(&args, output),
            Self::Schema => schema::run(),
            Self::Completions(args) => completions::run(&args),
        }
    }
}

/// Runs a subcommand that waits for a server; one thread is enough.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// How a subcommand writes: text or JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Whether `--json` was given.
    pub(crate) json: bool,
}

impl Output {
    /// Writes a JSON document on standard output.
    pub(crate) fn document(self, value: &impl serde::Serialize) -> io::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, value)?;
        out.write_all(b"\n")
    }

    /// Tells on standard error why the command cannot go on.
    fn error(self, error: &anyhow::Error) {
        let told = told(error);
        let told =
            if self.json { serde_json::json!({ "error": told }).to_string() } else { format!("tidegate: {told}") };
        // Where standard error is closed, there is nowhere left to say it.
        let _ = writeln!(io::stderr(), "{told}");
    }
}

/// An error with its causes, but for those that it has told itself.
fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.contains(&cause) {
            continue;
        }
        if !told.is_empty() {
            told.push_str(": ");
        }
        told.push_str(&cause);
    }
    told
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || io::Error::other("the disk is full");
        let doubled = anyhow::Error::new(cause()).context("it cannot be written (the disk is full); make room");
        assert_eq!(told(&doubled), "it cannot be written (the disk is full); make room");
        let both = anyhow::Error::new(cause()).context("it cannot be written");
        assert_eq!(told(&both), "it cannot be written: the disk is full");
    }
}
