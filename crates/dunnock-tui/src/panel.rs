//! A question on the screen: its text, the keys that answer it, and what they do.
//!
//! Invariant: no key answers within [`GUARD`] of the question being drawn, nor while keys keep
//! arriving faster than that: they were not meant for it. Invariant: a key that is followed by
//! another one within [`WAIT`] answers nothing: both are the beginning of a text. Invariant: nothing
//! can be approved before its end was on the screen.

use crate::calls;
use crate::edit::Field;
use crate::host::RuleScope;
use crate::session::{Question, Session};
use crate::text::{Line, Span, Style, Tone};
use crossterm::event::KeyCode;
use dunnock_proto::{Answer, QuestionKind, Rule};

/// How many warnings about odd characters are shown one by one.
const CAREFUL: usize = 2;

/// The prefix of each row that a model wrote.
const BAR: &str = "┃ ";

/// Columns between two keys.
const GAP: usize = 3;

/// Milliseconds before a key is accepted.
pub const GUARD: u64 = 300;

/// Milliseconds before a key takes effect, if no other key follows.
pub const WAIT: u64 = 500;

/// An answer key that has not taken effect yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressed {
    pub key: char,
    /// When it takes effect.
    pub at: u64,
}

/// What the keys do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// One key answers.
    Choose,
    /// A note is being typed; sending it declines the call.
    Note(Field),
    /// A free-text answer is being typed.
    Words(Field),
    /// The rule that would be created is shown.
    Always,
    /// The full explanation is shown.
    Explain,
}

/// The result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Stays,
    /// The question is answered.
    Answer(Answer, Option<String>),
    /// Approve, and save this rule.
    Saves(Rule, RuleScope),
    /// Show this hint.
    Hint(&'static str),
    /// Show the next question (1) or the previous one (-1).
    Other(isize),
}

/// A question on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panel {
    /// Which of the open questions.
    pub id: dunnock_proto::QuestionId,
    /// What the keys do now.
    pub stage: Stage,
    /// Keys before this time are ignored.
    pub guard: u64,
    /// The key that takes effect next.
    pub pressed: Option<Pressed>,
    /// Enter is ignored before this time: the key before it opened what it would confirm.
    pub opened: u64,
    /// Rows scrolled past.
    pub offset: usize,
    /// Every row has been on the screen.
    pub read: bool,
    /// Rows that have been on the screen, from the first one without a gap.
    seen: usize,
    /// The number of rows, and how many of them fit.
    size: (usize, usize),
}

impl Panel {
    /// For a question that is about to be drawn.
    #[must_use]
    pub fn new(question: &Question, now: u64) -> Self {
        let stage = match &question.kind {
            QuestionKind::Person { choices, .. } if choices.is_empty() => {
                Stage::Words(Field::default())
            }
            _ => Stage::Choose,
        };
        Self {
            id: question.id,
            stage,
            guard: now + GUARD,
            pressed: None,
            opened: 0,
            offset: 0,
            read: false,
            seen: 0,
            size: (0, 1),
        }
    }

    /// Records how far the question was read, given its rows, how many of them at its end are the
    /// same for every call, and how many fit. Explanations and rules do not count.
    pub fn measure(&mut self, rows: usize, standard: usize, room: usize) {
        self.offset = self.offset.min(rows.saturating_sub(room));
        if matches!(self.stage, Stage::Explain | Stage::Always) {
            return;
        }
        if self.size.0 != rows {
            (self.seen, self.read) = (0, false); // wrapped differently now
        }
        self.size = (rows, room);
        if self.offset <= self.seen {
            self.seen = self.seen.max(self.offset + room);
        }
        self.read = self.seen >= rows.saturating_sub(standard);
    }

    /// Call this when the question was hidden or has grown: it must be read again, and keys are
    /// ignored for a while.
    pub fn show_again(&mut self, now: u64) {
        self.guard = now + GUARD;
        self.pressed = None;
        (self.seen, self.read) = (0, false);
    }

