//! Scripted sessions through the whole engine, and the requests they sent.

use dunnock_core::{State, Transcript, apply};
use dunnock_engine::{Connection, Ports, create};
use dunnock_proto::*;
use dunnock_testkit::model::{Say, ScriptedModel};
use dunnock_testkit::scenario::Scenario;
use dunnock_testkit::tools::ScriptedTools;
use dunnock_testkit::worlds;
use std::path::Path;
use std::sync::Arc;

/// What a scenario came to when it was played to its end.
pub struct Run {
    pub facts: Vec<(Seq, Event)>,
    pub messages: String,
    pub traces: Vec<(String, String)>,
    pub said: Vec<String>,
}

/// Plays a scenario through a door in this process, answering yes to everything.
pub async fn play(ports: Ports, dir: &Path, scenario: &Scenario) -> Run {
    let session = create(&ports, "/w", scenario.config.clone()).await.unwrap();
    let log = ports.store.clone();
    let mut scene = Scene::on(Connection::open(ports, session.clone(), 0).await.unwrap());
    for text in &scenario.prompts {
        scene.prompt(text).await;
        scene.rest(Answer::Yes).await;
    }
    scene.connection.close().await;
    let facts = worlds::facts(log.as_ref(), &session).await;
    let transcript = Transcript::fold(None, facts.iter().map(|(seq, e)| (*seq, e)));
    let messages = String::from_utf8(transcript.request().unwrap().bytes()).unwrap();
    let mut traces = ScriptedTools::traces(&worlds::traces(dir));
    traces.sort();
    Run { facts, messages, traces, said: scene.said }
}

/// A door with its folded state.
pub struct Scene {
    pub connection: Connection,
    pub s: State,
    pub said: Vec<String>,
}

impl Scene {
    pub fn on(connection: Connection) -> Self {
        Self { connection, s: State::default(), said: Vec::new() }
    }
    pub async fn open(ports: &Ports, session: &SessionId) -> Self {
        Self::on(Connection::open(ports.clone(), session.clone(), 0).await.unwrap())
    }
    /// Folds everything that is in the log by now.
    pub async fn catch_up(&mut self) {
        let seq = self.connection.handle().map_or(0, |h| h.summary().borrow().seq);
        while self.s.seq < seq {
            self.next().await;
        }
    }
    async fn next(&mut self) -> Option<Event> {
        match self.connection.next().await.unwrap() {
            Frame::Event(record) => {
                let Decoded::Known(event) = record.decode() else { return None };
                apply(&mut self.s, &event);
                Some(event)
            }
            Frame::Delta(Delta::Notice { text }) => {
                self.said.push(text.to_string());
                None
            }
            _ => None,
        }
    }
    pub async fn send(&mut self, command: Command) -> Seq {
        let seq = self.connection.send(command).await.unwrap().unwrap();
        while self.s.seq < seq {
            self.next().await;
        }
        seq
    }
    pub async fn prompt(&mut self, text: &str) {
        self.send(Command::Prompt { text: text.into(), images: Vec::new() }).await;
    }
    async fn reply(&mut self, answer: Answer, note: Option<&str>) {
        let q = self.s.questions[0].clone();
        let answer = match (q.kind.as_ref(), answer) {
            (QuestionKind::Person { .. }, Answer::Yes) => Answer::Text { text: "blue".into() },
            (_, answer) => answer,
        };
        let note = note.map(str::to_owned);
        self.send(Command::Reply { question: q.id, hash: q.hash, answer, note }).await;
    }
    /// Answers the first question of the model.
    pub async fn answer(&mut self, text: &str) {
        self.reply(Answer::Text { text: text.into() }, None).await;
    }
    /// Waits for the next event.
    pub async fn listen_once(&mut self) {
        self.next().await;
    }
    /// Only listens until the session rests: somebody else answers.
    pub async fn listen(&mut self) {
        while self.s.busy() {
            self.next().await;
        }
    }
    pub async fn rest(&mut self, answer: Answer) {
        while self.s.busy() {
            if self.s.questions.is_empty() {
                self.next().await;
            } else {
                self.reply(answer.clone(), None).await;
            }
        }
    }
    pub async fn until(&mut self, kind: &str) -> Event {
        loop {
            if let Some(event) = self.next().await
                && event.kind() == kind
            {
                return event;
            }
        }
    }
    pub async fn question(&mut self) {
        while self.s.questions.is_empty() {
            self.next().await;
        }
    }
    async fn rewind(&mut self, to: RewindTo, scope: Scope) {
        self.send(Command::Rewind { to, scope, force: false }).await;
        self.rest(Answer::Yes).await;
    }
    async fn set(&mut self, set: ConfigPatch) {
        self.send(Command::Configure { set }).await;
    }
}

