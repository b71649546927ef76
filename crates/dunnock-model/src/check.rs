//! `dunnock models check`: a short series of probes that finds out how best to use a model.
//!
//! Each probe requests one thing and judges only the response, never the model's name. The result
//! is a [`Profile`], which every session with that model uses.

use crate::ask::PromptRequest;
use crate::capabilities::Capabilities;
use crate::client::{ModelClient, callable};
use crate::dialects::{Callable, Dialect, schema};
use crate::preamble::{BYTES_PER_TOKEN, PreambleInputs};
use crate::profile::{EditFormat, Profile, Size};
use crate::wire::Wire;
use dunnock_core::patch::{Op, Patch};
use dunnock_ports::{CancellationToken, DeltaSink};
use dunnock_proto::{
    Answered, CallId, Config, Delta, Failure, Hash, Message, Part, Step, StepFailed,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time limit for one probe.
const ONE: Duration = Duration::from_secs(40);
/// Time limit for the first probe: a local server may have to load its model.
const FIRST: Duration = Duration::from_secs(180);
/// Time limit for the whole check: no probe starts after it.
const ALL: Duration = Duration::from_secs(150);
/// The largest window, in tokens, for which a prompt is sent just to see it rejected.
const LARGE: u64 = 70_000;
/// Models with a smaller window, in tokens, get the small profile.
const ROOMY: u64 = 16_000;

/// The verdict of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Yes,
    /// It does not.
    No,
    /// It was not tested.
    Untried,
}

/// The result of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// A short name.
    pub name: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The details, in words.
    pub said: String,
    /// How long it took.
    pub took: Duration,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The profile that sessions will use.
    pub profile: Profile,
    /// The probes behind it.
    pub probes: Vec<Probe>,
}

/// A running check.
struct Check<'a> {
    client: &'a ModelClient,
    model: &'a str,
    capabilities: Capabilities,
    briefing: PreambleInputs,
    /// The tools of `briefing`, with their schemas.
    callable: Vec<Callable>,
    began: Instant,
    probes: Vec<Probe>,
    tell: &'a mut (dyn FnMut(&Probe) + Send),
    reasoning: bool,
    faults: Vec<String>,
}

/// The request of a probe.
struct ProbeRequest<'a> {
    tools: &'a [&'a str],
    messages: Vec<Message>,
    anyway: bool,
}

impl<'a> ProbeRequest<'a> {
    fn plain(text: &str) -> Self {
        Self { tools: &[], messages: vec![user(text)], anyway: false }
    }
    fn with(tools: &'a [&'a str], text: &str) -> Self {
        Self { tools, ..Self::plain(text) }
    }
}

fn user(text: &str) -> Message {
    Message::User { text: text.into(), images: Vec::new() }
}

impl ModelClient {
    /// Finds out how best to use a model. `tell` receives each probe as it ends.
    ///
    /// # Errors
    /// When the model cannot be reached at all.
    pub async fn check(
        &self,
        model: &str,
        today: &str,
        tell: &mut (dyn FnMut(&Probe) + Send),
    ) -> Result<Checked, String> {
        let provider = &self.provider(model)?;
        let briefing = (self.brief)(&Config { model: model.into(), ..Config::default() }, ".")?;
        let capabilities = Capabilities { size: Size::Small, ..Capabilities::of(provider) };
        let briefing = PreambleInputs { instructions: Vec::new(), ..briefing };
        let callable = callable(&briefing.offers)?;
        let (began, probes, faults) = (Instant::now(), Vec::new(), Vec::new());
        let mut check = Check {
            client: self,
            model,
            capabilities,
            briefing,
            callable,
            began,
            probes,
            tell,
            reasoning: false,
            faults,
        };
        check.all().await?;
        let Check { capabilities, reasoning, faults, probes, .. } = check;
        let profile = Profile {
            v: 1,
            model: model.into(),
            asked: (provider.wire, provider.address()),
            wire: capabilities.wire,
            dialect: capabilities.dialect,
            constrained: capabilities.constrained,
            edit: capabilities.edit,
            profile: capabilities.size,
            window: capabilities.window,
            parallel: capabilities.parallel,
            merge: capabilities.quirks.merge,
            reasoning,
            faults,
            checked: today.into(),
        };
        Ok(Checked { profile, probes })
    }
}

