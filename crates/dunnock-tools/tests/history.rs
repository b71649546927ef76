//! Git's history while commands run: repositories that are hostile, large, or on another disk, and
//! commands that nobody waits for.

use crate::{job, launcher};
use dunnock_ports::{
    CancellationToken, Checkpoints as _, DeltaSink, RestorePlan, SaveControl, Tools as _,
};
use dunnock_proto::SessionId;
use dunnock_testkit::timing;
use dunnock_tools::{Bounds, CheckpointStore, Limits, Toolbox};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A repository with two branches and a stash, our data folder, and a folder that is neither.
struct Place {
    dir: tempfile::TempDir,
    data: PathBuf,
    toolbox: Toolbox,
}

fn git(folder: &Path, line: &str) -> String {
    let id = "-c user.name=a -c user.email=a@b";
    let line = line.replace("git ", &format!("git {id} "));
    let ran = std::process::Command::new("bash").args(["-c", &line]).current_dir(folder).output();
    let ran = ran.unwrap();
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

const SETUP: &str = "git init -q -b main; for n in 1 2 3; do echo $n > f; git add f; git commit \
                     -qm $n; done; git gc -q; echo 4 > f; git commit -qam 4; git branch topic; \
                     echo 5 > f; git stash push -q";

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        Self::with(dir, data, true)
    }

    fn with(dir: tempfile::TempDir, data: PathBuf, saves: bool) -> Self {
        for name in ["work", "outside"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let history = saves.then(|| data.clone());
        let toolbox = Toolbox::new(Limits { history, ..Limits::default() }, &launcher(), &[]);
        let place = Self { dir, data, toolbox };
        assert_eq!(git(&place.work(), SETUP), "");
        place
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }

    fn name(&self) -> String {
        self.work().to_string_lossy().into_owned()
    }

    async fn call(&self, tool: &str, args: serde_json::Value) -> String {
        let quiet: DeltaSink = Arc::new(|_| {});
        let job = job(&self.work(), tool, &args.to_string());
        let ran = self.toolbox.run(job, quiet, CancellationToken::default());
        let (finished, _) = tokio::time::timeout(Duration::from_secs(60), ran).await.unwrap();
        finished.shown.to_string()
    }

    async fn shell(&self, command: &str) -> String {
        self.call("shell", serde_json::json!({ "command": command })).await
    }

    fn checkpoints(&self) -> CheckpointStore {
        CheckpointStore::new(self.data.clone(), Vec::new(), Bounds::default())
    }

    /// Undoes everything that the session did.
    async fn undo(&self) -> String {
        let (checkpoints, session, workspace) = (self.checkpoints(), session(), self.name());
        let now =
            checkpoints.keep(&session, &workspace, 1, SaveControl::silent()).await.tree.unwrap();
        let back = RestorePlan {
            session: &session,
            workspace: &workspace,
            to: &now,
            from: &now,
            ours: &[],
            theirs: &[],
            force: false,
            undone_after: Some(0),
        };
        checkpoints.restore(back).await.unwrap().note.unwrap_or_default()
    }

    fn branches(&self) -> String {
        git(&self.work(), "git for-each-ref --format='%(refname:short)' | tr '\\n' ' '")
    }
}

