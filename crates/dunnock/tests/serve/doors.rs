//! One session, several doors: terminal and HTTP at the same time, and a server that dies (R22,
//! R23).

use super::{Serve, kinds, reply, shell};
use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn first_session(api: &mut dunnock_testkit::web::Api) -> String {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(id) = api.get("/api/sessions")["sessions"][0]["id"].as_str() {
            return id.to_owned();
        }
        assert!(Instant::now() < end, "there is no session");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Holds A1: a session of the terminal over HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_a_terminal_is_listed_followed_answered_and_steered_over_http() {
    let script = vec![
        shell("cat .env"),
        Served::from(Say::text("Nearly.")).gated(),
        Say::text("Both done.").into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    home.put(".env", "A=1\n");
    let serve = Serve::start(&home);
    // At a terminal, so that it waits for an answer instead of parking.
    let mut run = home.command_of(
        "script".as_ref(),
        &["-qec", &format!("{} run 'do it'", crate::program().display()), "/dev/null"],
    );
    let mut run = run
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut api = serve.api();
    let id = first_session(&mut api);
    let view = api.until(&id, &["waiting"]);
    let mut live = api.live(&id, 0).ok().unwrap();
    let told = live.until(|m| m["event"]["kind"] == "asked");
    assert!(told.iter().any(|m| m["event"]["kind"] == "prompted"), "{told:?}");
    // Answered from here; the terminal's process goes on with it.
    assert_eq!(api.post(&format!("/api/sessions/{id}/commands"), &reply("r", &view, "yes")).0, 200);
    live.until(|m| m["event"]["kind"] == "finished");
    // Steered: a prompt while the model speaks belongs to the next step.
    live.submit("steer", &json!({ "prompt": { "text": "and the other one" } })).unwrap();
    let heard = live.until(|m| m["accepted"]["id"] == "steer");
    assert_eq!(heard.last().unwrap()["accepted"]["id"], "steer", "{heard:?}");
    server.open_gate(1000);
    let rest = live.until(|m| m["event"]["kind"] == "ended");
    assert_eq!(rest.last().unwrap()["event"]["kind"], "ended", "{rest:?}");
    assert_eq!(run.wait().unwrap().code(), Some(0), "the terminal saw the same end");
    let view = api.until(&id, &["done"]);
    let taken: Vec<&Value> = view["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["kind"] == "owner_changed")
        .collect();
    let ended =
        view["events"].as_array().unwrap().iter().find(|f| f["kind"] == "ended").unwrap()["seq"]
            .as_u64();
    let others = taken.iter().skip(1).all(|f| f["seq"].as_u64() > ended);
    assert!(
        others,
        "driven by the terminal to its end, and by the server at most after that: {taken:?}"
    );
    assert_eq!(kinds(&view).iter().filter(|k| *k == "replied").count(), 1);
    assert_eq!(kinds(&view).iter().filter(|k| *k == "prompted").count(), 2);
}

/// Holds A1: a session of the server in a terminal.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_server_is_listed_followed_answered_and_steered_in_a_terminal() {
    let script = vec![
        shell("cat .env"),
        Served::from(Say::text("Nearly.")).gated(),
        Say::text("Both done.").into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    home.put(".env", "A=1\n");
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "prompt": "do it" }));
    api.until(&id, &["waiting"]);
    let live = api.live(&id, 0).ok().unwrap(); // somebody looks, so the server keeps it
    let listed = home.run(&["sessions", "list", "--json"]).await;
    assert!(listed.out.contains(&id) && listed.out.contains("waiting"), "{}", listed.out);
    let mut follow = home.start(&["attach", &id, "--json"]);
    let approved = home.run(&["approve", &id]).await;
    assert_eq!(approved.code, 0, "{}", approved.err);
    let end = Instant::now() + Duration::from_secs(60);
    while !kinds(&api.get(&format!("/api/sessions/{id}"))).contains(&"finished".into()) {
        assert!(Instant::now() < end, "the answer did not reach the server");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Steered from a terminal while the server's model speaks.
    let steer = home.start(&["resume", &id, "--prompt", "and the other one"]);
    let end = Instant::now() + Duration::from_secs(60);
    while kinds(&api.get(&format!("/api/sessions/{id}")))
        .iter()
        .filter(|k| *k == "prompted")
        .count()
        < 2
    {
        assert!(Instant::now() < end, "the prompt did not reach the server");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.open_gate(1000);
    let view = api.until(&id, &["done"]);
    let told = crate::told(steer.wait_with_output().unwrap());
    assert!(told.code == 0 && told.out.contains("Both done."), "{told:?}");
    assert_eq!(follow.wait().unwrap().code(), Some(0));
    assert_eq!(
        kinds(&view).iter().filter(|k| *k == "owner_changed").count(),
        1,
        "the server drove it all along"
    );
    drop(live);
}

/// Holds W3: questions that wait are part of it.
#[tokio::test(flavor = "multi_thread")]
async fn r23_a_question_survives_the_server_and_one_answer_counts() {
    let server = ScriptedServer::start(vec![shell("cat .env"), Say::text("Seen.").into()]).await;
    let home = Home::with(&server);
    home.put(".env", "A=1\n");
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({ "prompt": "look" }));
    let before = api.until(&id, &["waiting"]);
    serve.kill();
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let after = api.until(&id, &["waiting"]);
    assert_eq!(
        after["questions"], before["questions"],
        "the same question, with the same id and hash"
    );
    let commands = format!("/api/sessions/{id}/commands");
    let mut clients: Vec<_> = (0..4).map(|_| serve.api()).collect();
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let one = |(n, api): (usize, &mut dunnock_testkit::web::Api)| {
            // A no would withdraw a yes as long as the call has not started.
            let request = reply(&format!("r{n}"), &after, "yes");
            api.post(&commands, &request).0
        };
        let all: Vec<_> =
            clients.iter_mut().enumerate().map(|pair| scope.spawn(move || one(pair))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|s| **s == 200).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|s| **s == 409).count(), 3, "{answers:?}");
    let view = api.until(&id, &["done"]);
    assert_eq!(kinds(&view).iter().filter(|k| *k == "replied").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r22_a_client_that_is_gone_and_a_server_that_is_killed_lose_nothing() {
    let script =
        vec![shell("echo one >> log.txt"), Served::from(Say::text("Slowly, slowly.")).gated()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let id = api.make(&json!({}));
    let mut live = api.live(&id, 0).ok().unwrap();
    live.submit("p", &json!({ "prompt": { "text": "work" } })).unwrap();
    let seen = live.until(|m| m["event"]["kind"] == "finished");
    let accepted = seen.iter().any(|m| m["accepted"]["id"] == "p");
    let last = seen.iter().filter_map(|m| m["event"]["seq"].as_u64()).max().unwrap();
    assert!(accepted);
    // The browser is closed: work goes on without it.
    drop(live);
    server.open_gate(3);
    std::thread::sleep(Duration::from_millis(100));
    serve.kill();
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let view = api.get(&format!("/api/sessions/{id}"));
    assert!(view["seq"].as_u64().unwrap() >= last, "what was seen is there");
    assert_eq!(
        view["events"].as_array().unwrap().iter().filter(|f| f["cause"] == "input p").count(),
        1
    );
    // Whoever comes back finds it going on, from where they were.
    let mut live = api.live(&id, last).ok().unwrap();
    server.open_gate(1000);
    let rest = live.until(|m| m["event"]["kind"] == "ended");
    let numbers: Vec<u64> = rest.iter().filter_map(|m| m["event"]["seq"].as_u64()).collect();
    assert_eq!(numbers, (last + 1..=last + numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(home.read("log.txt"), "one\n", "the command ran once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_leaves_nothing_and_what_ran_goes_on_later() {
    let server = ScriptedServer::start(vec![
        shell("sleep 30 & echo $! > pid; sleep 30"),
        Say::text("Over.").into(),
    ])
    .await;
    let home = Home::with(&server);
    let serve = Serve::start(&home);
    let (mut api, file) = (serve.api(), serve.token_file.clone());
    let id = api.make(&json!({ "prompt": "sleep" }));
    let end = Instant::now() + Duration::from_secs(60);
    while home.read("pid").is_empty() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(20));
    }
    let began = Instant::now();
    assert_eq!(serve.end(), 0);
    dunnock_testkit::timing::figure(
        "a server with work under way ends",
        began.elapsed(),
        Duration::from_secs(10),
    );
    assert!(!file.exists(), "the token is gone");
    let left: Vec<_> = std::fs::read_dir(file.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let serve = Serve::start(&home);
    let mut api = serve.api();
    let view = api.get(&format!("/api/sessions/{id}"));
    let outcome =
        view["events"].as_array().unwrap().iter().find(|f| f["kind"] == "finished").unwrap();
    assert_eq!(outcome["body"]["outcome"], "interrupted", "{outcome:#}");
}
