//! Keeping files and bringing them back: every kind, whoever changed what, and never the person's
//! own git state.

use crate::put;
use dunnock_core::Window;
use dunnock_ports::{Checkpoints as _, Files as _, RestorePlan, Restored, SaveControl};
use dunnock_proto::{SessionId, Tree};
use dunnock_tools::{Bounds, CheckpointStore};
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder to work in, and one to keep its files in.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) checkpoints: CheckpointStore,
}

fn session(n: u8) -> SessionId {
    SessionId::from_random([n; 16])
}

impl World {
    pub(crate) fn new() -> Self {
        Self::bounded(Bounds::default())
    }

    fn bounded(bounds: Bounds) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let checkpoints = CheckpointStore::new(dir.path().join("kept"), Vec::new(), bounds);
        Self { dir, checkpoints }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    fn name(&self) -> String {
        self.root().to_string_lossy().into_owned()
    }

    fn store(&self) -> PathBuf {
        std::fs::read_dir(self.dir.path().join("kept")).unwrap().next().unwrap().unwrap().path()
    }

    pub(crate) async fn keep(&self) -> Tree {
        self.keep_for(1).await.0
    }

    async fn keep_for(&self, n: u8) -> (Tree, Option<String>) {
        let kept = self.checkpoints.keep(&session(n), &self.name(), 1, SaveControl::silent()).await;
        assert!(kept.tree.is_some(), "{:?}", kept.note);
        (kept.tree.unwrap(), kept.note)
    }

    pub(crate) async fn back(
        &self,
        to: &Tree,
        from: &Tree,
        ours: &[Window],
        theirs: &[Window],
        force: bool,
    ) -> Restored {
        let back = RestorePlan {
            session: &session(1),
            workspace: &self.name(),
            to,
            from,
            ours,
            theirs,
            force,
            undone_after: None,
        };
        self.checkpoints.restore(back).await.unwrap()
    }
}

/// Everything there is to know of what lies in a folder: kind, mode, content.
pub(crate) fn listing(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let what = if meta.is_dir() {
                open.push(path.clone());
                format!("folder {:o}", meta.mode() & 0o7777)
            } else if meta.is_symlink() {
                format!("link {:?}", std::fs::read_link(&path).unwrap())
            } else if meta.is_file() {
                format!(
                    "file {:o} {:?}",
                    meta.mode() & 0o7777,
                    blake(&std::fs::read(&path).unwrap())
                )
            } else {
                format!("other {:?}", meta.file_type().is_fifo())
            };
            all.insert(path.strip_prefix(root).unwrap().to_path_buf(), what);
        }
    }
    all
}

