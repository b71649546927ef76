//! R2, R3, R4 with the real kernel: killed at system calls, a sync that fails, a disk that is full.
//! And syncs counted.

use crate::kills::{DOOR, begun, check_acks, compare, connection, look, told};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command as Process, Output, Stdio};

/// What SQLite and the blob files write with.
const CALLS: &str = "pwrite64,write,fdatasync,fsync,rename,ftruncate,unlink";

fn strace(inject: &str, dir: &Path, scenario: &str) -> Output {
    let mut command = Process::new("strace");
    command.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        &format!("trace={CALLS}"),
        "-e",
        &format!("inject={inject}"),
    ]);
    command.args([DOOR, "drive", &dir.to_string_lossy(), scenario]).stdin(Stdio::null());
    command.env("RUST_BACKTRACE", "0");
    command.output().expect("strace is installed")
}

fn share() -> u64 {
    std::env::var("DUNNOCK_R2").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

/// Kills at the k-th write or sync of a thread, resumes, compares. Scenarios take turns; `k` is
/// counted for each thread.
async fn killed_at_system_calls(scenarios: &[&str], per_scenario: u64) -> u64 {
    let mut kills = 0;
    for scenario in scenarios {
        let whole = tempfile::tempdir().unwrap();
        assert!(connection("drive", whole.path(), scenario).output().unwrap().status.success());
        let base = look(whole.path()).await;
        let (mut k, mut struck, mut past) = (0, 0, 0);
        // A few threads write, and `k` counts for each: past the last call of the busiest the runs
        // just end.
        while struck < per_scenario && past < 3 {
            k += 1;
            let dir = tempfile::tempdir().unwrap();
            let killed = strace(&format!("{CALLS}:signal=KILL:when={k}"), dir.path(), scenario);
            if killed.status.success() {
                past += 1;
                continue;
            }
            (struck, past) = (struck + 1, 0);
            let lines = told(&killed);
            check_acks(&format!("{scenario} at system call {k}"), dir.path(), &killed).await;
            let begun = begun(dir.path()).await;
            let resumed = connection("drive", dir.path(), scenario).output().unwrap();
            assert!(
                resumed.status.success(),
                "{scenario} at {k}: {}",
                String::from_utf8_lossy(&resumed.stdout)
            );
            let after = look(dir.path()).await;
            compare(
                &format!("{scenario} at system call {k} after {} facts", lines.len()),
                &killed,
                &begun,
                &after,
                &base,
                dir.path(),
            );
        }
        kills += struck;
    }
    kills
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_killed_at_writes_and_syncs() {
    let share = share();
    // Two scenarios are enough for a share; the long run goes through all of their calls.
    let kills = match share {
        0..=400 => killed_at_system_calls(&["plain", "steps-40"], share.div_ceil(2)).await,
        _ => {
            killed_at_system_calls(
                &["plain", "parallel", "question", "steps-20", "steps-40", "steps-70"],
                share,
            )
            .await
        }
    };
    println!(
        "R2: {kills} kills at system calls, nothing acknowledged was lost, every database whole"
    );
    assert!(kills >= share, "only {kills} of {share} kills struck");
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_nothing_is_acknowledged_on_a_failed_sync() {
    let whole = tempfile::tempdir().unwrap();
    assert!(connection("drive", whole.path(), "plain").output().unwrap().status.success());
    let base = look(whole.path()).await;
    let mut doubted = 0;
    for k in 1..=30 {
        let dir = tempfile::tempdir().unwrap();
        let output = strace(&format!("fdatasync,fsync:error=EIO:when={k}"), dir.path(), "plain");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        doubted += u32::from(said.contains("checking the log"));
        // Where the very first writes fail the program says so and ends; everywhere else it goes on
        // by itself.
        if !output.status.success() {
            assert!(said.contains("ERROR "), "sync {k}: it ended without a word: {said}");
            assert!(connection("drive", dir.path(), "plain").output().unwrap().status.success());
        }
        let after = look(dir.path()).await;
        for line in told(&output) {
            assert!(after.lines.contains(&line), "sync {k}: told and then lost: {line}");
        }
        assert_eq!(
            String::from_utf8_lossy(&after.messages),
            String::from_utf8_lossy(&base.messages),
            "sync {k}"
        );
    }
    println!("R4: 30 failed syncs, {doubted} found out about while working");
    assert!(doubted >= 5, "{doubted}");
}

/// A small disk of its own, filled by a file; the file goes when the door has said twice that the
/// disk is full.
fn on_a_full_disk(scenario: &str) -> (u32, u32) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_string_lossy().into_owned();
    // Somebody who cannot go to the build folder is given a copy.
    let connection = std::env::var("DUNNOCK_TEST_DOOR").unwrap_or_else(|_| DOOR.into());
    let script = format!(
        "mount -t tmpfs -o size=6m none {place} && head -c 5000000 /dev/zero > {place}/ballast && \
         {{ {connection} drive {place} {scenario}; code=$?; echo \"PARTS $(find {place} -name '*.part' \
         | wc -l)\"; echo \"EXIT $code\"; }} & while read -r line; do [ \"$line\" = free ] && rm \
         {place}/ballast; done; wait"
    );
    let mut child = Process::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare is installed");
    let mut input = child.stdin.take().unwrap();
    let (mut full, mut facts, mut ended) = (0, 0, false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        facts += u32::from(line.starts_with("FACT "));
        if line.contains("disk is full") {
            assert!(line.contains("free some space"), "it says what to do: {line}");
            full += 1;
            if full == 2 {
                writeln!(input, "free").unwrap();
            }
        }
        if let Some(parts) = line.strip_prefix("PARTS ") {
            assert_eq!(parts, "0", "a partial file was left behind");
        }
        if line.starts_with("EXIT ") {
            assert_eq!(line, "EXIT 0");
            ended = true;
            break;
        }
    }
    drop(input);
    let _ = child.wait();
    assert!(ended && full >= 2, "{scenario}: said {full} times");
    (full, facts)
}

#[test]
fn r3_a_full_disk_is_said_and_work_goes_on_once_there_is_room() {
    let (said, facts) = on_a_full_disk("steps-90");
    println!("R3: facts: said {said} times, {facts} facts in the end");
    assert!(facts > 400, "{facts}");
    let (said, facts) = on_a_full_disk("blobs-3");
    println!("R3: blobs: said {said} times, {facts} facts in the end");
}

#[test]
fn a_full_disk_as_an_ordinary_user() {
    if dunnock_testkit::ordinary::is_root() {
        let said = dunnock_testkit::ordinary::run("syscalls::r3_", &[("DUNNOCK_TEST_DOOR", DOOR)]);
        said.lines().filter(|line| line.contains("R3")).for_each(|line| println!("{line}"));
    }
}

#[test]
fn r5_a_read_only_database_is_said_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_string_lossy().into_owned();
    let script = format!(
        "mount -t tmpfs none {place} && {DOOR} drive {place} steps-3 > /dev/null && mount -o \
         remount,ro {place} && {DOOR} drive {place} steps-3; echo \"EXIT $?\""
    );
    let output = Process::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .output()
        .expect("unshare is installed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("ERROR ")
            && said.to_lowercase().contains("read-only")
            && said.contains("EXIT 1"),
        "{said}"
    );
}

/// Syncs of the whole process for a scenario.
fn syncs(scenario: &str) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("calls");
    let status = Process::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=fdatasync,fsync",
            "-o",
            &list.to_string_lossy(),
            DOOR,
            "drive",
        ])
        .args([&dir.path().to_string_lossy() as &str, scenario])
        .stdout(Stdio::null())
        .status()
        .expect("strace is installed");
    assert!(status.success());
    let text = std::fs::read_to_string(&list).unwrap();
    text.lines().filter(|l| l.contains("sync(")).count() as u64
}

#[test]
fn a_step_is_two_syncs() {
    let (few, more) = (syncs("steps-10"), syncs("steps-60"));
    let each = (more - few) as f64 / 50.0;
    println!("syncs: {few} for 10 steps, {more} for 60: {each:.2} for each step");
    assert!((1.9..=2.1).contains(&each), "{each}");
}
