//! What it costs to start a command.

use crate::{hands, job};
use dunnock_core::ports::{Halt, Live, Tools as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;

/// A quarter of them was quicker: what it costs when nothing else is going on.
fn quiet_quarter(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all[all.len() / 4]
}

/// A child made by `posix_spawn` (by the standard library: a path, and nothing to do before it starts), with pipes, waited for.
fn bare() -> Duration {
    let began = Instant::now();
    let output = std::process::Command::new("/bin/sh").args(["-c", ":"]).output().unwrap();
    assert!(output.status.success());
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn starting_a_command_costs_what_posix_spawn_does_however_large_we_are() {
    let dir = tempfile::tempdir().unwrap();
    let hands = hands();
    let quiet: Live = Arc::new(|_| {});
    let ours = async || {
        let job = job(dir.path(), "shell", r#"{"command":["/bin/sh","-c",":"]}"#);
        let began = Instant::now();
        let (finished, _) = hands.run(job, quiet.clone(), Halt::default()).await;
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
        for _ in 0..ROUNDS {
            spawn.push(tokio::task::block_in_place(bare));
            launch.push(ours().await);
        }
        let (spawn, launch) = (quiet_quarter(spawn), quiet_quarter(launch));
        let ratio = launch.as_secs_f64() / spawn.as_secs_f64();
        println!("{megabytes} MB: posix_spawn {spawn:?}, a command {launch:?}, {ratio:.2} times");
        assert!(ratio < 2.0, "{ratio}");
        sizes.push(launch.as_secs_f64());
    }
    let grown = sizes[1] / sizes[0];
    assert!(grown < 1.3, "a command costs {grown:.2} times as much when we are large");
}
