//! The least that a durable harness must do, to be measured against: one connection to the model,
//! one shell for each call, the call on the disk before it runs and its result before the next
//! request. `dunnock-floor HOST:PORT PROMPT`, in the folder to work in.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an instrument: it ends where it goes wrong"
)]

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

fn main() {
    let mut words = std::env::args().skip(1);
    let (at, prompt) = (words.next().unwrap(), words.next().unwrap());
    let stream = TcpStream::connect(&at).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut line = BufReader::new(stream);
    let mut log = File::create("session.jsonl").unwrap();
    let tools = json!([{"type": "function", "function": {"name": "shell", "description": "Run a shell command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]);
    let mut talk = vec![
        json!({"role": "system", "content": "You are a coding agent. Use the shell tool."}),
        json!({"role": "user", "content": prompt}),
    ];
    loop {
        let answer = ask(
            &mut line,
            &at,
            &json!({"model": "m", "stream": true, "messages": talk, "tools": tools}),
        );
        let Some((id, args)) = answer.1 else { return println!("{}", answer.0) };
        let call: Value = serde_json::from_str(&args).unwrap();
        talk.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "shell", "arguments": args}}]}));
        keep(&mut log, talk.last().unwrap());
        let ran = Command::new("bash")
            .args(["-c", call["command"].as_str().unwrap()])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let out = format!(
            "exit {}\n{}",
            ran.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&ran.stdout)
        );
        talk.push(json!({"role": "tool", "tool_call_id": id, "content": out}));
        keep(&mut log, talk.last().unwrap());
    }
}

fn keep(log: &mut File, item: &Value) {
    writeln!(log, "{item}").unwrap();
    log.sync_data().unwrap();
}

/// What was said, and the call if there is one.
fn ask(
    line: &mut BufReader<TcpStream>,
    at: &str,
    body: &Value,
) -> (String, Option<(String, String)>) {
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {at}\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    line.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut text = String::new();
    while text != "\r\n" {
        text.clear();
        line.read_line(&mut text).unwrap();
    }
    let (mut said, mut call, mut events) = (String::new(), None::<(String, String)>, Vec::new());
    loop {
        text.clear();
        line.read_line(&mut text).unwrap();
        let n = usize::from_str_radix(text.trim(), 16).unwrap();
        let mut chunk = vec![0; n + 2];
        line.read_exact(&mut chunk).unwrap();
        if n == 0 {
            break;
        }
        events.extend_from_slice(&chunk[..n]);
    }
    for event in events
        .split(|b| *b == b'\n')
        .filter_map(|l| l.strip_prefix(b"data: "))
        .filter(|l| *l != b"[DONE]")
    {
        let event: Value = serde_json::from_slice(event).unwrap();
        let delta = &event["choices"][0]["delta"];
        said.push_str(delta["content"].as_str().unwrap_or_default());
        if let Some(piece) = delta["tool_calls"].get(0) {
            let known = call.get_or_insert_with(|| {
                (piece["id"].as_str().unwrap_or_default().to_owned(), String::new())
            });
            known.1.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
        }
    }
    (said, call)
}
