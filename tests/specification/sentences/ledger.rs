//! Every sentence is shown by a test of its number or pending, and never both.

use std::collections::{BTreeMap, BTreeSet};

use crate::pending::{CAPABILITIES, PENDING};

/// The documents: the letter of their numbers, how many sentences they have, and the tests of them.
const DOCUMENTS: [(char, usize, &str); 3] = [
    ('h', 53, include_str!("hierarchical_limiter.rs")),
    ('p', 83, include_str!("contextforge_plugin.rs")),
    ('d', 46, include_str!("decisions.rs")),
];

/// The number in a test's name `h01_what_it_shows`.
fn number(name: &str) -> Option<&str> {
    let (number, shows) = name.split_once('_')?;
    let (letter, digits) = number.split_at_checked(1)?;
    let is_number = letter.chars().all(|char| char.is_ascii_lowercase())
        && digits.len() == 2
        && digits.chars().all(|char| char.is_ascii_digit());
    (is_number && !shows.is_empty()).then_some(number)
}

/// The numbers of the tests in a file: each is marked as a test, with a line that says what it shows.
fn tested(source: &'static str) -> Vec<&'static str> {
    let lines: Vec<&str> = source.lines().collect();
    let mut numbers = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(number) = line.strip_prefix("fn ").and_then(number) else { continue };
        assert_eq!(lines[at - 1], "#[test]", "{line}");
        assert!(lines[at - 2].starts_with("/// "), "{line} has no line that says what it shows");
        numbers.push(number);
    }
    numbers
}

#[test]
fn every_sentence_is_tested_or_pending() {
    let mut summary = String::new();
    for (letter, sentences, source) in DOCUMENTS {
        let tested = tested(source);
        let pending: Vec<&str> =
            PENDING.iter().map(|(number, ..)| *number).filter(|number| number.starts_with(letter)).collect();
        let all: Vec<&str> = tested.iter().chain(&pending).copied().collect();
        let unique: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), unique.len(), "a number stands twice among {all:?}");
        let wanted: BTreeSet<String> = (1..=sentences).map(|number| format!("{letter}{number:02}")).collect();
        let unknown: Vec<_> = unique.iter().filter(|number| !wanted.contains(**number)).collect();
        let lacking: Vec<_> = wanted.iter().filter(|number| !unique.contains(number.as_str())).collect();
        assert!(unknown.is_empty() && lacking.is_empty(), "unknown: {unknown:?}, lacking: {lacking:?}");
        summary.push_str(&format!("{letter}: {} of {sentences} shown, {} pending\n", tested.len(), pending.len()));
    }
    let shown: usize = DOCUMENTS.iter().map(|(.., source)| tested(source).len()).sum();
    let sentences: usize = DOCUMENTS.iter().map(|(_, sentences, _)| sentences).sum();
    assert_eq!((shown + PENDING.len(), sentences), (182, 182));
    println!("{summary}{shown} of {sentences} sentences are shown by a test; the others come with");
    let mut by_capability: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, capability, _) in PENDING {
        *by_capability.entry(capability).or_default() += 1;
    }
    for (capability, sentences) in by_capability {
        println!("  {capability}: {sentences}");
    }
}

#[test]
fn every_pending_sentence_names_a_known_capability_and_what_it_shows() {
    let mut last = ("", "");
    for (number, capability, shows) in PENDING {
        assert!(CAPABILITIES.contains(capability), "{number}: '{capability}' is no capability");
        assert!(shows.len() > 20 && !shows.ends_with('.'), "{number} says too little");
        assert!(*shows != last.1, "{number} repeats {}", last.0);
        last = (number, shows);
    }
    for capability in CAPABILITIES {
        assert!(PENDING.iter().any(|(_, of, _)| *of == capability), "nothing is pending for {capability}");
    }
}

#[test]
fn numbers_are_read_from_names() {
    assert_eq!(number("h01_what_it_shows"), Some("h01"));
    for name in ["h1_x", "01_x", "h001_x", "H01_x", "h01", "h01_", "refused_by(decision", "ab1_x"] {
        assert_eq!(number(name), None, "{name}");
    }
}