fn blake(bytes: &[u8]) -> String {
    dunnock_proto::Hash::of(bytes).to_string()
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A thousand files and one of each strange kind.
fn fill(root: &Path) {
    for n in 0..1_000 {
        put(root, &[(&format!("d{}/f{n}", n % 20), &format!("file {n}\n"))]);
    }
    std::fs::write(root.join("d0/bytes"), [0, 159, 146, 150, 255, b'\r', b'\n']).unwrap();
    std::fs::write(root.join("d0/empty"), "").unwrap();
    std::fs::write(root.join("d0/large"), vec![b'x'; 9 << 20]).unwrap();
    std::fs::create_dir_all(root.join("hollow/inner")).unwrap();
    mode(&root.join("hollow/inner"), 0o1711);
    symlink("../d1/f1", root.join("d2/link")).unwrap();
    symlink("/nowhere", root.join("dangling")).unwrap();
    symlink("d3", root.join("to-folder")).unwrap();
    put(
        root,
        &[
            ("Readme", "case\n"),
            ("swap-a", "a file\n"),
            ("swap-b/in", "in a folder\n"),
            ("run.sh", "#!/bin/sh\n"),
        ],
    );
    mode(&root.join("run.sh"), 0o755);
    mode(&root.join("d0/f0"), 0o600);
    put(root, &[("name with \n newline", "odd"), ("emoji-🐦", "odd")]);
    std::fs::write(root.join(std::ffi::OsStr::new("tab\there")), "odd").unwrap();
}

/// Changes every one of them.
fn overturn(root: &Path) {
    for n in 0..1_000 {
        let path = root.join(format!("d{}/f{n}", n % 20));
        match n % 4 {
            0 => std::fs::remove_file(path).unwrap(),
            1 => std::fs::write(path, "other\n").unwrap(),
            2 => mode(&path, 0o444),
            _ => {
                std::fs::remove_file(&path).unwrap();
                symlink("elsewhere", path).unwrap();
            }
        }
    }
    std::fs::remove_dir_all(root.join("hollow")).unwrap();
    std::fs::remove_file(root.join("d2/link")).unwrap();
    put(root, &[("d2/link/now-a-folder", "x"), ("new/deep/er", "new"), ("d0/large", "small now")]);
    std::fs::rename(root.join("Readme"), root.join("README")).unwrap();
    std::fs::remove_file(root.join("swap-a")).unwrap();
    put(root, &[("swap-a/in", "now a folder")]);
    std::fs::remove_dir_all(root.join("swap-b")).unwrap();
    put(root, &[("swap-b", "now a file")]);
    std::fs::remove_file(root.join("to-folder")).unwrap();
    std::fs::create_dir(root.join("to-folder")).unwrap();
    mode(&root.join("d5"), 0o500);
    mode(&root.join("run.sh"), 0o644);
    std::fs::remove_file(root.join("name with \n newline")).unwrap();
}

#[tokio::test]
async fn a_thousand_changed_files_come_back_exactly_and_go_again() {
    let world = World::new();
    let root = world.root();
    fill(&root);
    let (before, then) = (listing(&root), world.keep().await);
    overturn(&root);
    let (changed, now) = (listing(&root), world.keep().await);
    assert_ne!(before, changed);
    let began = Instant::now();
    let ours = [(then.clone(), now.clone())];
    let restored = world.back(&then, &now, &ours, &[], false).await;
    let took = began.elapsed();
    println!("{} names brought back in {took:?}", before.len());
    assert_eq!(listing(&root), before);
    assert_eq!((restored.tree, restored.note), (then.clone(), None));
    dunnock_testkit::timing::figure(
        "a thousand changed files brought back",
        took,
        Duration::from_secs(3),
    );
    let again = world.back(&now, &then, &[(now.clone(), then.clone())], &[], false).await;
    assert_eq!(
        (listing(&root), again.tree),
        (changed, now),
        "a rewind undone gives the files before it"
    );
}

/// Holds A7: ignored build files: said when they are deleted.
#[tokio::test]
async fn what_a_command_deletes_comes_back_ignored_secrets_too() {
    let world = World::new();
    let root = world.root();
    put(
        &root,
        &[(".gitignore", ".env\nnode_modules\n*.log\n"), (".env", "KEY=1\n"), ("debug.log", "x")],
    );
    put(&root, &[("node_modules/a/index.js", "made again"), ("src/node_modules.rs", "x")]);
    for n in 0..500 {
        put(&root, &[(&format!("many/{n}.txt"), &"x".repeat(n))]);
    }
    mode(&root.join(".env"), 0o600);
    let (before, then) = (listing(&root), world.keep().await);
    let status = Command::new("sh")
        .args(["-c", "rm -rf many .env debug.log node_modules"])
        .current_dir(&root)
        .status();
    assert!(status.unwrap().success());
    let (now, note) = world.keep_for(1).await;
    assert_eq!(
        note.as_deref(),
        Some("node_modules was deleted and cannot be restored (ignored build files)"),
        "what cannot be taken back is said when it happens"
    );
    let restored = world.back(&then, &now, &[(then.clone(), now.clone())], &[], false).await;
    let mut after = listing(&root);
    let gone: Vec<_> = before.keys().filter(|k| k.starts_with("node_modules")).cloned().collect();
    gone.iter().for_each(|path| drop(after.insert(path.clone(), before[path].clone())));
    assert_eq!(after, before);
    assert_eq!(
        restored.note.as_deref(),
        Some("cannot be restored, since they were not saved: node_modules")
    );
    let private = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    for store in std::fs::read_dir(world.dir.path().join("kept")).unwrap() {
        let store = store.unwrap().path();
        assert_eq!((private(&store), private(&store.join("objects"))), (0o700, 0o600));
    }
}

#[tokio::test]
async fn what_others_changed_is_left_alone_unless_forced() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("ours", "1"), ("theirs", "1"), ("both", "1"), ("late", "1"), ("dir/ours", "1")]);
    let start = world.keep().await;
    put(&root, &[("ours", "2"), ("both", "2"), ("late", "2"), ("new/ours", "2")]);
    std::fs::remove_dir_all(root.join("dir")).unwrap();
    let ours = world.keep().await;
    put(&root, &[("theirs", "person"), ("both", "person"), ("new/theirs", "person")]);
    let now = world.keep().await;
    put(&root, &[("late", "while we went back")]);
    let windows = ([(start.clone(), ours.clone())], [(ours.clone(), now.clone())]);
    let restored = world.back(&start, &now, &windows.0, &windows.1, false).await;
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    let all = || ["ours", "theirs", "both", "late", "dir/ours", "new/ours", "new/theirs"].map(text);
    assert_eq!(all(), ["1", "person", "person", "while we went back", "1", "", "person"]);
    assert_eq!(
        restored.note.as_deref(),
        Some("not restored, since others changed them: both, new/theirs, theirs, late")
    );
    let now = world.keep().await;
    world.back(&start, &now, &windows.0, &windows.1, true).await;
    assert_eq!(all(), ["1", "1", "1", "1", "1", "", ""], "--force takes everything back");
}

