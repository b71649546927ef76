//! Folders with more data than a checkpoint copies at once.

use crate::keep::World;
use dunnock_ports::{Checkpoints as _, RestorePlan, SaveControl};
use dunnock_proto::{Delta, SessionId};
use dunnock_testkit::timing;
use dunnock_tools::{Bounds, CheckpointStore};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn session() -> SessionId {
    SessionId::from_random([1; 16])
}

/// A file that takes no room on the disk.
fn sparse(path: &Path, size: u64) {
    std::fs::File::create(path).unwrap().set_len(size).unwrap();
}

async fn note(checkpoints: &CheckpointStore, root: &Path) -> String {
    note_for(&session(), checkpoints, root).await
}

async fn note_for(session: &SessionId, checkpoints: &CheckpointStore, root: &Path) -> String {
    let name = root.to_string_lossy().into_owned();
    let kept = checkpoints.keep(session, &name, 1, SaveControl::silent()).await;
    assert!(kept.tree.is_some(), "{:?}", kept.note);
    kept.note.unwrap_or_default()
}

/// UX-A3: the first command waited 41 seconds while a gigabyte was copied.
#[tokio::test]
async fn a_gigabyte_of_data_is_not_copied_and_the_rest_is_saved() {
    let world = World::new();
    let root = world.root();
    for n in 0..25 {
        sparse(&root.join(format!("data{n:02}.bin")), 40 << 20);
    }
    std::fs::write(root.join("main.py"), "one").unwrap();
    let began = Instant::now();
    let said = note(&world.checkpoints, &root).await;
    timing::figure("the first checkpoint beside 1 GB", began.elapsed(), Duration::from_secs(1));
    assert!(said.contains("data00.bin (40 MB)") && said.contains("and 20 more"), "{said}");
    assert!(said.contains("A checkpoint copies at most 200 MB of new files"), "{said}");
    assert!(world.checkpoints.size() < 1 << 20, "{}", world.checkpoints.size());
    let then = world.keep().await;
    std::fs::write(root.join("main.py"), "two").unwrap();
    let data = std::fs::File::options().write(true).open(root.join("data03.bin")).unwrap();
    data.write_all_at(b"changed", 9).unwrap();
    let said = note(&world.checkpoints, &root).await;
    assert!(said.contains("data03.bin was changed and cannot be restored"), "{said}");
    assert!(world.checkpoints.size() < 1 << 20, "it still is not copied");
    let now = world.keep().await;
    let back = world.back(&then, &now, &[(then.clone(), now.clone())], &[], false).await;
    assert_eq!(std::fs::read(root.join("main.py")).unwrap(), b"one", "{back:?}");
}

#[tokio::test]
async fn the_largest_files_are_left_out_until_the_limit_is_raised() {
    let world = World::new();
    let root = world.root();
    let store = |copy: u64| {
        let bounds = Bounds { copy: copy << 20, ..Bounds::default() };
        CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), bounds)
    };
    for (name, size) in [("a", 2), ("b", 2), ("c", 3), ("d", 6), ("e", 60)] {
        sparse(&root.join(name), size << 20);
    }
    for n in 0..4 {
        sparse(&root.join(format!("small{n}")), 1 << 20);
    }
    let said = note(&store(8), &root).await;
    assert!(said.contains("undone: c (3 MB), d (6 MB), e (60 MB)."), "{said}");
    // What was left out stays out, also if it changed; new files are judged on their own.
    sparse(&root.join("c"), 4 << 20);
    sparse(&root.join("f"), 5 << 20);
    let said = note(&store(8), &root).await;
    assert!(said.contains("c (4 MB), d (6 MB), e (60 MB)") && !said.contains("f ("), "{said}");
    let said = note(&store(20), &root).await;
    assert!(said.contains("(6 MB)"), "in the middle of a session nothing changes: {said}");
    let said = note_for(&SessionId::from_random([2; 16]), &store(20), &root).await;
    assert!(said.contains("undone: e (60 MB)") && !said.contains("(6 MB)"), "{said}");
}

