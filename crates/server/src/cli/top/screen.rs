//! The picture of `top`: the whole terminal, on a screen of its own that is left as it was.

use std::io::{self, Write};

use anstream::AutoStream;

use super::NOTHING;
use crate::cli::counters::{self, Page};
use crate::cli::style::{STRONG, WARN};
use crate::cli::table::cut;

/// Another screen, no cursor, no wrapping of long lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// To the upper left corner.
const HOME: &str = "\x1b[H";
/// What is left of an older picture: on this line, below it.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
/// Rows that are not counters: heading, empty line, titles, and one to spare.
const ROWS_BESIDE: u16 = 4;
const SIZE_UNKNOWN: (u16, u16) = (80, 24);

/// The terminal while it is ours. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Screen(());

impl Screen {
    /// Takes the terminal.
    pub(super) fn enter() -> io::Result<Self> {
        write_all(ENTER)?;
        Ok(Self(()))
    }

    /// How many counters the terminal holds: 1 to 1,000.
    pub(super) fn rows() -> u16 {
        size().1.saturating_sub(ROWS_BESIDE).clamp(1, 1_000)
    }

    /// Draws a page of counters under a heading.
    pub(super) fn draw(&self, heading: &str, page: &Page) -> io::Result<()> {
        let (width, height) = size();
        let mut picture = colours();
        self.head(&mut picture, heading, width)?;
        if page.items.is_empty() {
            writeln!(picture, "{NOTHING}")?;
        } else {
            counters::table(&page.items, true).fit(width.into()).write(&mut picture, "")?;
        }
        show(picture, height)
    }

    /// Draws a sentence under a heading.
    pub(super) fn tell(&self, heading: &str, sentence: &str) -> io::Result<()> {
        let (width, height) = size();
        let mut picture = colours();
        self.head(&mut picture, heading, width)?;
        writeln!(picture, "{WARN}No answer, trying again:{WARN:#}")?;
        for part in wrapped(sentence, width.into()) {
            writeln!(picture, "{part}")?;
        }
        show(picture, height)
    }

    fn head(&self, picture: &mut impl Write, heading: &str, width: u16) -> io::Result<()> {
        writeln!(picture, "{STRONG}{}{STRONG:#}\n", cut(heading, width.into()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where the terminal is gone, there is nothing to give back.
        let _ = write_all(LEAVE);
    }
}

/// Columns and rows.
fn size() -> (u16, u16) {
    terminal_size::terminal_size().map_or(SIZE_UNKNOWN, |(width, height)| (width.0, height.0))
}

/// Memory to draw in, with colours where the terminal is to have them.
fn colours() -> AutoStream<Vec<u8>> {
    AutoStream::new(Vec::new(), AutoStream::choice(&io::stdout()))
}

/// Puts a picture over the one before, in one piece so that it does not flicker.
fn show(picture: AutoStream<Vec<u8>>, height: u16) -> io::Result<()> {
    let bytes = picture.into_inner();
    let text = String::from_utf8_lossy(&bytes);
    let rows: Vec<&str> = text.lines().take(height.into()).collect();
    let picture = rows.join(&format!("{CLEAR_LINE}\r\n"));
    write_all(&format!("{HOME}{picture}{CLEAR_LINE}{CLEAR_BELOW}"))
}

fn write_all(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The words of a sentence on lines of at most so many characters.
fn wrapped(sentence: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_between_words() {
        assert_eq!(wrapped("no server can be reached", 10), ["no server", "can be", "reached"]);
    }
}
