//! What follows from conditions: which requests meet one whenever they meet another, and which can
//! never meet both. "No" means only that it was not proved.

use crate::policy::{Condition, Glob, Test};

/// How many comparisons all proofs of a file may take. What is left out after that is a warning
/// less, never a wrong one.
const STEPS_MAX: u64 = 5_000_000;

/// What is left of the work that proofs may take.
#[derive(Debug)]
pub(super) struct Steps(u64);

impl Default for Steps {
    fn default() -> Self {
        Self(STEPS_MAX)
    }
}

impl Steps {
    /// Whether so many comparisons can still be made; they count as made.
    pub(super) fn afford(&mut self, steps: usize) -> bool {
        let left = self.0.checked_sub(steps as u64);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// Whether every request that meets all of `narrow` meets all of `wide`.
pub(super) fn implies(narrow: &[Condition], wide: &[Condition], steps: &mut Steps) -> bool {
    steps.afford(1 + narrow.len() * wide.len())
        && wide.iter().all(|wide| {
            let mut same = narrow.iter().filter(|narrow| narrow.attribute == wide.attribute);
            same.any(|narrow| within(&narrow.test, &wide.test, steps))
        })
}

/// The first of `one` that no request can meet together with all of `other`.
pub(super) fn contradicts<'c>(
    one: &'c [Condition],
    other: &'c [Condition],
    steps: &mut Steps,
) -> Option<(usize, &'c Condition)> {
    if !steps.afford(1 + one.len() * other.len()) {
        return None;
    }
    one.iter().enumerate().find_map(|(at, one)| {
        let mut same = other.iter().filter(|other| other.attribute == one.attribute);
        same.find(|other| disjoint(&one.test, &other.test, steps)).map(|other| (at, other))
    })
}

/// Whether every value that passes `narrow` passes `wide`.
fn within(narrow: &Test, wide: &Test, steps: &mut Steps) -> bool {
    if let Some(values) = values(narrow) {
        return steps.afford(values.len() * size(wide)) && values.iter().all(|value| wide.passes(Some(value)));
    }
    match (narrow, wide) {
        (Test::Absent, wide) => *wide == Test::Absent,
        (_, Test::Glob(wide)) if wide.pattern().chars().all(|c| c == '*') && !wide.pattern().is_empty() => true,
        (Test::Prefix(narrow), Test::Prefix(wide)) => narrow.starts_with(wide.as_str()),
        (Test::Glob(narrow), Test::Prefix(wide)) => literal_prefix(narrow).starts_with(wide.as_str()),
        (Test::Glob(narrow), Test::Glob(wide)) => narrow == wide,
        _ => false,
    }
}

/// Whether no value passes both.
fn disjoint(one: &Test, other: &Test, steps: &mut Steps) -> bool {
    if (*one == Test::Absent) != (*other == Test::Absent) {
        return true;
    }
    for (finite, test) in [(one, other), (other, one)] {
        if let Some(values) = values(finite) {
            return steps.afford(values.len() * size(test)) && !values.iter().any(|value| test.passes(Some(value)));
        }
    }
    let prefix = |test: &Test| match test {
        Test::Prefix(prefix) => Some(prefix.clone()),
        Test::Glob(glob) => Some(literal_prefix(glob)),
        _ => None,
    };
    match (prefix(one), prefix(other)) {
        (Some(one), Some(other)) => !one.starts_with(other.as_str()) && !other.starts_with(one.as_str()),
        _ => false,
    }
}

/// The values that pass, if there are only so many.
fn values(test: &Test) -> Option<&[String]> {
    match test {
        Test::Equals(value) => Some(std::slice::from_ref(value)),
        Test::In(values) => Some(values),
        Test::Prefix(_) | Test::Glob(_) | Test::Absent => None,
    }
}

/// About how many comparisons one value takes.
fn size(test: &Test) -> usize {
    match test {
        Test::In(values) => values.len(),
        // Matching takes up to pattern × value steps.
        Test::Glob(glob) => glob.pattern().len().max(1) * 64,
        Test::Equals(_) | Test::Prefix(_) | Test::Absent => 1,
    }
}

/// What every match of a pattern begins with.
fn literal_prefix(glob: &Glob) -> String {
    let mut literal = String::new();
    let mut chars = glob.pattern().chars();
    while let Some(c) = chars.next() {
        match c {
            '*' | '?' => break,
            '\\' => literal.push(chars.next().unwrap_or('\\')),
            c => literal.push(c),
        }
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equals(value: &str) -> Test {
        Test::Equals(value.into())
    }

    fn list(values: &[&str]) -> Test {
        Test::In(values.iter().map(|value| (*value).to_owned()).collect())
    }

    fn prefix(prefix: &str) -> Test {
        Test::Prefix(prefix.into())
    }

    fn glob(pattern: &str) -> Test {
        Test::Glob(Glob::new(pattern))
    }

    fn all() -> Vec<Test> {
        let mut tests = vec![Test::Absent, list(&["a", "ab"]), list(&["b", "c"]), list(&["a", "a"])];
        for text in ["", "a", "ab", "abc", "b", "*", "a*", "ab*", "*b", "a?", "?", "\\*", "\\*a"] {
            tests.extend([equals(text), prefix(text), glob(text)]);
        }
        tests
    }

    /// Every text of up to three of these characters, and no text at all.
    fn every_value() -> Vec<Option<String>> {
        let mut values = vec![String::new()];
        for _ in 0..3 {
            let longer: Vec<_> =
                values.iter().flat_map(|value| ["a", "b", "c", "*", "\\"].map(|c| format!("{value}{c}"))).collect();
            values.extend(longer);
        }
        values.into_iter().map(Some).chain([None]).collect()
    }

    #[test]
    fn what_is_proved_holds_for_every_value() {
        let (mut within_proved, mut disjoint_proved) = (0, 0);
        for one in all() {
            for other in all() {
                let steps = &mut Steps::default();
                let (is_within, are_disjoint) = (within(&one, &other, steps), disjoint(&one, &other, steps));
                within_proved += u32::from(is_within);
                disjoint_proved += u32::from(are_disjoint);
                for value in every_value() {
                    let value = value.as_deref();
                    let (passes_one, passes_other) = (one.passes(value), other.passes(value));
                    assert!(!(is_within && passes_one && !passes_other), "{one:?} within {other:?}: {value:?}");
                    assert!(!(are_disjoint && passes_one && passes_other), "{one:?} apart from {other:?}: {value:?}");
                }
            }
        }
        assert!(within_proved > 200 && disjoint_proved > 500, "{within_proved} {disjoint_proved}");
    }

    #[test]
    fn the_usual_cases_are_proved() {
        let steps = &mut Steps::default();
        for (narrow, wide) in [
            (equals("a"), list(&["a", "b"])),
            (equals("ab"), prefix("a")),
            (equals("ab"), glob("a*")),
            (list(&["a1", "a2"]), glob("a?")),
            (prefix("ab"), prefix("a")),
            (prefix("ab"), glob("*")),
            (glob("ab*c"), prefix("ab")),
            (Test::Absent, Test::Absent),
        ] {
            assert!(within(&narrow, &wide, steps), "{narrow:?} {wide:?}");
        }
        for (one, other) in [
            (equals("a"), equals("b")),
            (equals("b"), prefix("a")),
            (prefix("a"), prefix("b")),
            (glob("a*"), prefix("b")),
            (equals("a"), Test::Absent),
            (list(&["a", "b"]), list(&["c"])),
        ] {
            assert!(disjoint(&one, &other, steps) && disjoint(&other, &one, steps), "{one:?} {other:?}");
        }
    }

    #[test]
    fn without_steps_nothing_is_proved() {
        let steps = &mut Steps(3);
        assert!(!within(&list(&["a", "b"]), &list(&["a", "b"]), steps));
        assert!(!disjoint(&equals("a"), &equals("b"), steps));
    }
}
