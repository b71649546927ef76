//! The state of a session, as far as decisions need it.
//!
//! Invariant: its size does not grow with the length of the log, so copying it for a decision costs
//! the same at step 10,000 as at step 10. Old calls, texts and results are in the log and the
//! transcript, not here.

use dunnock_proto::{
    Access, At, CallId, CallPart, Class, Config, EndReason, Hash, HostSet, Isolation,
    MissingNetwork, OutboxWritten, Owner, PlanStep, Preamble, Proof, QuestionId, QuestionKind,
    Recovery, Role, Seq, ServerTool, Source, Span, Step, Strength, Tree,
};
use dunnock_proto::{Mode, Reserved, Rule, Sandbox, Scope, Usage};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The phase of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing to do.
    #[default]
    Rest,
    /// A step is due, unless something blocks it: a question, a missing preamble, a time to wait
    /// for.
    Ready,
    /// The model is being asked.
    Thinking,
    /// The calls of its answer are being processed.
    Acting,
    /// The conversation is being compacted.
    Compacting {
        /// The last event covered.
        upto: Seq,
        /// How strongly.
        strength: Strength,
        /// Whether a step is due afterwards.
        due: bool,
    },
    /// Files are being restored.
    Rewinding {
        /// The event that asked for it; it identifies the effect.
        asked: Seq,
        /// The state to restore.
        tree: Tree,
        /// The events that will still count.
        spans: Arc<Vec<Span>>,
        /// Also overwrite changes by others.
        force: bool,
    },
}

/// The name of a [`Phase`], for tables and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "documented at Phase")]
pub enum PhaseName {
    Rest,
    Ready,
    Thinking,
    Acting,
    Compacting,
    Rewinding,
}

impl Phase {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> PhaseName {
        match self {
            Self::Rest => PhaseName::Rest,
            Self::Ready => PhaseName::Ready,
            Self::Thinking => PhaseName::Thinking,
            Self::Acting => PhaseName::Acting,
            Self::Compacting { .. } => PhaseName::Compacting,
            Self::Rewinding { .. } => PhaseName::Rewinding,
        }
    }
}

/// The progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It has not been allowed yet.
    Asked,
    /// It may run.
    Allowed,
    /// A process is running it.
    Started(Owner),
    /// It ended.
    Finished {
        /// Whether it succeeded.
        ok: bool,
    },
}

/// A call of the current answer, or a check by the harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Our id for the call.
    pub id: CallId,
    /// As the model wrote it.
    pub part: Arc<CallPart>,
    /// Whether it reads or writes.
    pub class: Class,
    /// What to do with it after a crash.
    pub recovery: Recovery,
    /// What the tool means to the session; `None` if the preamble has no such tool.
    pub role: Option<Role>,
    /// Its progress.
    pub stage: Stage,
    /// The arguments, if the person changed them.
    pub edited: Option<Arc<str>>,
    /// Hash of the tool and arguments that were allowed.
    pub allowed: Option<Hash>,
    /// The question that the person answered about it, and its hash; gone once the call starts.
    pub answered: Option<(QuestionId, Hash)>,
    /// How commands were isolated when it was allowed.
    pub level: Option<Isolation>,
    /// What it was granted beyond the sandbox.
    pub access: Access,
    /// What was known of the server's tool that it uses.
    pub server_tool: Option<Arc<ServerTool>>,
    /// What it starts keeps running after the call.
    pub leaves_process: bool,
    /// It only waits for such a process.
    pub polls: bool,
    /// It succeeded after a while: the model may be waiting for something.
    pub waited: bool,
    /// Hash of the outcome and of the text for the model.
    pub result: Option<Hash>,
    /// Whether it is a check that changed the files it checked.
    pub moved: bool,
    /// Whether it is a check made by the harness.
    pub harness: bool,
}

