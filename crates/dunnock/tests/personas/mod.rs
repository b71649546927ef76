//! Twelve models with a bad habit and a true solution, on ten small tasks: an unattended run brings
//! each of them to the end of the work.

mod tasks;

use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tasks::{TASKS, Task};

/// The most requests that a habit may cost beyond those of its script.
const EXTRA: usize = 6;

/// A habit, and the answers that show it.
struct Persona {
    name: &'static str,
    script: fn(&Task) -> Vec<Served>,
    settings: &'static str,
}

const PERSONAS: [Persona; 12] = [
    Persona { name: "announcer", script: announcer, settings: "" },
    Persona { name: "early finisher", script: early_finisher, settings: "" },
    Persona { name: "poller", script: poller, settings: "" },
    Persona { name: "wrong namer", script: wrong_namer, settings: "" },
    Persona { name: "long writer", script: long_writer, settings: "" },
    Persona { name: "empty answerer", script: empty_answerer, settings: "" },
    Persona { name: "looper", script: looper, settings: "" },
    Persona { name: "patch lover", script: patch_lover, settings: "" },
    Persona { name: "asker", script: asker, settings: "" },
    Persona { name: "server starter", script: server_starter, settings: "" },
    Persona { name: "slow builder", script: slow_builder, settings: "command_timeout = 1\n" },
    Persona { name: "one that stops at 80 %", script: stops_at_80, settings: "" },
];

fn call(tool: &str, args: &Value) -> Served {
    Say::calls(&[(tool, args.to_string().as_str())]).into()
}

fn shell(command: &str) -> Served {
    call("shell", &json!({ "command": command }))
}

fn write((path, text): &(&str, &str)) -> Served {
    call("write_file", &json!({ "path": path, "content": text, "overwrite": true }))
}

fn say(text: &str) -> Served {
    Say::text(text).into()
}

fn end() -> Served {
    call("final_output", &json!({ "answer": "finished" }))
}

fn writes(task: &Task) -> Vec<Served> {
    task.solution.iter().map(write).collect()
}

fn announcer(task: &Task) -> Vec<Served> {
    let mut all = vec![say("I'll start by looking at the files.")];
    all.extend(writes(task));
    all.push(say("Next I will run the checks."));
    all.push(shell(task.check));
    all
}

fn early_finisher(task: &Task) -> Vec<Served> {
    let mut all = vec![say("All done!")];
    all.push(write(&task.solution[0]));
    all.push(say("Now it is done."));
    all.extend(task.solution[1..].iter().map(write));
    all
}

fn poller(task: &Task) -> Vec<Served> {
    let mut all = vec![shell("(sleep 1.5; touch .ready) & echo begun")];
    all.extend((0..12).map(|_| shell("test -f .ready")));
    all.push(shell("while ! test -f .ready; do sleep 0.1; done; rm .ready"));
    all.extend(writes(task));
    all
}

fn wrong_namer(task: &Task) -> Vec<Served> {
    let mut all = vec![
        call("Bash", &json!({ "command": "ls -la", "description": "List files" })),
        call("LS", &json!({ "path": "." })),
    ];
    for (n, (path, text)) in task.solution.iter().enumerate() {
        let is_there = task.files.iter().any(|(known, _)| known == path);
        all.push(match (is_there, n) {
            (true, _) => call("Write", &json!({ "file_path": path, "content": text })),
            (false, 0 | 1) => call("create_file", &json!({ "path": path, "content": text })),
            (false, _) => {
                let args = json!({ "command": "create", "path": path, "file_text": text });
                call("str_replace_based_edit_tool", &args)
            }
        });
    }
    all.push(call("run_shell_command", &json!({ "command": task.check })));
    all
}

/// An answer that its server cut off at the output limit, in the middle of a call.
fn cut_off(task: &Task) -> Served {
    let (path, text) = task.solution[0];
    let args = json!({ "path": path, "content": text.repeat(50) }).to_string();
    let arguments = json!(args[..args.len() / 2].to_owned());
    let call = format!(
        r#"{{"tool_calls":[{{"index":0,"id":"c1","type":"function","function":{{"name":"write_file","arguments":{arguments}}}}}]}}"#
    );
    let piece = |delta: &str, end: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{end}}}]}}\n\n"
        )
    };
    let bytes =
        [piece(&call, "null"), piece("{}", "\"length\""), "data: [DONE]\n\n".into()].concat();
    Served::wrong(Say::default(), Fault::Raw(bytes.into_bytes()))
}