/// Sessions of every kind; for each, every request that was sent is rebuilt from the log, byte for
/// byte.
async fn scripted(
    name: &str,
    config: Config,
    script: Vec<Say>,
    act: impl AsyncFnOnce(&mut Scene),
) -> Vec<(Seq, Event)> {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new(script);
    let ports = worlds::in_folder(dir.path(), model.clone()).await;
    let log = ports.store.clone();
    let session = create(&ports, "/w", config).await.unwrap();
    let mut scene = Scene::on(Connection::open(ports, session.clone(), 0).await.unwrap());
    act(&mut scene).await;
    scene.rest(Answer::Yes).await;
    let live = scene.s.clone();
    scene.connection.close().await;
    let facts = worlds::facts(log.as_ref(), &session).await;
    let loaded = dunnock_engine::load(log.as_ref(), &session).await.unwrap();
    assert_eq!(loaded.state, live, "{name}: what the door folded is what the log folds to");
    let asked = model.asked.lock().unwrap().clone();
    assert!(!asked.is_empty());
    for (step, hash, bytes) in &asked {
        let upto = facts
            .iter()
            .position(|(_, e)| matches!(e, Event::StepStarted(t) if t.step == *step))
            .unwrap();
        let request =
            Transcript::fold(None, facts[..=upto].iter().map(|(s, e)| (*s, e))).request().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&request.bytes()),
            String::from_utf8_lossy(bytes),
            "{name}: step {step}"
        );
        assert_eq!(request.hash(), *hash, "{name}: step {step}");
        for (_, event) in &facts {
            if let Event::Answered(a) = event
                && a.step == *step
            {
                assert_eq!(a.request, *hash, "{name}: the answer names its request");
            }
        }
    }
    println!("{name}: {} requests rebuilt", asked.len());
    facts
}

fn ask() -> Config {
    Config { mode: Mode::Ask, attended: true, ..worlds::config() }
}

