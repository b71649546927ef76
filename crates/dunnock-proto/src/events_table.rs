//! What each event says: a uniform table of structs. The list of kinds is in `event.rs`.
//!
//! Invariant: a field is added with a default that means what its absence meant before; none is renamed or removed.

use crate::{
    Access, At, CallId, Class, Config, ConfigPatch, Hash, Isolation, Owner, Preamble, QuestionId, QuestionKind,
    Recovery, RewindTo, Rule, Scope, Seq, SessionId, Source, Step, Tree,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The session began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Created {
    /// The folder it works in.
    pub workspace: String,
    /// The release that made it.
    pub app: String,
    /// Its settings, whole.
    pub config: Config,
    /// The commit that the folder's repository stood at, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// The session was carried here from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// The folder it works in from now on.
    pub workspace: String,
    /// What was proven there counts here: it is the person's own session, and nothing was taken out of its files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
}

/// The session began as a branch of another, whose conversation up to an event is its own past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked {
    /// The session it came from.
    pub from: SessionId,
    /// The last event that they share.
    pub at: Seq,
    /// The folder it works in.
    pub workspace: String,
    /// The release that made it.
    pub app: String,
    /// Its settings, whole.
    pub config: Config,
    /// Steps are counted on from here, so that ids stay unique across both.
    pub step: Step,
}

/// Settings changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configured {
    /// Only what changed.
    pub set: ConfigPatch,
}

/// A preamble was rendered and is in use from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreambleSet {
    /// It.
    pub preamble: Preamble,
}

/// The person said something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prompted {
    /// The words.
    pub text: Arc<str>,
    /// Pictures, as blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Hash>,
}

/// The person said to go on after an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Continued {}

/// A request to the model is pinned: it is a function of the preamble and the events up to `upto`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStarted {
    /// Its number.
    pub step: Step,
    /// The last event that the request tells of.
    pub upto: Seq,
    /// The preamble it uses.
    pub preamble: Hash,
    /// What the budget holds back for it.
    pub reserved: Reserved,
}

/// An amount held back before a request goes out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reserved {
    /// Tokens in and out.
    pub tokens: u64,
    /// Millionths of a US dollar; 0 when the price is unknown.
    pub micros: u64,
}

impl Reserved {
    /// Whether nothing is held back.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One piece of an answer, in the order it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What the model thought.
    Reasoning {
        /// Readable, if the provider shows it.
        text: Arc<str>,
        /// What must go back to its maker untouched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Arc<str>>,
    },
    /// What the model said.
    Text {
        /// The words.
        text: Arc<str>,
    },
    /// What the model wants done.
    Call(Arc<CallPart>),
}

impl Part {
    /// What was said in an answer, without thoughts and calls.
    #[must_use]
    pub fn words(parts: &[Self]) -> String {
        let said = parts.iter().filter_map(|part| match part {
            Self::Text { text } => Some(text.as_ref()),
            Self::Reasoning { .. } | Self::Call(_) => None,
        });
        said.collect()
    }
    /// What an answer wants done, in order.
    pub fn calls(parts: &[Self]) -> impl Iterator<Item = &Arc<CallPart>> {
        parts.iter().filter_map(|part| match part {
            Self::Call(call) => Some(call),
            Self::Reasoning { .. } | Self::Text { .. } => None,
        })
    }
}

/// A call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallPart {
    /// The provider's name for it: data, never a key.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments, as the exact text.
    pub args: Arc<str>,
    /// Found in plain text, not given as a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
    /// Why this cannot be run, for the model: it was meant as a call, and is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Arc<str>>,
}

impl CallPart {
    /// What keeps the arguments from being a JSON object, if anything: a stream that broke off, or a model that cannot
    /// write JSON.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        let read = serde_json::from_str::<std::collections::BTreeMap<String, serde::de::IgnoredAny>>(&self.args);
        read.err().map(|error| error.to_string())
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was finished.
    End,
    /// It wants calls run.
    Calls,
    /// It ran into the limit of output.
    Length,
    /// The provider cut it off.
    Filter,
    /// A word of the provider's own.
    Other(String),
}