impl Check<'_> {
    async fn all(&mut self) -> Result<(), String> {
        self.reach().await?;
        // Loading the model does not count towards the time limit.
        self.began = Instant::now();
        self.window().await;
        self.streaming().await;
        self.template().await;
        self.calls().await;
        self.schema().await;
        self.edits().await;
        self.long().await;
        self.cancel().await;
        self.overflow().await;
        let narrow = self.capabilities.window.is_some_and(|w| w < ROOMY);
        let weak = self.capabilities.edit == EditFormat::Whole
            || self.capabilities.dialect != Dialect::Native && self.failed("calls");
        self.capabilities.size = if narrow || weak { Size::Small } else { Size::Default };
        Ok(())
    }

    fn failed(&self, name: &str) -> bool {
        self.probes.iter().any(|p| p.name == name && p.verdict == Verdict::No)
    }

    fn note(
        &mut self,
        name: &'static str,
        verdict: Verdict,
        said: impl Into<String>,
        began: Instant,
    ) {
        let probe = Probe { name, verdict, said: said.into(), took: began.elapsed() };
        (self.tell)(&probe);
        self.probes.push(probe);
    }

    /// Whether the time is up; if so, records the probe as untried.
    fn late(&mut self, name: &'static str) -> bool {
        let late = self.began.elapsed() > ALL;
        if late {
            self.note(name, Verdict::Untried, "there was no time left", Instant::now());
        }
        late
    }

    async fn ask(&mut self, ask: ProbeRequest<'_>) -> Result<Answered, StepFailed> {
        self.ask_live(ask, Arc::new(|_| {}), CancellationToken::default()).await
    }

    async fn ask_live(
        &mut self,
        ask: ProbeRequest<'_>,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> Result<Answered, StepFailed> {
        let refuse = |error| StepFailed::unsent(Step(1), Failure::Rejected, error);
        let mut briefing = self.briefing.clone();
        briefing.offers.retain(|offer| ask.tools.contains(&offer.tool.name.as_str()));
        let provider = &self.client.provider(self.model).map_err(refuse)?;
        // Without tools, the dialect makes no difference.
        let dialect =
            if ask.tools.is_empty() { Dialect::Native } else { self.capabilities.dialect };
        let capabilities = Capabilities { dialect, ..self.capabilities };
        let preamble =
            self.client.recorded(self.model, provider, &capabilities, &briefing).map_err(refuse)?;
        let (pictures, hash) = (BTreeMap::new(), Hash::ZERO);
        let (preamble, messages) = (&preamble, ask.messages.as_slice());
        let question = PromptRequest {
            preamble,
            step: Step(1),
            hash,
            messages,
            resume: None,
            pictures: &pictures,
            anyway: ask.anyway,
            session: None,
            with_effort: false,
        };
        let asking = self.client.send(&question, live, halt.clone());
        let within = if self.probes.is_empty() { FIRST } else { ONE };
        let answer = match tokio::time::timeout(within, asking).await {
            Ok(answer) => answer,
            Err(_) => {
                let error = format!("no answer within {} s", within.as_secs());
                Err(StepFailed::unsent(Step(1), Failure::Transport, error))
            }
        };
        if let Ok(answered) = &answer {
            self.reasoning |= answered
                .parts
                .iter()
                .any(|p| matches!(p, Part::Reasoning { text, .. } if !text.is_empty()));
        }
        answer
    }

    /// Tests whether it answers at all, on the configured wire or another.
    async fn reach(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let own = self.capabilities.wire;
        let mut first = String::new();
        let others = Wire::ALL.iter().copied().filter(|wire| *wire != own);
        for wire in [own].into_iter().chain(others) {
            self.capabilities.wire = wire;
            match self.ask(ProbeRequest::plain("Answer with one word: ready")).await {
                Ok(answered) => {
                    let words = Part::words(&answered.parts);
                    let said = words.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
                    self.note(
                        "plain answer",
                        Verdict::Yes,
                        format!("over {wire}: \"{said}\""),
                        began,
                    );
                    return Ok(());
                }
                Err(failed) if wire == own => {
                    first = failed.error;
                    // Try other wires only if the server does not know this path.
                    if !first.contains("there is no such service") {
                        break;
                    }
                }
                Err(_) => {}
            }
        }
        self.capabilities.wire = own;
        self.note("plain answer", Verdict::No, first.clone(), began);
        Err(first)
    }

    async fn window(&mut self) {
        let began = Instant::now();
        if self.capabilities.window.is_none()
            && let Ok(provider) = self.client.provider(self.model)
        {
            let asked = self.client.window(self.model, &provider, self.capabilities.wire).await;
            self.capabilities.window = asked.unwrap_or(None);
        }
        match self.capabilities.window {
            Some(window) => self.note("window", Verdict::Yes, format!("{window} tokens"), began),
            None => self.note(
                "window",
                Verdict::Untried,
                "the server does not report it; set \"window\"",
                began,
            ),
        }
    }

    async fn streaming(&mut self) {
        if self.late("streaming") {
            return;
        }
        let began = Instant::now();
        let pieces = Arc::new(AtomicUsize::new(0));
        let count = pieces.clone();
        let live: DeltaSink = Arc::new(move |delta| {
            count.fetch_add(
                usize::from(matches!(delta, Delta::Text { .. } | Delta::Reasoning { .. })),
                Ordering::Relaxed,
            );
        });
        let answer = self
            .ask_live(
                ProbeRequest::plain("Count from one to ten, in words."),
                live,
                CancellationToken::default(),
            )
            .await;
        let pieces = pieces.load(Ordering::Relaxed);
        match answer {
            Ok(_) if pieces > 1 => {
                self.note("streaming", Verdict::Yes, format!("{pieces} pieces"), began)
            }
            Ok(_) => {
                self.faults.push("answers are not streamed: they arrive in one piece".into());
                self.note("streaming", Verdict::No, "the answer arrived in one piece", began);
            }
            Err(failed) => self.note("streaming", Verdict::No, failed.error, began),
        }
    }

    /// Tests a message order that some chat templates reject.
    async fn template(&mut self) {
        if self.late("template") {
            return;
        }
        let began = Instant::now();
        let two = || vec![user("The word is heron."), user("Say the word.")];
        let ask = |messages| ProbeRequest { tools: &[], messages, anyway: false };
        match self.ask(ask(two())).await {
            Ok(_) => self.note("template", Verdict::Yes, "accepts messages in any order", began),
            // Only a rejection says something about the template.
            Err(failed) if failed.failure != Failure::Rejected => {
                self.note("template", Verdict::Untried, failed.error, began);
            }
            Err(failed) => {
                self.capabilities.quirks.merge = true;
                match self.ask(ask(two())).await {
                    Ok(_) => {
                        self.faults
                            .push("messages must alternate: consecutive ones are merged".into());
                        self.note(
                            "template",
                            Verdict::No,
                            "messages must alternate; they will be merged",
                            began,
                        );
                    }
                    Err(_) => {
                        self.capabilities.quirks.merge = false;
                        self.faults.push("its chat template rejects ordinary conversations".into());
                        self.note("template", Verdict::No, failed.error, began);
                    }
                }
            }
        }
    }

    /// Finds the dialect in which it calls tools: native, text or plan.
    async fn calls(&mut self) {
        const TOOLS: &[&str] = &["view_file"];
        const TASK: &str =
            "Read the file notes.txt. Call view_file with the path notes.txt, and do nothing else.";
        let mut last = String::new();
        for dialect in [Dialect::Native, Dialect::Text, Dialect::Plan] {
            let name = match dialect {
                Dialect::Native => "native call",
                Dialect::Text => "call as text",
                Dialect::Plan => "JSON plan",
            };
            if self.late(name) {
                last = "there was no time left".into();
                break;
            }
            let began = Instant::now();
            self.capabilities.dialect = dialect;
            let mut answer = self.ask(ProbeRequest::with(TOOLS, TASK)).await;
            if passing(&answer) {
                // The error may be temporary: try again before reaching a verdict.
                answer = self.ask(ProbeRequest::with(TOOLS, TASK)).await;
            }
            if dialect == Dialect::Plan && refused(&answer) {
                // The server cannot enforce a schema; the model may still write valid plans.
                self.capabilities.constrained = false;
                answer = self.ask(ProbeRequest::with(TOOLS, TASK)).await;
            }
            match one_call(&answer, "view_file", &self.callable) {
                Ok(args) if args["path"].as_str().is_some_and(|p| p.ends_with("notes.txt")) => {
                    self.note(name, Verdict::Yes, "one call, as asked", began);
                    self.after_calls(dialect).await;
                    return;
                }
                Ok(args) => last = format!("unexpected arguments: {args}"),
                Err(why) => last = why,
            }
            if dialect == Dialect::Native {
                self.faults.push("native tool calls do not work".into());
            }
            self.note(name, Verdict::No, last.clone(), began);
        }
        self.capabilities.dialect = Dialect::Text;
        self.capabilities.parallel = false;
        self.faults.push("no way of calling tools worked".into());
        self.note("calls", Verdict::No, last, Instant::now());
    }

    /// Tests parallel calls, and continuing after a result.
    async fn after_calls(&mut self, dialect: Dialect) {
        const TOOLS: &[&str] = &["view_file"];
        if self.late("parallel calls") {
            return;
        }
        let began = Instant::now();
        let task =
            "Read the files a.txt and b.txt, both at once: call view_file twice in one answer.";
        match self.ask(ProbeRequest::with(TOOLS, task)).await {
            Ok(answered) => {
                let calls = Part::calls(&answered.parts).filter(|c| c.fault.is_none()).count();
                self.capabilities.parallel = calls > 1;
                let verdict = if calls > 1 { Verdict::Yes } else { Verdict::No };
                self.note("parallel calls", verdict, format!("{calls} in one answer"), began);
            }
            Err(failed) => self.note("parallel calls", Verdict::Untried, failed.error, began),
        }
        if self.late("results") {
            return;
        }
        let began = Instant::now();
        let call = dunnock_proto::CallPart {
            id: "call_1".into(),
            tool: "view_file".into(),
            args: r#"{"path":"notes.txt"}"#.into(),
            sent: None,
            recovered: false,
            fault: None,
        };
        let (model, wire): (Arc<str>, Arc<str>) =
            (self.model.into(), self.capabilities.wire.to_string().into());
        let messages = vec![
            user("What is in notes.txt?"),
            Message::Assistant {
                model,
                wire,
                parts: Arc::new([Part::Call(Arc::new(call))]),
                items: Arc::default(),
                cut: false,
            },
            Message::Result {
                call: CallId { step: Step(1), index: 0 },
                id: "call_1".into(),
                tool: "view_file".into(),
                text: "The heron flies at dawn.".into(),
                ok: true,
                images: Vec::new(),
            },
        ];
        match self.ask(ProbeRequest { tools: TOOLS, messages, anyway: false }).await {
            Ok(_) => self.note("results", Verdict::Yes, "continues after a result", began),
            Err(failed) => {
                let template = failed.failure == Failure::Rejected;
                let verdict = if template { Verdict::No } else { Verdict::Untried };
                self.note("results", verdict, failed.error, began);
                if dialect == Dialect::Native && template {
                    self.faults.push(
                        "its chat template rejects tool results: they are sent as text".into(),
                    );
                    self.capabilities.dialect = Dialect::Text;
                }
            }
        }
    }

    /// Tests whether the server can enforce a schema.
    async fn schema(&mut self) {
        // The plan probe has already shown it.
        if self.late("schema") || self.probes.iter().any(|p| p.name == "JSON plan") {
            return;
        }
        let began = Instant::now();
        let before = std::mem::replace(&mut self.capabilities.dialect, Dialect::Plan);
        let answer = self.ask(ProbeRequest::with(&["view_file"], "Read the file notes.txt.")).await;
        self.capabilities.dialect = before;
        let broken = |a: &Answered| Part::calls(&a.parts).any(|c| c.fault.is_some());
        match answer {
            Ok(answered) if !broken(&answered) => {
                self.note("schema", Verdict::Yes, "follows a schema", began)
            }
            Ok(_) => {
                self.capabilities.constrained = false;
                self.note("schema", Verdict::No, "does not follow a schema", began);
            }
            Err(failed) => {
                self.capabilities.constrained = failed.failure != Failure::Rejected;
                self.note("schema", Verdict::No, failed.error, began);
            }
        }
    }

    /// Finds the edit format in which it works best.
    async fn edits(&mut self) {
        const FILE: &str = "def greet():\n    print(\"Hello\")\n    return 1\n";
        let (mut works, mut tried) = (Vec::new(), 0);
        for (name, tool, format) in [
            ("edit by patch", "apply_patch", EditFormat::Patch),
            ("edit by replacing", "replace_text", EditFormat::Replace),
            ("edit by whole file", "write_file", EditFormat::Whole),
        ] {
            // A model that can replace text need not write whole files.
            if format == EditFormat::Whole && works.contains(&EditFormat::Replace)
                || self.late(name)
            {
                continue;
            }
            let began = Instant::now();
            let task = format!(
                "The file greet.py contains:\n\n{FILE}\nChange it so that it prints Goodbye \
                 instead of Hello, with one call to {tool}."
            );
            let answer = self.ask(ProbeRequest::with(&[tool], &task)).await;
            if let Err(failed) = &answer
                && passing(&answer)
            {
                self.note(name, Verdict::Untried, failed.error.clone(), began);
                continue;
            }
            tried += 1;
            let good = one_call(&answer, tool, &self.callable)
                .and_then(|args| edited(format, &args, FILE));
            match good {
                Ok(()) => {
                    works.push(format);
                    self.note(name, Verdict::Yes, "makes the change", began);
                }
                Err(why) => self.note(name, Verdict::No, why, began),
            }
        }
        let can = |format| works.contains(&format);
        self.capabilities.edit = match (can(EditFormat::Patch), can(EditFormat::Replace)) {
            (true, true) => EditFormat::Any,
            (false, true) => EditFormat::Replace,
            (true, false) => EditFormat::Patch,
            // No probe ran, so nothing is known.
            (false, false) if tried == 0 => EditFormat::Any,
            (false, false) => EditFormat::Whole,
        };
    }

    /// Tests whether it remembers the beginning of a long prompt.
    async fn long(&mut self) {
        if self.late("long prompt") {
            return;
        }
        let began = Instant::now();
        let tokens = self.capabilities.window.map_or(6_000, |w| (w * 6 / 10).min(6_000));
        let task = long_prompt(tokens);
        match self.ask(ProbeRequest::plain(&task)).await {
            Ok(answered) if Part::words(&answered.parts).to_lowercase().contains("heron") => {
                self.note("long prompt", Verdict::Yes, format!("about {tokens} tokens"), began);
            }
            Ok(_) => {
                self.faults.push("loses the beginning of long prompts".into());
                let said = format!("it did not remember the beginning of about {tokens} tokens");
                self.note("long prompt", Verdict::No, said, began);
            }
            Err(failed) => self.note("long prompt", Verdict::No, failed.error, began),
        }
    }

    async fn cancel(&mut self) {
        if self.late("cancelling") {
            return;
        }
        let began = Instant::now();
        let halt = CancellationToken::default();
        let (cancel, seen) = (halt.clone(), Arc::new(AtomicUsize::new(0)));
        let count = seen.clone();
        let live: DeltaSink = Arc::new(move |delta| {
            if matches!(delta, Delta::Text { .. } | Delta::Reasoning { .. })
                && count.fetch_add(1, Ordering::Relaxed) == 2
            {
                cancel.cancel();
            }
        });
        let stopped = self
            .ask_live(ProbeRequest::plain("Count from one to two hundred, in words."), live, halt)
            .await;
        let cut = stopped.is_err_and(|failed| failed.failure == Failure::Interrupted);
        let again = Instant::now();
        let after = self.ask(ProbeRequest::plain("Answer with one word: ready")).await;
        match after {
            Ok(_) if cut && again.elapsed() < Duration::from_secs(20) => {
                self.note("cancelling", Verdict::Yes, "stops, then answers again at once", began);
            }
            Ok(_) if !cut => {
                self.note("cancelling", Verdict::Untried, "the answer finished first", began)
            }
            Err(failed) if failed.failure == Failure::Rejected => {
                self.note("cancelling", Verdict::Untried, failed.error, began);
            }
            Ok(_) | Err(_) => {
                self.faults.push("keeps working after it was cancelled".into());
                self.note("cancelling", Verdict::No, "keeps working after it was cancelled", began);
            }
        }
    }

    /// Tests what the server does with a prompt that cannot fit.
    async fn overflow(&mut self) {
        let Some(window) = self.capabilities.window else {
            return self.note(
                "overflow",
                Verdict::Untried,
                "the window is not known",
                Instant::now(),
            );
        };
        if window > LARGE {
            return self.note(
                "overflow",
                Verdict::Untried,
                "the window is too large to fill",
                Instant::now(),
            );
        }
        if self.late("overflow") {
            return;
        }
        let began = Instant::now();
        let task = long_prompt(window * 2);
        let ask = ProbeRequest { anyway: true, ..ProbeRequest::plain(&task) };
        match self.ask(ask).await {
            Err(failed) if failed.failure == Failure::Overflow => {
                self.note("overflow", Verdict::Yes, "rejects a prompt that does not fit", began);
            }
            Err(failed) => self.note("overflow", Verdict::No, failed.error, began),
            Ok(_) => {
                self.faults.push("silently truncates prompts that do not fit".into());
                self.note(
                    "overflow",
                    Verdict::No,
                    "silently truncates a prompt that does not fit",
                    began,
                );
            }
        }
    }
}

