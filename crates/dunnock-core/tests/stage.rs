//! A stage for scenes: what goes in on the left, the events that come out below.
//!
//! `> words` a prompt, `< words` an answer, `< tool: args` a call in it (several with `|`), `= 1.0
//! words` a call's end, `! yes`, `! no note`, `! edit args`, `! words` an answer to the first
//! question, `stop`, `go`, `crash`, `fail words`.

use crate::inputs::preamble;
use dunnock_core::policy::Policy;
use dunnock_core::{
    Claim, DecideContext, EffectOutcome, Input, Previews, Report, State, apply, begin, decide,
    wanted,
};
use dunnock_proto::*;
use std::fmt::Write as _;
use std::sync::Arc;

pub struct Scene {
    pub s: State,
    pub owner: u128,
    pub serial: u32,
    pub out: String,
    pub log: Vec<Event>,
    pub day_left: Option<u64>,
    pub at: At,
}

pub fn scene(config: Config) -> Scene {
    scene_at(config, Isolation::A)
}

/// A scene on a machine with this isolation level.
pub fn scene_at(config: Config, level: Isolation) -> Scene {
    let mut s = State::default();
    let created: Event = Created {
        workspace: "/w".into(),
        app: "0".into(),
        config: Config { model: "m/1".into(), ..config },
        base: None,
    }
    .into();
    apply(&mut s, &created);
    let mut scene = Scene {
        s,
        owner: 0,
        serial: 0,
        out: String::new(),
        log: vec![created],
        day_left: None,
        at: At(0),
    };
    scene.take_at(level);
    scene.out.clear();
    scene
}

impl Scene {
    pub fn take(&mut self) {
        self.take_at(Isolation::A);
    }

    /// Another process takes over, on a machine with this isolation level.
    pub fn take_at(&mut self, isolation: Isolation) {
        self.owner += 1;
        let (platform, app) = ("t".to_owned(), "0".to_owned());
        let take = Claim {
            owner: Owner(self.owner),
            isolation,
            platform,
            app,
            untrusted: None,
            in_repository: false,
        };
        self.give(Input::Claim(take));
    }

    pub fn give(&mut self, input: Input) {
        let me = Owner(self.owner);
        match decide(
            &self.s,
            &DecideContext {
                day_left: self.day_left,
                tree_at: None,
                preamble_drift: None,
                at: self.at,
                policy: Policy::default(),
            },
            input,
        ) {
            Err(refused) => writeln!(self.out, "  refused: {refused:?}").unwrap(),
            Ok(events) => {
                events.iter().for_each(|e| self.told(e));
                for event in begin(&self.s, me) {
                    self.told(&event);
                }
            }
        }
        // The preamble comes by itself.
        if wanted(&self.s, me)
            .iter()
            .any(|e| matches!(e, dunnock_core::Effect::RenderPreamble { .. }))
        {
            let preamble = preamble(&self.s.config.model, 0);
            self.give(Input::Report(Report {
                owner: me,
                work: EffectOutcome::PreambleSet(preamble),
            }));
        }
    }

    pub fn told(&mut self, event: &Event) {
        apply(&mut self.s, event);
        self.log.push(event.clone());
        let detail = match event {
            Event::Prompted(e) => e.text.to_string(),
            Event::StepStarted(e) => {
                format!(
                    "{} holding {} tokens {} micros",
                    e.step, e.reserved.tokens, e.reserved.micros
                )
            }
            Event::Asked(e) => {
                let view = e.kind.view();
                let call = e.kind.approval().and_then(|approval| self.s.call(approval.call));
                let call = call.map(|call| format!("{} {}", call.part.tool, call.args()));
                let call = call.map(|call| call.replace("{\"command\":\"", "").replace("\"}", ""));
                let text = call.or(view.text).unwrap_or_default();
                let why = if view.reasons.is_empty() { "" } else { " / why: " };
                format!("{} {text}{why}{}", e.question, view.reasons.join("; "))
            }
            Event::Allowed(e) => {
                format!(
                    "{} {:?}{}",
                    e.call,
                    e.by,
                    e.args.as_ref().map_or(String::new(), |a| format!(" as {a}"))
                )
            }
            Event::Started(e) => e.call.to_string(),
            Event::CheckCalled(e) => format!("{} {} try {}", e.call, e.args, e.tried),
            Event::Finished(e) => format!("{} {:?} {}", e.call, e.outcome, e.shown),
            Event::Ended(e) => {
                format!("{:?} {:?}{}", e.reason, e.proof, if e.hold { " held" } else { "" })
            }
            Event::CompactionStarted(e) => format!("{:?} upto {}", e.strength, e.upto),
            Event::CompactionFailed(e) => e.error.clone(),
            Event::Noticed(e) if e.kind != NoticeKind::Info => format!("{:?}", e.kind),
            Event::Planned(e) => format!("{} steps", e.steps.len()),
            _ => String::new(),
        };
        writeln!(self.out, "  {} {detail}", event.kind()).unwrap();
    }

    pub fn command(&mut self, command: Command) {
        self.serial += 1;
        let id = format!("c{}", self.serial).parse().unwrap();
        self.give(Input::Command(CommandRequest { id, expect: None, command }));
    }

    pub fn work(&mut self, work: EffectOutcome) {
        self.give(Input::Report(Report { owner: Owner(self.owner), work }));
    }

