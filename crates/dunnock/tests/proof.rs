//! Verification: bound to the files it checked (exit 0 and 5, stale proofs).

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};

fn write(text: &str) -> Served {
    let args = serde_json::json!({"path": "a.txt", "content": text, "overwrite": true}).to_string();
    Say::calls(&[("write_file", &args)]).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_check_is_told_and_mended_and_done_means_proven() {
    let server = ScriptedServer::start(vec![
        write("bad\n"),
        Say::text("done, I say").into(),
        write("good\n"),
        Say::text("now it is").into(),
    ])
    .await;
    let home = Home::with(&server);
    let args = [
        "run",
        "--approve",
        "all",
        "--verify",
        "grep -q good a.txt",
        "--verify",
        "test -f a.txt",
        "go",
    ];
    let ran = home.run(&args).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "now it is\n"), "{}", ran.err);
    let proven = "done · proven by `grep -q good a.txt` (it failed before), `test -f a.txt` (it \
                  failed before) · 4 steps";
    assert!(ran.err.contains(proven), "{}", ran.err);
    let told = server.requests()[2]["messages"].to_string();
    assert!(told.contains("The check `grep -q good a.txt` did not pass."), "{told}");
    let again = home.run(&["resume"]).await;
    assert_eq!(again.code, 0, "{}", again.err);
    home.put("a.txt", "good, and changed\n");
    let stale = home.run(&["resume"]).await;
    assert_eq!(stale.code, 5, "{}", stale.err);
    assert!(stale.err.contains("proof stale: files changed after"), "{}", stale.err);
    let shown = home.run(&["sessions", "show", &home.newest().await]).await;
    assert!(shown.out.contains("the proof is stale"), "{}", shown.out);
    home.put("a.txt", "good\n");
    assert_eq!(home.run(&["resume"]).await.code, 0, "the same files are proven again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_never_passes_is_exit_5_also_when_the_steps_run_out_first() {
    let server =
        ScriptedServer::start((0..9).map(|n| Say::text(&format!("done {n}")).into()).collect())
            .await;
    let home = Home::with(&server);
    let ran = home.run(&["run", "--verify", "false", "go"]).await;
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert_eq!(server.bodies().len(), 3, "three tries");
    let ran = home.run(&["run", "--verify", "false", "--max-steps", "2", "go"]).await;
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert_eq!(server.bodies().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_changes_the_files_leaves_the_one_before_it_stale() {
    let server = ScriptedServer::start(vec![Say::text("done").into()]).await;
    let home = Home::with(&server);
    home.put("a.txt", "a\n");
    let ran = home
        .run(&["run", "--verify", "test -f a.txt", "--verify", "echo more >> a.txt", "go"])
        .await;
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.contains("proof stale"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_we_write_ourselves_is_no_change_of_the_files() {
    let server = ScriptedServer::start(vec![Say::text("done").into()]).await;
    let home = Home::with(&server);
    home.put("a.txt", "a\n");
    let program = env!("CARGO_BIN_EXE_dunnock");
    let script = "\"$0\" run --json --verify 'test -f a.txt' --output answer.md go > events.jsonl \
                  2> log.txt";
    let ran = crate::ran(home.command_of("sh".as_ref(), &["-c", script, program])).await;
    assert_eq!(ran.code, 0, "{}", home.read("events.jsonl"));
    assert_eq!(home.read("answer.md"), "done");
    let again = home.run(&["resume"]).await;
    assert_eq!(again.code, 0, "the same files later, too: {}", again.err);
    home.put("a.txt", "b\n");
    assert_eq!(home.run(&["resume"]).await.code, 5);
    let inside =
        home.run(&["--data-dir", ".dunnock/data", "run", "--verify", "test -f a.txt", "go"]).await;
    assert_eq!(inside.code, 0, "{}", inside.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_of_a_session_outlives_its_folder() {
    let server = ScriptedServer::start(vec![Say::text("it was good").into()]).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "go"]).await.code, 0);
    let id = home.newest().await;
    home.configure("");
    std::fs::rename(home.project(), home.dir.path().join("elsewhere")).unwrap();
    std::fs::create_dir(home.dir.path().join("other")).unwrap();
    let mut command = home.command(&["resume", &id]);
    command.current_dir(home.dir.path().join("other"));
    let ran = crate::ran(command).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "it was good\n"), "{}", ran.err);
    let mut command = home.command(&["resume", &id, "--prompt", "more"]);
    command.current_dir(home.dir.path().join("other"));
    let ran = crate::ran(command).await;
    assert!(ran.code == 1 && ran.err.contains("no longer exists"), "{}", ran.err);
}