impl Call {
    /// A call that is not yet allowed.
    #[must_use]
    pub fn new(
        id: CallId,
        part: Arc<CallPart>,
        class: Class,
        recovery: Recovery,
        role: Option<Role>,
    ) -> Self {
        Self {
            id,
            part,
            class,
            recovery,
            role,
            stage: Stage::Asked,
            edited: None,
            allowed: None,
            answered: None,
            level: None,
            access: Access::NOTHING,
            server_tool: None,
            leaves_process: false,
            polls: false,
            waited: false,
            result: None,
            moved: false,
            harness: false,
        }
    }
    /// Whether it has ended.
    #[must_use]
    pub fn finished(&self) -> bool {
        matches!(self.stage, Stage::Finished { .. })
    }
    /// Whether it may change the workspace.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self.class {
            Class::Read => false,
            Class::Edit | Class::Command => true,
        }
    }
    /// The arguments it runs with.
    #[must_use]
    pub fn args(&self) -> &Arc<str> {
        self.edited.as_ref().unwrap_or(&self.part.args)
    }
    /// Hash of the tool and arguments: what an approval covers.
    #[must_use]
    pub fn hash(&self) -> Hash {
        hash_call(&self.part.tool, self.args())
    }
    /// The same hash with these arguments, if the person changed them.
    #[must_use]
    pub fn hash_with(&self, args: Option<&Arc<str>>) -> Hash {
        hash_call(&self.part.tool, args.unwrap_or(self.args()))
    }
}

/// The hash of a tool with its arguments.
pub(crate) fn hash_call(tool: &str, args: &str) -> Hash {
    Hash::of_parts(&[tool.as_bytes(), args.as_bytes()])
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The id of the question.
    pub id: QuestionId,
    /// What it is about, with everything that is shown.
    pub kind: Arc<QuestionKind>,
    /// Hash of the question.
    pub hash: Hash,
}

/// The process that drives the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerState {
    /// The process.
    pub owner: Owner,
    /// How well it isolates commands.
    pub level: Isolation,
}

/// What has been used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens in and out.
    pub tokens: u64,
    /// Millionths of a US dollar, where the price is known.
    pub micros: u64,
    /// Milliseconds of model and tool time.
    pub ms: u64,
}

/// How to undo the last rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The events that counted before it.
    pub spans: Vec<Span>,
    /// The files before it.
    pub tree: Option<Tree>,
    /// What it rewound.
    pub scope: Scope,
    /// The previous one, until this rewind is complete: it is reinstated if this rewind fails.
    pub previous: Option<Arc<Self>>,
}

/// An event that this release cannot read, so that it must not write after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The position of the event.
    pub seq: Seq,
    /// The kind of event.
    pub kind: String,
    /// Why it could not be read.
    pub why: String,
    /// The release that wrote the session last.
    pub app: Arc<str>,
}

/// Whether the last answers made progress since the last prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Hashes of the last answers: files before, calls, results.
    pub recent: Arc<Vec<Hash>>,
    /// How many answers in a row repeated a recent one.
    pub same: u32,
    /// How often the model was warned.
    pub warnings: u32,
}

/// What was done for the last prompts, since the session was last idle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Task {
    /// The prompts.
    pub prompts: Arc<Vec<Arc<str>>>,
    /// Whether a command ran or a file was edited.
    pub acted: bool,
    /// The model's plan.
    pub plan: Arc<Vec<PlanStep>>,
    /// Files that edit tools left.
    pub edited: Arc<BTreeSet<String>>,
    /// How often an answer without a call was sent back.
    pub nudges: u8,
    /// How many of the last answers were empty or cut off.
    pub no_answers: u8,
    /// Whether the model was asked to look at its work a second time.
    pub looked: bool,
    /// The part of the time until the deadline, in percent, in the last notice about it.
    pub time_told: Option<u8>,
    /// Whether the next request is the last one.
    pub last_told: bool,
    /// Whether that request was made.
    pub last_made: bool,
}

impl Task {
    /// The steps of the plan that are not done.
    pub fn open_steps(&self) -> impl Iterator<Item = &str> {
        let open = |step: &&PlanStep| matches!(step.state.as_str(), "" | "pending" | "active");
        self.plan.iter().filter(open).map(|step| step.text.as_str())
    }
    /// Whether no step of the plan is open.
    #[must_use]
    pub fn plan_done(&self) -> bool {
        self.open_steps().next().is_none()
    }
}

/// A call that had no access to something in the network: the next call of the same programs asks
/// for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastMissing {
    /// Its arguments.
    pub args: Arc<str>,
    /// What it had no access to.
    pub missing: MissingNetwork,
}

