//! Every event: a uniform table of structs, and the list of kinds at its end. What all events can do
//! is in `event.rs`.
//!
//! Invariant: a new field has a default that means what its absence meant before; no field is
//! renamed or removed.

use crate::{
    Access, At, CallId, Class, Config, ConfigPatch, Decoded, Hash, HostSet, Isolation, Need, Owner,
    Preamble, QuestionId, QuestionKind, Recovery, RewindTo, Rule, Scope, Seq, ServerTool,
    SessionId, Source, Step, Tree, Usage,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The session was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Created {
    /// The folder it works in.
    pub workspace: String,
    /// The release that created it.
    pub app: String,
    /// All of its settings.
    pub config: Config,
    /// The commit that the folder's repository was at, if the folder is a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// The session was imported from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// The folder it works in from now on.
    pub workspace: String,
    /// Whether proof from there still counts: it is the user's own session, and no file was left
    /// out of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
}

/// The session was forked from another, whose conversation up to an event is its own history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked {
    /// The session it was forked from.
    pub from: SessionId,
    /// The last event that both share.
    pub at: Seq,
    /// The folder it works in.
    pub workspace: String,
    /// The release that created it.
    pub app: String,
    /// All of its settings.
    pub config: Config,
    /// Step numbers continue from here, so that ids stay unique across both sessions.
    pub step: Step,
    /// A secret may have been read in the other session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_secret: bool,
}

/// Settings changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configured {
    /// Only the settings that changed.
    pub set: ConfigPatch,
}

/// A preamble was rendered and is in use from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreambleSet {
    /// The preamble.
    pub preamble: Preamble,
}

/// The user sent a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prompted {
    /// The text of the prompt.
    pub text: Arc<str>,
    /// Images, as blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Hash>,
}

/// The user asked to continue after the work ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Continued {}

/// A request to the model is fixed: it depends only on the preamble and the events up to `upto`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStarted {
    /// The number of the step.
    pub step: Step,
    /// The last event that the request includes.
    pub upto: Seq,
    /// The preamble it uses.
    pub preamble: Hash,
    /// The part of the budget that is reserved for it.
    pub reserved: Reserved,
}

/// An amount reserved before a request is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reserved {
    /// Tokens in and out.
    pub tokens: u64,
    /// Millionths of a US dollar; 0 when the price is unknown.
    pub micros: u64,
}

impl Reserved {
    /// Whether nothing is reserved.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One part of an answer, in the order received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The model's reasoning.
    Reasoning {
        /// Readable text, if the provider shows it.
        text: Arc<str>,
        /// Data that must be returned unchanged to the model that produced it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Arc<str>>,
    },
    /// Text of the answer.
    Text {
        /// The text.
        text: Arc<str>,
    },
    /// A tool call.
    Call(Arc<CallPart>),
}

impl Part {
    /// The text of an answer, without reasoning and calls.
    #[must_use]
    pub fn words(parts: &[Self]) -> String {
        let said = parts.iter().filter_map(|part| match part {
            Self::Text { text } => Some(text.as_ref()),
            Self::Reasoning { .. } | Self::Call(_) => None,
        });
        said.collect()
    }
    /// The calls of an answer, in order.
    pub fn calls(parts: &[Self]) -> impl Iterator<Item = &Arc<CallPart>> {
        parts.iter().filter_map(|part| match part {
            Self::Call(call) => Some(call),
            Self::Reasoning { .. } | Self::Text { .. } => None,
        })
    }
}

/// A call of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallPart {
    /// The provider's id for the call: data, never a key.
    pub id: String,
    /// The tool that runs.
    pub tool: String,
    /// The arguments with which it runs, as the exact text.
    pub args: Arc<str>,
    /// The call as the model wrote it, if it was translated to one of our tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Arc<SentCall>>,
    /// Whether the call was found in plain text instead of being sent as a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
    /// Why this cannot be run, for the model: it was meant as a call but is not a valid one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Arc<str>>,
}

