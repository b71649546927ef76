//! A session made by hand, and an app that watches it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use dunnock_proto::*;
use dunnock_tui::{Effect, HostEvent, Input, State, Theme, Welcome, update, view};
use std::sync::Arc;

thread_local! {
    /// What came through the link in the scenes of this thread: the web app is tested with the same.
    pub static FRAMES: std::cell::RefCell<Vec<serde_json::Value>> = const { std::cell::RefCell::new(Vec::new()) };
}

pub struct Tape {
    pub state: State,
    pub effects: Vec<Effect>,
    pub now: u64,
    seq: u64,
    prev: Hash,
    shown: Vec<dunnock_tui::Line>,
}

pub fn welcome() -> Welcome {
    Welcome {
        version: "0.1.0".into(),
        folder: "~/webshop".into(),
        branch: Some("main".into()),
        level: Some('A'),
        model: Some("openai/gpt-5.1".into()),
        found: vec!["openai/gpt-5.1 (because OPENAI_API_KEY is set)".into()],
        notes: vec![
            "using instructions from AGENTS.md. Dunnock runs nothing in it by itself.".into(),
        ],
        missing: Vec::new(),
        mode: Some(Mode::Auto),
    }
}

impl Tape {
    pub fn new(columns: u16, rows: u16) -> Self {
        let state = State::new((columns, rows), Theme::Dark, [7; 16]);
        Self { state, effects: Vec::new(), now: 1_000, seq: 0, prev: Hash::ZERO, shown: Vec::new() }
    }

    pub fn input(&mut self, input: Input) -> &mut Self {
        self.effects.extend(update(&mut self.state, input, self.now));
        self
    }

    pub fn told(&mut self, told: HostEvent) -> &mut Self {
        if let HostEvent::Frame(frame) = &told {
            FRAMES.with_borrow_mut(|all| all.push(serde_json::to_value(frame).unwrap()));
        }
        self.input(Input::Host(told))
    }

    pub fn wait(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self
    }

    pub fn key(&mut self, code: KeyCode) -> &mut Self {
        self.input(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    /// Presses an answer key, and no other one until it takes effect.
    pub fn answer(&mut self, c: char) -> &mut Self {
        self.key(KeyCode::Char(c)).wait(500).input(Input::Tick)
    }

    pub fn control(&mut self, c: char) -> &mut Self {
        self.input(Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)))
    }

    pub fn type_in(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
        self
    }

    pub fn welcome(&mut self) -> &mut Self {
        self.told(HostEvent::Welcome(welcome()))
    }

    pub fn fact(&mut self, event: impl Into<Event>) -> &mut Self {
        let at = At(i64::try_from(self.seq).unwrap() * 700);
        let record = seal(self.seq, self.prev, at, Cause::Driver, &event.into());
        self.seq += 1;
        self.prev = record.chain();
        self.told(HostEvent::Frame(Frame::Event(Arc::new(record))))
    }

    pub fn delta(&mut self, delta: Delta) -> &mut Self {
        self.told(HostEvent::Frame(Frame::Delta(delta)))
    }

    /// A session that was just made.
    pub fn begun(&mut self, config: Config) -> &mut Self {
        self.welcome();
        let id = SessionId::from_random([3; 16]);
        self.told(HostEvent::Opened { id, upto: 0, resumed: None, draft: None });
        self.fact(Created {
            workspace: "/home/ada/webshop".into(),
            app: "0.1.0".into(),
            config,
            base: None,
        });
        let taken = OwnerChanged {
            owner: Owner(1),
            isolation: Isolation::A,
            platform: "linux".into(),
            app: "0.1.0".into(),
            lost: Reserved::default(),
            in_repository: false,
        };
        self.fact(taken)
    }

    /// The same, with a task given.
    pub fn working(&mut self) -> &mut Self {
        self.begun(config());
        self.fact(Prompted {
            text: "The test in tests/dates.rs fails on the last day of a month. Fix the cause."
                .into(),
            images: Vec::new(),
        });
        self.step(1)
    }

    pub fn step(&mut self, n: u32) -> &mut Self {
        self.fact(StepStarted {
            step: Step(n),
            upto: self.seq,
            preamble: Hash::ZERO,
            reserved: Reserved::default(),
        })
    }

    pub fn text(&mut self, n: u32, offset: usize, text: &str) -> &mut Self {
        self.delta(Delta::Text {
            step: Step(n),
            attempt: 0,
            offset: offset as u64,
            text: text.into(),
        })
    }

    pub fn thought(&mut self, n: u32, text: &str) -> &mut Self {
        self.delta(Delta::Reasoning { step: Step(n), attempt: 0, offset: 0, text: text.into() })
    }

    pub fn answered(&mut self, n: u32, parts: Vec<Part>) -> &mut Self {
        let answer = self.answer_of(n, parts);
        self.fact(answer)
    }

