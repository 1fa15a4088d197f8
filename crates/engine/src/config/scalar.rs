//! What one value means where a number, a text, a truth value or a word of a list is asked for.
//!
//! Nothing is converted on the quiet: `010`, `"60"`, `1e3`, `yes` and `on` get a fault that says
//! what to write where they could mean two things. What came through a reference is taken as it is
//! needed, and never shown.

use super::fault::{Finding, Findings, clipped, quoted};
use super::suggest::did_you_mean;
use super::tree::{Kind, Node, Scalar};

/// The largest number anywhere in the file: exact in a double, which JSON uses.
pub(crate) const NUMBER_MAX: u64 = (1 << 53) - 1;

/// A whole number from `least` to `most`; `key` names it in messages.
pub(crate) fn whole(node: &Node<'_>, key: &str, least: u64, most: u64, findings: &mut Findings) -> Option<u64> {
    let wanted = "a whole number";
    let scalar = scalar(node, key, wanted, findings)?;
    let reading = if scalar.is_plain() || scalar.is_reference() { number(scalar.text()) } else { Number::Quoted };
    let shown = shown(scalar);
    let (message, hint) = match reading {
        Number::Whole(value) if (least..=most).contains(&value) => return Some(value),
        Number::Whole(0) => (format!("'{key}' cannot be 0"), None),
        Number::Whole(_) | Number::TooLarge => (format!("'{key}' has to be between {least} and {most}"), None),
        Number::Negative => (format!("'{key}' cannot be negative"), Some(format!("write {least} or more"))),
        Number::LeadingZero(_) if scalar.is_reference() => {
            (format!("'{key}' has a leading zero in {shown}"), Some("remove the zero".to_owned()))
        }
        Number::LeadingZero(digits) => (
            format!("'{key}' is {shown}, which some read as {digits} and others as an octal number"),
            Some(format!("write {digits}")),
        ),
        Number::Quoted if matches!(number(scalar.text()), Number::Whole(_)) => {
            (format!("'{key}' has to be {wanted}, not the text {shown}"), Some("remove the quotes".to_owned()))
        }
        _ => (
            format!("'{key}' has to be {wanted}, not {shown}"),
            Some("write it in decimal digits, for example 1000 or 1_000".to_owned()),
        ),
    };
    let mut finding = Finding::new(node.place, message);
    finding.hint = hint;
    findings.push(finding);
    None
}

/// A whole number from `-most` to `most`.
pub(crate) fn signed(node: &Node<'_>, key: &str, most: i64, findings: &mut Findings) -> Option<i64> {
    if let Kind::Scalar(scalar) = &node.kind
        && (scalar.is_plain() || scalar.is_reference())
        && let Some(Number::Whole(value)) = scalar.text().strip_prefix('-').map(number)
    {
        let value = i64::try_from(value).ok().filter(|value| *value <= most).map(|value| -value);
        if value.is_none() {
            let message = format!("'{key}' has to be between -{most} and {most}");
            findings.push(Finding::new(node.place, message));
        }
        return value;
    }
    whole(node, key, 0, most.unsigned_abs(), findings).and_then(|value| i64::try_from(value).ok())
}

/// A text. What reads as a number or a truth value has to stand in quotes.
pub(crate) fn text<'n>(node: &'n Node<'_>, key: &str, findings: &mut Findings) -> Option<&'n str> {
    let scalar = scalar(node, key, "a text", findings)?;
    if scalar.is_plain() && !scalar.is_reference() && reads_as_other(&scalar.written) {
        let message = format!("'{key}' has to be a text, but {} reads as a number or a truth value", shown(scalar));
        findings.push(Finding::new(node.place, message).hint(format!("write \"{}\"", clipped(&scalar.written))));
        return None;
    }
    Some(scalar.text())
}

/// `true` or `false`.
pub(crate) fn flag(node: &Node<'_>, key: &str, findings: &mut Findings) -> Option<bool> {
    let scalar = scalar(node, key, "true or false", findings)?;
    let written = scalar.text();
    if scalar.is_plain() || scalar.is_reference() {
        match written {
            "true" | "True" | "TRUE" => return Some(true),
            "false" | "False" | "FALSE" => return Some(false),
            _ => {}
        }
    }
    let meant = match written.to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "on" | "1" => Some("write true, without quotes"),
        "false" | "no" | "n" | "off" | "0" => Some("write false, without quotes"),
        _ => None,
    };
    let mut finding = Finding::new(node.place, format!("'{key}' has to be true or false, not {}", shown(scalar)));
    finding.hint = meant.map(Into::into);
    findings.push(finding);
    None
}

/// One of the `known` words, or one of those that a later version knows.
pub(crate) fn choice<T: Copy>(
    node: &Node<'_>,
    key: &str,
    known: &[(&str, T)],
    later: &[&str],
    findings: &mut Findings,
) -> Option<T> {
    let words = known.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let wanted = if known.len() == 1 { words.clone() } else { format!("one of {words}") };
    let scalar = scalar(node, key, &wanted, findings)?;
    let written = scalar.text();
    if let Some((_, value)) = known.iter().find(|(word, _)| *word == written) {
        return Some(*value);
    }
    let finding = if later.contains(&written) {
        let message = format!("`{key}: {written}` is not built into this version of tidegate (it has: {words})");
        Finding::new(node.place, message)
    } else {
        let finding = Finding::new(node.place, format!("'{key}' has to be {wanted}, not {}", shown(scalar)));
        let known = known.iter().map(|(word, _)| *word).chain(later.iter().copied());
        match did_you_mean(written, known).filter(|_| !scalar.is_reference()) {
            Some(hint) => finding.hint(hint),
            None => finding,
        }
    };
    findings.push(finding);
    None
}