/// Holds A7: too deep, too large, git's own state.
#[tokio::test]
async fn strange_things_do_no_harm_and_are_said() {
    let world = World::new();
    let root = world.root();
    put(
        &root,
        &[
            ("a", "1"),
            ("closed", "secret"),
            ("nested/.git/HEAD", "ref: x"),
            ("nested/file", "1"),
            ("sub/.git", "gitdir: x"),
        ],
    );
    put(&root, &[("sub/file", "1")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join(".gitignore"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let sparse = std::fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    let small = std::fs::File::create(root.join("holes")).unwrap();
    small.set_len(20 << 20).unwrap();
    std::fs::create_dir(root.join("shut")).unwrap();
    let mut deep = root.clone();
    (0..230).for_each(|_| deep.push("d"));
    std::fs::create_dir_all(&deep).unwrap();
    let began = Instant::now();
    let (then, note) = world.keep_for(1).await;
    dunnock_testkit::timing::figure("odd files kept", began.elapsed(), Duration::from_secs(10));
    let note = note.unwrap();
    assert!(note.contains("sparse (10240 MB)") && note.contains("(too deep)"), "{note}");
    assert!(world.checkpoints.size() < 1 << 20, "holes take no room: {}", world.checkpoints.size());
    put(
        &root,
        &[("a", "2"), ("nested/file", "2"), ("nested/.git/HEAD", "ref: y"), ("sub/file", "2")],
    );
    sparse.set_len(11 << 30).unwrap();
    let (now, note) = world.keep_for(1).await;
    assert_eq!(note.as_deref(), Some("sparse was changed and cannot be restored (too large)"));
    let restored = world.back(&then, &now, &[(then.clone(), now.clone())], &[], false).await;
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    assert_eq!(
        ["a", "nested/file", "sub/file"].map(text),
        ["1", "1", "1"],
        "nested repositories' files are kept"
    );
    assert_eq!(text("nested/.git/HEAD"), "ref: y", "their git state is their own");
    assert!(root.join("pipe").metadata().unwrap().file_type().is_fifo());
    assert_eq!(sparse.metadata().unwrap().len(), 11 << 30);
    assert!(
        restored.note.unwrap().contains("cannot be restored, since they were not saved: sparse")
    );
    std::fs::remove_dir_all(root.join("nested/.git")).unwrap();
    let (_, note) = world.keep_for(1).await;
    assert_eq!(
        note.as_deref(),
        Some("nested/.git was deleted and cannot be restored (git's own state)")
    );
}

#[tokio::test]
async fn what_may_not_be_read_is_said_and_left_alone() {
    if !rustix::process::geteuid().is_root() {
        let world = World::new();
        let root = world.root();
        put(&root, &[("a", "1"), ("closed", "secret"), ("shut/in", "secret"), ("fixed/a", "1")]);
        mode(&root.join("closed"), 0);
        mode(&root.join("shut"), 0);
        mode(&root.join("fixed"), 0o555);
        let (then, note) = world.keep_for(1).await;
        let note = note.unwrap();
        assert!(
            note.contains("closed (not readable)") && note.contains("shut (not readable)"),
            "{note}"
        );
        mode(&root.join("fixed"), 0o755);
        put(&root, &[("a", "2"), ("fixed/a", "2"), ("fixed/b", "2")]);
        mode(&root.join("fixed"), 0o555);
        let now = world.keep().await;
        let restored = world.back(&then, &now, &[(then.clone(), now.clone())], &[], false).await;
        assert_eq!(
            (restored.tree, restored.note),
            (then, None),
            "a folder that may not be written is brought back, too"
        );
        assert_eq!(root.join("fixed").metadata().unwrap().mode() & 0o777, 0o555);
        mode(&root.join("shut"), 0o755);
        // Names can be read and nothing else: said, and taken back.
        put(&root, &[("src/x", "1"), ("src/y", "1")]);
        let then = world.keep().await;
        mode(&root.join("src"), 0o644);
        mode(&root.join("a"), 0);
        let now = world.keep().await;
        assert_ne!(now, then);
        let restored = world.back(&then, &now, &[(then.clone(), now.clone())], &[], false).await;
        assert_eq!(
            (restored.tree, restored.note),
            (then, None),
            "what was locked away is opened again"
        );
    } else {
        crate::as_ordinary_user("keep::what_may_not_be_read");
    }
}

#[tokio::test]
async fn the_persons_git_state_stays_as_it_is_byte_for_byte() {
    let world = World::new();
    let root = world.root();
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(&root)
            .env("HOME", world.dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q"]);
    put(&root, &[("a", "1\r\n"), (".gitattributes", "* text=auto eol=lf\n"), ("b", "1")]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    put(&root, &[("a", "2\r\n"), ("staged", "s"), ("untracked", "u")]);
    git(&["stash", "-q"]);
    put(&root, &[("a", "3\r\n"), ("staged", "s")]);
    git(&["add", "staged"]);
    let before = listing(&root.join(".git"));
    let start = world.keep().await;
    let mut windows = Vec::new();
    let mut last = start.clone();
    for n in 0..20 {
        put(&root, &[("a", &format!("{n}\r\n")), (&format!("new{n}"), "x")]);
        let now = world.keep().await;
        windows.push((last, now.clone()));
        last = now;
    }
    let restored = world.back(&start, &last, &windows, &[], false).await;
    assert_eq!(restored.tree, start);
    assert_eq!(std::fs::read(root.join("a")).unwrap(), b"3\r\n", "attributes change no byte");
    assert_eq!(listing(&root.join(".git")), before, "index, refs, reflog, stash, config, objects");
}

#[tokio::test]
async fn a_check_holds_for_the_files_and_not_for_what_is_made_again() {
    let world = World::new();
    let (root, name) = (world.root(), world.name());
    put(&root, &[("a", "1"), (".gitignore", "out\n*.log\n")]);
    let first = world.checkpoints.tree(&name).await.unwrap();
    put(
        &root,
        &[
            ("out/x", "1"),
            ("x.log", "1"),
            (".git/x", "1"),
            ("t/CACHEDIR.TAG", "1"),
            ("t/y", "1"),
            ("p/__pycache__/z", "1"),
        ],
    );
    assert!(!world.checkpoints.holds(&name, &first).await, "a folder appeared");
    std::fs::remove_dir_all(root.join("p")).unwrap();
    std::fs::remove_dir_all(root.join("t")).unwrap();
    assert!(
        world.checkpoints.holds(&name, &first).await,
        "caches and ignored files are no sources"
    );
    put(&root, &[("src/target/mod.rs", "1")]);
    assert!(!world.checkpoints.holds(&name, &first).await, "a folder is no cache for its name");
    std::fs::remove_dir_all(root.join("src")).unwrap();
    put(&root, &[("log/events.jsonl", "1")]);
    let own = CheckpointStore::new(
        world.dir.path().join("kept"),
        vec![root.canonicalize().unwrap().join("log/events.jsonl")],
        Bounds::default(),
    );
    let without = own.tree(&name).await.unwrap();
    put(&root, &[("log/events.jsonl", "2")]);
    assert!(
        world.checkpoints.holds(&name, &without).await,
        "what was left out stays out of a later look"
    );
    put(&root, &[("log/other", "2")]);
    assert!(!world.checkpoints.holds(&name, &without).await);
    std::fs::remove_file(root.join("log/other")).unwrap();
    mode(&root.join("a"), 0o755);
    assert!(!world.checkpoints.holds(&name, &without).await, "a mode is a change");
}

#[tokio::test]
async fn a_change_in_the_same_tick_of_the_clock_is_seen() {
    let world = World::new();
    let root = world.root();
    for n in 0..200 {
        std::fs::write(root.join("same-size"), format!("{n:04}")).unwrap();
        let tree = world.keep().await;
        std::fs::write(root.join("same-size"), format!("{:04}", n + 5_000)).unwrap();
        assert_ne!(world.keep().await, tree, "{n}");
    }
}

#[tokio::test]
async fn the_store_stays_within_its_bound_and_keeps_the_newest() {
    let bound = 3 << 20;
    let world = World::bounded(Bounds {
        bytes: bound,
        age: Duration::from_secs(86_400),
        ..Bounds::default()
    });
    let root = world.root();
    let mut most = 0;
    let mut last = None;
    for session in 0..100 {
        for step in 0..20 {
            // Hard to compress, so that it counts.
            let noise: String =
                (0..40).map(|n| blake(format!("{session} {step} {n}").as_bytes())).collect();
            put(&root, &[(&format!("f{}", step % 5), &noise)]);
            last = Some(world.keep_for(session).await.0);
            most = most.max(world.checkpoints.size());
        }
    }
    println!("100 sessions of 20 steps: at most {most} bytes were kept, of {bound}");
    assert!(most <= bound + (256 << 10), "{most}");
    assert!(most > bound / 2);
    let last = last.unwrap();
    let before = listing(&root);
    std::fs::remove_file(root.join("f1")).unwrap();
    let now = world.keep().await;
    world.back(&last, &now, &[(last.clone(), now.clone())], &[], false).await;
    assert_eq!(listing(&root), before, "the newest is there");
    world.checkpoints.forget(&session(99)).await.unwrap();
    world.checkpoints.forget(&session(1)).await.unwrap(); // which went back to it
    let gone = world.checkpoints.compare(&world.name(), last, now).await;
    assert!(gone.is_err(), "what a deleted session kept is gone: {gone:?}");
}

/// A crash leaves garbage at the end of the file: it is cut off, and what was kept before is there.
#[tokio::test]
async fn garbage_behind_the_last_record_is_cut_off() {
    use std::io::Write as _;
    let world = World::new();
    let root = world.root();
    put(&root, &[("a", "1")]);
    let then = world.keep().await;
    let store = world.store();
    let whole = std::fs::read(store.join("objects")).unwrap();
    for garbage in [vec![0; 500], whole[..100].to_vec(), whole.clone(), b"x".to_vec()] {
        std::fs::File::options()
            .append(true)
            .open(store.join("objects"))
            .unwrap()
            .write_all(&garbage)
            .unwrap();
        let again =
            CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), Bounds::default());
        put(&root, &[("a", "2")]);
        let now =
            again.keep(&session(1), &world.name(), 1, SaveControl::silent()).await.tree.unwrap();
        let back = RestorePlan {
            session: &session(1),
            workspace: &world.name(),
            to: &then,
            from: &now,
            ours: &[(then.clone(), now.clone())],
            theirs: &[],
            force: false,
            undone_after: None,
        };
        again.restore(back).await.unwrap();
        assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "1");
    }
}

/// A record whose bytes are not what its name says is not brought back as if it were.
#[tokio::test]
async fn damaged_content_is_said_to_be_damaged() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("a", "1"), ("b", "1 and more")]);
    let then = world.keep().await;
    let objects = world.store().join("objects");
    let mut bytes = std::fs::read(&objects).unwrap();
    bytes[16 + 56] ^= 1;
    std::fs::write(&objects, bytes).unwrap();
    let again = CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), Bounds::default());
    put(&root, &[("a", "3"), ("b", "3")]);
    let now = again.keep(&session(1), &world.name(), 1, SaveControl::silent()).await.tree.unwrap();
    let ours = [(then.clone(), now.clone())];
    let name = world.name();
    let back = RestorePlan {
        session: &session(1),
        workspace: &name,
        to: &then,
        from: &now,
        ours: &ours,
        theirs: &[],
        force: false,
        undone_after: None,
    };
    let note = again.restore(back).await.unwrap().note.unwrap();
    assert_eq!(note, "could not be restored: a: the saved copy is damaged");
    assert_eq!(
        std::fs::read_to_string(root.join("a")).unwrap(),
        "3",
        "what cannot be brought back stays as it is"
    );
    assert_eq!(std::fs::read_to_string(root.join("b")).unwrap(), "1 and more");
}

