//! Limits that can be bypassed, and secrets that leak. Each test is named after what went wrong.

use crate::cases::world::World;
use crate::{Home, KEY};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, ScriptedServer, Served};
use serde_json::json;

/// Makes these calls at a level, with a memory limit of 100 MB; what the model was sent.
async fn with_little_memory(level: &str, calls: &[(&str, serde_json::Value)]) -> Vec<String> {
    let world = World::new(&format!("memory-{level}"));
    let mut script: Vec<Served> =
        calls.iter().map(|(tool, args)| Say::calls(&[(tool, &args.to_string())]).into()).collect();
    script.push(Say::text("done").into());
    let server = ScriptedServer::start(script).await;
    world.serve(&server);
    world.home.set("command_memory_mb = 100\n");
    let mut command = world.command(&["run", "go"]);
    command.env("DUNNOCK_SANDBOX_LEVEL", level);
    let ran = crate::ran(command).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    let results = messages.iter().filter(|m| m["role"] == "tool");
    results.map(|m| m["content"].as_str().unwrap().to_owned()).collect()
}

/// RED-M3: files in memory count, together and with the memory of processes.
#[tokio::test(flavor = "multi_thread")]
async fn memory_files_in_tmp_count_as_memory_of_the_call() {
    let fill = "head -c 45M /dev/zero > /tmp/a; python3 -c \
                'x = bytearray(80 << 20); import time; time.sleep(15); print(\"survived\")'";
    let shared = "python3 -c 'import mmap, time; m = mmap.mmap(-1, 150 << 20); \
                  m.write(bytes(1 << 20) * 150); time.sleep(15); print(\"survived\")'";
    let calls = [
        (
            "shell",
            json!({"command": "for f in /tmp/a /var/tmp/b /dev/shm/c ~/d; do head -c 30M \
                               /dev/zero > $f; done; du -cm /tmp/a /var/tmp/b /dev/shm/c ~/d"}),
        ),
        (
            "shell",
            json!({"command": "python3 -c 'for n in range(100000): open(\"/tmp/%d\" % n, \"w\")'"}),
        ),
        ("shell", json!({ "command": fill })),
        ("shell", json!({ "command": shared })),
        ("process_start", json!({ "command": fill })),
        ("process_read", json!({"process": 1, "wait": 14})),
        ("shell", json!({"command": "rm -rf /tmp/*; echo fine"})),
    ];
    let told = with_little_memory("A", &calls).await;
    let [together, names, filled, shared, _, process, fine] = told.as_slice() else {
        panic!("{told:?}")
    };
    let total = together.lines().rev().find_map(|line| line.strip_suffix("\ttotal")).unwrap();
    assert!(total.parse::<u64>().unwrap() <= 51, "{together}");
    assert!(together.contains("No space left on device"), "{together}");
    assert!(names.contains("No space left on device"), "{names}");
    for text in [filled, shared, process] {
        let stopped = ["more than 100 MB of memory", "more memory than allowed"];
        assert!(stopped.iter().any(|said| text.contains(said)), "{text}");
        assert!(!text.contains("survived"), "{text}");
    }
    assert_eq!(fine, "fine");
    println!("files of a call: {total} MB with a limit of 100 MB");
}

/// RED-M3: the kernel kills commands first, at every level.
#[tokio::test(flavor = "multi_thread")]
async fn memory_that_runs_out_ends_commands_first() {
    for level in ["A", "B", "C"] {
        let read = json!({"command": "cat /proc/self/oom_score_adj"});
        let told = with_little_memory(level, &[("shell", read)]).await;
        assert_eq!(told, ["900"], "level {level}");
    }
}

/// The same for an ordinary user, whose processes do not own their files in `/proc`.
#[test]
fn limits_hold_for_an_ordinary_user() {
    if dunnock_testkit::ordinary::is_root() {
        let program = crate::program();
        let program = [("DUNNOCK_BIN", program.to_str().unwrap())];
        dunnock_testkit::ordinary::run("leaks::memory", &program);
    }
}

/// A home with fake programs outside the project and others of the same names inside, where a
/// command of the model could have put them; the start of `PATH` leads to both.
fn with_programs(home: &Home) -> String {
    let real = home.dir.path().join("programs");
    let names = ["xdg-open", "wl-copy", "wl-paste", "notes-editor"];
    for folder in [&real, &home.project().join("bin")] {
        std::fs::create_dir_all(folder).unwrap();
        for name in names {
            let log = home.dir.path().join(match *folder == real {
                true => format!("env-{name}"),
                false => format!("PLANTED-{name}"),
            });
            let script = format!("#!/bin/sh\nenv > {0}.new\nmv {0}.new {0}\n", log.display());
            std::fs::write(folder.join(name), script).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(folder.join(name), mode).unwrap();
        }
    }
    let path = std::env::var("PATH").unwrap();
    format!("{0}/bin:bin:.:{1}:{path}", home.project().display(), real.display())
}

const KNOWN_KEY: &str = "sk-known-7c02d1";