/// What a request used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// Of those, tokens the server had cached.
    pub cached: u64,
    /// Tokens received, reasoning included.
    pub output: u64,
    /// Of those, reasoning.
    pub reasoning: u64,
    /// Of the tokens sent, those that the server put into its cache and charges for.
    #[serde(skip_serializing_if = "is_zero")]
    pub written: u64,
}

impl Usage {
    /// Whether nothing is known to have been used.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input += more.input;
        self.cached += more.cached;
        self.output += more.output;
        self.reasoning += more.reasoning;
        self.written += more.written;
    }
}

/// One try at a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempt {
    /// When it began.
    pub at: At,
    /// How long it took.
    pub ms: u64,
    /// What went wrong, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
}

/// The model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answered {
    /// The step.
    pub step: Step,
    /// Every try, the last of which succeeded.
    pub attempts: Vec<Attempt>,
    /// Who answered.
    pub model: String,
    /// Over which wire: opaque parts go back only to their maker.
    pub wire: String,
    /// What it said, in order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub stop: Stop,
    /// What all tries used.
    pub usage: Usage,
    /// The hash of the request's bytes.
    pub request: Hash,
    /// The raw response, kept by setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Hash>,
}

/// Why a request came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// It was interrupted.
    Interrupted,
    /// The request did not fit the model's window.
    Overflow,
    /// The provider refused it: key, model, request.
    Rejected,
    /// Network, time-out, broken stream, server fault.
    Transport,
}

/// The request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepFailed {
    /// The step.
    pub step: Step,
    /// Every try.
    pub attempts: Vec<Attempt>,
    /// What kind.
    pub failure: Failure,
    /// In words, with what to do.
    pub error: String,
    /// What had arrived: text only, never a call.
    #[serde(default, skip_serializing_if = "str_is_empty")]
    pub partial: Arc<str>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// When it is worth trying again, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<At>,
    /// The answer had begun and did not come to its end, so that what it used is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What it may have used beyond that, then.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub lost: Reserved,
}
impl StepFailed {
    /// A request that nobody sent: it could not be made.
    #[must_use]
    pub fn unsent(step: Step, failure: Failure, error: String) -> Self {
        let (attempts, usage, retry_at) = (Vec::new(), Usage::default(), None);
        Self {
            step,
            attempts,
            failure,
            error,
            partial: "".into(),
            usage,
            retry_at,
            incomplete: false,
            lost: Reserved::default(),
        }
    }
}
fn str_is_empty(text: &str) -> bool {
    text.is_empty()
}

/// A request was written down for a person, who carries it to a chat and brings the answer back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutboxWritten {
    /// The step.
    pub step: Step,
    /// The file to carry away; further parts lie beside it.
    pub outbox: String,
    /// The file in which the answer is expected.
    pub inbox: String,
    /// How many files the request is.
    pub parts: u32,
}

/// The time to try again has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerFired {
    /// The moment that was waited for.
    pub at: At,
}

/// A question to the person stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// Its name.
    pub question: QuestionId,
    /// What it is about, with everything that is shown.
    pub kind: QuestionKind,
    /// Hash of the question; an answer must name it.
    pub hash: Hash,
}

/// What the person answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Once.
    Yes,
    /// No.
    No,
    /// Yes, and from now on for calls of this shape.
    Always {
        /// The shape, as it was shown.
        rule: Rule,
    },
    /// Yes, with these arguments instead.
    Edit {
        /// The arguments.
        args: Arc<str>,
    },
    /// Words.
    Text {
        /// The words.
        text: Arc<str>,
    },
}

/// The person answered a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replied {
    /// Which.
    pub question: QuestionId,
    /// How.
    pub answer: Answer,
    /// What the model should know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A rule holds from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Granted {
    /// The rule.
    pub rule: Rule,
}

/// A rule no longer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revoked {
    /// The rule.
    pub rule: Rule,
}