#[tokio::test]
async fn two_processes_share_a_store() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("a", "1")]);
    let one = world.keep().await;
    let other = CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), Bounds::default());
    put(&root, &[("a", "2")]);
    let two = other.keep(&session(2), &world.name(), 1, SaveControl::silent()).await.tree.unwrap();
    put(&root, &[("a", "3")]);
    let three = world.keep().await;
    let seen = world.checkpoints.compare(&world.name(), one.clone(), two.clone()).await.unwrap();
    assert_eq!((seen[0].path.as_str(), seen[0].after.as_deref()), ("a", Some(&b"2"[..])));
    // One of them collects: the other notices.
    other.forget(&session(2)).await.unwrap();
    put(&root, &[("a", "2")]);
    let again = world.keep().await;
    assert_eq!(again, two, "the same files have the same name");
    world.back(&three, &again, &[(three.clone(), again.clone())], &[], false).await;
    assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "3");
    world.back(&one, &three, &[(one.clone(), three.clone())], &[], false).await;
    assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "1");
}

/// The part that runs on a small disk of its own.
#[tokio::test]
async fn full_disk_child() {
    let Some(dir) = std::env::var_os("R3_CHILD") else { return };
    let dir = Path::new(&dir);
    let noise = |n: u32, kb: usize| -> String {
        (0..kb * 16).map(|k| blake(format!("{n} {k}").as_bytes())).collect()
    };
    let root = dir.join("w");
    let checkpoints = CheckpointStore::new(dir.join("disk/kept"), Vec::new(), Bounds::default());
    let keep = async || {
        checkpoints.keep(&session(1), &root.to_string_lossy(), 1, SaveControl::silent()).await
    };
    put(&root, &[("a", &noise(1, 200)), ("b", "1")]);
    let first = keep().await.tree.unwrap();
    std::fs::write(dir.join("disk/filler"), vec![1; 1 << 20]).unwrap_err();
    put(&root, &[("a", &noise(2, 900)), ("b", "2")]);
    let full = keep().await;
    let said = "the files could not be saved, so changes from here on cannot be undone: the disk \
                is full; make room";
    assert_eq!((full.tree, full.note.as_deref()), (None, Some(said)));
    std::fs::remove_file(dir.join("disk/filler")).unwrap();
    put(&root, &[("a", &noise(3, 200))]);
    let second = keep().await.tree.unwrap();
    let (ours, name) = ([(first.clone(), second.clone())], root.to_string_lossy().into_owned());
    let back = RestorePlan {
        session: &session(1),
        workspace: &name,
        to: &first,
        from: &second,
        ours: &ours,
        theirs: &[],
        force: false,
        undone_after: None,
    };
    checkpoints.restore(back).await.unwrap();
    assert!(
        std::fs::read_to_string(root.join("a")).unwrap() == noise(1, 200),
        "what was kept before is there"
    );
    println!("R3 with files: said, and kept again once there was room");
}

