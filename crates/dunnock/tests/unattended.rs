//! `--unattended`: the events that ended a run with the work undone, and the run that finishes it.

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const WORK: (&str, &str) = ("shell", r#"{"command":"echo done > out.txt"}"#);
const END: (&str, &str) = ("final_output", r#"{"answer":"finished"}"#);

/// A model that does something odd first (one answer a request), then the work, then ends as often
/// as it has to.
async fn odd(first: Vec<Served>) -> (Home, ScriptedServer) {
    let asked = AtomicUsize::new(0);
    let brain = move |_, body: &Value| {
        let n = asked.fetch_add(1, Ordering::SeqCst);
        match first.get(n) {
            Some(served) => served.clone(),
            None if !worked(body) => Say::calls(&[WORK]).into(),
            None => Say::calls(&[END]).into(),
        }
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    (Home::with(&server), server)
}

/// Whether the conversation has the work in it.
fn worked(body: &Value) -> bool {
    body.to_string().contains("echo done > out.txt")
}

/// An answer that its server cut off at the output limit.
fn cut_off() -> Served {
    let piece = |delta: &str, end: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{end}}}]}}\n\n"
        )
    };
    let bytes = [
        piece(r#"{"role":"assistant","content":"First I wil"}"#, "null"),
        piece("{}", "\"length\""),
        "data: [DONE]\n\n".into(),
    ];
    Served::wrong(Say::default(), Fault::Raw(bytes.concat().into_bytes()))
}