/// Whether a request failed for a reason that may be temporary.
fn passing(answer: &Result<Answered, StepFailed>) -> bool {
    answer.as_ref().is_err_and(|failed| failed.failure == Failure::Transport)
}

/// Whether the server rejected the request or its schema, or the answer did not follow the schema.
fn refused(answer: &Result<Answered, StepFailed>) -> bool {
    match answer {
        Ok(answered) => {
            answered.attempts.len() > 1
                || Part::calls(&answered.parts).any(|call| call.fault.is_some())
        }
        Err(failed) => failed.failure == Failure::Rejected,
    }
}

/// A secret word, then the given number of tokens of filler, then a question.
fn long_prompt(tokens: u64) -> String {
    let filler = "The river flowed through the reeds and the wind moved the grass on the bank. ";
    let times = (tokens * BYTES_PER_TOKEN) as usize / filler.len();
    format!(
        "The secret word is heron.\n\n{}\n\nWhat is the secret word? Answer with that word.",
        filler.repeat(times)
    )
}

/// The arguments of an answer's first call, if it calls this tool with valid arguments.
fn one_call(
    answer: &Result<Answered, StepFailed>,
    tool: &str,
    tools: &[Callable],
) -> Result<Value, String> {
    let answered = answer.as_ref().map_err(|failed| failed.error.clone())?;
    let Some(call) = Part::calls(&answered.parts).next() else {
        return Err("the model made no call".into());
    };
    if let Some(fault) = &call.fault {
        return Err(fault.to_string());
    }
    if call.tool != tool {
        return Err(format!("it called {} instead", call.tool));
    }
    let args: Value =
        serde_json::from_str(&call.args).map_err(|e| format!("the arguments are not JSON: {e}"))?;
    let known = tools.iter().find(|t| t.name == tool).map(|t| schema::check(&t.schema, &args));
    known.unwrap_or(Ok(())).map(|()| args)
}