#[test]
fn r3_a_full_disk_keeps_nothing_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["w", "disk"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let script = "mount -t tmpfs -o size=1m none disk && exec \"$0\" keep::full_disk_child \
                  --exact --nocapture";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .current_dir(dir.path())
        .env("R3_CHILD", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("R3 with files"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// A collection that was killed takes the mark away; a look that fails then must not take
/// everything.
#[tokio::test]
async fn a_look_that_fails_without_a_mark_gives_nothing_up() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("a", "1")]);
    let then = world.keep().await;
    std::fs::remove_file(world.store().join("synced")).unwrap();
    let small = CheckpointStore::new(
        world.dir.path().join("kept"),
        Vec::new(),
        Bounds { bytes: 4, age: Duration::from_secs(86_400), ..Bounds::default() },
    );
    put(&root, &[("a", "2 and more")]);
    let failed = small.keep(&session(1), &world.name(), 1, SaveControl::silent()).await;
    assert!(
        failed.tree.is_none() && failed.note.unwrap().contains("there is too much in this folder")
    );
    let again = CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), Bounds::default());
    let now = again.keep(&session(1), &world.name(), 1, SaveControl::silent()).await.tree.unwrap();
    let (ours, name) = ([(then.clone(), now.clone())], world.name());
    let back = RestorePlan {
        session: &session(1),
        workspace: &name,
        to: &then,
        from: &now,
        ours: &ours,
        theirs: &[],
        force: false,
        undone_after: None,
    };
    again.restore(back).await.unwrap();
    assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "1");
}

