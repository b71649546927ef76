//! The server, as programs meet it: the real binary, real sockets, a scripted model behind real
//! HTTP.

mod agent;
mod api;
mod clients;
mod contract;
mod doors;
mod load;
mod many;
mod providers;

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::Served;
use dunnock_testkit::web::Api;
use serde_json::{Value, json};
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A server that runs, until it is dropped.
pub struct Serve {
    child: Child,
    pub at: SocketAddr,
    pub token: String,
    pub token_file: std::path::PathBuf,
}

impl Serve {
    pub fn start(home: &Home) -> Self {
        Self::with(home.command(&["serve", "--port", "0", "--json"]))
    }

    /// One that was described.
    pub fn with(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_default();
        let Some(url) = told["url"].as_str() else {
            let _ = child.kill();
            unreachable!("it does not serve: {line}")
        };
        let token_file: std::path::PathBuf = told["token_file"].as_str().unwrap().into();
        let token = std::fs::read_to_string(&token_file).unwrap();
        Self { child, at: url.trim_start_matches("http://").parse().unwrap(), token, token_file }
    }

    pub fn api(&self) -> Api {
        Api::new(self.at, &self.token)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a person would.
    pub fn end(mut self) -> i32 {
        let _ = Command::new("kill").args(["-INT", &self.pid().to_string()]).status();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Ends it without a word.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn memory_kb(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        text.lines()
            .find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok())
            .unwrap()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer of the model that wants a command run.
pub fn shell(command: &str) -> Served {
    Say::calls(&[("shell", &json!({ "command": command }).to_string())]).into()
}

/// A prompt as a command.
pub fn prompt(id: &str, text: &str) -> Value {
    json!({ "id": id, "command": { "prompt": { "text": text } } })
}

/// The answer to the first question that stands.
pub fn reply(id: &str, view: &Value, answer: &str) -> Value {
    let question = &view["questions"][0];
    json!({ "id": id, "command": { "reply": { "question": question["id"], "hash": question["hash"], "answer": answer } } })
}

/// The kinds of the events of a session.
pub fn kinds(view: &Value) -> Vec<String> {
    view["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| fact["kind"].as_str().unwrap().to_owned())
        .collect()
}
