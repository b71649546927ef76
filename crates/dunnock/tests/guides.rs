//! The guides, tried as a reader would: their commands, one block after the other, in one home and
//! one project. What a guide shows as output must have been printed, what it shows as configuration
//! must be taken.

use crate::{Home, Ran, program, ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use dunnock_testkit::speech::{Speech, Wire};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A fenced block of a page.
struct Block {
    kind: String,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks(guide: &str) -> Vec<Block> {
    let path = repository().join("docs/guides").join(guide);
    let page = std::fs::read_to_string(path).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(kind), false) => {
                blocks.push(Block { kind: kind.into(), text: String::new() });
                inside = true;
            }
            (Some(_), true) => inside = false,
            (None, true) => blocks.last_mut().unwrap().text.push_str(&format!("{line}\n")),
            (None, false) => {}
        }
    }
    assert!(!inside, "{guide}: a block is not closed");
    blocks
}

/// Puts the program where a reader would have put it.
fn install(home: &Home) -> PathBuf {
    let bin = home.dir.path().join(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy(program(), bin.join("dunnock")).unwrap();
    bin
}

/// A script of a reader, in the project.
fn script(home: &Home, text: &str, variables: &[(&str, String)]) -> Command {
    let mut command =
        home.command_of("bash".as_ref(), &["-c", &format!("set -euo pipefail\n{text}")]);
    command.env("PATH", format!("{}:/usr/bin:/bin", home.dir.path().join(".local/bin").display()));
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// Does what a guide says, and tells what each of its blocks of commands printed.
async fn follow(guide: &str, home: &Home, variables: &[(&str, String)]) -> Vec<Ran> {
    install(home);
    let mut all: Vec<Ran> = Vec::new();
    for block in blocks(guide) {
        match block.kind.as_str() {
            "sh" => {
                let ran = ran(script(home, &block.text, variables)).await;
                assert_eq!(ran.code, 0, "{guide}:\n{}\n{}\n{}", block.text, ran.out, ran.err);
                all.push(ran);
            }
            "text" => {
                let before = all.last().unwrap();
                for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
                    assert!(
                        printed(before, line),
                        "{guide}: not printed: {line}\n{}\n{}",
                        before.out,
                        before.err
                    );
                }
            }
            "toml" => {
                let other = Home::empty();
                other.configure(&block.text);
                let ran = other.run(&["config"]).await;
                assert_eq!(ran.code, 0, "{guide}:\n{}\n{}", block.text, ran.err);
                assert_eq!(ran.err, "", "{guide}:\n{}", block.text);
            }
            "json" => drop(serde_json::from_str::<Value>(&block.text).unwrap()),
            // The steps of a workflow are tried by themselves.
            other => assert_eq!(other, "yaml", "{guide}: nobody tries such a block"),
        }
    }
    all
}

/// Whether a line was printed. Three dots stand for something that differs each time.
fn printed(ran: &Ran, line: &str) -> bool {
    let mut rows = ran.out.lines().chain(ran.err.lines());
    rows.any(|row| {
        let mut rest = row;
        line.trim().split("...").all(|part| match rest.split_once(part.trim()) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    })
}

/// Answers by the task that the person gave; what is no task of the guide is left to another.
fn tasks(
    scripts: Vec<(&'static str, Vec<Say>)>,
    otherwise: impl Fn(&Value) -> Served + Send + Sync + 'static,
) -> Option<Brain> {
    Some(Brain(Arc::new(move |wire: Wire, body: &Value| {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let asked: Vec<Value> =
            messages.into_iter().filter(|message| message["role"] == "user").collect();
        let asked = json!(asked).to_string();
        match scripts.iter().find(|(task, _)| asked.contains(task)) {
            Some((_, says)) => {
                says.get(wire.answers(body)).cloned().unwrap_or_else(|| Say::text("done")).into()
            }
            None => otherwise(body),
        }
    })))
}

fn nobody(body: &Value) -> Served {
    Served::wrong(
        Say::default(),
        Fault::Says(
            400,
            format!(r#"{{"error":{{"message":"no task of the guide: {}"}}}}"#, body["model"]),
        ),
    )
}

fn shell(command: &str) -> Say {
    Say::calls(&[("shell", &json!({ "command": command }).to_string())])
}

fn write(path: &str, content: &str) -> Say {
    Say::calls(&[("write_file", &json!({ "path": path, "content": content }).to_string())])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_to_ci_works() {
    let scripts = vec![
        ("fix the greeting", vec![shell("echo hello > greeting.txt"), Say::text("It is fixed.")]),
        ("say goodbye", vec![Say::text("It says goodbye."); 4]),
        (
            "read it again and again",
            vec![shell("cat greeting.txt"), shell("cat ./greeting.txt"), shell("ls")],
        ),
        ("take your time", vec![Say::text("one two three four").after(5_000)]),
        ("write notes", vec![write("notes.txt", "noted\n"), Say::text("There are notes.")]),
        ("publish the package", vec![shell("npm publish"), Say::text("It is not published.")]),
        ("make it pass", vec![shell("echo made > made.txt"), Say::text("It passes.")]),
    ];
    let rules = Rules { brain: tasks(scripts, nobody), ..Rules::default() };
    let server = ScriptedServer::with(Vec::new(), rules).await;
    let home = Home::with(&server);
    let printed = follow("ci.md", &home, &[]).await;
    assert_eq!(printed[0].out, "It is fixed.\n");
    assert_eq!(home.read("greeting.txt"), "hello\n");
    let codes: Vec<&str> =
        printed[1].out.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(codes, ["exit 5", "exit 4", "exit 130"]);
    assert!(
        home.read("receipt.md").contains("**Proven: every check passed"),
        "{}",
        home.read("receipt.md")
    );
    let receipt: Value = serde_json::from_str(&home.read("receipt.json")).unwrap();
    assert!(receipt.is_object(), "{receipt}");
    assert!(
        printed[3].out.contains("exit 3\n") && printed[3].out.ends_with("It is not published.\n"),
        "{}",
        printed[3].out
    );
    assert!(
        home.dir.path().join("copy/greeting.txt").exists(),
        "the files travelled with the session"
    );
    assert!(printed[4].out.contains("npm ci"), "{}", printed[4].out);
    assert_eq!(printed[5].out, "commands do not see it\n");
    workflow(&home).await;
}

/// The steps of the workflow, as a runner would do them.
async fn workflow(home: &Home) {
    let blocks = blocks("ci.md");
    let yaml = &blocks.iter().find(|block| block.kind == "yaml").unwrap().text;
    let mut steps: Vec<String> = Vec::new();
    let mut inside = None;
    for line in yaml.lines() {
        let deep = line.len() - line.trim_start().len();
        match inside {
            Some(least) if deep >= least => {
                steps.last_mut().unwrap().push_str(&format!("{}\n", line.trim()))
            }
            _ => inside = None,
        }
        if inside.is_none() && line.trim_start().trim_start_matches("- ").trim() == "run: |" {
            steps.push(String::new());
            inside = Some(deep + 2);
        }
    }
    assert_eq!(steps.len(), 3, "{steps:?}");
    let temp = home.dir.path().join("temp");
    std::fs::create_dir_all(&temp).unwrap();
    let within = |name: &str| temp.join(name).display().to_string();
    home.put("test.sh", "test -f made.txt\n");
    let prepare =
        "rm -f \"$HOME/.local/bin/dunnock\"\nmkdir ci\nln -s \"$PROGRAM\" ci/dunnock\n".to_owned();
    let variables = [
        ("TASK", "make it pass".to_owned()),
        ("RUNNER_TEMP", temp.display().to_string()),
        ("GITHUB_PATH", within("path")),
        ("GITHUB_STEP_SUMMARY", within("summary.md")),
        ("PROGRAM", program().display().to_string()),
    ];
    for step in std::iter::once(&prepare).chain(&steps) {
        let ran = ran(script(home, step, &variables)).await;
        assert_eq!(ran.code, 0, "{step}\n{}\n{}", ran.out, ran.err);
    }
    let read = |name: &str| std::fs::read_to_string(temp.join(name)).unwrap();
    assert!(read("path").ends_with("/.local/bin\n"));
    assert!(
        read("dunnock/run.jsonl").lines().last().unwrap().contains(r#""verdict":"proven""#),
        "{}",
        read("dunnock/run.jsonl")
    );
    assert!(read("summary.md").contains("**Proven: every check passed"), "{}", read("summary.md"));
    assert!(read("dunnock/changes.patch").contains("+made"), "{}", read("dunnock/changes.patch"));
    assert!(read("dunnock/session.jsonl").contains("dunnock_export"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_quick_start_works() {
    let fix = vec![shell("echo hello world > greeting.txt"), Say::text("It is fixed.")];
    let more = vec![shell("echo more >> greeting.txt"), Say::text("There are two lines.")];
    let brain = tasks(
        vec![("now add a second line", [fix.clone(), more].concat()), ("fix the spelling", fix)],
        nobody,
    );
    let server = ScriptedServer::with(Vec::new(), Rules { brain, ..Rules::default() }).await;
    let home = Home::with(&server);
    let printed = follow("../start/quick-start.md", &home, &[]).await;
    assert_eq!(printed[1].out, "It is fixed.\n");
    assert_eq!(
        home.read("greeting.txt"),
        "hello world\nmore\n",
        "{:?}",
        printed.last().map(|ran| &ran.out)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_to_undo_works() {
    let scripts =
        vec![("add a third line", vec![shell("echo three >> list.txt"), Say::text("Added.")])];
    let rules = Rules { brain: tasks(scripts, nobody), ..Rules::default() };
    let server = ScriptedServer::with(Vec::new(), rules).await;
    let home = Home::with(&server);
    let printed = follow("undo.md", &home, &[]).await;
    assert!(printed[0].out.ends_with("one\ntwo\n"), "{}", printed[0].out);
    assert_eq!(printed[1].out, "one\ntwo\nthree\n");
    assert!(printed[2].err.contains("step 1"), "{}", printed[2].err);
    assert_eq!(home.read("list.txt"), "one\ntwo\nthree\n", "the rewind was undone");
}

fn plan(thought: &str, steps: &[&str], actions: &[Value]) -> Say {
    Say::text(&json!({ "thought": thought, "plan": steps, "actions": actions }).to_string())
}

fn runs(command: &str) -> Value {
    json!({ "tool": "run", "command": command })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_to_the_planner_works() {
    // The plan that the guide shows is the one that corrects it.
    let shown = blocks("planner.md").into_iter().find(|block| block.kind == "json").unwrap().text;
    let look =
        [json!({ "tool": "read_file", "path": "greeting.txt" }), json!({ "tool": "git_status" })];
    let again = (1..=6).map(|n| plan("Once more.", &[], &[runs(&format!("true {n}"))])).collect();
    let fetch = [runs("curl -s https://example.org/words"), runs("touch after.txt")];
    let scripts = vec![
        (
            "fix the greeting",
            vec![plan("I'll look first.", &["read it", "correct it"], &look), Say::text(&shown)],
        ),
        ("look around", vec![plan("Nothing is to be done.", &[], &[])]),
        ("try again and again", again),
        ("say it in words", vec![Say::text("Certainly!"), Say::text("As you wish.")]),
        ("fetch the words", vec![plan("I fetch them.", &[], &fetch), plan("I cannot.", &[], &[])]),
    ];
    let rules = Rules { brain: tasks(scripts, nobody), ..Rules::default() };
    let server = ScriptedServer::with(Vec::new(), rules).await;
    let home = Home::with(&server);
    let printed = follow("planner.md", &home, &[]).await;
    assert_eq!(home.read("greeting.txt"), "hello\n");
    let codes: Vec<&str> =
        printed[1].out.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(codes, ["exit 5", "exit 4", "exit 5", "exit 1"]);
    assert_eq!(home.read("after.txt"), "", "what stands behind a failure is not run");
    let shown = blocks("planner.md").into_iter().rfind(|block| block.kind == "text").unwrap().text;
    assert_eq!(printed[3].out, shown, "the memory is the one that the guide shows");
    // The same task again: the model is given what was noted.
    let ran = home
        .run(&["run", "--planner", "--verify", "grep -qx hello greeting.txt", "fix the greeting"])
        .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let last = server.requests().last().unwrap()["messages"].to_string();
    assert!(last.contains("Iteration 2:") && last.contains("the checks pass"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_to_the_bridge_works() {
    let home = Home::empty();
    // A clipboard that can be looked into.
    let clipboard = home.dir.path().join("clipboard");
    let bin = install(&home);
    std::fs::write(bin.join("wl-copy"), format!("#!/bin/sh\ncat > '{}'\n", clipboard.display()))
        .unwrap();
    let marked =
        ran(home.command_of("chmod".as_ref(), &["+x", bin.join("wl-copy").to_str().unwrap()]))
            .await;
    assert_eq!(marked.code, 0, "{}", marked.err);
    let printed = follow("bridge.md", &home, &[]).await;
    assert!(printed[2].out.contains("+echo hello"), "{}", printed[2].out);
    assert_eq!(home.read("greet.sh"), "echo helo\n", "it was taken back");
    let copied = std::fs::read_to_string(clipboard).unwrap();
    let outbox = std::fs::read_to_string(home.dir.path().join("letters/001-outbox.md")).unwrap();
    assert_eq!(copied, outbox);
    assert!(outbox.contains("=== TASK ===\nsay what this folder is\n"), "{outbox}");
    let codes: Vec<&str> =
        printed.last().unwrap().out.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(codes, ["exit 130", "exit 3", "exit 3"]);
}

/// What a local model would do that calls tools, but writes no patches.
fn probed(body: &Value) -> Served {
    if body.to_string().len() / 4 > 16_384 {
        let error = r#"{"error":{"message":"the request exceeds the available context size"}}"#;
        return Served::wrong(Say::default(), Fault::Says(400, error.into()));
    }
    let messages = body["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] != "assistant").unwrap();
    let words = last["content"].as_str().map_or_else(|| last["content"].to_string(), str::to_owned);
    let has = |text: &str| words.contains(text);
    let say = if has("a.txt and b.txt") {
        Say::calls(&[("view_file", r#"{"path":"a.txt"}"#), ("view_file", r#"{"path":"b.txt"}"#)])
    } else if has("notes.txt") && !has("The heron flies") && !has("What is in") {
        Say::calls(&[("view_file", r#"{"path":"notes.txt"}"#)])
    } else if has("one call to replace_text") {
        Say::calls(&[("replace_text", r#"{"path":"greet.py","old":"Hello","new":"Goodbye"}"#)])
    } else if has("secret word") {
        Say::text("heron")
    } else if has("Count from one") {
        Say::text(&"one two three ".repeat(30))
    } else {
        Say::text("ready")
    };
    let planned = body.get("format").is_some() || body.get("response_format").is_some();
    if planned { Speech::Plan.put(&say).into() } else { say.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_to_local_models_works() {
    let scripts = vec![
        (
            "write a haiku about hedges",
            vec![write("haiku.txt", "Quiet in the hedge\n"), Say::text("It is in haiku.txt.")],
        ),
        ("make sure there is a haiku", vec![Say::text("There is one.")]),
    ];
    let models = vec!["gemma3:1b".into(), "qwen3:4b".into()];
    let rules =
        Rules { models, brain: tasks(scripts, probed), window: Some(40_960), ..Rules::default() };
    let server = ScriptedServer::with(Vec::new(), rules).await;
    let home = Home::empty();
    // The server stands in for Ollama on its usual port.
    let printed =
        follow("local-models.md", &home, &[("DUNNOCK_PROVIDERS__OLLAMA__BASE_URL", server.root())])
            .await;
    assert!(printed[0].out.ends_with("It is in haiku.txt.\n"), "{}", printed[0].out);
    assert_eq!(home.read("haiku.txt"), "Quiet in the hedge\n");
    assert!(printed[1].out.contains("model = \"ollama/qwen3:4b\"  # "), "{}", printed[1].out);
    assert_eq!(printed[3].out, "There is one.\n");
    let last = server.requests().pop().unwrap();
    assert_eq!(last["options"]["num_ctx"], 16_384, "the window that was set is asked for: {last}");
    let tools = |body: &Value| body["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(tools(&last), 7, "the small profile has seven tools");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_to_proxies_works() {
    let server = ScriptedServer::start(Vec::new()).await;
    let home = Home::empty();
    // Nothing is asked but a server on this machine, which needs no proxy.
    let local = [("DUNNOCK_PROVIDERS__OLLAMA__BASE_URL", server.root())];
    let printed = follow("proxies.md", &home, &local).await;
    assert!(printed[0].out.contains("ollama/scripted"), "{}", printed[0].out);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_to_servers_works() {
    let home = Home::empty();
    let printed = follow("mcp.md", &home, &[]).await;
    assert!(printed[0].out.contains("notes-server --folder /srv/notes"), "{}", printed[0].out);
    assert!(printed[0].out.contains("https://docs.example/mcp"), "{}", printed[0].out);
}

/// Lines without what they share at their beginning, and without blank lines around them.
fn dedented(lines: &[&str]) -> Vec<String> {
    let filled = |line: &&&str| !line.trim().is_empty();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(filled).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or_default().trim_end().to_owned()).collect()
}

#[test]
fn every_example_of_the_guide_to_the_library_is_one_that_is_built() {
    let library = repository().join("crates/dunnock-agent");
    let mut sources = vec![library.join("src/lib.rs")];
    let examples =
        std::fs::read_dir(library.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    sources.extend(examples.filter(|path| path.extension().is_some_and(|kind| kind == "rs")));
    let sources: Vec<String> =
        sources.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // What stands in the documentation of the crate counts as it is read there.
    let plain = |text: &str| -> Vec<String> {
        let line = |line: &str| {
            let rest = line.trim_start().strip_prefix("//!");
            rest.map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest)).to_owned()
        };
        text.lines().map(line).collect()
    };
    let sources: Vec<Vec<String>> = sources.iter().map(|text| plain(text)).collect();
    let blocks = blocks("library.md");
    let shown: Vec<&Block> = blocks.iter().filter(|block| block.kind.starts_with("rust")).collect();
    assert!(!shown.is_empty(), "the guide has examples");
    for block in shown {
        let wanted: Vec<&str> = block.text.trim_matches('\n').lines().collect();
        let wanted = dedented(&wanted);
        let is_there = sources.iter().any(|source| {
            let lines: Vec<&str> = source.iter().map(String::as_str).collect();
            lines.windows(wanted.len()).any(|window| dedented(window) == wanted)
        });
        assert!(is_there, "in no example and not in lib.rs:\n{}", block.text);
    }
}
