//! The limits file: from text to a [`Policy`], or to every fault in it.
//!
//! # Layout
//! - [`parse`], [`parse_bytes`], [`load`], [`load_with`]: text, bytes or a file in, a policy with warnings out.
//! - `tree` reads YAML (or JSON) into nodes that know their place, `syntax` words its errors,
//!   `secret` replaces references like `${TOKEN}`.
//! - `raw` holds the tables of known keys, `scalar` says what one value means, `parse` makes the
//!   policy of them.
//! - `lint` finds what is allowed and cannot be meant; `fault` collects and shows findings.
//! - [`SCHEMA`] is the JSON Schema of the file, [`STARTER`] a commented file to begin with.

mod fault;
mod lint;
mod parse;
mod place;
mod raw;
mod scalar;
mod secret;
mod suggest;
mod syntax;
mod text;
mod tree;

use std::path::Path;

pub use fault::{Fault, Faults, Finding, Warning};
pub use secret::{Lookup, Source, SystemLookup};
pub(crate) use suggest::nearest;
pub use text::FILE_BYTES_MAX;

use crate::policy::Policy;

/// The JSON Schema (draft 2020-12) of the limits file. It says what a file may look like; the parser
/// says more (names that repeat, numbers that do not go together) and says it better.
pub const SCHEMA: &str = include_str!("schema.json");

/// A commented limits file for a beginner: it is valid and gives no warning.
pub const STARTER: &str = include_str!("starter.yaml");

/// A limits file without a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// What the file says.
    pub policy: Policy,
    /// What is allowed and probably not meant, by place; 100 at most.
    pub warnings: Vec<Warning>,
}

/// Reads the text of a limits file.
///
/// # Errors
/// Every fault of the file, by place.
pub fn parse(text: &str, source: &Source) -> Result<Loaded, Faults> {
    let text = text::checked(text, source)?;
    let faults = |findings: fault::Findings| {
        let (faults, omitted) = findings.finish(text);
        Faults { file: source.file().to_owned(), faults, omitted }
    };
    let mut findings = fault::Findings::default();
    let Some(root) = tree::read(text, &mut secret::References::new(source), &mut findings) else {
        return Err(faults(findings));
    };
    let draft = parse::policy(&root, &mut findings);
    if !findings.is_empty() {
        return Err(faults(findings));
    }
    lint::warn(&draft, &mut findings);
    let (warnings, _) = findings.finish(text);
    Ok(Loaded { policy: draft.policy, warnings })
}

/// Reads the bytes of a limits file.
///
/// # Errors
/// Every fault of the file, by place; or that it is no UTF-8 text.
pub fn parse_bytes(bytes: &[u8], source: &Source) -> Result<Loaded, Faults> {
    parse(text::decoded(bytes, source)?, source)
}

/// Reads a limits file, with the real environment and the real files for its references.
///
/// # Errors
/// Every fault of the file, by place; or why it cannot be read.
pub fn load(path: &Path) -> Result<Loaded, Faults> {
    load_with(path, SystemLookup)
}

/// Reads a limits file, with its references looked up in `lookup`.
///
/// # Errors
/// Every fault of the file, by place; or why it cannot be read.
pub fn load_with(path: &Path, lookup: impl Lookup + Send + Sync + 'static) -> Result<Loaded, Faults> {
    let source = Source::with_lookup(path.display().to_string(), lookup);
    parse_bytes(&text::read(path, &source)?, &source)
}

#[cfg(test)]
mod tests;
