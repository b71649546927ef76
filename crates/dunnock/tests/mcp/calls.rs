//! Calls of servers' tools: arguments, faults, what is left of them, and what a server can reach.

use super::{ServerWorld, find, nth, until, use_tool};
use crate::cases::world::SECRET;
use serde_json::{Value, json};

/// MCP4: wrong arguments never reach a server, and the model learns what was expected.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_not_sent() {
    let servers = ServerWorld::new("arguments");
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 8},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "kind": {"enum": ["a", "b"]},
            "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "number"}, "maxItems": 2, "minItems": 1},
            "deep": {"$ref": "#/$defs/deep"},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "one": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
            "both": {"allOf": [{"type": "object"}, {"required": ["x"]}]},
            "fixed": {"const": 7},
        },
        "required": ["name"],
        "additionalProperties": false,
        "$defs": {"deep": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/deep"}, "leaf": {"type": "string"}},
            "required": ["leaf"],
        }},
    });
    let tool = json!({"name": "strict", "description": "Strict.", "inputSchema": schema});
    let options = json!({"tools": [tool], "log": "log"});
    let table = servers.table("x", &options, "write = true");
    let wrong: Vec<(Value, &str)> = vec![
        (json!({}), "name is missing"),
        (json!({"name": 7}), "name: expected string, not number"),
        (json!({"name": null}), "name: expected string, not null"),
        (json!({"name": ["ab"]}), "name: expected string, not array"),
        (json!({"name": {}}), "name: expected string, not object"),
        (json!({"name": "a"}), "name: it is too short"),
        (json!({"name": "abcdefghi"}), "name: it is too long"),
        (json!({"name": "ab", "count": "3"}), "count: expected integer, not string"),
        (json!({"name": "ab", "count": 1.5}), "count: expected integer"),
        (json!({"name": "ab", "count": 0}), "count: 0 is out of bounds"),
        (json!({"name": "ab", "count": 10}), "count: 10 is out of bounds"),
        (json!({"name": "ab", "kind": "c"}), "kind: expected one of"),
        (json!({"name": "ab", "kind": 1}), "kind: expected one of"),
        (json!({"name": "ab", "flag": "yes"}), "flag: expected boolean"),
        (json!({"name": "ab", "flag": 1}), "flag: expected boolean"),
        (json!({"name": "ab", "list": []}), "list: there are too few items"),
        (json!({"name": "ab", "list": [1, 2, 3]}), "list: there are too many items"),
        (json!({"name": "ab", "list": ["1"]}), "list[0]: expected number"),
        (json!({"name": "ab", "list": 1}), "list: expected array"),
        (json!({"name": "ab", "list": {"0": 1}}), "list: expected array"),
        (json!({"name": "ab", "deep": {}}), "deep.leaf is missing"),
        (json!({"name": "ab", "deep": {"leaf": 1}}), "deep.leaf: expected string"),
        (json!({"name": "ab", "deep": {"leaf": "a", "next": {}}}), "deep.next.leaf is missing"),
        (
            json!({"name": "ab", "deep": {"leaf": "a", "next": {"leaf": "b", "next": 1}}}),
            "deep.next.next: expected object",
        ),
        (json!({"name": "ab", "either": 1}), "either: expected null"),
        (json!({"name": "ab", "one": 6}), "one: it does not match exactly one"),
        (json!({"name": "ab", "one": "x"}), "one: expected number"),
        (json!({"name": "ab", "both": {}}), "both.x is missing"),
        (json!({"name": "ab", "fixed": 8}), "fixed: expected 7"),
        (json!({"name": "ab", "other": 1}), "there is no argument other"),
    ];
    assert_eq!(wrong.len(), 30);
    let mut calls = vec![find("strict")];
    let call = |arguments: &Value| {
        ("tool_use".to_owned(), json!({"tool": "x/strict", "arguments": arguments}).to_string())
    };
    calls.extend(wrong.iter().map(|(arguments, _)| call(arguments)));
    let right = json!({
        "name": "ab", "count": 9, "kind": "a", "flag": true, "list": [1.5], "either": null, "one": 3,
        "deep": {"leaf": "a", "next": {"leaf": "b"}}, "both": {"x": 1}, "fixed": 7,
    });
    calls.push(call(&right));
    let came = servers.run(&table, &calls, &["--approve", "all"]).await;
    assert_eq!(came.code, 0, "{}", came.err);
    for (n, (arguments, why)) in wrong.iter().enumerate() {
        let told = nth(&came, n + 1);
        println!(
            "{arguments}: {}",
            told.lines().next().unwrap_or_default().chars().take(90).collect::<String>()
        );
        assert!(
            told.starts_with("not called: wrong arguments for x/strict"),
            "{arguments}: {told}"
        );
        assert!(told.contains(why), "{arguments}: {told}");
        assert!(told.contains("\"required\":[\"name\"]"), "the schema is repeated: {told}");
    }
    assert_eq!(nth(&came, 31), "strict: ", "what is right is sent");
    assert_eq!(servers.count("strict"), 1, "{:?}", servers.log());
}