/// The scenes of effectiveness.md, each with what it ended a run with before.
fn scenes() -> Vec<(&'static str, Vec<Served>, i32)> {
    let call = |tool: &str, args: &str| vec![Served::from(Say::calls(&[(tool, args)]))];
    let network = r#"{"command":"git ls-remote https://127.0.0.1:9/x","network":true}"#;
    let poll = Say::calls(&[("shell", r#"{"command":"test -f ready.txt"}"#)]);
    let thought = Say { reasoning: "I should begin.".into(), ..Say::default() };
    vec![
        ("a question", call("ask_person", r#"{"question":"Which file?"}"#), 3),
        ("an approval", call("shell", network), 3),
        ("a poll", (0..12).map(|_| poll.clone().into()).collect(), 3),
        ("an announcement", vec![Say::text("I'll start by looking around.").into()], 0),
        ("an answer that is cut off", vec![cut_off()], 1),
        ("an empty answer", vec![Say::text("").into()], 1),
        ("an answer of reasoning only", vec![thought.into()], 1),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_a_run_with_the_work_undone_no_longer_does() {
    for (name, first, before) in scenes() {
        let odd_answers = first.len();
        let (home, server) = odd(first.clone()).await;
        let ran = home.run(&["run", "--unattended", "write out.txt"]).await;
        let requests = server.requests().len();
        println!("{name}: {} further requests", requests - odd_answers);
        assert_eq!((ran.code, ran.out.as_str()), (0, "finished\n"), "{name}: {}", ran.err);
        assert_eq!(home.read("out.txt"), "done\n", "{name}");
        assert!(requests - odd_answers <= 6, "{name}: {requests}");
        assert!(requests - odd_answers >= 3, "the work, the end, the second look: {name}");
        // The control: without the flag the run ends as before, with the work undone.
        let (home, _server) = odd(first).await;
        let ran = home.run(&["run", "write out.txt"]).await;
        assert_eq!(ran.code, before, "{name}: {}", ran.err);
        assert!(!home.project().join("out.txt").exists(), "{name}");
    }
}

/// What never ends by itself is ended by the limits.
#[tokio::test(flavor = "multi_thread")]
async fn limits_still_end_what_loops() {
    let question = Served::from(Say::calls(&[("ask_person", r#"{"question":"Which?"}"#)]));
    for (name, answer, code) in
        [("asker", question, 4), ("empty", Say::text("").into(), 1), ("cut off", cut_off(), 1)]
    {
        let (home, server) = odd(vec![answer; 100]).await;
        let ran = home.run(&["run", "--unattended", "--max-steps", "8", "write out.txt"]).await;
        assert_eq!(ran.code, code, "{name}: {}", ran.err);
        assert!(server.requests().len() <= 8, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unattended_model_is_offered_no_question_and_told_that_nobody_answers() {
    let first = |body: &Value| {
        let offered = body["tools"].to_string().contains("ask_person");
        let told = body["messages"][0].to_string();
        (offered, told.contains("ask_person"), told.contains("Nobody reads along or answers"))
    };
    let (home, server) = odd(vec![]).await;
    assert_eq!(home.run(&["run", "--unattended", "write out.txt"]).await.code, 0);
    assert_eq!(first(&server.requests()[0]), (false, false, true));
    let (home, server) = odd(vec![]).await;
    assert_eq!(home.run(&["run", "write out.txt"]).await.code, 0);
    assert_eq!(first(&server.requests()[0]), (true, true, false));
    // As a setting, without the second look.
    let (home, server) = odd(vec![]).await;
    home.set("unattended = \"on\"\nsecond_look = \"off\"\n");
    assert_eq!(home.run(&["run", "write out.txt"]).await.code, 0);
    assert_eq!(first(&server.requests()[0]), (false, false, true));
    assert_eq!(server.requests().len(), 2);
}

/// One more request, with the task in it, however often the program dies.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_look_is_one_request_and_survives_a_kill() {
    let (home, server) = odd(vec![]).await;
    let ran = home.run(&["run", "--unattended", "write out.txt, then stop"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "the work, the end, the end after the second look");
    let last = requests[2].to_string();
    assert!(last.contains("<task>\\nwrite out.txt, then stop\\n</task>"), "{last}");
    assert!(ran.err.contains("note to the model: Before this ends"), "{}", ran.err);
    // Killed while the model looks again.
    let asked = AtomicUsize::new(0);
    let brain = move |_, body: &Value| {
        let looks = body.to_string().contains("Before this ends");
        match looks && asked.fetch_add(1, Ordering::SeqCst) == 0 {
            true => Served::wrong(Say::default(), Fault::Deaf),
            false if !worked(body) => Say::calls(&[WORK]).into(),
            false => Say::calls(&[END]).into(),
        }
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::with(&server);
    let mut child = home.start(&["run", "--unattended", "write out.txt"]);
    for _ in 0..600 {
        if server.requests().len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = home.run(&["resume"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "finished\n"), "{}", ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "the request is sent again, and nothing else");
    let looks = requests[3].to_string().matches("Before this ends").count();
    assert_eq!(looks, 1);
}

/// Checks that passed are better than a second look.
#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_second_look_after_a_proof() {
    let (home, server) = odd(vec![]).await;
    let args = ["run", "--unattended", "--verify", "test -f out.txt", "write out.txt"];
    let ran = home.run(&args).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(server.requests().len(), 2);
}

/// A command is cut to what is left, the model gets one more request, and the run exits with 4.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_a_run_in_time_with_its_files() {
    let brain = move |_, body: &Value| {
        if body.to_string().contains("This is your last answer") {
            return Say::calls(&[("shell", r#"{"command":"echo best > out.txt"}"#)]).into();
        }
        Say::calls(&[("shell", r#"{"command":"sleep 600"}"#)]).into()
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::with(&server);
    let ran = home.run(&["run", "--unattended", "--deadline", "+4s", "work"]).await;
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("the deadline has come"), "{}", ran.err);
    let first = server.requests()[0].to_string();
    assert!(first.contains("of 4 s."), "{first}");
    // The last request may come too late on a busy machine, but no command outlives the time.
    assert!(!server.requests().is_empty() && server.requests().len() <= 6);
    let shown = home.run(&["sessions", "show"]).await;
    assert!(shown.out.contains("the deadline has come"), "{}", shown.out);
    let wrong = home.run(&["run", "--deadline", "tomorrow", "work"]).await;
    assert!(wrong.code == 2 && wrong.err.contains("use +900s"), "{}", wrong.err);
}