/// A call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentCall {
    /// The name that it used.
    pub tool: String,
    /// The arguments, as the exact text.
    pub args: Arc<str>,
    /// Whether the arguments are plain text instead of JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub freeform: bool,
}

impl CallPart {
    /// The call in the form in which it goes back to the model: as it wrote it, if that is JSON;
    /// otherwise as it ran.
    #[must_use]
    pub fn sent_form(&self) -> (&str, &Arc<str>) {
        match &self.sent {
            Some(sent) if !sent.freeform && Self::is_object(&sent.args) => (&sent.tool, &sent.args),
            Some(sent) if sent.freeform => (&sent.tool, &self.args),
            Some(_) | None => (&self.tool, &self.args),
        }
    }
    /// Whether a server accepts the call exactly as it came.
    #[must_use]
    pub fn came_whole(&self) -> bool {
        match &self.sent {
            Some(sent) => sent.freeform || Self::is_object(&sent.args),
            None => Self::is_object(&self.args),
        }
    }
    /// Whether the model wrote plain text instead of JSON.
    #[must_use]
    pub fn is_freeform(&self) -> bool {
        self.sent.as_ref().is_some_and(|sent| sent.freeform)
    }
    /// Why the arguments are not a JSON object, if they are not: the stream was cut off, or the
    /// model wrote invalid JSON.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        object_error(&self.args)
    }
    /// Whether a text is a JSON object.
    #[must_use]
    pub fn is_object(text: &str) -> bool {
        object_error(text).is_none()
    }
}

/// Why a text is not a JSON object, if it is not.
fn object_error(text: &str) -> Option<String> {
    type Fields = std::collections::BTreeMap<String, serde::de::IgnoredAny>;
    serde_json::from_str::<Fields>(text).err().map(|error| error.to_string())
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It finished.
    End,
    /// It wants calls to be run.
    Calls,
    /// It reached the output limit.
    Length,
    /// The provider's content filter cut it off.
    Filter,
    /// The provider's own word.
    Other(String),
}

/// One attempt at a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempt {
    /// When it started.
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
    /// Every attempt; the last one succeeded.
    pub attempts: Vec<Attempt>,
    /// The model that answered.
    pub model: String,
    /// The wire protocol: opaque parts are only sent back to the model that produced them.
    pub wire: String,
    /// The parts of the answer, in order.
    pub parts: Vec<Part>,
    /// The answer as the server sent it, item by item, if it must go back in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Arc<str>>,
    /// The server refused the reasoning effort, so later requests to this model leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub effort_refused: bool,
    /// Why it stopped.
    pub stop: Stop,
    /// Usage of all attempts.
    pub usage: Usage,
    /// The hash of the request's bytes.
    pub request: Hash,
    /// The raw response, if the settings ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Hash>,
    /// What is known of the servers' tools that its calls use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<ServerTool>,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// It was interrupted.
    Interrupted,
    /// The request did not fit the model's window.
    Overflow,
    /// The provider refused it: key, model or request.
    Rejected,
    /// Network error, time-out, broken stream or server error.
    Transport,
}

/// Why a complete answer is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoAnswer {
    /// It has no text and no call.
    Empty,
    /// It was cut off at the output limit, in its text.
    CutOff,
}

