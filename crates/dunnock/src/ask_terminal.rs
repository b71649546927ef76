//! Asks the user at the terminal and reads the answer.

use crate::config::{paths, rules};
use crate::view::output;
use dunnock_core::Question;
use dunnock_proto::{Answer, Command, QuestionKind, Rule};
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use tokio::sync::mpsc;

/// Standard input, with a single reader for all questions.
pub(crate) struct AskTerminal {
    lines: Option<mpsc::Receiver<String>>,
    /// The question on the screen that is not answered yet.
    pub(crate) asked: Option<Question>,
}

impl AskTerminal {
    pub(crate) fn new() -> Self {
        Self { lines: None, asked: None }
    }

    /// Prompts for an answer to this question, which is already on the screen.
    pub(crate) fn ask(&mut self, question: Question, project: &Path) {
        let view = question.kind.view();
        let (yes, no) = (view.yes.to_lowercase(), view.no.to_lowercase());
        let keys = match question.kind.as_ref() {
            QuestionKind::Person { .. } => "your answer".to_owned(),
            QuestionKind::Approval(approval) => {
                let always = match approval.rule.is_some() {
                    true => format!(
                        "; always: a in this project ({}), g in all projects, s in this session only",
                        output::one_line(&paths::short(project))
                    ),
                    false => String::new(),
                };
                let wider = match approval.wider.is_nothing() {
                    true => "",
                    false => ", w: the whole network once",
                };
                format!("y: {yes}{wider}, n: {no}, t NOTE: decline with a note{always}")
            }
            QuestionKind::Unknown { .. }
            | QuestionKind::Limit { .. }
            | QuestionKind::Budget
            | QuestionKind::Stalled { .. }
            | QuestionKind::Trust { .. } => format!("y: {yes}, n: {no}"),
        };
        self.forget_early_words();
        let _ = write!(std::io::stderr(), "  [{keys}] ");
        let _ = std::io::stderr().flush();
        self.asked = Some(question);
    }

    /// Discards input that was typed before the question was on the screen.
    fn forget_early_words(&mut self) {
        #[cfg(unix)]
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
        match &mut self.lines {
            Some(lines) => while lines.try_recv().is_ok() {},
            None => {
                let (send, lines) = mpsc::channel(16);
                std::thread::spawn(move || {
                    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                        if send.blocking_send(line).is_err() {
                            return;
                        }
                    }
                });
                self.lines = Some(lines);
            }
        }
    }

    /// The line typed in answer to the current question; `None` at the end of input. Waits forever
    /// while no question is open.
    pub(crate) async fn said(&mut self) -> Option<String> {
        match (&self.asked, &mut self.lines) {
            (Some(_), Some(lines)) => lines.recv().await,
            _ => std::future::pending().await,
        }
    }

    /// The question is answered, here or elsewhere.
    pub(crate) fn done(&mut self) {
        self.asked = None;
    }
}

/// Converts what was typed to a command.
pub(crate) fn command(question: &Question, project: &Path, line: &str) -> Result<Command, String> {
    let line = line.trim();
    let (answer, note) = match (question.kind.approval(), line.split_once(' ')) {
        (Some(_), Some(("t", note))) => (Answer::No, Some(note.to_owned())),
        (Some(_), None) if matches!(line, "s" | "a" | "g") => {
            let rule = rule(question)?;
            if line != "s" {
                let project = (line == "a").then_some(project);
                rules::always(&rule, project).map_err(|error| format!("{error:#}"))?;
            }
            (Answer::Always { rule }, None)
        }
        _ => (read_answer(question, line)?, None),
    };
    Ok(Command::Reply { question: question.id, hash: question.hash, answer, note })
}

/// The rule that "always" would save for a question.
pub(crate) fn rule(question: &Question) -> Result<Rule, String> {
    question
        .kind
        .approval()
        .and_then(|approval| approval.rule.clone())
        .ok_or_else(|| "no rule can be saved for this call; answer yes or no".into())
}

/// Parses what the user typed as an answer to the question.
pub(crate) fn read_answer(question: &Question, text: &str) -> Result<Answer, String> {
    let lower = text.trim().to_lowercase();
    let yes = matches!(lower.as_str(), "y" | "yes");
    let no = matches!(lower.as_str(), "n" | "no");
    match question.kind.as_ref() {
        QuestionKind::Person { choices, .. } => {
            if text.trim().is_empty() {
                return Err("the answer is empty".into());
            }
            let chosen = lower.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
            Ok(Answer::Text { text: chosen.map_or(text.trim(), String::as_str).into() })
        }
        QuestionKind::Approval(asked) if lower == "w" && !asked.wider.is_nothing() => {
            Ok(Answer::Wider)
        }
        _ if yes => Ok(Answer::Yes),
        _ if no => Ok(Answer::No),
        _ => Err(format!("{text:?} is not a valid answer here; answer yes or no")),
    }
}
