//! Lists to choose from: sessions, models, steps, modes, themes.

use crate::edit::{Act, Field};
use crate::fuzzy;
use crate::host::{RewindPoint, SessionRow};
use crate::text::{Line, Style, Tone};
use crossterm::event::KeyCode;
use dunnock_proto::{Effort, Mode, Scope, Seq, SessionId, count};

/// The most rows that a list offers.
const MOST: usize = 200;

/// What a row stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A session.
    Session(SessionId),
    /// A model.
    Model(String),
    /// A step, by its last event.
    Step(u32, Seq),
    /// A mode.
    Mode(Mode),
    /// A reasoning effort.
    Effort(Effort),
    /// A theme.
    Theme(&'static str),
    /// An earlier prompt.
    Prompt(String),
    /// An entry of a list that its owner keeps.
    Choice(usize),
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub label: String,
    /// Details, on the right.
    pub detail: String,
    /// More details, below the row while it is selected.
    pub below: Vec<String>,
    /// What it stands for.
    pub value: Value,
}

/// A list on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The title.
    pub title: String,
    rows: Vec<Row>,
    /// What was typed to filter the rows.
    pub filter: Field,
    /// Indices of the rows that match the filter.
    fit: Vec<usize>,
    chosen: usize,
    /// What to rewind, in a list of steps.
    pub scope: Option<Scope>,
}

/// The result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Picked {
    Stays,
    /// Close the list.
    Left,
    /// This one was chosen.
    Took(Value),
    /// The filter changed.
    Filtered,
    /// Show the diff from this step.
    Difference(Value),
}

impl Pick {
    /// A list of these rows.
    #[must_use]
    pub fn new(title: &str, rows: Vec<Row>) -> Self {
        let fit = (0..rows.len().min(MOST)).collect();
        Self { title: title.into(), rows, filter: Field::default(), fit, chosen: 0, scope: None }
    }

    /// A list of sessions.
    #[must_use]
    pub fn sessions(rows: &[SessionRow]) -> Self {
        let row = |s: &SessionRow| Row {
            label: if s.title.is_empty() { "(no task yet)".into() } else { s.title.clone() },
            detail: format!("{}  {}", s.status, s.age),
            below: [s.workspace.clone(), s.excerpt.clone()]
                .into_iter()
                .filter(|t| !t.is_empty())
                .collect(),
            value: Value::Session(s.id.clone()),
        };
        Self::new("Continue …", rows.iter().map(row).collect())
    }

    /// Replaces the rows and keeps the filter.
    pub fn replace(&mut self, rows: Self) {
        self.rows = rows.rows;
        self.refit();
    }

    /// A list of steps, with the last one selected.
    #[must_use]
    pub fn points(points: &[RewindPoint]) -> Self {
        let row = |p: &RewindPoint| Row {
            label: format!("{:>3}  {}", p.step, p.title),
            detail: p.files.map_or_else(String::new, |n| match n {
                0 => "no files would change".into(),
                n => format!("{} would change", count(n, "file")),
            }),
            below: p
                .kept
                .iter()
                .map(|path| format!("not restored: {path} (changed elsewhere)"))
                .collect(),
            value: Value::Step(p.step, p.seq),
        };
        let mut pick = Self::new("Rewind", points.iter().map(row).collect());
        pick.chosen = pick.fit.len().saturating_sub(1);
        pick.scope = Some(Scope::Both);
        pick
    }

    fn refit(&mut self) {
        let typed = self.filter.whole();
        let texts: Vec<String> = self
            .rows
            .iter()
            .map(|r| format!("{} {} {}", r.label, r.detail, r.below.join(" ")))
            .collect();
        self.fit = fuzzy::best(typed.trim(), texts.iter().map(String::as_str), MOST, false);
        self.chosen = self.chosen.min(self.fit.len().saturating_sub(1));
    }

    fn row(&self) -> Option<&Row> {
        self.fit.get(self.chosen).and_then(|at| self.rows.get(*at))
    }

