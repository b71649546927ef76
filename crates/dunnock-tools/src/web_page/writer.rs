//! Writes the Markdown of a page.

use super::elements::Elements;
use std::rc::Rc;

/// The most empty cells that are shown in a row.
const MOST_CELLS: usize = 50;

/// How text looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Style {
    /// Where it leads.
    pub(super) link: Option<Rc<str>>,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) code: bool,
}

/// The Markdown that is written so far.
#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    /// The style of the last text, whose end is not written yet.
    style: Style,
    /// Line ends before the next text.
    line_ends: usize,
    /// There is a blank before the next text.
    blank: bool,
    /// The code block that is open.
    code: Option<String>,
    /// The row of a table has begun with this line.
    is_row: bool,
    /// Cells of the row that began before the next text, except the first.
    cells: usize,
}

impl Writer {
    pub(super) fn len(&self) -> usize {
        self.text.len() + self.code.as_ref().map_or(0, String::len)
    }

    /// Ends the line; with 2, an empty line follows.
    pub(super) fn block(&mut self, line_ends: usize) {
        if self.code.is_some() {
            return;
        }
        if !self.text.is_empty() {
            self.line_ends = self.line_ends.max(line_ends);
        }
        (self.blank, self.is_row, self.cells) = (false, false, 0);
    }

    pub(super) fn line_break(&mut self) {
        match &mut self.code {
            Some(code) => code.push('\n'),
            None => self.block(1),
        }
    }

    /// Writes text in this style.
    pub(super) fn text(&mut self, text: &str, style: &Style, elements: &mut Elements) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        let is_blank = |c: char| c.is_ascii_whitespace();
        self.blank |= text.starts_with(is_blank);
        let mut words = text.split(is_blank).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { return };
        self.begin(style, elements);
        self.text.push_str(first);
        for word in words {
            self.text.push(' ');
            self.text.push_str(word);
        }
        self.blank = text.ends_with(is_blank);
    }

    /// Writes what comes before text: the end of another style, line ends, the margin.
    fn begin(&mut self, style: &Style, elements: &mut Elements) {
        if self.line_ends > 0 || self.style != *style {
            self.end_style();
        }
        let begins_line = self.line_ends > 0 || self.text.is_empty();
        if self.line_ends > 0 {
            self.text.push_str("\n\n".get(..self.line_ends).unwrap_or("\n\n"));
        }
        let cells = std::mem::take(&mut self.cells);
        if begins_line {
            self.text.push_str(&elements.margin());
            self.text.push_str(&"| ".repeat(if self.is_row { cells } else { 0 }));
        } else if cells > 0 {
            self.text.push_str(&" |".repeat(cells));
            self.text.push(' ');
        } else if self.blank && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
        (self.line_ends, self.blank) = (0, false);
        if self.style != *style {
            let marks = [
                ("[", style.link.is_some()),
                ("**", style.bold),
                ("*", style.italic),
                ("`", style.code),
            ];
            for (mark, _) in marks.iter().filter(|(_, is_open)| *is_open) {
                self.text.push_str(mark);
            }
            self.style = style.clone();
        }
    }

    fn end_style(&mut self) {
        let Style { link, bold, italic, code } = std::mem::take(&mut self.style);
        for (mark, is_open) in [("`", code), ("*", italic), ("**", bold)] {
            self.text.push_str(if is_open { mark } else { "" });
        }
        if let Some(link) = link {
            self.text.push_str(&format!("]({link})"));
        }
    }

    pub(super) fn begin_code(&mut self) {
        self.code.get_or_insert_default();
    }

    /// Whether a code block is open.
    pub(super) fn is_code(&self) -> bool {
        self.code.is_some()
    }

    pub(super) fn end_code(&mut self, elements: &mut Elements) {
        let Some(code) = self.code.take() else { return };
        let code = code.trim_matches('\n');
        if code.trim().is_empty() {
            return;
        }
        // The fence is longer than every row of backticks in the code.
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        self.block(2);
        self.begin(&Style::default(), elements);
        self.text.push_str(&format!("{fence}\n{code}\n{fence}"));
        self.block(2);
    }

    pub(super) fn begin_row(&mut self) {
        self.block(1);
        self.is_row = self.code.is_none();
    }

    /// Begins a cell; the first one of its row begins with the row.
    pub(super) fn begin_cell(&mut self, is_first: bool) {
        if self.code.is_none() && !is_first {
            self.end_style();
            self.cells = (self.cells + 1).min(MOST_CELLS);
        }
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        self.end_style();
        self.text
    }
}
