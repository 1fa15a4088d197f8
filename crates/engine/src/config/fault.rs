//! What is wrong with a limits file, and where: one finding a line, all of them in one go.
//!
//! A fault stops the file from being used, a warning does not. Both are the same shape and both
//! read as `limits.yaml:12:7: what is wrong; what to do`.

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::place::Place;

/// How many findings are kept; the rest are counted.
const FINDINGS_MAX: usize = 100;
/// How many characters of a line are shown around a finding.
const SNIPPET_CHARS_MAX: usize = 120;
/// How many characters of what somebody wrote are quoted in a message.
const QUOTE_CHARS_MAX: usize = 40;

/// One thing about one place of a limits file: a fault or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The line, counted from 1. 0: the file as a whole (it cannot be read, say).
    pub line: usize,
    /// The character in that line, counted from 1. 0: the file as a whole.
    pub column: usize,
    /// What is the matter, in one sentence without a full stop.
    pub message: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
    /// Whether it is a warning about what `tidegate serve` refuses, unless its options say otherwise.
    #[serde(skip)]
    stops_server: bool,
    /// The line itself with a mark under the place, for terminals. Secrets are masked.
    #[serde(skip)]
    snippet: Option<String>,
    /// The bytes that the finding is about; kept to draw the snippet.
    #[serde(skip)]
    place: Place,
}

/// A finding that stops the file from being used.
pub type Fault = Finding;

/// A finding that does not stop the file from being used.
pub type Warning = Finding;

impl Finding {
    /// A finding at `place`.
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        let message = harmless(message.into());
        Self { line: place.line, column: place.column, message, hint: None, stops_server: false, snippet: None, place }
    }

    /// The same finding with something to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(harmless(hint.into()));
        self
    }

    /// The same finding, for which a server does not start.
    pub(crate) fn stopping_server(self) -> Self {
        Self { stops_server: true, ..self }
    }

    /// Whether it is a warning about what `tidegate serve` refuses, unless its options say otherwise:
    /// the file is good, but nothing listens as it says.
    pub const fn stops_server(&self) -> bool {
        self.stops_server
    }

    /// The same finding, never shown with its line.
    pub(crate) fn without_snippet(mut self) -> Self {
        self.place = Place::WHOLE_FILE;
        self
    }

    /// The line of the file with a mark under the place, for terminals: two lines of plain text
    /// without a line feed at the end. `None` for a finding about the file as a whole.
    pub fn snippet(&self) -> Option<&str> {
        self.snippet.as_deref()
    }

    /// The finding as one line: `limits.yaml:12:7: unknown key 'pre'; did you mean 'per'?`
    pub fn line_of(&self, file: &str) -> String {
        let mut line = file.to_owned();
        // Writing to a string cannot fail.
        let _ = match self.line {
            0 => write!(line, ": {}", self.message),
            _ => write!(line, ":{}:{}: {}", self.line, self.column, self.message),
        };
        if let Some(hint) = &self.hint {
            line.push_str("; ");
            line.push_str(hint);
        }
        line
    }
}

/// Every fault of a file, by place. Holds at least one once it is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Faults {
    /// The name of the file, as it was given.
    pub file: String,
    /// The faults by line and column, 100 at most.
    pub faults: Vec<Fault>,
    /// How many more there were.
    pub omitted: usize,
}

impl Faults {
    /// A file that cannot be used for one reason that belongs to no line.
    pub(crate) fn whole_file(file: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        let mut fault = Finding::new(Place::WHOLE_FILE, message);
        fault.hint = hint;
        Self { file: file.to_owned(), faults: vec![fault], omitted: 0 }
    }

    /// The faults with the lines they are about, for terminals.
    pub fn with_snippets(&self) -> String {
        let mut text = String::new();
        for fault in &self.faults {
            text.push_str(&fault.line_of(&self.file));
            text.push('\n');
            if let Some(snippet) = fault.snippet() {
                text.push_str(snippet);
                text.push('\n');
            }
        }
        self.push_omitted(&mut text);
        text
    }

    fn push_omitted(&self, text: &mut String) {
        if self.omitted > 0 {
            let _ = writeln!(text, "{}: and {} more", self.file, self.omitted);
        }
    }
}

impl fmt::Display for Faults {
    /// One fault a line, without a line feed at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for fault in &self.faults {
            text.push_str(&fault.line_of(&self.file));
            text.push('\n');
        }
        self.push_omitted(&mut text);
        f.write_str(text.trim_end_matches('\n'))
    }
}

/// Findings while they are collected: at most 100 are kept, the same one only once.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
    omitted: usize,
    secrets: Vec<Place>,
}

impl Findings {
    /// Adds a finding, unless the very same was added before (an alias is read at each use).
    pub(crate) fn push(&mut self, finding: Finding) {
        let same = |other: &Finding| (other.line, other.column) == (finding.line, finding.column) && *other == finding;
        if self.found.iter().any(same) {
            return;
        }
        if self.is_full() {
            self.omitted += 1;
        } else {
            self.found.push(finding);
        }
    }

    /// Whether further findings will only be counted, so that their words need no work.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= FINDINGS_MAX
    }

    /// Marks a place whose text is never shown.
    pub(crate) fn mask(&mut self, secret: Place) {
        self.secrets.push(secret);
    }

    /// Whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The findings by place, each with its line of `text`, and how many were left out.
    pub(crate) fn finish(self, text: &str) -> (Vec<Finding>, usize) {
        let mut found = self.found;
        found.sort_by_key(|finding| (finding.line, finding.column));
        for finding in &mut found {
            finding.snippet = snippet(text, finding, &self.secrets);
        }
        (found, self.omitted)
    }
}

