//! What the YAML parser stumbles over, in words that say what to do.

use granit_parser::{ErrorKind, ScanError};

use super::fault::Finding;
use super::place::Place;
use super::tree::DEPTH_MAX;

/// The fault for an error of the parser: it ends the reading, so it says that too.
pub(crate) fn fault(text: &str, error: &ScanError) -> Finding {
    let place = match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar => indenting_tab(text, Place::at(error.marker())),
        _ => Place::at(error.marker()),
    };
    let line = line_at(text, place);
    let (message, hint) = words(error.kind(), line);
    let mut finding = Finding::new(place, message);
    finding.hint = Some(format!("{hint} (what follows was not checked)"));
    // Nobody has told yet which part of the line is a secret.
    if may_hold_secret(line) { finding.without_snippet() } else { finding }
}

/// The parser notices a tab late or early: the tab is the first one that indents a line from here on.
fn indenting_tab(text: &str, noticed: Place) -> Place {
    let mut start = noticed.start - column_bytes(text, noticed.start);
    let lines = text.get(start..).unwrap_or("").split_inclusive('\n');
    for (line, number) in lines.zip(noticed.line..) {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(at) = line.get(..indent).and_then(|indent| indent.find('\t')) {
            return Place { line: number, column: at + 1, start: start + at, end: start + at };
        }
        start += line.len();
    }
    noticed
}

/// How far behind the start of its line a byte stands.
fn column_bytes(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(0, |before| before.len() - before.rfind('\n').map_or(0, |at| at + 1))
}

fn line_at(text: &str, place: Place) -> &str {
    let start = place.start - column_bytes(text, place.start);
    text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or("")
}

fn may_hold_secret(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["token", "secret", "password", "key", "redis", "url"].iter().any(|word| line.contains(word))
}

fn words(kind: &ErrorKind, line: &str) -> (String, &'static str) {
    let (message, hint) = match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::InvalidBlockEntryWhitespace
        | ErrorKind::InvalidMappingValueWhitespace
        | ErrorKind::TabInPlainScalar => ("a tab is used for indentation", "YAML indents with spaces only"),
        ErrorKind::UnclosedQuotedScalar => ("a quote is opened here and never closed", "close it, or remove it"),
        ErrorKind::UnclosedFlowCollection { open: '{' } if line.contains("${") => BRACES,
        ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::MisplacedFlowCollectionEnd
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::UnexpectedEofFlowMapping
            if line.contains("${") =>
        {
            BRACES
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            return (format!("a '{open}' is never closed"), "close it, and put commas between the values");
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            return (format!("a '{open}' is closed with '{close}'"), "close it with its own kind of bracket");
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            ("a bracket is closed that was not opened", "remove it, or put the text in quotes")
        }
        ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping => {
            ("a comma or the closing bracket is missing here", "put commas between values in brackets")
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            "a ':' is not allowed here",
            "put text that contains ': ' in quotes, put a space behind each ':' above, and indent the line like its neighbours",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey | ErrorKind::ExpectedBlockMappingKey => (
            "'key: value' is expected here",
            "put ': ' with a space behind each key, and indent the line like its neighbours",
        ),
        ErrorKind::ExpectedBlockSequenceEntry | ErrorKind::BlockSequenceEntryNotAllowed => {
            ("this line fits neither the list nor the item above", "indent it exactly like its neighbours")
        }
        ErrorKind::InvalidIndentation => ("the indentation fits no line above", "indent the line like its neighbours"),
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => {
            ("a control character stands here", "remove it: a limits file is plain text")
        }
        ErrorKind::UnexpectedCharacter { character } => {
            return (format!("a value cannot begin with '{}'", character.escape_debug()), "put the value in quotes");
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            ("something stands behind the closing quote", "put the whole value in one pair of quotes")
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            ("this escape is not known", "write '\\\\' for a backslash, or use single quotes")
        }
        ErrorKind::RecursionLimitExceeded => {
            return (
                format!("values are nested more than {DEPTH_MAX} deep"),
                "a limits file needs eight levels at most",
            );
        }
        ErrorKind::BomInsideDocument => ("a byte order mark stands here", "remove it"),
        other => return (format!("this is not YAML: {other}"), "check the line and the one above"),
    };
    (message.to_owned(), hint)
}

const BRACES: (&str, &str) =
    ("a '${…}' stands here without quotes", "inside [ ] and { } put a reference in quotes: \"${NAME}\"");