/// The request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepFailed {
    /// The step.
    pub step: Step,
    /// Every attempt.
    pub attempts: Vec<Attempt>,
    /// The kind of failure.
    pub failure: Failure,
    /// The error message, with what to do.
    pub error: String,
    /// What had arrived: only text, never a call.
    #[serde(default, skip_serializing_if = "str_is_empty")]
    pub partial: Arc<str>,
    /// How the answer ended, if it came and is not usable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_answer: Option<NoAnswer>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// When a retry makes sense, if at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<At>,
    /// The answer started but was not completed, so its usage is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What it may have used in addition, in that case.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub lost: Reserved,
}
impl StepFailed {
    /// A request that could not be made, so it was never sent.
    #[must_use]
    pub fn unsent(step: Step, failure: Failure, error: String) -> Self {
        let (attempts, usage, retry_at) = (Vec::new(), Usage::default(), None);
        Self {
            step,
            attempts,
            failure,
            error,
            partial: "".into(),
            no_answer: None,
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

/// A request was written to files for the user, who pastes it into a chat and pastes the answer
/// back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutboxWritten {
    /// The step.
    pub step: Step,
    /// The file to paste into the chat; further parts are next to it.
    pub outbox: String,
    /// The file in which the answer is expected.
    pub inbox: String,
    /// How many files the request consists of.
    pub parts: u32,
}

/// The time for a retry has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerFired {
    /// The time that the retry waited for.
    pub at: At,
}

/// A question to the person is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// The id of the question.
    pub question: QuestionId,
    /// What it is about, with everything that is shown.
    pub kind: QuestionKind,
    /// Hash of the question; an answer must name it.
    pub hash: Hash,
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, once.
    Yes,
    /// No.
    No,
    /// Yes, once, with the wider access that the question offers.
    Wider,
    /// Yes, and from now on for calls that match this rule.
    Always {
        /// The rule, as it was shown.
        rule: Rule,
    },
    /// Yes, with these arguments instead.
    Edit {
        /// The arguments.
        args: Arc<str>,
    },
    /// A text.
    Text {
        /// The text.
        text: Arc<str>,
    },
}

/// The person answered a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replied {
    /// Which question.
    pub question: QuestionId,
    /// The answer.
    pub answer: Answer,
    /// A note about the answer for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A rule applies from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Granted {
    /// The rule.
    pub rule: Rule,
}

/// A rule no longer applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revoked {
    /// The rule.
    pub rule: Rule,
}

/// Who or what allowed a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AllowedBy {
    /// The policy, with its reason.
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
    /// Which call.
    pub call: CallId,
    /// Who or what allowed it.
    pub by: AllowedBy,
    /// The arguments, if the person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arc<str>>,
    /// Hash of the tool and arguments that were approved: nothing else runs.
    pub hash: Hash,
    /// How commands were isolated at approval: the call does not run with weaker isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Exactly what the call is granted beyond the sandbox, as it was shown.
    #[serde(default, skip_serializing_if = "Access::is_nothing")]
    pub access: Access,
    /// A file tool may read a secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_secret: bool,
}

/// The harness made a call of its own: a check of the finished work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckCalled {
    /// Its id, numbered after the answer's own calls.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Arc<str>,
    /// Which attempt at verification this is, from 1.
    pub tried: u32,
    /// Whether it reads or writes.
    pub class: Class,
    /// What to do with it after a crash.
    pub recovery: Recovery,
}

/// A process started a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Started {
    /// Which call.
    pub call: CallId,
    /// The process.
    pub owner: Owner,
    /// What happens to the call if that process dies.
    pub recovery: Recovery,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It ran and failed.
    Failed,
    /// The person declined it.
    Declined {
        /// The reason given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// It was stopped while running.
    Interrupted,
    /// It never started.
    NotRun,
    /// It had started when its process died.
    Unknown,
}

/// A call ended; this is what the model is sent about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finished {
    /// Which call.
    pub call: CallId,
    /// How it ended.
    pub outcome: Outcome,
    /// The exact text for the model, fixed here.
    pub shown: Arc<str>,
    /// All of the output, if `shown` is shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Hash>,
    /// Which bytes of the output came from which stream, if both were used: `[["out", 12], ["err",
    /// 4], ...]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Hash>,
    /// The files right before it ran, if others had changed them since the last checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Tree>,
    /// The files after it ran, if it is a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    /// The files as a check found them, if it then changed them: its result says nothing about the
    /// files it left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_tree: Option<Tree>,
    /// The program's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
    /// How it was isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Files as the model now knows them: read, written, or shown because an edit did not apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_files: Vec<SeenFile>,
    /// What an edit changed, as a unified diff, for interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Hash>,
    /// Images that the model is shown with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Hash>,
    /// Processes that it started are still running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_process: bool,
    /// What it had no access to in the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_network: Option<MissingNetwork>,
}

