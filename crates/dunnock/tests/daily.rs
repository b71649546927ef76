//! Daily use: counts, statuses, rules and hints that people meet every day.

use crate::Home;
use crate::window::Window;
use dunnock_engine::FileLocks;
use dunnock_ports::Ownership as _;
use dunnock_proto::SessionId;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use serde_json::{Value, json};

fn shell(args: Value) -> Served {
    Say::calls(&[("shell", &args.to_string())]).into()
}

/// What the tools answered, as the model was told in the last request.
fn results(server: &ScriptedServer) -> Vec<String> {
    let last = server.requests().last().unwrap().clone();
    let messages = last["messages"].as_array().unwrap();
    let tool = messages.iter().filter(|m| m["role"] == "tool");
    tool.map(|m| m["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_blames_no_network_only_if_there_was_none() {
    // The shell's own way to open a connection; nothing listens on port 1.
    let connect = "bash -c 'echo x > /dev/tcp/127.0.0.1/1'";
    let server = ScriptedServer::start(vec![
        shell(json!({"command": connect})),
        shell(json!({"command": connect, "network": true})),
        Say::text("done").into(),
    ])
    .await;
    let home = Home::with(&server);
    let ran = home.run(&["run", "--approve", "all", "go"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = results(&server);
    assert!(told.iter().all(|t| t.contains("Connection refused")), "{told:?}");
    assert!(told[0].contains("to ask the person for network access"), "{}", told[0]);
    assert!(!told[1].contains("network access"), "it had network access: {}", told[1]);
}

/// A call that was approved but not started.
async fn approved(script: Vec<Served>) -> (ScriptedServer, Home, String) {
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let parked = home.run(&["run", "--sandbox", "off", "do it"]).await;
    assert_eq!(parked.code, 3, "{}", parked.err);
    let id = home.newest().await;
    let approved = home.run(&["approve", &id]).await;
    assert_eq!(approved.code, 0, "{}", approved.err);
    (server, home, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_and_is_driven_by_nobody_is_paused_not_working() {
    let script = vec![shell(json!({"command": "echo once >> log"})), Say::text("done").into()];
    let (_server, home, id) = approved(script).await;
    let listed = home.run(&["sessions", "list"]).await;
    assert!(listed.out.contains("  paused  "), "{}", listed.out);
    let listed = home.run(&["sessions", "list", "--json"]).await;
    let row: Value = serde_json::from_str(listed.out.trim()).unwrap();
    assert_eq!(
        (row["state"].as_str(), row["shown_status"].as_str()),
        (Some("working"), Some("paused"))
    );
    let twice = home.run(&["approve", &id]).await;
    assert!(twice.code == 2 && twice.err.contains("its state is paused"), "{}", twice.err);
    assert!(twice.err.contains(&format!("dunnock resume {id}")), "{}", twice.err);
    let done = home.run(&["resume", &id]).await;
    assert_eq!((done.code, home.read("log").as_str()), (0, "once\n"), "{}", done.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_can_be_withdrawn_until_the_call_starts() {
    let script = vec![shell(json!({"command": "echo once >> log"})), Say::text("done").into()];
    let (server, home, id) = approved(script).await;
    let declined = home.run(&["decline", &id, "--note", "rather not"]).await;
    assert_eq!(declined.code, 0, "{}", declined.err);
    let again = home.run(&["decline", &id]).await;
    assert_eq!(again.code, 2, "only once: {}", again.err);
    let done = home.run(&["resume", &id]).await;
    assert_eq!((done.code, home.read("log").as_str()), (0, ""), "{}", done.err);
    assert!(
        results(&server)[0].contains("declined this call: rather not"),
        "{:?}",
        results(&server)
    );
    let after = home.run(&["decline", &id]).await;
    assert_eq!(after.code, 2, "{}", after.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn declining_after_always_says_that_the_rule_stays() {
    let script = vec![shell(json!({"command": "touch a"})), Say::text("done").into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let asked = home.run(&["run", "--sandbox", "off", "go"]).await;
    assert_eq!(asked.code, 3, "{}", asked.err);
    let id = home.newest().await;
    let always = home.run(&["approve", &id, "--always"]).await;
    assert_eq!(always.code, 0, "{}", always.err);
    let declined = home.run(&["decline", &id]).await;
    assert_eq!(declined.code, 0, "{}", declined.err);
    assert!(
        declined.err.contains("the rule that allows this command stays; \"dunnock rules\""),
        "{}",
        declined.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_driven_is_working() {
    let server = ScriptedServer::start(vec![Served::from(Say::text("done")).gated()]).await;
    let home = Home::with(&server);
    let mut child = home.start(&["run", "go"]);
    server.wait_for(1).await;
    let listed = home.run(&["sessions", "list"]).await;
    assert!(listed.out.contains("  working  "), "{}", listed.out);
    server.open_gate(1000);
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert!(ended.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn build_output_that_git_ignores_is_not_mentioned() {
    let make = "mkdir -p __pycache__ && echo x > __pycache__/a.pyc && echo hi > a.txt";
    let script = vec![shell(json!({"command": make})), Say::text("done").into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    home.put(".gitignore", "__pycache__/\n");
    let ran = home.run(&["run", "go"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let diff = home.run(&["diff", "--names"]).await;
    assert_eq!(diff.out, "added          a.txt\n", "{}", diff.err);
    let undone = home.run(&["undo"]).await;
    assert!(undone.err.contains("a.txt") && !undone.err.contains("__pycache__"), "{}", undone.err);
    assert_eq!((undone.code, home.read("a.txt").as_str()), (0, ""), "{}", undone.err);
    assert_eq!(home.read("__pycache__/a.pyc"), "x\n", "what is not saved is not deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn always_applies_to_this_project_unless_all_are_asked_for() {
    let script = || vec![shell(json!({"command": "touch one"})), Say::text("done").into()];
    let server = ScriptedServer::start(
        [script(), script(), script(), script()].into_iter().flatten().collect(),
    )
    .await;
    let home = Home::with(&server);
    let other = home.dir.path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let other = other.to_str().unwrap();
    let run = ["run", "--sandbox", "off", "go"];
    assert_eq!(home.run(&run).await.code, 3);
    let id = home.newest().await;
    let always = home.run(&["approve", &id, "--always", "--go"]).await;
    assert_eq!(always.code, 0, "{}", always.err);
    assert!(
        always.err.contains("always allowed from now on, in ~/project: shell touch"),
        "{}",
        always.err
    );
    let rules = home.run(&["rules"]).await;
    assert_eq!(
        rules.out,
        "  1  allow  shell touch one  (grants everything your user account can do)  in ~/project\n"
    );
    let here = home.run(&run).await;
    assert_eq!(here.code, 0, "it is not asked again here: {}", here.err);
    let elsewhere = home.run(&["run", "--sandbox", "off", "--cd", other, "go"]).await;
    assert_eq!(elsewhere.code, 3, "another project asks: {}", elsewhere.err);
    let id = home.newest().await;
    let all = home.run(&["approve", &id, "--always", "--all-projects", "--go"]).await;
    assert_eq!(all.code, 0, "{}", all.err);
    let rules = home.run(&["rules", "--json"]).await;
    let rows: Vec<Value> = rules.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let project = home.project().canonicalize().unwrap();
    assert_eq!(rows[0]["project"], json!(project));
    assert_eq!(rows[1]["project"], Value::Null);
    assert!(!home.project().join(".dunnock").exists(), "rules are never stored in the project");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_results_of_a_patch_are_printed_in_its_order() {
    let patch = "*** Begin Patch\n*** Update File: one.txt\n@@\n-a\n+b\n*** Add File: two.txt\n+c\n*** \
                 End Patch";
    let call = Say::calls(&[("apply_patch", &json!({ "patch": patch }).to_string())]);
    let server = ScriptedServer::start(vec![call.into(), Say::text("done").into()]).await;
    let home = Home::with(&server);
    home.put("one.txt", "a\n");
    let ran = home.run(&["run", "go"]).await;
    assert_eq!((ran.code, home.read("two.txt").as_str()), (0, "c\n"), "{}", ran.err);
    let shown = results(&server).remove(0);
    let first = shown.lines().next().unwrap();
    let at = |text: &str| ran.err.find(text).unwrap_or_else(|| panic!("{text}: {}", ran.err));
    let rows: Vec<usize> = shown.lines().take(3).map(|line| at(&format!(" {line}\n"))).collect();
    assert!(first.contains("one.txt") && rows.is_sorted(), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_reported_in_whole_sentences() {
    let body = json!({"error": {"message": "Incorrect API key provided."}}).to_string();
    let refused = Served::wrong(Say::text(""), Fault::Says(401, body));
    let server = ScriptedServer::start(vec![refused]).await;
    let ran = Home::with(&server).run(&["run", "go"]).await;
    assert!(ran.err.contains("Incorrect API key provided. Set SCRIPT_KEY"), "{}", ran.err);
    assert!(!ran.err.contains(".."), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn rewind_takes_the_newest_session() {
    let script = vec![shell(json!({"command": "echo x > a.txt"})), Say::text("done").into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "go"]).await.code, 0);
    let back = home.run(&["rewind", "--to", "0"]).await;
    assert_eq!((back.code, home.read("a.txt").as_str()), (0, ""), "{}", back.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_shows_whole_outputs_the_context_and_the_branch() {
    let script = vec![
        shell(json!({"command": "seq 1 500; git checkout -q -b wip"})),
        Say::text("I counted.").into(),
        Say::text("Remembered.").into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let git = |args: &[&str]| {
        let done = home.command_of("git".as_ref(), args).status().unwrap();
        assert!(done.success());
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]);
    let window = Window::shell(&home, 120, 30);
    window.start("");
    window.wait_for("(main)");
    window.type_in("count");
    window.key("Enter");
    window.wait_for("I counted.");
    window.wait_for("(wip)");
    window.key("C-o");
    window.wait_for("line 1 of 500");
    assert!(window.screen().lines().any(|line| line.trim() == "17"), "{}", window.screen());
    window.key("G");
    window.wait("the end", |_| window.screen().lines().any(|line| line.trim() == "500"));
    window.key("Escape");
    window.wait("closed", |_| window.screen().contains("what next?"));
    window.type_in("/context");
    window.key("Enter");
    let screen = window.wait_for("system prompt");
    for part in ["Context: about", "tools (", "your messages", "results of calls"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    window.type_in("/remember use tabs");
    window.key("Enter");
    window.wait_for("Remembered.");
    let told = server.requests().last().unwrap()["messages"].to_string();
    assert!(told.contains("AGENTS.md") && told.contains("use tabs"), "{told}");
}

#[tokio::test]
async fn asking_whether_a_session_is_driven_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("locks");
    let locks = FileLocks::new(folder.clone(), dir.path().join("run"), "test");
    let session = SessionId::from_random([1; 16]);
    assert!(!locks.is_driven(&session).await.unwrap());
    assert!(!folder.exists(), "nothing is written");
    let owned = locks.claim(&session).await.unwrap().unwrap();
    let lock = folder.join(format!("{session}.lock"));
    let text = std::fs::read(&lock).unwrap();
    assert!(locks.is_driven(&session).await.unwrap());
    assert_eq!(std::fs::read(&lock).unwrap(), text);
    drop(owned);
    assert!(!locks.is_driven(&session).await.unwrap());
    // Several may ask at once: none of them looks like an owner to another.
    let asking = std::fs::File::open(&lock).unwrap();
    asking.try_lock_shared().unwrap();
    assert!(!locks.is_driven(&session).await.unwrap());
}
