//! Repositories that are larger than the workspace, or whose git folder is elsewhere: git works in
//! them, nothing in them looks deleted, and nothing can be planted in them.

use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

/// A way in which a project and its repository can lie beside each other.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Makes it, in an empty folder, with the function `fill` for its first commit.
    make: &'static str,
    workspace: &'static str,
    /// Variables of the person, with paths in that folder.
    env: &'static [(&'static str, &'static str)],
}

/// The workspace is a folder of the repository.
const FOLDERS: &[Kind] = &[
    Kind {
        name: "a folder of a repository",
        make: "git init -q -b main repo && fill repo && secrets repo",
        workspace: "repo/apps/web",
        env: &[],
    },
    Kind {
        name: "a folder of a linked work tree",
        make: "git init -q -b main repo && fill repo && secrets repo && git -C repo worktree add -q \
               ../tree -b tree && echo SECRET=1 | tee tree/.env > tree/libs/.env",
        workspace: "tree/apps/web",
        env: &[],
    },
];
/// A layout in which the git folder contains work trees: only parts of it are writable.
const INSIDE: &str = "a work tree in its bare repository";
/// The workspace is a whole work tree.
const TREES: &[Kind] = &[
    Kind {
        name: "a linked work tree",
        make: "git init -q -b main repo && fill repo && git -C repo worktree add -q ../tree -b tree",
        workspace: "tree",
        env: &[],
    },
    Kind {
        name: "a submodule",
        make: "git init -q -b main lib && fill lib && git init -q -b main repo && git -C repo -c \
               protocol.file.allow=always submodule --quiet add ../lib tree && git -C repo commit \
               -qm sub && cd repo/tree && git branch other && git branch packed && git pack-refs --all",
        workspace: "repo/tree",
        env: &[],
    },
    Kind {
        name: "a work tree of a bare repository",
        make: "git init -q -b main first && fill first && git clone -q --bare first repo.git && git \
               -C repo.git worktree add -q ../tree -b tree",
        workspace: "tree",
        env: &[],
    },
    Kind {
        name: "a work tree beside its bare repository",
        make: "git init -q -b main first && fill first && mkdir p && git clone -q --bare first \
               p/.bare && echo 'gitdir: ./.bare' > p/.git && git -C p worktree add -q tree",
        workspace: "p/tree",
        env: &[],
    },
    Kind {
        name: INSIDE,
        make: "git init -q -b main first && fill first && git clone -q --bare first p && git -C p \
               worktree add -q tree && git -C p worktree add -q -b beside beside && echo SECRET=1 > \
               p/beside/.env",
        workspace: "p/tree",
        env: &[],
    },
    Kind {
        name: "a git folder that GIT_DIR names",
        make: "git init -q -b main tree && fill tree && mv tree/.git dot.git",
        workspace: "tree",
        env: &[("GIT_DIR", "dot.git"), ("GIT_WORK_TREE", "tree")],
    },
];
/// Shell functions that make the first commits of a repository: ordinary files, and secrets of which
/// one is tracked.
const FILL: &str = "fill() { (cd \"$1\" && mkdir -p apps/web libs/a && echo web > apps/web/index.js && \
                    echo root > package.json && echo lib > libs/a/lib.js && printf '.env\\n.steps\\n' > \
                    .gitignore && git add -A && git commit -qm first && git branch other && git branch \
                    packed && git pack-refs --all); }; secrets() { (cd \"$1\" && echo TRACKED=1 > \
                    libs/.env.test && git add -A && git commit -qm env && echo SECRET=1 > .env && echo \
                    SECRET=1 > libs/.env); }; ";

/// A person with a project of some kind.
struct Project {
    home: Home,
    kind: Kind,
}

impl Project {
    fn new(kind: Kind) -> Self {
        let home = Home::empty();
        let config = "[user]\n\tname = p\n\temail = p@x\n[advice]\n\tdetachedHead = false\n";
        std::fs::write(home.dir.path().join(".gitconfig"), config).unwrap();
        let project = Self { home, kind };
        let made = project.bash(".", &format!("set -e; {FILL}{}", kind.make));
        assert_eq!(made, (true, String::new()), "{}", kind.name);
        project
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.project().canonicalize().unwrap().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.at(self.kind.workspace)
    }

