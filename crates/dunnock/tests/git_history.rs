//! What commands do to git's history: a loss is reported in the result of the call, and undone.

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn shell(command: &str) -> Served {
    Say::calls(&[("shell", &serde_json::json!({ "command": command }).to_string())]).into()
}

/// Runs git and other programs as the person does.
fn person(folder: &Path, line: &str) -> String {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(folder).env_clear();
    command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", folder);
    for (name, value) in IDENTITY {
        command.env(name, value);
    }
    let ran = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

const IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "a"),
    ("GIT_AUTHOR_EMAIL", "a@b"),
    ("GIT_COMMITTER_NAME", "a"),
    ("GIT_COMMITTER_EMAIL", "a@b"),
];

/// Commands of the model have an identity, too.
const AS: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
                  GIT_COMMITTER_EMAIL=a@b FILTER_BRANCH_SQUELCH_WARNING=1;";

/// A repository with branches, tags, a stash, commits that only a reflog knows, a pack and loose
/// objects, a nested repository, and one inside the git folder.
const SETUP: &str = "set -e; git init -q -b main; git config advice.detachedHead false
for n in 1 2 3 4; do echo $n > f$n; git add f$n; git commit -qm c$n; done
git tag v0; git tag -a v1 -m one HEAD~1; git branch topic; git branch feature/long HEAD~1
git commit -q --allow-empty -m 'only the reflog knows this'; git reset -q --hard HEAD~1
git gc -q
git checkout -q topic; echo 5 > f5; git add f5; git commit -qm c5; git checkout -q main
echo 6 > f6; git add f6; git commit -qm c6
echo s1 >> f1; git stash push -qm one; echo s2 >> f2; git stash push -qm two
echo s3 >> f3; git stash push -qm three
git init -q -b main n; cd n; echo n > n; git add n; git commit -qm n; git branch inner; cd ..
mkdir .git/modules; git init -q -b main --separate-git-dir .git/modules/sub sub
cd sub; echo s > s; git add s; git commit -qm s; cd ..";

/// Everything that git knows, one fact per line.
fn facts(folder: &Path) -> BTreeSet<String> {
    let line = "git symbolic-ref HEAD; git for-each-ref; git stash list --format='stash %H %gs'
        git reflog show --all --format='log %gd %H %gs' | sed 's/@{[0-9]*}//'
        git cat-file --batch-all-objects --batch-check='%(objectname)'
        git fsck --no-dangling 2>&1";
    let mut all = BTreeSet::new();
    for repo in [".", "n", "sub"] {
        let folder = folder.join(repo);
        all.extend(person(&folder, line).lines().map(|fact| format!("{repo}: {fact}")));
    }
    all
}

/// Sets the repository up once, for all cases of a test.
fn template() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(person(dir.path(), SETUP), "", "the repository could not be set up");
    dir
}

fn project(home: &Home, template: &tempfile::TempDir) {
    let from = template.path().display();
    let to = home.project();
    let copy = format!(
        "cp -a {from}/. . && git config --file .git/modules/sub/config core.worktree {0}/sub && echo \"gitdir: {0}/.git/modules/sub\" > sub/.git",
        to.display()
    );
    assert_eq!(person(&to, &copy), "", "the repository could not be copied");
}

/// Ways to destroy history, and what the report says.
const DESTROYED: &[(&str, &str)] = &[
    ("rm -rf .git/objects .git/refs", "the repository was destroyed"),
    ("find .git -delete", "the repository was destroyed"),
    ("rm -rf .git/objects", "the repository was destroyed"),
    ("git update-ref -d refs/heads/topic", "branch \"topic\" (was "),
    ("git branch -qD topic feature/long", "branch \"feature/long\" (was "),
    ("git tag -d v1", "tag \"v1\" (was "),
    ("git tag -f v0 HEAD~2", "tag \"v0\" (was "),
    (
        "git reflog expire --expire=now --expire-unreachable=now --all",
        "reflog entries were deleted",
    ),
    ("rm -rf .git/logs/HEAD", "reflog entries were deleted"),
    ("git stash drop -q stash@{1}", "1 stash entry was dropped"),
    ("git stash clear", "3 stash entries were dropped"),
    (
        "git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now",
        "were deleted",
    ),
    (
        "git reset -q --hard HEAD~3; git reflog expire --expire=now --all; git gc -q --prune=now",
        "branch \"main\" (was ",
    ),
    (
        "git filter-branch -f --msg-filter 'sed s/c/x/' -- --all >/dev/null; rm -rf \
         .git/refs/original; git for-each-ref --format='%(refname)' refs/original | xargs -n1 git \
         update-ref -d; git reflog expire --expire=now --all; git gc -q --prune=now",
        "was overwritten",
    ),
    ("rm -rf n/.git", "the repository of n was destroyed"),
    ("rm -rf .git/modules/sub", "the repository of .git/modules/sub was destroyed"),
    ("rm -f .git/objects/pack/*", "object file"),
    ("rm -rf .git/objects/[0-9a-f][0-9a-f]", "object files were deleted"),
    (": > .git/packed-refs; echo > .git/refs/heads/topic", "branch \"topic\" (was "),
    ("echo nonsense > .git/HEAD", "the repository was destroyed"),
];

