//! Asks the user at the terminal and reads the answer.

use crate::{reply, rules};
use dunnock_core::Question;
use dunnock_proto::{Answer, Command, QuestionKind};
use std::io::{BufRead as _, Write as _};
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
    pub(crate) fn ask(&mut self, question: Question) {
        let view = question.kind.view();
        let (yes, no) = (view.yes.to_lowercase(), view.no.to_lowercase());
        let keys = match question.kind.as_ref() {
            QuestionKind::Person { .. } => "your answer".to_owned(),
            QuestionKind::Approval(approval) => {
                let always = if approval.rule.is_some() {
                    "; s: apply the rule in this session, a: in every session"
                } else {
                    ""
                };
                format!("y: {yes}, n: {no}, t NOTE: decline with a note{always}")
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
pub(crate) fn command(question: &Question, line: &str) -> Result<Command, String> {
    let line = line.trim();
    let (answer, note) = match (question.kind.approval(), line.split_once(' ')) {
        (Some(_), Some(("t", note))) => (Answer::No, Some(note.to_owned())),
        (Some(_), None) if matches!(line, "s" | "a") => {
            let rule = reply::rule(question)?;
            if line == "a" {
                rules::always(&rule).map_err(|error| format!("{error:#}"))?;
            }
            (Answer::Always { rule }, None)
        }
        _ => (reply::read_answer(question, line)?, None),
    };
    Ok(Command::Reply { question: question.id, hash: question.hash, answer, note })
}