/// On whose word a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AllowedBy {
    /// Policy, for a reason.
    Policy(String),
    /// A rule that the person granted.
    Grant(Rule),
    /// The person, answering a question.
    Person(QuestionId),
    /// The harness itself: verification.
    Harness,
}

/// A call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allowed {
    /// Which.
    pub call: CallId,
    /// On whose word.
    pub by: AllowedBy,
    /// The arguments, where the person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arc<str>>,
    /// Of tool and arguments: what runs is what was allowed.
    pub hash: Hash,
    /// How commands were confined when that was said: with less it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// What it is granted beyond the sandbox, exactly as it was shown.
    #[serde(default, skip_serializing_if = "Access::is_nothing")]
    pub access: Access,
}

/// The harness made a call of its own: a check of the finished work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckCalled {
    /// Its name, counted on after the answer's own calls.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Arc<str>,
    /// Which try at verification this is, from 1.
    pub tried: u32,
    /// Reader or writer.
    pub class: Class,
    /// After a crash.
    pub recovery: Recovery,
}

/// A process began a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Started {
    /// Which.
    pub call: CallId,
    /// The process.
    pub owner: Owner,
    /// What becomes of it if that process dies.
    pub recovery: Recovery,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it should.
    Done,
    /// It ran and failed.
    Failed,
    /// The person said no.
    Declined {
        /// And why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// It was stopped on the way.
    Interrupted,
    /// It never began.
    NotRun,
    /// It had begun when its process died.
    Unknown,
}

/// A call ended; this is what the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finished {
    /// Which.
    pub call: CallId,
    /// How.
    pub outcome: Outcome,
    /// The exact text for the model, fixed here.
    pub shown: Arc<str>,
    /// All of the output, where `shown` is not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Hash>,
    /// Which of the output came from which stream, where both spoke: `[["out", 12], ["err", 4], ...]`, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Hash>,
    /// The files right before it ran, where they were not as they had last been kept: others changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Tree>,
    /// The files as they were, for a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    /// The files as a check found them, where it changed them itself: it says nothing of those it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_tree: Option<Tree>,
    /// The program's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
    /// How it was confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Files as the model knows them now: read, written, or shown because an edit did not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_files: Vec<SeenFile>,
    /// What an edit changed, as a unified diff, for doors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Hash>,
}

/// A file that the model has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeenFile {
    /// Below the root.
    pub path: String,
    /// What it held.
    pub hash: Hash,
}

impl Finished {
    /// An end of which there is nothing more to say.
    #[must_use]
    pub fn plain(call: CallId, outcome: Outcome, shown: &str) -> Self {
        Self {
            call,
            outcome,
            shown: shown.into(),
            full: None,
            streams: None,
            before: None,
            tree: None,
            checked_tree: None,
            exit: None,
            ms: 0,
            isolation: None,
            seen_files: Vec::new(),
            diff: None,
        }
    }
}

/// One step of the plan that doors show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanStep {
    /// What.
    pub text: String,
    /// How far: `pending`, `active` or `done`.
    #[serde(default)]
    pub state: String,
}

/// The model set its list of steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Planned {
    /// All of them.
    pub steps: Vec<PlanStep>,
}

/// The person wants everything under way to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptRequested {}

/// Why work ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model said so and nothing speaks against it.
    Done,
    /// The person stopped it.
    Stopped,
    /// The model could not be asked.
    Failed {
        /// What to do about it.
        error: String,
    },
    /// The limit of steps, and nobody to ask.
    Limit,
    /// The budget, and nobody to ask.
    Budget,
    /// Verification failed as often as it may.
    Unproven,
}

/// What is known of the work's correctness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Nothing was checked.
    #[default]
    None,
    /// Every check passed.
    Proven,
    /// A check failed.
    Failed,
}

/// Work ended; the session rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// Why.
    pub reason: EndReason,
    /// Whether it was checked.
    #[serde(default)]
    pub proof: Proof,
    /// Prompts that no step has told yet wait for the next one, instead of making a step due now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
}

