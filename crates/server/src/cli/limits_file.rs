//! Reading a limits file for a subcommand, and telling what was found in it.

use std::io::{self, Read, Write};
use std::path::Path;

use tidegate::config::{self, Faults, Finding, Loaded, Source};

use super::style::{BAD, FAINT, STRONG, WARN};

/// What standard input is called.
const STDIN: &str = "<stdin>";

/// Reads the limits file at `path`; `-` is standard input. A file with faults is not an error of
/// this program: it is what was asked for.
///
/// # Errors
/// Standard input that cannot be read.
pub(crate) fn read(path: &Path) -> io::Result<Result<Loaded, Faults>> {
    if path.as_os_str() != "-" {
        return Ok(config::load(path));
    }
    let mut bytes = Vec::new();
    // One byte more than a file may have shows that there is more.
    io::stdin().lock().take(config::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(config::parse_bytes(&bytes, &Source::named(STDIN)))
}

/// What messages call the file at `path`.
pub(crate) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { STDIN.to_owned() } else { path.display().to_string() }
}

/// Writes every fault, with its line of the file.
pub(crate) fn write_faults(out: &mut impl Write, faults: &Faults) -> io::Result<()> {
    write_all_faults(out, &faults.file, &faults.faults)?;
    if faults.omitted > 0 {
        writeln!(out, "{}: and {} more", faults.file, faults.omitted)?;
    }
    Ok(())
}

/// Writes these faults of a file, each with its line.
pub(crate) fn write_all_faults(out: &mut impl Write, file: &str, faults: &[Finding]) -> io::Result<()> {
    faults.iter().try_for_each(|fault| write_finding(out, file, fault, "fault", BAD))
}

/// Writes every warning, with its line of the file.
pub(crate) fn write_warnings(out: &mut impl Write, file: &str, warnings: &[Finding]) -> io::Result<()> {
    warnings.iter().try_for_each(|warning| write_finding(out, file, warning, "warning", WARN))
}

/// `limits.yaml:12:7: fault: what is wrong; what to do`, and the line itself below.
fn write_finding(
    out: &mut impl Write,
    file: &str,
    finding: &Finding,
    kind: &str,
    style: anstyle::Style,
) -> io::Result<()> {
    write!(out, "{STRONG}{file}")?;
    if finding.line > 0 {
        write!(out, ":{}:{}", finding.line, finding.column)?;
    }
    write!(out, ":{STRONG:#} {style}{kind}:{style:#} {}", finding.message)?;
    if let Some(hint) = &finding.hint {
        write!(out, "; {hint}")?;
    }
    writeln!(out)?;
    match finding.snippet() {
        Some(snippet) => writeln!(out, "{FAINT}{snippet}{FAINT:#}"),
        None => Ok(()),
    }
}
