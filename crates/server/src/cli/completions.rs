//! `tidegate completions SHELL`: what makes the Tab key complete this command.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;

const MORE: &str = "\
Examples:
  tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate
  tidegate completions zsh  > \"${fpath[1]}/_tidegate\"
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish";

/// What `completions` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    shell: Shell,
}

/// Writes the script.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    // The generator panics where it cannot write (into `head`, say), so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tidegate", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
