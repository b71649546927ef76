//! A question on the screen: what is asked, which keys answer it, and what they do.
//!
//! Invariant: no key answers within [`GUARD`] of the question being drawn, nor while keys come faster than that: what is
//! typed then was not meant for it. Invariant: nothing is approved whose end was not on the screen.

use crate::calls;
use crate::edit::Field;
use crate::session::{Question, Session};
use crate::text::{Line, Span, Style, Tone};
use crossterm::event::KeyCode;
use dunnock_proto::{About, Answer, Rule};

/// Warnings about odd characters that are shown one by one.
const CAREFUL: usize = 2;

/// Milliseconds before a key counts.
pub const GUARD: u64 = 300;

/// What the keys mean now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// One key answers.
    Choose,
    /// A note is typed, then it is declined.
    Note(Field),
    /// An answer in words is typed.
    Words(Field),
    /// The rule is shown.
    Always,
    /// All that is known is shown.
    Explain,
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Stays,
    /// The question is answered.
    Answer(Answer, Option<String>),
    /// And from now on in every session.
    Everywhere(Rule),
    /// Say this.
    Hint(&'static str),
    /// The next question, or the one before.
    Other(isize),
}

/// A question on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panel {
    /// Which of those that stand.
    pub id: dunnock_proto::QuestionId,
    /// What the keys mean.
    pub stage: Stage,
    /// Keys before this do not count.
    pub guard: u64,
    /// Rows that are scrolled past.
    pub offset: usize,
    /// Every row was on the screen.
    pub read: bool,
    /// Rows from the first on that were, without a gap.
    seen: usize,
    /// Rows there are, and how many of them fit.
    size: (usize, usize),
}

impl Panel {
    /// For a question that is drawn now.
    #[must_use]
    pub fn new(question: &Question, now: u64) -> Self {
        let stage = match question.about {
            About::Person { .. } if question.choices.is_empty() => Stage::Words(Field::default()),
            _ => Stage::Choose,
        };
        Self { id: question.id, stage, guard: now + GUARD, offset: 0, read: false, seen: 0, size: (0, 1) }
    }

    /// How far it was read, once it is known how much fits. An explanation and a rule are other texts.
    pub fn measure(&mut self, rows: usize, room: usize) {
        self.offset = self.offset.min(rows.saturating_sub(room));
        if matches!(self.stage, Stage::Explain | Stage::Always) {
            return;
        }
        if self.size.0 != rows {
            (self.seen, self.read) = (0, false); // broken in other places
        }
        self.size = (rows, room);
        if self.offset <= self.seen {
            self.seen = self.seen.max(self.offset + room);
        }
        self.read = self.seen >= rows;
    }

    /// It was out of sight, or there is more to it: it is to be read, and keys count only after a while.
    pub fn show_again(&mut self, now: u64) {
        self.guard = now + GUARD;
        (self.seen, self.read) = (0, false);
    }

    /// A key.
    pub fn key(&mut self, question: &Question, code: KeyCode) -> Outcome {
        match &self.stage {
            Stage::Note(_) => return self.typed(true, code),
            Stage::Words(_) => return self.typed(false, code),
            Stage::Always => {
                let Some((rule, _)) = &question.rule else {
                    self.stage = Stage::Choose;
                    return Outcome::Stays;
                };
                return match code {
                    KeyCode::Enter => Outcome::Everywhere(rule.clone()),
                    KeyCode::Char('s') => Outcome::Answer(Answer::Always { rule: rule.clone() }, None),
                    KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => self.scroll_by(code),
                    _ => {
                        self.stage = Stage::Choose;
                        Outcome::Stays
                    }
                };
            }
            Stage::Explain => {
                if matches!(code, KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown) {
                    return self.scroll_by(code);
                }
                self.stage = Stage::Choose;
                self.offset = 0;
                if !matches!(code, KeyCode::Char('y' | 'n' | 't' | 'a')) {
                    return Outcome::Stays;
                }
            }
            Stage::Choose => {}
        }
        match code {
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown | KeyCode::Char(' ') => {
                self.scroll_by(code)
            }
            KeyCode::Left => Outcome::Other(-1),
            KeyCode::Right => Outcome::Other(1),
            _ => self.choose(question, code),
        }
    }

