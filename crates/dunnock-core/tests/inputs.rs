//! Random inputs: sensible ones, late ones, forged ones.

use crate::rng::Rng;
use dunnock_core::{Claim, Effect, EffectOutcome, Phase, Previews, Stage, State};
use dunnock_proto::*;
use std::sync::Arc;

pub const KINDS: [&str; 23] = [
    "baselined",
    "head_failed",
    "prompt",
    "run",
    "reply",
    "interrupt",
    "rewind",
    "compact",
    "configure",
    "title",
    "revoke",
    "take",
    "preamble_set",
    "answer",
    "failed",
    "output",
    "checkpointed",
    "rewound",
    "rewind_failed",
    "compacted",
    "compaction_failed",
    "timer_fired",
    "noticed",
];

/// An input before it has an id or an owner.
#[derive(Debug, Clone)]
pub enum Raw {
    Command(Command),
    Work(EffectOutcome),
    Take(Claim),
}

pub fn tools() -> Vec<Tool> {
    let tool = Tool::new;
    vec![
        tool("shell", Class::Command, Recovery::Unknown, Role::Work),
        Tool {
            leaves_process: true,
            ..tool("process_start", Class::Command, Recovery::Unknown, Role::Work)
        },
        tool("process_write", Class::Command, Recovery::Unknown, Role::Work),
        tool("view", Class::Read, Recovery::Repeat, Role::Work),
        tool("edit", Class::Edit, Recovery::Unknown, Role::Work),
        tool("fetch", Class::Read, Recovery::Unknown, Role::Work),
        tool("child", Class::Command, Recovery::Rejoin, Role::Work),
        tool("ask_person", Class::Read, Recovery::Repeat, Role::AskPerson),
        tool("update_plan", Class::Read, Recovery::Repeat, Role::Plan),
        tool("final_output", Class::Read, Recovery::Repeat, Role::Final),
    ]
}

pub fn preamble(model: &str, salt: u64) -> Preamble {
    Preamble {
        hash: Hash::of(format!("{model} {salt}").as_bytes()),
        model: model.into(),
        wire: "chat".into(),
        dialect: "native".into(),
        profile: "default".into(),
        version: "0".into(),
        tools: tools(),
        bytes: 400,
        window: None,
        max_output: None,
        reason: "test".into(),
        first_changed: None,
        effort: None,
        sources: Vec::new(),
        via_bridge: model == "m/hand",
        level: None,
        reaches_machine: false,
        hosts: Default::default(),
        web_fetch: false,
        servers: Vec::new(),
    }
}

pub fn config(r: &mut Rng) -> Config {
    let some = |r: &mut Rng, percent, low, span| r.chance(percent).then(|| low + r.below(span));
    Config {
        profile: String::new(),
        tool_set: String::new(),
        effort: None,
        model: if r.chance(10) { "m/hand" } else { "m/1" }.into(),
        planner: r.chance(15).then(|| Planner {
            file: "t.txt".into(),
            memory: String::new(),
            allow: Vec::new(),
            steps: match r.chance(70) {
                true => StepRules::PLANNER,
                false => StepRules {
                    sequential: r.chance(50),
                    drop_after_failure: r.chance(50),
                    check_each_step: r.chance(50),
                },
            },
        }),
        bridge: None,
        picture_tokens: 1_500,
        stall_window: 6,
        stall_limit: 3,
        waiting_ms: 1_000,
        title_chars: 80,
        mode: *r
            .pick(&[Mode::Read, Mode::Ask, Mode::Edits, Mode::Auto, Mode::Auto, Mode::All])
            .unwrap(),
        attended: r.chance(60),
        unattended: r.chance(10),
        second_look: r.chance(50),
        snapshot: r.chance(50),
        deadline: None,
        max_steps: 1 + r.below(6) as u32,
        verify: ["cargo test", "cargo fmt"]
            .iter()
            .take(r.below(3) as usize)
            .map(|s| (*s).to_owned())
            .collect(),
        verify_tries: 1 + r.below(3) as u32,
        budget: Budget {
            tokens: some(r, 15, 500, 20_000),
            micros: some(r, 10, 500, 20_000),
            ms: some(r, 10, 50, 5_000),
        },
        price: r.chance(50).then_some(Price {
            input: 1_000_000,
            cached: 100_000,
            output: 5_000_000,
            written: 1_000_000,
        }),
        window: some(r, 35, 400, 1_500),
        max_output: 50 + r.below(100),
        compact_at: 60 + r.below(40) as u8,
        compact_keep: 1 + r.below(4) as u8,
        token_bytes: 4,
        baseline: r.chance(50),
        checkpoints: r.chance(60),
        file_access: FileAccess::Workspace,
        hosts: Default::default(),
        web_fetch: false,
        servers: Vec::new(),
        sandbox: *r.pick(&[Sandbox::Auto, Sandbox::Auto, Sandbox::Off]).unwrap(),
        deny: if r.chance(20) { vec![rule(r)] } else { Vec::new() },
        allow: if r.chance(20) { vec![rule(r)] } else { Vec::new() },
    }
}