/// Files that were saved bit by bit stay saved, also in a new process, without its index, and after
/// an undo that brings all of them back at once.
#[tokio::test]
async fn files_that_were_saved_stay_saved() {
    let world = World::new();
    let root = world.root();
    let store = || {
        let bounds = Bounds { copy: 8 << 20, ..Bounds::default() };
        CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), bounds)
    };
    let name = root.to_string_lossy().into_owned();
    let keep = async |checkpoints: &CheckpointStore| {
        let kept = checkpoints.keep(&session(), &name, 1, SaveControl::silent()).await;
        assert_eq!(kept.note, None);
        kept.tree.unwrap()
    };
    let mut last = keep(&store()).await;
    for n in 0..3 {
        for m in 0..3 {
            sparse(&root.join(format!("f{n}{m}")), 2 << 20);
        }
        last = keep(&store()).await;
    }
    let index = || {
        let folder = std::fs::read_dir(world.dir.path().join("kept")).unwrap().next().unwrap();
        folder.unwrap().path().join("index")
    };
    std::fs::remove_file(index()).unwrap();
    assert_eq!(keep(&store()).await, last, "without the index");
    for n in 0..3 {
        for m in 0..3 {
            std::fs::remove_file(root.join(format!("f{n}{m}"))).unwrap();
        }
    }
    let now = keep(&store()).await;
    let back = store()
        .restore(RestorePlan {
            session: &session(),
            workspace: &name,
            to: &last,
            from: &now,
            ours: &[(last.clone(), now.clone())],
            theirs: &[],
            force: false,
            undone_after: None,
        })
        .await
        .unwrap();
    assert_eq!((&back.tree, back.partial), (&last, false), "{:?}", back.note);
    assert_eq!(keep(&store()).await, last, "after an undo");
}

/// UX-A3: after Esc, the copy went on for more than ten seconds.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_copy_says_how_far_it_is_and_can_be_stopped() {
    let world = World::new();
    let root = world.root();
    let mut noise = blake3::Hasher::new().finalize_xof();
    let mut bytes = vec![0; 1 << 20];
    for n in 0..5 {
        sparse(&root.join(format!("data{n}")), 40 << 20);
    }
    for n in 0..100 {
        noise.fill(&mut bytes);
        std::fs::write(root.join(format!("noise{n}")), &bytes).unwrap();
    }
    let said = Arc::new(Mutex::new(Vec::new()));
    let (heard, stopped) = (said.clone(), Arc::new(Mutex::new(None)));
    let when = stopped.clone();
    let mut saving = SaveControl::silent();
    let halt = saving.halt.clone();
    saving.say = Arc::new(move |delta| {
        let Delta::Notice { text } = delta else { panic!("{delta:?}") };
        heard.lock().unwrap().push(text.to_string());
        when.lock().unwrap().get_or_insert_with(Instant::now);
        halt.cancel();
    });
    let name = root.to_string_lossy().into_owned();
    let kept = world.checkpoints.keep(&session(), &name, 1, saving).await;
    let took = stopped.lock().unwrap().unwrap().elapsed();
    timing::figure("the end of a copy that is stopped", took, Duration::from_secs(1));
    let said = said.lock().unwrap().clone();
    assert_eq!(said, ["saving your files for undo: 1 of 100 MB"]);
    assert_eq!((kept.tree, kept.mark), (None, 1));
    assert!(kept.note.unwrap().contains("the next prompt starts it again"));
    assert!(world.checkpoints.size() < 1 << 20, "{}", world.checkpoints.size());
    let before = world.keep().await;
    std::fs::remove_file(root.join("noise7")).unwrap();
    let now = world.keep().await;
    world.back(&before, &now, &[(before.clone(), now.clone())], &[], false).await;
    assert_eq!(std::fs::metadata(root.join("noise7")).unwrap().len(), 1 << 20);
}