/// The items of a list; `key` names it in messages, `hint` says what to write instead of another
/// kind of value.
pub(crate) fn list<'n, 't>(
    node: &'n Node<'t>,
    key: &str,
    hint: &str,
    findings: &mut Findings,
) -> Option<&'n [std::rc::Rc<Node<'t>>]> {
    match &node.kind {
        Kind::List(items) => Some(items),
        Kind::Broken => None,
        _ => {
            let message = format!("'{key}' has to be a list, not {}", node.describe());
            findings.push(Finding::new(node.place, message).hint(hint));
            None
        }
    }
}

/// A value that is neither a list nor a group, and not nothing.
pub(crate) fn scalar<'n, 't>(
    node: &'n Node<'t>,
    key: &str,
    wanted: &str,
    findings: &mut Findings,
) -> Option<&'n Scalar<'t>> {
    match &node.kind {
        Kind::Broken => None,
        Kind::Scalar(scalar) if scalar.is_null() => {
            let message = format!("'{key}' has no value");
            findings.push(Finding::new(node.place, message).hint(format!("write {wanted}, or remove the key")));
            None
        }
        Kind::Scalar(scalar) => Some(scalar),
        Kind::List(_) | Kind::Map(_) => {
            findings.push(Finding::new(node.place, format!("'{key}' has to be {wanted}, not {}", node.describe())));
            None
        }
    }
}

/// A value in quotes for a message; what came through a reference is not shown.
pub(crate) fn shown(scalar: &Scalar<'_>) -> String {
    let written = quoted(&scalar.written);
    if scalar.is_reference() { format!("what {written} stands for") } else { written }
}

/// How a text reads as a number.
#[derive(Debug, PartialEq, Eq)]
enum Number {
    Whole(u64),
    Negative,
    /// The digits without the zeros in front.
    LeadingZero(String),
    TooLarge,
    Quoted,
    /// Not a whole number in decimal digits.
    Other,
}

fn number(text: &str) -> Number {
    if let Some(digits) = text.strip_prefix('-') {
        return match number(digits) {
            Number::Other => Number::Other,
            _ => Number::Negative,
        };
    }
    let well_formed = text.split('_').all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()));
    if !well_formed {
        return Number::Other;
    }
    let digits = text.replace('_', "");
    match digits.trim_start_matches('0') {
        rest if digits.len() > 1 && rest.len() < digits.len() => {
            Number::LeadingZero(if rest.is_empty() { "0".into() } else { clipped(rest) })
        }
        _ => match digits.parse::<u64>() {
            Ok(value) if value <= NUMBER_MAX => Number::Whole(value),
            _ => Number::TooLarge,
        },
    }
}

/// Whether a text without quotes is a number or a truth value to a reader of YAML.
fn reads_as_other(text: &str) -> bool {
    if matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned.to_ascii_lowercase().as_str(), ".inf" | ".nan") {
        return true;
    }
    let radix = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0o"));
    if radix.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return true;
    }
    let starts = unsigned.strip_prefix('.').unwrap_or(unsigned).starts_with(|c: char| c.is_ascii_digit());
    starts && (number(unsigned) != Number::Other || unsigned.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, reading) in [
            ("0", Number::Whole(0)),
            ("60", Number::Whole(60)),
            ("50_000_000", Number::Whole(50_000_000)),
            ("9007199254740991", Number::Whole(NUMBER_MAX)),
            ("9007199254740992", Number::TooLarge),
            ("99999999999999999999999", Number::TooLarge),
            ("-1", Number::Negative),
            ("-0", Number::Negative),
            ("010", Number::LeadingZero("10".into())),
            ("00", Number::LeadingZero("0".into())),
            ("", Number::Other),
            ("-", Number::Other),
            ("1.0", Number::Other),
            ("1e3", Number::Other),
            ("0x10", Number::Other),
            ("1__0", Number::Other),
            ("_1", Number::Other),
            ("1_", Number::Other),
            ("1,000", Number::Other),
            ("١", Number::Other),
        ] {
            assert_eq!(number(text), reading, "{text}");
        }
    }

    #[test]
    fn texts_that_need_quotes() {
        for text in [
            "1", "-1", "+1", "010", "1_000", "1.5", "1e3", ".5", "0x1F", "0o17", "true", "False", ".inf", "-.INF",
            ".nan",
        ] {
            assert!(reads_as_other(text), "{text}");
        }
        for text in [
            "a",
            "yes",
            "no",
            "on",
            "off",
            "60/min",
            "1.2.3.4",
            "127.0.0.1:80",
            "-",
            ".",
            "1a",
            "0x",
            "inf",
            "nan",
            "2026-11-30",
            "e5",
        ] {
            assert!(!reads_as_other(text), "{text}");
        }
    }
}