fn rule(r: &mut Rng) -> Rule {
    let words = ["rm", "ls", "make"].map(str::to_owned);
    let tool = *r.pick(&["shell", "edit", "child"]).unwrap();
    let words = if r.chance(80) { vec![r.pick(&words).unwrap().clone()] } else { Vec::new() };
    Rule { tool: tool.into(), words, access: Access::NOTHING }
}

/// What policy must make of a line or a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Looks,
    Plain,
    Obscure,
    Asks,
    Never,
}

/// Commands of every kind that policy knows, taken apart by hand.
pub const LINES: &[(&str, &[&[&str]], Kind)] = &[
    ("rm x", &[&["rm", "x"]], Kind::Plain),
    ("ls -l", &[&["ls", "-l"]], Kind::Looks),
    ("make all", &[&["make", "all"]], Kind::Plain),
    ("$X y", &[], Kind::Obscure),
    ("make clean; rm -r b", &[&["make", "clean"], &["rm", "-r", "b"]], Kind::Plain),
    ("git push", &[&["git", "push"]], Kind::Asks),
    ("cat .env", &[&["cat", ".env"]], Kind::Asks),
    ("rm -rf ~", &[&["rm", "-rf", "~"]], Kind::Never),
    ("sudo make", &[&["sudo", "make"], &["make"]], Kind::Asks),
    ("curl http://a", &[&["curl", "http://a"]], Kind::Asks),
];
/// Paths, and what an edit of one comes to.
pub const PATHS: &[(&str, Kind)] = &[
    (".env", Kind::Asks),
    (".git/config", Kind::Never),
    (".vscode/x", Kind::Asks),
    ("AGENTS.md", Kind::Asks),
];

fn line(r: &mut Rng) -> String {
    r.pick(LINES).unwrap().0.to_owned()
}

fn path(r: &mut Rng) -> String {
    let known = r.chance(25).then(|| r.pick(PATHS).unwrap().0);
    known.map_or_else(|| text(r, 8).to_string(), str::to_owned)
}

fn text(r: &mut Rng, most: u64) -> Arc<str> {
    let n = r.below(most) + 1;
    (0..n).map(|_| (b'a' + r.below(26) as u8) as char).collect::<String>().into()
}

fn usage(r: &mut Rng) -> Usage {
    Usage {
        input: r.below(3) * 60,
        cached: r.below(2) * 20,
        output: r.below(40),
        reasoning: 0,
        written: 0,
    }
}

fn attempts(r: &mut Rng) -> Vec<Attempt> {
    (0..1 + r.below(2))
        .map(|_| Attempt { at: At(1), ms: r.below(20), error: None, usage: Usage::default() })
        .collect()
}

fn call_part(r: &mut Rng) -> Part {
    let tool = *r
        .pick(&[
            "shell",
            "shell",
            "view",
            "view",
            "edit",
            "fetch",
            "child",
            "ask_person",
            "update_plan",
            "nonesuch",
        ])
        .unwrap();
    let args: Arc<str> = match tool {
        "ask_person" if r.chance(90) => r#"{"question":"which?","choices":["a","b"]}"#.into(),
        "update_plan" if r.chance(90) => r#"{"steps":[{"text":"one","state":"done"}]}"#.into(),
        "shell" | "child" if r.chance(80) => format!("{{\"command\":\"{}\"}}", line(r)).into(),
        _ => format!("{{\"path\":\"{}\"}}", path(r)).into(),
    };
    // Providers of local models repeat their ids: so do we.
    Part::Call(Arc::new(CallPart {
        id: "call_0".into(),
        tool: tool.into(),
        args,
        sent: None,
        recovered: false,
        fault: None,
    }))
}

