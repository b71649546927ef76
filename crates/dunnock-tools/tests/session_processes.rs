//! Programs that keep running between calls: slow commands, programs that ask, terminals.

use crate::{job, launcher};
use dunnock_ports::{CancellationToken, DeltaSink, Tools as _};
use dunnock_proto::{Finished, Outcome};
use dunnock_tools::{Limits, Toolbox};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn call(toolbox: &Toolbox, root: &Path, tool: &str, args: Value) -> Finished {
    let quiet: DeltaSink = Arc::new(|_| {});
    toolbox.run(job(root, tool, &args.to_string()), quiet, CancellationToken::default()).await.0
}

/// A toolbox in which a second stands for the 120 that a command may take.
fn hasty() -> Toolbox {
    let limits = Limits { command: Duration::from_secs(1), ..Limits::default() };
    Toolbox::new(limits, &launcher(), &[])
}

/// A slow build is one call and one wait, also if it pauses and prints meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_command_continues_and_one_wait_sees_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = hasty();
    let build =
        "for i in 1 2 3 4 5 6; do echo step $i; sleep 0.4; done; sleep 2.5; echo built; exit 3";
    let first = call(&toolbox, dir.path(), "shell", json!({ "command": build })).await;
    assert!(first.left_process && first.outcome == Outcome::Done, "{first:?}");
    assert!(
        first.shown.starts_with("step 1\n")
            && first.shown.contains("[still running after 1 s, now as process 1"),
        "{}",
        first.shown
    );
    let began = Instant::now();
    let rest = call(&toolbox, dir.path(), "process_read", json!({"process": 1, "wait": 600})).await;
    assert!(rest.shown.ends_with("built\n[process 1: exit 3]"), "{}", rest.shown);
    assert!(rest.shown.contains("step 6"), "{}", rest.shown);
    assert!(began.elapsed() < Duration::from_secs(60));
    // A timeout of its own is the end.
    let args = json!({"command": "echo begun; sleep 30", "timeout": 1});
    let stopped = call(&toolbox, dir.path(), "shell", args).await;
    assert_eq!(stopped.shown.as_ref(), "begun\n[stopped: it took longer than 1 s]");
    assert!(!stopped.left_process);
}

/// Ten lines of a REPL, each answered in the same call, with and without a terminal.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_asks_answers_in_the_same_call() {
    for terminal in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let toolbox = hasty();
        let args = json!({"command": ["python3", "-i", "-q"], "terminal": terminal, "wait": 20});
        let started = call(&toolbox, dir.path(), "process_start", args).await;
        assert!(started.shown.contains(">>> "), "{}", started.shown);
        let began = Instant::now();
        for n in 1..=10 {
            let args = json!({"process": 1, "text": format!("{n} * 1001\n"), "wait": 20});
            let answer = call(&toolbox, dir.path(), "process_write", args).await;
            let result = (n * 1001).to_string();
            // The prompt comes on another stream, and may stand before the end of the line.
            assert!(answer.shown.contains(&result), "{terminal} {n}: {}", answer.shown);
        }
        println!("ten lines, terminal {terminal}: {:?}", began.elapsed());
        let exit = json!({"process": 1, "text": "exit(4)\n", "wait": 20});
        let ended = call(&toolbox, dir.path(), "process_write", exit).await;
        assert!(ended.shown.contains("[process 1: exit 4]"), "{}", ended.shown);
    }
}

/// The screen of a program that draws it, and keys by name.
#[tokio::test(flavor = "multi_thread")]
async fn an_editor_in_a_terminal_is_seen_and_driven_by_keys() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = hasty();
    let args = json!({"command": ["busybox", "vi", "note.txt"], "terminal": true, "wait": 20});
    call(&toolbox, dir.path(), "process_start", args).await;
    let typed = json!({"process": 1, "text": "ione line", "keys": ["Enter"], "screen": true});
    let screen = call(&toolbox, dir.path(), "process_write", typed).await.shown;
    assert!(screen.starts_with("one line\n"), "{screen}");
    assert!(screen.contains("[process 1: running; cursor at row 2, column 1]"), "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen}");
    let keys = json!({"process": 1, "text": "", "keys": ["Escape"]});
    call(&toolbox, dir.path(), "process_write", keys).await;
    let save = json!({"process": 1, "text": ":wq", "keys": ["Enter"], "wait": 20});
    let ended = call(&toolbox, dir.path(), "process_write", save).await.shown;
    assert!(ended.contains("[process 1: exit 0]"), "{ended}");
    assert_eq!(std::fs::read_to_string(dir.path().join("note.txt")).unwrap(), "one line\n\n");
    // Where keys and screens make no sense, the result says so.
    call(&toolbox, dir.path(), "process_start", json!({"command": ["cat"]})).await;
    for (tool, args, says) in [
        ("process_write", json!({"process": 2, "keys": ["C-c"]}), "has no terminal"),
        ("process_write", json!({"process": 2, "keys": ["Hyper"]}), "unknown key \"Hyper\""),
        ("process_write", json!({"process": 2}), "nothing to write"),
        ("process_read", json!({"process": 2, "screen": true}), "has no terminal"),
    ] {
        let said = call(&toolbox, dir.path(), tool, args).await;
        assert!(said.outcome == Outcome::Failed && said.shown.contains(says), "{}", said.shown);
    }
}

