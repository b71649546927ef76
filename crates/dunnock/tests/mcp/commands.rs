//! `dunnock mcp`.

use super::ServerWorld;
use serde_json::json;

/// MCP19: servers are added, listed, tested and removed; `add --from` copies those of other agents.
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_added_listed_tested_and_removed() {
    let servers = ServerWorld::new("commands");
    let words = servers.words(&json!({"tools": ["one", "two"]}));
    let read = servers.folder().display().to_string();
    let mut add = vec!["mcp", "add", "x", "--read", &read, "--env", "LOG=debug", "--"];
    add.extend(words.iter().map(String::as_str));
    let added = servers.ran(&add).await;
    assert_eq!(added.code, 0, "{}", added.err);
    assert!(added.err.contains("no network, changes no files"), "{}", added.err);
    assert_eq!(servers.ran(&add).await.code, 1, "twice");
    let listed = servers.ran(&["mcp", "list"]).await;
    assert!(listed.out.contains("x  (yours; tools not known yet)"), "{}", listed.out);
    let tested = servers.ran(&["mcp", "test", "x"]).await;
    assert_eq!(tested.code, 0, "{}", tested.err);
    assert!(tested.out.contains("one: The tool one of a test."), "{}", tested.out);
    assert!(tested.err.contains("x works: 2 tools"), "{}", tested.err);
    assert_eq!(servers.processes(), Vec::<u32>::new());
    let listed = servers.ran(&["mcp", "list", "--json"]).await;
    assert!(listed.out.contains("\"tools\":2"), "{}", listed.out);
    assert_eq!(servers.ran(&["mcp", "test", "y"]).await.code, 2);
    let words = servers.words(&json!({"start": "exit"}));
    let mut add = vec!["mcp", "add", "bad", "--read", &read, "--"];
    add.extend(words.iter().map(String::as_str));
    assert_eq!(servers.ran(&add).await.code, 0);
    let tested = servers.ran(&["mcp", "test", "bad"]).await;
    assert_eq!(tested.code, 1);
    assert!(
        tested.err.contains("the database is away") && tested.err.contains("exit 3"),
        "{}",
        tested.err
    );
    assert_eq!(servers.ran(&["mcp", "remove", "bad"]).await.code, 0);
    assert_eq!(servers.ran(&["mcp", "remove", "bad"]).await.code, 1);
    assert_eq!(servers.ran(&["mcp", "add", "u", "--url", "ftp://x"]).await.code, 2);
    let header =
        ["mcp", "add", "u", "--url", "http://127.0.0.1:1/mcp", "--header", "A: Bearer ${T}"];
    assert_eq!(servers.ran(&header).await.code, 0);
    let tested = servers.ran(&["mcp", "test", "u"]).await;
    assert!(tested.err.contains("it needs the variable T, which is not set"), "{}", tested.err);

    let home = servers.world.home.dir.path();
    std::fs::create_dir_all(home.join(".codex")).unwrap();
    let codex = "model = \"x\"\n[mcp_servers.c]\ncommand = \"srv\"\nargs = [\"-a\"]\n[mcp_servers.x]\ncommand = \"y\"\n";
    std::fs::write(home.join(".codex/config.toml"), codex).unwrap();
    let copied = servers.ran(&["mcp", "add", "--from", "codex"]).await;
    assert_eq!(copied.code, 0, "{}", copied.err);
    assert!(
        copied.err.contains("added c to") && copied.err.contains("x is left as it is"),
        "{}",
        copied.err
    );
    let claude = json!({"mcpServers": {"d": {"type": "http", "url": "https://d.example/mcp"}}});
    std::fs::write(home.join(".claude.json"), claude.to_string()).unwrap();
    assert_eq!(servers.ran(&["mcp", "add", "--from", "claude"]).await.code, 0);
    let listed = servers.ran(&["mcp", "list"]).await.out;
    for part in
        ["c  (yours", "srv -a", "d  (yours", "https://d.example/mcp", "over HTTP, not sandboxed"]
    {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert_eq!(servers.ran(&["mcp", "add", "--from", "nobody"]).await.code, 2);
    assert_eq!(servers.ran(&["mcp", "add", "nope", "--from", "codex"]).await.code, 2);
    assert_eq!(servers.ran(&["mcp", "add", "git"]).await.code, 2);
    assert_eq!(servers.ran(&["mcp", "add", "u2", "--url", "http://x/", "--write"]).await.code, 2);
}
