//! Everyday work with git and package managers, as a model does it at level A: it works, with at
//! most the questions that are listed beside each.

use crate::cases::world::World;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use serde_json::json;

struct Workflow {
    name: &'static str,
    /// What the person has, in the project.
    setup: &'static str,
    /// What the model runs, one call each. All must succeed.
    steps: &'static [&'static str],
    /// How many questions the person answers with yes.
    questions: usize,
    /// What must hold afterwards, as the person sees it.
    then: &'static str,
}

const fn unasked(
    name: &'static str,
    setup: &'static str,
    steps: &'static [&'static str],
    then: &'static str,
) -> Workflow {
    Workflow { name, setup, steps, questions: 0, then }
}

const fn asked(
    questions: usize,
    name: &'static str,
    setup: &'static str,
    steps: &'static [&'static str],
    then: &'static str,
) -> Workflow {
    Workflow { name, setup, steps, questions, then }
}

/// A branch on which every kind of protected file differs.
const OTHER_BRANCH: &str = "mkdir -p .github/workflows .vscode pkg && echo 1 > AGENTS.md && echo 1 > \
                            .github/workflows/ci.yml && echo '{}' > .vscode/settings.json && echo 1 > \
                            rust-toolchain.toml && echo 1 > pkg/CLAUDE.md && git add -A && git commit \
                            -qm base && git switch -qc other && echo 2 > AGENTS.md && echo 2 > \
                            .github/workflows/ci.yml && echo 2 > .github/workflows/new.yml && echo \
                            '{\"a\":1}' > .vscode/settings.json && git rm -q rust-toolchain.toml && \
                            echo 2 > pkg/CLAUDE.md && echo 1 > .gitlab-ci.yml && git add -A && git \
                            commit -qm two && git switch -q main";
