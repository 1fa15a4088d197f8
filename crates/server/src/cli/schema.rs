//! `tidegate schema`: the JSON Schema of the limits file.

use std::io::{self, Write};
use std::process::ExitCode;

use tidegate::config::SCHEMA;

/// What help says below the options.
pub(crate) const MORE: &str = "\
Editors check and complete limits files with it. The first line of a file can name it:
  # yaml-language-server: $schema=./tidegate.schema.json

Examples:
  tidegate schema > tidegate.schema.json
  tidegate schema | jq '.properties | keys'";

/// Writes the schema.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    out.write_all(SCHEMA.as_bytes())?;
    if !SCHEMA.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
