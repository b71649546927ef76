//! A session that nobody watches: nothing waits for a person, and an answer that would end the work
//! too early is sent back.
//!
//! Invariant: each prompt causes at most a fixed number of such notices, so limits on steps, money
//! and time still end what loops.

use super::Draft;
use crate::state::Task;
use dunnock_proto::{
    Answer, Approval, CallId, NoAnswer, NoticeKind, Noticed, Outcome, QuestionKind, Refused, Role,
};

/// How often an answer without a call is sent back.
const NUDGES: u8 = 2;
/// How many answers in a row may be empty or cut off.
const NO_ANSWERS: u8 = 3;
/// How many bytes of the task a second look repeats.
const TASK: usize = 400;
/// How many files and steps a notice names, and how many bytes of each.
const NAMES: usize = 4;
const NAME: usize = 40;

impl Draft<'_> {
    /// Answers the model's question, because nobody else does.
    pub(super) fn answer_for_nobody(&mut self, call: CallId) {
        let text = "nobody is here to answer: decide yourself, and say in your final answer what \
                    you decided";
        self.finish(call, Outcome::NotRun, text);
    }

    /// Refuses a call that needs approval, because nobody gives it.
    pub(super) fn refuse_for_nobody(&mut self, approval: &Approval) {
        let reasons: Vec<String> = approval.reasons.iter().map(|reason| reason.words()).collect();
        let text = format!(
            "not run: this needs a person's approval ({}), and nobody is here to give it. Find \
             another way, or say in your final answer what could not be done",
            reasons.join("; ")
        );
        self.finish(approval.call, Outcome::NotRun, &text);
    }

    /// Whether the work continues although the model says that it is done. Records the notice that
    /// says why.
    pub(super) fn work_continues(&mut self) -> bool {
        if !self.s.config.unattended || self.s.via_bridge() || !self.may_ask_again() {
            return false;
        }
        let task = self.s.task.clone();
        let finished = self.s.calls.iter().any(|call| call.role == Some(Role::Final));
        let notice = if !finished && task.nudges < NUDGES && !(task.acted && task.plan_done()) {
            Noticed::of(NoticeKind::Unfinished, unfinished(&task))
        } else if self.s.config.second_look && self.s.config.verify.is_empty() && !task.looked {
            Noticed::of(NoticeKind::SecondLook, second_look(&task))
        } else {
            return false;
        };
        self.record(notice);
        true
    }

    /// Somebody came or left in the middle of a session: the model gets a notice, and what waited for a
    /// person waits no longer.
    pub(super) fn attendance_changed(&mut self, before: bool) -> Result<(), Refused> {
        let unattended = self.s.config.unattended;
        if unattended == before {
            return Ok(());
        }
        if self.s.preamble.is_some() {
            let text = match unattended {
                true => {
                    "From now on nobody reads along or answers: do not ask, decide, and say at \
                         the end what you decided."
                }
                false => "A person is here again, and can answer questions.",
            };
            self.record(Noticed::plain(text));
        }
        if !unattended {
            return Ok(());
        }
        for question in self.s.questions.clone() {
            match question.kind.as_ref() {
                QuestionKind::Approval(approval) => self.refuse_for_nobody(approval),
                QuestionKind::Person { call, .. } => self.answer_for_nobody(*call),
                QuestionKind::Unknown { .. } | QuestionKind::Stalled { .. } => {
                    self.reply(question.id, question.hash, Answer::Yes, None)?;
                }
                QuestionKind::Limit { .. } | QuestionKind::Budget | QuestionKind::Trust { .. } => {
                    self.reply(question.id, question.hash, Answer::No, None)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the limits leave room for one more request.
    fn may_ask_again(&self) -> bool {
        !self.time_is_up() && self.s.steps_left > 0 && !self.breaks_budget(self.s.reserve())
    }

    /// Whether the work continues after an answer that is empty or cut off. Records the notice that
    /// says why.
    pub(super) fn continues_without_answer(&mut self, why: Option<NoAnswer>) -> bool {
        let Some(why) = why.filter(|_| self.s.config.unattended && !self.s.stopping) else {
            return false;
        };
        if self.s.task.no_answers > NO_ANSWERS {
            return false;
        }
        let text = match why {
            NoAnswer::Empty => {
                "Your last answer was empty; thinking alone is no answer. Continue the work: \
                 make the next call, or call final_output if the task is done."
                    .to_owned()
            }
            NoAnswer::CutOff => {
                let most = self.s.preamble.as_ref().and_then(|preamble| preamble.max_output);
                let limit = most.map(|most| format!(" of {most} tokens")).unwrap_or_default();
                format!(
                    "Your last answer was cut off at the output limit{limit} before it had a call. \
                     Continue the work, and write less at once: split long files and long texts \
                     into several calls."
                )
            }
        };
        self.record(Noticed::of(NoticeKind::NoAnswer, text));
        true
    }
}

fn unfinished(task: &Task) -> String {
    if task.acted {
        return format!(
            "Your answer has no call, but these steps of your plan are not done:{}\nContinue with \
             them, or call final_output and say why they stay undone.",
            list(task.open_steps())
        );
    }
    "Your answer has no call, and you have neither run a command nor changed a file yet. Nobody \
     reads along: do not announce a step, make its call. If the task is done, call final_output \
     with the answer."
        .to_owned()
}

fn second_look(task: &Task) -> String {
    // What was asked last comes first, in case not all of it fits.
    let prompts: Vec<&str> = task.prompts.iter().rev().map(AsRef::as_ref).collect();
    let all = prompts.join("\n");
    let what = if all.len() > TASK { "the beginning of the task" } else { "the task" };
    let mut text = String::from("Before this ends, look at your work once more.");
    if !all.is_empty() {
        let all = short(&all, TASK);
        text.push_str(&format!(" This is {what}, word for word:\n<task>\n{all}\n</task>\n"));
    }
    if !task.edited.is_empty() {
        let names = task.edited.iter().map(String::as_str);
        text.push_str(&format!("\nFiles that you edited:{}\n", list(names)));
    }
    if !task.plan_done() {
        text.push_str(&format!("\nNot done in your plan:{}\n", list(task.open_steps())));
    }
    text.push_str(
        "\n1. Check each demand in the result itself: open the file, run the command.\n\
         2. Compare names, paths, formats and numbers with the task, letter by letter.\n\
         3. Run it once more from the start, also with other input than the example.\n\
         4. Remove what you left behind.\n\
         5. Mend what is wrong, then finish as before. You are asked this only once.",
    );
    text
}

/// A short list, one line each.
fn list<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.collect();
    let mut text: String =
        all.iter().take(NAMES).map(|one| format!("\n- {}", short(one, NAME))).collect();
    if all.len() > NAMES {
        text.push_str(&format!("\n- and {} more", all.len() - NAMES));
    }
    text
}

fn short(text: &str, most: usize) -> String {
    match text.len() > most {
        true => format!("{} ...", &text[..text.floor_char_boundary(most)]),
        false => text.to_owned(),
    }
}
