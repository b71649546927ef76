//! What is true of a session, as far as deciding needs it.
//!
//! Invariant: its size does not grow with the length of the log, so copying it for a decision costs the same at step
//! 10,000 as at step 10. Old calls, texts and results are in the log and the transcript, not here.

use dunnock_proto::{
    Access, At, CallId, CallPart, Class, Config, EndReason, Hash, Isolation, OutboxWritten, Owner, Preamble, Proof,
    QuestionId, QuestionKind, Recovery, Role, Seq, Source, Span, Step, Strength, Tree,
};
use dunnock_proto::{Reserved, Rule, Sandbox, Scope, Usage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the loop stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing to do.
    #[default]
    Rest,
    /// A step is due, unless something holds it: a question, a missing preamble, a time to wait for.
    Ready,
    /// The model is being asked.
    Thinking,
    /// The calls of its answer are being dealt with.
    Acting,
    /// Conversation is being compacted.
    Compacting {
        /// The last event covered.
        upto: Seq,
        /// How hard.
        strength: Strength,
        /// Whether a step is due afterwards.
        due: bool,
    },
    /// Files are going back.
    Rewinding {
        /// The event that asked for it: names the effect.
        asked: Seq,
        /// Where to.
        tree: Tree,
        /// What will count as said.
        spans: Arc<Vec<Span>>,
        /// Also what others changed.
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

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nobody has said that it may run.
    Asked,
    /// It may run.
    Allowed,
    /// A process runs it.
    Started(Owner),
    /// It ended; whether it did what it should.
    Finished {
        /// It did.
        ok: bool,
    },
}

/// A call of the answer in work, or a check of the harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Our name for it.
    pub id: CallId,
    /// As the model wrote it.
    pub part: Arc<CallPart>,
    /// Reader or writer.
    pub class: Class,
    /// After a crash.
    pub recovery: Recovery,
    /// Whether the session itself answers it; `None` for a tool that the preamble does not have.
    pub role: Option<Role>,
    /// How far it has come.
    pub stage: Stage,
    /// The arguments, where the person changed them.
    pub edited: Option<Arc<str>>,
    /// Hash of the tool and arguments that were allowed.
    pub allowed: Option<Hash>,
    /// How commands were confined when that was said.
    pub level: Option<Isolation>,
    /// What it was granted beyond the sandbox.
    pub access: Access,
    /// What it starts keeps running after it.
    pub leaves_process: bool,
    /// It only waits for such a process.
    pub polls: bool,
    /// Of how it ended and what the model was told of it.
    pub result: Option<Hash>,
    /// A check that changed the files it was to check.
    pub moved: bool,
    /// A check made by the harness.
    pub harness: bool,
}

impl Call {
    /// A call that is not yet allowed.
    #[must_use]
    pub fn new(id: CallId, part: Arc<CallPart>, class: Class, recovery: Recovery, role: Option<Role>) -> Self {
        Self {
            id,
            part,
            class,
            recovery,
            role,
            stage: Stage::Asked,
            edited: None,
            allowed: None,
            level: None,
            access: Access::NOTHING,
            leaves_process: false,
            polls: false,
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
    /// What an approval binds.
    #[must_use]
    pub fn hash(&self) -> Hash {
        hash_call(&self.part.tool, self.args())
    }
    /// The same, if the person changed the arguments to these.
    #[must_use]
    pub fn hash_with(&self, args: Option<&Arc<str>>) -> Hash {
        hash_call(&self.part.tool, args.unwrap_or(self.args()))
    }
}

/// The hash of a tool with its arguments.
pub(crate) fn hash_call(tool: &str, args: &str) -> Hash {
    Hash::of_parts(&[tool.as_bytes(), args.as_bytes()])
}

/// A question that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name.
    pub id: QuestionId,
    /// What it is about, with everything that is shown.
    pub kind: Arc<QuestionKind>,
    /// Hash of all that.
    pub hash: Hash,
}

/// Who drives the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerState {
    /// The process.
    pub owner: Owner,
    /// How well it confines commands.
    pub level: Isolation,
}

/// What was used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens in and out.
    pub tokens: u64,
    /// Millionths of a US dollar, where the price is known.
    pub micros: u64,
    /// Milliseconds of model and tool time.
    pub ms: u64,
}

/// The way back from the last rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// What counted as said before it.
    pub spans: Vec<Span>,
    /// The files before it.
    pub tree: Option<Tree>,
    /// What it took back.
    pub scope: Scope,
    /// The one before, until this one is done: should it fail, that one stands.
    pub previous: Option<Arc<Self>>,
}

/// An event that this release cannot read and must not write after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Where.
    pub seq: Seq,
    /// Its name.
    pub kind: String,
    /// Why it could not be read.
    pub why: String,
    /// The release that wrote the session last.
    pub app: Arc<str>,
}