#[tokio::test]
async fn a_table_of_another_file_is_not_believed() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("a", "1"), ("b", "1")]);
    let first = world.keep().await;
    let store = world.store();
    // As a collection that was killed would leave it: whole, and about another file.
    let other = World::new();
    put(&other.root(), &[("x", "1"), ("y", "22"), ("z", "333")]);
    other.keep().await;
    std::fs::copy(other.store().join("table"), store.join("table")).unwrap();
    let size = std::fs::metadata(store.join("objects")).unwrap().len();
    let again = CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), Bounds::default());
    put(&root, &[("a", "2")]);
    let now = again.keep(&session(1), &world.name(), 1, SaveControl::silent()).await.tree.unwrap();
    assert!(std::fs::metadata(store.join("objects")).unwrap().len() > size, "nothing was cut off");
    let seen = again.compare(&world.name(), first, now).await.unwrap();
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn what_lies_in_a_folder_that_is_no_longer_looked_into_is_not_overwritten() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("dist/hand.txt", "old\n"), ("a", "1")]);
    let then = world.keep().await;
    put(&root, &[(".gitignore", "dist\n"), ("a", "2")]);
    let now = world.keep().await;
    put(&root, &[("dist/hand.txt", "the person's work\n")]);
    let restored = world.back(&then, &now, &[(then.clone(), now.clone())], &[], false).await;
    assert_eq!(
        std::fs::read_to_string(root.join("dist/hand.txt")).unwrap(),
        "the person's work\n",
        "{restored:?}"
    );
    assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "1");
}