fn long_writer(task: &Task) -> Vec<Served> {
    let mut all = vec![cut_off(task), cut_off(task)];
    all.extend(writes(task));
    all
}

fn empty_answerer(task: &Task) -> Vec<Served> {
    let thought = Say { reasoning: "I should begin.".into(), ..Say::default() };
    let mut all = vec![say(""), thought.into()];
    for part in writes(task) {
        all.push(part);
        all.push(say(""));
    }
    all
}

fn looper(task: &Task) -> Vec<Served> {
    let mut all: Vec<Served> = (0..14).map(|_| shell("cat missing.txt")).collect();
    all.extend(writes(task));
    all
}

/// As codex teaches it: a heredoc in a shell call, a list of words, a patch without its last line.
fn patch_lover(task: &Task) -> Vec<Served> {
    let patch = |path: &str, text: &str| {
        let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
        let delete = match task.files.iter().any(|(known, _)| *known == path) {
            true => format!("*** Delete File: {path}\n"),
            false => String::new(),
        };
        (delete, format!("*** Add File: {path}\n{lines}"))
    };
    let mut all = Vec::new();
    for (n, (path, text)) in task.solution.iter().enumerate() {
        let (delete, add) = patch(path, text);
        if !delete.is_empty() {
            let whole = format!("*** Begin Patch\n{delete}*** End Patch");
            all.push(call("shell", &json!({ "command": ["apply_patch", whole] })));
        }
        all.push(match n % 3 {
            0 => shell(&format!("apply_patch <<'EOF'\n*** Begin Patch\n{add}*** End Patch\nEOF")),
            1 => {
                let whole = format!("*** Begin Patch\n{add}*** End Patch");
                call("shell", &json!({ "command": ["apply_patch", whole] }))
            }
            _ => call("apply_patch", &json!({ "input": format!("*** Begin Patch\n{add}") })),
        });
    }
    all
}

fn asker(task: &Task) -> Vec<Served> {
    let ask = |text: &str| call("ask_person", &json!({ "question": text }));
    let mut all = vec![ask("Shall I begin?")];
    for part in writes(task) {
        all.push(part);
        all.push(ask("Shall I continue?"));
    }
    all.push(say("Shall I also run the checks?"));
    all.push(shell(task.check));
    all
}

/// Starts a server in the background, and asks it in the next call.
fn server_starter(task: &Task) -> Vec<Served> {
    let (path, _) = task.solution[0];
    let serve = "python3 -m http.server --bind 127.0.0.1 8765 >server.out 2>&1 &";
    let fetch = format!(
        "for n in $(seq 50); do curl -sf http://127.0.0.1:8765/{path} >fetched && break; sleep 0.1; \
         done; cmp fetched {path}"
    );
    let mut all = writes(task);
    all.push(shell(serve));
    all.push(shell(&fetch));
    all.push(shell("test -s fetched && mv fetched proof.txt; rm -f server.out"));
    all
}

/// Its build takes longer than a command may, so that it becomes a process of the session.
fn slow_builder(task: &Task) -> Vec<Served> {
    let mut all = writes(task);
    all.push(shell("sleep 3; echo built > built.txt"));
    all.push(call("process", &json!({ "action": "read", "process": 1, "wait": 60 })));
    all.push(shell("cat built.txt && mv built.txt proof.txt"));
    all
}

fn stops_at_80(task: &Task) -> Vec<Served> {
    let (last, most) = task.solution.split_last().unwrap();
    let mut all: Vec<Served> = most.iter().map(write).collect();
    all.push(call("final_output", &json!({ "answer": "Most of it is done; the rest is easy." })));
    all.push(write(last));
    all
}