/// Whether the last answers did anything new since the last prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// What the last answers came to: files before, calls, results.
    pub recent: Arc<Vec<Hash>>,
    /// How many of the very last came to what a recent one had come to.
    pub same: u32,
    /// The model was told.
    pub warned: bool,
}

/// A session, folded. The fields are events' doing only; see [`apply`](crate::apply()).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// Events so far.
    pub seq: Seq,
    /// The last event that a person caused: what a door compares with.
    pub version: Seq,
    /// Set when a later release wrote something that must be understood.
    pub read_only: Option<Arc<Unknown>>,
    /// The folder; `None` before the first event.
    pub workspace: Option<Arc<str>>,
    /// The release that wrote last.
    pub app: Arc<str>,
    /// Given, or the first line of the first prompt.
    pub title: Option<Arc<str>>,
    /// Settings.
    pub config: Arc<Config>,
    /// The preamble in use.
    pub preamble: Option<Arc<Preamble>>,
    /// A budget was set, and the preamble asks for answers without a bound: it must be made again.
    pub renew: bool,
    /// What the model knows of what its preamble was made of: what was noticed since is not told again.
    pub sources: Arc<Vec<Source>>,
    /// Rules that the person granted.
    pub grants: Arc<Vec<Rule>>,
    /// A process was started that was let have more than the box.
    pub outside: bool,
    /// Files as the model last saw them: an edit of one that is other by now is refused.
    pub seen: Arc<BTreeMap<String, Hash>>,
    /// What the person said of what the folder brings.
    pub trust: Option<(Hash, bool)>,
    /// Who drives.
    pub owner: Option<OwnerState>,
    /// Where the loop stands.
    pub phase: Phase,
    /// An interrupt was asked for and work has not stopped yet.
    pub stopping: bool,
    /// The last step that began.
    pub step: Step,
    /// The last request that was given to a person to carry.
    pub outbox: Option<Arc<OutboxWritten>>,
    /// Steps until the limit.
    pub steps_left: u32,
    /// Prompts that no step has told the model yet.
    pub unseen: u32,
    /// Calls of the last answer, and checks after it, in order.
    pub calls: Vec<Call>,
    /// Questions that stand, oldest first.
    pub questions: Vec<Question>,
    /// Questions so far.
    pub asked: u32,
    /// When the next try at a step is due.
    pub wake: Option<At>,
    /// Used so far.
    pub spent: Spent,
    /// Held back for the request under way.
    pub reserved: Reserved,
    /// How often the budget was extended.
    pub extended: u64,
    /// The day's budget was waived until the session rests.
    pub day_waived: bool,
    /// Estimated tokens of the next request, without preamble.
    pub context: u64,
    /// Ends of the last steps, where conversation can be compacted, each with what `context` was then.
    pub bounds: Vec<(Seq, u64)>,
    /// The last compaction since the last answer, failed or not: the next one is stronger.
    pub compacted: Option<Strength>,
    /// The last request did not fit.
    pub overflowed: bool,
    /// How many did not since the last answer.
    pub overflows: u8,
    /// A prompt came since the last step: files must be kept before work on it.
    pub fresh: bool,
    /// The event since which the files must be kept.
    pub dirty: Option<Seq>,
    /// The files as last kept.
    pub tree: Option<Tree>,
    /// The files as first kept: before any work.
    pub first: Option<Tree>,
    /// Of the checks that were run on those, or could not be.
    pub baselined: Option<Hash>,
    /// Visible ranges before `since`.
    pub spans: Arc<Vec<Span>>,
    /// Everything from here on is visible.
    pub since: Seq,
    /// The way back from the last rewind.
    pub undo: Option<Arc<Undo>>,
    /// Tries at verification since the last prompt.
    pub tried: u32,
    /// What the last of them said.
    pub proof: Proof,
    /// Whether anything changes from step to step.
    pub progress: Progress,
    /// How work last ended.
    pub last: Option<Arc<EndReason>>,
}