/// MCP7: a server that dies is started again; a call that was on its way is sent twice only if its
/// server says that this is harmless.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_is_started_again() {
    let servers = ServerWorld::new("dies");
    let repeatable = json!({"name": "crash_again", "annotations": {"readOnlyHint": true}});
    let tools = json!(["echo", "crash_before", "crash", "crash_after", repeatable]);
    let table = servers.table("x", &json!({"tools": tools, "log": "log"}), "write = true");
    let calls = [
        find("echo"),
        use_tool("x/crash", "1"),
        use_tool("x/echo", "2"),
        use_tool("x/crash_after", "3"),
        use_tool("x/crash_again", "4"),
        use_tool("x/echo", "5"),
    ];
    let came = servers.run(&table, &calls, &["--approve", "all"]).await;
    assert_eq!(came.code, 0, "{}", came.err);
    assert!(nth(&came, 1).contains("outcome unknown"), "{}", nth(&came, 1));
    assert!(nth(&came, 2).starts_with("echo: 2"), "{}", nth(&came, 2));
    assert!(nth(&came, 2).contains("[MCP server x ended (exit 9)]"), "{}", nth(&came, 2));
    assert!(
        nth(&came, 3).starts_with("crash_after: 3"),
        "the answer came first: {}",
        nth(&came, 3)
    );
    assert_eq!(servers.count("crash 1"), 1, "never twice: {:?}", servers.log());
    assert_eq!(servers.count("crash_after 3"), 1);
    // The second start of a row waits a second, which the model is told.
    let fourth = nth(&came, 4);
    let is_later = fourth.contains("started again in") || fourth.starts_with("crash_again: 4");
    assert!(is_later, "{fourth}");
}

/// How many points of a call a kill is tried at.
fn kills() -> u64 {
    std::env::var("DUNNOCK_MCP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12)
}

/// MCP8: the program is killed at several points of a call, and its session is resumed: the server never
/// gets the call twice, and what is not known is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_of_the_program_doubles_no_call() {
    let mut unknown = 0;
    for n in 0..kills() {
        let servers = ServerWorld::new(&format!("died-{n}"));
        let era = if n % 2 == 0 { "legacy" } else { "modern" };
        let options = json!({"tools": ["echo", "sleep"], "log": "log", "era": era});
        let table = servers.table("x", &options, "write = true");
        // What is known needs no start, so that the call comes first.
        assert_eq!(servers.run(&table, &[find("sleep")], &[]).await.code, 0);
        servers.forget();
        let model = servers.model(&table, &[use_tool("x/sleep", "0.4")]).await;
        let mut child = servers.start();
        until("it runs", || !servers.processes().is_empty());
        std::thread::sleep(std::time::Duration::from_millis(n * 900 / kills()));
        child.kill().unwrap();
        tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
        let ran = servers.ran(&["resume"]).await;
        assert_eq!(ran.code, 0, "{n} {era}: {}", ran.err);
        assert!(servers.count("sleep 0.4") <= 1, "{n} {era}: {:?}", servers.log());
        let told = super::told(&model);
        let is_unknown = told.iter().any(|told| told.contains("outcome unknown"));
        let is_done = told.iter().any(|told| told == "sleep: 0.4");
        assert!(is_unknown || is_done || told.is_empty(), "{n} {era}: {told:?}");
        unknown += usize::from(is_unknown);
        assert_eq!(servers.processes(), Vec::<u32>::new(), "{n} {era}");
    }
    println!(
        "figure: {} kills of the program during a call, {unknown} with an unknown outcome",
        kills()
    );
    assert!(unknown > 0, "no kill struck the call");
}