pub fn answered(r: &mut Rng, step: Step) -> Answered {
    let mut parts = Vec::new();
    if r.chance(30) {
        parts
            .push(Part::Reasoning { text: text(r, 20), opaque: r.chance(50).then(|| text(r, 10)) });
    }
    if r.chance(60) {
        parts.push(Part::Text { text: text(r, 40) });
    }
    if r.chance(75) {
        (0..1 + r.below(4)).for_each(|_| parts.push(call_part(r)));
        if r.chance(25) {
            let args = "{}".into();
            let part = CallPart {
                id: "f".into(),
                tool: "final_output".into(),
                args,
                sent: None,
                recovered: false,
                fault: None,
            };
            parts.push(Part::Call(Arc::new(part)));
        }
    }
    let (attempts, usage) = (attempts(r), usage(r));
    let (model, wire) = ("m/1".into(), "chat".into());
    Answered {
        step,
        attempts,
        model,
        wire,
        parts,
        stop: Stop::End,
        usage,
        request: Hash::ZERO,
        items: Vec::new(),
        effort_refused: false,
        raw: None,
        server_tools: Vec::new(),
    }
}

pub fn failed(r: &mut Rng, step: Step, cut: bool) -> StepFailed {
    let other = [Failure::Interrupted, Failure::Overflow, Failure::Rejected, Failure::Transport];
    let failure = if cut { Failure::Interrupted } else { *r.pick(&other).unwrap() };
    let retry_at =
        (failure == Failure::Transport && r.chance(60)).then(|| At(1000 + r.below(1000) as i64));
    let partial = if r.chance(40) { text(r, 20) } else { "".into() };
    let (attempts, usage) = (attempts(r), usage(r));
    let nothing = failure == Failure::Rejected && r.chance(60);
    let kinds = [NoAnswer::Empty, NoAnswer::CutOff];
    let no_answer = nothing.then(|| *r.pick(&kinds).unwrap());
    StepFailed {
        step,
        attempts,
        failure,
        error: "no".into(),
        partial,
        no_answer,
        usage,
        retry_at,
        incomplete: false,
        lost: Reserved::default(),
    }
}

pub fn finished(r: &mut Rng, call: CallId, cut: bool) -> Finished {
    let outcome = match r.below(10) {
        _ if cut && r.chance(70) => Outcome::Interrupted,
        0..=6 => Outcome::Done,
        7 => Outcome::Failed,
        8 => Outcome::Unknown,
        _ => Outcome::NotRun,
    };
    let shown = text(r, 300);
    Finished {
        exit: Some(0),
        ms: r.below(30),
        isolation: Some(Isolation::A),
        ..Finished::plain(call, outcome, &shown)
    }
}

pub fn compacted(r: &mut Rng, s: &State, upto: Seq, strength: Strength, before: u64) -> Compacted {
    let summary = (strength == Strength::Summarise).then(|| text(r, 10));
    let preamble = preamble(&s.config.model, s.seq);
    let after = if r.chance(85) { before / 3 } else { before };
    Compacted {
        upto,
        shortened: Vec::new(),
        summary,
        notes: None,
        usage: usage(r),
        preamble,
        before,
        after,
    }
}

fn baselined(tree: Tree, of: Hash) -> Baselined {
    Baselined { tree, of, checks: Vec::new(), note: None }
}

/// What an effect under way reports, if it reports now.
pub fn outcome_of(r: &mut Rng, s: &State, effect: &Effect, cut: bool) -> EffectOutcome {
    match effect {
        Effect::RenderPreamble { model } if r.chance(10) => {
            EffectOutcome::PreambleFailed { model: model.to_string(), error: "no model".into() }
        }
        Effect::RenderPreamble { model } => EffectOutcome::PreambleSet(preamble(model, s.seq)),
        Effect::AskModel { step } | Effect::WriteOutbox { step } | Effect::AwaitInbox { step }
            if cut && r.chance(80) =>
        {
            EffectOutcome::Failed(failed(r, *step, true))
        }
        Effect::AskModel { step } | Effect::WriteOutbox { step } if r.chance(15) => {
            EffectOutcome::Failed(failed(r, *step, false))
        }
        Effect::WriteOutbox { step } => EffectOutcome::OutboxWritten(OutboxWritten {
            step: *step,
            outbox: "o".into(),
            inbox: "i".into(),
            parts: 1,
        }),
        Effect::AskModel { step } | Effect::AwaitInbox { step } => {
            EffectOutcome::Answer(answered(r, *step), previews(r))
        }
        Effect::Run { call } | Effect::Join { call } => {
            EffectOutcome::Output(finished(r, *call, cut))
        }
        Effect::Checkpoint { mark } => {
            let tree = r.chance(90).then(|| Tree(format!("t{}", s.seq)));
            EffectOutcome::Checkpointed(Checkpointed { tree, mark: *mark, note: None })
        }
        Effect::Restore { tree, .. } if r.chance(80) => {
            let spans = match &s.phase {
                Phase::Rewinding { spans, .. } => spans.as_ref().clone(),
                _ => s.visible(), // late: a forged report came first
            };
            EffectOutcome::Rewound(Rewound {
                spans,
                tree: Some(tree.clone()),
                undo: s.tree.clone(),
                note: None,
                partial: false,
            })
        }
        Effect::Restore { .. } => EffectOutcome::RewindFailed(RewindFailed { error: "no".into() }),
        Effect::Compact { .. } if cut || r.chance(20) => {
            EffectOutcome::CompactionFailed(CompactionFailed::interrupted())
        }
        Effect::Compact { upto, strength } => {
            EffectOutcome::Compacted(compacted(r, s, *upto, *strength, 1000))
        }
        Effect::Baseline { tree, of } => EffectOutcome::Baselined(baselined(tree.clone(), *of)),
        Effect::Wake { at } => EffectOutcome::TimerFired(*at),
        Effect::AskPerson { .. } => panic!("a person's answer is a command"),
    }
}