const WORKFLOWS: &[Workflow] = &[
    // Commits.
    unasked(
        "commit",
        "true",
        &["echo x > n.txt", "git add n.txt && git commit -qm n"],
        "git show HEAD:n.txt",
    ),
    unasked(
        "commit -a and amend",
        "true",
        &["echo x >> a.txt", "git commit -qam a", "git commit -q --amend -m b"],
        "git log -1 --format=%s | grep -x b",
    ),
    unasked(
        "commit with a hook that passes",
        "printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit",
        &["echo x >> a.txt && git commit -qam a"],
        "git log -1 --format=%s | grep -x a",
    ),
    unasked(
        "commit with a hook that refuses",
        "printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit",
        &["echo x >> a.txt; ! git commit -qam a"],
        "git log -1 --format=%s | grep -vx a",
    ),
    unasked(
        "commit with a hook that formats files",
        "printf '#!/bin/sh\\necho formatted >> a.txt; git add a.txt\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit",
        &["echo x >> a.txt && git commit -qam a"],
        "git show HEAD:a.txt | grep formatted",
    ),
    unasked(
        "commit with core.hooksPath",
        "mkdir .githooks && printf '#!/bin/sh\\ntouch ran-hook\\n' > .githooks/pre-commit && chmod +x .githooks/pre-commit && git config core.hooksPath .githooks && git add -A && git commit -qm h && rm -f ran-hook",
        &["echo x >> a.txt && git commit -qam a"],
        "test -e ran-hook",
    ),
    unasked(
        "commit with husky",
        "mkdir -p .husky/_ && printf '#!/bin/sh\\ntouch ran-hook\\n' > .husky/_/pre-commit && chmod +x .husky/_/pre-commit && git config core.hooksPath .husky/_ && git add -A && git commit -qm h && rm -f ran-hook",
        &["echo x >> a.txt && git commit -qam a"],
        "test -e ran-hook",
    ),
    unasked(
        "commit with a pre-commit configuration",
        "echo 'repos: []' > .pre-commit-config.yaml && git add -A && git commit -qm p && printf '#!/bin/sh\\ntest -e .pre-commit-config.yaml\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit",
        &["echo x >> a.txt && git commit -qam a"],
        "git log -1 --format=%s | grep -x a",
    ),
    unasked(
        "commit-msg hook",
        "printf '#!/bin/sh\\necho trailer >> $1\\n' > .git/hooks/commit-msg && chmod +x .git/hooks/commit-msg",
        &["echo x >> a.txt && git commit -qam a"],
        "git log -1 --format=%B | grep trailer",
    ),
    unasked(
        "a commit template",
        "echo text > ../template && git config commit.template ../template",
        &["echo x >> a.txt && git commit -qam a"],
        "git log -1 --format=%s | grep -x a",
    ),
    // Branches.
    unasked(
        "switch and back",
        "git branch t",
        &["git switch -q t", "git switch -q -"],
        "git branch --show-current | grep -x main",
    ),
    unasked(
        "switch to a branch with other protected files",
        OTHER_BRANCH,
        &["git switch -q other"],
        "git diff --quiet HEAD && test \"$(cat AGENTS.md)\" = 2 && test -e .github/workflows/new.yml && test -e .gitlab-ci.yml && test ! -e rust-toolchain.toml",
    ),
    unasked(
        "switch there and back",
        OTHER_BRANCH,
        &["git switch -q other", "git switch -q main"],
        "git diff --quiet HEAD && test \"$(cat AGENTS.md)\" = 1 && test -e rust-toolchain.toml",
    ),
    unasked(
        "checkout of a branch by a longer line",
        "echo 1 > AGENTS.md && git add -A && git commit -qm b && git switch -qc other && echo 2 > AGENTS.md && git commit -qam two && git switch -q main",
        &["git checkout -q other && cat AGENTS.md"],
        "git diff --quiet HEAD && test \"$(cat AGENTS.md)\" = 2",
    ),
    unasked(
        "fast-forward merge with other protected files",
        OTHER_BRANCH,
        &["git merge -q other"],
        "git diff --quiet HEAD && test \"$(cat AGENTS.md)\" = 2",
    ),
    unasked(
        "a merge commit",
        "git switch -qc o && echo o > o.txt && git add o.txt && git commit -qm o && git switch -q main && echo m > m.txt && git add m.txt && git commit -qm m",
        &["git merge -q --no-edit o"],
        "test -e o.txt -a -e m.txt && git diff --quiet HEAD",
    ),
    unasked(
        "a merge with a conflict, resolved",
        "git switch -qc o && echo o > f && git commit -qam o && git switch -q main && echo m > f && git commit -qam m",
        &["! git merge -q o", "echo both > f && git add f && git commit -q --no-edit"],
        "git show HEAD:f | grep both && test ! -e .git/MERGE_HEAD",
    ),
    unasked(
        "a merge that is aborted",
        "git switch -qc o && echo o > f && git commit -qam o && git switch -q main && echo m > f && git commit -qam m",
        &["! git merge -q o", "git merge --abort"],
        "git diff --quiet HEAD",
    ),
    unasked(
        "rebase",
        "git switch -qc o && echo o > o.txt && git add o.txt && git commit -qm o && git switch -q main && echo m > m.txt && git add m.txt && git commit -qm m && git switch -q o",
        &["git rebase -q main"],
        "test -e m.txt && git diff --quiet HEAD",
    ),
    unasked(
        "rebase onto a branch with other protected files",
        OTHER_BRANCH,
        &[
            "git switch -qc mine && echo x > x.txt && git add x.txt && git commit -qm x",
            "git rebase -q other",
        ],
        "git diff --quiet HEAD && test -e x.txt && test \"$(cat AGENTS.md)\" = 2",
    ),
    unasked(
        "rebase with a conflict, continued",
        "git switch -qc o && echo o > f && git commit -qam o && git switch -q main && echo m > f && git commit -qam m && git switch -q o",
        &["! git rebase -q main", "echo both > f && git add f && git rebase --continue"],
        "git show HEAD:f | grep both && test ! -d .git/rebase-merge",
    ),
    unasked(
        "rebase with commands that pass",
        "git switch -qc o && echo o > o.txt && git add o.txt && git commit -qm o",
        &["git rebase -q -x 'test -e o.txt' main"],
        "test ! -d .git/rebase-merge",
    ),
    unasked(
        "an interactive rebase",
        "echo o > o.txt && git add o.txt && git commit -qm o && echo p > p.txt && git add p.txt && git commit -qm p",
        &["GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' git rebase -q -i HEAD~2"],
        "git log -1 --format=%B | grep -x o && git log -1 --format=%B | grep -x p",
    ),
    unasked(
        "cherry-pick",
        "git switch -qc o && echo o > o.txt && git add o.txt && git commit -qm o && git switch -q main",
        &["git cherry-pick o"],
        "test -e o.txt",
    ),
    unasked(
        "cherry-pick of two with a conflict, continued",
        "git switch -qc o && echo o > f && git commit -qam o1 && echo p > p.txt && git add p.txt && git commit -qm o2 && git switch -q main && echo m > f && git commit -qam m",
        &["! git cherry-pick o~1 o", "echo both > f && git add f && git cherry-pick --continue"],
        "test -e p.txt && test ! -d .git/sequencer",
    ),
    unasked(
        "revert",
        "echo x >> a.txt && git commit -qam x",
        &["git revert --no-edit HEAD"],
        "! grep x a.txt",
    ),
    asked(
        1,
        "rename and delete a branch",
        "git branch t",
        &["git branch -m t u", "git branch -d u"],
        "! git rev-parse -q --verify u",
    ),
    unasked(
        "tag and describe",
        "true",
        &["git tag v1", "git describe --tags"],
        "git rev-parse -q --verify v1",
    ),
    unasked(
        "bisect",
        "for i in 1 2 3 4; do echo $i > n && git add n && git commit -qm $i; done",
        &[
            "git bisect start HEAD HEAD~4",
            "git bisect run sh -c '! grep -q 3 n'",
            "git bisect reset",
        ],
        "git diff --quiet HEAD",
    ),
    // Stash, reset, restore.
    unasked(
        "stash and pop",
        "echo x >> a.txt",
        &["git stash -q", "git stash pop -q"],
        "grep x a.txt",
    ),
    unasked(
        "stash of a protected file",
        "echo 1 > AGENTS.md && git add -A && git commit -qm a && echo mine >> AGENTS.md",
        &["git stash -q"],
        "test \"$(cat AGENTS.md)\" = 1 && git stash list | grep stash",
    ),
    unasked(
        "stash and pop of a protected file",
        "echo 1 > AGENTS.md && git add -A && git commit -qm a && echo mine >> AGENTS.md",
        &["git stash -q", "git stash pop -q"],
        "grep -q mine AGENTS.md && test -z \"$(git stash list)\"",
    ),
    unasked(
        "checkout of an earlier commit",
        "for i in 1 2 3 4; do echo $i > AGENTS.md && git add -A && git commit -qm $i; done; rm -rf \
         .git/logs",
        &["git checkout -q HEAD~2"],
        "git diff --quiet HEAD && grep -qx 2 AGENTS.md",
    ),
    asked(
        1,
        "restore a file",
        "echo x >> a.txt",
        &["git restore a.txt"],
        "git diff --quiet HEAD -- a.txt",
    ),
    asked(
        1,
        "restore a protected file",
        "echo 1 > AGENTS.md && git add -A && git commit -qm a && echo mine >> AGENTS.md",
        &["git restore AGENTS.md"],
        "git diff --quiet HEAD",
    ),
    unasked(
        "a soft reset",
        "echo x >> a.txt && git commit -qam x",
        &["git reset -q --soft HEAD~1"],
        "git diff --cached --name-only | grep a.txt",
    ),
    asked(1, "a hard reset", "echo x >> a.txt", &["git reset -q --hard"], "git diff --quiet HEAD"),
    asked(1, "clean", "touch junk", &["git clean -fdq"], "test ! -e junk"),
    // Moves and copies.
    unasked(
        "a folder with instructions is moved",
        "mkdir -p pkg/one && echo x > pkg/one/AGENTS.md && git add -A && git commit -qm p",
        &["git mv pkg/one pkg/two"],
        "test \"$(cat pkg/two/AGENTS.md)\" = x && test ! -e pkg/one",
    ),
    unasked(
        "a folder with instructions is copied",
        "mkdir -p pkg/one && echo x > pkg/one/AGENTS.md && git add -A && git commit -qm p",
        &["cp -r pkg/one pkg/two"],
        "test -e pkg/two/AGENTS.md",
    ),
    unasked(
        "a folder with instructions is deleted",
        "mkdir -p pkg/one && echo x > pkg/one/AGENTS.md && git add -A && git commit -qm p",
        &["rm -rf pkg/one"],
        "test ! -e pkg/one",
    ),
    unasked(
        "patches are made and applied",
        "echo x >> a.txt && git commit -qam x",
        &[
            "git format-patch -q -1 -o out",
            "git reset -q --soft HEAD~1 && git stash -q",
            "git am -q out/*.patch",
        ],
        "git log -1 --format=%s | grep -x x",
    ),
    // Repositories.
    unasked(
        "a repository is made",
        "rm -rf .git",
        &["git init -q . && git add a.txt && git -c user.name=a -c user.email=a@b commit -qm a"],
        "git log --oneline && git status",
    ),
    unasked(
        "a repository is made in a folder",
        "true",
        &[
            "mkdir demo && cd demo && git init -q . && echo x > x && git add x && git -c user.name=a -c user.email=a@b commit -qm a",
        ],
        "cd demo && git log --oneline && git status",
    ),
    unasked(
        "a bare repository is made for a test",
        "true",
        &["git init -q --bare fixture.git"],
        "git -C fixture.git log -1 2>&1 | grep -i 'does not have any commits'",
    ),
    unasked(
        "a submodule is read and left alone",
        "git init -q ../lib && git -C ../lib -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git -c protocol.file.allow=always submodule add -q ../lib vendor/lib && git commit -qm s",
        &["git submodule status", "git -C vendor/lib log --oneline", "git status --short"],
        "git -C vendor/lib status",
    ),
    unasked(
        "work in a submodule",
        "git init -q ../lib && git -C ../lib -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git -c protocol.file.allow=always submodule add -q ../lib vendor/lib && git commit -qm s",
        &[
            "cd vendor/lib && echo x > x && git add x && git -c user.name=a -c user.email=a@b commit -qm x",
            "git add vendor/lib && git commit -qm s2",
        ],
        "git submodule status | grep -v '^+'",
    ),
    asked(
        1,
        "a linked work tree is added",
        "true",
        &["git worktree add -q wt"],
        "git -C wt status && git worktree list | grep wt",
    ),
    unasked(
        "work in a linked work tree",
        "git worktree add -q wt",
        &["cd wt && echo x > x && git add x && git commit -qm x"],
        "git -C wt log -1 --format=%s | grep -x x",
    ),
    asked(
        1,
        "a setting of git",
        "true",
        &["git config core.autocrlf input"],
        "git config core.autocrlf | grep input",
    ),
    asked(
        1,
        "a remote is added",
        "true",
        &["git remote add up https://example.org/x.git"],
        "git remote | grep up",
    ),
    unasked(
        "gc and repack",
        "true",
        &["git gc -q", "git repack -qad", "git pack-refs --all"],
        "git fsck",
    ),
    unasked(
        "an archive and a bundle",
        "true",
        &["git archive -o out.tar HEAD", "git bundle create -q out.bundle main"],
        "git bundle verify -q out.bundle",
    ),
    unasked("notes", "true", &["git notes add -m hello", "git notes show"], "git notes show"),
    unasked(
        "sparse checkout is read",
        "true",
        &["git ls-files | head -3", "git blame a.txt", "git log --stat -2"],
        "true",
    ),
    // Package managers.
    unasked("npm scripts", "true", &["npm test", "npm run build"], "true"),
    asked(
        1,
        "npm install from a folder",
        "mkdir -p ../dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > ../dep/package.json && cp -r ../dep dep",
        &["npm install --no-audit --no-fund --offline ./dep"],
        "grep dep package.json",
    ),
    unasked(
        "a virtual environment",
        "true",
        &["python3 -m venv --without-pip .venv && .venv/bin/python -c 'print(1)'"],
        "test -x .venv/bin/python",
    ),
    unasked(
        "cargo build and test",
        "true",
        &["cargo build -q --offline", "cargo test -q --offline"],
        "test -d target/debug",
    ),
    unasked(
        "cargo new in a workspace",
        "true",
        &["cargo new -q --vcs none --lib crates/new 2>/dev/null; test -e crates/new/Cargo.toml"],
        "test -e crates/new/src/lib.rs",
    ),
    unasked(
        "a new project with a repository of its own",
        "true",
        &[
            "mkdir ex && cd ex && cargo init -q --vcs git --name ex . 2>/dev/null; test -e Cargo.toml",
        ],
        "test -e ex/src/main.rs && git -C ex status",
    ),
    unasked("make and go", "true", &["make", "go vet ./... || true"], "true"),
    asked(1, "a push with a hook", REMOTE_HOOK, &["git push -q origin main"], "test -e ran-hook"),
];