/// A folded session. Only events change the fields; see [`apply`](crate::apply()).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The number of events so far.
    pub seq: Seq,
    /// The last event that a user caused: interfaces compare with it.
    pub version: Seq,
    /// Set when a newer release wrote an event that must be understood.
    pub read_only: Option<Arc<Unknown>>,
    /// The folder; `None` before the first event.
    pub workspace: Option<Arc<str>>,
    /// The release that last wrote to the session.
    pub app: Arc<str>,
    /// The title: given by the user, or the first line of the first prompt.
    pub title: Option<Arc<str>>,
    /// Settings.
    pub config: Arc<Config>,
    /// The preamble in use.
    pub preamble: Option<Arc<Preamble>>,
    /// A budget was set, but the preamble requests answers without a limit: it must be rendered
    /// again.
    pub renew: bool,
    /// The model whose server refused the reasoning effort.
    pub effort_refused_by: Option<Arc<str>>,
    /// The preamble's sources as the model knows them: changes it knows about are not reported
    /// again.
    pub sources: Arc<Vec<Source>>,
    /// Rules that the person granted.
    pub grants: Arc<Vec<Rule>>,
    /// Whether a process was started with more access than the sandbox.
    pub outside: bool,
    /// Whether a call could read a secret.
    pub read_secret: bool,
    /// The last call that had no access to something in the network.
    pub missing_network: Option<LastMissing>,
    /// Whether a call has left something running for the current owner.
    pub left_process: bool,
    /// Files as the model last saw them: an edit of a file that has changed since is refused.
    pub seen: Arc<BTreeMap<String, Hash>>,
    /// Whether the person trusts the folder's own settings, commands and scripts.
    pub trust: Option<(Hash, bool)>,
    /// The process that drives the session.
    pub owner: Option<OwnerState>,
    /// The strongest isolation that any process had that drove the session.
    pub best_level: Option<Isolation>,
    /// Whether the workspace is only a folder of a git repository, for the current owner.
    pub in_repository: bool,
    /// The phase of the loop.
    pub phase: Phase,
    /// Whether an interrupt was requested and work has not stopped yet.
    pub stopping: bool,
    /// The last step that was started.
    pub step: Step,
    /// The last request that was written for the user to copy.
    pub outbox: Option<Arc<OutboxWritten>>,
    /// Steps left until the limit.
    pub steps_left: u32,
    /// Prompts that no step has sent to the model yet.
    pub unseen: u32,
    /// Calls of the last answer, and checks after it, in order.
    pub calls: Vec<Call>,
    /// Open questions, oldest first.
    pub questions: Vec<Question>,
    /// The number of questions so far.
    pub asked: u32,
    /// When the next attempt at a step is due.
    pub wake: Option<At>,
    /// Images in the conversation since the last compaction.
    pub images: u32,
    /// What has been used so far.
    pub spent: Spent,
    /// The amount reserved for the request in progress.
    pub reserved: Reserved,
    /// How often the budget was extended.
    pub extended: u64,
    /// Whether the day's budget is waived until the session is idle.
    pub day_waived: bool,
    /// Estimated tokens of the next request, without the preamble.
    pub context: u64,
    /// Ends of the last steps, where the conversation can be compacted, each with the value of
    /// `context` at that time.
    pub bounds: Vec<(Seq, u64)>,
    /// The last compaction since the last answer, failed or not: the next one is stronger.
    pub compacted: Option<Strength>,
    /// Whether the last request did not fit.
    pub overflowed: bool,
    /// How many requests did not fit since the last answer.
    pub overflows: u8,
    /// Whether a prompt arrived since the last step: a checkpoint is due before work on it.
    pub fresh: bool,
    /// The event after which a checkpoint is due.
    pub dirty: Option<Seq>,
    /// The files of the last checkpoint.
    pub tree: Option<Tree>,
    /// The files of the first checkpoint, before any work.
    pub first: Option<Tree>,
    /// Hash of the checks that were run on those, or could not be.
    pub baselined: Option<Hash>,
    /// Visible ranges before `since`.
    pub spans: Arc<Vec<Span>>,
    /// Everything from here on is visible.
    pub since: Seq,
    /// How to undo the last rewind.
    pub undo: Option<Arc<Undo>>,
    /// Attempts at verification since the last prompt.
    pub tried: u32,
    /// The result of the last attempt.
    pub proof: Proof,
    /// Whether the model makes progress from step to step.
    pub progress: Progress,
    /// What was done for the last prompts.
    pub task: Task,
    /// How the work last ended.
    pub last: Option<Arc<EndReason>>,
}