/// MCP7: a call is lost at twelve points of a server's life, and never made twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_point_doubles_nothing() {
    for n in 0..kills() {
        let servers = ServerWorld::new(&format!("kill-{n}"));
        let table =
            servers.table("x", &json!({"tools": ["echo", "sleep"], "log": "log"}), "write = true");
        let sleep = ("shell".to_owned(), json!({"command": "sleep 1.2"}).to_string());
        let calls = [find("echo"), use_tool("x/sleep", "0.3"), sleep, use_tool("x/echo", "last")];
        let model = servers.model(&table, &calls).await;
        let mut child = servers.start();
        until("it runs", || !servers.processes().is_empty());
        std::thread::sleep(std::time::Duration::from_millis(n * 720 / kills()));
        for id in servers.processes() {
            let id = rustix::process::Pid::from_raw(id.try_into().unwrap()).unwrap();
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
        assert!(ended.success(), "{n}: {:?}", super::told(&model));
        let told = super::told(&model);
        assert!(servers.count("sleep 0.3") <= 1, "{n}: {:?}", servers.log());
        assert!(told[3].starts_with("echo: last"), "{n}: {told:?}");
        assert_eq!(servers.processes(), Vec::<u32>::new(), "{n}");
    }
}

/// MCP10: nothing of a server is left: not after the session, not after a kill of the program or of its
/// launcher, and not if it ignores that it should end.
#[tokio::test(flavor = "multi_thread")]
async fn no_process_of_a_server_is_left() {
    for how in ["close", "program", "launcher"] {
        let servers = ServerWorld::new(&format!("left-{how}"));
        let options = json!({"stubborn": true, "log": "log"});
        let tables = servers.table("x", &options, "write = true")
            + &servers.table("y", &json!({"stubborn": true}), "");
        let wait = json!({"command": "while [ ! -e on ]; do sleep 0.05; done"}).to_string();
        let model = servers.model(&tables, &[find("echo"), ("shell".to_owned(), wait)]).await;
        let mut child = servers.start();
        until("both run", || servers.processes().len() == 2 && model.requests().len() == 2);
        let kill = |id: u32| {
            let id = rustix::process::Pid::from_raw(id.try_into().unwrap()).unwrap();
            rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        };
        match how {
            "close" => servers.world.put("on", ""),
            "program" => kill(child.id()),
            _ => {
                let all = std::fs::read_dir("/proc").unwrap().flatten();
                let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
                let is_child = |id: &u32| {
                    let stat =
                        std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
                    let after = stat.rsplit(')').next().unwrap_or_default();
                    after.split_whitespace().nth(1) == Some(&child.id().to_string())
                };
                ids.filter(is_child).for_each(kill);
                servers.world.put("on", "");
            }
        }
        let waiting = tokio::task::spawn_blocking(move || child.wait().unwrap());
        waiting.await.unwrap();
        if how == "close" {
            // The program ends after them.
            assert_eq!(servers.processes(), Vec::<u32>::new());
        }
        let since = std::time::Instant::now();
        until("they are gone", || servers.processes().is_empty());
        let ms = since.elapsed().as_millis();
        println!("figure: servers are gone {ms} ms after the end ({how})");
    }
}