    /// Whether a text is being typed for the question.
    #[must_use]
    pub fn takes_text(&self) -> bool {
        matches!(self.stage, Stage::Note(_) | Stage::Words(_))
    }

    /// Whether this key answers the question, or leads to an answer.
    #[must_use]
    pub fn is_answer(&self, question: &Question, key: char) -> bool {
        match (&self.stage, &question.kind) {
            (Stage::Note(_) | Stage::Words(_), _) => false,
            (Stage::Always, _) => matches!(key, 's' | 'g'),
            (Stage::Choose | Stage::Explain, QuestionKind::Person { choices, .. }) => {
                let digit = key.to_digit(10).and_then(|n| usize::try_from(n).ok());
                key == 't' || digit.is_some_and(|n| (1..=choices.len()).contains(&n))
            }
            (Stage::Choose | Stage::Explain, QuestionKind::Approval(asked)) => {
                // Where it offers nothing wider, "w" begins a message.
                matches!(key, 'y' | 'n' | 't' | 'a' | 'e')
                    || key == 'w' && !asked.wider.is_nothing()
            }
            (Stage::Choose | Stage::Explain, _) => matches!(key, 'y' | 'n' | 'e'),
        }
    }

    /// Handles a key.
    pub fn key(&mut self, question: &Question, code: KeyCode) -> Outcome {
        match &self.stage {
            Stage::Note(_) => return self.typed(true, code),
            Stage::Words(_) => return self.typed(false, code),
            Stage::Always => {
                let Some(rule) = question.rule() else {
                    self.stage = Stage::Choose;
                    return Outcome::Stays;
                };
                return match code {
                    KeyCode::Enter => Outcome::Saves(rule.clone(), RuleScope::Project),
                    KeyCode::Char('g') => Outcome::Saves(rule.clone(), RuleScope::AllProjects),
                    KeyCode::Char('s') => {
                        Outcome::Answer(Answer::Always { rule: rule.clone() }, None)
                    }
                    KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => {
                        self.scroll_by(code)
                    }
                    _ => {
                        self.stage = Stage::Choose;
                        Outcome::Stays
                    }
                };
            }
            Stage::Explain => {
                if matches!(code, KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown)
                {
                    return self.scroll_by(code);
                }
                self.stage = Stage::Choose;
                self.offset = 0;
                if !matches!(code, KeyCode::Char('y' | 'n' | 't' | 'a' | 'w')) {
                    return Outcome::Stays;
                }
            }
            Stage::Choose => {}
        }
        match code {
            KeyCode::Up
            | KeyCode::Down
            | KeyCode::PageUp
            | KeyCode::PageDown
            | KeyCode::Char(' ') => self.scroll_by(code),
            KeyCode::Left => Outcome::Other(-1),
            KeyCode::Right => Outcome::Other(1),
            _ => self.choose(question, code),
        }
    }

    /// Scrolls by a row, or by a page less one row, so that nothing is skipped.
    fn scroll_by(&mut self, code: KeyCode) -> Outcome {
        let page = isize::try_from(self.size.1.saturating_sub(1).max(1)).unwrap_or(1);
        let rows = match code {
            KeyCode::Up => -1,
            KeyCode::Down => 1,
            KeyCode::PageUp => -page,
            _ => page,
        };
        self.offset = self.offset.saturating_add_signed(rows);
        Outcome::Stays
    }