    pub fn answer_of(&self, n: u32, parts: Vec<Part>) -> Answered {
        Answered {
            step: Step(n),
            attempts: Vec::new(),
            model: "openai/gpt-5.1".into(),
            wire: "chat".into(),
            parts,
            stop: Stop::End,
            usage: Usage {
                input: 3_900 * u64::from(n),
                cached: 2_000,
                output: 120,
                ..Usage::default()
            },
            request: Hash::ZERO,
            items: Vec::new(),
            effort_refused: false,
            raw: None,
            server_tools: Vec::new(),
        }
    }

    pub fn started(&mut self, call: CallId) -> &mut Self {
        self.fact(Started { call, owner: Owner(1), recovery: Recovery::Unknown })
    }

    /// The model wants a call, which needs approval.
    pub fn asks(&mut self, tool: &str, args: serde_json::Value, approval: Approval) -> &mut Self {
        let call_hash = Hash::of(format!("{tool} {args}").as_bytes());
        self.answered(1, vec![call(tool, args)]);
        self.question(QuestionKind::Approval(Box::new(Approval { call_hash, ..approval })))
    }

    /// The same, for no other reason than the mode.
    pub fn asks_plain(&mut self, args: serde_json::Value) -> &mut Self {
        self.asks("shell", args, approval(RequestKind::Command, Reason::ModeAsk))
    }

    pub fn question(&mut self, kind: QuestionKind) -> &mut Self {
        let question = QuestionId(u32::try_from(self.state.session.questions.len()).unwrap() + 1);
        let hash = kind.hash(question);
        self.fact(Asked { question, kind, hash })
    }

    /// Everything that is seen: what went up, and what stands below.
    pub fn screen(&mut self) -> String {
        let done = std::mem::take(&mut self.state.out);
        self.shown.extend(done);
        let view = view(&self.state, self.now);
        let mut lines: Vec<String> =
            self.shown.iter().map(|l| l.plain().trim_end().to_owned()).collect();
        lines.push(format!("{:·^width$}", " live ", width = usize::from(self.state.size.0)));
        lines.extend(view.lines.iter().map(|l| l.plain().trim_end().to_owned()));
        match view.cursor {
            Some((row, column)) => lines.push(format!("(cursor {row}:{column})")),
            None => lines.push("(no cursor)".into()),
        }
        lines.join("\n") + "\n"
    }

    /// The same with colours, as the terminal is told.
    pub fn painted(&mut self) -> String {
        let done = std::mem::take(&mut self.state.out);
        self.shown.extend(done);
        let view = view(&self.state, self.now);
        let theme = self.state.theme;
        let lines: Vec<String> = self
            .shown
            .iter()
            .chain(&view.lines)
            .map(|l| theme.paint(l).replace('\x1b', "␛"))
            .collect();
        lines.join("\n") + "\n"
    }

    /// The orders that went out.
    pub fn requests(&self) -> Vec<CommandRequest> {
        let request = |effect: &Effect| match effect {
            Effect::Ask(dunnock_tui::HostRequest::Command(request)) => Some(request.clone()),
            _ => None,
        };
        self.effects.iter().filter_map(request).collect()
    }

    /// What they want.
    pub fn commands(&self) -> Vec<Command> {
        self.requests().into_iter().map(|request| request.command).collect()
    }
}

pub fn config() -> Config {
    Config {
        model: "openai/gpt-5.1".into(),
        max_steps: 20,
        window: Some(32_000),
        checkpoints: true,
        price: Some(Price { input: 1_250_000, cached: 125_000, output: 10_000_000, written: 0 }),
        ..Config::default()
    }
}

pub fn id(step: u32, index: u16) -> CallId {
    CallId { step: Step(step), index }
}

pub fn call(tool: &str, args: serde_json::Value) -> Part {
    let args = args.to_string().into();
    Part::Call(Arc::new(CallPart {
        id: "x".into(),
        tool: tool.into(),
        args,
        sent: None,
        recovered: false,
        fault: None,
    }))
}

pub fn say(text: &str) -> Part {
    Part::Text { text: text.into() }
}

/// A request for approval of the first call, in a full sandbox.
pub fn approval(request: RequestKind, reason: Reason) -> Approval {
    Approval {
        call: id(1, 0),
        call_hash: Hash::ZERO,
        request,
        reasons: vec![reason],
        isolation: Some(Isolation::A),
        access: Access::NOTHING,
        wider: Access::NOTHING,
        rule: None,
        project_code: false,
        preview: Vec::new(),
    }
}

/// The same for another call of the answer.
pub fn approval_of(call: CallId) -> QuestionKind {
    let approval = approval(RequestKind::Command, Reason::ModeAsk);
    QuestionKind::Approval(Box::new(Approval { call, ..approval }))
}

/// The rule of an "always" that grants nothing more.
pub fn rule(words: &[&str]) -> Rule {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Rule { tool: "shell".into(), words, access: Access::NOTHING }
}
