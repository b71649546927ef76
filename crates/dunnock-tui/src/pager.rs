//! The pager: the whole output, or the whole diff, of a call.
//!
//! Invariant: while it is open, no key reaches anything behind it, so none can answer a question.

use crate::diff::{self, DiffRow};
use crate::text::{Line, Style, Tone, without_sequences};
use crossterm::event::KeyCode;
use dunnock_proto::CallId;

/// The text of a call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallText {
    /// What a command printed, or what another tool answered.
    Output(String),
    /// What an edit changed, as a unified diff.
    Diff(String),
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// Which call.
    pub id: CallId,
    /// What it did, on one line.
    pub title: String,
}

/// What is shown of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Loading,
    Lines(Vec<String>),
    Diff(Vec<DiffRow>),
    Missing(String),
}

/// The pager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pager {
    /// Newest first.
    calls: Vec<PastCall>,
    at: usize,
    page: Page,
    /// The first row on the screen: a line, and how many of its rows are above.
    top: (usize, usize),
    /// Columns and rows of the text when it was last drawn or measured.
    size: (usize, usize),
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paged {
    /// It stays open.
    Stays,
    /// Load the text of this call.
    Load(CallId),
    /// Close it.
    Closed,
}

impl Pager {
    /// Opens on the newest of these calls, the first one; `None` if there is none.
    #[must_use]
    pub fn open(calls: Vec<PastCall>, size: (usize, usize)) -> Option<(Self, CallId)> {
        let first = calls.first()?.id;
        let pager = Self { calls, at: 0, page: Page::Loading, top: (0, 0), size };
        Some((pager, first))
    }

    /// Takes the size of the terminal, less what else is on it.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        if self.size.0 != columns {
            self.top.1 = 0; // it is folded differently now
        }
        self.size = (columns, rows);
        self.top = self.top.min(self.last_top());
    }

    /// The text of a call has arrived.
    pub fn loaded(&mut self, call: CallId, text: Result<CallText, String>) {
        if self.calls.get(self.at).is_none_or(|shown| shown.id != call) {
            return;
        }
        self.page = match text {
            Ok(CallText::Output(text)) => {
                Page::Lines(without_sequences(&text).lines().map(str::to_owned).collect())
            }
            Ok(CallText::Diff(text)) => Page::Diff(diff::rows(&text)),
            Err(why) => Page::Missing(why),
        };
        self.top = (0, 0);
    }

    /// Handles a key.
    pub fn key(&mut self, code: KeyCode) -> Paged {
        let page = self.size.1.saturating_sub(1).max(1);
        match code {
            KeyCode::Esc | KeyCode::Char('q') => return Paged::Closed,
            KeyCode::Up | KeyCode::Char('k') => self.up(1),
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => self.down(1),
            KeyCode::PageUp => self.up(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.down(page),
            KeyCode::Char('g') | KeyCode::Home => self.top = (0, 0),
            KeyCode::Char('G') | KeyCode::End => self.top = self.last_top(),
            KeyCode::Left => return self.other(self.at.checked_sub(1)),
            KeyCode::Right => return self.other(Some(self.at + 1)),
            _ => {}
        }
        Paged::Stays
    }

    fn other(&mut self, at: Option<usize>) -> Paged {
        let Some((at, call)) = at.and_then(|at| Some((at, self.calls.get(at)?))) else {
            return Paged::Stays;
        };
        let id = call.id;
        (self.at, self.page, self.top) = (at, Page::Loading, (0, 0));
        Paged::Load(id)
    }

    /// How many lines there are, before they are folded.
    fn len(&self) -> usize {
        match &self.page {
            Page::Lines(lines) => lines.len(),
            Page::Diff(rows) => rows.len(),
            Page::Loading | Page::Missing(_) => 1,
        }
    }

    /// The rows of a line.
    fn rows(&self, line: usize) -> Vec<Line> {
        let columns = self.size.0;
        match &self.page {
            Page::Lines(lines) => lines
                .get(line)
                .map(|text| Line::of(text, Tone::Text).fold(columns, " ", " "))
                .unwrap_or_default(),
            Page::Diff(rows) => {
                let path = rows.iter().take(line + 1).rev().find_map(|row| match row {
                    DiffRow::File { path, .. } => Some(path.as_str()),
                    _ => None,
                });
                let row = rows.get(line..=line).unwrap_or_default();
                diff::folded(row, path.unwrap_or_default(), columns)
            }
            Page::Loading => vec![Line::of(" loading …", Tone::Quiet)],
            Page::Missing(why) => Line::of(why, Tone::Bad).wrap(columns, " ", " "),
        }
    }

    fn up(&mut self, rows: usize) {
        for _ in 0..rows {
            self.top = match self.top {
                (0, 0) => return,
                (line, 0) => (line - 1, self.rows(line - 1).len().saturating_sub(1)),
                (line, row) => (line, row - 1),
            };
        }
    }

    fn down(&mut self, rows: usize) {
        let last = self.last_top();
        for _ in 0..rows {
            if self.top >= last {
                return;
            }
            let (line, row) = self.top;
            self.top = match row + 1 < self.rows(line).len() {
                true => (line, row + 1),
                false => (line + 1, 0),
            };
        }
    }

    /// The first row when the end is on the screen.
    fn last_top(&self) -> (usize, usize) {
        let mut room = self.size.1.max(1);
        for line in (0..self.len()).rev() {
            let rows = self.rows(line).len();
            if rows >= room {
                return (line, rows - room);
            }
            room -= rows;
        }
        (0, 0)
    }

    /// Everything on the screen: a heading, the text, the keys.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let (columns, room) = self.size;
        let title = self.calls.get(self.at).map(|call| call.title.as_str()).unwrap_or_default();
        let place = match self.page {
            Page::Loading | Page::Missing(_) => String::new(),
            Page::Lines(_) | Page::Diff(_) => {
                let all = self.len();
                format!("line {} of {all}", (self.top.0 + 1).min(all))
            }
        };
        let many = match self.calls.len() {
            0 | 1 => String::new(),
            all => format!("call {} of {all} · ", self.at + 1),
        };
        let right = Line::of(&format!("{many}{place} "), Tone::Quiet);
        let head = Line::of(&format!(" {title}"), Style::of(Tone::Accent).bold());
        let mut lines = vec![head.beside(right, columns)];
        let (mut line, mut skip) = self.top;
        while lines.len() <= room && line < self.len() {
            lines.extend(self.rows(line).into_iter().skip(skip));
            (line, skip) = (line + 1, 0);
        }
        if self.len() == 0 {
            lines.push(Line::of(" (no output)", Tone::Quiet));
        }
        lines.resize(room + 1, Line::empty());
        let others = if self.calls.len() > 1 { " · ← newer, → older call" } else { "" };
        let keys = format!(" ↑ ↓ pgup pgdn: scroll · g G: start, end{others} · esc: close");
        lines.push(Line::of(&keys, Tone::Quiet).cut(columns));
        lines
    }
}