/// The environment that a fake program was started with: it has no key.
async fn has_no_key(home: &Home, name: &str) {
    let log = home.dir.path().join(format!("env-{name}"));
    let began = std::time::Instant::now();
    while !log.exists() && began.elapsed().as_secs() < 60 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let env = std::fs::read_to_string(&log).unwrap_or_default();
    assert!(env.contains("HOME="), "{name} was not started: {env:?}");
    for secret in [KEY, KNOWN_KEY] {
        assert!(!env.contains(secret), "{name} has a key:\n{env}");
    }
    let path = env.lines().find_map(|line| line.strip_prefix("PATH=")).unwrap();
    let project = home.project().display().to_string();
    let bad = |entry: &str| !entry.starts_with('/') || entry.starts_with(&project);
    assert!(!path.split(':').any(bad), "{name}: {path}");
    let entries = std::fs::read_dir(home.dir.path()).unwrap().flatten();
    let names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("PLANTED")), "{names:?}");
}

/// RED-L3: the browser was started with all keys.
#[tokio::test(flavor = "multi_thread")]
async fn keys_do_not_reach_the_browser_and_the_clipboard() {
    let server = ScriptedServer::start(vec![Say::text("done").into()]).await;
    let home = Home::with(&server);
    let path = with_programs(&home);
    let start = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("PATH", &path).env("OPENAI_API_KEY", KNOWN_KEY).env("COPY_OF_THE_KEY", KEY);
        command
    };
    let mut web = start(&["web", "--port", "0"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    has_no_key(&home, "xdg-open").await;
    web.kill().unwrap();
    web.wait().unwrap();
    let ran = crate::ran(start(&["bridge", "new", "--once", "--copy", "go"])).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    has_no_key(&home, "wl-copy").await;
}

/// RED-L3: the same for what is started from the terminal app.
#[tokio::test(flavor = "multi_thread")]
async fn keys_do_not_reach_programs_that_the_terminal_app_starts() {
    let server = ScriptedServer::start(vec![Say::text("done").into()]).await;
    let home = Home::with(&server);
    let path = with_programs(&home);
    let window = crate::window::Window::shell(&home, 100, 24);
    for (name, value) in [
        ("PATH", path.as_str()),
        ("OPENAI_API_KEY", KNOWN_KEY),
        ("COPY_OF_THE_KEY", KEY),
        ("EDITOR", "notes-editor --wait"),
    ] {
        window.type_in(&format!("export {name}='{value}'"));
        window.key("Enter");
    }
    window.start("");
    window.type_in("!env > ../env-shell.new; mv ../env-shell.new ../env-shell");
    window.key("Enter");
    has_no_key(&home, "shell").await;
    window.key("C-v");
    has_no_key(&home, "wl-paste").await;
    window.key("C-g");
    has_no_key(&home, "notes-editor").await;
    window.key("C-d");
}

/// RED-L5: a database of 0 bytes beside checkpoints was taken for a new one.
#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_database_is_reported_as_damage() {
    for args in [&["sessions", "list"][..], &["sessions", "verify"], &["doctor"]] {
        let script: Vec<Served> = vec![
            Say::calls(&[("write_file", r#"{"path":"a.txt","content":"x\n"}"#)]).into(),
            Say::text("done").into(),
        ];
        let server = ScriptedServer::start(script).await;
        let home = Home::with(&server);
        assert_eq!(home.run(&["run", "go"]).await.code, 0);
        assert!(home.data().join("checkpoints").is_dir());
        for name in ["dunnock.db-wal", "dunnock.db-shm"] {
            let _ = std::fs::remove_file(home.data().join(name));
        }
        std::fs::write(home.data().join("dunnock.db"), "").unwrap();
        let ran = home.run(args).await;
        assert!(ran.err.contains("the session database was damaged"), "{args:?}: {}", ran.err);
        let code = if args == ["sessions", "list"] { 0 } else { 1 };
        assert_eq!(ran.code, code, "{args:?}: {} {}", ran.out, ran.err);
        let later = home.run(&["doctor"]).await.out;
        assert!(later.contains("damaged-1"), "{later}");
    }
}

/// RED-L2: a kill between the creation of a session and its first prompt lost the task.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_created_with_its_task() {
    let server =
        ScriptedServer::start(vec![Say::text("one").into(), Say::text("two").into()]).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "first task"]).await.code, 0);
    let serve = crate::serve::Serve::start(&home);
    let by_http = serve.api().make(&json!({"prompt": "second task"}));
    for id in [home.newest().await, by_http] {
        let shown = home.run(&["sessions", "show", &id, "--json"]).await.out;
        let kinds: Vec<String> = shown
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|event| Some(event["kind"].as_str()?.to_owned()))
            .take(2)
            .collect();
        assert_eq!(kinds, ["created", "prompted"], "{shown}");
    }
}