async fn destroy(template: &tempfile::TempDir, command: &str, report: &str) -> Result<(), String> {
    let server =
        ScriptedServer::start(vec![shell(&format!("{AS} {command}")), Say::text("done").into()])
            .await;
    let home = Home::with(&server);
    project(&home, template);
    let before = facts(&home.project());
    let ran = home.run(&["run", "--approve", "all", "go"]).await;
    let after = facts(&home.project());
    if before.is_subset(&after) {
        return Err(format!("nothing was destroyed: {}{}", ran.out, ran.err));
    }
    let last = server.requests().last().unwrap().to_string();
    let told = last.replace("\\\"", "\"");
    if !(told.contains("[git history: ") && told.contains(report)) {
        let at = told.find("git history").unwrap_or(0);
        return Err(format!("the model was not told: {:.300}", &told[at..]));
    }
    if !(ran.err.contains("git history: ") && ran.err.contains(report)) {
        return Err(format!("the person was not told: {}", ran.err));
    }
    let undone = home.run(&["undo"]).await;
    let restored = facts(&home.project());
    let missing: Vec<&String> = before.difference(&restored).take(5).collect();
    match (undone.code, missing.is_empty()) {
        (0, true) if undone.err.contains("restored in git: ") => Ok(()),
        (code, _) => Err(format!("exit {code}, missing {missing:#?}, {}", undone.err)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn destroyed_history_is_reported_and_restored() {
    let (template, mut wrong) = (template(), Vec::new());
    for (command, report) in DESTROYED {
        if let Err(why) = destroy(&template, command, report).await {
            wrong.push(format!("--- {command}\n{why}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), DESTROYED.len(), wrong.join("\n"));
}

/// What people do with git every day, one call each.
const ORDINARY: &[&str] = &[
    "echo 7 > f7; git add f7; git commit -qm c7",
    "git commit -q --amend -m c7b",
    "git checkout -q topic; git rebase -q main; git checkout -q main",
    "git checkout -q -b side; echo 8 > f8; git add f8; git commit -qm c8",
    "git checkout -q main; git merge -q --no-ff -m merged side",
    "git gc -q",
    "git repack -qad",
    "git pack-refs --all",
    "echo 9 >> f4; git stash push -qm four",
    "git stash pop -q",
    "git stash push -q; git stash apply -q; git checkout -q f4; git stash pop -q",
    "git -c protocol.file.allow=always fetch -q ./remote.git main",
    "git -c protocol.file.allow=always fetch -q ./remote.git '+refs/heads/*:refs/remotes/there/*'",
    // The sandbox keeps git from changing its configuration; the branch is renamed.
    "git branch -m side other; git rev-parse --verify -q other && ! git rev-parse --verify -q side",
    "git worktree add -q wt other",
    "git checkout -q topic; git checkout -q main; git checkout -q HEAD~1; git checkout -q main",
    "git reset -q --soft HEAD~1; git commit -qm again",
    "git tag v2; git tag -a v3 -m three",
    "git cherry-pick -x v2~2 >/dev/null || git cherry-pick --skip",
    "git revert --no-edit HEAD >/dev/null",
    "git notes add -m note; git notes append -m more",
    "git bisect start HEAD HEAD~2 >/dev/null && git bisect reset >/dev/null",
    "git maintenance run --quiet; git prune-packed -q; git gc -q --aggressive",
    "cd n; echo m > m; git add m; git commit -qm m; git gc -q",
    "git init -q fresh; cd fresh; echo 1 > f; git add f; git commit -qm f",
    "git log --oneline; git status; git diff",
];

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_work_reports_nothing() {
    let calls = ORDINARY.iter().map(|command| shell(&format!("{AS} {command}")));
    let server = ScriptedServer::start(calls.chain([Say::text("done").into()]).collect()).await;
    let home = Home::with(&server);
    project(&home, &template());
    let remote = "git clone -q --bare . remote.git; git clone -q remote.git x; cd x; echo r > r; git \
                  add r; git commit -qm r; git push -q; cd ..; rm -rf x";
    assert_eq!(person(&home.project(), remote), "");
    let ran = home.run(&["run", "--approve", "all", "--max-steps", "60", "go"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), ORDINARY.len() + 1, "{}", ran.err);
    let mut wrong = Vec::new();
    for (command, request) in ORDINARY.iter().zip(requests.iter().skip(1)) {
        let result = request["messages"].as_array().unwrap().last().unwrap();
        let result = result["content"].as_str().unwrap();
        if result.contains("git history") || result.contains("[exit ") {
            wrong.push(format!("--- {command}\n{result}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!ran.err.contains("git history"), "{}", ran.err);
    // The commits are the model's work: undo leaves them alone.
    let mut before = facts(&home.project());
    // What was popped returns to the stash, because undo also reverts the files.
    before.retain(|fact| !fact.ends_with("refs/stash"));
    // The repositories that the task made are not saved and stay.
    let undone = home.run(&["undo"]).await;
    assert!(undone.code == 1 && undone.err.contains("done in part"), "{}", undone.err);
    let after = facts(&home.project());
    let missing: Vec<&String> = before.difference(&after).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
