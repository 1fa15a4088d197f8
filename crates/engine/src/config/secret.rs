//! References in a limits file to what does not belong in it: `${VARIABLE}` and `file:path`.
//!
//! - `${NAME}` anywhere in a value stands for the environment variable `NAME`, `${NAME:-other}`
//!   for `other` where that is unset or empty. `$${` is a plain `${`.
//! - A value that is `file:path` as a whole stands for the text of that file, at most 64 KiB,
//!   without the line break at its end; a relative path starts at the folder of the limits file.
//!   `$file:` is a plain `file:`.
//!
//! What a reference stands for is never read for references again, and never shown in a message.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::fault::{harmless, quoted};

/// The largest file that `file:` reads, in bytes.
const FILE_BYTES_MAX: usize = 64 * 1024;
/// How much text all references of a limits file may stand for, in bytes.
const TOTAL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many references a limits file may have.
const REFERENCES_MAX: usize = 10_000;
/// How many faults of one value are told.
const FAULTS_MAX: usize = 10;

/// Answers what the references of a limits file stand for.
pub trait Lookup {
    /// The value of an environment variable; `None` where it is not set.
    ///
    /// # Errors
    /// Where it is set to something that is not text.
    fn variable(&self, name: &str) -> io::Result<Option<String>>;

    /// The first `bytes_max` bytes of a file.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn file(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>>;
}

/// The real environment and the real files.
#[derive(Debug, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn variable(&self, name: &str) -> io::Result<Option<String>> {
        match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text")),
        }
    }

    fn file(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        // Opening a pipe would wait for its other end for ever, so what is no file is not opened.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(bytes_max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Where a limits file came from, and what its references are looked up in.
pub struct Source {
    file: String,
    folder: PathBuf,
    lookup: Box<dyn Lookup + Send + Sync>,
}

impl Source {
    /// The file `name`, with the real environment and the real files.
    pub fn named(name: impl Into<String>) -> Self {
        Self::with_lookup(name, SystemLookup)
    }

    /// The file `name`, with everything looked up in `lookup`.
    pub fn with_lookup(name: impl Into<String>, lookup: impl Lookup + Send + Sync + 'static) -> Self {
        let name = name.into();
        let folder = Path::new(&name).parent().unwrap_or(Path::new("")).to_owned();
        Self { file: harmless(name), folder, lookup: Box::new(lookup) }
    }

    /// The name that findings begin with.
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("file", &self.file).finish_non_exhaustive()
    }
}

/// What is wrong with a reference.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReferenceFault {
    /// The byte of the value at which the reference begins.
    pub(crate) at: usize,
    /// What is the matter.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// Puts what they stand for in the place of references, within bounds for a whole limits file.
pub(crate) struct References<'s> {
    source: &'s Source,
    references_left: usize,
    bytes_left: usize,
}

impl<'s> References<'s> {
    /// Nothing looked up yet.
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, references_left: REFERENCES_MAX, bytes_left: TOTAL_BYTES_MAX }
    }

    /// The value with its references replaced; `None` if it has neither references nor escapes.
    pub(crate) fn expand(&mut self, value: &str) -> Result<Option<String>, Vec<ReferenceFault>> {
        if let Some(path) = value.strip_prefix("file:") {
            return self.file(path).map(Some).map_err(|fault| vec![fault]);
        }
        if let Some(plain) = value.strip_prefix('$').filter(|rest| rest.starts_with("file:")) {
            return Ok(Some(plain.to_owned()));
        }
        if value.contains("${") { self.variables(value).map(Some) } else { Ok(None) }
    }

    fn variables(&mut self, value: &str) -> Result<String, Vec<ReferenceFault>> {
        let mut expanded = String::with_capacity(value.len());
        let mut faults = Vec::new();
        let mut rest = value;
        while let Some(at) = rest.find("${").filter(|_| faults.len() < FAULTS_MAX) {
            let (before, reference) = rest.split_at(at);
            if let Some(escaped) = before.strip_suffix('$') {
                expanded.push_str(escaped);
                expanded.push_str("${");
                rest = reference.get(2..).unwrap_or("");
                continue;
            }
            expanded.push_str(before);
            let begin = value.len() - reference.len();
            let Some((inner, behind)) = reference.get(2..).and_then(|inner| inner.split_once('}')) else {
                faults.push(ReferenceFault {
                    at: begin,
                    message: "this '${' is never closed".into(),
                    hint: Some("write ${NAME}, or $${ for a plain ${".into()),
                });
                return Err(faults);
            };
            match self.variable(inner) {
                Ok(text) => expanded.push_str(&text),
                Err((message, hint)) => faults.push(ReferenceFault { at: begin, message, hint }),
            }
            rest = behind;
        }
        expanded.push_str(rest);
        if faults.is_empty() { Ok(expanded) } else { Err(faults) }
    }

    fn variable(&mut self, inner: &str) -> Result<String, (String, Option<String>)> {
        let (name, other) = match inner.split_once(":-") {
            Some((name, other)) => (name, Some(other)),
            None => (inner, None),
        };
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let shown = quoted(name);
            let hint = "write ${NAME} or ${NAME:-default}, or $${ for a plain ${".into();
            return Err((format!("{shown} is not the name of an environment variable"), Some(hint)));
        }
        self.spend().map_err(|message| (message, None))?;
        let value = self.source.lookup.variable(name);
        let value =
            value.map_err(|error| (format!("the environment variable '{name}' cannot be used: {error}"), None))?;
        let value = match (value, other) {
            (Some(value), Some(other)) if value.is_empty() => other.to_owned(),
            (Some(value), _) => value,
            (None, Some(other)) => other.to_owned(),
            (None, None) => {
                let hint = format!("set it, or give a default with ${{{name}:-default}}");
                return Err((format!("the environment variable '{name}' is not set"), Some(hint)));
            }
        };
        self.bytes_left = self.bytes_left.checked_sub(value.len()).ok_or_else(|| (too_much(), None))?;
        Ok(value)
    }

    fn file(&mut self, path: &str) -> Result<String, ReferenceFault> {
        let fault = |message: String, hint: Option<&str>| ReferenceFault { at: 0, message, hint: hint.map(Into::into) };
        if path.trim().is_empty() {
            return Err(fault("'file:' names no file".into(), Some("write file:/path/to/file")));
        }
        // Paid for before the file is read, so that no file of references can cost more than this.
        self.spend().map_err(|message| fault(message, None))?;
        let shown = quoted(path);
        let bytes = self.source.lookup.file(&self.source.folder.join(path), FILE_BYTES_MAX + 1);
        let bytes = bytes.map_err(|error| {
            fault(format!("the file {shown} cannot be read: {error}"), Some("write $file: for a plain file:"))
        })?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(fault(format!("the file {shown} is larger than 64 KiB"), None));
        }
        let text = String::from_utf8(bytes).map_err(|_| fault(format!("the file {shown} is not UTF-8 text"), None))?;
        self.bytes_left = self.bytes_left.checked_sub(text.len()).ok_or_else(|| fault(too_much(), None))?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
    }

    /// Counts one reference.
    fn spend(&mut self) -> Result<(), String> {
        self.references_left = self.references_left.checked_sub(1).ok_or_else(too_much)?;
        Ok(())
    }
}