    /// Runs a line as the person: whether it succeeded, and its output.
    fn bash(&self, folder: &str, line: &str) -> (bool, String) {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.at(folder)).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", self.home.dir.path());
        if folder == self.kind.workspace {
            command.envs(self.kind.env.iter().map(|(name, path)| (name, self.at(path))));
        }
        let ran = command.output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        (ran.status.success(), format!("{out}{err}"))
    }

    /// Runs a line as the person, in the workspace.
    fn git(&self, line: &str) -> String {
        self.bash(self.kind.workspace, line).1
    }

    /// The model runs these commands as scripts, which policy does not see through.
    async fn scripts(&self, level: &str, lines: &[&str]) -> (Ran, Vec<String>) {
        std::fs::create_dir_all(self.workspace().join(".steps")).unwrap();
        let mut calls = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            std::fs::write(self.workspace().join(format!(".steps/{n}.sh")), line).unwrap();
            calls.push(format!("bash .steps/{n}.sh 2>&1"));
        }
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        self.model(level, &[], &calls).await
    }

    /// The model runs these commands, one call each; returns what it saw of each.
    async fn model(&self, level: &str, args: &[&str], lines: &[&str]) -> (Ran, Vec<String>) {
        let call =
            |line: &&str| Say::calls(&[("shell", &json!({ "command": line }).to_string())]).into();
        let mut script: Vec<_> = lines.iter().map(call).collect();
        script.push(Say::text("done").into());
        let server = ScriptedServer::start(script).await;
        self.home.configure(&format!(
            "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{}\"\napi_key_env = \
             \"SCRIPT_KEY\"\n",
            server.base_url()
        ));
        let mut command = self.home.command(&[&["run", "go"], args].concat());
        command.current_dir(self.workspace()).env("DUNNOCK_SANDBOX_LEVEL", level);
        command.envs(self.kind.env.iter().map(|(name, path)| (name, self.at(path))));
        let ran = crate::ran(command).await;
        let last = server.requests().last().cloned().unwrap_or_default();
        let messages = last["messages"].as_array().cloned().unwrap_or_default();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        let results = results.map(|message| message["content"].as_str().unwrap().to_owned());
        (ran, results.collect())
    }
}

const LEVELS: [&str; 3] = ["A", "B", "C"];

