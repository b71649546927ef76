//! A session as JSON for programs, one object per line. The schema is generated from these types.
//!
//! Invariant: `event` lines contain events as stored, so the log can be rebuilt from them,
//! including the chain.

use crate::view::exit::{Exit, ExitReason, Freshness};
use crate::view::output;
use crate::view::tally::{Check, Tally, Verdict, tail};
use dunnock_core::{State, Status};
use dunnock_proto::{Delta, QuestionView, Record, SessionId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// One line of `run --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// The version of this format.
    v: u8,
    /// The session.
    session: String,
    /// Sequence number of the last event that this line reflects.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum What {
    /// The first line.
    Session {
        /// The release.
        app: String,
        /// The folder.
        workspace: String,
        /// provider/model.
        model: String,
        /// The reasoning effort that the session asks for. The event `preamble_set` has the one
        /// that is sent, if the model has a setting for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        effort: Option<dunnock_proto::Effort>,
        /// How well commands are confined: A best, D not at all.
        isolation: dunnock_proto::Isolation,
    },
    /// An event, as it is stored: see docs/reference/events.md.
    Event {
        #[schemars(with = "Fact")]
        record: Record,
    },
    /// Live output that is never stored.
    Delta {
        /// One of text, reasoning, output, notice.
        delta: Value,
    },
    /// The session's state changed.
    State { state: Word },
    /// A question is waiting; answer it with dunnock answer, approve or decline.
    Question {
        /// Its name: q1.
        question: String,
        /// What it is about, as data: see the event `asked` in docs/reference/events.md.
        kind: Value,
        /// The same in words, for people.
        #[serde(flatten)]
        view: QuestionView,
        /// The tool and the exact arguments of the call that waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<WaitingCall>,
        /// Hash of what was shown.
        hash: String,
    },
    /// The last line.
    Ended {
        why: ExitReason,
        /// The exit code.
        exit: u8,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The answer, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Whether the answer was verified; an older field, see `verdict`.
        proof: Proof,
        /// Whether the answer was verified.
        verdict: Verdict,
        /// Each check of the last try.
        checks: Vec<Checked>,
        /// Model requests since the prompt.
        steps: u32,
        /// Tokens sent since the prompt.
        tokens_in: u64,
        /// Of those, tokens that the server had cached.
        tokens_cached: u64,
        /// Tokens received.
        tokens_out: u64,
        /// Of those, tokens of reasoning.
        tokens_reasoning: u64,
        /// US dollars; null while the price is unknown.
        usd: Option<f64>,
        /// US dollars of the whole session.
        session_usd: Option<f64>,
    },
}

/// A call that waits for approval.
#[derive(Debug, Serialize, JsonSchema)]
struct WaitingCall {
    /// Its name: 1.0.
    id: String,
    /// The tool.
    tool: String,
    /// The arguments, as the model wrote them.
    arguments: String,
}

/// A check of finished work.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// The command.
    pub(crate) command: String,
    /// Which try this was, from 1.
    pub(crate) tries: u32,
    /// Whether it passed.
    pub(crate) passed: bool,
    /// Its exit code.
    pub(crate) exit: Option<i32>,
    /// How long it took.
    pub(crate) ms: u64,
    /// Hash of the files that it checked.
    pub(crate) tree: Option<String>,
    /// The end of its output.
    pub(crate) output: String,
    /// It both passed and failed on the same files.
    pub(crate) flaky: bool,
    /// Whether it passed before the work, on a copy of the files; null if unknown.
    pub(crate) passed_before: Option<bool>,
}

impl Checked {
    pub(crate) fn of(tally: &Tally, check: &Check) -> Self {
        let end = check.end.as_ref();
        let before = tally.before(&check.command);
        Self {
            command: dunnock_tools::redacted(&check.command),
            tries: check.tried,
            passed: check.passed(),
            exit: end.and_then(|end| end.exit),
            ms: end.map_or(0, |end| end.ms),
            tree: check.tree().map(|tree| tree.0.clone()),
            output: end
                .map_or_else(String::new, |end| tail(&dunnock_tools::redacted(&end.shown), OUTPUT)),
            flaky: tally.flaky(&check.command),
            passed_before: before.map(|before| before.outcome == dunnock_proto::Outcome::Done),
        }
    }
}

/// Bytes of a check's output that are included.
const OUTPUT: usize = 2_000;

