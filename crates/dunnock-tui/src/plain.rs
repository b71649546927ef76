//! The app for screen readers: it prints lines from top to bottom, draws nothing twice and reads
//! input line by line.
//!
//! It uses the same state and the same keys: type a letter and press enter instead of pressing a
//! key.

use crate::host::HostEvent;
use crate::panel::{self, Stage};
use crate::run::{App, ExitState};
use crate::state::{Effect, Focus, Input, State};
use crate::text::{Line, Tone};
use crate::theme::Theme;
use crate::update::update;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::io::{BufRead as _, Write as _};
use std::time::Instant;
use tokio::sync::mpsc;

/// Columns of a line.
const WIDE: usize = 78;

struct Plain {
    app: App,
    state: State,
    began: Instant,
    /// The text of the question as last printed.
    asked: String,
    listed: bool,
    working: bool,
    hint: String,
    quit: bool,
}

/// Runs until the user quits or the input ends.
///
/// # Errors
/// When the terminal is gone.
pub async fn run(app: App) -> std::io::Result<ExitState> {
    let mut state = State::new((80, 200), Theme::Mono, app.seed);
    state.plain = true;
    let (send, mut lines) = mpsc::channel::<String>(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let mut plain = Plain {
        app,
        state,
        began: Instant::now(),
        asked: String::new(),
        listed: false,
        working: false,
        hint: String::new(),
        quit: false,
    };
    while !plain.quit {
        tokio::select! {
            event = plain.app.events.recv() => match event {
                Some(event) => plain.on_event(event).await?,
                None => break,
            },
            // Handled like the key.
            _ = tokio::signal::ctrl_c() => {
                plain.input(Input::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL))).await;
                plain.show()?;
            }
            line = lines.recv() => match line {
                Some(line) => plain.line(&line).await?,
                None => break,
            },
        }
    }
    let open = plain.state.session.working || !plain.state.session.questions.is_empty();
    Ok(ExitState { session: plain.state.session.id.clone(), open })
}

impl Plain {
    async fn on_event(&mut self, event: HostEvent) -> std::io::Result<()> {
        let welcome = matches!(event, HostEvent::Welcome(_)) && self.state.welcome.is_none();
        self.input(Input::Host(event)).await;
        if welcome {
            crate::host_events::end_welcome(&mut self.state);
            self.state.out.push(Line::of(" Type a task, or /help.", Tone::Text));
        }
        self.show()
    }

    async fn key(&mut self, code: KeyCode) {
        self.input(Input::Key(KeyEvent::new(code, KeyModifiers::NONE))).await;
    }

    /// Handles a line of input: an answer, a choice or a prompt.
    async fn line(&mut self, line: &str) -> std::io::Result<()> {
        let word = line.trim();
        let typing = self
            .state
            .panel
            .as_ref()
            .is_some_and(|p| matches!(p.stage, Stage::Note(_) | Stage::Words(_)));
        let granting = self.state.panel.as_ref().is_some_and(|p| p.stage == Stage::Always);
        // A single letter answers a question; longer input never does, whatever it starts with.
        let answers = typing || word.chars().count() == 1 || (granting && word.is_empty());
        if self.state.pick.is_some() {
            match word.parse::<usize>() {
                Ok(n) if n > 0 => {
                    if let Some(pick) = &mut self.state.pick {
                        pick.choose(n);
                    }
                    self.key(KeyCode::Enter).await;
                }
                _ => self.key(KeyCode::Esc).await,
            }
        } else if self.is_no_answer(word) {
            self.state.hint = "that is no answer; type one of the keys above".into();
        } else if self.state.question().is_some() && answers && !word.starts_with('/') {
            self.state.focus = Focus::Question;
            for c in word.chars() {
                self.key(KeyCode::Char(c)).await;
            }
            // A line is complete: its key does not wait for another one.
            let pressed = self.state.panel.as_ref().is_some_and(|panel| panel.pressed.is_some());
            if pressed || typing || (granting && word.is_empty()) {
                self.key(KeyCode::Enter).await;
            }
        } else {
            self.state.focus = Focus::Field;
            self.state.field = crate::edit::Field::holding(line);
            self.state.menu_closed = Some(line.to_owned());
            self.state.menu = None;
            self.key(KeyCode::Enter).await;
        }
        self.show()
    }

    /// Whether a line is a single letter that does not answer the question.
    fn is_no_answer(&self, word: &str) -> bool {
        let mut letters = word.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else { return false };
        match (self.state.question(), &self.state.panel) {
            (Some(question), Some(panel)) => {
                !panel.takes_text() && letter != '/' && !panel.is_answer(question, letter)
            }
            _ => false,
        }
    }

    async fn input(&mut self, input: Input) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX) + 1;
        for effect in update(&mut self.state, input, now) {
            match effect {
                Effect::Ask(ask) => drop(self.app.asks.send(ask).await),
                Effect::Remember(text) => drop(self.app.keep.remember(&text)),
                Effect::Copy(text) => self.state.out.push(Line::of(&text, Tone::Text)),
                Effect::Quit => self.quit = true,
                Effect::Call(_)
                | Effect::Editor(_)
                | Effect::Demo
                | Effect::Suspend
                | Effect::Redraw => {}
            }
        }
    }

    /// The open question with all its details; empty if there is none.
    fn question(&self) -> String {
        let (Some(q), Some(p)) = (self.state.question(), &self.state.panel) else {
            return String::new();
        };
        let session = &self.state.session;
        let mut lines = vec![Line::of(&format!("Question: {}", panel::heading(q)), Tone::Text)];
        match (&p.stage, q.rule()) {
            (Stage::Explain, _) => lines.extend(panel::explain(session, q, WIDE)),
            (Stage::Always, Some(rule)) => {
                lines.extend(panel::rule_rows(session, rule, WIDE));
            }
            _ => {
                lines.extend(panel::body(session, q, WIDE));
                lines.extend(panel::facts(session, q, WIDE));
            }
        }
        lines.extend(panel::keys(p, q, WIDE));
        lines.iter().map(|line| format!("{}\n", line.plain().trim_end())).collect()
    }

    /// Prints what is new: finished lines, then a question, a list, a hint.
    fn show(&mut self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        for line in std::mem::take(&mut self.state.out) {
            writeln!(out, "{}", line.plain().trim_end())?;
        }
        let asked = self.question();
        if asked != self.asked {
            out.write_all(asked.as_bytes())?;
            self.asked = asked;
        }
        if let Some(pick) = self.state.pick.as_ref().filter(|_| !self.listed) {
            writeln!(out, "{}", pick.title)?;
            for row in pick.numbered() {
                writeln!(out, "{row}")?;
            }
            writeln!(out, "Type a number, or press enter to close.")?;
        }
        self.listed = self.state.pick.is_some();
        if self.working != self.state.session.working {
            self.working = self.state.session.working;
            writeln!(out, "{}", if self.working { "Working." } else { "Ready." })?;
        }
        if self.hint != self.state.hint && !self.state.hint.is_empty() {
            writeln!(out, "{}", self.state.hint)?;
        }
        self.hint.clone_from(&self.state.hint);
        out.flush()
    }
}
