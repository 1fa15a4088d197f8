//! `tidegate check FILE…`: what is wrong with limits files, all of it in one go.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tidegate::config::{Faults, Loaded, Warning};

use super::style::{BAD, GOOD, STRONG, WARN, count};
use super::{Output, limits_file};

const MORE: &str = "\
Every fault is told in one go, as FILE:LINE:COLUMN: fault: what is wrong; what to do. Warnings are
about what is allowed and probably not meant, such as a limit that can never refuse anything. What
`tidegate serve` would not start for is a fault here, whatever its options could put right.

Exit codes: 0 no fault, 1 a fault (with --strict also a warning), 2 a wrong command line.

Examples:
  tidegate check limits.yaml
  tidegate check --strict deploy/*.yaml        in a pipeline: warnings fail it too
  render-limits | tidegate check -             standard input
  tidegate check limits.yaml --json | jq '.files[].faults'";

/// What `check` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(crate) struct CheckArgs {
    /// Limits files; '-' is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let a warning fail the check as a fault does
    #[arg(long)]
    strict: bool,
}

/// Checks every file, and fails if one has a fault.
pub(crate) fn run(args: &CheckArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut checked = Vec::with_capacity(args.files.len());
    for path in &args.files {
        checked.push(Checked::of(limits_file::name(path), limits_file::read(path)?));
    }
    let ok = checked.iter().all(|file| file.passes(args.strict));
    if output.json {
        let files: Vec<FileReport<'_>> = checked.iter().map(|file| file.report(args.strict)).collect();
        output.document(&serde_json::json!({ "ok": ok, "files": files }))?;
    } else {
        write_text(&checked, args.strict)?;
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A file, and what was found in it.
enum Checked {
    Good {
        file: String,
        loaded: Box<Loaded>,
        /// For what `tidegate serve` would not start, which is a fault of the file here.
        stopping: Vec<Warning>,
    },
    Faulty(Faults),
}

impl Checked {
    fn of(file: String, read: Result<Loaded, Faults>) -> Self {
        match read {
            Ok(mut loaded) => {
                let stopping = loaded.warnings.extract_if(.., |warning| warning.stops_server()).collect();
                Self::Good { file, loaded: Box::new(loaded), stopping }
            }
            Err(faults) => Self::Faulty(faults),
        }
    }

    fn faults(&self) -> usize {
        match self {
            Self::Good { stopping, .. } => stopping.len(),
            Self::Faulty(faults) => faults.faults.len() + faults.omitted,
        }
    }

    fn warnings(&self) -> &[Warning] {
        match self {
            Self::Good { loaded, .. } => &loaded.warnings,
            Self::Faulty(_) => &[],
        }
    }

    fn passes(&self, strict: bool) -> bool {
        self.faults() == 0 && (!strict || self.warnings().is_empty())
    }

    fn report(&self, strict: bool) -> FileReport<'_> {
        let (file, limits) = match self {
            Self::Good { file, loaded, .. } => (file, Some(loaded.policy.rules.len())),
            Self::Faulty(faults) => (&faults.file, None),
        };
        let (faults, omitted) = match self {
            Self::Good { stopping, .. } => (&**stopping, 0),
            Self::Faulty(faults) => (&*faults.faults, faults.omitted),
        };
        FileReport { file, ok: self.passes(strict), limits, faults, faults_omitted: omitted, warnings: self.warnings() }
    }
}

#[derive(Serialize)]
struct FileReport<'a> {
    file: &'a str,
    ok: bool,
    /// How many limits it has; null where faults hide that.
    limits: Option<usize>,
    faults: &'a [Warning],
    faults_omitted: usize,
    warnings: &'a [Warning],
}

fn write_text(checked: &[Checked], strict: bool) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    for file in checked {
        match file {
            Checked::Good { file, loaded, stopping } => {
                limits_file::write_all_faults(&mut out, file, stopping)?;
                limits_file::write_warnings(&mut out, file, &loaded.warnings)?;
            }
            Checked::Faulty(faults) => limits_file::write_faults(&mut out, faults)?,
        }
        write_summary(&mut out, file, strict)?;
    }
    if checked.len() > 1 {
        let failed = checked.iter().filter(|file| !file.passes(strict)).count();
        let style = if failed > 0 { BAD } else { GOOD };
        let well = count(checked.len() - failed, "file");
        writeln!(out, "{well} well, {style}{failed} with something to correct{style:#}")?;
    }
    Ok(())
}

/// `limits.yaml: ok (5 limits, 1 warning)` or `limits.yaml: 12 faults`.
fn write_summary(out: &mut impl Write, checked: &Checked, strict: bool) -> std::io::Result<()> {
    match checked {
        Checked::Faulty(Faults { file, .. }) | Checked::Good { file, .. } if checked.faults() > 0 => {
            let told = count(checked.faults(), "fault");
            writeln!(out, "{STRONG}{file}:{STRONG:#} {BAD}{told}{BAD:#}")
        }
        // A file without a fault is good.
        Checked::Faulty(_) => Ok(()),
        Checked::Good { file, loaded, .. } => {
            let limits = count(loaded.policy.rules.len(), "limit");
            let warnings = count(loaded.warnings.len(), "warning");
            let (verdict, style) = match loaded.warnings.is_empty() {
                true => ("ok", GOOD),
                false if strict => ("not ok", BAD),
                false => ("ok", WARN),
            };
            writeln!(out, "{STRONG}{file}:{STRONG:#} {style}{verdict}{style:#} ({limits}, {warnings})")
        }
    }
}
