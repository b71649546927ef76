//! Writes to the terminal: finished lines go into its scrollback; in the live area below only the
//! rows that differ are redrawn.
//!
//! The screen is never cleared as a whole, and no terminal reply is awaited. Between two frames the
//! hidden terminal cursor stays on the first cell of the live area. However a terminal reflows its
//! lines on a resize, it keeps the cursor with its cell, so the next frame starts there without
//! counting rows. The visible cursor is drawn.

use crate::text::Line;
use crate::theme::Theme;
use crate::view::View;
use std::fmt::Write as _;

/// What is on the screen below the scrollback.
#[derive(Debug, Default)]
pub struct ScreenPainter {
    rows: Vec<String>,
    columns: usize,
}

/// A frame appears as a whole (synchronised output), and its rows are never wrapped.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l\x1b[?7l";
const END: &str = "\x1b[?7h\x1b[?2026l";

impl ScreenPainter {
    /// The bytes that change the screen from what it shows to `view`, with `done` above it.
    pub fn paint(&mut self, done: &[Line], view: &View, columns: usize, theme: Theme) -> String {
        let row = |(n, line): (usize, &Line)| match view.cursor {
            Some((at, column)) if at == n => theme.paint(&line.clone().with_cursor(column)),
            _ => theme.paint(line),
        };
        let rows: Vec<String> = view.lines.iter().enumerate().map(row).collect();
        let resized = self.columns != columns; // or the first frame: what is below is not ours
        if done.is_empty() && !resized && self.rows == rows {
            return String::new();
        }
        let mut out = String::from(BEGIN);
        if resized || !done.is_empty() {
            self.anew(done, &rows, resized, theme, &mut out);
        } else {
            self.change(&rows, &mut out);
        }
        self.rows = rows;
        self.columns = columns;
        out.push_str(END);
        out
    }

    /// Writes finished lines over the live area, and the live area below them.
    fn anew(&self, done: &[Line], rows: &[String], resized: bool, theme: Theme, out: &mut String) {
        out.push('\r');
        if resized {
            out.push_str("\x1b[J");
        }
        if !done.is_empty() {
            // These belong to the scrollback: the terminal may wrap them as it likes.
            out.push_str("\x1b[?7h");
            for line in done {
                let _ = write!(out, "\x1b[K{}\r\n", theme.paint(line));
            }
            out.push_str("\x1b[?7l");
        }
        for (n, row) in rows.iter().enumerate() {
            let _ = write!(out, "{}\x1b[K{row}", if n > 0 { "\r\n" } else { "" });
        }
        if done.len() + rows.len() < self.rows.len() {
            out.push_str("\r\n\x1b[J");
            let _ = write!(out, "{}\r", up(rows.len()));
        } else {
            let _ = write!(out, "{}\r", up(rows.len().saturating_sub(1)));
        }
    }

    /// Rewrites only the rows that differ.
    fn change(&self, rows: &[String], out: &mut String) {
        let mut at = 0;
        for (n, row) in rows.iter().enumerate() {
            if self.rows.get(n) == Some(row) {
                continue;
            }
            if n < self.rows.len() {
                out.push_str(&down(n - at));
            } else {
                let _ = write!(out, "{}\r\n", down((n - at).saturating_sub(1)));
            }
            let _ = write!(out, "\r\x1b[K{row}");
            at = n;
        }
        if self.rows.len() > rows.len() {
            let _ = write!(out, "{}\r\x1b[J", down(rows.len() - at));
            at = rows.len();
        }
        let _ = write!(out, "{}\r", up(at));
    }

    /// Forgets what is on the screen: the next frame starts at the cursor.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The bytes that remove the live area and leave the cursor where it started.
    pub fn leave(&mut self) -> String {
        self.forget();
        "\r\x1b[J\x1b[?25h".into()
    }
}

fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

/// Line feeds scroll at the bottom edge, where a cursor movement would stop. So the same number of
/// rows up leads back, even if the screen has just become smaller than we know.
fn down(rows: usize) -> String {
    "\n".repeat(rows)
}
