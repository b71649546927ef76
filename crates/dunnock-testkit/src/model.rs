//! A model that says what its script says.

use dunnock_core::Request;
use dunnock_ports::{
    Blob, BoxFuture, CancellationToken, DeltaSink, HostInfo, Model, ModelRequest, RenderError,
    Summary,
};
use dunnock_proto::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One answer of a script.
#[derive(Debug, Clone, Default)]
pub struct Say {
    /// What it thinks.
    pub reasoning: String,
    /// What it says.
    pub text: String,
    /// What it wants done: tool and arguments.
    pub calls: Vec<(String, String)>,
    /// How long it takes.
    pub ms: u64,
    /// How it fails instead, if it does.
    pub fail: Option<(Failure, Option<At>)>,
    /// What it used.
    pub usage: Usage,
}

impl Say {
    /// Only words.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
    /// Only calls.
    #[must_use]
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        let calls =
            calls.iter().map(|(tool, args)| ((*tool).to_owned(), (*args).to_owned())).collect();
        Self { calls, ..Self::default() }
    }
    /// Takes its time.
    #[must_use]
    pub fn after(self, ms: u64) -> Self {
        Self { ms, ..self }
    }
    /// Fails.
    #[must_use]
    pub fn fails(failure: Failure, retry_at: Option<At>) -> Self {
        Self { fail: Some((failure, retry_at)), ..Self::default() }
    }
    /// Says what it used.
    #[must_use]
    pub fn using(self, input: u64, output: u64) -> Self {
        Self { usage: Usage { input, output, ..Usage::default() }, ..self }
    }
}

/// How a script finds its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// By the answers in the request: a request sent again gets the same answer.
    Answers,
    /// By the number of the step: costs the same however long the conversation is.
    Step,
}

/// A model with a script. After its end it says "done".
pub struct ScriptedModel {
    script: Vec<Say>,
    place: Place,
    failed: AtomicUsize,
    /// Every request, as it was asked: hash and bytes. Kept only with [`Place::Answers`].
    pub asked: Mutex<Vec<(Step, Hash, Vec<u8>)>>,
}

impl ScriptedModel {
    /// A model with this script.
    #[must_use]
    pub fn new(script: Vec<Say>) -> Arc<Self> {
        Arc::new(Self {
            script,
            place: Place::Answers,
            failed: AtomicUsize::new(0),
            asked: Mutex::default(),
        })
    }
    /// A model that goes through its script again and again, at a cost that does not grow with the
    /// conversation.
    #[must_use]
    pub fn cycle(script: Vec<Say>) -> Arc<Self> {
        Arc::new(Self {
            script,
            place: Place::Step,
            failed: AtomicUsize::new(0),
            asked: Mutex::default(),
        })
    }

    fn say(&self, request: &Request) -> Say {
        let at = match self.place {
            Place::Step => (request.step.0 as usize - 1) % self.script.len(),
            Place::Answers => {
                let answers = |m: &Message| match m {
                    Message::Assistant { cut, .. } => usize::from(!*cut),
                    Message::Notice { text } => summarised(text),
                    Message::User { .. } | Message::Result { .. } => 0,
                };
                let answers: usize = request.messages().iter().map(answers).sum();
                answers + self.failed.load(Ordering::SeqCst) // a failure leaves no answer behind
            }
        };
        self.script.get(at).cloned().unwrap_or_else(|| Say::text("done"))
    }
}

