//! What a run tells, asks and comes to.

use dunnock_proto::{Hash, QuestionId};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A step began: the model is asked.
    #[non_exhaustive]
    StepStarted {
        /// Counted from 1.
        step: u32,
    },
    /// The model says more.
    Text(String),
    /// The model thinks more.
    Reasoning(String),
    /// The model's answer is whole.
    Said(String),
    /// A call began. After a crash one that may be repeated begins again.
    #[non_exhaustive]
    Began {
        /// Which: the same in [`Event::Ended`], or [`Event::Checked`] for a check.
        call: String,
        /// The tool.
        tool: String,
        /// Its arguments, as JSON.
        arguments: String,
    },
    /// A call ended; one that was not let run never began.
    #[non_exhaustive]
    Ended {
        /// Which.
        call: String,
        /// The tool.
        tool: String,
        /// Whether it did what it should.
        ok: bool,
        /// What the model is told of it.
        result: String,
    },
    /// A check ended.
    #[non_exhaustive]
    Checked {
        /// Which.
        call: String,
        /// The command.
        command: String,
        /// Whether it passed.
        passed: bool,
    },
    /// Something is asked. The work waits for [`Run::answer`](crate::Run::answer).
    Asked(Question),
    /// A step is over that may be shown and has no form of its own yet.
    Note(String),
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question in words; for an approval, its heading.
    pub text: String,
    /// What it is about.
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
        /// Which, as in [`Event::Began`].
        call: String,
        /// The tool.
        tool: String,
        /// Exactly the arguments that would run, as JSON.
        arguments: String,
        /// Why it is asked.
        reasons: Vec<String>,
        /// What a yes grants beyond the sandbox, for this one call.
        access: Vec<String>,
    },
    /// The model wants to know something.
    #[non_exhaustive]
    Person {
        /// Answers to choose from, if it offers any.
        choices: Vec<String>,
    },
    /// May it go on: a limit, a budget, a doubt?
    GoOn,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Yes.
    Yes,
    /// No, and what the model should know of it.
    No(Option<String>),
    /// Words, for a question of the model's.
    Text(String),
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The task is done, and every check passes.
    pub success: bool,
    /// Requests to the model since the last prompt: for a planner, its iterations.
    pub iterations: u32,
    /// The model's answer; for a planner, what each iteration came to.
    pub summary: String,
    /// Why it is no success.
    pub error: Option<String>,
    /// The checks passed on the files as they are.
    pub proven: bool,
    /// Questions that wait for an answer.
    pub waiting: Vec<Question>,
    /// The session, for [`Agent::resume`](crate::Agent::resume) and the program.
    pub session: String,
    /// Tokens that the whole session used, in and out, as far as its models said.
    pub tokens: u64,
}

/// What an undo came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undone {
    /// What was left alone since others changed it, or could not be brought back, in words.
    pub note: Option<String>,
}