/// Processes are listed with name and port, and one that ends says so.
#[tokio::test(flavor = "multi_thread")]
async fn processes_are_listed_with_their_ports() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = hasty();
    let none = call(&toolbox, dir.path(), "process_read", json!({})).await;
    assert_eq!(none.shown.as_ref(), "no process is running");
    let server = "python3 -c 'import socket, time; s = socket.create_server((\"127.0.0.1\", 0)); \
                  open(\"up\", \"w\"); time.sleep(600)' & while ! test -e up; do sleep 0.05; done";
    call(&toolbox, dir.path(), "shell", json!({ "command": server })).await;
    call(&toolbox, dir.path(), "process_start", json!({"command": "exit 7"})).await;
    let listed = call(&toolbox, dir.path(), "process_read", json!({})).await.shown;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].starts_with("1: python3 -c") && lines[0].contains("[running: python3 on port "),
        "{listed}"
    );
    // What fails at once is reported at once, and is no process of the session.
    let failing = json!({"command": "(sleep 0.1; echo cannot bind >&2; exit 1) &"});
    let expected = "cannot bind\n[what it had left running has ended]";
    let mut failed = call(&toolbox, dir.path(), "shell", failing.clone()).await;
    // On a busy machine, it may take longer than the call waits.
    for _ in 0..20 {
        if failed.shown.as_ref() != expected {
            failed = call(&toolbox, dir.path(), "shell", failing.clone()).await;
        }
    }
    assert_eq!(failed.shown.as_ref(), expected);
    assert!(!failed.left_process);
}

/// With as many processes as there may be, what a command leaves running ends with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_ninth_process_is_ended_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = hasty();
    for _ in 0..8 {
        call(&toolbox, dir.path(), "process_start", json!({"command": ["sleep", "600"]})).await;
    }
    let args = json!({"command": "sh -c 'echo $$ > pid; sleep 600' & sleep 0.2; echo out"});
    let ninth = call(&toolbox, dir.path(), "shell", args).await;
    assert!(
        ninth.shown.starts_with(
            "out\n[stopped the processes that this command left running: 8 processes are already"
        ),
        "{}",
        ninth.shown
    );
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

/// What writes all the time holds no call up, and an interrupt is not needed.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_never_stops_writing_holds_no_call_up() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = hasty();
    for command in ["yes &", "yes", "(while :; do echo x; done) & echo begun"] {
        let args = json!({ "command": command });
        let called = call(&toolbox, dir.path(), "shell", args);
        let finished = tokio::time::timeout(Duration::from_secs(60), called).await.expect(command);
        assert!(finished.left_process, "{command}: {}", finished.shown);
    }
    toolbox.close(&job(dir.path(), "shell", "{}").session).await;
}

/// A build that leaves a daemon behind has an end and an exit code.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_command_that_leaves_a_daemon_has_an_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = hasty();
    let build = "sleep 600 & sleep 2; echo built; exit 3";
    let first = call(&toolbox, dir.path(), "shell", json!({ "command": build })).await;
    assert!(first.shown.contains("still running after 1 s"), "{}", first.shown);
    let args = json!({"process": 1, "wait": 600});
    let read = call(&toolbox, dir.path(), "process_read", args);
    let read = tokio::time::timeout(Duration::from_secs(60), read).await.expect("the wait ends");
    assert_eq!(
        read.shown.as_ref(),
        "built\n[process 1: the command ended with exit 3; what it started is still running]"
    );
    toolbox.close(&job(dir.path(), "shell", "{}").session).await;
}

