//! The program as people and scripts meet it, against a scripted model behind real HTTP.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test ends where it goes wrong")]

mod answers;
mod back;
#[cfg(target_os = "linux")]
mod background;
mod boxed;
mod bridge;
mod budgets;
mod cases;
mod context;
mod credentials;
mod daily;
mod efforts;
mod errors;
mod fail_closed;
mod figures;
#[cfg(target_os = "linux")]
mod file_access;
mod forged;
mod git_history;
mod guides;
mod host_info;
mod hosts;
mod images;
mod interrupts;
mod leaks;
mod lines;
mod login;
mod mcp;
mod models;
mod pages;
mod personas;
mod planner;
mod planted;
mod privacy;
mod proof;
mod proxies;
mod readme;
mod real;
mod reconnects;
mod red_team;
mod replays;
mod repositories;
mod runs;
mod secrets;
mod serve;
mod sessions;
mod terminal;
mod tool_table;
mod travels;
mod unattended;
mod verdicts;
mod web;
mod web_fetch;
mod window;
mod workflows;

use dunnock_testkit::server::ScriptedServer;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A person's home, a project, and nothing else.
pub struct Home {
    pub dir: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub const KEY: &str = "sk-canary-5e1f0c77a9";

impl Home {
    pub fn empty() -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(home.project()).unwrap();
        home
    }

    /// With a server configured.
    pub fn with(server: &ScriptedServer) -> Self {
        let home = Self::empty();
        home.configure(&format!(
            "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{}\"\napi_key_env = \
             \"SCRIPT_KEY\"\n",
            server.base_url()
        ));
        home
    }

    pub fn configure(&self, text: &str) {
        let dir = self.dir.path().join(".config/dunnock");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// Puts settings before those that are there.
    pub fn set(&self, more: &str) {
        let config = self.dir.path().join(".config/dunnock/config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(config, format!("{more}{text}")).unwrap();
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join(".local/share/dunnock")
    }

    pub fn put(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap_or_default()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        self.command_of(&program(), args)
    }

    pub fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.project()).env_clear().stdin(Stdio::null());
        command
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("SCRIPT_KEY", KEY);
        command
    }

    /// Runs a command to its end, beside the server of the same test.
    pub async fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args)).await
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The newest session.
    pub async fn newest(&self) -> String {
        let listed = self.run(&["sessions", "list", "--json"]).await;
        let row: serde_json::Value =
            serde_json::from_str(listed.out.lines().next().unwrap()).unwrap();
        row["id"].as_str().unwrap()[..8].to_owned()
    }

    /// A text without what differs from run to run: folders, ids, times, durations.
    pub fn plain(&self, text: &str) -> String {
        let real = self.dir.path().canonicalize().unwrap();
        let mut text = text.replace(real.to_str().unwrap(), "HOME");
        text = text.replace(self.dir.path().to_str().unwrap(), "HOME");
        let rules = [
            (r"http://127\.0\.0\.1:\d{4,5}\b", "http://SERVER"),
            (r"\b[a-z0-9]{20}\b", "SESSION"),
            (
                r"(session|resume|undo|show|approve|decline|answer|attach|why|in session) [a-z0-9]{8}\b",
                "$1 SESSION",
            ),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
            (r"· (\d+ ms|\d+\.\d s) ·", "· TIME ·"),
            (r"\((\d+ ms|\d+\.\d s)\)", "(TIME)"),
            (r"(\d) in \d+\.\d s ·", "$1 in TIME ·"),
            (r"process \d+", "process PID"),
        ];
        for (pattern, with) in rules {
            text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
        }
        text
    }
}

/// The program: as built, or another one to be tested.
pub fn program() -> PathBuf {
    std::env::var_os("DUNNOCK_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_dunnock").into(), PathBuf::from)
}

pub async fn ran(mut command: Command) -> Ran {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    told(output)
}

pub fn told(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}