/// A process took the session over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnerChanged {
    /// It, now.
    pub owner: Owner,
    /// How well it can confine commands.
    pub isolation: Isolation,
    /// Its system.
    pub platform: String,
    /// Its release.
    pub app: String,
    /// What a request may have used that was under way when the process before was gone.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub lost: Reserved,
}

/// The files of the workspace were kept, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpointed {
    /// Their state; absent if it could not be kept.
    pub tree: Option<Tree>,
    /// The event after which they had to be.
    pub mark: Seq,
    /// What could not be kept, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A range of events, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// First.
    pub from: Seq,
    /// Last.
    pub to: Seq,
}

/// The person wants to go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindRequested {
    /// The events that will count as said, in full; what follows the rewind counts too.
    pub spans: Vec<Span>,
    /// The state of the files to return to, if files are meant.
    pub tree: Option<Tree>,
    /// What is meant.
    pub scope: Scope,
    /// Also what others changed since.
    pub force: bool,
    /// Where to, as the person said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<RewindTo>,
}

/// The session went back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rewound {
    /// The events that count as said, in full.
    pub spans: Vec<Span>,
    /// The state of the files now.
    pub tree: Option<Tree>,
    /// The state of the files before: the way back.
    pub undo: Option<Tree>,
    /// What was kept, left out or could not be restored, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The session could not go back; nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindFailed {
    /// Why.
    pub error: String,
}

/// How hard the conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Old tool output is shortened.
    Shorten,
    /// Old conversation is replaced by a summary.
    Summarise,
}

/// Conversation up to a step's boundary is being compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionStarted {
    /// The last event it covers: always the end of a step, so no call loses its result.
    pub upto: Seq,
    /// How hard.
    pub strength: Strength,
    /// Whether the person asked for it.
    pub asked: bool,
    /// What the budget holds back for it.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub reserved: Reserved,
}

/// The new text of an old result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shortened {
    /// The call.
    pub call: CallId,
    /// What the model is shown from now on.
    pub shown: Arc<str>,
}

/// Conversation was compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compacted {
    /// The last event it covers.
    pub upto: Seq,
    /// Results that became shorter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<Shortened>,
    /// What stands for everything up to `upto`, if it was summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<str>>,
    /// What must not depend on a model's summary, word for word: the task, answers of the person, the plan, changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Arc<str>>,
    /// What asking for the summary used.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// The preamble from here on.
    pub preamble: Preamble,
    /// Bytes of conversation before.
    pub before: u64,
    /// Bytes of conversation after: fewer.
    pub after: u64,
}

/// Conversation could not be compacted; it stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionFailed {
    /// Why.
    pub error: String,
    /// What asking for a summary used.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// The summary had begun and did not come to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What it may have used beyond that, then.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub lost: Reserved,
}

impl CompactionFailed {
    /// For this reason, having used nothing.
    #[must_use]
    pub fn because(error: String) -> Self {
        Self { error, usage: Usage::default(), incomplete: false, lost: Reserved::default() }
    }
    /// By the person, or by a process that is gone.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::because("interrupted".into())
    }
}

/// How one check ended before any work was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// The command.
    pub command: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
    /// What it said.
    pub shown: Arc<str>,
}

/// The checks were run on a copy of the files as they were before the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baselined {
    /// The files.
    pub tree: Tree,
    /// Of the commands that were to be run.
    pub of: Hash,
    /// Each check, in order; none if the copy could not be made.
    pub checks: Vec<Baseline>,
    /// Why there is none, or what the copy lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The session has a title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Titled {
    /// The title.
    pub title: String,
}

/// Something the model should know came to light: changed instructions, tools, folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Noticed {
    /// What.
    pub text: Arc<str>,
    /// That nothing changes any more: said once before the person is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stalled: bool,
    /// What a preamble would be made of now, if this tells of a change of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

impl Noticed {
    /// Something of which there is nothing more to say.
    #[must_use]
    pub fn plain(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), stalled: false, sources: Vec::new() }
    }
}
