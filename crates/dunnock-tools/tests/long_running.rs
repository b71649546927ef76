//! Programs that run on between calls, and what keeps any program from taking everything.

use crate::{job, launcher, toolbox};
use dunnock_ports::{CancellationToken, DeltaSink, Tools as _};
use dunnock_proto::{Finished, Outcome};
use dunnock_testkit::timing;
use dunnock_tools::{Limits, Toolbox};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn call(toolbox: &Toolbox, root: &Path, tool: &str, args: serde_json::Value) -> Finished {
    let quiet: DeltaSink = Arc::new(|_| {});
    toolbox.run(job(root, tool, &args.to_string()), quiet, CancellationToken::default()).await.0
}

fn alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_talked_to_and_ends_with_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let (root, toolbox) = (dir.path(), toolbox());
    let session = job(root, "shell", "{}").session;
    let started =
        call(&toolbox, root, "process_start", serde_json::json!({"command": "echo $$ > pid; cat"}))
            .await;
    assert_eq!(started.shown.as_ref(), "started process 1\n[process 1 is running; no new output]");
    let wrote =
        call(&toolbox, root, "process_write", serde_json::json!({"process": 1, "text": "hello\n"}))
            .await;
    assert_eq!(wrote.shown.as_ref(), "hello\n[process 1 is running]");
    let nothing = call(&toolbox, root, "process_read", serde_json::json!({"process": 1})).await;
    assert_eq!(nothing.shown.as_ref(), "[process 1 is running; no new output]");
    let wrong = call(&toolbox, root, "process_read", serde_json::json!({"process": 7})).await;
    assert_eq!(
        (wrong.outcome, wrong.shown.as_ref()),
        (Outcome::Failed, "there is no process 7; known processes: 1")
    );
    let pid = std::fs::read_to_string(root.join("pid")).unwrap();
    assert!(alive(&pid));
    toolbox.close(&session).await;
    assert!(!alive(&pid), "none outlives its session");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_waited_for_and_stopped_with_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let (root, toolbox) = (dir.path(), toolbox());
    let server = "setsid sleep 600 & echo $! > child; sleep 0.4; echo ready; sleep 600";
    call(&toolbox, root, "process_start", serde_json::json!({ "command": server })).await;
    let began = Instant::now();
    let read =
        call(&toolbox, root, "process_read", serde_json::json!({"process": 1, "wait": 20})).await;
    assert_eq!(read.shown.as_ref(), "ready\n[process 1 is running]");
    dunnock_testkit::timing::figure(
        "a server that is waited for",
        began.elapsed(),
        Duration::from_secs(5),
    );
    let stopped = call(&toolbox, root, "process_stop", serde_json::json!({"process": 1})).await;
    assert!(stopped.shown.contains("[process 1: ended by signal 15]"), "{}", stopped.shown);
    let child = std::fs::read_to_string(root.join("child")).unwrap();
    assert!(!alive(&child), "what it started is gone, too");
    let again =
        call(&toolbox, root, "process_start", serde_json::json!({"command": "echo two; exit 4"}))
            .await;
    assert_eq!(again.shown.as_ref(), "started process 2\ntwo\n[process 2: exit 4]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let (root, toolbox) = (dir.path(), toolbox());
    let args =
        serde_json::json!({"command": "tty; stty size; read x; echo \"got $x\"", "terminal": true});
    let started = call(&toolbox, root, "process_start", args).await.shown;
    assert!(started.contains("/dev/pts/") && started.contains("40 120"), "{started}");
    let wrote =
        call(&toolbox, root, "process_write", serde_json::json!({"process": 1, "text": "me\n"}))
            .await
            .shown;
    assert!(wrote.contains("got me"), "{wrote}");
    // Ctrl-C is a character like any other, and reaches who sits at the terminal.
    let args = serde_json::json!({"command": "trap 'echo stopped; exit 5' INT; echo go; while :; do sleep 0.1; done", "terminal": true});
    call(&toolbox, root, "process_start", args).await;
    call(&toolbox, root, "process_write", serde_json::json!({"process": 2, "text": "\u{3}"})).await;
    let read = call(&toolbox, root, "process_read", serde_json::json!({"process": 2, "wait": 5}))
        .await
        .shown;
    let both = format!(
        "{read}{}",
        call(&toolbox, root, "process_read", serde_json::json!({"process": 2, "wait": 1}))
            .await
            .shown
    );
    assert!(both.contains("[process 2: exit 5]"), "{both}");
    let without = call(
        &toolbox,
        root,
        "shell",
        serde_json::json!({"command": "tty; test -e /dev/tty && : < /dev/tty"}),
    )
    .await;
    assert!(without.shown.contains("not a tty"), "{}", without.shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_run_at_once_and_output_nobody_reads_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let (root, toolbox) = (dir.path(), toolbox());
    for _ in 0..8 {
        call(&toolbox, root, "process_start", serde_json::json!({"command": ["sleep", "600"]}))
            .await;
    }
    let ninth =
        call(&toolbox, root, "process_start", serde_json::json!({"command": ["sleep", "600"]}))
            .await;
    assert!(
        ninth.shown.starts_with("8 processes are already running (1, 2, 3, 4, 5, 6, 7, 8)"),
        "{}",
        ninth.shown
    );
    call(&toolbox, root, "process_stop", serde_json::json!({"process": 3})).await;
    let noisy =
        serde_json::json!({"command": "sleep 0.5; yes | head -c 3000000; echo end; sleep 600"});
    call(&toolbox, root, "process_start", noisy).await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let read = call(&toolbox, root, "process_read", serde_json::json!({"process": 9, "wait": 1}))
        .await
        .shown;
    assert!(
        read.contains("bytes of older output") && read.contains("end\n[process 9 is running]"),
        "{read}"
    );
    assert!(read.len() < 12 << 10, "{}", read.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_a_fork_bomb_ends_and_the_agent_answers_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let limits = Limits { processes: 300, ..Limits::default() };
    let toolbox = Arc::new(Toolbox::new(limits, &launcher(), &[]));
    call(&toolbox, root, "shell", serde_json::json!({"command": "true"})).await;
    for (what, bomb) in [
        ("forks", "f() { f | f & }; f; sleep 60"),
        (
            "forks and escapes",
            "f() { setsid -f bash -c \"$0\" 2>/dev/null; sleep 0.01; }; for i in $(seq 400); do \
             setsid -f sleep 60; done; sleep 60",
        ),
    ] {
        let began = Instant::now();
        let (bomber, place) = (toolbox.clone(), root.to_path_buf());
        let bombing = tokio::spawn(async move {
            call(&bomber, &place, "shell", serde_json::json!({ "command": bomb, "timeout": 30 }))
                .await
        });
        let mut slowest = Duration::ZERO;
        while !bombing.is_finished() {
            let asked = Instant::now();
            // Another call, beside it.
            let seen = call(&toolbox, root, "list_files", serde_json::json!({})).await;
            assert_eq!(seen.outcome, Outcome::Done);
            tokio::time::sleep(Duration::from_millis(10)).await;
            slowest = slowest.max(asked.elapsed());
        }
        let finished = bombing.await.unwrap();
        println!(
            "R13 {what}: over after {:?}, slowest answer meanwhile {slowest:?}: {}",
            began.elapsed(),
            &finished.shown[finished.shown.len().saturating_sub(80)..]
        );
        assert_ne!(finished.outcome, Outcome::Done, "{what}");
        timing::figure(
            &format!("R13 {what}: slowest answer meanwhile"),
            slowest,
            Duration::from_secs(1),
        );
        timing::figure(&format!("R13 {what}: over"), began.elapsed(), Duration::from_secs(33));
        // And the next command runs.
        let next = call(&toolbox, root, "shell", serde_json::json!({"command": "echo fine"})).await;
        assert_eq!(next.shown.as_ref(), "fine", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_a_memory_bomb_dies_and_the_agent_lives() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { memory: 256 << 20, ..Limits::default() };
    let toolbox = Toolbox::new(limits, &launcher(), &[]);
    for bomb in ["tail /dev/zero", "x=a; while :; do x=$x$x; done"] {
        let began = Instant::now();
        let finished = call(
            &toolbox,
            dir.path(),
            "shell",
            serde_json::json!({ "command": bomb, "timeout": 30 }),
        )
        .await;
        println!("R15 {bomb}: {:?} after {:?}", finished.shown, began.elapsed());
        assert_eq!(finished.outcome, Outcome::Failed, "{bomb}");
        assert!(!finished.shown.contains("took longer"), "{bomb}: {}", finished.shown);
        let next = call(
            &toolbox,
            dir.path(),
            "shell",
            serde_json::json!({"command": "echo fine; cat /proc/self/oom_score_adj"}),
        )
        .await;
        assert_eq!(next.shown.as_ref(), "fine\n900", "commands go first when memory runs out");
    }
}

/// Holds W5: pwsh gets -NoProfile -NonInteractive.
#[tokio::test(flavor = "multi_thread")]
async fn pwsh_is_started_without_profile_and_without_questions() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    // There is no PowerShell here: what it would be given is what counts.
    let fake = dir.path().join("pwsh");
    std::fs::write(&fake, "#!/bin/sh\nprintf '%s|' \"$@\"\n").unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path =
        std::env::join_paths([dir.path().to_path_buf(), "/usr/bin".into(), "/bin".into()]).unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["long_running::pwsh_child", "--exact", "--nocapture"])
        .env("PATH", path)
        .env("PWSH_CHILD", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("-NoProfile|-NonInteractive|-Command|Get-Date|"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pwsh_child() {
    let Some(dir) = std::env::var_os("PWSH_CHILD") else { return };
    let limits = Limits { shell: dunnock_tools::Shell::Pwsh, ..Limits::default() };
    let toolbox = Toolbox::new(limits, &launcher(), &[]);
    println!(
        "{}",
        call(&toolbox, Path::new(&dir), "shell", serde_json::json!({"command": "Get-Date"}))
            .await
            .shown
    );
}

/// Holds W5: output in order, each chunk with its stream.
#[tokio::test(flavor = "multi_thread")]
async fn which_stream_said_what_is_kept_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let quiet: DeltaSink = Arc::new(|_| {});
    let command = r#"{"command":"for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done"}"#;
    let (finished, blobs) =
        toolbox().run(job(dir.path(), "shell", command), quiet, CancellationToken::default()).await;
    assert_eq!(finished.shown.as_ref(), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3");
    let streams = blobs.iter().find(|b| Some(b.hash) == finished.streams).unwrap();
    let order: Vec<(String, u64)> = serde_json::from_slice(&streams.bytes).unwrap();
    let expected: Vec<(String, u64)> =
        (0..3).flat_map(|_| [("out".into(), 6), ("err".into(), 6)]).collect();
    assert_eq!(order, expected);
}

/// Everything that must hold for root must hold for everybody.
#[test]
fn the_same_as_an_ordinary_user() {
    if dunnock_testkit::ordinary::is_root() {
        for tests in ["processes::", "long_running::r", "long_running::a_", "keep::"] {
            let said = crate::as_ordinary_user(tests);
            said.lines()
                .filter(|l| l.contains("R1") || l.starts_with("test "))
                .for_each(|l| println!("{l}"));
        }
    }
}