/// What somebody wrote, in quotes, safe to print.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", clipped(text))
}

/// What somebody wrote, safe to print: clipped, control characters shown as escapes.
pub(crate) fn clipped(text: &str) -> String {
    let mut short: String = text.chars().take(QUOTE_CHARS_MAX).flat_map(printable).collect();
    if text.chars().nth(QUOTE_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

/// A text in which nothing can act on a terminal: what somebody wrote may have got into it.
pub(crate) fn harmless(text: String) -> String {
    if text.chars().any(is_hidden) { text.chars().flat_map(printable).collect() } else { text }
}

/// Whether a terminal could act on a character, or nobody could see it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The character, or its escape if it is hidden.
fn printable(c: char) -> impl Iterator<Item = char> {
    let escaped = is_hidden(c).then(|| c.escape_default());
    let plain = escaped.is_none().then_some(c);
    escaped.into_iter().flatten().chain(plain)
}

fn snippet(text: &str, finding: &Finding, secrets: &[Place]) -> Option<String> {
    let place = finding.place;
    if place == Place::WHOLE_FILE {
        return None;
    }
    let start = text.get(..place.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..)?.lines().next()?;
    let first = finding.column.saturating_sub(1);
    // A long line is shown from a little before the place.
    let skipped =
        if line.chars().count() > SNIPPET_CHARS_MAX { first.saturating_sub(SNIPPET_CHARS_MAX / 2) } else { 0 };
    let hidden = |at: usize| secrets.iter().any(|secret| (secret.start..secret.end).contains(&at));
    let shown = line.char_indices().skip(skipped).take(SNIPPET_CHARS_MAX).map(|(at, c)| match c {
        _ if hidden(start + at) => '*',
        '\t' => ' ',
        c if is_hidden(c) => '\u{fffd}',
        c => c,
    });
    let shown: String = shown.collect();
    let columns_left = shown.chars().count().saturating_sub(first - skipped);
    let marked = text.get(place.start..place.end).map_or(1, |part| part.lines().next().unwrap_or("").chars().count());
    let number = finding.line.to_string();
    let margin = " ".repeat(number.len());
    let indent = " ".repeat(first - skipped);
    let marks = "^".repeat(marked.clamp(1, columns_left.max(1)));
    Some(format!("  {number} | {shown}\n  {margin} | {indent}{marks}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize, start: usize, end: usize) -> Place {
        Place { line, column, start, end }
    }

    #[test]
    fn faults_are_sorted_by_place_and_told_once() {
        let mut findings = Findings::default();
        findings.push(Finding::new(at(2, 1, 2, 3), "second"));
        findings.push(Finding::new(at(1, 1, 0, 1), "first").hint("do this"));
        findings.push(Finding::new(at(2, 1, 2, 3), "second"));
        let (faults, omitted) = findings.finish("a\nb\n");
        let faults = Faults { file: "limits.yaml".into(), faults, omitted };
        assert_eq!(faults.to_string(), "limits.yaml:1:1: first; do this\nlimits.yaml:2:1: second");
        assert_eq!(
            faults.with_snippets(),
            "limits.yaml:1:1: first; do this\n  1 | a\n    | ^\nlimits.yaml:2:1: second\n  2 | b\n    | ^\n"
        );
    }

    #[test]
    fn a_hundred_are_kept_and_the_rest_counted() {
        let mut findings = Findings::default();
        for line in 1..=130 {
            findings.push(Finding::new(at(line, 1, 0, 0), "wrong"));
        }
        let (faults, omitted) = findings.finish("");
        let faults = Faults { file: "f".into(), faults, omitted };
        assert_eq!((faults.faults.len(), faults.omitted), (100, 30));
        assert!(faults.to_string().ends_with("f:100:1: wrong\nf: and 30 more"));
    }

    #[test]
    fn a_snippet_masks_secrets_and_control_characters() {
        let text = "admin: {addr: x\u{1b}, token: hunter2}";
        let mut findings = Findings::default();
        let from = text.find("hunter2").unwrap();
        findings.mask(at(1, 1, from, from + 7));
        findings.push(Finding::new(at(1, 15, 14, 16), "bad"));
        let (faults, _) = findings.finish(text);
        let shown = faults[0].snippet().unwrap();
        assert_eq!(shown, "  1 | admin: {addr: x\u{fffd}, token: *******}\n    |               ^^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}here{}", "a".repeat(1_000), "b".repeat(1_000));
        let mut findings = Findings::default();
        findings.push(Finding::new(at(1, 1_001, 1_000, 1_004), "bad"));
        let (faults, _) = findings.finish(&text);
        let shown = faults[0].snippet().unwrap();
        let (line, mark) = shown.split_once('\n').unwrap();
        assert!(line.len() < 140, "{line}");
        assert_eq!(line.find("here"), mark.find("^^^^"));
    }

    #[test]
    fn quotes_are_clipped_and_harmless() {
        assert_eq!(quoted("a\u{1b}[31mb\u{202e}"), "'a\\u{1b}[31mb\\u{202e}'");
        assert_eq!(quoted(&"x".repeat(50)), format!("'{}…'", "x".repeat(40)));
    }
}