fn summarised(text: &str) -> usize {
    text.split_once("summary of ")
        .map(|(_, rest)| rest)
        .and_then(|t| t.split(' ').next())
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// The tools of the testkit, as a preamble names them.
#[must_use]
pub fn tools() -> Vec<Tool> {
    let tool = Tool::new;
    vec![
        tool("append", Class::Command, Recovery::Unknown, Role::Work),
        tool("edit", Class::Edit, Recovery::Unknown, Role::Work),
        tool("view", Class::Read, Recovery::Repeat, Role::Work),
        tool("fetch", Class::Read, Recovery::Unknown, Role::Work),
        tool("ask_person", Class::Read, Recovery::Repeat, Role::AskPerson),
        tool("update_plan", Class::Read, Recovery::Repeat, Role::Plan),
        tool("final_output", Class::Read, Recovery::Repeat, Role::Final),
    ]
}

/// An answer to a request, as a scripted server gives it.
#[must_use]
pub fn answered(request: &Request, parts: Vec<Part>, usage: Usage) -> Answered {
    Answered {
        step: request.step,
        attempts: Vec::new(),
        model: "script".into(),
        wire: "script".into(),
        parts,
        stop: Stop::End,
        usage,
        request: request.hash(),
        items: Vec::new(),
        effort_refused: false,
        raw: None,
        server_tools: Vec::new(),
    }
}

impl Model for ScriptedModel {
    fn render_preamble<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        _: &'a HostInfo,
    ) -> BoxFuture<'a, Result<(Preamble, Blob), RenderError>> {
        Box::pin(async move {
            if config.model.starts_with("broken/") {
                return Err(RenderError("no such model".into()));
            }
            let blob = Blob::new(format!("You are {} in {workspace}.", config.model).into_bytes());
            let preamble = Preamble {
                hash: blob.hash,
                model: config.model.clone(),
                wire: "script".into(),
                dialect: "native".into(),
                profile: "default".into(),
                version: "test".into(),
                tools: tools(),
                bytes: blob.bytes.len() as u64,
                window: None,
                max_output: None,
                reason: "start".into(),
                first_changed: None,
                effort: None,
                sources: Vec::new(),
                via_bridge: false,
                level: None,
                reaches_machine: config.reaches_machine(),
                hosts: config.hosts.clone(),
                web_fetch: config.web_fetch,
                servers: config.servers.clone(),
            };
            Ok((preamble, blob))
        })
    }

    fn ask(
        &self,
        ModelRequest { preamble, request, .. }: ModelRequest,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Result<(Answered, Vec<Blob>), StepFailed>> {
        Box::pin(async move {
            assert_eq!(
                Hash::of(&preamble),
                request.preamble,
                "the preamble is the one that was recorded"
            );
            let say = self.say(&request);
            if self.place == Place::Answers {
                self.asked.lock().unwrap().push((request.step, request.hash(), request.bytes()));
            }
            let step = request.step;
            let failed = |failure, retry_at, partial: &str| StepFailed {
                step,
                attempts: Vec::new(),
                failure,
                error: "the script says so".into(),
                partial: partial.into(),
                no_answer: None,
                usage: say.usage,
                retry_at,
                incomplete: failure == Failure::Interrupted,
                lost: Reserved::default(),
            };
            let mut said = String::new();
            for piece in say.text.split_inclusive(' ') {
                let offset = said.len() as u64;
                live(Delta::Text { step, attempt: 1, offset, text: piece.into() });
                said.push_str(piece);
                if say.ms > 0 && said.len() < say.text.len() {
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(say.ms)) => {}
                        () = halt.cancelled() => return Err(failed(Failure::Interrupted, None, &said)),
                    }
                }
            }
            if say.ms > 0 {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(say.ms)) => {}
                    () = halt.cancelled() => return Err(failed(Failure::Interrupted, None, &said)),
                }
            }
            if let Some((failure, retry_at)) = say.fail {
                self.failed.fetch_add(1, Ordering::SeqCst);
                return Err(failed(failure, retry_at, &said));
            }
            let mut parts = Vec::new();
            if !say.reasoning.is_empty() {
                parts.push(Part::Reasoning {
                    text: say.reasoning.as_str().into(),
                    opaque: Some("sig".into()),
                });
            }
            if !say.text.is_empty() {
                parts.push(Part::Text { text: say.text.as_str().into() });
            }
            for (tool, args) in &say.calls {
                let (tool, args) = (tool.clone(), args.as_str().into());
                parts.push(Part::Call(Arc::new(CallPart {
                    id: "call_0".into(),
                    tool,
                    args,
                    sent: None,
                    recovered: false,
                    fault: None,
                })));
            }
            let answered = answered(&request, parts, say.usage);
            Ok((answered, Vec::new()))
        })
    }

    fn summarise(
        &self,
        _head: Arc<[u8]>,
        request: Request,
        _halt: CancellationToken,
    ) -> BoxFuture<'_, Summary> {
        Box::pin(async move {
            let answers = request
                .messages()
                .iter()
                .filter(|m| matches!(m, Message::Assistant { .. }))
                .count();
            let text = Ok(format!("summary of {} answers", answers.saturating_sub(1)).into());
            Summary {
                text,
                usage: Usage { input: 100, output: 10, ..Usage::default() },
                broke: false,
            }
        })
    }
}
