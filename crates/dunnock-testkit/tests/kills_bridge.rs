//! A whole conversation carried by a scripted person, ten rounds, killed again and again and
//! resumed: nothing runs twice.

use crate::kills::{look, unknown};
use crate::kills_cli::program;
use dunnock_proto::{Event, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 10;
/// Kills of one conversation.
const CHAIN: usize = 8;

/// What the chat answers in a round.
fn says(n: u32) -> String {
    match n {
        ROUNDS => "That was all.\n\n[DONE]\n".into(),
        n if n % 3 == 0 => {
            format!("[WRITE file{n}.txt]\nround {n}\n[END]\n[RUN]\necho {n} >> log\n[END]\n")
        }
        n => format!("Round {n}:\n\n```\n[RUN]\necho {n} >> log\n[END]\n[READ log]\n```\n"),
    }
}

/// The person: whatever outbox lies there without an answer is answered.
fn carry(folder: &Path) {
    for n in 1..=ROUNDS {
        let (outbox, inbox) =
            (folder.join(format!("{n:03}-outbox.md")), folder.join(format!("{n:03}-inbox.md")));
        if outbox.exists() && !inbox.exists() {
            let part = folder.join(format!("saving{n}"));
            std::fs::write(&part, says(n)).unwrap();
            std::fs::rename(part, inbox).unwrap();
        }
    }
}

/// Lets a program work, and carries, until it ends; its exit code, or none if it was killed.
fn attend(child: &mut Child, folder: &Path, what: &str) -> Option<i32> {
    let began = Instant::now();
    loop {
        carry(folder);
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("{what}: no end");
        }
        std::thread::sleep(Duration::from_millis(25));
    }
}

fn start(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Child {
    let mut command = program(dir, "http://127.0.0.1:9", args);
    command.envs(env.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

const NEW: &[&str] = &["bridge", "new", "--json", "--verify", "test -f file9.txt", "carry it"];
const RESUME: &[&str] = &["bridge", "resume", "--json"];

/// A conversation that is killed at each of these places, one after the other. Which of them were
/// struck.
fn conversation(dir: PathBuf, places: Vec<String>) -> Vec<String> {
    let folder = dir.join("project/.dunnock/bridge");
    let mut struck = Vec::new();
    let mut begun = false;
    for place in &places {
        let args = if begun { RESUME } else { NEW };
        let mut child = start(&dir, args, &[("DUNNOCK_FAIL_AT", place)]);
        match attend(&mut child, &folder, place) {
            None => struck.push(place.clone()),
            Some(0) => return struck,
            Some(code) => assert!(matches!(code, 1 | 2), "{place}: exit {code}"),
        }
        // Before its first request a session may not be there, or have no task: it is begun anew.
        begun = folder.join("001-outbox.md").exists();
        if !begun {
            let _ = std::fs::remove_dir_all(dir.join("data"));
        }
    }
    let args = if begun { RESUME } else { NEW };
    let code = attend(&mut start(&dir, args, &[]), &folder, "the rest");
    assert_eq!(code, Some(0), "after {places:?}");
    struck
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn b5_ten_rounds_killed_at_forty_points_and_resumed_run_nothing_twice() {
    let whole = tempfile::tempdir().unwrap();
    let list = whole.path().join("places");
    std::fs::create_dir_all(whole.path().join("project")).unwrap();
    let (dir, env) = (whole.path().to_path_buf(), list.to_string_lossy().into_owned());
    let first = tokio::task::spawn_blocking(move || {
        let mut child = start(&dir, NEW, &[("DUNNOCK_FAIL_LIST", &env)]);
        attend(&mut child, &dir.join("project/.dunnock/bridge"), "the whole")
    });
    assert_eq!(first.await.unwrap(), Some(0));
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    std::fs::read_to_string(&list)
        .unwrap()
        .lines()
        .for_each(|l| *times.entry(l.to_owned()).or_default() += 1);
    // The first time each place is passed, and the second: a chain of lives has fewer rounds left
    // each time.
    let points: Vec<String> = (1..=2)
        .flat_map(|n| {
            times
                .iter()
                .filter(move |(_, all)| **all >= n)
                .map(move |(place, _)| format!("{place}#{n}"))
        })
        .collect();
    let chains = points.len().div_ceil(CHAIN);
    let chain = |n: usize| points.iter().skip(n).step_by(chains).cloned().collect::<Vec<_>>();
    let worlds: Vec<tempfile::TempDir> =
        (0..chains).map(|_| tempfile::tempdir().unwrap()).collect();
    let running: Vec<_> = worlds
        .iter()
        .enumerate()
        .map(|(n, ports)| {
            let (dir, places) = (ports.path().to_path_buf(), chain(n));
            tokio::task::spawn_blocking(move || conversation(dir, places))
        })
        .collect();
    let mut struck = Vec::new();
    for one in running {
        struck.extend(one.await.unwrap());
    }
    let mut unknowns = 0;
    for ports in &worlds {
        let came = look(ports.path()).await;
        let lost = unknown(&came);
        unknowns += lost.len();
        let log = std::fs::read_to_string(ports.path().join("project/log")).unwrap_or_default();
        for n in 1..ROUNDS {
            let ran = log.lines().filter(|line| *line == n.to_string()).count();
            let unsure = lost.iter().any(|call| call.step.0 == n);
            assert!(ran == 1 || (unsure && ran == 0), "round {n} ran {ran} times\n{log}");
        }
        let answers = came.facts.iter().filter(|(_, e)| matches!(e, Event::Answered(_))).count();
        assert_eq!(answers, ROUNDS as usize, "each round is answered once");
        let done = came
            .facts
            .iter()
            .filter(|(_, e)| matches!(e, Event::Finished(f) if f.outcome == Outcome::Done));
        assert!(done.count() >= 12);
    }
    struck.sort();
    println!(
        "carried, {ROUNDS} rounds: {} conversations, {} kills, {unknowns} unknown outcomes",
        worlds.len(),
        struck.len()
    );
    println!("{}", struck.join(" "));
    assert!(struck.len() >= 40, "{} kills", struck.len());
}
