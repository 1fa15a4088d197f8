//! `tidegate init [FILE]`: a commented limits file to begin with.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use tidegate::config::STARTER;

use super::Output;

const MORE: &str = "\
The file explains itself. Edit it, then:
  tidegate check tidegate.yaml
  tidegate serve tidegate.yaml

Exit codes: 0 written, 1 not written (there is such a file already), 2 a wrong command line.

Examples:
  tidegate init                                writes tidegate.yaml
  tidegate init /etc/tidegate/tidegate.yaml
  tidegate init - | less                       only shows it";

/// What `init` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(crate) struct InitArgs {
    /// Where to write it; '-' is standard output
    #[arg(default_value = "tidegate.yaml")]
    file: PathBuf,
    /// Replace the file if it is there already
    #[arg(long)]
    force: bool,
}

/// Writes the file, and says what to do next.
pub(crate) fn run(args: &InitArgs, output: Output) -> anyhow::Result<ExitCode> {
    if args.file.as_os_str() == "-" {
        io::stdout().lock().write_all(STARTER.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = args.file.display();
    write_new(&args.file, args.force)
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => anyhow::anyhow!("it is there already; --force replaces it"),
            _ => error.into(),
        })
        .with_context(|| format!("{file} was not written"))?;
    if output.json {
        output.document(&serde_json::json!({ "written": args.file }))?;
    } else {
        writeln!(io::stdout(), "{file} is written. Next: tidegate check {file}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_new(path: &Path, replace: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // `create_new` also refuses to follow a link that somebody put there.
    let options =
        if replace { options.write(true).create(true).truncate(true) } else { options.write(true).create_new(true) };
    options.open(path)?.write_all(STARTER.as_bytes())
}