    /// By a row, or by as many as fit but one: nothing is jumped over.
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
        let (Stage::Note(field) | Stage::Words(field)) = &mut self.stage else { return Outcome::Stays };
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
        let approval = matches!(question.about, About::Approval { .. });
        if let (About::Person { .. }, KeyCode::Char(c)) = (&question.about, code) {
            let picked = c.to_digit(10).and_then(|n| usize::try_from(n).ok()).and_then(|n| n.checked_sub(1));
            return match picked.and_then(|n| question.choices.get(n)) {
                Some(_) if !self.read => Outcome::Hint("read it to its end first: pgdn"),
                Some(choice) => Outcome::Answer(Answer::Text { text: choice.as_str().into() }, None),
                None if c == 't' => {
                    self.stage = Stage::Words(Field::default());
                    Outcome::Stays
                }
                None => Outcome::Stays,
            };
        }
        match code {
            KeyCode::Char('y' | 'a') if !self.read => Outcome::Hint("read it to its end first: pgdn"),
            KeyCode::Char('y') => Outcome::Answer(Answer::Yes, None),
            KeyCode::Char('n') => Outcome::Answer(Answer::No, None),
            KeyCode::Char('t') if approval => {
                self.stage = Stage::Note(Field::default());
                Outcome::Stays
            }
            KeyCode::Char('a') if approval && question.rule.is_some() => {
                self.stage = Stage::Always;
                self.offset = 0; // the rule stands first
                Outcome::Stays
            }
            KeyCode::Char('a') if approval => {
                Outcome::Hint("there is no rule for this that would not be a rule for everything")
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

/// The lines of a question that a person reads before they answer; all of it, however long.
#[must_use]
pub fn body(session: &Session, question: &Question, columns: usize) -> Vec<Line> {
    match &question.about {
        About::Approval { call } => match session.call(*call) {
            Some(call) => calls::exact(&call.part, columns),
            None => text(&question.text, columns),
        },
        About::Person { .. } => {
            let mut lines = text(&question.text, columns);
            for (n, choice) in question.choices.iter().enumerate() {
                lines.extend(Line::of(choice, Tone::Text).wrap(columns, &format!("{}  ", n + 1), "   "));
            }
            lines
        }
        _ => text(&question.text, columns),
    }
}

fn text(text: &str, columns: usize) -> Vec<Line> {
    text.split('\n').flat_map(|line| Line::of(line, Tone::Text).wrap(columns, "", "")).collect()
}

/// What a question is called.
#[must_use]
pub fn title(session: &Session, question: &Question) -> String {
    match &question.about {
        About::Approval { call } => {
            let tool = session.call(*call).map_or("call", |c| c.part.tool.as_str());
            match tool {
                "shell" | "process_start" if ours(session, question).iter().any(|(name, _)| name == "gets") => {
                    "Leave the box for one command?".into()
                }
                "shell" | "process_start" => "Run this command?".into(),
                "write_file" | "insert_text" | "replace_text" | "apply_patch" => "Make this change?".into(),
                "delete_file" => "Delete this file?".into(),
                "move_file" => "Move this file?".into(),
                tool => format!("Let {} run?", crate::text::one_line(tool)),
            }
        }
        About::Person { .. } => "The model asks".into(),
        About::Unknown { .. } => "Nobody knows how this ended".into(),
        About::Limit => "Go on?".into(),
        About::Budget => "The budget is used up".into(),
        About::Stalled => "It goes in circles".into(),
        About::Trust { .. } => "Trust this folder?".into(),
    }
}

/// What is ours in the text of an approval: what follows the tool and its arguments, which are known. Nothing is searched for, since a
/// model can write any word.
fn ours(session: &Session, question: &Question) -> Vec<(String, String)> {
    let About::Approval { call } = &question.about else { return Vec::new() };
    let Some(call) = session.call(*call) else { return Vec::new() };
    let head = format!("{} {}\nwhy: ", call.part.tool, call.part.args);
    let Some(ours) = question.text.strip_prefix(&head) else { return Vec::new() };
    let mut lines = ours.lines();
    let mut out = vec![("why".to_owned(), lines.next().unwrap_or_default().to_owned())];
    for line in lines {
        match line.split_once(": ") {
            Some(("box", rest)) => out.push(("box".into(), rest.into())),
            // The rule is shown before it is granted; its words are the model's, and what follows them too.
            Some(("always", _)) => break,
            _ => out.push(("gets".into(), line.trim_start_matches("with a yes it ").into())),
        }
    }
    out
}

/// What stands below the body: why it is asked, what it touches, where, whether it can be taken back.
#[must_use]
pub fn facts(session: &Session, question: &Question, columns: usize) -> Vec<Line> {
    let About::Approval { call } = &question.about else { return Vec::new() };
    let mut rows = ours(session, question);
    if let Some(preview) = &question.preview {
        rows.push(("does".into(), preview.clone()));
    }
    let args = session.call(*call).map(|c| c.part.args.to_string()).unwrap_or_default();
    let decoded = session.call(*call).map(|c| crate::words::gist(&c.part)).unwrap_or_default();
    let mut odd = calls::warnings(&decoded);
    odd.extend(calls::warnings(&args).into_iter().filter(|w| w.starts_with('“')));
    odd.dedup();
    let undo = match session.config.checkpoints {
        true => "files of the folder, with /undo; nothing outside it",
        false => "no, files are not kept here",
    };
    rows.push(("folder".into(), session.workspace.clone()));
    rows.push(("undo".into(), undo.into()));
    // However many there are, they push nothing else away.
    let more = odd.len().saturating_sub(CAREFUL);
    odd.truncate(CAREFUL);
    if more > 0 {
        odd.push(format!("and {more} more of this kind"));
    }
    let mut lines: Vec<Line> = odd
        .iter()
        .flat_map(|text| {
            Line::of(&format!("careful  {text}"), Style::of(Tone::Bad).bold()).wrap(columns, "", "         ")
        })
        .collect();
    for (name, value) in rows {
        let mut line = Line::of(&format!("{name:<8} "), Tone::Quiet);
        line.0.push(Span::new(&value, Tone::Text));
        lines.extend(line.wrap(columns, "", "         "));
    }
    lines
}

/// The keys that count now.
#[must_use]
pub fn keys(panel: &Panel, question: &Question, columns: usize) -> Vec<Line> {
    let pairs: Vec<(&str, String)> = match (&panel.stage, &question.about) {
        (Stage::Note(_), _) => vec![("enter", "decline with this note".into()), ("esc", "back".into())],
        (Stage::Words(_), _) => vec![("enter", "answer".into())],
        (Stage::Always, _) => {
            vec![("enter", "in every session".into()), ("s", "in this session".into()), ("esc", "back".into())]
        }
        (Stage::Explain, _) => vec![("any key", "back".into())],
        (Stage::Choose, About::Person { .. }) => {
            vec![("1", format!("to {}: choose", question.choices.len())), ("t", "other words".into())]
        }
        (Stage::Choose, About::Approval { .. }) => {
            let always = question.rule.is_some().then(|| ("a", "always …".to_owned()));
            let others = [("y", "once"), ("n", "decline"), ("t", "decline with a note")];
            let others = others.into_iter().map(|(key, what)| (key, what.to_owned()));
            others.chain(always).chain([("e", "explain".to_owned())]).collect()
        }
        (Stage::Choose, _) => vec![("y", "yes".into()), ("n", "no".into())],
    };
    let mut line = Line::empty();
    for (key, what) in pairs {
        let gap = if line.0.is_empty() { "" } else { "   " };
        line = line.and(gap, Tone::Text).and(key, Style::of(Tone::Warn).bold()).and(&format!(" {what}"), Tone::Text);
    }
    line.wrap(columns, "", "")
}

/// All that is known of a call, for who wants to know.
#[must_use]
pub fn explain(session: &Session, question: &Question, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut put = |text: &str| lines.extend(Line::of(text, Tone::Text).wrap(columns, "", "  "));
    if let About::Approval { call: id } = &question.about
        && let Some(call) = session.call(*id)
    {
        put(&format!(
            "Call {id}: the model wants the tool “{}” with these arguments, and this is what would run:",
            call.part.tool
        ));
        put(&format!("  {}", call.part.args));
        for (name, value) in ours(session, question) {
            match name.as_str() {
                "why" => put(&format!("It asks because {value}.")),
                "box" => put(&format!("The box: {value}.")),
                _ => put(&format!("With a yes it {value}.")),
            }
        }
        match &question.rule {
            Some((_, words)) => put(&format!(
                "“Always” would let this run unasked: {words}. It counts by parsed words, not by the look of the text; not with ; && | $( ) or other options."
            )),
            None => put("There is no “always” for it: such a rule would be a rule for everything."),
        }
        put("What the model says about the call counts for nothing here; this is made from the arguments themselves.");
        put(&format!(
            "Later: dunnock why {} {id}",
            session.id.as_ref().map_or("ID", |s| s.as_str().get(..8).unwrap_or_default())
        ));
    } else {
        put(&question.text);
    }
    lines
}
