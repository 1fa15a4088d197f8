use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::*;

mod faults;
mod hostile;
mod policy;
mod schema;

/// An environment of its own: `ADMIN_TOKEN`, `COUNT`, and the file `/run/token`.
pub(crate) struct Fixed(BTreeMap<&'static str, &'static str>);

impl Fixed {
    pub(crate) fn new() -> Self {
        Self(BTreeMap::from([
            ("ADMIN_TOKEN", "hunter2-hunter2-hunter2"),
            ("SHORT", "hunter2"),
            ("COUNT", "500"),
            ("OCTAL", "0500"),
            ("RATE", "60/min"),
            ("/run/token", "hunter2-from-a-file\n"),
        ]))
    }
}

impl Lookup for Fixed {
    fn variable(&self, name: &str) -> io::Result<Option<String>> {
        Ok(self.0.get(name).map(|value| (*value).to_owned()))
    }

    fn file(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
        let path = path.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let content = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(content.as_bytes().to_vec())
    }
}

fn source() -> Source {
    Source::with_lookup("limits.yaml", Fixed::new())
}

/// The policy of a text without faults.
pub(crate) fn loaded(text: &str) -> Loaded {
    match parse(text, &source()) {
        Ok(loaded) => loaded,
        Err(faults) => panic!("{faults}\n{text}"),
    }
}

/// The warnings of a text without faults.
pub(crate) fn warnings(text: &str) -> Vec<String> {
    loaded(text).warnings.iter().map(|warning| warning.line_of("limits.yaml")).collect()
}

/// The faults of a text, one a line.
fn faults(text: &str) -> String {
    match parse(text, &source()) {
        Ok(_) => panic!("no fault in\n{text}"),
        Err(faults) => faults.to_string(),
    }
}

/// A file with one limit, which has these lines beside its name.
pub(crate) fn limit(lines: &str) -> String {
    let mut text = String::from("limits:\n  - name: a\n");
    for line in lines.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}
