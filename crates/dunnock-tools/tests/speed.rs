//! What it costs to start a command, and to keep the files of a large folder.

use crate::{job, toolbox};
use dunnock_ports::{CancellationToken, Checkpoints as _, DeltaSink, SaveControl, Tools as _};
use dunnock_proto::SessionId;
use dunnock_testkit::timing;
use dunnock_tools::{Bounds, CheckpointStore};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A quarter of them was quicker: what it costs when nothing else is going on.
fn quiet_quarter(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all[all.len() / 4]
}

/// A child made by `posix_spawn` (by the standard library: a path, and nothing to do before it
/// starts), with pipes, waited for.
fn bare() -> Duration {
    let began = Instant::now();
    let output = std::process::Command::new("/bin/sh").args(["-c", ":"]).output().unwrap();
    assert!(output.status.success());
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn starting_a_command_costs_what_posix_spawn_does_however_large_we_are() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox();
    let quiet: DeltaSink = Arc::new(|_| {});
    let ours = async || {
        let job = job(dir.path(), "shell", r#"{"command":["/bin/sh","-c",":"]}"#);
        let began = Instant::now();
        let (finished, _) = toolbox.run(job, quiet.clone(), CancellationToken::default()).await;
        assert_eq!(finished.exit, Some(0));
        began.elapsed()
    };
    ours().await;
    let mut ballast: Vec<u8> = Vec::new();
    let mut sizes = Vec::new();
    for megabytes in [16, 512] {
        ballast.resize(megabytes << 20, 1);
        std::hint::black_box(&mut ballast);
        let (mut spawn, mut launch) = (Vec::new(), Vec::new());
        // In turns, so that both meet the same machine.
        for _ in 0..timing::rounds(20, 200) {
            spawn.push(tokio::task::block_in_place(bare));
            launch.push(ours().await);
        }
        let (spawn, launch) = (quiet_quarter(spawn), quiet_quarter(launch));
        let ratio = launch.as_secs_f64() / spawn.as_secs_f64();
        println!("{megabytes} MB: posix_spawn {spawn:?}, a command {launch:?}");
        timing::wall_ratio(&format!("a command to posix_spawn, at {megabytes} MB"), ratio, 2.0);
        sizes.push(launch.as_secs_f64());
    }
    timing::wall_ratio(
        "a command when we are large, to when we are small",
        sizes[1] / sizes[0],
        1.3,
    );
}

/// Folders of a hundred files of words each.
fn large(root: &Path, folders: usize) {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let words: Vec<String> = (0..3_000)
        .map(|_| (0..2 + random() % 9).map(|_| char::from(b'a' + (random() % 26) as u8)).collect())
        .collect();
    for folder in 0..folders {
        let dir = root.join(format!("d{}/s{folder}", folder / 25));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..100 {
            let long = 100 + random() % 800;
            let text: Vec<&str> =
                (0..long).map(|_| words[(random() % 3_000) as usize].as_str()).collect();
            std::fs::write(dir.join(format!("f{file}.txt")), text.join(" ")).unwrap();
        }
    }
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(
            |e| {
                if e.path().is_dir() { bytes_below(&e.path()) } else { e.metadata().unwrap().len() }
            },
        )
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn keeping_many_files_costs_what_it_costs_git() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    // Fifty thousand files where figures are held.
    large(&root, timing::rounds(100, 500));
    let checkpoints = CheckpointStore::new(dir.path().join("kept"), Vec::new(), Bounds::default());
    let (name, session) = (root.to_string_lossy().into_owned(), SessionId::from_random([1; 16]));
    let keep = async || {
        let began = Instant::now();
        assert!(checkpoints.keep(&session, &name, 1, SaveControl::silent()).await.tree.is_some());
        began.elapsed()
    };
    let store = dir.path().join("git");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(args)
            .env("GIT_DIR", &store)
            .env("GIT_WORK_TREE", &root)
            .env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(
            git.env("HOME", dir.path()).current_dir(&root).output().unwrap().status.success(),
            "{args:?}"
        );
    };
    let git_keeps = || {
        let began = Instant::now();
        git(&["add", "-A"]);
        git(&["write-tree"]);
        began.elapsed()
    };
    assert!(
        Command::new("git").args(["init", "-q", "--bare"]).arg(&store).status().unwrap().success()
    );
    let (cold, git_cold) = (keep().await, tokio::task::block_in_place(git_keeps));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for n in 0..9 {
        std::fs::write(root.join("d3/s80/f5.txt"), format!("changed {n}")).unwrap();
        ours.push(keep().await);
        theirs.push(tokio::task::block_in_place(git_keeps));
    }
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    ours.sort();
    theirs.sort();
    let (warm, git_warm) = (ours[4], theirs[4]);
    let (size, git_size) = (checkpoints.size(), bytes_below(&store.join("objects")));
    // Several looks: one alone, beside the middle of nine, says how busy the machine was just then.
    let (mut first, mut beside) = (Vec::new(), Vec::new());
    for n in 9..14 {
        std::fs::write(root.join("d3/s80/f5.txt"), format!("changed {n}")).unwrap();
        let fresh = CheckpointStore::new(dir.path().join("kept"), Vec::new(), Bounds::default());
        let began = Instant::now();
        assert!(fresh.keep(&session, &name, 1, SaveControl::silent()).await.tree.is_some());
        first.push(began.elapsed());
        beside.push(tokio::task::block_in_place(git_keeps));
    }
    first.sort();
    beside.sort();
    let opened = ratio(first[2], beside[2]);
    let disk = size as f64 / git_size as f64;
    println!(
        "cold {cold:?}, git {git_cold:?}; one changed {warm:?}, git {git_warm:?}; first look {:?}",
        first[2]
    );
    timing::cost_ratio("bytes kept, to git's", disk, 1.2);
    timing::wall_ratio("keeping files the first time, to git", ratio(cold, git_cold), 1.5);
    timing::wall_ratio("keeping one changed file, to git", ratio(warm, git_warm), 1.5);
    timing::wall_ratio("the first look of a new process, to git", opened, 2.0);
}
