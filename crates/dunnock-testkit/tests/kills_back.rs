//! A rewind killed at every named place: it completes with whoever comes next, or nothing had
//! happened.

use crate::kills_cli::{program, run};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every name with its kind, mode and content.
fn listing(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let mode = meta.mode();
            let text = if meta.is_dir() {
                open.push(path.clone());
                String::new()
            } else if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().to_string_lossy().into_owned()
            } else {
                std::fs::read_to_string(&path).unwrap()
            };
            all.insert(path.strip_prefix(root).unwrap().to_path_buf(), format!("{mode:o} {text}"));
        }
    }
    all
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_killed_anywhere_completes_or_had_not_begun() {
    let overturn = "rm -r gone swap; echo file > swap; rm link; mkdir link; echo new > link/new; \
                    echo 2 > a; chmod 600 b; mkdir -p fresh/deep; echo x > fresh/deep/x; ln -s a \
                    fresh/l; mv Case case; for i in 1 2 3 4 5; do echo $i > many/$i; done";
    let args = serde_json::json!({ "command": overturn }).to_string();
    let server = ScriptedServer::start(vec![
        Say::calls(&[("shell", &args)]).into(),
        Say::text("done").into(),
    ])
    .await;
    let url = server.base_url();
    let outer = tempfile::tempdir().unwrap();
    let (dir, saved) = (outer.path().join("world"), outer.path().join("saved"));
    let project = dir.join("project");
    let start = "mkdir -p gone/in/deep many swap; echo 1 > gone/in/deep/f; echo 1 > gone/g; echo \
                 in > swap/in; ln -s gone link; echo 1 > a; echo 1 > b; echo c > Case; mkdir \
                 hollow; for i in 1 2 3 4 5; do echo 0 > many/$i; done";
    std::fs::create_dir_all(&project).unwrap();
    assert!(
        Command::new("sh").args(["-c", start]).current_dir(&project).status().unwrap().success()
    );
    let before = listing(&project);
    let ran = run(program(&dir, &url, &["run", "--approve", "all", "go"])).await;
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let after = listing(&project);
    assert_ne!(before, after);
    copy(&dir, &saved);
    let list = outer.path().join("places");
    let mut first = program(&dir, &url, &["undo"]);
    first.env("DUNNOCK_FAIL_LIST", &list);
    assert_eq!(run(first).await.status.code(), Some(0));
    assert_eq!(listing(&project), before);
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    std::fs::read_to_string(&list)
        .unwrap()
        .lines()
        .for_each(|l| *times.entry(l.to_owned()).or_default() += 1);
    let (mut kills, mut struck, mut finished) = (0, 0, 0);
    for (place, n) in &times {
        let mut which = vec![1, n.div_ceil(2), *n];
        which.dedup();
        for n in which {
            copy(&saved, &dir);
            let mut dying = program(&dir, &url, &["undo"]);
            dying.env("DUNNOCK_FAIL_AT", format!("{place}#{n}"));
            kills += 1;
            struck += usize::from(run(dying).await.status.code().is_none());
            // Whoever comes next ends what was begun; a session at rest is only shown.
            let next = run(program(&dir, &url, &["resume"])).await;
            let came = listing(&project);
            if came != before {
                assert_eq!(came, after, "{place}#{n}: neither here nor there: {next:?}");
                let again = run(program(&dir, &url, &["undo"])).await;
                assert_eq!(again.status.code(), Some(0), "{place}#{n}: {again:?}");
                assert_eq!(listing(&project), before, "{place}#{n}");
            } else {
                finished += 1;
            }
            let back = run(program(&dir, &url, &["undo"])).await;
            assert_eq!(back.status.code(), Some(0), "{place}#{n}: {back:?}");
            assert_eq!(listing(&project), after, "{place}#{n}: and back again");
        }
    }
    let own: Vec<&String> =
        times.keys().filter(|p| p.starts_with("restore.") || p.starts_with("keep.")).collect();
    println!(
        "a rewind: {} places, {kills} kills, {struck} struck, {finished} completed by the next: \
         {own:?}",
        times.len()
    );
    assert!(own.len() >= 8 && struck >= 40, "{struck} {times:?}");
}
