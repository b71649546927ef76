//! The events, questions and outcome of a run.

use dunnock_proto::{Hash, QuestionId};

/// Something that happened during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A step began: a request is sent to the model.
    #[non_exhaustive]
    StepStarted {
        /// Counted from 1.
        step: u32,
    },
    /// The next piece of the model's answer.
    TextDelta(String),
    /// The next piece of the model's reasoning.
    ReasoningDelta(String),
    /// The complete text of the model's answer.
    Answered(String),
    /// A tool call began. After a crash, a call that is safe to repeat begins again.
    #[non_exhaustive]
    CallStarted {
        /// The id of the call, repeated in [`Event::CallFinished`], or in [`Event::Checked`] for a check.
        call: String,
        /// The tool.
        tool: String,
        /// Its arguments, as JSON.
        arguments: String,
    },
    /// A tool call ended. A call that was not allowed to run ends without beginning.
    #[non_exhaustive]
    CallFinished {
        /// The id of the call.
        call: String,
        /// The tool.
        tool: String,
        /// Whether it succeeded.
        ok: bool,
        /// The result that is sent to the model.
        result: String,
    },
    /// A check ended.
    #[non_exhaustive]
    Checked {
        /// The id of the call.
        call: String,
        /// The command.
        command: String,
        /// Whether it passed.
        passed: bool,
    },
    /// A question. The run waits for [`Run::answer`](crate::Run::answer).
    Asked(Question),
    /// A message to display that has no event of its own yet.
    Note(String),
}

/// A question that a run asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The text of the question; for an approval, its heading.
    pub text: String,
    /// The kind of question, with its details.
    pub kind: QuestionKind,
    pub(crate) id: QuestionId,
    pub(crate) hash: Hash,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// May this call run?
    #[non_exhaustive]
    Approval {
        /// The id of the call, as in [`Event::CallStarted`].
        call: String,
        /// The tool.
        tool: String,
        /// The exact arguments that would run, as JSON.
        arguments: String,
        /// Why approval is needed.
        reasons: Vec<String>,
        /// The access that approval grants beyond the sandbox, for this call only.
        access: Vec<String>,
    },
    /// The model asks the user something.
    #[non_exhaustive]
    Person {
        /// Suggested answers, if any.
        choices: Vec<String>,
    },
    /// Whether to continue after a limit, a spent budget, a stall or an unknown outcome.
    Continue,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Yes.
    Yes,
    /// No, with an optional note that is sent to the model.
    No(Option<String>),
    /// Text, in answer to a question from the model.
    Text(String),
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The task is done, and every check passes.
    pub success: bool,
    /// Model requests since the last prompt; for a planner, its iterations.
    pub iterations: u32,
    /// The model's answer; for a planner, the result of each iteration.
    pub summary: String,
    /// Why the run did not succeed.
    pub error: Option<String>,
    /// The checks passed on the current state of the files.
    pub proven: bool,
    /// Unanswered questions.
    pub waiting: Vec<Question>,
    /// The session id, for [`Agent::resume`](crate::Agent::resume) and the `dunnock` program.
    pub session: String,
    /// Input and output tokens of the whole session, as far as its models reported them.
    pub tokens: u64,
}

/// The outcome of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undone {
    /// Describes files that were left alone because others changed them, or could not be restored.
    pub note: Option<String>,
}
