//! Programs: streamed, bounded, stopped, and gone.

use crate::{job, run, toolbox};
use dunnock_ports::{CancellationToken, DeltaSink, Tools as _};
use dunnock_proto::{Delta, Finished, Outcome};
use dunnock_testkit::timing;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Whether a process of that id is there and not a zombie.
fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|s| !s.contains(") Z "))
}

/// Holds T7: output appears while it runs.
#[tokio::test]
async fn output_streams_while_it_runs_each_piece_with_its_stream() {
    let dir = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<(String, String, Duration)>>> = Arc::default();
    let (log, began) = (seen.clone(), Instant::now());
    let live: DeltaSink = Arc::new(move |delta| {
        if let Delta::Output { stream, text, .. } = delta {
            log.lock().unwrap().push((stream.to_string(), text.to_string(), began.elapsed()));
        }
    });
    let args = r#"{"command":"echo one; sleep 0.5; echo two >&2; sleep 0.5; printf 'caf\\303'; sleep 0.5; printf '\\251\n'"}"#;
    let (finished, _) =
        toolbox().run(job(dir.path(), "shell", args), live, CancellationToken::default()).await;
    assert_eq!(finished.shown.as_ref(), "one\ntwo\ncafé");
    let seen = seen.lock().unwrap().clone();
    let pieces: Vec<(&str, &str)> = seen.iter().map(|(s, t, _)| (s.as_str(), t.as_str())).collect();
    assert_eq!(pieces, [("out", "one\n"), ("err", "two\n"), ("out", "caf"), ("out", "é\n")]);
    let (first, last) = (seen.first().unwrap().2, seen.last().unwrap().2);
    assert!(
        last - first > Duration::from_millis(400),
        "the first piece came while it ran: {first:?} {last:?}"
    );
}

#[tokio::test]
async fn an_interrupt_ends_the_whole_group_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let halt = CancellationToken::default();
    let args =
        r#"{"command":"trap '' TERM; sleep 61 & echo $! > child; echo $$ > self; wait; sleep 62"}"#;
    let toolbox = toolbox();
    let quiet: DeltaSink = Arc::new(|_| {});
    let running = toolbox.run(job(dir.path(), "shell", args), quiet, halt.clone());
    let stopper = async {
        while !dir.path().join("self").exists()
            || std::fs::read_to_string(dir.path().join("self")).unwrap().is_empty()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let told = Instant::now();
        halt.cancel();
        told
    };
    let ((finished, _), told) = tokio::join!(running, stopper);
    let took = told.elapsed();
    assert_eq!(finished.outcome, Outcome::Interrupted);
    timing::figure("an interrupt of a whole group", took, Duration::from_millis(200));
    for file in ["child", "self"] {
        let pid = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(!alive(&pid), "{file} {pid} is still there");
    }
}