/// What a call had no access to in the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissingNetwork {
    /// These hosts.
    Hosts(HostSet),
    /// Access to named hosts was of no use: it does not use the proxy, or a name leads to a private
    /// address.
    Whole,
}

/// A file that the model has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeenFile {
    /// Relative to the root.
    pub path: String,
    /// Hash of its content.
    pub hash: Hash,
}

impl Finished {
    /// An end without further details.
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
            images: Vec::new(),
            left_process: false,
            missing_network: None,
        }
    }
}

/// One step of the plan that interfaces show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanStep {
    /// What to do.
    pub text: String,
    /// The progress: `pending`, `active` or `done`.
    #[serde(default)]
    pub state: String,
}

/// The model set its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Planned {
    /// All steps.
    pub steps: Vec<PlanStep>,
}

/// The user asked to stop all work in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptRequested {}

/// Why work ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model declared it done, and no check contradicts it.
    Done,
    /// The user stopped it.
    Stopped,
    /// The model could not be reached.
    Failed {
        /// What happened and what to do about it.
        error: String,
    },
    /// The step limit was reached, with nobody to ask.
    Limit,
    /// The budget was used up, with nobody to ask.
    Budget,
    /// Verification failed as often as allowed.
    Unproven,
    /// The deadline has come.
    Deadline,
}

/// What is known about the correctness of the work.
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

/// Work ended; the session is idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// Why.
    pub reason: EndReason,
    /// Whether the work was checked.
    #[serde(default)]
    pub proof: Proof,
    /// Prompts that no step has sent yet wait for the next one, instead of starting a step now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
}

/// A process took over the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnerChanged {
    /// The new owner.
    pub owner: Owner,
    /// How well it can isolate commands.
    pub isolation: Isolation,
    /// Its platform.
    pub platform: String,
    /// Its release.
    pub app: String,
    /// What a request may have used that was in progress when the previous process died.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub lost: Reserved,
    /// The workspace is only a folder of a git repository.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_repository: bool,
}

/// A checkpoint of the workspace was saved, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpointed {
    /// The state of the files; absent if it could not be saved.
    pub tree: Option<Tree>,
    /// The event after which the checkpoint was due.
    pub mark: Seq,
    /// What could not be saved, as text.
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

/// The user asked for a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindRequested {
    /// The events that still count after the rewind, complete; later events count too.
    pub spans: Vec<Span>,
    /// The state of the files to restore, if the rewind includes files.
    pub tree: Option<Tree>,
    /// What to rewind.
    pub scope: Scope,
    /// Also overwrite changes that others made since.
    pub force: bool,
    /// Where to rewind to, as the user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<RewindTo>,
}

/// The session was rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rewound {
    /// The events that still count, complete.
    pub spans: Vec<Span>,
    /// The state of the files now.
    pub tree: Option<Tree>,
    /// The state of the files before, to undo the rewind.
    pub undo: Option<Tree>,
    /// What was left alone, left out or could not be restored, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Some of what this session changed was not restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// The rewind failed; nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindFailed {
    /// Why.
    pub error: String,
}

/// How strongly the conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// Old tool output is shortened.
    Shorten,
    /// The older conversation is replaced by a summary.
    Summarise,
}

/// The conversation up to the end of a step is being compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionStarted {
    /// The last event it covers: always the end of a step, so that no call loses its result.
    pub upto: Seq,
    /// How strongly.
    pub strength: Strength,
    /// Whether the user asked for it.
    pub asked: bool,
    /// The part of the budget that is reserved for it.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub reserved: Reserved,
}

/// The new text of an old result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shortened {
    /// The call.
    pub call: CallId,
    /// What the model is sent from now on.
    pub shown: Arc<str>,
}

/// The conversation was compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compacted {
    /// The last event it covers.
    pub upto: Seq,
    /// Results that were shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<Shortened>,
    /// The summary that replaces everything up to `upto`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Arc<str>>,
    /// What must not depend on a model's summary, verbatim: the task, the person's answers, the
    /// plan, changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Arc<str>>,
    /// What the request for the summary used.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// The preamble from here on.
    pub preamble: Preamble,
    /// Bytes of conversation before.
    pub before: u64,
    /// Bytes of conversation after: fewer than before.
    pub after: u64,
}