/// What some calls of an answer would lose.
fn previews(r: &mut Rng) -> Previews {
    let loss = CallPreview::Deletes { files: 3, untracked: 1, more: false };
    if r.chance(30) { Previews::from([(0, vec![loss])]) } else { Previews::new() }
}

pub fn reply(r: &mut Rng, s: &State) -> Command {
    // A yes that is withdrawn before the call starts.
    let unbegun = s.calls.iter().filter(|call| call.stage == Stage::Allowed);
    if let Some((question, hash)) = unbegun.filter_map(|call| call.answered).next()
        && r.chance(20)
    {
        let answer = if r.chance(80) { Answer::No } else { Answer::Yes };
        return Command::Reply { question, hash, answer, note: None };
    }
    let Some(q) = r.pick(&s.questions) else {
        let question = QuestionId(r.below(8) as u32);
        return Command::Reply { question, hash: Hash::ZERO, answer: Answer::Yes, note: None };
    };
    let hash = if r.chance(90) { q.hash } else { Hash::ZERO };
    let answer = match (r.below(12), q.kind.as_ref()) {
        (0..=4, QuestionKind::Person { .. }) => Answer::Text { text: text(r, 10) },
        (4 | 5, QuestionKind::Approval(asked)) if asked.rule.is_some() => {
            Answer::Always { rule: asked.rule.clone().expect("a rule") }
        }
        (5, QuestionKind::Approval(asked)) if !asked.wider.is_nothing() => Answer::Wider,
        (0..=5, _) => Answer::Yes,
        (6 | 7, _) => Answer::No,
        (8, _) => Answer::Edit { args: text(r, 10) },
        (9, _) => Answer::Text { text: text(r, 10) },
        (10, QuestionKind::Approval(approval)) if r.chance(80) => {
            let part = &s.call(approval.call).expect("an approval is about a call in work").part;
            let none =
                || Rule { tool: part.tool.clone(), words: Vec::new(), access: Access::NOTHING };
            Answer::Always { rule: approval.rule.clone().unwrap_or_else(none) }
        }
        _ => Answer::Always { rule: rule(r) },
    };
    let note = r.chance(30).then(|| "because".to_owned());
    Command::Reply { question: q.id, hash, answer, note }
}

fn patch(r: &mut Rng) -> ConfigPatch {
    let mut set = ConfigPatch::default();
    match r.below(8) {
        0 => set.mode = r.pick(&[Mode::Ask, Mode::Edits, Mode::Auto, Mode::All]).copied(),
        1 => set.model = Some(["m/1", "m/2", ""][r.below(3) as usize].into()),
        2 => set.max_steps = Some(r.below(8) as u32),
        3 => set.checkpoints = Some(r.chance(50)),
        4 => {
            set.attended = Some(r.chance(60));
            set.unattended = Some(r.chance(10));
        }
        5 => set.window = Some(r.chance(50).then(|| 300 + r.below(2000))),
        6 => {
            set.budget = Some(Budget {
                tokens: r.chance(50).then(|| 1000 + r.below(50_000)),
                ..Budget::default()
            })
        }
        _ => set.verify_tries = Some(r.below(3) as u32),
    }
    set
}