/// Whether the arguments of an edit would make the change.
fn edited(format: EditFormat, args: &Value, file: &str) -> Result<(), String> {
    let text = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
    let after = match format {
        EditFormat::Any => return Err("no edit was requested".into()),
        EditFormat::Patch => {
            let patch = Patch::parse(&text("patch")).map_err(|e| e.to_string())?;
            patched(&patch, file).ok_or("the patch does not apply to the file")?
        }
        EditFormat::Replace => {
            let old = text("old");
            if old.is_empty() || file.matches(&old).count() != 1 {
                return Err("the old text does not occur exactly once in the file".into());
            }
            file.replacen(&old, &text("new"), 1)
        }
        EditFormat::Whole => text("content"),
    };
    let right = after.contains("Goodbye") && !after.contains("Hello") && after.contains("return 1");
    if right { Ok(()) } else { Err("the change is not the one that was requested".into()) }
}

/// A file with the hunks of a patch applied, each at the first match of its old lines.
fn patched(patch: &Patch, file: &str) -> Option<String> {
    let [one] = patch.files.as_slice() else { return None };
    let mut lines: Vec<&str> = file.lines().collect();
    for hunk in &one.hunks {
        let side = |left_out: Op| -> Vec<&str> {
            hunk.lines
                .iter()
                .filter(|line| line.op != left_out)
                .map(|line| line.text.as_str())
                .collect()
        };
        let (old, new) = (side(Op::Add), side(Op::Drop));
        let at =
            (0..=lines.len()).find(|at| lines.get(*at..at + old.len()) == Some(old.as_slice()))?;
        lines.splice(at..at + old.len(), new);
    }
    (!one.hunks.is_empty()).then(|| lines.join("\n"))
}
