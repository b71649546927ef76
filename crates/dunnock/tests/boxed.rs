//! The box as people meet it: what works in it, what it leaves behind, what happens when it cannot
//! be made.

use crate::cases::world::{World, shell};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use serde_json::json;
use std::process::Command;

/// A run of these commands at a level.
async fn run_at(world: &World, level: &str, lines: &[&str]) -> crate::cases::world::Came {
    let mut script: Vec<Served> = lines
        .iter()
        .map(|l| Say::calls(&[("shell", &json!({"command": l}).to_string())]).into())
        .collect();
    script.push(Say::text("done").into());
    let server = ScriptedServer::start(script).await;
    world.serve(&server);
    let mut command = world.command(&["run", "go"]);
    command.env("DUNNOCK_SANDBOX_LEVEL", level);
    World::came(&server, crate::ran(command).await)
}

fn results(came: &crate::cases::world::Came) -> Vec<String> {
    let last: serde_json::Value = serde_json::from_str(came.sent.lines().last().unwrap()).unwrap();
    let messages = last["messages"].as_array().unwrap().clone();
    messages
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].as_str().unwrap().to_owned())
        .collect()
}

const PROJECTS: [(&str, &str); 4] = [
    ("cargo", "cargo test"),
    ("npm", "node server_test.js"),
    ("go", "go test ./..."),
    ("pytest", "python3 -m pytest -q net_test.py"),
];

