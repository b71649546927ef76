//! A session that runs again without the model.

use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use serde_json::{Value, json};

pub fn call(tool: &str, args: Value) -> Served {
    Say::calls(&[(tool, &args.to_string())]).into()
}

pub fn says(text: &str) -> Served {
    Say::text(text).into()
}

fn usage(input: u64, output: u64) -> dunnock_proto::Usage {
    dunnock_proto::Usage { input, output, ..Default::default() }
}

/// A scene: what the model says, how the program is started, and what is done then.
struct Scene {
    name: &'static str,
    script: Vec<Served>,
    flags: &'static [&'static str],
    ends: i32,
    then: &'static [&'static [&'static str]],
    /// Calls that are not run again.
    over: u64,
}

fn scenes() -> Vec<Scene> {
    let scene = |name, script, flags, ends| Scene { name, script, flags, ends, then: &[], over: 0 };
    let all: &[&str] = &["--approve", "all"];
    vec![
        scene(
            "files: write, view, insert, replace, move, delete, patch",
            vec![
                call("write_file", json!({"path": "new/b.txt", "content": "one\ntwo\n"})),
                call("view_file", json!({"path": "new/b.txt"})),
                call("insert_text", json!({"path": "new/b.txt", "line": 1, "text": "zero\n"})),
                call("replace_text", json!({"path": "a.txt", "old": "alpha", "new": "beta"})),
                call("move_file", json!({"path": "new/b.txt", "to": "c.txt"})),
                call(
                    "apply_patch",
                    json!({"patch": "*** Begin Patch\n*** Add File: d.txt\n+x\n*** End Patch\n"}),
                ),
                call("delete_file", json!({"path": "d.txt"})),
                says("done"),
            ],
            all,
            0,
        ),
        scene(
            "looking: list, search, git",
            vec![
                Say::calls(&[
                    ("list_files", "{}"),
                    ("search_text", r#"{"pattern":"alpha"}"#),
                    ("view_file", r#"{"path":"a.txt"}"#),
                ])
                .into(),
                Say::calls(&[("git_status", "{}"), ("git_diff", "{}")]).into(),
                says("done"),
            ],
            all,
            0,
        ),
        scene(
            "commands and programs that run on",
            vec![
                call("shell", json!({"command": "seq 5; echo made > made.txt; pwd"})),
                call("process_start", json!({"command": "cat"})),
                call("process_write", json!({"process": 1, "text": "hello\n"})),
                call("process_read", json!({"process": 1})),
                call("process_stop", json!({"process": 1})),
                call("update_plan", json!({"steps": [{"text": "a", "state": "done"}]})),
                call("final_output", json!({"answer": "finished"})),
            ],
            all,
            0,
        ),
        Scene {
            // No server is asked again.
            over: 1,
            ..scene(
                "a tool that is not there, arguments that are none",
                vec![
                    call("nothing", json!({})),
                    call("web_fetch", json!({"url": "https://example.com/"})),
                    call("tool_find", json!({})),
                    call("tool_use", json!({"tool": "a/b"})),
                    says("done"),
                ],
                all,
                0,
            )
        },
        scene(
            "a failed command, then done",
            vec![call("shell", json!({"command": "exit 3"})), says("done")],
            all,
            0,
        ),
        scene(
            "proven after a try",
            vec![
                says("done"),
                call("write_file", json!({"path": "b.txt", "content": "x"})),
                says("done"),
            ],
            &["--approve", "all", "--verify", "test -f b.txt"],
            0,
        ),
        scene("not proven", vec![says("a"), says("b"), says("c")], &["--verify", "false"], 5),
        scene(
            "the limit of steps",
            vec![call("shell", json!({"command": "true"})); 5],
            &["--approve", "all", "--max-steps", "2"],
            4,
        ),
        scene(
            "the budget",
            (0..30)
                .map(|n| {
                    Say {
                        usage: usage(900, 100),
                        ..call("shell", json!({"command": format!("echo {n}")})).say
                    }
                    .into()
                })
                .collect(),
            &["--approve", "all", "--budget", "20ktok"],
            4,
        ),
        scene(
            "a model that fails",
            vec![Served::wrong(says("x").say, Fault::Says(400, "{}".into()))],
            &[],
            1,
        ),
        scene(
            "a model that fails and is tried again",
            vec![Served::wrong(says("x").say, Fault::Status(503, None)).times(1)],
            &[],
            0,
        ),
        Scene {
            then: &[&["approve", "ID", "--go"]],
            ..scene(
                "an approval",
                vec![call("shell", json!({"command": "touch hi"})), says("done")],
                &["--approve", "ask"],
                3,
            )
        },
        Scene {
            then: &[&["decline", "ID", "--note", "not that", "--go"]],
            ..scene(
                "a refusal",
                vec![call("shell", json!({"command": "touch hi"})), says("done")],
                &["--approve", "ask"],
                3,
            )
        },
        Scene {
            then: &[&["answer", "ID", "blue", "--go"]],
            ..scene(
                "a question",
                vec![
                    call("ask_person", json!({"question": "Which?", "choices": ["red"]})),
                    says("done"),
                ],
                &[],
                3,
            )
        },
        Scene {
            then: &[&["undo", "ID"], &["undo", "ID"], &["resume", "ID", "--prompt", "again"]],
            ..scene(
                "undo, undo of the undo, and on",
                vec![call("write_file", json!({"path": "b.txt", "content": "x"})), says("done")],
                all,
                0,
            )
        },
        Scene {
            then: &[&["compact", "ID"], &["resume", "ID", "--prompt", "more"]],
            ..scene(
                "compacted",
                vec![
                    Say {
                        text: "SUMMARY of it".into(),
                        ..call("shell", json!({"command": "seq 1 3000"})).say
                    }
                    .into(),
                    call("shell", json!({"command": "seq 1 3000"})),
                    says("done"),
                ],
                all,
                0,
            )
        },
    ]
}

pub async fn replayed(home: &Home, id: &str, flags: &[&str]) -> (Ran, Value) {
    let args: Vec<&str> =
        ["sessions", "replay", id, "--json"].iter().chain(flags).copied().collect();
    let ran = home.run(&args).await;
    let json: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    assert!(json.is_object(), "{} {}", ran.out, ran.err);
    (ran, json)
}

fn prepare(home: &Home) {
    home.put("a.txt", "alpha\n");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qm", "x"],
    ] {
        assert!(home.command_of("git".as_ref(), args).status().unwrap().success());
    }
}

/// Runs a scene to its end; its session.
async fn play(home: &Home, scene: &Scene) -> String {
    let args: Vec<&str> = ["run"].iter().chain(scene.flags).copied().chain(["do it"]).collect();
    let ran = home.run(&args).await;
    assert_eq!(ran.code, scene.ends, "{}: {}", scene.name, ran.err);
    let id = home.newest().await;
    for then in scene.then {
        let args: Vec<&str> =
            then.iter().map(|word| if *word == "ID" { id.as_str() } else { word }).collect();
        let ran = home.run(&args).await;
        assert_eq!(ran.code, 0, "{}: {then:?}: {}", scene.name, ran.err);
    }
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_and_every_ending_replays_byte_for_byte() {
    let mut tools = std::collections::BTreeSet::new();
    for scene in scenes() {
        let server = ScriptedServer::start(scene.script.clone()).await;
        let home = Home::with(&server);
        prepare(&home);
        let id = play(&home, &scene).await;
        let name = scene.name;
        let requests = server.bodies().len();
        let (ran, json) = replayed(&home, &id, &[]).await;
        assert_eq!((ran.code, &json["same"]), (0, &Value::Bool(true)), "{name}: {json}");
        assert_eq!(
            (json["ran"].as_bool(), json["passed_over"].as_u64()),
            (Some(true), Some(scene.over)),
            "{name}: {json}"
        );
        let (log, only) = replayed(&home, &id, &["--log"]).await;
        assert_eq!((log.code, only["events"].as_u64()), (0, json["events"].as_u64()), "{name}");
        assert_eq!(server.bodies().len(), requests, "{name}: the model was asked");
        let facts = home.run(&["sessions", "show", &id, "--json"]).await.out;
        for offer in dunnock_tools::offers() {
            if facts.contains(&format!("\"tool\":\"{}\"", offer.tool.name)) {
                tools.insert(offer.tool.name);
            }
        }
        println!(
            "same  {:>3} facts, {:>2} requests, {:>2} calls  {name}",
            json["events"], json["requests"], json["calls"]
        );
    }
    let missing: Vec<String> = dunnock_tools::offers()
        .into_iter()
        .map(|o| o.tool.name)
        .filter(|name| !tools.contains(name))
        .collect();
    assert!(missing.is_empty(), "no scene calls {missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_prompt_or_output_is_named_as_the_first_difference() {
    let script = vec![
        call("shell", json!({"command": "cat a.txt"})),
        call("shell", json!({"command": "echo second"})),
        says("done"),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    home.put("a.txt", "alpha\n");
    assert_eq!(home.run(&["run", "--approve", "all", "find the needle"]).await.code, 0);
    let id = home.newest().await;
    assert_eq!(replayed(&home, &id, &[]).await.0.code, 0);
    // The prompt template is another: the instructions come out differently, and nothing else does.
    let prompts = home.dir.path().join(".config/dunnock/prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("system.md"), "You are somebody else.").unwrap();
    let (ran, json) = replayed(&home, &id, &[]).await;
    assert_eq!((ran.code, json["differences"].as_u64()), (1, Some(1)), "{json}");
    assert!(
        json["first"]["what"].as_str().unwrap().starts_with("the instructions, from byte"),
        "{json}"
    );
    assert!(json["first"]["now"].as_str().unwrap().contains("You are somebody else."), "{json}");
    std::fs::remove_dir_all(&prompts).unwrap();
    // What was recorded is another: what the person said, what a call put out.
    let exported = home.run(&["sessions", "export", &id]).await.out;
    for (from, to, what) in [
        ("find the needle", "find the noodle", "the request of step 1"),
        ("alpha", "omega", "the output of call 1.0"),
        ("\"shown\":\"second", "\"shown\":\"2nd", "the output of call 2.0"),
    ] {
        let other = Home::with(&server);
        let file = other.dir.path().join("session.jsonl");
        std::fs::write(&file, crate::travels::forged(&exported, from, to)).unwrap();
        let into = other.dir.path().join("into");
        let (file, into) = (file.to_str().unwrap(), into.to_str().unwrap());
        let ran = other.run(&["sessions", "import", file, "--into", into]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let (ran, json) = replayed(&other, &id, &[]).await;
        assert_eq!(ran.code, 1, "{what}: {json}");
        let named = json["first"]["what"].as_str().unwrap();
        assert_eq!(named, what, "{json}");
        let plain = other.run(&["sessions", "replay", &id]).await;
        assert!(
            plain.out.starts_with(&format!("first difference: {what} (event ")),
            "{}",
            plain.out
        );
        println!("named: {plain}", plain = plain.out.lines().next().unwrap());
    }
}

/// A number that looks like chance and is the same each time.
fn chance(seed: u64, n: u64, below: u64) -> u64 {
    let hash = dunnock_proto::Hash::of(format!("{seed} {n}").as_bytes());
    u64::from_le_bytes(hash.0[..8].try_into().unwrap()) % below
}

/// A script by its seed: some steps of one to three calls each.
fn script(seed: u64) -> Vec<Served> {
    let steps = 2 + chance(seed, 0, 6);
    let mut script: Vec<Served> = (1..=steps)
        .map(|step| {
            let calls = 1 + chance(seed, step * 100, 3);
            let one = |n: u64| {
                let roll = chance(seed, step * 100 + n, 12);
                let file = format!("f{}.txt", chance(seed, step * 100 + n + 50, 4));
                let (tool, args) = match roll {
                    0 | 1 => (
                        "write_file",
                        json!({"path": file, "content": format!("{seed} {step}\nkeep\n"), "overwrite": true}),
                    ),
                    2 => ("replace_text", json!({"path": file, "old": "keep", "new": format!("kept {step}")})),
                    3 => ("insert_text", json!({"path": file, "line": 1, "text": format!("line {step}\n")})),
                    4 => ("view_file", json!({"path": file})),
                    5 => ("list_files", json!({})),
                    6 => ("search_text", json!({"pattern": "ke+p"})),
                    7 => ("delete_file", json!({"path": file})),
                    8 => ("move_file", json!({"path": file, "to": format!("m{step}.txt")})),
                    9 => ("update_plan", json!({"steps": [{"text": format!("step {step}"), "state": "active"}]})),
                    10 => ("shell", json!({"command": format!("seq {}; wc -c *.txt", chance(seed, step + 7, 3000))})),
                    _ => ("shell", json!({"command": format!("echo {step} >> {file}; test {step} -gt 2")})),
                };
                (tool.to_owned(), args.to_string())
            };
            Say { calls: (1..=calls).map(one).collect(), text: format!("step {step}"), ..Say::default() }.into()
        })
        .collect();
    script.push(says("done"));
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn ninety_recorded_sessions_replay_byte_for_byte() {
    let mut workers = Vec::new();
    for worker in 0..3u64 {
        workers.push(tokio::spawn(async move {
            let mut sums = [0u64; 4];
            for seed in (worker..90).step_by(3) {
                let server = ScriptedServer::start(script(seed)).await;
                let home = Home::with(&server);
                home.put("f0.txt", "keep\n");
                home.put("f1.txt", "keep this\n");
                let flags: &[&str] = match seed % 3 {
                    0 => &["--approve", "all"],
                    1 => &["--approve", "all", "--verify", "test -d ."],
                    _ => &["--approve", "edits"],
                };
                let args: Vec<&str> =
                    ["run"].iter().chain(flags).copied().chain(["do it"]).collect();
                let mut ran = home.run(&args).await;
                let id = home.newest().await;
                for n in 0..60 {
                    if ran.code != 3 {
                        break;
                    }
                    let say = if chance(seed, 900 + n, 4) == 0 { "decline" } else { "approve" };
                    ran = home.run(&[say, &id, "--all", "--go"]).await;
                }
                assert_eq!(ran.code, 0, "{seed}: {}", ran.err);
                let (ran, json) = replayed(&home, &id, &[]).await;
                assert_eq!((ran.code, &json["ran"]), (0, &Value::Bool(true)), "{seed}: {json}");
                let all = [
                    1,
                    json["events"].as_u64().unwrap(),
                    json["requests"].as_u64().unwrap(),
                    json["calls"].as_u64().unwrap(),
                ];
                sums.iter_mut().zip(all).for_each(|(sum, n)| *sum += n);
            }
            sums
        }));
    }
    let mut sums = [0u64; 4];
    for worker in workers {
        sums.iter_mut().zip(worker.await.unwrap()).for_each(|(sum, n)| *sum += n);
    }
    let [sessions, facts, requests, calls] = sums;
    println!(
        "{sessions} sessions: {facts} facts, {requests} requests and {calls} calls, all the same"
    );
    assert!(sessions == 90 && calls > 300);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_interrupted_or_killed_replays_as_far_as_it_is_known() {
    for (kill, ends) in [(false, 130), (true, -1)] {
        let slow = call("shell", json!({"command": "touch began; sleep 20"}));
        let server = ScriptedServer::start(vec![
            call("shell", json!({"command": "echo one"})),
            slow,
            says("done"),
        ])
        .await;
        let home = Home::with(&server);
        home.put("a.txt", "alpha\n");
        let child = home.start(&["run", "--approve", "all", "go"]);
        crate::verdicts::until(&home, "began").await;
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        let signal =
            if kill { rustix::process::Signal::KILL } else { rustix::process::Signal::INT };
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(crate::told(child.wait_with_output().unwrap()).code, ends);
        let id = home.newest().await;
        for (n, resume) in [false, true].into_iter().enumerate() {
            if resume {
                let ran = home.run(&["resume", &id]).await;
                assert_eq!(ran.code, 0, "{}", ran.err);
            }
            let (ran, json) = replayed(&home, &id, &[]).await;
            assert_eq!(ran.code, 0, "kill {kill}, {n}: {json}");
            assert_eq!(json["calls"].as_u64(), Some(1), "{json}");
            let over = u64::from(!kill || resume);
            assert_eq!(
                json["passed_over"].as_u64(),
                Some(over),
                "what was cut, or is not known, is passed over: {json}"
            );
        }
    }
}