    pub fn answer(&mut self, parts: Vec<Part>, usage: Usage) {
        let (step, model, wire) = (self.s.step, "m/1".into(), "chat".into());
        let attempts = vec![Attempt { at: At(1), ms: 7, error: None, usage: Usage::default() }];
        let stop = Stop::End;
        let answered = Answered {
            step,
            attempts,
            model,
            wire,
            parts,
            stop,
            usage,
            request: Hash::ZERO,
            items: Vec::new(),
            effort_refused: false,
            raw: None,
            server_tools: Vec::new(),
        };
        self.work(EffectOutcome::Answer(answered, Previews::new()));
    }

    pub fn line(&mut self, line: &str) {
        writeln!(self.out, "{line}").unwrap();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            ">" => self.command(Command::Prompt { text: rest.into(), images: Vec::new() }),
            "<" => {
                let part = |text: &str| match text.split_once(": ") {
                    Some((tool, args)) => {
                        // Words become an object; what is written as JSON, or as broken JSON, stays
                        // as it is.
                        let session = matches!(tool, "ask_person" | "update_plan");
                        let args = if session || args.starts_with('{') {
                            args.into()
                        } else {
                            format!("{{\"command\":\"{args}\"}}")
                        };
                        let (id, tool, args) = ("call_0".into(), tool.into(), args.into());
                        Part::Call(Arc::new(CallPart {
                            id,
                            tool,
                            args,
                            sent: None,
                            recovered: false,
                            fault: None,
                        }))
                    }
                    None => Part::Text { text: text.into() },
                };
                self.answer(
                    rest.split(" | ").map(part).collect(),
                    Usage { input: 100, cached: 40, output: 20, reasoning: 0, written: 0 },
                );
            }
            "=" => {
                let (call, shown) = rest.split_once(' ').unwrap();
                let outcome = if shown == "failed" { Outcome::Failed } else { Outcome::Done };
                let call = call.parse().unwrap();
                self.work(EffectOutcome::Output(Finished {
                    ms: 5,
                    ..Finished::plain(call, outcome, shown)
                }));
            }
            "!" => {
                let Some(q) = self.s.questions.first().cloned() else {
                    panic!("nothing is asked at {line}")
                };
                let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
                let note = (!more.is_empty()).then(|| more.to_owned());
                let answer = match first {
                    "yes" => Answer::Yes,
                    "no" => Answer::No,
                    "edit" => Answer::Edit { args: more.into() },
                    "always" => {
                        let (tool, words) = more.split_once(' ').unwrap_or((more, ""));
                        let words =
                            words.split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect();
                        let rule = Rule { tool: tool.into(), words, access: Access::NOTHING };
                        Answer::Always { rule }
                    }
                    _ => Answer::Text { text: rest.into() },
                };
                self.command(Command::Reply { question: q.id, hash: q.hash, answer, note });
            }
            "stop" => self.command(Command::Interrupt),
            "go" => self.command(Command::Run),
            "compact" => self.command(Command::Compact),
            "crash" => self.take(),
            "fail" => {
                let no_answer = match rest {
                    "empty" => Some(NoAnswer::Empty),
                    "too long" => Some(NoAnswer::CutOff),
                    _ => None,
                };
                let failure = match rest {
                    "overflow" => Failure::Overflow,
                    "cut" => Failure::Interrupted,
                    "empty" | "too long" => Failure::Rejected,
                    _ => Failure::Transport,
                };
                let retry_at = (rest == "later").then_some(At(9));
                let (step, attempts, partial) = (self.s.step, Vec::new(), "".into());
                let usage = Usage::default();
                self.work(EffectOutcome::Failed(StepFailed {
                    step,
                    attempts,
                    failure,
                    error: rest.into(),
                    partial,
                    no_answer,
                    usage,
                    retry_at,
                    incomplete: false,
                    lost: Reserved::default(),
                }));
            }
            "shrunk" | "grown" => {
                let dunnock_core::Phase::Compacting { upto, strength, .. } = self.s.phase else {
                    panic!("not compacting")
                };
                let summary = (strength == Strength::Summarise).then(|| Arc::from("short"));
                let (before, after) = if word == "shrunk" { (900, 80) } else { (900, 900) };
                let preamble = preamble("m/1", 1);
                self.work(EffectOutcome::Compacted(Compacted {
                    upto,
                    shortened: Vec::new(),
                    summary,
                    notes: None,
                    usage: Usage::default(),
                    preamble,
                    before,
                    after,
                }));
            }
            "timer_fired" => self.work(EffectOutcome::TimerFired(At(9))),
            "kept" => {
                let mark = self.s.dirty.unwrap_or(0);
                self.work(EffectOutcome::Checkpointed(Checkpointed {
                    tree: Some(Tree("t".into())),
                    mark,
                    note: None,
                }));
            }
            other => panic!("no such line: {other}"),
        }
    }
}

pub fn play(config: Config, script: &str) -> Scene {
    let mut scene = scene(config);
    script.lines().for_each(|line| scene.line(line.trim()));
    scene
}

/// The script and, after each line, the events it made.
#[track_caller]
pub fn check(config: Config, script_and_facts: &str) -> Scene {
    let expected: Vec<&str> =
        script_and_facts.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).collect();
    let indent = expected.iter().skip(1).map(|l| l.len() - l.trim_start().len()).min().unwrap_or(0);
    let expected: Vec<&str> =
        expected.iter().enumerate().map(|(n, l)| if n == 0 { *l } else { &l[indent..] }).collect();
    let script: Vec<&str> = expected.iter().filter(|l| !l.starts_with(' ')).copied().collect();
    let scene = play(config, &script.join("\n"));
    let got: Vec<&str> = scene.out.lines().map(str::trim_end).collect();
    assert_eq!(got.join("\n"), expected.join("\n"));
    scene
}

pub fn auto() -> Config {
    Config { max_output: 50, max_steps: 9, ..Config::default() }
}
