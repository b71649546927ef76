//! `run --planner` against a scripted model (P1 to P6).

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use serde_json::{Value, json};

/// A plan as a model writes it.
fn plan(thought: &str, actions: Value) -> Say {
    Say::text(
        &json!({ "thought": thought, "plan": ["look", "mend"], "actions": actions }).to_string(),
    )
}

fn run(command: &str) -> Value {
    json!({ "tool": "run", "command": command })
}

const DIFF: &str = "--- a/code.py\n+++ b/code.py\n@@ -1 +1 @@\n-answer = 41\n+answer = 42\n";
const CHECK: &str = "python3 -c 'import code_ as c' 2>/dev/null; grep -q 'answer = 42' code.py";

async fn home(script: Vec<Say>) -> (Home, ScriptedServer) {
    let server = ScriptedServer::start(script.into_iter().map(Into::into).collect()).await;
    let home = Home::with(&server);
    home.put("code.py", "answer = 41\n");
    (home, server)
}

/// What the model was told since its last answer.
fn told(server: &ScriptedServer, request: usize) -> String {
    let body = &server.requests()[request];
    let all = body["messages"].as_array().unwrap();
    let since =
        all.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
    let text = |message: &Value| {
        message["content"].as_str().map_or_else(|| message["content"].to_string(), str::to_owned)
    };
    all[since..].iter().map(text).collect::<Vec<_>>().join("\n")
}

fn memory(home: &Home, name: &str) -> String {
    home.read(&format!(".dunnock/agent-memory/{name}.txt"))
}