/// UX-B4: siblings and files at the top seemed deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_a_repository_does_not_look_deleted() {
    for kind in FOLDERS {
        for level in LEVELS {
            let project = Project::new(*kind);
            let lines = [
                "git status --short && git log --oneline | wc -l",
                "cat ../../package.json ../../libs/a/lib.js ../../libs/.env.test && ls ../../libs",
                "cat ../../.env; cat ../../libs/.env; true",
                "echo x > ../../new; echo x >> ../../package.json; true",
                "echo x > here && cat here",
            ];
            let (ran, seen) = project.scripts(level, &lines).await;
            assert_eq!(ran.code, 0, "{}, {level}: {}", kind.name, ran.err);
            assert_eq!(seen[0].trim(), "2", "{}, {level}", kind.name);
            assert!(seen[1].starts_with("root\nlib\nTRACKED=1\na"), "{level}: {}", seen[1]);
            assert!(!seen[2].contains("SECRET=1"), "{}, {level}: {}", kind.name, seen[2]);
            assert_eq!(seen[4].trim(), "x");
            assert_eq!(project.git("git status --short").trim(), "?? here", "{level}");
            println!("{}, level {level}: true status, readable, closed for writes", kind.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_changes_a_repository_around_the_workspace_only_with_a_yes() {
    let work = "echo x > here && git add here && git commit -qm second";
    for kind in FOLDERS {
        for level in LEVELS {
            let project = Project::new(*kind);
            let head = project.git("git rev-parse HEAD other");
            let (ran, _) = project.model(level, &[], &[work]).await;
            assert_eq!(ran.code, 3, "{}, {level}: {}", kind.name, ran.err);
            let why = "git commit changes the repository, which is larger than this folder";
            assert!(ran.err.contains(why), "{level}: {}", ran.err);
            // What policy does not see fails before it changes anything.
            let hidden = "git add -A; git commit -qm x; git branch -D other; git switch other";
            let (ran, seen) = project.scripts(level, &[hidden]).await;
            assert_eq!(ran.code, 0, "{}, {level}: {}", kind.name, ran.err);
            assert!(seen[0].contains("[sandbox: level"), "{level}: {}", seen[0]);
            assert_eq!(project.git("git rev-parse HEAD other"), head, "{}, {level}", kind.name);
            assert_eq!(project.git("git status --short"), "", "{}, {level}", kind.name);
            // A yes is for the whole repository.
            let lines = [work, "git switch -q other && git switch -q -", "git status --short"];
            let (ran, seen) = project.model(level, &["--approve", "all"], &lines).await;
            assert_eq!(ran.code, 0, "{}, {level}: {} {seen:?}", kind.name, ran.err);
            assert!(seen.iter().all(|text| !text.contains("[exit")), "{level}: {seen:#?}");
            assert_eq!(project.git("git log -1 --format=%s").trim(), "second", "{seen:?}");
            assert_eq!(project.git("git status --short"), "", "{}, {level}", kind.name);
            println!("{}, level {level}: asks, fails unasked, works with a yes", kind.name);
        }
    }
}

/// UX-A5: git failed in work trees, because the repository was read-only.
#[tokio::test(flavor = "multi_thread")]
async fn git_works_in_work_trees_and_submodules() {
    let lines = [
        "echo x > new && git add new && git commit -qm second",
        "echo y >> new && git stash push -q && git stash pop -q && git checkout -q -- new",
        "git switch -q other && git switch -q -",
        "git switch -qc topic && echo z > z && git add z && git commit -qm topic && git switch -q - \
         && git merge -q topic",
        "git branch -d topic",
        "git gc -q && git fsck && git status --short",
    ];
    for kind in TREES {
        for level in LEVELS {
            let project = Project::new(*kind);
            // There, only the folders that a commit needs are writable, not the git folder itself.
            let inside = kind.name == INSIDE;
            if inside && level != "A" {
                continue;
            }
            let lines = if inside { &lines[..3] } else { &lines[..] };
            let (ran, seen) = project.scripts(level, lines).await;
            let said = format!("{}, {level}: {} {} {seen:#?}", kind.name, ran.out, ran.err);
            assert_eq!(ran.code, 0, "{said}");
            assert!(seen.iter().all(|text| !text.contains("[exit")), "{said}");
            assert_eq!(seen.len(), lines.len(), "{said}");
            let log = project.git("git log --format=%s | head -2; git status --short");
            let expected = if inside { "second\nfirst\n" } else { "topic\nsecond\n" };
            assert_eq!(log, expected, "{said}");
            println!("{}, level {level}: {} pieces of work, unasked", kind.name, lines.len());
        }
    }
}

/// What a command plants in the git folder `$G`, or in that of the work tree, `$D`.
const PLANTS: &[(&str, &str)] = &[
    ("a setting", "printf '[core]\\n\\tfsmonitor = EVIL\\n' >> $G/config"),
    ("a setting, by git", "git config core.fsmonitor EVIL"),
    (
        "a new configuration",
        "cp $G/config c; printf '[core]\\n\\tfsmonitor = EVIL\\n' >> c; mv -f c $G/config",
    ),
    (
        "a hook",
        "mkdir -p $G/hooks; printf '#!/bin/sh\\nEVIL\\n' > $G/hooks/pre-commit; chmod +x $G/hooks/pre-commit",
    ),
    (
        "another folder of hooks",
        "mv $G/hooks $G/h; mkdir $G/hooks; printf '#!/bin/sh\\nEVIL\\n' > $G/hooks/pre-commit; chmod +x $G/hooks/*",
    ),
    (
        "a configuration of the work tree",
        "printf '[core]\\n\\tfsmonitor = EVIL\\n' > $D/config.worktree",
    ),
    (
        "another common folder",
        "cp -r $G evil; printf '[core]\\n\\tfsmonitor = EVIL\\n' >> evil/config; echo $PWD/evil > $D/commondir",
    ),
    (
        "another git folder",
        "cp -r $G evil; printf '[core]\\n\\tfsmonitor = EVIL\\n' >> evil/config; echo gitdir: $PWD/evil > .git",
    ),
    (
        "a git folder that is moved away",
        "cp -r $D e; mv $D $D.x; mkdir $D; cp -r e/. $D; printf '[core]\\n\\tfsmonitor = EVIL\\n' > $D/config.worktree; cp -r $G evil; printf '[core]\\n\\tfsmonitor = EVIL\\n' >> evil/config; echo $PWD/evil > $D/commondir",
    ),
    (
        "a stopped rebase",
        "h=$(git rev-parse HEAD); mkdir $D/rebase-merge && cd $D/rebase-merge && echo $h > onto && echo $h > orig-head && echo refs/heads/other > head-name && touch interactive && echo 'exec EVIL' > git-rebase-todo && : > done && echo 0 > msgnum && echo 1 > end",
    ),
    (
        "a submodule",
        "mkdir -p $G/modules/m; cp -r $G/HEAD $G/objects $G/refs $G/modules/m; printf '[core]\\n\\tfsmonitor = EVIL\\n\\tworktree = '$PWD'/m\\n' > $G/modules/m/config; mkdir m; echo gitdir: $G/modules/m > m/.git; git add m",
    ),
    (
        "another work tree",
        "mkdir -p $G/worktrees/w w; cp $G/HEAD $G/worktrees/w; cp -r $G evil; printf '[core]\\n\\tfsmonitor = EVIL\\n' >> evil/config; echo $PWD/evil > $G/worktrees/w/commondir; echo $PWD/w/.git > $G/worktrees/w/gitdir; echo gitdir: $G/worktrees/w > w/.git",
    ),
    (
        "a folder in the git folder that is no submodule",
        "mkdir $G/evil w; cp -r $G/HEAD $G/objects $G/refs $G/evil; printf '[core]\\n\\tfsmonitor = \
         EVIL\\n\\tworktree = '$PWD'/w\\n' > $G/evil/config; echo gitdir: $G/evil > w/.git; git \
         update-index --add --cacheinfo 160000,$(git rev-parse HEAD),w",
    ),
    (
        "a submodule that has the name of another folder",
        "mkdir -p $G/modules/hooks w; cp -r $G/HEAD $G/objects $G/refs $G/modules/hooks; printf \
         '[core]\\n\\tfsmonitor = EVIL\\n\\tworktree = '$PWD'/w\\n' > $G/modules/hooks/config; echo \
         gitdir: $G/modules/hooks > w/.git; git update-index --add --cacheinfo 160000,$(git rev-parse \
         HEAD),w",
    ),
    (
        "a submodule of the work tree",
        "mkdir -p $D/modules/m m; cp -r $G/HEAD $G/objects $G/refs $D/modules/m; printf \
         '[core]\\n\\tfsmonitor = EVIL\\n\\tworktree = '$PWD'/m\\n' > $D/modules/m/config; echo gitdir: \
         $D/modules/m > m/.git; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),m",
    ),
    (
        "a file that the configuration includes",
        "printf '[core]\\n\\tfsmonitor = EVIL\\n' >> $G/config.local",
    ),
    (
        "the work tree beside this one",
        "cp -r $G evil; printf '[core]\\n\\tfsmonitor = EVIL\\n' >> evil/config; echo gitdir: \
         $PWD/evil > ../beside/.git",
    ),
    (
        "attributes",
        "mkdir -p $G/info; echo '* filter=f' > $G/info/attributes; git config filter.f.clean EVIL",
    ),
    (
        "a file of protected names",
        "mkdir -p .vscode; echo EVIL > .vscode/tasks.json; echo EVIL > AGENTS.md",
    ),
];

/// What the person does afterwards, in each folder.
const USES: &str = "git status; git add -A; git commit -qm mine --allow-empty; git rebase --continue; \
                    git stash; for d in w m evil; do (cd $d 2>/dev/null && git status); done";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_planted_in_a_git_folder_elsewhere() {
    let mut reached = Vec::new();
    let mut count = 0;
    let both = FOLDERS.iter().chain(TREES);
    for (n, kind) in both.enumerate() {
        // The kinds differ in where the folders are: not each is tried at each level, and two that
        // are like others get every third attack.
        let levels: &[&str] = match n {
            1 => &["C"],
            2 => &LEVELS,
            _ => &["A"],
        };
        let every = if kind.make.contains("--bare") && kind.name != INSIDE { 3 } else { 1 };
        for level in levels {
            for (name, plant) in PLANTS.iter().step_by(every) {
                let project = Project::new(*kind);
                // In a bare repository, this needs another layout of its settings.
                if !kind.make.contains("--bare") {
                    project.git("git config extensions.worktreeConfig true");
                }
                project.git(
                    "g=$(git rev-parse --path-format=absolute --git-common-dir); echo '[advice]' > \
                     $g/config.local; git config include.path config.local",
                );
                let canary = project.at("canary");
                let evil = format!("touch {}", canary.display());
                let set = "G=$(git rev-parse --path-format=absolute --git-common-dir); D=$(git \
                           rev-parse --path-format=absolute --git-dir); ";
                let line = format!("{set}{}", plant.replace("EVIL", &evil));
                let (ran, seen) = project.scripts(level, &[&line]).await;
                assert_eq!(ran.code, 0, "{name}: {} {seen:?}", ran.err);
                let top = project.kind.workspace.split('/').next().unwrap();
                for folder in [project.kind.workspace, top, "p/beside"] {
                    if project.at(folder).is_dir() {
                        project.bash(folder, USES);
                    }
                }
                count += 1;
                let left = ["vscode", "AGENTS"].iter().any(|word| plant.contains(word))
                    && project.workspace().join(".vscode/tasks.json").exists();
                if canary.exists() || left {
                    reached.push(format!("{}, {level}: {name}: {seen:?}", kind.name));
                }
            }
        }
    }
    println!("{count} runs, {} reached", reached.len());
    assert!(reached.is_empty(), "{reached:#?}");
}

/// A yes for a git command is no yes for what git runs later.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_the_whole_repository_plants_nothing() {
    for level in LEVELS {
        let project = Project::new(FOLDERS[0]);
        let canary = project.at("canary");
        let line = format!(
            "printf '[core]\\n\\tfsmonitor = touch {0}\\n' >> ../../.git/config; printf \
             '#!/bin/sh\\ntouch {0}\\n' > ../../.git/hooks/pre-commit; chmod +x ../../.git/hooks/*; mkdir \
             -p ../../.vscode ../../.dunnock; echo '{{}}' > ../../.vscode/tasks.json; echo evil > \
             ../../AGENTS.md; cat ../../.e*v ../../libs/.e*v; echo plain > ../../plain; true",
            canary.display()
        );
        std::fs::create_dir_all(project.workspace().join(".steps")).unwrap();
        std::fs::write(project.workspace().join(".steps/plant.sh"), line).unwrap();
        let call = "git add -A; bash .steps/plant.sh";
        let (ran, seen) = project.model(level, &["--approve", "all"], &[call]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        project.bash("repo", USES);
        assert!(!canary.exists(), "{level}: {seen:?}");
        for name in ["repo/.vscode/tasks.json", "repo/AGENTS.md"] {
            assert!(!project.at(name).exists(), "{level}, {name}: {seen:?}");
        }
        assert!(level != "A" || !seen[0].contains("SECRET=1"), "{seen:?}");
        assert!(project.at("repo/plain").exists(), "{seen:?}");
        println!("level {level}: nothing planted, an ordinary file written");
    }
}

/// A `.git` file can come from anywhere: it does not open other repositories.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_repositories_stay_closed() {
    let victim = "git init -q -b main victim && fill victim && mkdir work";
    let layouts = [
        ("no reference back", "echo gitdir: $PWD/victim/.git > work/.git"),
        (
            "a copied work tree file",
            "git -C victim worktree add -q ../tree && cp tree/.git work/.git",
        ),
        (
            "a common folder elsewhere",
            "mkdir -p fake/worktrees/w fake/objects fake/refs && cp victim/.git/HEAD fake/ && cp \
             victim/.git/HEAD fake/worktrees/w/ && echo $PWD/victim/.git > fake/worktrees/w/commondir \
             && echo $PWD/work/.git > fake/worktrees/w/gitdir && echo gitdir: $PWD/fake/worktrees/w > \
             work/.git",
        ),
        ("a link", "ln -s $PWD/victim/.git work/.git"),
        ("an empty folder above", "mkdir .git"),
    ];
    for (name, make) in layouts {
        for level in LEVELS {
            let kind = Kind { name, make: victim, workspace: "work", env: &[] };
            let project = Project::new(kind);
            let made = project.bash(".", &format!("set -e; {make}"));
            assert!(made.0, "{name}: {}", made.1);
            let victim = project.at("victim");
            let lines = [format!(
                "cat {0}/package.json {0}/.git/config {0}/.git/HEAD; echo x > {0}/x; echo x > \
                 {0}/.git/x; git commit -qm x --allow-empty; true",
                victim.display()
            )];
            let (ran, seen) = project.scripts(level, &[&lines[0]]).await;
            assert_eq!(ran.code, 0, "{name}: {}", ran.err);
            let read = ["root", "[core]", "refs/heads"].iter().any(|word| seen[0].contains(word));
            assert!(!read, "{name}, {level}: {}", seen[0]);
            assert!(!victim.join("x").exists() && !victim.join(".git/x").exists(), "{name}");
            println!("{name}, level {level}: closed");
        }
    }
}

/// The home folder can be a repository: that does not open it.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_in_the_home_folder_does_not_open_it() {
    let make = "git init -q -b main \"$HOME\" && echo private > \"$HOME/notes.txt\" && mkdir work && echo x > work/f";
    for level in LEVELS {
        let kind = Kind { name: "home", make, workspace: "work", env: &[] };
        let project = Project::new(kind);
        let notes = project.home.dir.path().canonicalize().unwrap().join("notes.txt");
        let line = format!("cat {}", notes.display());
        let (ran, seen) = project.model(level, &[], &[&line]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!seen[0].contains("private"), "{level}: {}", seen[0]);
    }
}

/// What a command deletes in a git folder elsewhere is reported, and undo restores it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_branch_of_a_git_folder_elsewhere_comes_back() {
    for kind in TREES.iter().filter(|kind| kind.name != INSIDE) {
        let project = Project::new(*kind);
        let before = project.git("git for-each-ref refs/heads");
        let line = "git branch -D other packed";
        let (ran, seen) = project.scripts("A", &[line]).await;
        assert_eq!(ran.code, 0, "{}: {}", kind.name, ran.err);
        assert!(seen[0].contains("[git history: "), "{}: {}", kind.name, seen[0]);
        assert_ne!(project.git("git for-each-ref refs/heads"), before, "{}", kind.name);
        let mut undo = project.home.command(&["undo"]);
        undo.current_dir(project.workspace());
        undo.envs(project.kind.env.iter().map(|(name, path)| (name, project.at(path))));
        let ran = crate::ran(undo).await;
        assert_eq!(ran.code, 0, "{}: {}", kind.name, ran.err);
        assert_eq!(project.git("git for-each-ref refs/heads"), before, "{}", kind.name);
    }
}

/// The repository around the workspace stayed open, and its secrets with it, after a command had
/// created a `.git` in the workspace.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_git_folder_does_not_open_the_secrets_around_it() {
    for level in LEVELS {
        let project = Project::new(FOLDERS[0]);
        let lines = ["mkdir .git", "cat ../../.env ../../libs/.env; true"];
        let (ran, seen) = project.scripts(level, &lines).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!seen[1].contains("SECRET=1"), "{level}: {}", seen[1]);
    }
}

/// Files at the top that were replaced became unreadable, because the rules name the old ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_file_around_the_workspace_stays_readable() {
    for level in LEVELS {
        let project = Project::new(FOLDERS[0]);
        let work = "git switch -qc new && echo two > ../../package.json.new && mv \
                    ../../package.json.new ../../package.json";
        let lines = ["cat ../../package.json", work, "cat ../../package.json"];
        let (ran, seen) = project.model(level, &["--approve", "all"], &lines).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!((seen[0].trim(), seen[2].trim()), ("root", "two"), "{level}: {seen:?}");
    }
}
