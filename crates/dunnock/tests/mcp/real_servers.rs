//! Real servers, as `.ci/run` installs them: both eras, over pipes and over HTTP.

use super::{ServerWorld, find, nth};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Where the servers are. A test without them would prove nothing.
fn installed() -> PathBuf {
    let folder = std::env::var("MCP_SERVERS").map(PathBuf::from).unwrap_or_else(|_| {
        let home = std::env::var("CARGO_HOME")
            .unwrap_or_else(|_| format!("{}/.cargo", std::env::var("HOME").unwrap()));
        PathBuf::from(home).join("dunnock-tools/mcp")
    });
    assert!(
        folder.join("py/bin/mcp-server-git").exists(),
        "the MCP servers are not installed in {}; .ci/run installs them, or name a folder in MCP_SERVERS",
        folder.display()
    );
    folder
}

/// A server over HTTP, on a free port.
struct OverHttp {
    process: Child,
    port: u16,
}

impl OverHttp {
    fn start(mut command: Command, with_port: impl Fn(&mut Command, u16)) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        with_port(&mut command, port);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        super::until("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { process, port }
    }
}

impl Drop for OverHttp {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn call(tool: &str, arguments: &Value) -> (String, String) {
    ("tool_use".into(), json!({"tool": tool, "arguments": arguments}).to_string())
}

/// MCP5: list, call, error, image, embedded resource, link and structured content, in both eras over both
/// transports.
#[tokio::test(flavor = "multi_thread")]
async fn both_eras_over_both_transports() {
    let folder = installed();
    let modern = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mcp/modern.py");
    let servers = ServerWorld::new("real");
    std::fs::copy(modern, servers.folder().join("modern.py")).unwrap();
    let python = folder.join("py/bin/python").display().to_string();
    let everything = folder.join("node_modules/.bin/mcp-server-everything");
    let mut command = Command::new(&python);
    command.arg(servers.folder().join("modern.py"));
    let modern_http = OverHttp::start(command, |command, port| {
        command.arg(port.to_string());
    });
    let mut command = Command::new(&everything);
    command.arg("streamableHttp");
    let legacy_http = OverHttp::start(command, |command, port| {
        command.env("PORT", port.to_string());
    });
    let read = format!("read = [{}, {}]", json!(folder), json!(servers.folder()));
    let tables = format!(
        "\n[mcp.legacy]\ncommand = {}\n{read}\n[mcp.modern]\ncommand = {}\nargs = [{}]\n{read}\n\
         [mcp.git]\ncommand = {}\n{read}\n[mcp.modern-http]\nurl = \"http://127.0.0.1:{}/mcp\"\n\
         [mcp.legacy-http]\nurl = \"http://127.0.0.1:{}/mcp\"\n",
        json!(everything),
        json!(python),
        json!(servers.folder().join("modern.py")),
        json!(folder.join("py/bin/mcp-server-git")),
        modern_http.port,
        legacy_http.port,
    );
    let project = servers.world.home.project().canonicalize().unwrap();
    let mut calls = vec![find("")];
    let mut expected: Vec<(String, &str)> = Vec::new();
    for era in ["legacy", "legacy-http"] {
        for (tool, arguments, part) in [
            ("echo", json!({"message": "hello"}), "Echo: hello"),
            ("get-sum", json!({"a": 2, "b": 3}), "5"),
            ("get-tiny-image", json!({}), "[image: image/png]"),
            (
                "get-resource-reference",
                json!({"resourceType": "Text", "resourceId": 1}),
                "[resource ",
            ),
            ("get-resource-links", json!({"count": 2}), "[link "),
            ("get-structured-content", json!({"location": "New York"}), "temperature"),
            ("echo", json!({"message": 7}), "message: expected string, not number"),
            ("trigger-long-running-operation", json!({"duration": 1, "steps": 4}), "completed"),
        ] {
            calls.push(call(&format!("{era}/{tool}"), &arguments));
            expected.push((format!("{era}/{tool}"), part));
        }
    }
    for era in ["modern", "modern-http"] {
        for (tool, arguments, part) in [
            ("add_numbers", json!({"a": 2, "b": 3}), "5"),
            ("count_words", json!({"text": "a b a"}), "\"a\": 2"),
            ("give_up", json!({"reason": "no reason"}), "Error executing tool give_up"),
            ("add_numbers", json!({"a": "x", "b": 3}), "a: expected integer"),
        ] {
            calls.push(call(&format!("{era}/{tool}"), &arguments));
            expected.push((format!("{era}/{tool}"), part));
        }
    }
    for (tool, arguments, part) in [
        ("git_log", json!({"repo_path": project, "max_count": 2}), "three"),
        ("git_status", json!({"repo_path": project}), "README.md"),
        ("git_status", json!({"repo_path": "/root"}), "rror"),
    ] {
        calls.push(call(&format!("git/{tool}"), &arguments));
        expected.push((format!("git/{tool}"), part));
    }
    let came = servers.run(&tables, &calls, &["--approve", "all", "--max-steps", "60"]).await;
    assert_eq!(came.code, 0, "{}", came.err);
    println!("{}", nth(&came, 0));
    for (n, (tool, part)) in expected.iter().enumerate() {
        let told = nth(&came, n + 1);
        println!("{tool}: {}", told.chars().take(80).collect::<String>().replace('\n', " "));
        assert!(told.contains(part), "{tool}: {told}");
    }
}

/// MCP3: which tool a question finds, over the servers that are installed here.
#[tokio::test(flavor = "multi_thread")]
async fn questions_find_their_tools() {
    let folder = installed();
    let questions: Vec<(&str, &str)> = include_str!("../../../../fixtures/mcp/questions.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once(": ").unwrap())
        .collect();
    let servers = ServerWorld::new("questions");
    let read = format!("read = [{}]", json!(folder));
    let command = |name: &str, path: &str, args: &str| {
        let program = folder.join(path);
        match program.exists() {
            true => {
                format!("\n[mcp.{name}]\ncommand = {}\nargs = [{args}]\n{read}\n", json!(program))
            }
            false => String::new(),
        }
    };
    let tables = command("everything", "node_modules/.bin/mcp-server-everything", "")
        + &command("files", "node_modules/.bin/mcp-server-filesystem", "\".\"")
        + &command("memory", "node_modules/.bin/mcp-server-memory", "")
        + &command("git", "py/bin/mcp-server-git", "")
        + &command("time", "py/bin/mcp-server-time", "");
    let finds = questions.iter().map(|(_, question)| find(question));
    let calls: Vec<_> = std::iter::once(find("")).chain(finds).collect();
    let model = servers.model(&tables, &calls).await;
    let ran = servers.ran(&["run", "--max-steps", "200", "go"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = super::told(&model);
    println!("{}", told[0]);
    let (mut right, mut first) = (0, 0);
    for ((tool, question), told) in questions.iter().zip(&told[1..]) {
        assert!(told.len() <= 6_200, "{question}: {} bytes", told.len());
        let is_whole =
            |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains('/');
        let shown: Vec<&str> =
            told.lines().filter(is_whole).filter(|l| !l.starts_with("also: ")).collect();
        let starts =
            |line: &&str| line.strip_prefix(tool).is_some_and(|rest| rest.starts_with([':', ' ']));
        let place = shown.iter().position(starts);
        let named = told.lines().any(|line| line.starts_with("also: ") && line.contains(tool));
        right += usize::from(place.is_some_and(|place| place < 5));
        first += usize::from(place == Some(0));
        if place != Some(0) {
            println!("{question:?}: {tool} is at {place:?}, named: {named}");
        }
    }
    let all = questions.len();
    println!(
        "figure: {right} of {all} questions find their tool in the first five, {first} of them first"
    );
    assert!(right * 20 >= all * 19, "{right} of {all}");
}