fn one_call() -> Vec<Say> {
    vec![Say::calls(&[("append", r#"{"say":"x"}"#)]), Say::text("done")]
}

fn shown(facts: &[(Seq, Event)]) -> Vec<String> {
    let ends = facts.iter().filter_map(|(_, e)| match e {
        Event::Finished(f) => Some(f.shown.to_string()),
        _ => None,
    });
    ends.collect()
}

fn count(facts: &[(Seq, Event)], kind: &str) -> usize {
    facts.iter().filter(|(_, e)| e.kind() == kind).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_scripted_sessions_send_what_the_log_says() {
    let auto = worlds::config;
    let mut sessions = 0;
    let mut done = |_: &[(Seq, Event)]| sessions += 1;

    let f = scripted("words only", auto(), vec![Say::text("hello there")], async |s| {
        s.prompt("hi").await
    })
    .await;
    assert_eq!(count(&f, "answered"), 1);
    done(&f);

    let f = scripted("one call", auto(), one_call(), async |s| s.prompt("go").await).await;
    assert_eq!(shown(&f), ["x"]);
    done(&f);

    let calls = Say::calls(&[
        ("view", r#"{"say":"a"}"#),
        ("view", r#"{"say":"b"}"#),
        ("append", r#"{"say":"c"}"#),
    ]);
    let f = scripted("parallel calls", auto(), vec![calls], async |s| s.prompt("go").await).await;
    assert_eq!(count(&f, "finished"), 3);
    done(&f);

    let slow = vec![Say::calls(&[("append", r#"{"say":"x","ms":80}"#)]), Say::text("seen both")];
    let f = scripted("steering", auto(), slow, async |s| {
        s.prompt("first").await;
        s.until("started").await;
        s.prompt("second").await;
    })
    .await;
    assert_eq!((count(&f, "prompted"), count(&f, "step_started"), count(&f, "ended")), (2, 2, 1));
    done(&f);

    let f = scripted("declined with a note", ask(), one_call(), async |s| {
        s.prompt("go").await;
        s.question().await;
        s.reply(Answer::No, Some("not today")).await;
    })
    .await;
    assert_eq!(shown(&f), ["the person declined this call: not today"]);
    done(&f);

    let f = scripted("edited arguments", ask(), one_call(), async |s| {
        s.prompt("go").await;
        s.question().await;
        s.reply(Answer::Edit { args: r#"{"say":"y"}"#.into() }, None).await;
    })
    .await;
    assert_eq!(shown(&f), ["y"]);
    done(&f);

    let edit = Say::calls(&[("edit", r#"{"path":"a","say":"x"}"#)]);
    let always = vec![edit.clone(), edit, Say::text("done")];
    let f = scripted("always", ask(), always, async |s| {
        s.prompt("go").await;
        s.question().await;
        let rule = Rule { tool: "edit".into(), words: Vec::new(), access: Access::NOTHING };
        s.reply(Answer::Always { rule }, None).await;
    })
    .await;
    assert_eq!((count(&f, "asked"), count(&f, "granted"), count(&f, "started")), (1, 1, 2));
    done(&f);

    let long = vec![Say::text("a long answer that takes its time").after(40), Say::text("short")];
    let f = scripted("interrupted while streaming", auto(), long, async |s| {
        s.prompt("go").await;
        s.until("step_started").await;
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        s.send(Command::Interrupt).await;
        s.rest(Answer::Yes).await;
        s.prompt("once more").await;
    })
    .await;
    let partial = f
        .iter()
        .find_map(|(_, e)| if let Event::StepFailed(t) = e { Some(t.clone()) } else { None })
        .unwrap();
    assert!(
        partial.failure == Failure::Interrupted && partial.partial.starts_with("a long"),
        "{partial:?}"
    );
    done(&f);

    let hang =
        vec![Say::calls(&[("append", r#"{"ms":60000}"#), ("append", "{}")]), Say::text("stopped")];
    let f = scripted("interrupted inside a tool", auto(), hang, async |s| {
        s.prompt("go").await;
        s.until("started").await;
        s.send(Command::Interrupt).await;
        s.rest(Answer::Yes).await;
        s.send(Command::Run).await;
    })
    .await;
    let ends: Vec<Outcome> = f
        .iter()
        .filter_map(
            |(_, e)| if let Event::Finished(x) = e { Some(x.outcome.clone()) } else { None },
        )
        .collect();
    assert_eq!(ends, [Outcome::NotRun, Outcome::Interrupted]);
    done(&f);

    let retry = vec![
        Say::fails(Failure::Transport, Some(At(1))),
        Say::fails(Failure::Transport, Some(At(2))),
        Say::text("at last"),
    ];
    let f = scripted("tried again", auto(), retry, async |s| s.prompt("go").await).await;
    assert_eq!(
        (count(&f, "step_failed"), count(&f, "timer_fired"), count(&f, "answered")),
        (2, 2, 1)
    );
    done(&f);

    let f = scripted(
        "rejected",
        auto(),
        vec![Say::fails(Failure::Rejected, None), Say::text("now")],
        async |s| {
            s.prompt("go").await;
            s.rest(Answer::Yes).await;
            s.send(Command::Run).await;
        },
    )
    .await;
    assert_eq!((count(&f, "ended"), count(&f, "continued")), (2, 1));
    done(&f);

    let big = |n: u64| {
        Say::calls(&[("view", r#"{"say":"0123456789012345678901234567890123456789","kb":1}"#)])
            .using(n, 10)
    };
    let filler = format!("{{\"say\":\"{}\"}}", "lorem ipsum ".repeat(200));
    let long = |n: u64| Say::calls(&[("view", filler.as_str())]).using(n, 10);
    let window = Config { window: Some(2000), max_output: 100, compact_keep: 1, ..auto() };
    let f = scripted(
        "compacted by itself",
        window,
        vec![long(500), long(1200), long(1800), big(300), Say::text("short again").using(200, 5)],
        async |s| {
            s.prompt("go").await;
        },
    )
    .await;
    assert!(count(&f, "compaction_started") >= 1 && count(&f, "compacted") >= 1);
    done(&f);

    let f = scripted(
        "compacted on request",
        auto(),
        vec![long(0), Say::text("one"), Say::text("two")],
        async |s| {
            s.prompt("go").await;
            s.rest(Answer::Yes).await;
            s.send(Command::Compact).await;
            s.rest(Answer::Yes).await;
            s.prompt("and now").await;
        },
    )
    .await;
    assert_eq!(count(&f, "compacted"), 1);
    done(&f);

    let f = scripted(
        "overflow",
        auto(),
        vec![long(0), Say::fails(Failure::Overflow, None), Say::text("fits now")],
        async |s| {
            s.prompt("go").await;
        },
    )
    .await;
    assert_eq!((count(&f, "step_failed"), count(&f, "answered")), (1, 2));
    assert!(count(&f, "compacted") >= 1);
    done(&f);

    let f = scripted(
        "another model",
        auto(),
        vec![Say::text("I am one"), Say::text("I am two")],
        async |s| {
            s.prompt("who?").await;
            s.rest(Answer::Yes).await;
            s.set(ConfigPatch { model: Some("script/2".into()), ..ConfigPatch::default() }).await;
            s.prompt("and now?").await;
        },
    )
    .await;
    assert_eq!(count(&f, "preamble_set"), 2);
    done(&f);

    let f = scripted(
        "talk taken back",
        auto(),
        vec![Say::text("one"), Say::text("two"), Say::text("three")],
        async |s| {
            s.prompt("first").await;
            s.rest(Answer::Yes).await;
            let at = s.s.seq;
            s.prompt("second").await;
            s.rest(Answer::Yes).await;
            s.rewind(RewindTo::Event(at), Scope::Conversation).await;
            s.prompt("another second").await;
            s.rest(Answer::Yes).await;
            s.rewind(RewindTo::Undo, Scope::Conversation).await;
            s.prompt("third").await;
        },
    )
    .await;
    assert_eq!(count(&f, "rewound"), 2);
    done(&f);

    let kept = Config { checkpoints: true, ..auto() };
    let f = scripted("files taken back", kept, one_call(), async |s| {
        s.prompt("go").await;
        s.rest(Answer::Yes).await;
        let asked = s.s.seq;
        s.rewind(RewindTo::Event(asked - 3), Scope::Both).await;
        s.rewind(RewindTo::Undo, Scope::Both).await;
        s.prompt("on").await;
    })
    .await;
    assert_eq!(count(&f, "rewound"), 2);
    assert!(count(&f, "checkpointed") >= 4);
    done(&f);

    let proof = Config { verify: vec!["true".into(), "false".into()], verify_tries: 2, ..auto() };
    let f =
        scripted("verified", proof, vec![Say::text("done"), Say::text("really done")], async |s| {
            s.prompt("go").await
        })
        .await;
    assert_eq!((count(&f, "check_called"), count(&f, "answered")), (4, 2));
    let end = f
        .iter()
        .rev()
        .find_map(|(_, e)| if let Event::Ended(e) = e { Some(e.clone()) } else { None })
        .unwrap();
    assert_eq!((end.reason, end.proof), (EndReason::Unproven, Proof::Failed));
    done(&f);

    let limit = Config { max_steps: 2, attended: true, ..auto() };
    let f = scripted("the limit is a question", limit, vec![one_call()[0].clone(); 3], async |s| {
        s.prompt("go").await
    })
    .await;
    assert_eq!((count(&f, "asked"), count(&f, "step_started")), (1, 4));
    done(&f);

    let thinking =
        Say { reasoning: "hm".into(), ..Say::calls(&[("nonesuch", "{}"), ("final_output", "{}")]) };
    let f = scripted("reasoning and an unknown tool", auto(), vec![thinking], async |s| {
        s.prompt("go").await
    })
    .await;
    assert_eq!(shown(&f), ["there is no tool nonesuch", "noted"]);
    done(&f);

    let broken = vec![
        Say::calls(&[("view", r#"{"panic":true}"#), ("view", r#"{"say":"fine","fail":true}"#)]),
        Say::text("ok"),
    ];
    let f = scripted("a tool that panics", auto(), broken, async |s| s.prompt("go").await).await;
    assert!(
        shown(&f).iter().any(|t| t.contains("an error inside the agent"))
            && shown(&f).contains(&"fine".to_owned())
    );
    done(&f);

    assert!(sessions >= 20, "{sessions}");
    println!("{sessions} scripted sessions");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_reaches_work() {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new(vec![Say::calls(&[("append", r#"{"ms":60000}"#)])]);
    let ports = worlds::in_folder(dir.path(), model).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::on(Connection::open(ports, session, 0).await.unwrap());
    s.prompt("go").await;
    s.until("started").await;
    let began = std::time::Instant::now();
    s.send(Command::Interrupt).await;
    s.until("ended").await;
    let took = began.elapsed();
    dunnock_testkit::timing::figure(
        "an interrupt, from the key to the end",
        took,
        std::time::Duration::from_millis(100),
    );
    s.connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_found_once_the_session_rests() {
    let dir = tempfile::tempdir().unwrap();
    let ports =
        worlds::in_folder(dir.path(), ScriptedModel::new(vec![Say::text("a hedge sparrow")])).await;
    let log = ports.store.clone();
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::on(Connection::open(ports, session.clone(), 0).await.unwrap());
    s.prompt("which bird?").await;
    s.rest(Answer::Yes).await;
    for _ in 0..200 {
        if !log.search("sparrow", 9).await.unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let found = log.search("hedge sparrow", 9).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].session, session);
    s.connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_command_is_carried_out_once() {
    let dir = tempfile::tempdir().unwrap();
    let ports = worlds::in_folder(dir.path(), ScriptedModel::new(Vec::new())).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut connection = Connection::open(ports.clone(), session.clone(), 0).await.unwrap();
    let request = CommandRequest {
        id: "same".parse().unwrap(),
        expect: None,
        command: Command::Prompt { text: "hi".into(), images: vec![] },
    };
    let first = connection.submit(request.clone()).await.unwrap().unwrap();
    let again = connection.submit(request.clone()).await.unwrap().unwrap();
    assert_eq!(first, again);
    let stale = CommandRequest {
        id: "late".parse().unwrap(),
        expect: Some(1),
        command: Command::Title { title: "t".into() },
    };
    let refusal = connection.submit(stale).await.unwrap().unwrap_err();
    assert!(
        matches!(refusal.reason, Refused::Stale { version } if version == refusal.version),
        "{refusal:?}"
    );
    connection.close().await;
    let third = dunnock_engine::submit_offline(&ports, &session, request).await.unwrap().unwrap();
    assert_eq!(third, dunnock_engine::Submitted::Stored(first));
    assert_eq!(count(&worlds::facts(ports.store.as_ref(), &session).await, "prompted"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_listener_gets_the_partial_and_a_slow_one_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let words = "word ".repeat(3000);
    let model = ScriptedModel::new(vec![
        Say::text("some words that come slowly").after(30),
        Say::text(&words),
    ]);
    let ports = worlds::in_folder(dir.path(), model).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::on(Connection::open(ports, session, 0).await.unwrap());
    s.prompt("go").await;
    s.until("step_started").await;
    tokio::time::sleep(std::time::Duration::from_millis(70)).await;
    let mut late = s.connection.handle().unwrap().frames(s.s.seq);
    let first = late.next().await.unwrap().unwrap();
    assert!(
        matches!(&first, Frame::Partial(Partial::Step { text, .. }) if text.starts_with("some words")),
        "{first:?}"
    );
    let mut slow = s.connection.handle().unwrap().frames(0);
    s.rest(Answer::Yes).await;
    s.prompt("now many").await;
    s.rest(Answer::Yes).await;
    let mut last = None;
    while let Some(frame) = slow.next().await.unwrap() {
        last = Some(frame);
    }
    assert_eq!(last, Some(Frame::Lagged), "it was cut off, and told so");
    let again = s.connection.handle().unwrap().frames(0);
    drop(again);
    s.connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_the_past_of_its_parent_and_a_future_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new(vec![Say::text("one"), Say::text("two"), Say::text("three")]);
    let ports = worlds::in_folder(dir.path(), model.clone()).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let mut s = Scene::on(Connection::open(ports.clone(), session.clone(), 0).await.unwrap());
    s.prompt("first").await;
    s.rest(Answer::Yes).await;
    let at = s.s.seq;
    s.prompt("second").await;
    s.rest(Answer::Yes).await;
    s.connection.close().await;
    let child = dunnock_engine::fork(&ports, &session, at).await.unwrap();
    let mut c = Scene::on(Connection::open(ports.clone(), child.clone(), 0).await.unwrap());
    c.prompt("other second").await;
    c.rest(Answer::Yes).await;
    let told = String::from_utf8(model.asked.lock().unwrap().last().unwrap().2.clone()).unwrap();
    assert!(
        told.contains("first") && told.contains("other second") && !told.contains("\"second\""),
        "{told}"
    );
    assert!(c.s.step > Step(2), "ids are unique across both");
    let before = told;
    c.rewind(RewindTo::Event(1), Scope::Conversation).await;
    c.prompt("third second").await;
    c.rest(Answer::Yes).await;
    let told = String::from_utf8(model.asked.lock().unwrap().last().unwrap().2.clone()).unwrap();
    assert!(
        told.contains("first") && told.contains("third second") && !told.contains("other second"),
        "{told} {before}"
    );
    c.connection.close().await;
    assert!(dunnock_engine::fork(&ports, &session, 10_000).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_one_folder_wait_for_each_other_and_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let make = async |ms: u32| {
        let call = format!(r#"{{"say":"w","ms":{ms}}}"#);
        let model =
            ScriptedModel::new(vec![Say::calls(&[("append", call.as_str())]), Say::text("done")]);
        let ports = worlds::in_folder(dir.path(), model).await;
        let session = create(&ports, "/same", worlds::config()).await.unwrap();
        Scene::on(Connection::open(ports, session, 0).await.unwrap())
    };
    let (mut a, mut b) = (make(1_000).await, make(1).await);
    a.prompt("go").await;
    a.until("started").await;
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    b.prompt("go").await;
    b.rest(Answer::Yes).await;
    assert!(b.said.iter().any(|t| t.contains("another session is writing")), "{:?}", b.said);
    a.rest(Answer::Yes).await;
    a.connection.close().await;
    b.connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_budget_holds_across_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let price =
        Price { input: 1_000_000, cached: 1_000_000, output: 1_000_000, written: 1_000_000 };
    let config = Config { price: Some(price), max_output: 100, ..worlds::config() };
    let mut ends = Vec::new();
    let mut left = Vec::new();
    for _ in 0..4 {
        let model = ScriptedModel::new(vec![Say::text("costs").using(60, 40)]);
        let mut ports = worlds::in_folder(dir.path(), model).await;
        ports.day_budget = Some(300);
        let day = ports.clock.now().0.div_euclid(86_400_000);
        let log = ports.store.clone();
        let session = create(&ports, "/w", config.clone()).await.unwrap();
        let mut s = Scene::on(Connection::open(ports, session, 0).await.unwrap());
        s.prompt("go").await;
        s.rest(Answer::Yes).await;
        ends.push(s.s.last.as_deref().cloned().unwrap());
        s.connection.close().await;
        left.push(log.day_total(day).await.unwrap().micros);
    }
    println!("day ledger after each session: {left:?}");
    assert_eq!(ends, [EndReason::Done, EndReason::Done, EndReason::Budget, EndReason::Budget]);
    assert_eq!(left, [100, 200, 200, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_had_ends_with_words_and_keeps_the_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new(vec![Say::text("hello")]);
    let ports = worlds::in_folder(dir.path(), model.clone()).await;
    let config = Config { model: "broken/1".into(), ..worlds::config() };
    let session = create(&ports, "/w", config).await.unwrap();
    let mut s = Scene::on(Connection::open(ports, session, 0).await.unwrap());
    s.prompt("go").await;
    s.rest(Answer::Yes).await;
    assert_eq!(s.s.last.as_deref(), Some(&EndReason::Failed { error: "no such model".into() }));
    s.set(ConfigPatch { model: Some("script/1".into()), ..ConfigPatch::default() }).await;
    s.send(Command::Run).await;
    s.rest(Answer::Yes).await;
    assert_eq!(s.s.last.as_deref(), Some(&EndReason::Done));
    let told = String::from_utf8(model.asked.lock().unwrap()[0].2.clone()).unwrap();
    assert!(told.contains("\"go\"") && told.contains("Continue."), "{told}");
    s.connection.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_later_release_opens_to_read() {
    use dunnock_ports::Batch;
    let dir = tempfile::tempdir().unwrap();
    let ports = worlds::in_folder(dir.path(), ScriptedModel::new(Vec::new())).await;
    let session = create(&ports, "/w", worlds::config()).await.unwrap();
    let loaded = dunnock_engine::load(ports.store.as_ref(), &session).await.unwrap();
    let mut later =
        seal(1, loaded.chain, At(0), Cause::Driver, &Event::from(Titled { title: "t".into() }));
    later.envelope.kind = "dreamt".into();
    later.envelope.need = Need::Must;
    let listing = dunnock_ports::Listing {
        title: String::new(),
        workspace: "/w".into(),
        status: dunnock_core::Status::Done,
        version: 1,
    };
    let batch = Batch {
        session: session.clone(),
        after: 1,
        records: vec![later],
        inputs: vec![],
        blobs: vec![],
        listing,
        charge: None,
    };
    ports.store.append(batch).await.unwrap();
    let mut connection = Connection::open(ports.clone(), session.clone(), 0).await.unwrap();
    let refusal = connection
        .send(Command::Prompt { text: "hi".into(), images: vec![] })
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(refusal.reason, Refused::ReadOnly);
    for _ in 0..2 {
        assert!(matches!(connection.next().await.unwrap(), Frame::Event(_)), "it can be read");
    }
    connection.close().await;
    let after = dunnock_engine::load(ports.store.as_ref(), &session).await.unwrap().state;
    assert_eq!(after.seq, 2, "nothing was written after it, not even a takeover");
    let unknown = after.read_only.unwrap();
    assert_eq!((unknown.kind.as_str(), unknown.seq, &*unknown.app), ("dreamt", 2, "test"));
    let _ = Arc::strong_count(&ports.store);
}