/// The envelope of a stored event and its body.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the schema of a record, which knows none itself")]
struct Fact {
    /// Its sequence number, from 1.
    seq: u64,
    /// Milliseconds since 1970.
    at: i64,
    /// What made it: "driver", "report" or "input ID".
    cause: String,
    /// Its name.
    kind: String,
    /// The version of its format.
    v: u16,
    /// Whether a reader that does not know this kind may continue.
    need: Need,
    /// The hash chain up to the previous event, in hexadecimal.
    prev: String,
    /// Its content.
    body: Value,
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    Working,
    Waiting,
    Done,
    Failed,
    Stopped,
    Limit,
}

impl From<Status> for Word {
    fn from(status: Status) -> Self {
        match status {
            Status::Working => Self::Working,
            Status::Waiting => Self::Waiting,
            Status::Done => Self::Done,
            Status::Failed => Self::Failed,
            Status::Stopped => Self::Stopped,
            Status::Limit => Self::Limit,
        }
    }
}

/// Whether the work was verified.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Proof {
    None,
    Proven,
    Failed,
    /// It was proven, but files have changed since.
    Stale,
}

/// Whether a reader must know an event to continue.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the schema of a record, which knows none itself")]
enum Need {
    Must,
    May,
}

/// The JSON schema of one line.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Line);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// Prints a session as JSON lines.
pub(crate) struct Lines {
    session: SessionId,
    state: Option<Word>,
}

impl Lines {
    pub(crate) fn new(session: SessionId) -> Self {
        Self { session, state: None }
    }

    fn print(&self, seq: Option<u64>, what: What) {
        let line = Line { v: 1, session: self.session.to_string(), seq, what };
        if let Ok(text) = serde_json::to_string(&line) {
            output::line(&text);
        }
    }

    pub(crate) fn begin(&mut self, s: &State, isolation: dunnock_proto::Isolation) {
        let workspace = s.workspace.as_deref().unwrap_or_default().to_owned();
        self.print(
            None,
            What::Session {
                app: crate::APP.into(),
                workspace,
                model: s.config.model.clone(),
                effort: s.config.effort,
                isolation,
            },
        );
    }

    pub(crate) fn fact(&mut self, s: &State, record: &Record) {
        self.print(Some(record.envelope.seq), What::Event { record: record.clone() });
        if record.envelope.kind == "asked"
            && let Some(asked) = s.questions.last()
        {
            let kind = serde_json::to_value(asked.kind.as_ref()).unwrap_or_default();
            let (question, hash, view) =
                (asked.id.to_string(), asked.hash.to_string(), asked.kind.view());
            let call = asked.kind.approval().and_then(|approval| s.call(approval.call));
            let call = call.map(|call| WaitingCall {
                id: call.id.to_string(),
                tool: call.part.tool.clone(),
                arguments: call.args().to_string(),
            });
            self.print(Some(s.seq), What::Question { question, kind, view, call, hash });
        }
        let state = Word::from(s.status());
        if self.state != Some(state) {
            self.state = Some(state);
            self.print(Some(s.seq), What::State { state });
        }
    }

    pub(crate) fn delta(&mut self, delta: &Delta) {
        if let Ok(delta) = serde_json::to_value(delta) {
            self.print(None, What::Delta { delta });
        }
    }

    pub(crate) fn end(&mut self, s: &State, tally: &Tally, end: &Exit, fresh: Freshness) {
        let proof = match s.proof {
            _ if fresh == Freshness::Stale => Proof::Stale,
            dunnock_proto::Proof::None => Proof::None,
            dunnock_proto::Proof::Proven => Proof::Proven,
            dunnock_proto::Proof::Failed => Proof::Failed,
        };
        let why = end.why;
        let answer = (!tally.answer.is_empty()).then(|| tally.answer.clone());
        let (exit, error, steps) = (end.exit, end.error.clone(), tally.steps);
        let used = tally.cost.usage;
        self.print(
            Some(s.seq),
            What::Ended {
                why,
                exit,
                error,
                answer,
                proof,
                verdict: tally.verdict(s, fresh),
                checks: tally.checks().map(|check| Checked::of(tally, check)).collect(),
                steps,
                tokens_in: used.input,
                tokens_cached: used.cached,
                tokens_out: used.output,
                tokens_reasoning: used.reasoning,
                usd: tally.cost.usd(),
                session_usd: tally.total.usd(),
            },
        );
    }
}
