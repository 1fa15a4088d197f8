//! Colours, and making other people's text harmless.
//!
//! Text is written through `anstream`, which drops colours where the output is no terminal or
//! `NO_COLOR` is set.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What deserves a look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// What is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Titles and names.
pub(crate) const STRONG: Style = Style::new().bold();
/// What is beside the point.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// As it comes.
pub(crate) const PLAIN: Style = Style::new();

/// Text from a request or a file, on one line and with nothing that a terminal acts on or hides.
pub(crate) fn shown(text: &str) -> String {
    text.chars().flat_map(printable).collect()
}

fn printable(c: char) -> impl Iterator<Item = char> {
    let hidden = c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let escaped = hidden.then(|| c.escape_default());
    escaped.into_iter().flatten().chain((!hidden).then_some(c))
}

/// Tells warnings on standard error.
pub(crate) fn warn(warnings: &[String]) -> io::Result<()> {
    warnings.iter().try_for_each(|warning| writeln!(anstream::stderr(), "{WARN}warning:{WARN:#} {}", shown(warning)))
}

/// `1 limit`, `2 limits`.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_it_could_act_on() {
        assert_eq!(shown("a\u{1b}[2Jb\nc\u{202e}ü"), "a\\u{1b}[2Jb\\nc\\u{202e}ü");
    }

    #[test]
    fn counts() {
        assert_eq!(
            (count(0, "fault"), count(1, "fault"), count(2, "fault")),
            ("0 faults".into(), "1 fault".into(), "2 faults".into())
        );
    }
}
