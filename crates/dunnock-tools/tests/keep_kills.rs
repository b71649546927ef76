//! The store killed at every named place: what a session was told is kept can be brought back.

use crate::put;
use dunnock_ports::{Checkpoints as _, RestorePlan, SaveControl};
use dunnock_proto::{Hash, SessionId, Tree};
use dunnock_tools::{Bounds, CheckpointStore};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const STEPS: u32 = 60;
fn bounds() -> Bounds {
    Bounds { bytes: 200_000, age: Duration::from_secs(86_400), ..Bounds::default() }
}

fn checkpoints(dir: &Path) -> CheckpointStore {
    CheckpointStore::new(dir.join("kept"), Vec::new(), bounds())
}

/// What the files hold after a step: hard to compress, and known again.
fn noise(step: u32) -> String {
    (0..200).map(|n| Hash::of(format!("{step} {n}").as_bytes()).to_string()).collect()
}

fn write(root: &Path, step: u32) {
    put(root, &[(&format!("d{}/f", step % 3), &noise(step)), ("last", &step.to_string())]);
}

/// The process that is killed. Without being told where, it does nothing.
#[tokio::test]
async fn keep_child() {
    let Some(dir) = std::env::var_os("KEEP_CHILD") else { return };
    dunnock_testkit::failpoints::arm();
    let (dir, session) = (Path::new(&dir), SessionId::from_random([1; 16]));
    let (root, checkpoints) = (dir.join("w"), checkpoints(dir));
    for step in 0..STEPS {
        write(&root, step);
        let kept =
            checkpoints.keep(&session, &root.to_string_lossy(), 1, SaveControl::silent()).await;
        println!("kept {step} {}", kept.tree.unwrap().0);
    }
}

/// What the child says was kept.
fn child(dir: &Path, env: &[(&str, &str)]) -> Vec<(u32, Tree)> {
    std::fs::create_dir_all(dir.join("w")).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["keep_kills::keep_child", "--exact", "--nocapture"]).env("KEEP_CHILD", dir);
    let output = command.envs(env.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|l| l.split_once("kept ")?.1.split_once(' '));
    lines.map(|(step, tree)| (step.parse().unwrap(), Tree(tree.into()))).collect()
}

/// How many of the newest states can be brought back, each with exactly what it held.
async fn restorable(what: &str, dir: &Path, kept: &[(u32, Tree)]) -> usize {
    // Large enough that looking collects nothing.
    let checkpoints = CheckpointStore::new(dir.join("kept"), Vec::new(), Bounds::default());
    let root = dir.join("w");
    let name = root.to_string_lossy().into_owned();
    let session = SessionId::from_random([2; 16]);
    let mut good = 0;
    for (step, tree) in kept.iter().rev() {
        let now = checkpoints.keep(&session, &name, 1, SaveControl::silent()).await.tree.unwrap();
        let ours = [(tree.clone(), now.clone())];
        let back = RestorePlan {
            session: &session,
            workspace: &name,
            to: tree,
            from: &now,
            ours: &ours,
            theirs: &[],
            force: true,
            undone_after: None,
        };
        let Ok(restored) = checkpoints.restore(back).await else { break };
        assert_eq!((&restored.tree, restored.note), (tree, None), "{what}: step {step}");
        assert_eq!(std::fs::read_to_string(root.join("last")).unwrap(), step.to_string(), "{what}");
        for older in step.saturating_sub(2)..=*step {
            let text = std::fs::read_to_string(root.join(format!("d{}/f", older % 3))).unwrap();
            assert!(text == noise(older), "{what}: step {step}, file of step {older}");
        }
        good += 1;
    }
    good
}

#[tokio::test]
async fn keeping_and_collecting_killed_anywhere_loses_nothing_that_is_referred_to() {
    let whole = tempfile::tempdir().unwrap();
    let list = whole.path().join("places");
    let kept = child(whole.path(), &[("DUNNOCK_FAIL_LIST", list.to_str().unwrap())]);
    assert_eq!(kept.len(), STEPS as usize);
    assert!(
        restorable("whole", whole.path(), &kept).await < STEPS as usize,
        "nothing was collected"
    );
    // What a collection that was not disturbed leaves.
    let collected = tempfile::tempdir().unwrap();
    let kept = child(collected.path(), &[("DUNNOCK_FAIL_AT", "collect.done#1")]);
    let least = restorable("collected", collected.path(), &kept).await - 2; // it depends a little on when it happens
    assert!(least >= 8, "{least} of {}", kept.len());
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    std::fs::read_to_string(&list)
        .unwrap()
        .lines()
        .for_each(|l| *times.entry(l.to_owned()).or_default() += 1);
    let mut kills = 0;
    for (place, n) in &times {
        let mut which: Vec<u32> = (1..=8).map(|part| (n * part / 8).max(1)).collect();
        which.dedup();
        for n in which {
            let dir = tempfile::tempdir().unwrap();
            let what = format!("{place}#{n}");
            let kept = child(dir.path(), &[("DUNNOCK_FAIL_AT", &what)]);
            // How often a place is passed differs a little from run to run.
            kills += usize::from(kept.len() < STEPS as usize);
            let good = restorable(&what, dir.path(), &kept).await;
            assert!(
                good >= least.min(kept.len()),
                "{what}: {good} of {} can be brought back",
                kept.len()
            );
            // And it goes on.
            let root = dir.path().join("w");
            write(&root, 99);
            let went_on = checkpoints(dir.path())
                .keep(
                    &SessionId::from_random([1; 16]),
                    &root.to_string_lossy(),
                    1,
                    SaveControl::silent(),
                )
                .await;
            assert!(went_on.tree.is_some(), "{what}: {:?}", went_on.note);
        }
    }
    println!(
        "kept and collected: {} places, {kills} kills, at least {least} states left: {:?}",
        times.len(),
        times.keys()
    );
    assert!(times.len() >= 7 && kills >= 25, "{times:?}");
}
