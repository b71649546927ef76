//! MCP servers: the real program, the real sandbox, and servers with faults (`fixtures/mcp/server.py`).

mod approvals;
mod calls;
mod commands;
mod project;
mod real_servers;
mod start;

use crate::Ran;
use crate::cases::world::{Came, World};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A world with servers.
pub struct ServerWorld {
    pub world: World,
}

impl ServerWorld {
    pub fn new(id: &str) -> Self {
        let world = World::new(id);
        let folder = world.home.dir.path().join("servers");
        std::fs::create_dir_all(&folder).unwrap();
        let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mcp/server.py");
        std::fs::copy(server, folder.join("server.py")).unwrap();
        Self { world }
    }

    /// The folder of the servers, outside the workspace.
    pub fn folder(&self) -> PathBuf {
        self.world.home.dir.path().join("servers").canonicalize().unwrap()
    }

    /// The words that start a server with these options.
    pub fn words(&self, options: &Value) -> Vec<String> {
        let script = self.folder().join("server.py").display().to_string();
        vec!["python3".into(), script, options.to_string()]
    }

    /// The table of a server in the settings, with more lines.
    pub fn table(&self, name: &str, options: &Value, more: &str) -> String {
        let words = self.words(options);
        let (program, args) = words.split_first().unwrap();
        format!(
            "\n[mcp.{name}]\ncommand = {}\nargs = {}\nread = [{}]\n{more}\n",
            json!(program),
            json!(args),
            json!(self.folder())
        )
    }

    /// A model that makes these calls, one an answer, with these servers.
    pub async fn model(&self, tables: &str, calls: &[(String, String)]) -> ScriptedServer {
        let calls = calls.iter().map(|(tool, args)| Say::calls(&[(tool.as_str(), args.as_str())]));
        let script = calls.chain([Say::text("done")]).map(Into::into).collect();
        let model = ScriptedServer::start(script).await;
        self.serve(&model, tables);
        model
    }

    /// Starts a task in which nobody is asked, and does not wait for its end.
    pub fn start(&self) -> Child {
        let mut command = self.world.command(&["run", "--approve", "all", "go"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().unwrap()
    }

    /// Runs a task with these servers; the model makes these calls.
    pub async fn run(&self, tables: &str, calls: &[(String, String)], flags: &[&str]) -> Came {
        let model = self.model(tables, calls).await;
        let ran = self.ran(&[&["run"], flags, &["go"]].concat()).await;
        World::came(&model, ran)
    }

    /// Uses this model and these servers.
    pub fn serve(&self, model: &ScriptedServer, tables: &str) {
        self.world.serve(model);
        let config = self.world.home.dir.path().join(".config/dunnock/config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(config, format!("{text}{tables}")).unwrap();
    }

    pub async fn ran(&self, args: &[&str]) -> Ran {
        self.world.ran(args).await
    }

    /// What servers noted in the workspace.
    pub fn log(&self) -> Vec<String> {
        let text = self.world.home.read("log");
        text.lines().map(str::to_owned).collect()
    }

    /// How often servers noted this.
    pub fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|known| known.trim() == line).count()
    }

    /// Forgets what servers noted.
    pub fn forget(&self) {
        let _ = std::fs::remove_file(self.world.home.project().join("log"));
        let _ = std::fs::remove_file(self.world.home.project().join("log.crashed"));
    }

    /// Changes servers that have this file as their state.
    pub fn state(&self, state: &Value) -> PathBuf {
        let path = self.folder().join("state.json");
        let part = self.folder().join("state.part");
        std::fs::write(&part, state.to_string()).unwrap();
        std::fs::rename(part, &path).unwrap();
        path
    }

    /// The processes of servers of this world.
    pub fn processes(&self) -> Vec<u32> {
        let script = self.folder().join("server.py").display().to_string();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let runs = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| {
                let program = line.split('\0').next().unwrap_or_default();
                program.contains("python") && line.contains(&script)
            })
        };
        ids.filter(runs).collect()
    }
}

/// Waits until something is true.
pub fn until(what: &str, is: impl Fn() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn find(query: &str) -> (String, String) {
    ("tool_find".into(), json!({ "query": query }).to_string())
}

pub fn use_tool(tool: &str, text: &str) -> (String, String) {
    ("tool_use".into(), json!({"tool": tool, "arguments": {"text": text}}).to_string())
}

/// What the model was told of its calls, in order.
pub fn told(model: &ScriptedServer) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().and_then(|r| r["messages"].as_array().cloned());
    let results = messages.unwrap_or_default().into_iter().filter(|m| m["role"] == "tool");
    results.map(|m| m["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Everything that was said to the model after the n-th call.
pub fn nth(came: &Came, n: usize) -> String {
    let last = came.sent.lines().last().unwrap_or_default();
    let request: Value = serde_json::from_str(last).unwrap_or_default();
    let results = request["messages"].as_array().cloned().unwrap_or_default();
    let mut results = results.iter().filter(|message| message["role"] == "tool");
    results.nth(n).and_then(|m| m["content"].as_str()).unwrap_or_default().to_owned()
}