    /// Handles a key.
    pub fn key(&mut self, code: KeyCode) -> Picked {
        match code {
            KeyCode::Esc => return Picked::Left,
            KeyCode::Up => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down => self.chosen = (self.chosen + 1).min(self.fit.len().saturating_sub(1)),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(8),
            KeyCode::PageDown => {
                self.chosen = (self.chosen + 8).min(self.fit.len().saturating_sub(1))
            }
            KeyCode::Enter => {
                return self.row().map_or(Picked::Stays, |row| Picked::Took(row.value.clone()));
            }
            KeyCode::Tab | KeyCode::Left | KeyCode::Right if self.scope.is_some() => {
                let next = |scope| match (scope, code == KeyCode::Left) {
                    (Scope::Files, false) | (Scope::Both, true) => Scope::Conversation,
                    (Scope::Conversation, false) | (Scope::Files, true) => Scope::Both,
                    (Scope::Both, false) | (Scope::Conversation, true) => Scope::Files,
                };
                self.scope = self.scope.map(next);
            }
            KeyCode::Char('d') if self.scope.is_some() => {
                return self
                    .row()
                    .map_or(Picked::Stays, |row| Picked::Difference(row.value.clone()));
            }
            KeyCode::Char(_) if self.scope.is_some() => {}
            KeyCode::Char(c) => {
                self.filter.insert(c.encode_utf8(&mut [0; 4]));
                self.chosen = 0;
                self.refit();
                return Picked::Filtered;
            }
            KeyCode::Backspace => {
                self.filter.act(Act::Backspace);
                self.refit();
                return Picked::Filtered;
            }
            _ => {}
        }
        Picked::Stays
    }

    /// The rows with their numbers, for interfaces that do not draw.
    #[must_use]
    pub fn numbered(&self) -> Vec<String> {
        let rows = self.fit.iter().filter_map(|at| self.rows.get(*at)).take(30);
        rows.enumerate()
            .map(|(n, row)| format!("{}: {}  {}", n + 1, row.label, row.detail))
            .collect()
    }

    /// Selects a row by its number, starting at 1.
    pub fn choose(&mut self, number: usize) {
        self.chosen = number.saturating_sub(1).min(self.fit.len().saturating_sub(1));
    }

    /// The list as lines; `most` limits the rows.
    #[must_use]
    pub fn lines(&self, columns: usize, most: usize) -> Vec<Line> {
        let keys = if self.scope.is_some() {
            " enter: rewind   tab: files, conversation or both   d: show diff   esc: close"
        } else {
            " enter: pick   type: filter   esc: close"
        };
        self.lines_with(columns, most, keys)
    }

    /// The same, with these words about its keys.
    #[must_use]
    pub fn lines_with(&self, columns: usize, most: usize, keys: &str) -> Vec<Line> {
        let head = match self.scope {
            Some(scope) => {
                let word = |s: Scope, name: &str| {
                    if s == scope { format!("[{name}]") } else { format!(" {name} ") }
                };
                let words = [
                    word(Scope::Files, "files"),
                    word(Scope::Conversation, "conversation"),
                    word(Scope::Both, "both"),
                ];
                Line::of(&format!(" {}", self.title), Style::of(Tone::Accent).bold())
                    .beside(Line::of(&format!("{} ", words.join(" ")), Tone::Accent), columns)
            }
            None => Line::of(&format!(" {}  ", self.title), Style::of(Tone::Accent).bold())
                .and(&self.filter.whole(), Tone::User)
                .and("▏", Tone::Quiet),
        };
        let mut lines = vec![head.cut(columns)];
        let room = most.saturating_sub(4).max(3);
        let from = self
            .chosen
            .saturating_sub(room.saturating_sub(1) / 2)
            .min(self.fit.len().saturating_sub(room));
        for (n, at) in self.fit.iter().enumerate().skip(from).take(room) {
            let Some(row) = self.rows.get(*at) else { continue };
            let chosen = n == self.chosen;
            let style = if chosen { Style::default().bold() } else { Style::default() };
            let mark = if chosen { " > " } else { "   " };
            let left = Line::of(mark, Tone::Accent).and(&row.label, style);
            let right = if columns >= 50 { row.detail.as_str() } else { "" };
            lines.push(left.beside(Line::of(right, Tone::Quiet), columns.saturating_sub(1)));
            if chosen {
                lines.extend(
                    row.below
                        .iter()
                        .take(2)
                        .map(|text| Line::of(&format!("     {text}"), Tone::Quiet).cut(columns)),
                );
            }
        }
        if self.fit.is_empty() {
            lines.push(Line::of("   no matches", Tone::Quiet));
        }
        lines.push(Line::of(keys, Tone::Quiet).cut(columns));
        lines
    }
}
