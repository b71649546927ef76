//! A short tour without a model: a recorded session, played back like a live one.

use crate::host::HostEvent;
use dunnock_proto::{
    Access, Answer, Answered, Approval, Asked, At, Attempt, CallId, CallPart, Cause, Config,
    Created, Delta, EndReason, Ended, Event, Finished, Frame, Hash, Isolation, Mode, Outcome,
    Owner, OwnerChanged, Part, PlanStep, Planned, Prompted, Proof, QuestionId, Record, Recovery,
    Replied, Reserved, Started, Step, StepStarted, Stop, Usage, VerifyArgs, seal,
};
use dunnock_proto::{QuestionKind, Reason, RequestKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const TASK: &str = "The test in tests/dates.rs fails on the last day of a month. Fix the cause.";
const THOUGHT: &str = "The failing case adds one month to 31 January, so the day must be clamped \
                       to the last day of the month.";
const FIRST: &str = "The clamp is missing in `add_months`. I'll fix it and run the tests.";
const LAST: &str = "`add_months` now stays on the **last day** of a shorter month.\n\n| case | \
                    before | now |\n|---|---|---|\n| 31 Jan + 1 month | panic | 28 Feb |\n| 31 \
                    Mar + 1 month | panic | 30 Apr |\n";
const END: &str = "This was the tour: nothing was sent or changed. To start for real, type a task.";

/// Starts playing the tour.
pub(crate) fn play() -> mpsc::Receiver<HostEvent> {
    let (send, receive) = mpsc::channel(64);
    tokio::spawn(async move {
        for (wait, frame) in script() {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if send.send(HostEvent::Frame(frame)).await.is_err() {
                return;
            }
        }
        let _ = send.send(HostEvent::Text(vec![END.into()])).await;
        // The tour stays on the screen; a real session starts empty.
        let _ = send.send(HostEvent::Closed).await;
    });
    receive
}

struct Tape {
    seq: u64,
    prev: Hash,
    frames: Vec<(u64, Frame)>,
}

impl Tape {
    fn fact(&mut self, wait: u64, event: impl Into<Event>) {
        let record: Record = seal(
            self.seq,
            self.prev,
            At(i64::try_from(self.seq * 900).unwrap_or(0)),
            Cause::Driver,
            &event.into(),
        );
        self.seq += 1;
        self.prev = record.chain();
        self.frames.push((wait, Frame::Event(Arc::new(record))));
    }
    fn words(&mut self, step: Step, text: &str, thought: bool) {
        let mut offset = 0;
        for word in text.split_inclusive(' ') {
            let piece: Arc<str> = word.into();
            let delta = if thought {
                Delta::Reasoning { step, attempt: 0, offset, text: piece }
            } else {
                Delta::Text { step, attempt: 0, offset, text: piece }
            };
            self.frames.push((35, Frame::Delta(delta)));
            offset += word.len() as u64;
        }
    }
    fn output(&mut self, call: CallId, wait: u64, offset: u64, text: &str) {
        let delta = Delta::Output { call, offset, stream: "out".into(), text: text.into() };
        self.frames.push((wait, Frame::Delta(delta)));
    }
}

fn part(tool: &str, args: serde_json::Value) -> Part {
    let args = args.to_string().into();
    Part::Call(Arc::new(CallPart {
        id: "demo".into(),
        tool: tool.into(),
        args,
        sent: None,
        recovered: false,
        fault: None,
    }))
}

/// Every frame, with the delay before it in milliseconds.
pub(crate) fn script() -> Vec<(u64, Frame)> {
    let mut tape = Tape { seq: 0, prev: Hash::ZERO, frames: Vec::new() };
    let owner = Owner(1);
    let config = Config {
        model: "demo/tour".into(),
        mode: Mode::Auto,
        max_steps: 20,
        window: Some(32_000),
        checkpoints: true,
        verify: vec!["cargo test dates".into()],
        price: Some(dunnock_proto::Price {
            input: 1_000_000,
            cached: 100_000,
            output: 4_000_000,
            written: 0,
        }),
        ..Config::default()
    };
    tape.fact(0, Created { workspace: "~/webshop".into(), app: "demo".into(), config, base: None });
    let taken = OwnerChanged {
        owner,
        isolation: Isolation::A,
        platform: "linux".into(),
        app: "demo".into(),
        lost: Reserved::default(),
        in_repository: false,
    };
    tape.fact(0, taken);
    tape.fact(0, Prompted { text: TASK.into(), images: Vec::new() });
    let step = |n: u32| StepStarted {
        step: Step(n),
        upto: 3,
        preamble: Hash::ZERO,
        reserved: Reserved::default(),
    };
    let answered = |n: u32, input: u64, parts: Vec<Part>| Answered {
        step: Step(n),
        attempts: vec![Attempt { at: At(0), ms: 900, error: None, usage: Usage::default() }],
        model: "demo/tour".into(),
        wire: "chat".into(),
        parts,
        stop: Stop::Calls,
        usage: Usage { input, cached: input / 2, output: 120, ..Usage::default() },
        request: Hash::ZERO,
        items: Vec::new(),
        effort_refused: false,
        raw: None,
        server_tools: Vec::new(),
    };
    let call = |step: u32, index: u16| CallId { step: Step(step), index };
    let started = |call: CallId| Started { call, owner, recovery: Recovery::Unknown };
    let plan_step = |text: &str, state: &str| PlanStep { text: text.into(), state: state.into() };
    tape.fact(300, step(1));
    tape.words(Step(1), THOUGHT, true);
    tape.words(Step(1), FIRST, false);
    let old = "Date::new(year, month, self.day)";
    let new = "// The 31st does not exist in every month: stay on the last day.\nlet day = \
               self.day.min(days_in(year, month));\nDate::new(year, month, day)";
    let parts = vec![
        Part::Reasoning { text: THOUGHT.into(), opaque: None },
        Part::Text { text: FIRST.into() },
        part("search_text", serde_json::json!({"pattern": "add_months", "path": "src"})),
        part("replace_text", serde_json::json!({"path": "src/dates.rs", "old": old, "new": new})),
        part("shell", serde_json::json!({"command": "cargo add time@0.3"})),
    ];
    tape.fact(200, answered(1, 3_900, parts));
    tape.fact(
        0,
        Planned {
            steps: vec![
                plan_step("clamp the day", "active"),
                plan_step("run the tests", "pending"),
            ],
        },
    );
    tape.fact(0, started(call(1, 0)));
    let found = "src/dates.rs:40\nsrc/cart.rs:12\nsrc/cart.rs:31\ntests/dates.rs:8\n";
    tape.fact(500, Finished { ms: 3, ..Finished::plain(call(1, 0), Outcome::Done, found) });
    tape.fact(0, started(call(1, 1)));
    tape.fact(
        500,
        Finished {
            diff: Some(Hash::ZERO),
            ..Finished::plain(call(1, 1), Outcome::Done, "replaced 1 place")
        },
    );
    let hosts = ["crates.io", "index.crates.io", "static.crates.io"].into_iter();
    let approval = Approval {
        call: call(1, 2),
        call_hash: Hash::ZERO,
        request: RequestKind::Hosts,
        reasons: vec![Reason::UsesNetwork { program: "cargo".into() }],
        isolation: Some(Isolation::A),
        access: Access {
            hosts: hosts.filter_map(|host| host.parse().ok()).collect(),
            ..Access::NOTHING
        },
        wider: Access { network: true, ..Access::NOTHING },
        rule: None,
        project_code: false,
        preview: Vec::new(),
    };
    let kind = QuestionKind::Approval(Box::new(approval));
    tape.fact(300, Asked { question: QuestionId(1), kind, hash: Hash::ZERO });
    tape.fact(
        3_500,
        Replied {
            question: QuestionId(1),
            answer: Answer::No,
            note: Some("no new crate for this".into()),
        },
    );
    let declined = Outcome::Declined { note: Some("no new crate for this".into()) };
    tape.fact(0, Finished::plain(call(1, 2), declined, "declined"));
    tape.fact(100, step(2));
    tape.words(Step(2), LAST, false);
    tape.fact(200, answered(2, 4_600, vec![Part::Text { text: LAST.into() }]));
    let check = VerifyArgs { command: "cargo test dates".into() };
    tape.fact(
        0,
        dunnock_proto::CheckCalled {
            call: call(2, 0),
            tool: "verify".into(),
            args: check.text().into(),
            tried: 1,
            class: dunnock_proto::Class::Command,
            recovery: Recovery::Repeat,
        },
    );
    tape.fact(0, started(call(2, 0)));
    tape.output(call(2, 0), 600, 0, "   Compiling webshop v0.4.0\n");
    tape.output(call(2, 0), 900, 28, "     Running tests/dates.rs\n");
    tape.fact(
        900,
        Finished {
            ms: 2_400,
            exit: Some(0),
            ..Finished::plain(call(2, 0), Outcome::Done, "test result: ok. 14 passed\n")
        },
    );
    tape.fact(100, Ended { reason: EndReason::Done, proof: Proof::Proven, hold: false });
    tape.frames
}