#[tokio::test]
async fn a_file_blown_up_by_a_command_comes_back() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("README.md", "read me\n"), ("pipe", "a file\n")]);
    let then = world.keep().await;
    std::fs::File::create(root.join("README.md")).unwrap().set_len(60 << 20).unwrap();
    std::fs::remove_file(root.join("pipe")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    std::fs::File::create(root.join("new-and-large")).unwrap().set_len(60 << 20).unwrap();
    let now = world.keep().await;
    let restored = world.back(&then, &now, &[(then.clone(), now.clone())], &[], false).await;
    let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    assert_eq!((text("README.md").as_str(), text("pipe").as_str()), ("read me\n", "a file\n"));
    assert!(root.join("new-and-large").exists(), "what is not kept is not removed");
    let note = restored.note.unwrap();
    assert!(note.contains("could not be restored again: new-and-large"), "{note}");
    assert!(
        note.contains("replaced by the earlier version without being saved: README.md, pipe"),
        "{note}"
    );
}

#[tokio::test]
async fn a_state_after_going_back_survives_a_collection() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("a", "1"), ("b", "1")]);
    let then = world.keep().await;
    put(&root, &[("a", "2"), ("c", "person")]);
    let now = world.keep().await;
    let ours = [(then.clone(), now.clone())];
    std::fs::write(root.join("c"), "later").unwrap();
    let restored = world.back(&then, &now, &ours, &[], false).await;
    assert_ne!(restored.tree, then);
    world.keep_for(2).await;
    world.checkpoints.forget(&session(2)).await.unwrap();
    assert!(
        world.checkpoints.compare(&world.name(), then, restored.tree).await.is_ok(),
        "a fact names it"
    );
}

/// A record in the midst that cannot be read ends what can be known of the file: it is put aside,
/// and that is said.
#[tokio::test]
async fn a_damaged_store_is_put_aside_and_said_to_be() {
    let world = World::new();
    let root = world.root();
    put(&root, &[("a", "1"), ("b", "22")]);
    let then = world.keep().await;
    let store = world.store();
    std::fs::remove_file(store.join("table")).unwrap();
    let mut bytes = std::fs::read(store.join("objects")).unwrap();
    bytes[16] ^= 1; // the name of the first record
    std::fs::write(store.join("objects"), bytes).unwrap();
    let again = CheckpointStore::new(world.dir.path().join("kept"), Vec::new(), Bounds::default());
    let kept = again.keep(&session(1), &world.name(), 1, SaveControl::silent()).await;
    assert_eq!(kept.tree, Some(then), "the same files have the same name, and are kept anew");
    let note = kept.note.unwrap();
    assert!(
        note.starts_with("the earlier checkpoints are damaged")
            && note.ends_with("objects.damaged"),
        "{note}"
    );
    assert_eq!(
        again.keep(&session(1), &world.name(), 1, SaveControl::silent()).await.note,
        None,
        "once"
    );
    assert!(store.join("objects.damaged").exists());
}
