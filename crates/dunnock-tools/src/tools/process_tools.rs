//! `process_start`, `process_read`, `process_write`, `process_stop`: programs that keep running
//! between calls.

use crate::child::Input;
use crate::processes::Process;
use crate::terminal_text;
use crate::tool::{Example, Tool, ToolContext, ToolOutput, ToolStatus};
use crate::tools::shell::{Line, line_schema};
use dunnock_proto::{Class, Form, Piece, Recovery, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Output that arrives this soon after the start is returned with it.
const AT_ONCE: Duration = Duration::from_millis(300);
/// How long to wait for the output that follows an input.
const ANSWER: Duration = Duration::from_secs(3);
/// The longest wait, in seconds.
const MOST_WAIT: u64 = 600;

/// Starts a program that keeps running between calls: a server, a watcher, an interactive program.
/// For a command that ends by itself, use shell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessStart {
    /// A command line for the shell, or a list of arguments to run directly.
    #[schemars(schema_with = "line_schema")]
    command: Line,
    /// Folder to run in, relative to the workspace root; the root if left out.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    folder: Option<String>,
    /// Ask the person for network access; without it, there is at most a private
    /// loopback.
    #[serde(default)]
    #[expect(dead_code, reason = "policy reads it")]
    network: bool,
    /// Give it a terminal (120 columns, 40 rows), for programs that need one.
    #[serde(default)]
    terminal: bool,
    /// Seconds to wait, as in process_read.
    #[serde(default)]
    #[schemars(range(max = 600))]
    wait: u64,
}

/// Returns the output of a process since the last read, and whether it is still running. Without
/// process, lists all of them with their ports.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessRead {
    /// Its number, from process_start.
    #[serde(default)]
    process: Option<u32>,
    /// Seconds to wait until it ends, asks for input or pauses after some output.
    #[serde(default)]
    #[schemars(range(max = 600))]
    wait: u64,
    /// Show the screen of its terminal.
    #[serde(default)]
    screen: bool,
}

/// Writes to a process's standard input, exactly as given (end a line with \n), and returns its
/// answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessWrite {
    /// Its number, from process_start.
    process: u32,
    /// The text to write.
    #[serde(default)]
    #[schemars(length(max = 100_000))]
    text: String,
    /// Keys to press then, in a terminal: Enter, Up, C-c and the like.
    #[serde(default)]
    #[schemars(schema_with = "keys_schema")]
    keys: Vec<String>,
    /// Seconds to wait; 3 if left out.
    #[serde(default)]
    #[schemars(range(max = 600))]
    wait: Option<u64>,
    /// Show the screen of its terminal.
    #[serde(default)]
    screen: bool,
}

/// Stops a process and everything it started, and returns its last output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessStop {
    /// Its number, from process_start.
    process: u32,
}

const NONE: Example = Example {
    about: "No process was started",
    args: r#"{"process":1}"#,
    gives: "there is no process; start one with process_start (processes do not survive a restart \
            of the agent)",
    fails: true,
    ..Example::PLAIN
};

fn said(result: Result<(Arc<Process>, &str), String>, context: &ToolContext) -> ToolOutput {
    let text = result.map(|(process, first)| {
        let read = process.read(context.limits.output_lines, context.limits.output_bytes);
        let lost = context.lost_history();
        let lost = if lost.is_empty() { lost } else { format!("\n{lost}") };
        format!("{first}{read}{lost}")
    });
    text.into()
}

/// The same for a call that acts on the process: if its launcher died, the outcome is unknown.
fn acted(result: Result<(Arc<Process>, &str), String>, context: &ToolContext) -> ToolOutput {
    let lost = result.as_ref().is_ok_and(|(process, _)| process.lost());
    let output = said(result, context);
    if lost { ToolOutput { end: ToolStatus::Unknown, ..output } } else { output }
}

/// Waits for a process, unless the person interrupts.
async fn wait(process: &Process, seconds: u64, written: u64, context: &ToolContext) {
    if seconds == 0 {
        return;
    }
    // A wait beyond the deadline helps nobody.
    let most = Duration::from_secs(seconds.min(MOST_WAIT)).min(context.limits.command_most);
    tokio::select! {
        () = process.wait(most, written) => {}
        () = context.halt.cancelled() => {}
    }
}

fn keys_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": "string", "maxLength": 20 }, "maxItems": 1000 })
}

