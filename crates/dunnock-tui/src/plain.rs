//! The app for screen readers: lines from top to bottom, nothing drawn twice, one line of answer at a time.
//!
//! The same state and the same keys: a letter and enter where a key would do.

use crate::host::Told;
use crate::panel::{self, Stage};
use crate::run::{App, Left};
use crate::state::{Effect, Focus, Input, State};
use crate::text::Line;
use crate::theme::Theme;
use crate::update::update;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::io::{BufRead as _, Write as _};
use std::time::Instant;
use tokio::sync::mpsc;

struct Plain {
    app: App,
    state: State,
    began: Instant,
    asked: Option<(dunnock_proto::QuestionId, bool)>,
    working: bool,
    hint: String,
    quit: bool,
}

/// Runs until the person leaves, or nobody types any more.
///
/// # Errors
/// When the terminal is gone.
pub async fn run(app: App) -> std::io::Result<Left> {
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
    let mut plain =
        Plain { app, state, began: Instant::now(), asked: None, working: false, hint: String::new(), quit: false };
    while !plain.quit {
        tokio::select! {
            told = plain.app.told.recv() => match told {
                Some(told) => plain.told(told).await?,
                None => break,
            },
            line = lines.recv() => match line {
                Some(line) => plain.line(&line).await?,
                None => break,
            },
        }
    }
    let open = plain.state.session.working || !plain.state.session.questions.is_empty();
    Ok(Left { session: plain.state.session.id.clone(), open })
}

impl Plain {
    async fn told(&mut self, told: Told) -> std::io::Result<()> {
        let welcome = matches!(told, Told::Welcome(_)) && self.state.welcome.is_none();
        self.input(Input::Told(told)).await;
        if welcome {
            crate::update::end_welcome(&mut self.state);
            self.state.out.push(Line::of(" Type what is to be done, or /help.", crate::text::Tone::Text));
        }
        self.show()
    }

    async fn key(&mut self, code: KeyCode) {
        self.input(Input::Key(KeyEvent::new(code, KeyModifiers::NONE))).await;
    }

    /// A line of the person's: an answer, a choice, or something to do.
    async fn line(&mut self, line: &str) -> std::io::Result<()> {
        let word = line.trim();
        if self.state.pick.is_some() {
            match word.parse::<usize>() {
                Ok(n) if n > 0 => {
                    for _ in 1..n {
                        self.key(KeyCode::Down).await;
                    }
                    self.key(KeyCode::Enter).await;
                }
                _ => self.key(KeyCode::Esc).await,
            }
        } else if self.state.question().is_some() && !word.starts_with('/') {
            self.state.focus = Focus::Question;
            let typing = self.state.panel.as_ref().is_some_and(|p| matches!(p.stage, Stage::Note(_) | Stage::Words(_)));
            for c in word.chars().take(if typing { usize::MAX } else { 1 }) {
                self.key(KeyCode::Char(c)).await;
            }
            let asks_more = self.state.panel.as_ref().is_some_and(|p| p.stage == Stage::Always);
            if typing || (asks_more && word.is_empty()) {
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

    async fn input(&mut self, input: Input) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX) + 1;
        for effect in update(&mut self.state, input, now) {
            match effect {
                Effect::Ask(ask) => drop(self.app.asks.send(ask).await),
                Effect::Remember(text) => drop(self.app.keep.remember(&text)),
                Effect::Copy(text) => self.state.out.push(Line::of(&text, crate::text::Tone::Text)),
                Effect::Quit => self.quit = true,
                Effect::Call(_) | Effect::Editor(_) | Effect::Demo | Effect::Suspend | Effect::Redraw => {}
            }
        }
    }

    /// What is new: finished lines, then a question, a list, a word.
    fn show(&mut self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        for line in std::mem::take(&mut self.state.out) {
            writeln!(out, "{}", line.plain().trim_end())?;
        }
        if let (Some(q), Some(p)) = (self.state.question(), &self.state.panel) {
            let now = (q.id, p.stage == Stage::Choose);
            if self.asked != Some(now) {
                self.asked = Some(now);
                let mut lines = vec![Line::of(
                    &format!("Question: {}", panel::title(&self.state.session, q)),
                    crate::text::Tone::Text,
                )];
                match &p.stage {
                    Stage::Explain => lines.extend(panel::explain(&self.state.session, q, 78)),
                    Stage::Always => lines.extend(
                        q.rule
                            .iter()
                            .map(|(_, words)| Line::of(&format!("Always allow: {words}"), crate::text::Tone::Text)),
                    ),
                    _ => {
                        lines.extend(panel::body(&self.state.session, q, 78));
                        lines.extend(panel::facts(&self.state.session, q, 78));
                    }
                }
                lines.extend(panel::keys(p, q, 78));
                for line in lines {
                    writeln!(out, "{}", line.plain().trim_end())?;
                }
            }
        } else {
            self.asked = None;
        }
        if let Some(pick) = &self.state.pick {
            for (n, line) in pick.lines(78, 30).iter().enumerate() {
                writeln!(out, "{}{}", if n > 0 { format!("{n}: ") } else { String::new() }, line.plain().trim_end())?;
            }
            writeln!(out, "Type a number, or enter to leave.")?;
        }
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