/// MCP14: a server reaches what its settings grant and nothing else; an undo takes back what it wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_exactly_its_access() {
    let servers = ServerWorld::new("access");
    let port = servers.world.port();
    let connect = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('reached')\""
    );
    let home = servers.world.home.dir.path().display().to_string();
    let project = servers.world.home.project().canonicalize().unwrap().display().to_string();
    let data = servers.world.home.data().display().to_string();
    let tests = [
        ("network", connect.as_str(), "reached"),
        ("home", &*format!("cat {home}/secret {home}/.ssh/id_rsa"), SECRET),
        (".env", "cat .env", SECRET),
        ("data", &*format!("ls {data}/sessions.db {data}/locks"), "locks:"),
        ("settings", &*format!("cat {home}/.config/dunnock/config.toml"), "SCRIPT_KEY"),
        ("write", "echo changed >> a.txt && echo written", "written"),
        ("git", "echo x >> .git/config && echo written", "written"),
        ("key", "env | grep SCRIPT_KEY && echo found", "found"),
        ("other", "env | grep OTHER && echo found", "found"),
    ];
    let tables = [
        ("plain", ""),
        ("writer", "write = true\nenv = { OTHER = \"given\", MINE = \"${PERSON}\" }"),
        ("networked", "network = true"),
    ];
    let options = json!({"tools": ["shell"]});
    let all: String =
        tables.iter().map(|(name, more)| servers.table(name, &options, more)).collect();
    let mut calls = vec![find("shell")];
    for (server, _) in tables {
        let tool = format!("{server}/shell");
        // A server with variables or network access does not start in the workspace.
        let inside = |line: &str| format!("cd {project} && {line}");
        calls.extend(tests.iter().map(|(_, line, _)| use_tool(&tool, &inside(line))));
    }
    calls.push(use_tool("writer/shell", "env | grep MINE"));
    let model = servers.model(&all, &calls).await;
    let mut command = servers.world.command(&["run", "--approve", "all", "go"]);
    command.env("PERSON", "mine-1234567").env("OTHER_SECRET", "x");
    let ran = crate::ran(command).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = super::told(&model);
    let may = [("writer", "write"), ("writer", "other"), ("networked", "network")];
    let mut n = 1;
    for (server, _) in tables {
        for (test, _, sign) in &tests {
            let could = told[n].contains(sign);
            println!("{server:>9} {test:>8}: {}", if could { "yes" } else { "no" });
            assert_eq!(could, may.contains(&(server, test)), "{server} {test}: {}", told[n]);
            n += 1;
        }
    }
    assert!(told[n].contains("MINE=mine-1234567"), "{}", told[n]);
    assert!(servers.world.home.read("a.txt").contains("changed"));
    let undone = servers.ran(&["undo"]).await;
    assert_eq!(undone.code, 0, "{}", undone.err);
    assert_eq!(servers.world.home.read("a.txt"), "one\n", "{}", undone.err);
}

/// What reaches more than commands do runs no code that a command can write: neither a script of the
/// workspace nor a module that is found beside it.
#[tokio::test(flavor = "multi_thread")]
async fn planted_code_gets_no_access_of_a_server() {
    let servers = ServerWorld::new("planted");
    servers.world.put("planted.py", "open('ran', 'w')\n");
    let project = servers.world.home.project().canonicalize().unwrap().display().to_string();
    let lines = [
        ("module", json!(["-m", "planted"]), "network = true"),
        ("script", json!(["./planted.py"]), "hosts = [\"x.example\"]"),
        ("whole", json!([format!("{project}/planted.py")]), "env = { A = \"b\" }"),
        ("plain", json!(["-m", "planted"]), ""),
    ];
    let tables: String = lines
        .iter()
        .map(|(name, args, more)| {
            format!("\n[mcp.{name}]\ncommand = \"python3\"\nargs = {args}\nwrite = true\n{more}\n")
        })
        .collect();
    let came = servers.run(&tables, &[find("x")], &["--approve", "all"]).await;
    let told = nth(&came, 0);
    for name in ["script", "whole"] {
        assert!(told.contains(&format!("MCP server {name} cannot be used: ")), "{told}");
    }
    assert!(told.matches("is a file of the workspace").count() == 2, "{told}");
    assert!(told.contains("No module named planted"), "{told}");
    // Control: without more access, it is what any command can run.
    assert!(servers.world.home.project().join("ran").exists(), "{told}");
}

/// A server of the older era that ends when it is asked for what it does not know is started again as
/// one of that era.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_at_the_probe_is_used() {
    let servers = ServerWorld::new("probe");
    let table = servers.table("x", &json!({"ends_at_probe": true}), "");
    let came =
        servers.run(&table, &[find("echo"), use_tool("x/echo", "1")], &["--approve", "all"]).await;
    assert_eq!(nth(&came, 1), "echo: 1", "{}", nth(&came, 0));
}