/// Holds T7: 400 lines by default, the whole is kept.
#[tokio::test]
async fn long_output_is_shown_in_part_and_kept_whole() {
    let dir = tempfile::tempdir().unwrap();
    let quiet: DeltaSink = Arc::new(|_| {});
    let job = job(dir.path(), "shell", r#"{"command":"seq 1 5000"}"#);
    let (finished, blobs) = toolbox().run(job, quiet, CancellationToken::default()).await;
    assert!(finished.shown.starts_with("1\n2\n") && finished.shown.ends_with("4999\n5000"));
    assert!(
        finished.shown.contains("lines, ") && finished.shown.lines().count() == 401,
        "{}",
        finished.shown
    );
    let all: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!((finished.full, blobs[0].bytes.as_ref()), (Some(blobs[0].hash), all.as_bytes()));
}

#[tokio::test]
async fn a_child_sees_no_key_no_input_and_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    // A variable of Cargo's stands in for a key.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let withheld_variables = vec!["CARGO_MANIFEST_DIR".into()];
    let limits = dunnock_tools::Limits { withheld_variables, ..Default::default() };
    let toolbox = dunnock_tools::Toolbox::new(limits, &crate::launcher(), &[]);
    let finished = call(&toolbox, dir.path(), r#"{"command":"env; cat; echo end"}"#).await;
    assert!(
        finished.shown.contains("PATH=") && finished.shown.ends_with("end"),
        "{}",
        finished.shown
    );
    assert!(!finished.shown.contains("CARGO_MANIFEST_DIR"), "{}", finished.shown);
}

#[tokio::test]
async fn a_check_of_the_harness_is_a_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let passed = run(dir.path(), "verify", r#"{"command":"echo fine && test 1 = 1"}"#).await;
    assert_eq!(
        (passed.outcome, passed.shown.as_ref(), passed.exit),
        (Outcome::Done, "fine", Some(0))
    );
    let failed = run(dir.path(), "verify", r#"{"command":"false"}"#).await;
    assert_eq!((failed.outcome, failed.exit), (Outcome::Failed, Some(1)));
}

/// Our processes whose command line holds this word, zombies left out. (The same test may run as
/// somebody else.)
fn running(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let ours = entry.metadata().is_ok_and(|m| {
            std::os::unix::fs::MetadataExt::uid(&m) == rustix::process::geteuid().as_raw()
        });
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if ours
            && line.split(' ').any(|w| w == word)
            && entry.file_name().to_string_lossy().parse::<u32>().is_ok()
        {
            found.push(line);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_a_command_that_ignores_its_end_is_gone_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let args = r#"{"command":"trap '' TERM INT HUP; (trap '' TERM; sleep 61.10) & sleep 61.10; sleep 61.10","timeout":1}"#;
    let finished = run(dir.path(), "shell", args).await;
    let took = began.elapsed();
    assert!(finished.shown.contains("it took longer than 1 s"), "{}", finished.shown);
    timing::figure("R10: a command that ignores its end", took, Duration::from_secs(3));
    assert_eq!(running("61.10"), Vec::<String>::new());
}

/// A child in the background does not hold the answer up, and ends with the session.
#[tokio::test(flavor = "multi_thread")]
async fn r11_a_background_child_does_not_hold_the_answer_up() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox();
    let session = job(dir.path(), "shell", "{}").session;
    let mut worst = Duration::ZERO;
    for number in 1..=5 {
        let began = Instant::now();
        let finished = call(&toolbox, dir.path(), r#"{"command":"sleep 61.11 & echo hi"}"#).await;
        worst = worst.max(began.elapsed());
        let note =
            format!("hi\n[process {number} is still running: sleep; it ends with the session]");
        assert_eq!(finished.shown.as_ref(), note);
        assert!(finished.left_process);
    }
    timing::figure(
        "R11: from start to answer, the worst of five",
        worst,
        Duration::from_millis(600),
    );
    assert_eq!(running("61.11").len(), 5);
    toolbox.close(&session).await;
    assert_eq!(running("61.11"), Vec::<String>::new());
}

async fn call(toolbox: &dunnock_tools::Toolbox, root: &std::path::Path, args: &str) -> Finished {
    let quiet: DeltaSink = Arc::new(|_| {});
    toolbox.run(job(root, "shell", args), quiet, CancellationToken::default()).await.0
}

/// What leaves its process group, its session or its environment is still known, and ends with the
/// session.
#[tokio::test(flavor = "multi_thread")]
async fn r12_nothing_escapes_by_leaving_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let ways = [
        "setsid sleep 61.12 & echo out",
        "(setsid sleep 61.12 >/dev/null 2>&1 </dev/null &) ; echo out",
        "nohup setsid sh -c '(sleep 61.12 &) ; exit 0' >/dev/null 2>&1; echo out",
        "env -i setsid sleep 61.12 & echo out",
        "setsid sh -c 'setsid sh -c \"setsid sleep 61.12 & sleep 61.12\" & sleep 61.12' & sleep \
         0.1; echo out",
        "python3 -c 'import os,time\nif os.fork()==0:\n  os.setsid()\n  if os.fork()==0:\n    \
         os.execvp(\"sleep\",[\"sleep\",\"61.12\"])\n' ; echo out",
    ];
    for way in ways {
        let toolbox = toolbox();
        let session = job(dir.path(), "shell", "{}").session;
        let args = serde_json::json!({ "command": way }).to_string();
        let finished = call(&toolbox, dir.path(), &args).await;
        assert!(
            finished.shown.starts_with("out\n[process 1 is still running: ")
                && finished.shown.contains("sleep"),
            "{way}: {}",
            finished.shown
        );
        assert_ne!(running("61.12"), Vec::<String>::new(), "{way}");
        toolbox.close(&session).await;
        assert_eq!(running("61.12"), Vec::<String>::new(), "{way}");
    }
    println!("R12: {} ways, 0 survivors", ways.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_does_not_end_what_another_started() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox();
    let quiet: DeltaSink = Arc::new(|_| {});
    let long = r#"{"command":"(setsid sh -c 'sleep 0.8; echo late > late' >/dev/null 2>&1 &); sleep 1.2; cat late"}"#;
    let first =
        toolbox.run(job(dir.path(), "shell", long), quiet.clone(), CancellationToken::default());
    let second = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let args = r#"{"command":"setsid sleep 61.13 & echo short"}"#;
        let (finished, _) = toolbox
            .run(job(dir.path(), "shell", args), quiet.clone(), CancellationToken::default())
            .await;
        let left = running("61.13").len();
        toolbox.close(&job(dir.path(), "shell", "{}").session).await;
        (finished, left, running("61.13"))
    };
    let ((first, _), (second, before, after)) = tokio::join!(first, second);
    assert_eq!(first.shown.as_ref(), "late");
    assert_eq!(
        second.shown.as_ref(),
        "short\n[process 1 is still running: sleep; it ends with the session]"
    );
    assert_eq!((before, after), (1, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn r16_a_thousand_double_forks_leave_no_zombie() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox();
    let quiet: DeltaSink = Arc::new(|_| {});
    let args =
        r#"{"command":"i=0; while [ $i -lt 1000 ]; do (true &); i=$((i+1)); done; echo $i"}"#;
    let (finished, _) =
        toolbox.run(job(dir.path(), "shell", args), quiet, CancellationToken::default()).await;
    assert_eq!(finished.shown.as_ref(), "1000");
    let me = std::process::id().to_string();
    let below = |parent: &str| -> Vec<(String, String)> {
        let stats = std::fs::read_dir("/proc").unwrap().flatten();
        let stats = stats.filter_map(|e| std::fs::read_to_string(e.path().join("stat")).ok());
        let parts = stats.filter_map(|s| {
            let (head, tail) = s.rsplit_once(')')?;
            let mut words = tail.split_whitespace();
            let (state, ppid) = (words.next()?.to_owned(), words.next()?.to_owned());
            (ppid == parent).then(|| (head.split(' ').next().unwrap_or_default().to_owned(), state))
        });
        parts.collect()
    };
    let launchers = below(&me);
    assert_eq!(launchers.len(), 1, "{launchers:?}");
    let children = below(&launchers[0].0);
    println!("R16: {} processes left below the launcher", children.len());
    assert_eq!(children, [], "zombies or survivors");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_a_session_of_its_own_and_no_descriptors_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    let args = r#"{"command":"ps -o sid= -p $$ | tr -d ' '; echo $$; ls -1 /proc/self/fd | wc -l; (: > /dev/tty) 2>/dev/null && echo tty"}"#;
    let shown = run(dir.path(), "shell", args).await.shown;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], lines[1], "it leads its session: {shown}");
    assert_eq!(lines[2], "4", "three streams and the folder that ls reads: {shown}");
    assert!(!shown.contains("tty"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_that_died_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox();
    let quiet: DeltaSink = Arc::new(|_| {});
    let go = async |command: &str| {
        let args = serde_json::json!({ "command": command }).to_string();
        toolbox
            .run(job(dir.path(), "shell", &args), quiet.clone(), CancellationToken::default())
            .await
            .0
    };
    assert_eq!(go("echo one").await.shown.as_ref(), "one");
    let killed = go("kill -9 $PPID; exec sleep 61.14").await;
    assert_eq!(killed.outcome, Outcome::Unknown, "{}", killed.shown);
    assert!(killed.shown.contains("outcome unknown"), "{}", killed.shown);
    assert_eq!(
        running("61.14"),
        Vec::<String>::new(),
        "the command's own process goes with its launcher"
    );
    assert_eq!(go("echo two").await.shown.as_ref(), "two");
    let args = r#"{"command":"kill -9 $PPID; exec sleep 61.15"}"#;
    let (started, _) = toolbox
        .run(job(dir.path(), "process_start", args), quiet.clone(), CancellationToken::default())
        .await;
    assert_eq!(started.outcome, Outcome::Unknown, "{}", started.shown);
    assert!(started.shown.contains("outcome unknown"), "{}", started.shown);
}

/// The most memory this process ever held, in KB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn r14_a_gigabyte_of_output_is_read_and_not_held() {
    let dir = tempfile::tempdir().unwrap();
    let megabytes: u64 = std::env::var("DUNNOCK_R14").map_or(1024, |n| n.parse().unwrap());
    run(dir.path(), "shell", r#"{"command":"true"}"#).await;
    for (what, source) in
        [("one line", "tr '\\\\0' x < /dev/zero"), ("binary", "cat /dev/urandom | tee /dev/null")]
    {
        let before = peak();
        let share = if what == "one line" { megabytes } else { megabytes / 8 };
        let command = format!(
            "{{\"command\":\"{source} | head -c {share}M; echo; echo end\",\"timeout\":600}}"
        );
        let began = Instant::now();
        let quiet: DeltaSink = Arc::new(|_| {});
        let (finished, blobs) = toolbox()
            .run(job(dir.path(), "shell", &command), quiet, CancellationToken::default())
            .await;
        let grew = peak().saturating_sub(before) >> 10;
        let kept = blobs.iter().find(|b| Some(b.hash) == finished.full).unwrap().len();
        println!(
            "R14 {what}: {share} MB in {:?}, {grew} MB more memory, {kept} bytes kept",
            began.elapsed()
        );
        assert!((64 << 20..(64 << 20) + 100).contains(&kept), "{what}: {kept}");
        assert!(
            finished.shown.contains("bytes, only the first and the last 33554432 were saved"),
            "{what}: {}",
            finished.shown
        );
        assert_eq!(finished.outcome, Outcome::Done, "{what}");
        assert!(finished.shown.ends_with("end"), "{what}: the end is kept");
        assert!(grew < 64, "{what}: {grew} MB");
        assert!(finished.shown.len() < 20_000, "{what}: {}", finished.shown.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_kept_by_the_launcher_and_by_the_one_that_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let open = || std::fs::File::options().create(true).append(true).open(&path).unwrap();
    let toolbox = toolbox();
    let quiet: DeltaSink = Arc::new(|_| {});
    let go = async |command: &str| {
        let args = serde_json::json!({ "command": command }).to_string();
        toolbox
            .run(job(dir.path(), "shell", &args), quiet.clone(), CancellationToken::default())
            .await
            .0
    };
    // Other processes that have the file open: the launcher, and no child of it.
    let holders = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let number =
            |p: &std::fs::DirEntry| p.file_name().to_str().and_then(|n| n.parse::<u32>().ok());
        let others = processes.filter(move |p| number(p).is_some_and(|n| n != std::process::id()));
        let open = |p: &std::fs::DirEntry| {
            let fds = std::fs::read_dir(p.path().join("fd")).into_iter().flatten().flatten();
            fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|target| target == path)
        };
        others.filter(open).count()
    };
    let ours = open();
    ours.try_lock().unwrap();
    let held = toolbox.hold(&ours).unwrap();
    assert!(
        go("ls -l /proc/self/fd").await.shown.lines().all(|l| !l.contains("lock")),
        "no child has it"
    );
    drop(ours);
    assert_eq!(holders(), 1, "the launcher keeps it");
    assert!(open().try_lock().is_err());
    go("kill -9 $PPID").await;
    go("true").await;
    assert_eq!(holders(), 1, "so does the one that replaced it");
    drop(held);
    assert_eq!(holders(), 0);
    open().try_lock().unwrap();
}
