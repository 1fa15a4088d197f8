//! The conditions of `when`, against the plainest way to say them.

use proptest::prelude::*;
use tidegate::policy::{Glob, Test};
use tidegate_testkit::Limiter;

use crate::cases;

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/conditions.txt");

/// What a pattern's characters stand for, read one by one.
#[derive(Clone, Copy, PartialEq)]
enum Stands {
    For(char),
    One,
    Many,
}

fn read(pattern: &str) -> Vec<Stands> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut stands = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('\\', Some(next)) => {
                stands.push(Stands::For(*next));
                at += 1;
            }
            ('*', _) => stands.push(Stands::Many),
            ('?', _) => stands.push(Stands::One),
            (other, _) => stands.push(Stands::For(other)),
        }
        at += 1;
    }
    stands
}

/// Whether `value` matches, tried for every split of it: no backtracking to get wrong.
fn plainly_matches(pattern: &str, value: &str) -> bool {
    let stands = read(pattern);
    let chars: Vec<char> = value.chars().collect();
    // reached[i]: the pattern so far matches the first i characters.
    let mut reached = vec![false; chars.len() + 1];
    reached[0] = true;
    for one in stands {
        let before = reached.clone();
        for at in 0..=chars.len() {
            reached[at] = match one {
                Stands::Many => before[..=at].contains(&true),
                Stands::One => at > 0 && before[at - 1],
                Stands::For(char) => at > 0 && before[at - 1] && chars[at - 1] == char,
            };
        }
    }
    reached[chars.len()]
}

proptest! {
    #![proptest_config(cases(4_000, SEEDS))]

    #[test]
    fn a_glob_matches_what_it_plainly_matches(
        pattern in "[ab*?\\\\é]{0,12}",
        value in "[ab*?\\\\é]{0,16}",
    ) {
        prop_assert_eq!(Glob::new(&pattern).matches(&value), plainly_matches(&pattern, &value));
    }

    /// Patterns made from the value itself, so that many do match.
    #[test]
    fn a_glob_matches_what_it_was_made_from(
        value in "[abc.é-]{0,20}",
        holes in prop::collection::vec((0_usize..20, 0_usize..4, prop::bool::ANY), 0..4),
    ) {
        let mut pattern: Vec<String> = value.chars().map(String::from).collect();
        for (from, length, many) in holes {
            let from = from.min(pattern.len());
            let to = (from + length).min(pattern.len());
            if many {
                pattern.splice(from..to, ["*".to_owned()]);
            } else {
                pattern[from..to].iter_mut().filter(|one| *one != "*").for_each(|one| *one = "?".to_owned());
            }
        }
        let pattern = pattern.concat();
        let matches = Glob::new(&pattern).matches(&value);
        prop_assert_eq!(matches, plainly_matches(&pattern, &value));
        prop_assert!(matches, "{} does not match {}", pattern, value);
    }

    #[test]
    fn a_test_passes_what_it_says(
        wanted in prop::collection::vec("[ab]{0,3}", 1..4),
        value in prop::option::of("[ab]{0,4}"),
    ) {
        let value = value.as_deref();
        prop_assert_eq!(Test::Equals(wanted[0].clone()).passes(value), value == Some(wanted[0].as_str()));
        prop_assert_eq!(Test::In(wanted.clone()).passes(value), value.is_some_and(|value| wanted.iter().any(|one| one == value)));
        let begins = value.is_some_and(|value| value.get(..wanted[0].len()) == Some(wanted[0].as_str()));
        prop_assert_eq!(Test::Prefix(wanted[0].clone()).passes(value), begins);
        prop_assert_eq!(Test::Absent.passes(value), value.is_none());
    }
}

#[test]
fn a_hostile_pattern_takes_no_more_than_length_times_length() {
    // Tried one after the other in every way, these would outlast the universe.
    let value = "a".repeat(8_192);
    let pattern = format!("{}b", "a*".repeat(200));
    assert!(!Glob::new(&pattern).matches(&value));
    assert!(Glob::new(&"*?".repeat(200)).matches(&value));
    assert!(!Glob::new(&"?".repeat(8_191)).matches(&value));
    assert!(Glob::new(&"*".repeat(10_000)).matches(&value));
}

#[test]
fn a_glob_keeps_what_was_written() {
    for pattern in ["", "*", "a\\*b", "search-?", "\\"] {
        assert_eq!(Glob::new(pattern).pattern(), pattern);
    }
    // A backslash at the end stands for itself.
    assert!(Glob::new("a\\").matches("a\\"));
    assert!(Glob::new("\\*").matches("*") && !Glob::new("\\*").matches("x"));
}

#[test]
fn a_limit_without_its_requests_is_as_if_it_were_not_there() {
    let limiter = Limiter::new(
        "limits: [{ name: search, when: { tool: { glob: 'search-*' }, user: { absent: true } }, per: [], rate: 2/min }]",
    );
    assert_eq!(limiter.admitted("tool=search-web", 3), 2);
    for others in ["tool=search", "tool=Search-web", "tool=search-web user=u1", "user=u1", ""] {
        assert_eq!(limiter.admitted(others, 5), 5, "{others}");
        assert_eq!(limiter.ask(others).limits().count(), 0, "{others}");
    }
}