/// What is written for a text and keys.
fn typed(text: &str, keys: &[String]) -> Result<String, String> {
    let mut all = text.to_owned();
    for name in keys {
        all.push_str(&terminal_text::key(name).ok_or_else(|| {
            format!("unknown key {name:?}; use Enter, Tab, Escape, Backspace, Up, Down, Left, Right, C-c")
        })?);
    }
    if all.is_empty() {
        Err("there is nothing to write; give text or keys".into())
    } else {
        Ok(all)
    }
}

/// The number of a process.
const PROCESS: Piece = Piece::text(&["process"]).form(Form::Json);

impl Tool for ProcessStart {
    const NAME: &'static str = "process_start";
    const CLASS: Class = Class::Command;
    const RECOVERY: Recovery = Recovery::Unknown;
    const LEAVES_PROCESS: bool = true;
    const VIEW: ToolView =
        ToolView { command: true, ..ToolView::new("start", &[Piece::text(&["command"])]) };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "A program that waits for input",
            args: r#"{"command":["cat"]}"#,
            gives: "started process 1\n[process 1 is running; no new output]",
            ..Example::PLAIN
        },
        Example {
            about: "A program that ends at once",
            args: r#"{"command":"echo no; exit 3"}"#,
            gives: "started process 1\nno\n[process 1: exit 3]",
            ..Example::PLAIN
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        let program = match self.command.program(&context, self.folder.as_deref()) {
            Ok(program) => program,
            Err(error) => return Err::<String, _>(error).into(),
        };
        let input = if self.terminal { Input::Terminal } else { Input::Pipe };
        let started = context.processes.start(&context, program, input);
        let first = started
            .as_ref()
            .map_or_else(|_| String::new(), |p| format!("started process {}\n", p.number));
        if let Ok(process) = &started {
            // Wait the full time: a program that reports a fatal error exits a moment after
            // printing it.
            process.end(AT_ONCE).await;
            wait(process, self.wait, 0, &context).await;
        }
        acted(started.map(|process| (process, first.as_str())), &context)
    }
}

impl Tool for ProcessRead {
    const NAME: &'static str = "process_read";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const POLLS: bool = true;
    const VIEW: ToolView = ToolView::new("read process", &[PROCESS.or("all")]);
    const EXAMPLES: &'static [Example] = &[NONE];

    async fn run(self, context: ToolContext) -> ToolOutput {
        let Some(number) = self.process else {
            return ToolOutput::plain(ToolStatus::Done, context.processes.list(&context).await);
        };
        let found = context.processes.find(&context, number);
        if let Ok(process) = &found {
            wait(process, self.wait, 0, &context).await;
            if self.screen {
                return process.screen().into();
            }
        }
        said(found.map(|process| (process, "")), &context)
    }
}

impl Tool for ProcessWrite {
    const NAME: &'static str = "process_write";
    const CLASS: Class = Class::Command;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView = ToolView::new(
        "write to process",
        &[
            PROCESS,
            Piece::text(&["text"]).form(Form::Quoted).after(" ").or(""),
            Piece::text(&["keys"]).form(Form::Json).after(" ").or(""),
        ],
    );
    const EXAMPLES: &'static [Example] =
        &[Example { args: r#"{"process":1,"text":"x\n"}"#, ..NONE }];

    async fn run(self, context: ToolContext) -> ToolOutput {
        let input = match typed(&self.text, &self.keys) {
            Ok(input) => input,
            Err(error) => return Err::<String, _>(error).into(),
        };
        let written = match context.processes.find(&context, self.process) {
            Ok(process) if !self.keys.is_empty() && !process.has_terminal() => {
                Err(format!("process {} has no terminal, so it gets no keys", process.number))
            }
            Ok(process) => {
                let before = process.written();
                match process.write(input).await {
                    Ok(()) => {
                        let seconds = self.wait.unwrap_or(ANSWER.as_secs());
                        wait(&process, seconds, before, &context).await;
                        if self.screen {
                            return process.screen().into();
                        }
                        Ok(process)
                    }
                    Err(error) => Err(format!(
                        "{error}\n{}",
                        process.read(context.limits.output_lines, context.limits.output_bytes)
                    )),
                }
            }
            Err(error) => Err(error),
        };
        acted(written.map(|process| (process, "")), &context)
    }
}

impl Tool for ProcessStop {
    const NAME: &'static str = "process_stop";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const VIEW: ToolView = ToolView::new("stop process", &[PROCESS]);
    const EXAMPLES: &'static [Example] = &[NONE];

    async fn run(self, context: ToolContext) -> ToolOutput {
        let found = context.processes.find(&context, self.process);
        if let Ok(process) = &found {
            process.stop();
            process.end(Duration::from_secs(8)).await;
        }
        said(found.map(|process| (process, "")), &context)
    }
}