impl State {
    /// Whether a call was allowed when commands were confined better than they are now.
    #[must_use]
    pub fn weaker(&self, call: &Call) -> bool {
        call.class == dunnock_proto::Class::Command && call.level.is_some_and(|level| self.level() > level)
    }
    /// How well commands are confined: as the driver can, unless the person wants no box.
    #[must_use]
    pub fn level(&self) -> Isolation {
        match self.config.sandbox {
            Sandbox::Off => Isolation::D,
            Sandbox::Auto | Sandbox::Require(_) => self.owner.map_or(Isolation::D, |seat| seat.level),
        }
    }
    /// The call of that name, if it is of the answer in work.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.calls.iter().find(|c| c.id == id)
    }
    /// The question of that name, if it stands.
    #[must_use]
    pub fn question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.iter().find(|q| q.id == id)
    }
    /// Whether a call has not ended.
    #[must_use]
    pub fn calls_open(&self) -> bool {
        self.calls.iter().any(|c| !c.finished())
    }
    /// Whether the next step is due, held or not.
    #[must_use]
    pub fn due(&self) -> bool {
        match self.phase {
            Phase::Ready => true,
            Phase::Acting => !self.calls_open(),
            Phase::Rest | Phase::Thinking | Phase::Compacting { .. } | Phase::Rewinding { .. } => false,
        }
    }
    /// Whether the preamble in use is of the model in use.
    #[must_use]
    pub fn preamble_fits(&self) -> bool {
        let wanted = &self.config;
        self.preamble.as_ref().is_some_and(|preamble| {
            // What the person does not say, and what an older preamble does not know, is as it was.
            let profile = wanted.profile.is_empty() || wanted.profile == preamble.profile;
            let window = wanted.window.zip(preamble.window).is_none_or(|(wanted, known)| wanted == known);
            preamble.model == wanted.model && profile && window && !self.renew
        })
    }
    /// Whether a request to the model is under way.
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
    /// The request that a person carries now: nothing is under way until the answer is there.
    #[must_use]
    pub fn carried(&self) -> Option<&OutboxWritten> {
        let thinking = self.phase == Phase::Thinking && !self.stopping;
        self.outbox.as_deref().filter(|handed| thinking && handed.step == self.step)
    }
    /// Whether requests are carried by a person.
    #[must_use]
    pub fn via_bridge(&self) -> bool {
        self.preamble.as_ref().is_some_and(|preamble| preamble.via_bridge)
    }
    /// Whether there is anything left to do, to stop or to answer.
    #[must_use]
    pub fn busy(&self) -> bool {
        self.phase != Phase::Rest || self.dirty.is_some() || !self.questions.is_empty()
    }
    /// Roughly how many tokens a text is.
    pub(crate) fn tokens(&self, text: &str) -> u64 {
        text.len() as u64 / self.token_bytes()
    }
    /// Bytes that count as one token.
    pub(crate) fn token_bytes(&self) -> u64 {
        self.config.token_bytes.max(1)
    }
    /// Everything that counts as said.
    #[must_use]
    pub fn visible(&self) -> Vec<Span> {
        let mut spans = self.spans.as_ref().clone();
        if self.since <= self.seq {
            spans.push(Span { from: self.since, to: self.seq });
        }
        spans
    }
    /// What a request may have used beyond what is known of it: all that was held back for it.
    #[must_use]
    pub fn unknown_beyond(&self, usage: &Usage) -> Reserved {
        let known = self.config.price.map_or(0, |price| price.of(usage));
        Reserved {
            tokens: self.reserved.tokens.saturating_sub(usage.input.saturating_add(usage.output)),
            micros: self.reserved.micros.saturating_sub(known),
        }
    }
    /// The files on which the checks must be run before they are run on finished work, if they must.
    #[must_use]
    pub fn baseline_due(&self) -> Option<&Tree> {
        let wanted = self.config.baseline && !self.config.verify.is_empty() && !self.stopping;
        let works = match self.phase {
            Phase::Ready | Phase::Thinking | Phase::Acting | Phase::Compacting { .. } => true,
            Phase::Rest | Phase::Rewinding { .. } => false,
        };
        self.first.as_ref().filter(|_| wanted && works && self.baselined != Some(self.checks()))
    }
    /// Of the commands that must pass.
    #[must_use]
    pub fn checks(&self) -> Hash {
        let parts: Vec<&[u8]> = self.config.verify.iter().map(String::as_bytes).collect();
        Hash::of_parts(&parts)
    }
    /// What a step started now would hold back.
    #[must_use]
    pub fn reserve(&self) -> Reserved {
        if self.via_bridge() {
            return Reserved::default(); // what a chat counts, nobody here can know
        }
        let preamble = self.preamble.as_ref().map_or(0, |h| h.bytes / self.token_bytes());
        let input = preamble.saturating_add(self.context);
        // As the request says; where it says nothing, a small window has no room for a long answer.
        let asked = self.preamble.as_ref().and_then(|preamble| preamble.max_output);
        let room = self.window().map_or(u64::MAX, |window| window / 4);
        let output = asked.unwrap_or(self.config.max_output.min(room));
        // Whether the server puts what is sent into a cache, and charges for it, is not known before.
        let micros = self.config.price.map_or(0, |p| {
            let sent = input.saturating_mul(p.input.max(p.written));
            sent.saturating_add(output.saturating_mul(p.output)).div_ceil(1_000_000)
        });
        Reserved { tokens: input.saturating_add(output), micros }
    }

    /// Tokens that the model holds: as the person said, or as the preamble knows.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.config.window.or_else(|| self.preamble.as_ref().and_then(|preamble| preamble.window))
    }
}