    fn typed(&mut self, note: bool, code: KeyCode) -> Outcome {
        let (Stage::Note(field) | Stage::Words(field)) = &mut self.stage else {
            return Outcome::Stays;
        };
        match code {
            KeyCode::Enter if field.text().trim().is_empty() && !note => {}
            KeyCode::Enter => {
                let text = field.whole().trim().to_owned();
                return match note {
                    true => Outcome::Answer(Answer::No, Some(text).filter(|t| !t.is_empty())),
                    false => Outcome::Answer(Answer::Text { text: text.into() }, None),
                };
            }
            KeyCode::Esc => self.stage = Stage::Choose,
            KeyCode::PageUp | KeyCode::PageDown => return self.scroll_by(code),
            KeyCode::Backspace => drop(field.act(crate::edit::Act::Backspace)),
            KeyCode::Left => drop(field.act(crate::edit::Act::Left)),
            KeyCode::Right => drop(field.act(crate::edit::Act::Right)),
            KeyCode::Char(c) => field.insert(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Outcome::Stays
    }

    fn choose(&mut self, question: &Question, code: KeyCode) -> Outcome {
        let approval = question.kind.approval().is_some();
        let has_wider = question.kind.approval().is_some_and(|asked| !asked.wider.is_nothing());
        if let (QuestionKind::Person { choices, .. }, KeyCode::Char(c)) = (&question.kind, code) {
            let picked =
                c.to_digit(10).and_then(|n| usize::try_from(n).ok()).and_then(|n| n.checked_sub(1));
            return match picked.and_then(|n| choices.get(n)) {
                Some(_) if !self.read => Outcome::Hint("scroll to the end first: pgdn"),
                Some(choice) => {
                    Outcome::Answer(Answer::Text { text: choice.as_str().into() }, None)
                }
                None if c == 't' => {
                    self.stage = Stage::Words(Field::default());
                    Outcome::Stays
                }
                None => Outcome::Stays,
            };
        }
        match code {
            KeyCode::Char('y' | 'a') if !self.read => {
                Outcome::Hint("scroll to the end first: pgdn")
            }
            KeyCode::Char('y') => Outcome::Answer(Answer::Yes, None),
            KeyCode::Char('w') if !has_wider => Outcome::Stays,
            KeyCode::Char('w') if !self.read => Outcome::Hint("scroll to the end first: pgdn"),
            KeyCode::Char('w') => Outcome::Answer(Answer::Wider, None),
            KeyCode::Char('n') => Outcome::Answer(Answer::No, None),
            KeyCode::Char('t') if approval => {
                self.stage = Stage::Note(Field::default());
                Outcome::Stays
            }
            KeyCode::Char('a') if approval && question.rule().is_some() => {
                self.stage = Stage::Always;
                self.offset = 0; // the rule comes first
                Outcome::Stays
            }
            KeyCode::Char('a') if approval => {
                Outcome::Hint("no rule can cover this call safely; answer y or n")
            }
            KeyCode::Char('e') => {
                self.stage = Stage::Explain;
                self.offset = 0;
                Outcome::Stays
            }
            _ => Outcome::Stays,
        }
    }
}

/// The full text of a question, however long: what people read before they answer.
#[must_use]
pub fn body(session: &Session, question: &Question, columns: usize) -> Vec<Line> {
    let inner = columns.saturating_sub(crate::text::width(BAR));
    // A bar marks what a model wrote, so that none of its rows can pass for ours.
    let barred = |lines: Vec<Line>| {
        lines.into_iter().map(|line| line.after(&Span::new(BAR, Tone::Quiet))).collect()
    };
    if let Some(approval) = question.kind.approval()
        && let Some(call) = session.call(approval.call)
    {
        return barred(calls::exact(&call.part, inner));
    }
    let words = question.kind.view().text.unwrap_or_default();
    let mut lines: Vec<Line> = match question.kind.call() {
        Some(_) => barred(text(&words, inner)),
        None => text(&words, columns),
    };
    for (n, choice) in question.kind.choices().iter().enumerate() {
        lines.extend(Line::of(choice, Tone::Text).wrap(columns, &format!("{}  ", n + 1), "   "));
    }
    lines
}

fn text(text: &str, columns: usize) -> Vec<Line> {
    text.split('\n').flat_map(|line| Line::of(line, Tone::Text).wrap(columns, "", "")).collect()
}

/// The heading of a question, by the kind of request.
#[must_use]
pub fn heading(question: &Question) -> String {
    crate::text::one_line(&question.kind.view().heading)
}

/// The rows below the body: why it is asked, what an approval grants, its effect, the folder, and
/// whether it can be undone.
#[must_use]
pub fn facts(session: &Session, question: &Question, columns: usize) -> Vec<Line> {
    let Some(approval) = question.kind.approval() else { return Vec::new() };
    let view = question.kind.view();
    let mut rows: Vec<(&str, String)> = Vec::new();
    rows.extend(view.reasons.into_iter().map(|reason| ("why", reason)));
    rows.extend(view.access.into_iter().map(|access| ("grants", access)));
    rows.extend(view.wider.map(|wider| ("or", wider)));
    rows.extend(view.isolation.map(|isolation| ("sandbox", isolation)));
    rows.extend(view.preview.into_iter().map(|loss| ("effect", loss)));
    let call = session.call(approval.call);
    let decoded = call.map(|c| crate::words::gist(&c.part)).unwrap_or_default();
    let mut odd = calls::warnings(&decoded);
    let args = call.map(|c| c.part.args.to_string()).unwrap_or_default();
    odd.extend(calls::warnings(&args).into_iter().filter(|w| w.starts_with('“')));
    odd.dedup();
    rows.push(("folder", session.workspace.clone()));
    if !session.config.checkpoints {
        rows.push(("undo", "not possible: this session saves no checkpoints".into()));
    }
    // Limited, so that many warnings cannot push the rest away.
    let more = odd.len().saturating_sub(CAREFUL);
    odd.truncate(CAREFUL);
    if more > 0 {
        odd.push(format!("and {more} more like this"));
    }
    let mut lines: Vec<Line> = odd
        .iter()
        .flat_map(|text| {
            Line::of(&format!("careful  {text}"), Style::of(Tone::Bad).bold()).wrap(
                columns,
                "",
                "         ",
            )
        })
        .collect();
    let mut last = "";
    for (name, value) in rows {
        let label = if name == last { "" } else { name };
        lines.extend(fact(label, &value, columns));
        last = name;
    }
    lines.extend(standard_facts(session, question, columns));
    lines
}

fn fact(label: &str, value: &str, columns: usize) -> Vec<Line> {
    let mut line = Line::of(&format!("{label:<8} "), Tone::Quiet);
    line.0.push(Span::new(value, Tone::Text));
    line.wrap(columns, "", "         ")
}

/// The last rows, which are the same for every call of the session: nobody has to read them again
/// before each answer.
#[must_use]
pub fn standard_facts(session: &Session, question: &Question, columns: usize) -> Vec<Line> {
    if question.kind.approval().is_none() || !session.config.checkpoints {
        return Vec::new();
    }
    let undo =
        "files in this folder, with /undo; not git history, ignored files or anything elsewhere";
    fact("undo", undo, columns)
}

/// The keys that work now.
#[must_use]
pub fn keys(panel: &Panel, question: &Question, columns: usize) -> Vec<Line> {
    let view = question.kind.view();
    let label = |text: &str| text.to_lowercase();
    let pairs: Vec<(&str, String)> = if let Some(Pressed { key, .. }) = panel.pressed {
        let now = format!("“{key}” now");
        let typing = "typing to write a message".to_owned();
        vec![("enter", now), ("esc", "take it back".into()), ("keep", typing)]
    } else {
        match (&panel.stage, &question.kind) {
            (Stage::Note(_), _) => {
                vec![("enter", "decline with this note".into()), ("esc", "back".into())]
            }
            (Stage::Words(_), _) => vec![("enter", label(view.yes))],
            (Stage::Always, _) => {
                vec![
                    ("enter", "in this project".into()),
                    ("g", "in all projects".into()),
                    ("s", "in this session only".into()),
                    ("esc", "back".into()),
                ]
            }
            (Stage::Explain, _) => vec![("esc", "back".into())],
            (Stage::Choose, QuestionKind::Person { choices, .. }) => {
                vec![("1", format!("to {}: choose", choices.len())), ("t", "type an answer".into())]
            }
            (Stage::Choose, QuestionKind::Approval(approval)) => {
                let always = approval.rule.is_some().then(|| ("a", "always …".to_owned()));
                let others = [
                    ("y", label(view.yes)),
                    ("n", label(view.no)),
                    ("t", "decline with a note".to_owned()),
                ];
                let wider = (!approval.wider.is_nothing())
                    .then(|| ("w", "the whole network once".to_owned()));
                others
                    .into_iter()
                    .chain(always)
                    .chain(wider)
                    .chain([("e", "explain".to_owned())])
                    .collect()
            }
            (Stage::Choose, _) => vec![("y", label(view.yes)), ("n", label(view.no))],
        }
    };
    // A key and its label stay on one row.
    let mut rows = vec![Line::empty()];
    for (key, what) in pairs {
        let pair = Line::of(key, Style::of(Tone::Warn).bold()).and(&format!(" {what}"), Tone::Text);
        match rows
            .last_mut()
            .filter(|row| row.0.is_empty() || row.width() + GAP + pair.width() <= columns)
        {
            Some(row) if row.0.is_empty() => *row = pair,
            Some(row) => {
                row.0.push(Span::new(&" ".repeat(GAP), Tone::Text));
                row.0.extend(pair.0);
            }
            None => rows.push(pair),
        }
    }
    rows.into_iter().flat_map(|row| row.wrap(columns, "", "")).collect()
}

/// The rule that "always" would create, and where it would apply.
#[must_use]
pub fn rule_rows(session: &Session, rule: &Rule, columns: usize) -> Vec<Line> {
    let mut lines = vec![Line::of("Always allow, without asking:", Tone::Quiet)];
    lines.extend(Line::of(&rule.words(), Style::of(Tone::Warn).bold()).wrap(columns, "  ", "  "));
    lines.push(Line::of("This project:", Tone::Quiet));
    let project = format!("{} and the folders in it", session.workspace);
    lines.extend(Line::of(&project, Tone::Text).wrap(columns, "  ", "  "));
    lines.extend(Line::of(rule.note(), Tone::Quiet).wrap(columns, "", ""));
    lines
}

/// The full explanation of a call.
#[must_use]
pub fn explain(session: &Session, question: &Question, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut put = |text: &str| lines.extend(Line::of(text, Tone::Text).wrap(columns, "", "  "));
    let view = question.kind.view();
    let known = question
        .kind
        .approval()
        .and_then(|approval| Some((approval.call, session.call(approval.call)?)));
    let Some((id, call)) = known else {
        put(&view.text.unwrap_or_default());
        return lines;
    };
    put(&format!(
        "Call {id}: the model wants to use the tool “{}” with exactly these arguments:",
        call.part.tool
    ));
    lines.extend(Line::of(&call.part.args, Tone::Text).wrap(columns, BAR, BAR));
    let mut put = |text: &str| lines.extend(Line::of(text, Tone::Text).wrap(columns, "", "  "));
    for reason in &view.reasons {
        put(&format!("Approval needed: {reason}."));
    }
    for access in &view.access {
        put(&format!("If you approve, this call gets: {access}."));
    }
    if let Some(wider) = &view.wider {
        put(&format!("With “w”, it gets instead: {wider}."));
    }
    if let Some(isolation) = &view.isolation {
        put(&format!("Sandbox: {isolation}."));
    }
    match &view.rule {
        Some(rule) => {
            let note = view.rule_note.unwrap_or_default();
            put(&format!("“Always” would allow this without asking: {rule}. {note}"));
        }
        None => {
            put("“Always” is not available: no rule is narrow enough to cover this call safely.")
        }
    }
    put("The model's own description is not used. This text is made from the call, your settings \
         and your rules.");
    put(&format!(
        "To see this later: dunnock why {} {id}",
        session.id.as_ref().map_or("ID", |s| s.as_str().get(..8).unwrap_or_default())
    ));
    lines
}