fn session() -> SessionId {
    SessionId::from_random([7; 16])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_repository_neither_hangs_nor_leads_outside() {
    let place = Place::new();
    let outside = place.dir.path().join("outside");
    std::fs::write(outside.join("secret"), "1111111111111111111111111111111111111111\n").unwrap();
    let planted = format!(
        "cd .git; mkfifo refs/heads/pipe logs/refs/heads/pipe objects/pack/pack-{0}.idx; ln -s {1} \
         refs/heads/out; ln -s .. refs/heads/loop; ln -s {1} modules; truncate -s 20G \
         refs/heads/huge logs/huge; ln -s {1}/secret refs/heads/secret; for n in $(seq 60); do \
         mkdir -p deep && cd deep; done; cd {2}/.git; C=$(git rev-parse main); printf '%s \
         refs/heads/../../../../outside/x\\n%s /outside/y\\n%s refs/heads/../up\\n' $C $C $C >> \
         packed-refs; mkdir -p objects/zz objects/00; mkfifo objects/00/{3}; ln -s {1} objects/01; \
         printf '\\xfftOc\\0\\0\\0\\x02' > objects/pack/pack-{4}.idx; touch objects/pack/pack-{4}.pack; \
         truncate -s 3G objects/pack/pack-{5}.idx; touch objects/pack/pack-{5}.pack",
        "a".repeat(40),
        outside.display(),
        place.name(),
        "0".repeat(38),
        "b".repeat(40),
        "c".repeat(40),
    );
    git(&place.work(), &planted);
    let listing = |folder: &Path| git(folder, "find . -ls | awk '{print $3, $7, $11, $12, $13}'");
    let before = listing(&outside);
    let said = place.shell("true").await;
    assert!(!said.contains("was de"), "{said}");
    // The links that undo meets lead out of the workspace.
    let command = format!(
        "cd .git; rm -rf refs logs objects/??; ln -s {0} refs; ln -s {0} logs; ln -s {0} objects/01",
        outside.display()
    );
    let said = place.shell(&command).await;
    assert!(said.contains("[git history: the repository was destroyed"), "{said}");
    let undone = place.undo().await;
    assert!(undone.contains("git history not restored: "), "{undone}");
    assert_eq!(listing(&outside), before, "{undone}");
    // The whole folder is replaced by a link.
    let command = format!("rm -rf .git; ln -s {} .git", outside.display());
    place.shell(&command).await;
    let undone = place.undo().await;
    assert!(undone.contains("git history not restored: "), "{undone}");
    assert_eq!(listing(&outside), before, "{undone}");
    // Without the link, undo restores it.
    std::fs::remove_file(place.work().join(".git")).unwrap();
    let undone = place.undo().await;
    assert_eq!(git(&place.work(), "git log --format=%s topic"), "4\n3\n2\n1\n", "{undone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_delete_is_neither_reported_nor_restored() {
    let place = Place::new();
    place.shell("true").await;
    git(&place.work(), "git branch -qD topic; git stash clear");
    let said = place.shell("git log --oneline -1").await;
    assert!(!said.contains("git history"), "{said}");
    assert_eq!(place.undo().await, "");
    assert_eq!(place.branches(), "main ");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_keeps_what_was_added() {
    let place = Place::new();
    place.shell("git branch -qD topic; git stash drop -q").await;
    // The person works on before undoing it.
    git(&place.work(), "echo 6 > f; git commit -qam 6; git branch new; echo 7 > f; git stash -q");
    let new = git(&place.work(), "git rev-parse new stash@{0}");
    let undone = place.undo().await;
    assert!(undone.contains("restored in git: branch \"topic\" (was "), "{undone}");
    assert_eq!(place.branches(), "main new topic stash ");
    assert_eq!(git(&place.work(), "git rev-parse new stash@{0}"), new);
    assert_eq!(git(&place.work(), "git stash list --format=%gs").lines().count(), 2);
    assert_eq!(git(&place.work(), "git fsck --no-dangling"), "");
    // It is done: a second one finds nothing.
    git(&place.work(), "git branch -qD topic");
    assert_eq!(place.undo().await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_destroys_is_reported_when_it_is_read() {
    let place = Place::new();
    let command = serde_json::json!({ "command": "read x; git branch -qD topic; echo did; cat" });
    let said = place.call("process_start", command).await;
    assert!(!said.contains("git history"), "{said}");
    let write = serde_json::json!({ "process": 1, "text": "go\n" });
    let mut said = place.call("process_write", write).await;
    while !said.contains("did") {
        let read = serde_json::json!({ "process": 1, "wait": 10 });
        said.push_str(&place.call("process_read", read).await);
    }
    said.push_str(&place.call("process_read", serde_json::json!({ "process": 1 })).await);
    assert_eq!(said.matches("[git history: branch \"topic\" (was ").count(), 1, "{said}");
    place.undo().await;
    assert_eq!(place.branches(), "main topic stash ");
    place.toolbox.close(&session()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loss_is_restored_although_nobody_waited_for_the_command() {
    let place = Place::new();
    {
        let running = place.shell("rm -rf .git; sleep 60");
        tokio::pin!(running);
        while place.work().join(".git").exists() {
            let _ = tokio::time::timeout(Duration::from_millis(20), &mut running).await;
        }
    }
    // Another process finds the record.
    let undone = place.undo().await;
    assert!(undone.contains("restored in git: the repository"), "{undone}");
    assert_eq!(place.branches(), "main topic stash ");
    assert_eq!(git(&place.work(), "git fsck --no-dangling"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_checkpoints_a_loss_is_only_reported() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let place = Place::with(dir, data.clone(), false);
    let said = place.shell("git branch -qD topic").await;
    assert!(said.contains("(was "), "{said}");
    assert!(
        said.ends_with("was deleted; it cannot be restored, since checkpoints are off]"),
        "{said}"
    );
    assert!(!data.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_overwritten_is_reported() {
    let place = Place::new();
    let said =
        place.shell("chmod u+w .git/objects/pack/*.pack; : > .git/objects/pack/*.pack").await;
    assert!(said.contains(".pack was changed and cannot be restored]"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_deleted_session() {
    let place = Place::new();
    place.shell("rm -rf .git/objects; git stash clear").await;
    place.checkpoints().keep(&session(), &place.name(), 1, SaveControl::silent()).await;
    let kept = |place: &Place| git(&place.data, "find . -path '*/git/*' -type f ! -name lock");
    assert!(!kept(&place).is_empty());
    place.checkpoints().forget(&session()).await.unwrap();
    assert_eq!(kept(&place), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_runs_programs_comes_back_under_another_name() {
    let place = Place::new();
    let planted = "printf '[alias]\\n\\tst = !touch x\\n' >> .git/config; echo '* filter=x' > \
                   .git/info/attributes";
    git(&place.work(), planted);
    place.shell("rm -rf .git").await;
    place.undo().await;
    let names = ["config", "config.saved", "info/attributes", "info/attributes.saved"];
    let there = names.map(|name| place.work().join(".git").join(name).exists());
    assert_eq!(there, [false, true, false, true]);
    assert_eq!(place.branches(), "main topic stash ");
}

/// The data folder is on another file system, so that nothing can be linked.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_copied_from_another_file_system() {
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let data = elsewhere.path().join("data");
    let place = Place::with(tempfile::tempdir_in("/var/tmp").unwrap(), data, true);
    let said = place.shell("rm -rf .git/objects").await;
    assert!(said.contains("the repository was destroyed; dunnock undo restores it"), "{said}");
    place.undo().await;
    assert_eq!(git(&place.work(), "git fsck --no-dangling; git log --format=%s"), "4\n3\n2\n1\n");
}

/// Files with the names of loose objects. Only their names matter for the time.
fn loose(work: &Path, count: u32) {
    for n in 0..count {
        let name = dunnock_proto::Hash::of(&n.to_le_bytes()).to_string();
        let (folder, name) = name[..40].split_at(2);
        let folder = work.join(".git/objects").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), "x").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recording_a_large_repository_is_quick() {
    let bound = Duration::from_millis(200);
    let took = async |place: &Place| {
        let began = Instant::now();
        let said = place.shell("true").await;
        (began.elapsed(), said)
    };
    let small = Place::new();
    small
        .toolbox
        .run(
            job(&small.work(), "shell", r#"{"command":"true"}"#),
            Arc::new(|_| {}),
            CancellationToken::default(),
        )
        .await;
    let (plain, _) = took(&small).await;
    println!("a command in a small repository that is recorded: {plain:?}");
    // One pack of 1 GB. Its content is not read.
    let pack = Place::new();
    let file = format!("objects/pack/pack-{}.pack", "d".repeat(40));
    git(
        &pack.work(),
        &format!(
            "cd .git; truncate -s 1G {file}; cp objects/pack/*.idx x; mv x {}",
            file.replace(".pack", ".idx")
        ),
    );
    let (first, said) = took(&pack).await;
    assert_eq!(said, "(no output)");
    timing::figure("recording 1 GB in one pack", first.saturating_sub(plain), bound);
    // Many loose objects: what is left out in the time is reported, and follows.
    let many = Place::new();
    let objects = if timing::held() { 50_000 } else { 10_000 };
    loose(&many.work(), objects);
    let (first, said) = took(&many).await;
    println!("{said}");
    timing::figure(
        &format!("recording {objects} loose objects"),
        first.saturating_sub(plain),
        bound,
    );
    let kept =
        || git(&many.data, "find . -path '*/mirror/*' -type f | wc -l").trim().parse().unwrap();
    let there: u32 = git(&many.work(), "find .git/objects -type f | grep -v info | wc -l")
        .trim()
        .parse()
        .unwrap();
    let mut calls = 1;
    let mut now: u32 = kept();
    assert_eq!(
        now < there,
        said.contains("not all objects are recorded yet"),
        "{now} of {there}: {said}"
    );
    while now < there {
        let (again, _) = took(&many).await;
        let before = std::mem::replace(&mut now, kept());
        assert!(now > before, "{now} of {there}");
        calls += 1;
        println!("call {calls}: {again:?}, {now} of {there}");
    }
    let (again, _) = took(&many).await;
    timing::figure("the next command there", again.saturating_sub(plain), bound);
}
