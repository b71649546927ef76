//! Servers in the files of other agents and editors.

use crate::config::{Entry, InvalidServer, ServerConfig, ServerOrigin, Words};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most bytes that are read of a file.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// How a file describes servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFileFormat {
    /// `{"mcpServers": {NAME: {command, args, env, url, headers}}}`, as most agents write it.
    McpServers,
    /// `{"servers": {NAME: ..}}`, as VS Code writes it.
    VsCode,
    /// `{"mcp": {NAME: {type, command, environment, url, headers}}}`.
    OpenCode,
}

/// Files of a project that describe servers; they count once the folder is trusted.
pub const PROJECT_FILES: &[(&str, ServerFileFormat)] = &[
    (".mcp.json", ServerFileFormat::McpServers),
    (".cursor/mcp.json", ServerFileFormat::McpServers),
    (".vscode/mcp.json", ServerFileFormat::VsCode),
    ("opencode.json", ServerFileFormat::OpenCode),
];

/// Files of the person's, by agent and below the home folder, from which `dunnock mcp add --from`
/// copies. Codex writes TOML, which the program turns into the form of most agents.
pub const OWN_FILES: &[(&str, &str, ServerFileFormat)] = &[
    ("claude", ".claude.json", ServerFileFormat::McpServers),
    ("codex", ".codex/config.toml", ServerFileFormat::McpServers),
    ("gemini", ".gemini/settings.json", ServerFileFormat::McpServers),
    ("cursor", ".cursor/mcp.json", ServerFileFormat::McpServers),
    ("opencode", ".config/opencode/opencode.json", ServerFileFormat::OpenCode),
];

/// What was found in a file.
#[derive(Debug, Default)]
pub struct ForeignServers {
    /// The servers that can be used.
    pub servers: Vec<ServerConfig>,
    /// The others: the name, and why not.
    pub unusable: Vec<(String, String)>,
}

/// Reads the servers of a file.
///
/// # Errors
/// If it is not in this format.
pub fn read_foreign(
    text: &str,
    format: ServerFileFormat,
    origin: &ServerOrigin,
) -> Result<ForeignServers, InvalidServer> {
    if text.len() > MOST_BYTES {
        return Err(InvalidServer("it is too large".into()));
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| InvalidServer(format!("it is not JSON: {error}")))?;
    let key = match format {
        ServerFileFormat::McpServers => "mcpServers",
        ServerFileFormat::VsCode => "servers",
        ServerFileFormat::OpenCode => "mcp",
    };
    let mut found = ForeignServers::default();
    let Some(servers) = value.get(key) else { return Ok(found) };
    let Some(servers) = servers.as_object() else {
        return Err(InvalidServer(format!("{key} is not an object")));
    };
    for (name, entry) in servers {
        let read = entry
            .as_object()
            .ok_or_else(|| InvalidServer("it is not an object".into()))
            .and_then(read_entry)
            .and_then(|entry| match entry {
                Some(entry) => ServerConfig::of_entry(name, origin.clone(), entry),
                None => Err(InvalidServer("it is disabled in that file".into())),
            });
        match read {
            Ok(server) => found.servers.push(server),
            Err(why) => found.unusable.push((name.clone(), why.0)),
        }
    }
    Ok(found)
}

/// `None` if the server is turned off.
fn read_entry(entry: &Map<String, Value>) -> Result<Option<Entry>, InvalidServer> {
    let flag = |key: &str| entry.get(key).and_then(Value::as_bool);
    if flag("disabled") == Some(true) || flag("enabled") == Some(false) {
        return Ok(None);
    }
    if entry.get("type").and_then(Value::as_str) == Some("sse") {
        return Err(InvalidServer("it uses the old SSE transport, which is not supported; use its streamable HTTP address".into()));
    }
    let wrong = |key: &str| InvalidServer(format!("{key} has an unexpected type"));
    let texts = |key: &str| -> Result<BTreeMap<String, String>, InvalidServer> {
        let Some(value) = entry.get(key) else { return Ok(BTreeMap::new()) };
        let map = value.as_object().ok_or_else(|| wrong(key))?;
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let all = map.iter().map(|(key, value)| Some((key.clone(), text(value)?)));
        all.collect::<Option<_>>().ok_or_else(|| wrong(key))
    };
    let list = |key: &str| -> Result<Vec<String>, InvalidServer> {
        let Some(value) = entry.get(key) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(|| wrong(key))?;
        let all = items.iter().map(|item| item.as_str().map(str::to_owned));
        all.collect::<Option<_>>().ok_or_else(|| wrong(key))
    };
    let command = match entry.get("command") {
        None => None,
        Some(Value::String(program)) => Some(Words::One(program.clone())),
        Some(_) => Some(Words::All(list("command")?)),
    };
    let url = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry.get(*key));
    let mut headers = texts("headers")?;
    headers.extend(texts("http_headers")?);
    if let Some(name) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
        headers.insert("Authorization".into(), format!("Bearer ${{{name}}}"));
    }
    let mut env = texts("env")?;
    env.extend(texts("environment")?);
    let url = url.and_then(Value::as_str).filter(|_| command.is_none());
    Ok(Some(Entry {
        command,
        args: list("args")?,
        env,
        url: url.map(str::to_owned),
        headers,
        ..Entry::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerStart;

    #[test]
    fn files_of_other_agents_are_read() {
        let origin = ServerOrigin::Project(".mcp.json".into());
        let read = |text: &str, format| read_foreign(text, format, &origin).unwrap();
        let claude = read(
            r#"{"numStartups": 3, "mcpServers": {
                "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": {"N": 1}},
                "docs": {"type": "http", "url": "https://docs.example/mcp", "headers": {"A": "b"}},
                "old": {"type": "sse", "url": "https://old.example/sse"},
                "off": {"command": "x", "disabled": true},
                "bad": {"args": []},
                "a/b": {"command": "x"}
            }}"#,
            ServerFileFormat::McpServers,
        );
        let names: Vec<&str> = claude.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["docs", "git"]);
        assert_eq!(claude.unusable.len(), 4, "{:?}", claude.unusable);
        assert!(claude.servers.iter().all(|server| server.access == Default::default()));
        let code = read(
            r#"{"inputs": [], "servers": {"x": {"command": "node", "args": ["${env:HOME}/x.js"]}}}"#,
            ServerFileFormat::VsCode,
        );
        assert_eq!(code.servers.len(), 1);
        let open = read(
            r#"{"mcp": {"x": {"type": "local", "command": ["bun", "x"], "environment": {"A": "b"}},
                "y": {"type": "remote", "url": "http://127.0.0.1:1/mcp", "enabled": false}}}"#,
            ServerFileFormat::OpenCode,
        );
        let ServerStart::Command { words, env } = &open.servers[0].start else { unreachable!() };
        assert_eq!((words.len(), env.len(), open.unusable.len()), (2, 1, 1));
        let codex = read(
            r#"{"mcpServers": {"f": {"url": "https://f.example/mcp", "bearer_token_env_var": "F"}}}"#,
            ServerFileFormat::McpServers,
        );
        assert_eq!(codex.servers[0].variables(), ["F"]);
        assert!(read_foreign("[", ServerFileFormat::VsCode, &origin).is_err());
        assert!(read_foreign(r#"{"servers": 1}"#, ServerFileFormat::VsCode, &origin).is_err());
        assert!(read("{}", ServerFileFormat::VsCode).servers.is_empty());
    }
}
