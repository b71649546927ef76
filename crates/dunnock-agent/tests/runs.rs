//! Runs of the library against a scripted model: limits, failures, questions that nobody answers,
//! resuming.

use dunnock_agent::{Agent, Approve, Endpoint, Error, Event, Isolation, Launcher, Reply, Task};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use std::path::PathBuf;

struct World {
    dir: tempfile::TempDir,
    server: ScriptedServer,
    agent: Agent,
}

impl World {
    async fn new(script: Vec<Say>) -> Self {
        let server = ScriptedServer::start(script.into_iter().map(Into::into).collect()).await;
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project")).unwrap();
        // A test does not own its main: the program beside it starts commands.
        let beside = std::env::current_exe()
            .unwrap()
            .parent()
            .unwrap()
            .parent()
            .unwrap()
            .join("dunnock-killable");
        let agent = Agent::builder(dir.path().join("data"), Launcher::from_program(beside))
            .endpoint("script", Endpoint::chat(server.base_url()).key("sk-test"))
            .model("script/scripted")
            .build()
            .await
            .unwrap();
        Self { dir, server, agent }
    }
    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }
}

fn plan(actions: serde_json::Value) -> Say {
    Say::text(
        &serde_json::json!({ "thought": "I try.", "plan": [], "actions": actions }).to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn p7_success_iterations_summary_and_error_are_reported() {
    let again = || plan(serde_json::json!([{ "tool": "run", "command": "date +%N >> log" }]));
    let world = World::new(vec![again(), again(), again(), again()]).await;
    let task = Task::new("Try", world.project()).check("false").planner().max_steps(3);
    let outcome = world.agent.run(task).await.unwrap();
    assert!(!outcome.success && !outcome.proven);
    assert_eq!(outcome.iterations, 3);
    assert_eq!(outcome.error.as_deref(), Some("the checks do not pass after 3 steps"));
    assert!(outcome.summary.starts_with("Iteration 1:\n- "), "{}", outcome.summary);
    assert!(world.project().join(".dunnock/agent-memory/try.txt").exists());
    let plain = World::new(vec![Say::text("Nothing was to be done.")]).await;
    let outcome = plain.agent.run(Task::new("Look", plain.project())).await.unwrap();
    assert!(outcome.success && outcome.error.is_none());
    assert_eq!((outcome.summary.as_str(), outcome.iterations), ("Nothing was to be done.", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_waits_and_is_answered_later() {
    let script = vec![Say::calls(&[("shell", r#"{"command":"touch made"}"#)]), Say::text("Made.")];
    let world = World::new(script).await;
    let task = Task::new("Make it", world.project()).approve(Approve::Ask);
    let outcome = world.agent.run(task).await.unwrap();
    assert!(!outcome.success && outcome.waiting.len() == 1, "{outcome:?}");
    assert!(!world.project().join("made").exists());
    let mut run = world.agent.resume(&outcome.session).await.unwrap();
    while let Some(event) = run.next().await.unwrap() {
        if let Event::Asked(question) = event {
            assert_eq!(question.text, outcome.waiting[0].text);
            run.answer(&question, Reply::Yes).await.unwrap();
        }
    }
    let outcome = run.finish().await.unwrap();
    assert!(outcome.success, "{outcome:?}");
    assert!(world.project().join("made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_stopped_and_resumed_and_events_tell_what_happens() {
    let script = vec![
        Say::calls(&[("shell", r#"{"command":"echo begun; sleep 60"}"#)]),
        Say::text("Later."),
    ];
    let world = World::new(script).await;
    let mut run = world.agent.start(Task::new("Wait", world.project())).await.unwrap();
    let mut began = false;
    while let Some(event) = run.next().await.unwrap() {
        if let Event::CallStarted { tool, .. } = &event {
            assert_eq!(tool, "shell");
            began = true;
            run.stop().await.unwrap();
        }
    }
    let outcome = run.finish().await.unwrap();
    assert!(began && outcome.error.as_deref() == Some("it was stopped"), "{outcome:?}");
    let outcome = world.agent.resume(&outcome.session).await.unwrap().finish().await.unwrap();
    assert!(outcome.success && outcome.summary == "Later.", "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said_before_anything_begins() {
    let world = World::new(vec![Say::text("x")]).await;
    let missing = world.agent.run(Task::new("x", "/nowhere/at/all")).await.unwrap_err();
    assert!(
        matches!(&missing, Error::Usage(text) if text.contains("is not a folder")),
        "{missing}"
    );
    let other =
        world.agent.run(Task::new("x", world.project()).model("other/model")).await.unwrap_err();
    assert!(
        matches!(&other, Error::Usage(text) if text.contains("no provider \"other\"")),
        "{other}"
    );
    assert!(world.server.requests().is_empty());
    assert!(world.agent.resume("nothing").await.is_err());
    assert_eq!(world.agent.isolation(), Isolation::A);
    assert!(matches!(world.agent.undo("nothing").await, Err(Error::NoSession(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_told_more_and_everything_is_taken_back() {
    let write = |text: &str| {
        Say::calls(&[(
            "shell",
            &serde_json::json!({ "command": format!("echo {text} >> log") }).to_string(),
        )])
    };
    let script =
        vec![write("first"), Say::text("One."), write("second"), Say::text("Two.").using(100, 10)];
    let world = World::new(script).await;
    let log = || std::fs::read_to_string(world.project().join("log")).unwrap_or_default();
    let mut run = world.agent.start(Task::new("Write", world.project())).await.unwrap();
    let mut calls = Vec::new();
    while let Some(event) = run.next().await.unwrap() {
        if let Event::CallStarted { call, .. } | Event::CallFinished { call, .. } = event {
            calls.push(call);
        }
    }
    assert_eq!(calls, ["1.0", "1.0"]);
    run.prompt("Once more").await.unwrap();
    while run.next().await.unwrap().is_some() {}
    assert_eq!(log(), "first\nsecond\n");
    assert!(matches!(run.prompt(" ").await, Err(Error::Usage(_))));
    let outcome = run.finish().await.unwrap();
    assert!(outcome.success && outcome.summary == "Two." && outcome.tokens == 110, "{outcome:?}");
    // In this process or a later one.
    let undo = || world.agent.undo(&outcome.session);
    assert_eq!(undo().await.unwrap().note, None);
    assert_eq!(log(), "first\n", "the last prompt alone");
    let gone = world.agent.resume(&outcome.session).await.unwrap().finish().await.unwrap();
    assert!(!gone.success && gone.error.as_deref() == Some("it was undone"), "{gone:?}");
    assert_eq!(undo().await.unwrap().note, None);
    assert_eq!(log(), "first\nsecond\n", "and that is taken back");
    let again = world.agent.resume(&outcome.session).await.unwrap().finish().await.unwrap();
    assert!(again.success && again.summary == "Two.", "{again:?}");
    undo().await.unwrap();
    std::fs::write(world.project().join("log"), "mine\n").unwrap();
    let told = undo().await.unwrap().note;
    assert!(
        log() == "mine\n" && told.is_some_and(|told| told.contains("log")),
        "what others wrote stays: {}",
        log()
    );
    assert_eq!(world.server.asked().len(), 4, "nobody was asked for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_lets_nothing_go_on() {
    let command = r#"{"command":"echo begun > log; sleep 60; echo ended >> log"}"#;
    let world = World::new(vec![Say::calls(&[("shell", command)]), Say::text("Later.")]).await;
    let mut run = world.agent.start(Task::new("Wait", world.project())).await.unwrap();
    let session = run.session().to_owned();
    while let Some(event) = run.next().await.unwrap() {
        if matches!(event, Event::CallStarted { .. }) {
            break;
        }
    }
    // Its first line must have run: what is checked below is what becomes of it.
    while !world.project().join("log").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let at_work = world.agent.undo(&session).await.unwrap_err();
    assert!(at_work.to_string().contains("the session is running; wait"), "{at_work}");
    drop(run);
    // Left in the middle: it is stopped, not taken up.
    let undone = loop {
        match world.agent.undo(&session).await {
            Err(error) if error.to_string().contains("the session is running") => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            done => break done.unwrap(),
        }
    };
    // What was under way when it was left counts as somebody else's.
    assert!(
        undone.note.is_some_and(|note| note.contains("log"))
            && world.project().join("log").exists()
    );
    assert_eq!(world.server.asked().len(), 1, "the model was not asked again");
    let nothing = world.agent.resume(&session).await.unwrap().finish().await.unwrap();
    assert!(!nothing.success && world.server.asked().len() == 1, "{nothing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_dropped_stops_and_its_session_can_be_taken_up() {
    let script = vec![
        Say::calls(&[("shell", r#"{"command":"echo begun > log; sleep 60; echo ended >> log"}"#)]),
        Say::text("Later."),
    ];
    let world = World::new(script).await;
    let mut run = world.agent.start(Task::new("Wait", world.project())).await.unwrap();
    while let Some(event) = run.next().await.unwrap() {
        if matches!(event, Event::CallStarted { .. }) {
            break;
        }
    }
    let session = run.session().to_owned();
    drop(run);
    // Whoever comes next drives it: the first is gone, and so is its command.
    let outcome = world.agent.resume(&session).await.unwrap().finish().await.unwrap();
    assert!(outcome.success && outcome.summary == "Later.", "{outcome:?}");
    assert_eq!(outcome.iterations, 2, "what was before counts");
    assert!(
        !std::fs::read_to_string(world.project().join("log")).unwrap_or_default().contains("ended")
    );
}

#[test]
fn a_key_is_shown_nowhere() {
    let endpoint = Endpoint::chat("http://127.0.0.1:1").key("sk-secret");
    assert!(!format!("{endpoint:?}").contains("sk-secret"));
    fn is_send<T: Send>() {}
    is_send::<dunnock_agent::Run>();
    is_send::<Agent>();
}

/// What is public can be sent to another thread and shared between threads.
#[test]
fn public_types_are_send_and_sync() {
    fn both<T: Send + Sync>() {}
    both::<Agent>();
    both::<dunnock_agent::AgentBuilder>();
    both::<dunnock_agent::Outcome>();
    both::<dunnock_agent::Question>();
    both::<Endpoint>();
    both::<Error>();
    both::<Event>();
    both::<Launcher>();
    both::<Task>();
    fn sent<T: Send>() {}
    sent::<dunnock_agent::Run>();
}

/// An error names what cannot be used, and its source says why.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_has_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Agent::builder(&file, Launcher::from_program("dunnock")).build().await.unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert!(matches!(&error, Error::Data { folder, .. } if *folder == file), "{error:?}");
    assert!(source.is_some_and(|text| !text.is_empty()));
}