/// Runs a persona on a task: what it came to, its requests, and those that its script foresees.
async fn play(persona: &Persona, task: &Task, flags: &[&str]) -> (Home, Ran, usize, usize) {
    let script = (persona.script)(task);
    let foreseen = script.len();
    let asked = AtomicUsize::new(0);
    let brain = move |_, _: &Value| {
        let n = asked.fetch_add(1, Ordering::SeqCst);
        script.get(n).cloned().unwrap_or_else(end)
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::with(&server);
    home.set(persona.settings);
    task.files.iter().for_each(|(path, text)| home.put(path, text));
    let args: Vec<&str> = ["run"].iter().chain(flags).chain(&[task.prompt]).copied().collect();
    let ran = home.run(&args).await;
    let requests = server.requests().len();
    (home, ran, requests, foreseen)
}

fn passes(folder: &Path, check: &str) -> bool {
    let ran = Command::new("sh").args(["-c", check]).current_dir(folder).output().unwrap();
    ran.status.success()
}

/// What is wrong with a run, if anything.
async fn fault(persona: &Persona, task: &Task) -> Option<String> {
    let (home, ran, requests, foreseen) = play(persona, task, &["--unattended"]).await;
    let project = home.project();
    let fault = if ran.code != 0 || ran.out != "finished\n" {
        Some(format!("exit {}: {}", ran.code, ran.out))
    } else if !passes(&project, task.check) {
        Some("the work is not done".into())
    } else if ["server starter", "slow builder"].contains(&persona.name)
        && !project.join("proof.txt").exists()
    {
        Some("what it started was not there".into())
    } else if requests > foreseen + EXTRA {
        Some(format!("{requests} requests, {foreseen} foreseen"))
    } else {
        None
    };
    fault.map(|fault| format!("{} / {}: {fault}\n{}", persona.name, task.name, ran.err))
}

/// Every pair of a persona and a task that `wanted` names.
async fn all(wanted: impl Fn(usize, usize) -> bool) {
    let pairs = (0..PERSONAS.len()).flat_map(|p| (0..TASKS.len()).map(move |t| (p, t)));
    let pairs: Vec<(usize, usize)> = pairs.filter(|(p, t)| wanted(*p, *t)).collect();
    let mut faults = Vec::new();
    for two in pairs.chunks(2) {
        let running: Vec<_> = two
            .iter()
            .map(|(p, t)| {
                let (p, t) = (*p, *t);
                tokio::spawn(async move { fault(&PERSONAS[p], &TASKS[t]).await })
            })
            .collect();
        for one in running {
            faults.extend(one.await.unwrap());
        }
    }
    println!("figure: personas: {} of {} finish", pairs.len() - faults.len(), pairs.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// 24 of the 120 pairs, each persona and each task; `cargo xtask long personas` runs all.
#[tokio::test(flavor = "multi_thread")]
async fn personas_finish_their_tasks() {
    let whole = std::env::var("DUNNOCK_PERSONAS").is_ok_and(|which| which == "all");
    all(|p, t| whole || t == p % TASKS.len() || t == (p + 5) % TASKS.len()).await;
}

/// The control: without `--unattended`, most of the habits end a run with the work undone.
#[tokio::test(flavor = "multi_thread")]
async fn without_unattended_most_personas_do_not_finish() {
    let mut undone = Vec::new();
    for (n, persona) in PERSONAS.iter().enumerate() {
        let task = &TASKS[n % TASKS.len()];
        let (home, ran, ..) = play(persona, task, &[]).await;
        if ran.code != 0 || !passes(&home.project(), task.check) {
            undone.push(persona.name);
        }
    }
    println!("figure: personas that do not finish without --unattended: {}", undone.join(", "));
    let expected =
        ["announcer", "early finisher", "empty answerer", "asker", "one that stops at 80 %"];
    for name in expected {
        assert!(undone.contains(&name), "{name} finishes without --unattended: {undone:?}");
    }
}

/// Every check fails without the last part of the solution, so that a task that is not done counts
/// as not done.
#[test]
fn every_task_needs_its_whole_solution() {
    for task in &TASKS {
        let dir = tempfile::tempdir().unwrap();
        let put =
            |(path, text): &(&str, &str)| std::fs::write(dir.path().join(path), text).unwrap();
        task.files.iter().for_each(put);
        for part in task.solution {
            assert!(!passes(dir.path(), task.check), "{}: before {}", task.name, part.0);
            put(part);
        }
        assert!(passes(dir.path(), task.check), "{}", task.name);
    }
}