/// A push fails here, because its remote is a path; its hook ran before.
const REMOTE_HOOK: &str = "git remote add origin http://127.0.0.1:1/x.git && printf '#!/bin/sh\\ntouch \
                           ran-hook\\n' > .git/hooks/pre-push && chmod +x .git/hooks/pre-push";

/// Runs a workflow; returns the number of questions, or what went wrong.
async fn run(workflow: &Workflow) -> Result<usize, String> {
    let world = World::new("work");
    world.bash("git add -A; git commit -qm all || true");
    world.bash(workflow.setup);
    let mut script: Vec<Served> = workflow
        .steps
        .iter()
        .map(|line| Say::calls(&[("shell", &json!({"command": line}).to_string())]).into())
        .collect();
    script.push(Say::text("done").into());
    let server = ScriptedServer::start(script).await;
    world.serve(&server);
    let mut ran = world.ran(&["run", "go"]).await;
    let mut questions = 0;
    while ran.code == 3 && questions < 9 {
        questions += 1;
        let id = world.home.newest().await;
        ran = world.ran(&["approve", &id, "--go"]).await;
    }
    let messages = server.requests().last().map(|last| last["messages"].clone());
    let said: Vec<String> = messages
        .iter()
        .flat_map(|messages| messages.as_array().cloned().unwrap_or_default())
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str().map(str::to_owned))
        .collect();
    let failed = said.iter().find(|said| said.contains("[exit ") || said.contains("[sandbox:"));
    let checked = std::process::Command::new("bash")
        .args(["-c", workflow.then])
        .current_dir(world.home.project())
        .env("HOME", world.home.dir.path())
        .output()
        .map_err(|e| e.to_string())?;
    match (ran.code, failed, checked.status.success()) {
        (0, None, true) => Ok(questions),
        // The remote of this one cannot be reached.
        (0, Some(_), true) if workflow.steps == ["git push -q origin main"] => Ok(questions),
        (code, failed, checked) => Err(format!(
            "exit {code}; result: {failed:?}; check: {checked}; all: {said:#?}; {}",
            ran.err
        )),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everyday_work_with_git_and_package_managers_needs_few_questions() {
    let mut failed = Vec::new();
    for workflow in WORKFLOWS {
        match run(workflow).await {
            Ok(questions) if questions <= workflow.questions => {
                println!("works, {questions} questions: {}", workflow.name);
            }
            Ok(questions) => failed.push(format!("{}: {questions} questions", workflow.name)),
            Err(why) => failed.push(format!("{}: {why}", workflow.name)),
        }
    }
    println!("{} workflows", WORKFLOWS.len());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
