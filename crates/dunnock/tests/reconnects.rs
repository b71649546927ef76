//! Connections that break: the work continues, and the person sees why it waits (UX-B1, UX-A8).

use crate::{Home, told};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use std::time::Duration;
use tokio::runtime::Runtime;

/// UX-B1: one request, then "failed".
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_does_not_end_the_task() {
    for fault in [Fault::CutAfter(2), Fault::EndAfter(2)] {
        let served = Served::wrong(Say::text("one two three"), fault.clone()).times(2);
        let server = ScriptedServer::start(vec![served]).await;
        let home = Home::with(&server);
        let ran = home.run(&["run", "go"]).await;
        assert_eq!((ran.code, ran.out.trim()), (0, "one two three"), "{fault:?}: {}", ran.err);
        assert!(ran.err.contains("reconnecting 2/5 in "), "{}", ran.err);
        assert!(ran.err.contains("reconnecting 3/5 in "), "{}", ran.err);
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 3);
        assert!(bodies.iter().all(|body| *body == bodies[0]), "the same request is sent again");
        let shown = home.run(&["sessions", "show", &home.newest().await, "--json"]).await.out;
        assert_eq!(shown.matches("\"retry_at\"").count(), 2, "{shown}");
        assert_eq!(home.run(&["sessions", "verify"]).await.code, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_bounded_and_the_error_is_printed_once() {
    let served = Served::wrong(Say::text("one two three"), Fault::CutAfter(2));
    let server = ScriptedServer::start(vec![served]).await;
    let home = Home::with(&server);
    let ran = home.run(&["run", "go"]).await;
    assert_eq!((ran.code, server.bodies().len()), (1, 5), "{}", ran.err);
    let errors = ran.err.lines().filter(|line| line.starts_with("dunnock: ")).count();
    assert_eq!(errors, 1, "{}", ran.err);
    // The steps that were sent again do not count towards the limit.
    assert_eq!(ran.err.matches("reconnecting ").count(), 4, "{}", ran.err);
}

/// A call that arrived completely runs, and is not asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_finished_call_of_a_broken_stream_runs_once() {
    let calls = Say::calls(&[
        ("shell", r#"{"command":"echo one >> ran.txt"}"#),
        ("shell", r#"{"command":"echo two >> ran.txt"}"#),
    ]);
    let mut kept = 0;
    for pieces in 1..8 {
        let served = Served::wrong(calls.clone(), Fault::CutAfter(pieces)).times(1);
        let server = ScriptedServer::start(vec![served, Say::text("done").into()]).await;
        let home = Home::with(&server);
        let ran = home.run(&["run", "go"]).await;
        assert_eq!(ran.code, 0, "{pieces}: {}", ran.err);
        let text = std::fs::read_to_string(home.project().join("ran.txt")).unwrap();
        match (server.bodies().len(), text.as_str()) {
            (2, "one\n") => kept += 1,
            (2 | 3, "one\ntwo\n") => {}
            other => panic!("{pieces} pieces: {other:?}\n{}", ran.err),
        }
    }
    assert!(kept > 0);
}

/// Starts a server that can be stopped together with its connections.
fn server(script: Vec<Served>) -> (Runtime, ScriptedServer) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(ScriptedServer::start(script));
    (runtime, server)
}

fn script() -> Vec<Served> {
    let wait = r#"{"command":"touch began; sleep 1; echo waited >> ran.txt"}"#;
    vec![Say::calls(&[("shell", wait)]).into(), Say::text("back").into()]
}

/// The server goes away while a command runs, and comes back later. `during` happens meanwhile.
fn server_goes_away(
    home_of: impl FnOnce(&ScriptedServer) -> Home,
    args: &[&str],
    during: impl FnOnce(&Home, std::process::Child) -> std::process::Child,
) -> (Home, crate::Ran) {
    let (runtime, first) = server(script());
    let home = home_of(&first);
    let address = first.base_url();
    let address = address.trim_start_matches("http://").trim_end_matches("/v1").parse().unwrap();
    let child = home.start(args);
    while !home.project().join("began").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(first);
    runtime.shutdown_timeout(Duration::from_secs(5));
    let child = during(&home, child);
    let runtime = Runtime::new().unwrap();
    let _second = runtime.block_on(ScriptedServer::at(address, script()));
    let ran = told(child.wait_with_output().unwrap());
    runtime.shutdown_timeout(Duration::from_secs(5));
    (home, ran)
}

/// UX-A8: two attempts in 1.8 s, then "failed".
#[test]
fn a_server_that_goes_away_is_waited_for() {
    let (home, ran) = server_goes_away(Home::with, &["run", "go"], |_, child| {
        std::thread::sleep(Duration::from_secs(8));
        child
    });
    assert_eq!((ran.code, ran.out.trim()), (0, "back"), "{}", ran.err);
    assert!(ran.err.contains("min for a connection, next attempt in "), "{}", ran.err);
    assert!(ran.err.contains("waiting up to 5 min"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(home.project().join("ran.txt")).unwrap(), "waited\n");
}

#[test]
fn a_process_that_is_killed_while_it_waits_for_the_server_can_be_resumed() {
    let (home, ran) = server_goes_away(Home::with, &["run", "go"], |home, mut child| {
        std::thread::sleep(Duration::from_secs(3));
        child.kill().unwrap();
        child.wait().unwrap();
        home.start(&["resume"])
    });
    assert_eq!((ran.code, ran.out.trim()), (0, "back"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(home.project().join("ran.txt")).unwrap(), "waited\n");
}

#[test]
fn waiting_for_a_server_ends_after_the_time_that_was_set() {
    let home_of = |server: &ScriptedServer| {
        let home = Home::with(server);
        home.set("offline_timeout = 2\n");
        home
    };
    let (_, ran) = server_goes_away(home_of, &["run", "go"], |_, mut child| {
        child.wait().unwrap();
        child
    });
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("Start the server, or set providers.script.base_url"), "{}", ran.err);
}