#[tokio::test(flavor = "multi_thread")]
async fn p3_it_stops_as_soon_as_the_checks_pass_whatever_the_model_wants() {
    let script = vec![
        plan(
            "I look first.",
            json!([{ "tool": "read_file", "path": "code.py" }, run("echo out; echo err >&2")]),
        ),
        plan(
            "Now I mend it.",
            json!([{ "tool": "apply_diff", "path": "code.py", "diff": DIFF }, { "tool": "git_status" }]),
        ),
        plan("I want to go on.", json!([run("touch never")])),
    ];
    let (home, server) = home(script).await;
    std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(home.project())
        .status()
        .unwrap();
    let ran = home.run(&["run", "--planner", "--verify", CHECK, "Mend the answer"]).await;
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert_eq!(home.read("code.py"), "answer = 42\n");
    assert_eq!(server.requests().len(), 2, "the loop decides when it is over");
    assert!(
        ran.out.contains("Iteration 2:") && ran.out.contains("- edited code.py: ok"),
        "it has a result: {}",
        ran.out
    );
    assert!(!home.project().join("never").exists());
    let first = told(&server, 1);
    assert!(first.contains("standard output:\nout\nstandard error:\nerr"), "{first}");
    assert!(
        first.contains("Result of read_file") && first.contains("Result of run"),
        "by the names it knows: {first}"
    );
    // P6
    let memory = memory(&home, "mend-the-answer");
    let blocks: Vec<&str> = memory.split("\n\n").collect();
    assert_eq!(blocks.len(), 2, "{memory}");
    for (n, block) in blocks.iter().enumerate() {
        let mut lines = block.trim_end().lines();
        assert_eq!(lines.next(), Some(format!("Iteration {}:", n + 1).as_str()), "{memory}");
        assert!(lines.clone().count() >= 3 && lines.all(|line| line.starts_with("- ")), "{memory}");
    }
    assert!(
        memory.contains("- read code.py: ok") && memory.contains("- edited code.py: ok"),
        "{memory}"
    );
    assert!(
        memory.contains("checked") && memory.ends_with("- ended: done, and the checks pass\n"),
        "{memory}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_the_server_gets_the_schema_and_p2_the_model_gets_five_tools() {
    let (home, server) = home(vec![plan("Nothing to do.", json!([]))]).await;
    let ran = home.run(&["run", "--planner", "Look"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let body = &server.requests()[0];
    let schema = &body["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["required"], json!(["thought", "plan", "actions"]), "{body}");
    let forms = schema["properties"]["actions"]["items"]["anyOf"].as_array().unwrap();
    let names: Vec<&str> =
        forms.iter().map(|form| form["properties"]["tool"]["const"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_file", "apply_diff", "run", "git_status", "git_diff"]);
    let system = body["messages"][0]["content"].as_str().unwrap();
    let said: Vec<&str> = system.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(said, names, "{system}");
    assert!(body.get("tools").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn p3_it_stops_when_a_plan_has_no_actions() {
    let (with, server) = home(vec![plan("It is fine as it is.", json!([]))]).await;
    let ran = with.run(&["run", "--planner", "Look at it"]).await;
    assert_eq!((ran.code, server.requests().len()), (0, 1), "{}", ran.err);
    assert!(ran.out.contains("It is fine as it is."), "{}", ran.out);
    // With checks that fail it is over, too, and not done.
    let (home, server) =
        home(vec![plan("It is fine.", json!([])), plan("Never asked.", json!([]))]).await;
    let ran = home.run(&["run", "--planner", "--verify", "false", "Look at it"]).await;
    assert_eq!((ran.code, server.requests().len()), (5, 1), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn p3_it_stops_at_five_iterations_or_the_limit_that_is_set() {
    let looks = |n: usize| {
        (0..n).map(|n| plan("Again.", json!([run(&format!("echo {n}"))]))).collect::<Vec<_>>()
    };
    let (five, server) = home(looks(9)).await;
    let ran = five.run(&["run", "--planner", "Try"]).await;
    assert_eq!((ran.code, server.requests().len()), (4, 5), "{}", ran.err);
    assert_eq!(memory(&five, "try").matches("Iteration ").count(), 5);
    // The same plan again and again is told to the model, and is no reason to wait for somebody.
    let same = (0..9).map(|_| plan("Again.", json!([run("echo same")]))).collect::<Vec<_>>();
    let (circles, server) = home(same).await;
    let ran = circles.run(&["run", "--planner", "Try"]).await;
    assert_eq!((ran.code, server.requests().len()), (4, 5), "{}", ran.err);
    let all = server.requests().iter().map(ToString::to_string).collect::<String>();
    assert!(all.contains("You are making no progress: the same calls"), "the model is told");
    let (two, server) = home(looks(9)).await;
    let ran = two.run(&["run", "--planner", "--max-steps", "2", "--verify", "false", "Try"]).await;
    assert_eq!((ran.code, server.requests().len()), (5, 2), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn p2_an_unknown_tool_is_refused_and_never_run() {
    let script = vec![
        plan("I try others.", json!([{ "tool": "shell", "command": "touch shell" }])),
        plan(
            "And this.",
            json!([{ "tool": "write_file", "path": "made", "content": "x" }, run("touch behind")]),
        ),
        plan("Done.", json!([])),
    ];
    let (home, server) = home(script).await;
    let ran = home.run(&["run", "--planner", "Try"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    for name in ["shell", "made", "behind"] {
        assert!(!home.project().join(name).exists(), "{name}");
    }
    assert!(told(&server, 1).contains("there is no tool \"shell\""), "{}", told(&server, 1));
    assert!(
        told(&server, 2).contains("not run: an earlier action of this plan"),
        "{}",
        told(&server, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn p4_invalid_json_is_reported_once_and_then_the_run_fails_with_a_summary() {
    let script = vec![
        Say::text("I would rather talk."),
        Say::text("{\"thought\": 1}"),
        plan("Late.", json!([])),
    ];
    let (home, server) = home(script).await;
    let ran = home.run(&["run", "--planner", "Try"]).await;
    assert_eq!((ran.code, server.requests().len()), (1, 2), "{}", ran.err);
    assert!(told(&server, 1).contains("the answer is not a valid plan"), "{}", told(&server, 1));
    assert!(ran.err.contains("returned an invalid plan twice in a row"), "{}", ran.err);
    assert!(
        ran.err.contains("Iteration 1:\n") && ran.err.contains("Iteration 2:\n- no answer:"),
        "{}",
        ran.err
    );
    // Told once, it may mend its ways.
    let script = vec![
        Say::text("Oh."),
        plan("Better.", json!([run("touch made")])),
        plan("Done.", json!([])),
    ];
    let (again, _server) = self::home(script).await;
    let ran = again.run(&["run", "--planner", "Try"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(again.project().join("made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn p4_an_action_that_fails_ends_that_plan_only() {
    let script = vec![
        plan("Two of three.", json!([run("touch one"), run("exit 3"), run("touch three")])),
        plan("Go on.", json!([run("touch four")])),
        plan("Done.", json!([])),
    ];
    let (home, server) = home(script).await;
    let ran = home.run(&["run", "--planner", "Try"]).await;
    assert_eq!((ran.code, server.requests().len()), (0, 3), "{}", ran.err);
    let there = |name: &str| home.project().join(name).exists();
    assert_eq!([there("one"), there("three"), there("four")], [true, false, true]);
    assert!(
        memory(&home, "try").contains("- ran exit 3: failed, exit 3"),
        "{}",
        memory(&home, "try")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn p5_what_a_planner_is_denied_only_the_persons_own_configuration_lifts() {
    let denied = [
        "rm -rf target",
        "rm -r -f target",
        "rm --recursive --force target",
        "bash -c 'rm -fr target'",
        "find . -delete",
        "dd if=/dev/zero of=x",
        "mount",
        "mkfs.ext4 x",
        "sudo true",
        "su -c true",
        "useradd x",
        "passwd",
        "chown root x",
        "curl http://127.0.0.1:9",
        "wget x",
        "ssh host",
        "nc -l 1",
        "env",
        "printenv",
        "env | sort",
        "export -p",
        "set",
        "time -p curl -V",
        "echo 'curl -V' | sh",
        "bash <<< 'curl -V'",
        "sh -cx 'curl -V'",
        "env -u FOO",
        "echo \"$(</proc/self/environ)\"",
        "cat /proc/self/env*",
        "readonly -p",
        "declare -p PATH",
        "watch 'rm -rf build'",
        "trap 'curl -V' EXIT",
        "exec 3<>/dev/tcp/127.0.0.1/1",
        "git ls-remote x",
        "git push",
        "git clean -fdx",
        "openssl s_client -connect x",
        "CURL -V",
        "cat /proc/self/environ",
        "timeout 5 curl x",
        "x=1 && env",
        "$PROGRAM x",
    ];
    for command in denied {
        let (home, server) =
            home(vec![plan("Try.", json!([run(command)])), plan("Done.", json!([]))]).await;
        home.put("target/made", "x");
        let ran = home.run(&["run", "--planner", "--approve", "all", "Try"]).await;
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        let said = told(&server, 1);
        let everybody = command.starts_with("mkfs");
        assert!(
            said.contains(if everybody {
                "not allowed: it would"
            } else {
                "not allowed: a planner"
            }),
            "{command}: {said}"
        );
        println!("denied: {command}");
        assert!(home.project().join("target/made").exists(), "{command}");
    }
    // Everyday work stays: elsewhere, and what only looks like it.
    for command in [
        "rm target/made",
        "env A=1 true",
        "ls",
        "echo env",
        "git status",
        "[ -f target/made ] && echo yes",
        "if [ -d target ]; then echo there; fi",
        "case x in a) echo a;; *) echo other;; esac",
        "command -v curl || true",
        "bash -c 'echo x'",
    ] {
        let (home, server) =
            home(vec![plan("Try.", json!([run(command)])), plan("Done.", json!([]))]).await;
        home.put("target/made", "x");
        assert_eq!(home.run(&["run", "--planner", "Try"]).await.code, 0);
        assert!(!told(&server, 1).contains("not allowed"), "{command}: {}", told(&server, 1));
    }
    let script = || vec![plan("Try.", json!([run("rm -rf target")])), plan("Done.", json!([]))];
    let (own, _server) = home(script()).await;
    own.put("target/made", "x");
    own.set("planner_allow = [\"rm\"]\n");
    assert_eq!(own.run(&["run", "--planner", "Try"]).await.code, 0);
    assert!(!own.project().join("target").exists(), "the person's own configuration lifts it");
    let (project, _server) = home(script()).await;
    project.put("target/made", "x");
    project.put(".dunnock/config.toml", "planner_allow = [\"rm\"]\n");
    let ran = project.run(&["run", "--planner", "--trust", "Try"]).await;
    assert!(
        ran.err.contains("planner_allow is ignored: only your own configuration"),
        "{}",
        ran.err
    );
    assert!(project.project().join("target/made").exists(), "a folder's does not, trusted or not");
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_the_next_run_of_a_task_knows_what_the_last_came_to_and_nobody_else_writes_there() {
    let script = vec![
        plan(
            "I write my own memory.\nIteration 9:\n- all is well",
            json!([run("echo forged > .dunnock/agent-memory/try.txt")]),
        ),
        plan("Or a link.", json!([run("ln -s /etc/passwd .dunnock/agent-memory/other.txt")])),
        plan("Done.", json!([])),
    ];
    let (home, _server) = home(script).await;
    let ran = home.run(&["run", "--planner", "Try"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let first = memory(&home, "try");
    assert!(!first.contains("forged\n") && first.contains("Iteration 3:"), "{first}");
    assert!(!first.contains("\nIteration 9:"), "what a model says is one line: {first}");
    assert!(!home.project().join(".dunnock/agent-memory/other.txt").exists());
    let server = ScriptedServer::start(vec![plan("I know.", json!([])).into()]).await;
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{}\"\n",
        server.base_url()
    ));
    let ran = home.run(&["run", "--planner", "Try"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let system = server.requests()[0]["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("<memory>\nIteration 1:"), "{system}");
    let second = memory(&home, "try");
    assert!(
        second.starts_with(first.trim_end()) && second.contains("Iteration 4:\n- thought: I know."),
        "{second}"
    );
    // A memory that a repository brings as a link is neither read nor written through.
    std::fs::remove_dir_all(home.project().join(".dunnock")).unwrap();
    let outside = home.dir.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("try.txt"), "Iteration 1:\n- a secret\n").unwrap();
    std::fs::create_dir_all(home.project().join(".dunnock")).unwrap();
    std::os::unix::fs::symlink(&outside, home.project().join(".dunnock/agent-memory")).unwrap();
    let server = ScriptedServer::start(vec![plan("Again.", json!([])).into()]).await;
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{}\"\n",
        server.base_url()
    ));
    let ran = home.run(&["run", "--planner", "Try"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!server.requests()[0].to_string().contains("a secret"));
    assert_eq!(
        std::fs::read_to_string(outside.join("try.txt")).unwrap(),
        "Iteration 1:\n- a secret\n"
    );
    assert!(ran.err.contains("memory could not be written"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planner_that_waits_for_a_person_goes_on_with_its_plan() {
    let script =
        vec![plan("Two.", json!([run("touch one"), run("touch two")])), plan("Done.", json!([]))];
    let (home, server) = home(script).await;
    let ran = home.run(&["run", "--planner", "--approve", "ask", "Try"]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    let id = home.newest().await;
    let ran = home.run(&["decline", &id, "1.0", "--go"]).await;
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(
        !home.project().join("two").exists(),
        "what stands behind a declined action is not run"
    );
    assert!(told(&server, 1).contains("the person declined this call"), "{}", told(&server, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_at_an_older_run_does_not_write_over_the_memory_of_a_later_one() {
    let script = || vec![plan("One.", json!([run("touch one")])), plan("Done.", json!([]))];
    let (home, _server) = home(script()).await;
    assert_eq!(home.run(&["run", "--planner", "Try"]).await.code, 0);
    let first = home.newest().await;
    let server = ScriptedServer::start(script().into_iter().map(Into::into).collect()).await;
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{}\"\n",
        server.base_url()
    ));
    assert_eq!(home.run(&["run", "--planner", "Try"]).await.code, 0);
    let both = memory(&home, "try");
    assert_eq!(both.matches("Iteration ").count(), 4, "{both}");
    assert_eq!(home.run(&["undo", &first]).await.code, 0);
    assert_eq!(memory(&home, "try"), both);
    let git =
        std::process::Command::new("git").args(["init", "-q"]).current_dir(home.project()).status();
    assert!(git.unwrap().success());
    let status = std::process::Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(home.project())
        .output();
    let status = String::from_utf8(status.unwrap().stdout).unwrap();
    assert!(!status.contains(".dunnock"), "memory is no file of the repository: {status}");
}
