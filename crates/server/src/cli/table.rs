//! Tables of text: columns as wide as what is in them, two blanks between.

use std::io::{self, Write};

use anstyle::Style;

use super::style::{FAINT, PLAIN};

/// The least width that a column is cut to.
const CUT_CHARS_MIN: usize = 8;
const GAP: usize = 2;

/// A column: its title, and at which side its cells stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Text.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Left(title) | Self::Right(title) => title,
        }
    }
}

/// What stands in a row and a column. The text is harmless: see [`shown`](super::style::shown).
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text.to_string(), PLAIN)
    }
}

/// Rows under titles.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    width_max: usize,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), width_max: usize::MAX }
    }

    /// The same table, its widest columns of text cut until a line has at most so many characters,
    /// or nothing more can be cut.
    pub(crate) fn fit(self, width_max: usize) -> Self {
        Self { width_max, ..self }
    }

    /// Adds a row: a cell for each column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len(), "a cell for each column");
        self.rows.push(cells.into());
    }

    /// Writes titles and rows, each line behind `indent`.
    pub(crate) fn write(&self, out: &mut impl Write, indent: &str) -> io::Result<()> {
        let widths = self.widths(self.width_max.saturating_sub(indent.chars().count()));
        let titles: Vec<Cell> = self.columns.iter().map(|column| Cell::styled(column.title(), FAINT)).collect();
        for cells in std::iter::once(&titles).chain(&self.rows) {
            out.write_all(indent.as_bytes())?;
            self.write_line(out, cells, &widths)?;
        }
        Ok(())
    }

    fn write_line(&self, out: &mut impl Write, cells: &[Cell], widths: &[usize]) -> io::Result<()> {
        let last = self.columns.len().saturating_sub(1);
        for (at, ((column, cell), width)) in self.columns.iter().zip(cells).zip(widths).enumerate() {
            let text = cut(&cell.text, *width);
            let blanks = width.saturating_sub(text.chars().count());
            let (before, after) = match column {
                Column::Left(_) => (0, blanks),
                Column::Right(_) => (blanks, 0),
            };
            let style = cell.style;
            write!(out, "{:before$}{style}{text}{style:#}", "")?;
            if at < last {
                write!(out, "{:after$}{:GAP$}", "", "")?;
            }
        }
        out.write_all(b"\n")
    }

    fn widths(&self, width_max: usize) -> Vec<usize> {
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let widest = |(at, column): (usize, &Column)| {
            let titled = column.title().chars().count();
            cells(at).map(|cell| cell.text.chars().count()).fold(titled, usize::max)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(widest).collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        let is_text = |at: usize| matches!(self.columns.get(at), Some(Column::Left(_)));
        while widths.iter().sum::<usize>() + gaps > width_max {
            let cuttable = widths.iter_mut().enumerate().filter(|(at, width)| is_text(*at) && **width > CUT_CHARS_MIN);
            let Some((_, width)) = cuttable.max_by_key(|(_, width)| **width) else { break };
            *width -= 1;
        }
        widths
    }
}

/// At most so many characters of `text`, the last one `…` where it was cut.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(table: &Table) -> String {
        let mut bytes = Vec::new();
        table.write(&mut anstream::StripStream::new(&mut bytes), "  ").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new(&[Column::Left("NAME"), Column::Right("N"), Column::Left("NOTE")]);
        table.row(["per-agent".into(), 5.into(), "x".into()]);
        table.row(["ü".into(), 12_000.into(), "".into()]);
        assert_eq!(told(&table), "  NAME           N  NOTE\n  per-agent      5  x\n  ü          12000  \n");
    }

    #[test]
    fn a_narrow_table_cuts_text_and_never_numbers() {
        let mut table = Table::new(&[Column::Left("NAME"), Column::Right("N")]).fit(20);
        table.row(["a-name-that-is-long".into(), 1_234_567.into()]);
        assert_eq!(told(&table), "  NAME             N\n  a-name-t…  1234567\n");
    }
}