fn with_servers(world: &World) {
    world.put(
        "server_test.js",
        "const s=require('net').createServer(c=>c.end('x'));s.on('error',e=>{console.error(e);\
         process.exit(1)});s.listen(0,'127.0.0.1',()=>require('net').connect(s.address().port,'\
         127.0.0.1').on('data',()=>{console.log('served');process.exit(0)}).on('error',\
         e=>{console.error(e);process.exit(1)}))\n",
    );
    world.put(
        "net_test.py",
        "import socket\ndef test_loopback():\n    l = socket.socket()\n    l.bind(('127.0.0.1', \
         0))\n    l.listen()\n    c = socket.socket()\n    c.connect(l.getsockname())\n",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_whose_tests_start_servers_pass_at_a_unasked() {
    let world = World::new("projects");
    with_servers(&world);
    let came = run_at(&world, "A", &PROJECTS.map(|(_, line)| line)).await;
    assert_eq!(came.code, 0, "{}", came.err);
    for ((name, _), told) in PROJECTS.iter().zip(results(&came)) {
        assert!(!told.contains("[exit"), "{name}: {told}");
        println!("{name} at A: passes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_c_they_fail_unasked_and_are_told_the_way_up() {
    let world = World::new("projects-c");
    with_servers(&world);
    let came = run_at(&world, "C", &PROJECTS.map(|(_, line)| line)).await;
    assert_eq!(came.code, 0, "nothing asks: {}", came.err);
    for ((name, _), told) in PROJECTS.iter().zip(results(&came)) {
        assert!(
            told.contains("[exit") && told.contains("level C") && told.contains("dunnock doctor"),
            "{name}: {told}"
        );
        println!("{name} at C: {}", told.lines().last().unwrap_or_default());
    }
    let plain = run_at(
        &world,
        "C",
        &["cargo build", "git log -1 --format=%s", "echo x > new.txt", "python3 script.py"],
    )
    .await;
    assert_eq!(
        (plain.code, world.home.read("new.txt").as_str()),
        (0, "x\n"),
        "what needs no socket works: {}",
        plain.err
    );
    assert!(results(&plain).iter().all(|told| !told.contains("[exit")), "{:?}", results(&plain));
}

#[tokio::test(flavor = "multi_thread")]
async fn git_works_at_a_unasked_and_a_planted_hook_runs_nowhere() {
    let world = World::new("git");
    world.bash("git checkout -q README.md");
    let lines = [
        "git switch -c work && echo 1 > one.txt && git add one.txt && git commit -m one",
        "git switch main && echo m > m.txt && git add m.txt && git commit -m m && git switch work \
         && git rebase main",
        "echo dirty >> a && git stash && git stash pop && git status --short",
        "mkdir -p .git/hooks && printf '#!/bin/sh\\ntouch ~/hooked\\n' > .git/hooks/post-commit \
         && chmod +x .git/hooks/post-commit",
        "git config core.hooksPath h",
        "git worktree list; git tag v1; git log --oneline -3; git fsck",
    ];
    let came = run_at(&world, "A", &lines[..4]).await;
    assert_eq!(came.code, 0, "{}", came.err);
    let told = results(&came);
    assert!(told[..3].iter().all(|t| !t.contains("[exit")), "{told:?}");
    assert!(told[3].contains("Read-only file system"), "{}", told[3]);
    // The person commits: nothing of the command's runs.
    world.bash("git commit -q --allow-empty -m mine");
    assert!(!world.home.dir.path().join("hooked").exists());
    let asks = run_at(&world, "A", &lines[4..5]).await;
    assert_eq!(asks.code, 3, "what changes git itself asks: {}", asks.err);
    let more = run_at(&world, "A", &lines[5..]).await;
    assert_eq!(more.code, 0, "{}", more.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_others_act_on_cannot_be_made_and_nothing_is_left_behind() {
    for level in ["A", "B", "C"] {
        let world = World::new(&format!("missing-{level}"));
        // Its text does not tell.
        let line = "d=.vs; h=.hu; e=.en; mkdir -p ${d}code ${h}sky && echo x > \
                    ${d}code/tasks.json; echo x > ${e}vrc; ls -a";
        let came = run_at(&world, level, &[line]).await;
        assert_eq!(came.code, 0, "{level}: {}", came.err);
        for name in [".vscode", ".husky", ".envrc"] {
            assert!(!world.home.project().join(name).exists(), "{level}: {name} was left");
        }
        assert!(
            came.told.contains("protected files; reverted unless noted: "),
            "{level}: it is said: {}",
            came.told
        );
    }
    // What is there is read-only at A, and put back below it.
    for level in ["A", "B", "C"] {
        let world = World::new(&format!("there-{level}"));
        world.put(".vscode/settings.json", "{}\n");
        let came = run_at(
            &world,
            level,
            &["d=.vs; echo bad > ${d}code/settings.json; rm -rf ${d}code; true"],
        )
        .await;
        assert_eq!(came.code, 0, "{level}: {}", came.err);
        assert_eq!(world.home.read(".vscode/settings.json"), "{}\n", "{level}: {}", came.told);
    }
}

/// Holds T11: commands cannot write, edit tools can, target/ is open; at box levels A and C.
#[tokio::test(flavor = "multi_thread")]
async fn tools_only_means_that_commands_cannot_write_here() {
    let world = World::new("tools-only");
    let calls = [
        shell("echo bad >> a.txt"),
        (
            "write_file".to_owned(),
            json!({"path": "a.txt", "content": "mine\n", "overwrite": true}).to_string(),
        ),
        shell("touch target/built && echo > /tmp/x && echo fine"),
    ];
    let mut script: Vec<Served> =
        calls.iter().map(|(t, a)| Say::calls(&[(t.as_str(), a.as_str())]).into()).collect();
    script.push(Say::text("done").into());
    for level in ["A", "C"] {
        world.put("a.txt", "one\n");
        let server = ScriptedServer::start(script.clone()).await;
        world.serve(&server);
        let mut command = world.command(&["run", "go"]);
        command.env("DUNNOCK_EDITS", "tools-only").env("DUNNOCK_SANDBOX_LEVEL", level);
        let came = World::came(&server, crate::ran(command).await);
        assert_eq!(
            (came.code, world.home.read("a.txt").as_str()),
            (0, "mine\n"),
            "{level}: {}",
            came.err
        );
        assert!(came.told.contains("[exit 1]"), "{level}: {}", came.told);
        assert!(
            world.home.project().join("target/built").exists(),
            "{level}: build folders are open"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_approved_to_run_outside_the_sandbox_is_recorded_as_unsandboxed() {
    let world = World::new("outside");
    let calls = ["docker --version", "pwd"].map(|line| json!({"command": line}).to_string());
    let calls: Vec<_> = calls.iter().map(|args| ("shell", args.as_str())).collect();
    let server = ScriptedServer::start(vec![Say::calls(&calls).into(), Say::text("done").into()]);
    let server = server.await;
    world.serve(&server);
    let asked = world.ran(&["run", "go"]).await;
    assert_eq!(asked.code, 3, "{}", asked.err);
    let id = world.home.newest().await;
    let approved = world.ran(&["approve", &id, "1.0", "--go"]).await;
    assert_eq!(approved.code, 0, "{}", approved.err);
    for (call, label) in [("1.0", "unsandboxed"), ("1.1", "sandbox level A")] {
        let why = world.ran(&["why", &id, call]).await;
        assert!(why.out.contains(label), "{call}: {}{}", why.out, why.err);
    }
}

/// G509, G510: no launcher, or one that is killed, is an error of the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_that_is_missing_or_killed_runs_nothing_bare() {
    use dunnock_ports::{CancellationToken, ToolCall, Tools as _};
    use dunnock_proto::{
        CallId, CallPart, Class, Isolation, Outcome, Recovery, Role, SessionId, Step,
    };
    let world = World::new("launcher");
    let toolbox = dunnock_tools::Toolbox::new(
        Default::default(),
        std::path::Path::new("/nonexistent/launcher"),
        &[],
    );
    let part = CallPart {
        id: "c".into(),
        tool: "shell".into(),
        args: r#"{"command":"echo x >> ran"}"#.into(),
        sent: None,
        recovered: false,
        fault: None,
    };
    let id = CallId { step: Step(1), index: 0 };
    let call = dunnock_core::Call {
        stage: dunnock_core::Stage::Allowed,
        ..dunnock_core::Call::new(
            id,
            part.into(),
            Class::Command,
            Recovery::Unknown,
            Some(Role::Work),
        )
    };
    let workspace = world.home.project().display().to_string();
    for level in [Isolation::A, Isolation::D] {
        let job = ToolCall {
            session: SessionId::from_random([1; 16]),
            workspace: workspace.as_str().into(),
            call: call.clone(),
            isolation: level,
            open_hosts: Default::default(),
            closes_hosts: false,
            seen: Default::default(),
            hidden_folder: None,
            time_left: None,
        };
        let (finished, _) =
            toolbox.run(job, std::sync::Arc::new(|_| {}), CancellationToken::default()).await;
        assert_eq!(
            (finished.outcome, world.home.read("ran").as_str()),
            (Outcome::Failed, ""),
            "{}",
            finished.shown
        );
    }
    // Killed at any moment of a command: what was started is boxed, or did not start.
    for wait in [0u64, 1, 3, 6, 12] {
        let calls: Vec<Served> = vec![
            Say::calls(&[(
                "shell",
                r#"{"command":"echo x > /tmp/dunnock-escaped-$PPID; echo y >> ~/escaped; sleep 0.1"}"#,
            )])
            .into(),
            Say::text("done").into(),
        ];
        let server = ScriptedServer::start(calls).await;
        world.serve(&server);
        let mut child = world
            .command(&["run", "go"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20 + wait * 3));
            let _ = Command::new("pkill")
                .args(["-KILL", "-f", "__launch"])
                .arg("-P")
                .arg(child.id().to_string())
                .status();
            child.wait().unwrap()
        });
        tokio::task::spawn_blocking(move || killer.join().unwrap()).await.unwrap();
        assert!(!world.home.dir.path().join("escaped").exists(), "a bare run after {wait}");
    }
}

/// Each system call with which a box is made fails once, the first, second, ... time it is made:
/// nothing runs bare.
#[tokio::test(flavor = "multi_thread")]
async fn a_box_that_fails_half_way_runs_nothing_bare() {
    let calls = [
        "clone",
        "unshare",
        "mount",
        "mount_setattr",
        "open_tree",
        "move_mount",
        "mkdir",
        "landlock_create_ruleset",
        "landlock_add_rule",
        "landlock_restrict_self",
        "seccomp",
        "capset",
        "prctl",
        "setsid",
        "chdir",
        "dup2",
        "close_range",
        "ioctl",
        "openat",
        "open",
        "socket",
        "unlink",
    ];
    let world = World::new("inject");
    let (mut made, mut refused, mut boxed) = (0, 0, 0);
    for call in calls {
        for when in [1, 2, 3, 5, 9, 17] {
            let mut traced = Command::new("strace");
            traced.args([
                "-f",
                "--seccomp-bpf",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                &format!("trace={call}"),
            ]);
            traced.args(["-e", &format!("inject={call}:error=EPERM:when={when}"), "--"]);
            let line = "echo ran; echo x > ~/escaped; cat ../.ssh/id_rsa";
            let plain = world.command(&["sandbox", "run", "--level", "A", "bash", "-c", line]);
            traced
                .arg(plain.get_program())
                .args(plain.get_args())
                .current_dir(world.home.project())
                .env_clear();
            traced.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
            let ran = crate::ran(traced).await;
            assert!(
                !world.home.dir.path().join("escaped").exists(),
                "{call} {when}: bare: {}{}",
                ran.out,
                ran.err
            );
            assert!(
                !ran.out.contains(crate::cases::world::SECRET),
                "{call} {when}: bare: {}",
                ran.out
            );
            made += 1;
            match ran.out.contains("ran") {
                true => boxed += 1,
                false => refused += 1,
            }
        }
    }
    println!(
        "{made} boxes with a call that failed: {refused} refused, {boxed} boxed all the same, 0 \
         bare"
    );
    assert!(refused >= 30, "{refused}");
}

/// After many commands everything outside of the folder is as it was.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_commands_leave_nothing_behind() {
    let world = World::new("many");
    let lines: Vec<String> = (0..20)
        .map(|n| {
            format!("for i in 1 2 3 4 5 6 7 8 9 10; do echo {n} > x; done; (sleep 300 &) ; rm x")
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let listing = || {
        let out = Command::new("find")
            .arg(world.home.project())
            .args(["-printf", "%p %y %m %s\n"])
            .output()
            .unwrap();
        let mut lines: Vec<String> =
            String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect();
        lines.retain(|l| !l.contains("/.git/"));
        lines.sort();
        lines
    };
    let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
    let count = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|e| {
                std::fs::read_link(e.path().join("cwd"))
                    .is_ok_and(|cwd| cwd.starts_with(world.home.dir.path()))
            })
            .count()
    };
    let (before, mounted) = (listing(), mounts());
    for _ in 0..10 {
        let came = run_at(&world, "A", &lines).await;
        assert_eq!(came.code, 0, "{}", came.err);
    }
    let began = std::time::Instant::now();
    while count() > 0 && began.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!((listing(), mounts(), count()), (before, mounted, 0));
    println!("200 boxed commands: same listing, same mounts, no process");
}

/// The probes at every level, as whoever runs this: what is open at each is what the page says.
#[tokio::test(flavor = "multi_thread")]
async fn every_level_holds_what_it_says() {
    let world = World::new("levels");
    for (level, open) in [("A", vec![]), ("B", MODES.to_vec()), ("C", MODES.to_vec())] {
        let ran = world.ran(&["sandbox", "prove", "--json", "--level", level]).await;
        let proof: serde_json::Value =
            serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err));
        println!(
            "level {level}: {} probes, {} held, private {}, open {}",
            proof["probes"], proof["blocked"], proof["private"], proof["open"]
        );
        assert_eq!(proof["open"], json!(open), "level {level}");
    }
}

const MODES: [&str; 4] = ["chmod_outside", "chown_outside", "utime_outside", "setxattr_outside"];

/// The same with the uid of an ordinary user, which is the victim's own.
#[test]
fn every_level_holds_as_an_ordinary_user() {
    let told = dunnock_testkit::ordinary::run(
        "boxed::every_level_holds_what_it_says",
        &[("DUNNOCK_BIN", env!("CARGO_BIN_EXE_dunnock"))],
    );
    told.lines().filter(|l| l.starts_with("level")).for_each(|l| println!("ordinary user, {l}"));
}

/// Ways around the box that a review found, each as it was found. Afterwards the person uses git
/// outside, and nothing runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_git_acts_on_cannot_be_led_elsewhere() {
    let plants = [
        (
            "commondir",
            "mkdir evil; cp -r .git/config .git/objects .git/refs .git/HEAD evil/; printf \
             '[core]\\n\\tfsmonitor = touch HARM\\n' >> evil/config; c=common; echo ../evil > \
             .git/${c}dir",
        ),
        (
            "a nested repository",
            "git init -q sub2; g=.git; printf '[core]\\n\\tfsmonitor = touch HARM\\n' >> \
             sub2/$g/config; git -C sub2 commit -q --allow-empty -m x; git add sub2",
        ),
        (
            "a nested repository that was there",
            "mv nested old; cp -r old nested; g=.git; printf '[core]\\n\\tfsmonitor = touch \
             HARM\\n' >> nested/$g/config; git add nested",
        ),
        (
            "a submodule's own folder",
            "m=.git/modules/libs/foo; printf '[core]\\n\\tfsmonitor = touch HARM\\n' >> \
             $m/config; mkdir -p $m/hooks; cp p.sh $m/hooks/post-checkout",
        ),
    ];
    for (name, line) in plants {
        let world = World::new("plant");
        world.bash(
            "git init -q nested && git -C nested -c user.name=p -c user.email=p@x commit -q \
             --allow-empty -m n; mkdir -p .git/modules/libs; git init -q --bare \
             .git/modules/libs/foo; rm -rf .git/modules/libs/foo/hooks",
        );
        let harm = world.canary.display().to_string();
        let line = line.replace("HARM", &harm);
        let came = run_at(&world, "A", &[&line]).await;
        assert_eq!(came.code, 0, "{name}: {}", came.err);
        world.bash(
            "git status >/dev/null 2>&1 || true; git -C nested status >/dev/null 2>&1 || true; \
             git diff >/dev/null 2>&1 || true",
        );
        assert!(!world.canary.exists(), "{name}: {}", came.told);
        let hooks = std::fs::read_dir(world.home.project().join(".git/modules/libs/foo/hooks"))
            .map_or(0, Iterator::count);
        let config = world.home.read(".git/modules/libs/foo/config");
        assert!(hooks == 0 && !config.contains("fsmonitor"), "{name}: {config}");
    }
    // A file in place of a repository, where there was none; and one that a repository has already.
    for setup in ["rm -rf .git", "mv .git ../real.git; echo 'gitdir: ../real.git' > .git"] {
        let world = World::new("gitfile");
        world.bash(setup);
        let before = std::fs::read_to_string(world.home.project().join(".git")).ok();
        let came = run_at(&world, "A", &["mkdir evil; g=.gi; echo 'gitdir: ./evil' > ${g}t"]).await;
        assert_eq!(came.code, 0, "{setup}: {}", came.err);
        assert_eq!(
            std::fs::read_to_string(world.home.project().join(".git")).ok(),
            before,
            "{setup}: {}",
            came.told
        );
    }
}

/// What is put back after a command is put back through no link that the command made.
#[tokio::test(flavor = "multi_thread")]
async fn putting_back_follows_no_link() {
    for level in ["A", "B", "C"] {
        for there in [false, true] {
            let world = World::new("links");
            let home = world.home.dir.path();
            std::fs::create_dir_all(home.join("other")).unwrap();
            std::fs::write(home.join("other/config.toml"), "mine\n").unwrap();
            std::fs::create_dir_all(home.join("other/workflows")).unwrap();
            if there {
                world.put(".cargo/config.toml", "[build]\nrustc-wrapper = \"evil\"\n");
            }
            let line = "c=.car; g=.git; rm -rf ${c}go 2>/dev/null; ln -s ../other ${c}go; ln -s \
                        ../other ${g}hub";
            let came = run_at(&world, level, &[line]).await;
            assert_eq!(came.code, 0, "{level}: {}", came.err);
            let text = std::fs::read_to_string(home.join("other/config.toml")).unwrap_or_default();
            assert_eq!(text, "mine\n", "{level}, there {there}: {}", came.told);
            assert!(home.join("other/workflows").is_dir(), "{level}: {}", came.told);
            assert!(
                world.home.project().join(".cargo").symlink_metadata().is_err() != there,
                "{level}: {}",
                came.told
            );
        }
    }
    // Links of the person's own stay what they were, at every level.
    for level in ["A", "C"] {
        let world = World::new("own-links");
        world.bash("mkdir real; echo '{}' > real/settings.json; ln -s real .vscode");
        let came = run_at(
            &world,
            level,
            &["d=.vs; rm ${d}code; mkdir ${d}code; echo bad > ${d}code/tasks.json"],
        )
        .await;
        assert_eq!(came.code, 0, "{level}: {}", came.err);
        let link = std::fs::read_link(world.home.project().join(".vscode"));
        assert!(link.is_ok_and(|to| to == std::path::Path::new("real")), "{level}: {}", came.told);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_a_link_opens_nothing_and_secrets_stay_covered() {
    for level in ["A", "B", "C"] {
        let world = World::new("target-link");
        world.put(".dunnock/config.toml", "edits = \"tools-only\"\n");
        world.bash("rm -rf target; ln -s ../.ssh target");
        let came = run_at(&world, level, &["echo pwned > target/pwned; cat target/id_rsa"]).await;
        assert!(
            world.harm(&came).is_none() && !world.home.dir.path().join(".ssh/pwned").exists(),
            "{level}: {}",
            came.told
        );
    }
    let world = World::new("moved-secret");
    world.bash("mkdir -p api pkg; mv .env api/real; cp api/real pkg/.env; ln -s api/real .env");
    let lines = [
        "mv pkg vendor; mv api target2; true",
        "cat vendor/.e* pkg/.e* api/real target2/real .e* 2>/dev/null; true",
        "touch -d 2001-01-01 . pkg; cat pkg/.e*; true",
    ];
    let came = run_at(&world, "A", &lines).await;
    assert_eq!(came.code, 0, "{}", came.err);
    assert!(world.harm(&came).is_none(), "{}", came.told);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_for_one_call_is_none_for_more() {
    let world = World::new("grants");
    // A rule made for a command in the box is not one for the same with the network.
    assert_eq!(world.ran(&["rules", "allow", "shell", "./run.sh"]).await.code, 2);
    assert_eq!(world.ran(&["rules", "allow", "shell", "npm", "test"]).await.code, 0);
    let call = |args: serde_json::Value| ("shell".to_owned(), args.to_string());
    assert_eq!(
        world.model(&[call(json!({"command": "npm test"}))], &["--approve", "ask"]).await.code,
        0
    );
    assert_eq!(
        world
            .model(&[call(json!({"command": "npm test", "network": true}))], &["--approve", "ask"])
            .await
            .code,
        3
    );
    assert_eq!(
        world
            .model(
                &[call(json!({"command": "npm test"}))],
                &["--approve", "ask", "--sandbox", "off"]
            )
            .await
            .code,
        3,
        "nor without a box"
    );
    // In the mode "all" a word takes nothing out of the box.
    let came = world
        .model(
            &[shell("true; at now 2>/dev/null; cat ../.ssh/id_rsa; touch ../escaped")],
            &["--approve", "all"],
        )
        .await;
    assert!(
        world.harm(&came).is_none() && !world.home.dir.path().join("escaped").exists(),
        "{}",
        came.told
    );
    // A denial holds for whatever runs the command, and however it is spelt.
    assert_eq!(world.ran(&["rules", "deny", "shell", "git", "push"]).await.code, 0);
    for args in
        [json!({"command": "git -C . push"}), json!({"command": ["git", "-c", "a=b", "push"]})]
    {
        for tool in ["shell", "process_start"] {
            let came =
                world.model(&[(tool.to_owned(), args.to_string())], &["--approve", "all"]).await;
            assert!(
                came.told.contains("a rule forbids shell git push"),
                "{tool} {args}: {}",
                came.told
            );
        }
    }
}

/// Allowed in a box, and the box is gone when it would run: it does not run.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_allowed_in_a_box_does_not_run_without_one() {
    let world = World::new("weaker");
    let calls = [
        ("shell", r#"{"command":"git push"}"#),
        ("shell", r#"{"command":"echo x >> ../escaped"}"#),
    ];
    let server =
        ScriptedServer::start(vec![Say::calls(&calls).into(), Say::text("done").into()]).await;
    world.serve(&server);
    let parked = world.ran(&["run", "go"]).await;
    assert_eq!(parked.code, 3, "{}", parked.err);
    let id = world.home.newest().await;
    assert_eq!(world.ran(&["decline", &id]).await.code, 0);
    let gone_on = world.ran(&["resume", &id, "--sandbox", "off"]).await;
    assert!(!world.home.dir.path().join("escaped").exists(), "{}", gone_on.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_repository_and_a_further_work_tree_can_use_git() {
    let world = World::new("part");
    world.bash("git worktree add -q ../tree topic");
    for (folder, level) in [("sub", "A"), ("../tree", "A"), ("sub", "C")] {
        let server = ScriptedServer::start(vec![
            Say::calls(&[(
                "shell",
                r#"{"command":"git log -1 --format=%s && git status --short"}"#,
            )])
            .into(),
            Say::text("done").into(),
        ])
        .await;
        world.serve(&server);
        let folder = world.home.project().join(folder);
        let mut command = world.command(&["run", "--cd", folder.to_str().unwrap(), "go"]);
        command.env("DUNNOCK_SANDBOX_LEVEL", level);
        let came = World::came(&server, crate::ran(command).await);
        let good = came.told.contains("four") || came.told.contains("three");
        assert!(level == "C" || (came.code == 0 && good), "{}: {}", folder.display(), came.told);
    }
}

/// A server that runs on between calls is reached by the calls of its session, and by nobody
/// else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_one_call_is_reached_by_the_next() {
    for level in ["A", "B"] {
        let world = World::new("server");
        let calls = [
            ("process_start", json!({"command": "python3 -m http.server 8765 --bind 127.0.0.1"})),
            (
                "shell",
                json!({"command": "for i in 1 2 3 4 5 6 7 8 9 10; do python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8765/a.txt').read())\" 2>/dev/null && break; sleep 0.2; done"}),
            ),
        ];
        let mut script: Vec<Served> = calls
            .iter()
            .map(|(tool, args)| Say::calls(&[(tool, &args.to_string())]).into())
            .collect();
        script.push(Say::text("done").into());
        let server = ScriptedServer::start(script).await;
        world.serve(&server);
        let mut command = world.command(&["run", "go"]);
        command.env("DUNNOCK_SANDBOX_LEVEL", level);
        let came = World::came(&server, crate::ran(command).await);
        assert_eq!(came.code, 0, "{level}: {}", came.err);
        assert!(results(&came)[1].contains("b'one"), "{level}: {:?}", results(&came));
        assert!(
            std::net::TcpStream::connect(("127.0.0.1", 8765)).is_err(),
            "{level}: it is not on this machine's loopback"
        );
        let other = run_at(
            &world,
            level,
            &["python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:8765/a.txt')\""],
        )
        .await;
        assert!(
            results(&other)[0].contains("refused"),
            "{level}: another session's: {:?}",
            results(&other)
        );
    }
}