/// The conversation could not be compacted; it is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionFailed {
    /// Why.
    pub error: String,
    /// What the request for a summary used.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// The summary started but was not completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What it may have used in addition, in that case.
    #[serde(default, skip_serializing_if = "Reserved::is_nothing")]
    pub lost: Reserved,
}

impl CompactionFailed {
    /// A failure with this reason that used nothing.
    #[must_use]
    pub fn because(error: String) -> Self {
        Self { error, usage: Usage::default(), incomplete: false, lost: Reserved::default() }
    }
    /// Interrupted by the user, or because the process died.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::because("interrupted".into())
    }
}

/// The result of one check before any work was done.
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
    /// Its output.
    pub shown: Arc<str>,
}

/// The checks were run on a copy of the files from before the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baselined {
    /// The files.
    pub tree: Tree,
    /// Hash of the commands to run.
    pub of: Hash,
    /// Each check, in order; empty if the copy could not be made.
    pub checks: Vec<Baseline>,
    /// Why there are none, or what the copy lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The session was given a title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Titled {
    /// The title.
    pub title: String,
}

/// Something the model should know has changed: instructions, tools, folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Noticed {
    /// The text.
    pub text: Arc<str>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "NoticeKind::is_info")]
    pub kind: NoticeKind,
    /// What a preamble would be made of now, if this reports a change of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

impl Noticed {
    /// A notice without further details.
    #[must_use]
    pub fn plain(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), kind: NoticeKind::Info, sources: Vec::new() }
    }
    /// A notice of this kind.
    #[must_use]
    pub fn of(kind: NoticeKind, text: impl Into<Arc<str>>) -> Self {
        Self { kind, ..Self::plain(text) }
    }
}

/// What a notice is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// It tells the model something that it should know.
    #[default]
    Info,
    /// The model makes no progress.
    Stalled,
    /// An answer without a call would have ended unfinished work.
    Unfinished,
    /// An answer was empty or cut off, and the work continues.
    NoAnswer,
    /// The model says that it is done, and is asked to check its work once more.
    SecondLook,
    /// It says how much time is left until the deadline.
    Time {
        /// The part of the time that has passed.
        percent: u8,
        /// Whether only one more request follows.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        last: bool,
    },
}

impl NoticeKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_info(&self) -> bool {
        *self == Self::Info
    }
}

events! {
    Created "created" 1 Must,
    Forked "forked" 1 Must,
    Moved "moved" 1 Must,
    Configured "configured" 1 Must,
    PreambleSet "preamble_set" 1 Must,
    Prompted "prompted" 1 Must,
    Continued "continued" 1 Must,
    StepStarted "step_started" 1 Must,
    OutboxWritten "outbox_written" 1 Must,
    Answered "answered" 1 Must,
    StepFailed "step_failed" 1 Must,
    TimerFired "timer_fired" 1 Must,
    Asked "asked" 1 Must,
    Replied "replied" 1 Must,
    Granted "granted" 1 Must,
    Revoked "revoked" 1 Must,
    Allowed "allowed" 1 Must,
    CheckCalled "check_called" 1 Must,
    Started "started" 1 Must,
    Finished "finished" 1 Must,
    Planned "planned" 1 May,
    InterruptRequested "interrupt_requested" 1 Must,
    Ended "ended" 1 Must,
    OwnerChanged "owner_changed" 1 Must,
    Checkpointed "checkpointed" 1 Must,
    Baselined "baselined" 1 May,
    RewindRequested "rewind_requested" 1 Must,
    Rewound "rewound" 1 Must,
    RewindFailed "rewind_failed" 1 Must,
    CompactionStarted "compaction_started" 1 Must,
    Compacted "compacted" 1 Must,
    CompactionFailed "compaction_failed" 1 Must,
    Titled "titled" 1 May,
    Noticed "noticed" 1 Must,
}