/// What was written before a line was typed is not its answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_after_what_was_typed() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = hasty();
    // Its prompt comes after the call that starts it has returned.
    let program = "import time\ntime.sleep(1)\nwhile True:\n  print('> ', end='', flush=True)\n  \
                   open('ready', 'w').close()\n  n = input()\n  time.sleep(0.5)\n  print(int(n) * 2)\n";
    let args = json!({"command": ["python3", "-u", "-c", program]});
    call(&toolbox, dir.path(), "process_start", args).await;
    for _ in 0..600 {
        if dir.path().join("ready").exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Its prompt has been read by now, and is old.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let args = json!({"process": 1, "text": "21\n", "wait": 30});
    let answer = call(&toolbox, dir.path(), "process_write", args).await;
    assert!(answer.shown.contains("42"), "{}", answer.shown);
    toolbox.close(&job(dir.path(), "shell", "{}").session).await;
}

/// A call in a sandbox of level A that nobody approved.
async fn sandboxed(toolbox: &Toolbox, root: &Path, tool: &str, args: Value) -> Finished {
    let quiet: DeltaSink = Arc::new(|_| {});
    let job = job(root, tool, &args.to_string());
    let job = dunnock_ports::ToolCall { isolation: dunnock_proto::Isolation::A, ..job };
    toolbox.run(job, quiet, CancellationToken::default()).await.0
}

/// While a process runs, an edit tool may create a file that others act on, because the person was
/// asked; the process may not, neither elsewhere nor beside that file at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_of_a_process_accepts_edits_and_nothing_else() {
    let path = ".github/workflows/ci.yml";
    let later = "(while ! test -f go; do sleep 0.1; done; mkdir .husky; echo x > .husky/pre-commit; \
                 touch planted; sleep 600) >log 2>&1 &";
    let beside = "(while :; do mkdir -p .github/workflows; echo x > .github/workflows/planted.yml; touch \
                  planted; done) >log 2>&1 &";
    for command in [later, beside] {
        let (data, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = dir.path().canonicalize().unwrap();
        let toolbox = Toolbox::new(Limits::default(), &launcher(), &[])
            .boxed(dunnock_tools::layout(data.path(), &[]));
        let started = sandboxed(&toolbox, &root, "shell", json!({ "command": command })).await;
        assert!(started.left_process, "{}", started.shown);
        let edits = [path, "AGENTS.md", "package/.vscode/settings.json"];
        for path in edits {
            let args = json!({"path": path, "content": "on: push\n"});
            let edited = sandboxed(&toolbox, &root, "write_file", args).await;
            assert_eq!(edited.outcome, Outcome::Done, "{}", edited.shown);
        }
        crate::put(&root, &[("go", "")]);
        for _ in 0..600 {
            if root.join("planted").exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Several rounds of the guard, and that at the end.
        tokio::time::sleep(Duration::from_secs(3)).await;
        toolbox.close(&job(&root, "shell", "{}").session).await;
        assert!(root.join("planted").exists());
        for path in edits {
            let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
            assert_eq!(text, "on: push\n", "{path}: {command}");
        }
        for planted in [".husky", ".github/workflows/planted.yml"] {
            assert!(!root.join(planted).exists(), "{planted} was accepted: {command}");
        }
    }
}

/// A server of a call with more access cannot be reached by a call that nobody approved.
#[tokio::test(flavor = "multi_thread")]
async fn calls_with_more_access_have_a_network_of_their_own() {
    let (data, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = dir.path().canonicalize().unwrap();
    let toolbox = Toolbox::new(Limits::default(), &launcher(), &[])
        .boxed(dunnock_tools::layout(data.path(), &[]));
    let with = async |secrets: bool, command: &str| {
        let quiet: DeltaSink = Arc::new(|_| {});
        let mut job = job(&root, "shell", &json!({ "command": command }).to_string());
        job.isolation = dunnock_proto::Isolation::A;
        job.call.access.secrets = secrets;
        toolbox.run(job, quiet, CancellationToken::default()).await.0
    };
    let serve = "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &";
    let fetch = "for n in $(seq TRIES); do curl -sf http://127.0.0.1:8000/ >/dev/null && echo reached && \
                 exit; sleep 0.1; done; echo nothing";
    for (server, client, expected) in [
        (true, false, "nothing"),
        (true, true, "reached"),
        (false, false, "reached"),
        (false, true, "nothing"),
    ] {
        let started = with(server, serve).await;
        assert!(started.left_process, "{}", started.shown);
        let tries = if expected == "reached" { "300" } else { "20" };
        let fetched = with(client, &fetch.replace("TRIES", tries)).await;
        assert_eq!(fetched.shown.trim(), expected, "from {client} to {server}");
        toolbox.close(&job(&root, "shell", "{}").session).await;
    }
}