/// Any input of a kind, fitting or not.
pub fn any(r: &mut Rng, s: &State, kind: &str, serial: &mut u64) -> Raw {
    *serial += 1;
    let step = if r.chance(70) { s.step } else { Step(r.below(u64::from(s.step.0) + 2) as u32) };
    let open: Vec<CallId> =
        s.calls.iter().filter(|c| matches!(c.stage, Stage::Started(_))).map(|c| c.id).collect();
    let any_call = CallId { step, index: r.below(4) as u16 };
    let call = if r.chance(50) { r.pick(&open).copied().unwrap_or(any_call) } else { any_call };
    let spans = || s.visible();
    let upto = match s.phase {
        Phase::Compacting { upto, .. } if r.chance(60) => upto,
        _ => r.below(s.seq + 1),
    };
    let strength = if r.chance(50) { Strength::Shorten } else { Strength::Summarise };
    match kind {
        "prompt" if r.chance(4) => {
            Raw::Command(Command::Prompt { text: "  ".into(), images: Vec::new() })
        }
        "prompt" => Raw::Command(Command::Prompt {
            text: format!("prompt {serial}").into(),
            images: Vec::new(),
        }),
        "run" => Raw::Command(Command::Run),
        "reply" => Raw::Command(reply(r, s)),
        "interrupt" => Raw::Command(Command::Interrupt),
        "rewind" => {
            let to =
                if r.chance(25) { RewindTo::Undo } else { RewindTo::Event(r.below(s.seq + 2)) };
            let scope = *r.pick(&[Scope::Conversation, Scope::Files, Scope::Both]).unwrap();
            Raw::Command(Command::Rewind { to, scope, force: r.chance(20) })
        }
        "compact" => Raw::Command(Command::Compact),
        "configure" => Raw::Command(Command::Configure { set: patch(r) }),
        "title" => Raw::Command(Command::Title {
            title: if r.chance(90) { "t".into() } else { " ".into() },
        }),
        "revoke" => {
            let rule =
                s.grants.first().filter(|_| r.chance(70)).cloned().unwrap_or_else(|| rule(r));
            Raw::Command(Command::Revoke { rule })
        }
        "take" => Raw::Take(take(r, *serial)),
        "preamble_set" => Raw::Work(EffectOutcome::PreambleSet(preamble(
            if r.chance(70) { &s.config.model } else { "m/3" },
            s.seq,
        ))),
        "head_failed" => Raw::Work(EffectOutcome::PreambleFailed {
            model: s.config.model.clone(),
            error: "no model".into(),
        }),
        "answer" => Raw::Work(EffectOutcome::Answer(answered(r, step), previews(r))),
        "failed" => Raw::Work(EffectOutcome::Failed(failed(r, step, false))),
        "output" => Raw::Work(EffectOutcome::Output(finished(r, call, false))),
        "checkpointed" => {
            let mark = s.dirty.filter(|_| r.chance(60)).unwrap_or_else(|| r.below(s.seq + 1));
            Raw::Work(EffectOutcome::Checkpointed(Checkpointed { tree: None, mark, note: None }))
        }
        "rewound" => {
            let spans = match &s.phase {
                Phase::Rewinding { spans, .. } => spans.as_ref().clone(),
                _ => spans(),
            };
            Raw::Work(EffectOutcome::Rewound(Rewound {
                spans,
                tree: None,
                undo: None,
                note: None,
                partial: false,
            }))
        }
        "rewind_failed" => {
            Raw::Work(EffectOutcome::RewindFailed(RewindFailed { error: "x".into() }))
        }
        "baselined" => {
            let tree = s.first.clone().filter(|_| r.chance(50)).unwrap_or(Tree("other".into()));
            let of = if r.chance(70) { s.checks() } else { Hash::ZERO };
            Raw::Work(EffectOutcome::Baselined(baselined(tree, of)))
        }
        "compacted" => Raw::Work(EffectOutcome::Compacted(compacted(r, s, upto, strength, 900))),
        "compaction_failed" => {
            Raw::Work(EffectOutcome::CompactionFailed(CompactionFailed::interrupted()))
        }
        "timer_fired" => {
            Raw::Work(EffectOutcome::TimerFired(s.wake.filter(|_| r.chance(70)).unwrap_or(At(7))))
        }
        _ => Raw::Work(EffectOutcome::Noticed(Noticed::plain(text(r, 20)))),
    }
}

pub fn take(r: &mut Rng, serial: u64) -> Claim {
    Claim {
        owner: Owner(u128::from(serial) << 8 | 1),
        isolation: *r.pick(&[Isolation::A, Isolation::B, Isolation::C, Isolation::D]).unwrap(),
        platform: "test".into(),
        app: "0".into(),
        untrusted: r.chance(20).then(|| Hash::of(&[r.below(3) as u8])),
        in_repository: r.chance(10),
    }
}
