//! Servers that a project brings.

use super::{ServerWorld, find, nth};
use serde_json::json;

/// MCP11: nothing of a project's servers starts, connects or resolves before the person trusts them.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_starts_before_trust() {
    let servers = ServerWorld::new("trust");
    servers.world.bash("cp ../servers/server.py server.py; mkdir -p .cursor .vscode");
    let port = servers.world.port();
    let start = json!({"command": "python3", "args": ["./server.py"]});
    let far = json!({"url": format!("http://127.0.0.1:{port}/mcp")});
    let own = |key: &str| json!({key: {"near": start, "far": far}}).to_string();
    servers.world.put(".mcp.json", &own("mcpServers"));
    servers.world.put(".cursor/mcp.json", &own("mcpServers"));
    servers.world.put(".vscode/mcp.json", &own("servers"));
    servers.world.put("opencode.json", &own("mcp"));
    servers.world.put(".dunnock/config.toml", "[mcp.inner]\ncommand = \"./server.py\"\n");
    let config = servers.world.home.dir.path().join("trace");
    let _model = servers.model("", &[find("")]).await;
    // Everything that the program and its children execute and connect to.
    let run = servers.world.command(&["run", "go"]);
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-qq", "-e", "trace=execve,connect", "-o"]).arg(&config);
    traced.arg(run.get_program()).args(run.get_args()).current_dir(servers.world.home.project());
    traced.env_clear();
    for (name, value) in run.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    let ran = crate::ran(traced).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let trace = std::fs::read_to_string(&config).unwrap();
    assert!(trace.contains("execve"), "the trace sees something");
    let seen: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("server.py") || line.contains(&format!("htons({port})")))
        .collect();
    assert_eq!((seen, servers.log()), (Vec::new(), Vec::new()));
    assert!(ran.err.contains("dunnock trust"), "{}", ran.err);
    let listed = servers.ran(&["mcp", "list"]).await;
    assert!(listed.out.contains("do not run before you trust the folder"), "{}", listed.out);
    assert!(servers.world.is_quiet());

    // Trust shows what would run, and what it would get.
    let trusted = servers.ran(&["trust"]).await;
    for part in [
        "MCP server near (.mcp.json): python3 ./server.py",
        "no network, changes no files",
        "127.0.0.1",
    ] {
        assert!(trusted.err.contains(part), "{part}: {}", trusted.err);
    }
    let came = servers.run("", &[find("echo")], &[]).await;
    assert!(nth(&came, 0).contains("near/echo"), "{}", nth(&came, 0));
}

/// MCP11: a project's server gets variables of the person only by name, and never widens what it gets by
/// taking a name that the person uses.
#[tokio::test(flavor = "multi_thread")]
async fn variables_and_names_are_the_persons() {
    let servers = ServerWorld::new("names");
    servers.world.bash("cp ../servers/server.py server.py");
    let options = json!({"tools": ["env"]}).to_string();
    let server = |env: serde_json::Value| json!({"command": "python3", "args": ["./server.py", options], "env": env});
    let all = json!({"mcpServers": {
        "wants": server(json!({"TOKEN": "${SCRIPT_KEY}"})),
        "mine": server(json!({"FROM": "project"})),
    }});
    servers.world.put(".mcp.json", &all.to_string());
    assert_eq!(servers.ran(&["trust"]).await.code, 0);
    let own = servers.table("mine", &json!({"tools": ["env"]}), "env = { FROM = \"person\" }");
    let calls = [find("env"), super::use_tool("mine/env", "")];
    let came = servers.run(&own, &calls, &["--approve", "all"]).await;
    let found = nth(&came, 0);
    assert!(found.contains("wants cannot be used") && found.contains("mcp_variables"), "{found}");
    assert!(nth(&came, 1).contains("\"FROM\": \"person\""), "{}", nth(&came, 1));
    assert!(came.err.contains("because you have one with that name"), "{}", came.err);
    assert!(!came.sent.contains(crate::KEY), "the key is in no request body");
}