/// RED-L7: half requests without a token used up all connections for ten seconds.
#[tokio::test(flavor = "multi_thread")]
async fn half_requests_do_not_hold_up_a_good_one() {
    use std::io::{Read as _, Write as _};
    let server = ScriptedServer::start(vec![]).await;
    let home = Home::with(&server);
    let serve = crate::serve::Serve::start(&home);
    // A hundredth of a second would do; half requests are closed after ten seconds.
    let limit = std::time::Duration::from_secs(2);
    let connect = || std::net::TcpStream::connect_timeout(&serve.at, limit);
    let good = format!(
        "GET /api/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        serve.at, serve.token
    );
    let ask = |stream: &mut std::net::TcpStream| {
        stream.set_read_timeout(Some(limit))?;
        stream.write_all(good.as_bytes())?;
        let mut bytes = [0; 12];
        stream.read_exact(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let open = |_| {
        let at = serve.at;
        std::thread::spawn(move || -> Vec<_> {
            let half = |_| {
                let mut stream = std::net::TcpStream::connect(at).unwrap();
                let _ = stream.write_all(b"GET /api/sessions HTTP/1.1\r\nhost: ");
                stream
            };
            (0..144).map(half).collect()
        })
    };
    let threads: Vec<_> = (0..8).map(open).collect();
    let half: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(half.len(), 1_152);
    let answer = connect().and_then(|mut stream| ask(&mut stream));
    assert_eq!(answer.expect("a good request waits"), "HTTP/1.1 200");
    drop(half);
}

/// An answer of the wire `chat`, with these deltas.
fn stream(deltas: &[serde_json::Value], stop: &str) -> Served {
    let event = |choice: serde_json::Value| format!("data: {}\n\n", json!({ "choices": [choice] }));
    let mut text: String =
        deltas.iter().map(|delta| event(json!({"index": 0, "delta": delta}))).collect();
    text.push_str(&event(json!({"index": 0, "delta": {}, "finish_reason": stop})));
    text.push_str("data: [DONE]\n\n");
    Served::wrong(Say::text("x"), Fault::Raw(text.into_bytes()))
}

/// RED-L4: a server that repeats the key in its answer had it printed and stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_an_answer_is_neither_shown_nor_stored() {
    for size in [1, 7, KEY.len(), 1_000] {
        let cut = |text: &str| -> Vec<String> {
            text.as_bytes()
                .chunks(size)
                .map(|piece| String::from_utf8_lossy(piece).into_owned())
                .collect()
        };
        let mut first: Vec<serde_json::Value> = Vec::new();
        first.extend(
            cut(&format!("I think {KEY} s"))
                .into_iter()
                .map(|piece| json!({ "reasoning_content": piece })),
        );
        first.extend(
            cut(&format!("It is {KEY} and sk-"))
                .into_iter()
                .map(|piece| json!({ "content": piece })),
        );
        let args = json!({"command": format!("echo {KEY} | wc -c; echo sk-canary")}).to_string();
        first.push(json!({"tool_calls": [{"index": 0, "id": format!("id-{KEY}"),
            "function": {"name": "shell", "arguments": ""}}]}));
        first.extend(
            cut(&args).into_iter().map(
                |piece| json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}),
            ),
        );
        let escaped = KEY.replacen('-', "\\u002d", 1);
        let second = [json!({"tool_calls": [{"index": 0, "id": "b", "function": {"name": "shell",
            "arguments": format!("{{\"command\":\"echo {escaped}\"}}")}}]})];
        let last: Vec<serde_json::Value> = cut(&format!("Done with {KEY}, s"))
            .into_iter()
            .map(|p| json!({"content": p}))
            .collect();
        let script = vec![
            stream(&first, "tool_calls"),
            stream(&second, "tool_calls"),
            stream(&last, "stop"),
        ];
        let server = ScriptedServer::start(script).await;
        let home = Home::with(&server);
        let ran = home.run(&["run", "--json", "go"]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let plain = home.run(&["resume"]).await;
        assert_eq!(plain.out, "Done with [key], s\n");
        let shown = home.run(&["sessions", "show", "--json"]).await.out;
        assert!(
            shown.contains("It is [key] and sk-") && shown.contains("I think [key] s"),
            "{shown}"
        );
        assert!(shown.contains("echo [key] | wc -c; echo sk-canary"), "{shown}");
        for text in [&ran.out, &ran.err, &plain.err, &shown] {
            assert!(!text.contains(KEY), "in pieces of {size}: {text}");
        }
        // What was shown while it arrived, put together.
        let live = |kind: &str| -> String {
            ran.out
                .lines()
                .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
                .filter(|line| line["type"] == "delta" && line["delta"]["kind"] == kind)
                .filter_map(|line| Some(line["delta"]["text"].as_str()?.to_owned()))
                .collect()
        };
        let (text, reasoning) = (live("text"), live("reasoning"));
        assert!(!text.contains(KEY) && !reasoning.contains(KEY), "{text} {reasoning}");
        for body in server.bodies() {
            assert!(!String::from_utf8_lossy(&body).contains(KEY), "it was sent back");
        }
        let mut open = vec![home.dir.path().to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    false => {
                        let bytes = std::fs::read(entry.path()).unwrap_or_default();
                        let found = bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes());
                        assert!(!found, "it is in {}", entry.path().display());
                    }
                }
            }
        }
    }
}