impl State {
    /// Whether a call was allowed under better isolation than there is now.
    #[must_use]
    pub fn weaker(&self, call: &Call) -> bool {
        call.class == dunnock_proto::Class::Command
            && call.level.is_some_and(|level| self.level() > level)
    }
    /// Whether somebody can answer a question.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.config.attended && !self.config.unattended
    }
    /// The level that commands had before, if they would be isolated less well at `now` and the
    /// user has not accepted that: by turning the sandbox off, or by requiring a level that is met.
    #[must_use]
    pub fn lowered_at(&self, now: Isolation) -> Option<Isolation> {
        let accepted = match self.config.sandbox {
            Sandbox::Off => true,
            Sandbox::Require(least) => now <= least,
            Sandbox::Auto => false,
        };
        self.best_level.filter(|best| now > *best && !accepted)
    }
    /// The same for the current owner.
    #[must_use]
    pub fn lowered(&self) -> Option<Isolation> {
        self.lowered_at(self.level())
    }
    /// Whether commands run without a sandbox although the user did not turn it off.
    #[must_use]
    pub fn lacks_sandbox(&self) -> bool {
        self.level() == Isolation::D && self.config.sandbox != Sandbox::Off
    }
    /// Whether commands reach only the hosts that are approved from now on: a secret may have been
    /// read, and somebody is asked.
    #[must_use]
    pub fn closes_hosts(&self) -> bool {
        let asks =
            self.config.mode != Mode::All || self.lowered().is_some() || self.lacks_sandbox();
        self.read_secret && asks
    }
    /// Hosts that every command in the sandbox may reach now.
    #[must_use]
    pub fn open_hosts(&self) -> HostSet {
        if self.closes_hosts() { HostSet::NONE } else { self.config.hosts.clone() }
    }
    /// How well commands are isolated: as well as the driver can, unless the user turned the
    /// sandbox off.
    #[must_use]
    pub fn level(&self) -> Isolation {
        match self.config.sandbox {
            Sandbox::Off => Isolation::D,
            Sandbox::Auto | Sandbox::Require(_) => {
                self.owner.map_or(Isolation::D, |current| current.level)
            }
        }
    }
    /// The call with this id, if it belongs to the current answer.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.calls.iter().find(|c| c.id == id)
    }
    /// The calls that a process has started and that have not ended.
    #[must_use]
    pub fn started(&self) -> Vec<CallId> {
        let begun = |c: &&Call| matches!(c.stage, Stage::Started(_));
        self.calls.iter().filter(begun).map(|c| c.id).collect()
    }
    /// The question whether to continue after calls with an unknown outcome: in a mode that asks,
    /// about those that cannot simply be repeated.
    #[must_use]
    pub fn asks_to_continue(
        &self,
        unknown: impl IntoIterator<Item = CallId>,
    ) -> Option<QuestionKind> {
        let asks = !self.stopping
            && !self.config.unattended
            && !matches!(self.config.mode, Mode::Auto | Mode::All);
        let repeatable = |id: CallId| self.call(id).is_some_and(|c| c.recovery == Recovery::Repeat);
        let calls: Vec<CallId> = unknown.into_iter().filter(|id| !repeatable(*id)).collect();
        (asks && !calls.is_empty()).then_some(QuestionKind::Unknown { calls })
    }
    /// The question with this id, if it is open.
    #[must_use]
    pub fn question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.iter().find(|q| q.id == id)
    }
    /// Whether any call has not ended.
    #[must_use]
    pub fn calls_open(&self) -> bool {
        self.calls.iter().any(|c| !c.finished())
    }
    /// Whether the next step is due, blocked or not.
    #[must_use]
    pub fn due(&self) -> bool {
        match self.phase {
            Phase::Ready => true,
            Phase::Acting => !self.calls_open(),
            Phase::Rest | Phase::Thinking | Phase::Compacting { .. } | Phase::Rewinding { .. } => {
                false
            }
        }
    }
    /// Whether the current preamble matches the current model and settings.
    #[must_use]
    pub fn preamble_fits(&self) -> bool {
        let wanted = &self.config;
        self.preamble.as_ref().is_some_and(|preamble| {
            // A setting that is empty, or that an older preamble does not record, counts as
            // unchanged.
            let profile = wanted.profile.is_empty() || wanted.profile == preamble.profile;
            let window =
                wanted.window.zip(preamble.window).is_none_or(|(wanted, known)| wanted == known);
            let effort = wanted.effort.zip(preamble.effort).is_none_or(|(a, b)| a == b.wanted);
            let level = preamble.level.is_none_or(|level| level == self.level());
            let files = preamble.reaches_machine == wanted.reaches_machine();
            let web = preamble.hosts == wanted.hosts && preamble.web_fetch == wanted.web_fetch;
            let servers = preamble.servers == wanted.servers;
            let settings = profile && effort && window && level && files && web && servers;
            preamble.model == wanted.model && settings && !self.renew
        })
    }
    /// Whether a request to the model is in progress.
    #[must_use]
    pub fn asks_model(&self) -> bool {
        match self.phase {
            Phase::Thinking | Phase::Compacting { strength: Strength::Summarise, .. } => true,
            Phase::Rest
            | Phase::Ready
            | Phase::Acting
            | Phase::Compacting { strength: Strength::Shorten, .. }
            | Phase::Rewinding { .. } => false,
        }
    }
    /// The request that waits for the chat's reply: nothing runs until it arrives.
    #[must_use]
    pub fn awaiting_reply(&self) -> Option<&OutboxWritten> {
        let thinking = self.phase == Phase::Thinking && !self.stopping;
        self.outbox.as_deref().filter(|handed| thinking && handed.step == self.step)
    }
    /// Whether this is a copy-and-paste session.
    #[must_use]
    pub fn via_bridge(&self) -> bool {
        self.preamble.as_ref().is_some_and(|preamble| preamble.via_bridge)
    }
    /// Whether anything is left to do, to stop or to answer.
    #[must_use]
    pub fn busy(&self) -> bool {
        self.phase != Phase::Rest || self.dirty.is_some() || !self.questions.is_empty()
    }
    /// Roughly how many tokens a text has.
    pub(crate) fn tokens(&self, text: &str) -> u64 {
        text.len() as u64 / self.token_bytes()
    }
    /// Bytes that count as one token.
    pub(crate) fn token_bytes(&self) -> u64 {
        self.config.token_bytes.max(1)
    }
    /// All events that still count.
    #[must_use]
    pub fn visible(&self) -> Vec<Span> {
        let mut spans = self.spans.as_ref().clone();
        if self.since <= self.seq {
            spans.push(Span { from: self.since, to: self.seq });
        }
        spans
    }
    /// What a request may have used beyond its known usage: the rest of its reservation.
    #[must_use]
    pub fn unknown_beyond(&self, usage: &Usage) -> Reserved {
        let known = self.config.price.map_or(0, |price| price.of(usage));
        Reserved {
            tokens: self.reserved.tokens.saturating_sub(usage.input.saturating_add(usage.output)),
            micros: self.reserved.micros.saturating_sub(known),
        }
    }
    /// The files on which the checks must still be run before they are run on finished work, if
    /// any.
    #[must_use]
    pub fn baseline_due(&self) -> Option<&Tree> {
        let wanted = self.config.baseline && !self.config.verify.is_empty() && !self.stopping;
        let works = match self.phase {
            Phase::Ready | Phase::Thinking | Phase::Acting | Phase::Compacting { .. } => true,
            Phase::Rest | Phase::Rewinding { .. } => false,
        };
        self.first.as_ref().filter(|_| wanted && works && self.baselined != Some(self.checks()))
    }
    /// Hash of the commands that must pass.
    #[must_use]
    pub fn checks(&self) -> Hash {
        let parts: Vec<&[u8]> = self.config.verify.iter().map(String::as_bytes).collect();
        Hash::of_parts(&parts)
    }
    /// What a step started now would reserve.
    #[must_use]
    pub fn reserve(&self) -> Reserved {
        if self.via_bridge() {
            return Reserved::default(); // the usage of a chat cannot be known here
        }
        let preamble = self.preamble.as_ref().map_or(0, |h| h.bytes / self.token_bytes());
        let input = preamble.saturating_add(self.context);
        // As the request says; if it does not, a small window has no room for a long answer.
        let asked = self.preamble.as_ref().and_then(|preamble| preamble.max_output);
        let room = self.window().map_or(u64::MAX, |window| window / 4);
        let output = asked.unwrap_or(self.config.max_output.min(room));
        // It is not known in advance whether the server caches the input and charges for that.
        let micros = self.config.price.map_or(0, |p| {
            let sent = input.saturating_mul(p.input.max(p.written));
            sent.saturating_add(output.saturating_mul(p.output)).div_ceil(1_000_000)
        });
        Reserved { tokens: input.saturating_add(output), micros }
    }

    /// The model's context window in tokens, from the settings or the preamble.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.config.window.or_else(|| self.preamble.as_ref().and_then(|preamble| preamble.window))
    }
}
