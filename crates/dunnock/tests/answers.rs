//! Questions: parked, answered from elsewhere, gone on with (W6, A5).

use crate::Home;
use dunnock_testkit::fixture;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_parks_another_process_approves_and_the_command_runs_once() {
    let script = vec![Say::calls(&[("shell", r#"{"command":"echo once >> log"}"#)]).into(), Say::text("done").into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let parked = home.run(&["run", "do it"]).await;
    assert_eq!((parked.code, parked.out.as_str(), home.read("log").as_str()), (3, "", ""), "{}", parked.err);
    let id = home.newest().await;
    let still = home.run(&["resume", &id]).await;
    assert_eq!((still.code, home.read("log").as_str()), (3, ""), "nothing runs unasked: {}", still.err);
    let approved = home.run(&["approve", &id]).await;
    assert_eq!(
        (approved.code, home.read("log").as_str()),
        (0, ""),
        "an answer is stored, nothing begins: {}",
        approved.err
    );
    let done = home.run(&["resume", &id]).await;
    assert_eq!((done.code, done.out.as_str(), home.read("log").as_str()), (0, "done\n", "once\n"), "{}", done.err);
    let why = home.run(&["why", &id, "1.0"]).await;
    let twice = home.run(&["approve", &id]).await;
    assert_eq!(twice.code, 2);
    let text = format!(
        "$ dunnock run \"do it\"\n{}\n$ dunnock approve SESSION\n{}\n$ dunnock resume SESSION\n{}{}\n$ dunnock why SESSION 1.0\n{}\n$ dunnock approve SESSION\n{}",
        parked.err, approved.err, done.err, done.out, why.out, twice.err
    );
    fixture::check("fixtures/cli/approve.txt", &home.plain(&text));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_that_wait_are_listed_and_each_is_answered() {
    let calls = [
        ("shell", r#"{"command":"echo a >> log"}"#),
        ("shell", r#"{"command":"echo b >> log"}"#),
        ("shell", r#"{"command":"echo c >> log"}"#),
    ];
    let server = ScriptedServer::start(vec![Say::calls(&calls).into()]).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "do it"]).await.code, 3);
    let id = home.newest().await;
    let several = home.run(&["approve", &id]).await;
    assert_eq!(several.code, 2);
    for call in ["1.0", "1.1", "1.2"] {
        assert!(several.err.contains(call), "{}", several.err);
    }
    assert_eq!(home.run(&["approve", &id, "7.7"]).await.code, 2);
    assert_eq!(home.run(&["approve", &id, "nonsense"]).await.code, 2);
    assert_eq!(home.run(&["decline", &id, "1.1", "--note", "not b"]).await.code, 0);
    let done = home.run(&["approve", &id, "--all", "--go"]).await;
    assert_eq!((done.code, home.read("log").as_str()), (0, "a\nc\n"), "{}", done.err);
    let told = server.requests()[1]["messages"].to_string();
    assert!(told.contains("the person declined this call: not b"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_the_models_is_answered_in_words_or_by_its_number() {
    let ask = r#"{"question":"Which colour?","choices":["red","blue"]}"#;
    let server = ScriptedServer::start(vec![
        Say::calls(&[("ask_person", ask)]).into(),
        Say::calls(&[("ask_person", ask)]).into(),
    ])
    .await;
    let home = Home::with(&server);
    let parked = home.run(&["run", "paint"]).await;
    assert_eq!(parked.code, 3);
    assert!(parked.err.contains("Which colour?\n  1. red\n  2. blue"), "{}", parked.err);
    let id = home.newest().await;
    assert_eq!(home.run(&["approve", &id]).await.code, 2, "that is not an approval");
    assert_eq!(home.run(&["answer", &id, "q9", "x"]).await.code, 2);
    assert_eq!(home.run(&["answer", &id, "2", "--go"]).await.code, 3, "the second question");
    assert_eq!(home.run(&["answer", &id, "q2", "rather green", "--go"]).await.code, 0);
    let told = server.requests().last().unwrap()["messages"].to_string();
    assert!(told.contains("\"content\":\"blue\"") && told.contains("\"content\":\"rather green\""), "{told}");
    assert_eq!(home.run(&["answer", &id, "late"]).await.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_door_watches_answers_and_takes_over() {
    let script = vec![
        Say::calls(&[("shell", r#"{"command":"sleep 0.5; echo one >> log"}"#)]).into(),
        Say::text("all done").into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let nobody = home.run(&["attach"]).await;
    assert_eq!(nobody.code, 1);
    let mut owner = home.start(&["run", "--approve", "all", "go"]);
    server.wait_for(1).await;
    let watching = home.run(&["attach"]).await;
    assert_eq!(watching.code, 0, "{}", watching.err);
    assert!(watching.err.contains("done"), "{}", watching.err);
    assert!(owner.wait().unwrap().success());
    let rested = home.run(&["attach"]).await;
    assert_eq!(rested.code, 1);
    assert!(rested.err.contains("nobody is working on session"), "{}", rested.err);
    let began = Instant::now();
    while home.run(&["sessions", "delete", &home.newest().await]).await.code != 0
        && began.elapsed() < Duration::from_secs(5)
    {}
    assert_eq!(home.run(&["sessions", "list"]).await.out, "");
}
