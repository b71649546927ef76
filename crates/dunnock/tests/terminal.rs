//! The same commands with a person at a real terminal (a pty, driven by Python): words stream,
//! questions are asked here.

use crate::Home;
use crate::window::{Window, wait_for_fact};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};

/// Runs the words in a pty and talks to them: each pair is a text to wait for and what to type
/// then. A third word types before anything is asked.
const TALK: &str = r#"
import os, pty, sys, time, select, json
argv, talk, early = json.loads(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
seen = b""
if early:
    os.write(fd, early.encode())
end = time.time() + 20
for wait, say in talk + [[None, None]]:
    at = len(seen)
    while wait is None or wait.encode() not in seen[at:]:
        if time.time() > end:
            print("NEVER CAME:", wait); sys.stdout.buffer.write(seen); sys.exit(99)
        ready, _, _ = select.select([fd], [], [], 0.1)
        if ready:
            try:
                piece = os.read(fd, 4096)
            except OSError:
                piece = b""
            if not piece:
                break
            seen += piece
    if say:
        time.sleep(0.1)
        os.write(fd, say.encode())
sys.stdout.buffer.write(seen.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

pub async fn talk(home: &Home, args: &[&str], talk: &[(&str, &str)], early: &str) -> crate::Ran {
    let argv: Vec<&str> = [env!("CARGO_BIN_EXE_dunnock")].iter().chain(args).copied().collect();
    let given = serde_json::json!([argv, talk, early]).to_string();
    let mut command = home.command_of("python3".as_ref(), &["-c", TALK, &given]);
    command.env("TERM", "xterm");
    crate::ran(command).await
}

/// Holds T2: y and t at `dunnock run` in a terminal.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_declines_and_answers_where_they_sit() {
    let script = vec![
        Say::calls(&[("shell", r#"{"command":"echo one >> log"}"#)]).into(),
        Say::calls(&[("shell", r#"{"command":"echo two >> log"}"#)]).into(),
        Say::calls(&[("ask_person", r#"{"question":"Which colour?","choices":["red","blue"]}"#)])
            .into(),
        Say::text("All done now.").into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let answers = [("t NOTE", "y\n"), ("t NOTE", "t rather three\n"), ("your answer] ", "2\n")];
    let ran = talk(&home, &["run", "--sandbox", "off", "go"], &answers, "").await;
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert_eq!(home.read("log"), "one\n");
    let told = server.requests().last().unwrap()["messages"].to_string();
    assert!(
        told.contains("declined this call: rather three") && told.contains("\"content\":\"blue\""),
        "{told}"
    );
    assert_eq!(
        ran.out.matches("All done now.").count(),
        1,
        "the answer is on the screen once: {}",
        ran.out
    );
    assert_eq!(
        ran.out.matches("  1.0 shell").count(),
        1,
        "a question is on the screen once: {}",
        ran.out
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let server = ScriptedServer::start(vec![
        Say::calls(&[("shell", r#"{"command":"echo bad >> log"}"#)]).after(150).into(),
    ])
    .await;
    let home = Home::with(&server);
    let ran =
        talk(&home, &["run", "--sandbox", "off", "go"], &[("t NOTE", "n\n")], "y\ny\ny\n").await;
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert_eq!(home.read("log"), "", "an early yes let the command run: {}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_a_question_leaves_it_standing() {
    let server = ScriptedServer::start(vec![
        Say::calls(&[("shell", r#"{"command":"echo one >> log"}"#)]).into(),
    ])
    .await;
    let home = Home::with(&server);
    let ran = talk(&home, &["run", "--sandbox", "off", "go"], &[("t NOTE", "\u{3}")], "").await;
    assert_eq!(ran.code, 130, "{}", ran.out);
    let ran = home.run(&["approve", &home.newest().await, "--go"]).await;
    assert_eq!((ran.code, home.read("log").as_str()), (0, "one\n"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_a_question_where_somebody_can_answer() {
    let steps = (0..3)
        .map(|n| Say::calls(&[("view_file", &format!(r#"{{"path":"x{n}"}}"#))]).into())
        .collect();
    let server = ScriptedServer::start(steps).await;
    let home = Home::with(&server);
    let ran = talk(&home, &["run", "--max-steps", "2", "go"], &[("2 more?", "y\n")], "").await;
    assert_eq!(ran.code, 0, "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_cannot_write_control_sequences_to_the_terminal() {
    let evil = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{202e}evil";
    let args = serde_json::json!({"command": format!("printf x; # {evil}")}).to_string();
    let script = vec![
        Say { text: evil.into(), ..Say::calls(&[("shell", &args)]) }.into(),
        Say::text(evil).into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let ran = talk(&home, &["run", "--sandbox", "off", "go"], &[("t NOTE", "y\n")], "").await;
    assert!(
        !ran.out.contains("\u{1b}]")
            && !ran.out.contains("\u{1b}[2J")
            && !ran.out.contains('\u{202e}'),
        "{:?}",
        ran.out
    );
    let shown = home.run(&["sessions", "show"]).await;
    assert!(!shown.out.contains('\u{1b}') && shown.out.contains("\\u{1b}"), "{:?}", shown.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_by_a_call_is_shown_beside_words_that_streamed() {
    let say = Say {
        text: "Here it is.".into(),
        ..Say::calls(&[("final_output", r#"{"answer":"The real answer."}"#)])
    };
    let server = ScriptedServer::start(vec![say.into()]).await;
    let home = Home::with(&server);
    let ran = talk(&home, &["run", "--sandbox", "off", "go"], &[], "").await;
    assert_eq!((ran.code, ran.out.matches("The real answer.").count()), (0, 1), "{}", ran.out);
    assert_eq!(ran.out.matches("Here it is.").count(), 1, "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_late_sees_the_whole_answer_once() {
    let server =
        ScriptedServer::start(vec![Served::from(Say::text("alpha beta gamma delta")).gated()])
            .await;
    let home = Home::with(&server);
    let owner = home.start(&["run", "go"]);
    server.wait_for(1).await;
    server.open_gate(2);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let watching = talk(&home, &["resume"], &[("alpha beta", "")], "");
    let opening = async {
        tokio::time::sleep(std::time::Duration::from_millis(900)).await;
        server.open_gate(100);
    };
    let (ran, ()) = tokio::join!(watching, opening);
    assert_eq!(
        (ran.code, ran.out.matches("alpha beta gamma delta").count()),
        (0, 1),
        "{}",
        ran.out
    );
    assert!(owner.wait_with_output().unwrap().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_can_be_answered_at_a_door_that_only_watches() {
    let script = vec![
        Say::calls(&[
            ("shell", r#"{"command":"sleep 2"}"#),
            ("ask_person", r#"{"question":"Which colour?"}"#),
        ])
        .into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let owner = home.start(&["run", "--approve", "all", "go"]);
    while home.run(&["sessions", "list", "--json"]).await.out.matches("waiting").count() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let began = std::time::Instant::now();
    let ran = talk(&home, &["resume"], &[("your answer] ", "green\n")], "").await;
    // The question is asked while the command still runs.
    dunnock_testkit::timing::figure(
        "an answer at a door that watches",
        began.elapsed(),
        std::time::Duration::from_secs(10),
    );
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(server.requests()[1]["messages"].to_string().contains("green"));
    let owner = crate::told(owner.wait_with_output().unwrap());
    assert_eq!(owner.code, 0, "{}", owner.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_write_past_us_to_the_terminal() {
    let script = vec![
        Say::calls(&[("shell", r#"{"command":"echo hack''ed > /dev/tty; echo tried"}"#)]).into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let ran = talk(&home, &["run", "--approve", "all", "go"], &[], "").await;
    assert!(
        ran.code == 0 && ran.out.contains("tried") && !ran.out.contains("hacked"),
        "{}",
        ran.out
    );
}

/// Holds W1: `dunnock "<task>"` at a terminal opens the terminal app with the task sent.
/// Holds T3: Tab completes a command that was found by a few letters.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_on_the_command_line_is_sent_at_once_and_the_app_stays() {
    let server = ScriptedServer::start(vec![Say::text("It is a shop.").into()]).await;
    let home = Home::with(&server);
    let window = Window::shell(&home, 80, 24);
    window.type_in(&format!("{} 'What is this?'", env!("CARGO_BIN_EXE_dunnock")));
    window.key("Enter");
    window.wait_for("It is a shop.");
    window.wait_for("what next?");
    let log = wait_for_fact(&home, "ended").await;
    let (_, told) = log.iter().find(|(kind, _)| kind == "prompted").unwrap();
    assert_eq!(told["text"], "What is this?");
    window.type_in("/mdl");
    window.wait_for("show the models, or switch to one");
    window.key("Tab");
    window.wait("the command is written out", |all| all.contains("> /model "));
    assert_eq!(server.asked().len(), 1, "nothing was sent by that");
}
