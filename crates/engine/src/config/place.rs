//! Where something stands in the text of a limits file.

use granit_parser::{Marker, Span};

/// A stretch of the text, with the line and column of its first character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Counted from 1; 0: the file as a whole.
    pub(crate) line: usize,
    /// In characters, counted from 1; 0: the file as a whole.
    pub(crate) column: usize,
    /// The first byte.
    pub(crate) start: usize,
    /// The byte behind the last.
    pub(crate) end: usize,
}

impl Place {
    /// No line in particular.
    pub(crate) const WHOLE_FILE: Self = Self { line: 0, column: 0, start: 0, end: 0 };

    /// The stretch that the parser gives.
    pub(crate) fn of(span: &Span) -> Self {
        let at = Self::at(&span.start);
        Self { end: span.end.byte_offset().unwrap_or(at.start).max(at.start), ..at }
    }

    /// The point that the parser gives.
    pub(crate) fn at(mark: &Marker) -> Self {
        let start = mark.byte_offset().unwrap_or(0);
        Self { line: mark.line(), column: mark.col() + 1, start, end: start }
    }

    /// The place `chars` characters further on in the same line, of which `bytes` is the length.
    pub(crate) fn advanced(self, chars: usize, bytes: usize) -> Self {
        let start = (self.start + bytes).min(self.end.max(self.start));
        Self { line: self.line, column: self.column + chars, start, end: self.end.max(start) }
    }
}