/// MCP15: floods and noise of a server end nothing and use little memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_survived() {
    let usual = flooded("none", &[("echo", "x", "echo: x")], &json!({"tools": ["echo"]})).await;
    let flood = json!({"tools": ["flood", "echo"], "hello": "Server ready!"});
    let after = "after the flood";
    let large = "x/flood: outcome unknown: the server's answer is too large";
    for (kind, expected) in
        [("line", large), ("notifications", after), ("noise", after), ("ids", "first")]
    {
        let calls = [("flood", kind, expected), ("echo", kind, &*format!("echo: {kind}"))];
        let most = flooded(kind, &calls, &flood).await.saturating_sub(usual);
        println!("figure: {most} MB more with a flood of {kind}");
        assert!(most <= 50, "{kind}: {most} MB");
    }
    let many: Vec<String> = (0..50_000).map(|n| format!("tool_{n}")).collect();
    for (kind, tools) in [("many tools", json!(many)), ("deep schema", json!([deep(), "echo"]))] {
        let most = flooded(kind, &[], &json!({ "tools": tools })).await.saturating_sub(usual);
        println!("figure: {most} MB more with {kind}");
        assert!(most <= 50, "{kind}: {most} MB");
    }
    // A thousand are as many as fit.
    let many: Vec<String> = (0..1_500).map(|n| format!("tool_{n}")).collect();
    flooded("1500", &[("tool_1", "a", "tool_1: a")], &json!({ "tools": many })).await;
}

/// Runs a session with this server and these calls. Returns the most memory of the program, in MB.
async fn flooded(name: &str, calls: &[(&str, &str, &str)], options: &Value) -> u64 {
    let servers = ServerWorld::new(&format!("flood-{}", name.replace(' ', "-")));
    let state = servers.state(options);
    let table = servers.table("x", &json!({"state": state}), "start_timeout = 6");
    let uses = calls.iter().map(|(tool, text, _)| use_tool(&format!("x/{tool}"), text));
    let all: Vec<_> = std::iter::once(find("tool_99")).chain(uses).collect();
    let model = servers.model(&table, &all).await;
    let mut child = servers.start();
    let id = child.id();
    let peak = move || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
    };
    let most = tokio::task::spawn_blocking(move || {
        let mut most = 0;
        while child.try_wait().unwrap().is_none() {
            most = most.max(peak());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        most
    });
    let most = most.await.unwrap();
    let told = super::told(&model);
    assert_eq!(told.len(), calls.len() + 1, "{name}: {told:?}");
    println!("{name}: {}", told[0].chars().take(300).collect::<String>());
    for (told, (_, _, expected)) in told[1..].iter().zip(calls) {
        assert!(told.starts_with(expected), "{name}: {told}");
    }
    most
}

/// A tool whose schema is nested deeper than anybody reads.
fn deep() -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 0..100 {
        schema = json!({"type": "object", "properties": {"a": schema, "b": {"$ref": "#"}}});
    }
    json!({"name": "deep", "description": "Deep.", "inputSchema": schema})
}

/// MCP16: long output is shortened, and all of it can be read; an image is shown.
#[tokio::test(flavor = "multi_thread")]
async fn output_is_bounded_and_whole() {
    let servers = ServerWorld::new("output");
    let table = servers.table("x", &json!({"tools": ["large", "image"]}), "");
    let rest = json!({"path": "call:2.0", "first": 4990, "last": 5000}).to_string();
    let calls = [
        find("large"),
        use_tool("x/large", "5000"),
        ("view_file".to_owned(), rest),
        use_tool("x/image", ""),
    ];
    let came = servers.run(&table, &calls, &["--approve", "all"]).await;
    let shown = nth(&came, 1);
    assert!(shown.len() <= 17 << 10 && shown.lines().count() <= 401, "{}", shown.len());
    assert!(shown.contains("left out; to read them: view_file"), "{shown}");
    assert!(nth(&came, 2).contains("5000") && nth(&came, 2).contains("line"), "{}", nth(&came, 2));
    assert!(nth(&came, 3).contains("[image: image/png]"), "{}", nth(&came, 3));
    assert!(came.sent.contains("image_url") || came.sent.contains("data:image/png"), "it is sent");
}

/// MCP20: a replay needs no server.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_starts_no_server() {
    let servers = ServerWorld::new("replay");
    let reads = json!({"name": "look", "annotations": {"readOnlyHint": true}});
    let table =
        servers.table("x", &json!({"tools": ["echo", reads], "log": "log"}), "write = true");
    let calls = [find("echo"), use_tool("x/echo", "1"), use_tool("x/look", "2")];
    let came = servers.run(&table, &calls, &["--approve", "all"]).await;
    assert_eq!(came.code, 0, "{}", came.err);
    servers.forget();
    let id = servers.world.home.newest().await;
    let ran = servers.ran(&["sessions", "replay", &id]).await;
    assert_eq!((ran.code, servers.log().len()), (0, 0), "{} {}", ran.out, ran.err);
    assert!(nth(&came, 2) == "look: 2", "{}", nth(&came, 2));
}