fn too_much() -> String {
    format!("there are more than {REFERENCES_MAX} references in this file, or they stand for more than 4 MiB of text")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Fixed(BTreeMap<&'static str, &'static str>);

    impl Lookup for Fixed {
        fn variable(&self, name: &str) -> io::Result<Option<String>> {
            Ok(self.0.get(name).map(|value| (*value).to_owned()))
        }

        fn file(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
            let content = self.0.get(path.to_str().unwrap()).ok_or(io::ErrorKind::NotFound)?;
            Ok(content.bytes().cycle().take(if content.len() == 1 { bytes_max } else { content.len() }).collect())
        }
    }

    fn source() -> Source {
        let known = [
            ("A", "1"),
            ("EMPTY", ""),
            ("TRAP", "${A} file:/x"),
            ("conf/key", "s3cret\r\n"),
            ("/big", "x"),
            ("/two", "a\n\n"),
        ];
        Source::with_lookup("conf/limits.yaml", Fixed(known.into()))
    }

    fn expand(value: &str) -> Result<Option<String>, Vec<String>> {
        let source = source();
        let expanded = References::new(&source).expand(value);
        expanded.map_err(|faults| faults.into_iter().map(|fault| format!("{}: {}", fault.at, fault.message)).collect())
    }

    fn expanded(value: &str) -> String {
        expand(value).unwrap().unwrap_or_else(|| format!("unchanged {value}"))
    }

    #[test]
    fn variables() {
        assert_eq!(expanded("plain $A {A}"), "unchanged plain $A {A}");
        assert_eq!(expanded("<${A}|${A}>"), "<1|1>");
        assert_eq!(expanded("${NONE:-}${NONE:-b c}${EMPTY:-d}${EMPTY}${A:-e}"), "b cd1");
        assert_eq!(expanded("$${A} $$${A}"), "${A} $${A}");
        assert_eq!(expanded("${TRAP}"), "${A} file:/x", "what a reference stands for is not read again");
    }

    #[test]
    fn every_bad_reference_of_a_value_is_told() {
        assert_eq!(
            expand("${NONE}-${1X}-${A}-${open"),
            Err(vec![
                "0: the environment variable 'NONE' is not set".into(),
                "8: '1X' is not the name of an environment variable".into(),
                "19: this '${' is never closed".into(),
            ])
        );
    }

    #[test]
    fn files() {
        assert_eq!(expanded("file:key"), "s3cret", "relative to the folder of the limits file, no line break");
        assert_eq!(expanded("file:/two"), "a\n", "only one line break goes");
        assert_eq!(expanded("$file:key"), "file:key");
        let told = |value| expand(value).unwrap_err().remove(0);
        assert!(told("file:/gone").starts_with("0: the file '/gone' cannot be read: "));
        assert_eq!(told("file:/big"), "0: the file '/big' is larger than 64 KiB");
        assert_eq!(told("file: "), "0: 'file:' names no file");
    }

    #[test]
    fn the_real_lookup_refuses_what_is_no_file() {
        let error = SystemLookup.file(Path::new("/dev/null"), 10).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        assert!(SystemLookup.file(&std::env::temp_dir(), 10).is_err());
    }

    #[test]
    fn references_are_bounded() {
        let source = source();
        let mut references = References::new(&source);
        for _ in 0..REFERENCES_MAX {
            assert!(references.expand("${A}").is_ok());
        }
        assert!(references.expand("${A}").unwrap_err()[0].message.contains("more than 10000 references"));
    }
}
