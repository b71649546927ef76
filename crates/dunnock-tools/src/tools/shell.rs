//! `shell`.

#[cfg(target_os = "linux")]
use crate::hooks;
use crate::process::{self, Program};
use crate::processes;
use crate::root::{PathError, RepoPath};
use crate::tool::{Example, Tool, ToolContext, ToolOutput};
#[cfg(target_os = "linux")]
use dunnock_proto::CommandText;
use dunnock_proto::{Class, Piece, Recovery, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Runs a command in the workspace and returns its output and, if it fails, its exit code. Calls
/// share no variables and no working directory. What a command leaves running, and a command that
/// is still running after 120 s, continues as a process of the session. Standard input is empty.
/// Long output is shortened in the middle.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellCommand {
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
    /// Seconds after which the command is stopped, at most 600.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    /// Report the two streams separately. Hidden from models: a planner's `run` always sets it.
    #[serde(default)]
    #[schemars(skip)]
    apart: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    Text(String),
    Words(Vec<String>),
}

impl Line {
    /// The command as policy reads it.
    #[cfg(target_os = "linux")]
    fn text(&self) -> CommandText {
        match self {
            Self::Text(line) => CommandText::Line(line.clone()),
            Self::Words(words) => CommandText::Words(words.clone()),
        }
    }

    /// The program to run, in a folder below the root.
    pub(crate) fn program(
        self,
        context: &ToolContext,
        folder: Option<&str>,
    ) -> Result<Program, PathError> {
        let program = match self {
            Self::Text(line) => Program::line(context.limits.shell, &line),
            Self::Words(words) => Program::words(words),
        };
        match folder {
            None => Ok(program),
            Some(folder) => {
                Ok(program.within(context.root.folder(&RepoPath::parse(&context.root, folder)?)?))
            }
        }
    }
}

pub(crate) fn line_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "anyOf": [
        { "type": "string", "maxLength": 100_000 },
        { "type": "array", "items": { "type": "string", "maxLength": 100_000 }, "minItems": 1, "maxItems": 1000 },
    ]})
}

impl Tool for ShellCommand {
    const NAME: &'static str = "shell";
    const CLASS: Class = Class::Command;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView =
        ToolView { command: true, ..ToolView::new("", &[Piece::text(&["command"])]) };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "A command line",
            args: r#"{"command":"echo one; printf two"}"#,
            gives: "one\ntwo",
            ..Example::PLAIN
        },
        Example {
            about: "A list of arguments, in a folder",
            files: &[("src/a.txt", "x")],
            args: r#"{"command":["ls","-1"],"folder":"src"}"#,
            gives: "a.txt",
            ..Example::PLAIN
        },
        Example {
            about: "A command that fails",
            args: r#"{"command":"echo no; exit 3"}"#,
            gives: "no\n[exit 3]",
            fails: true,
            ..Example::PLAIN
        },
        Example {
            about: "A command without output",
            args: r#"{"command":"true"}"#,
            gives: "(no output)",
            ..Example::PLAIN
        },
        Example {
            about: "A command that takes too long",
            args: r#"{"command":"echo begun; sleep 30","timeout":1}"#,
            gives: "begun\n[stopped: it took longer than 1 s]",
            fails: true,
            ..Example::PLAIN
        },
        Example {
            about: "A folder outside the workspace",
            args: r#"{"command":"pwd","folder":"../.."}"#,
            gives: "../.. is outside the workspace; give a path inside it, relative to its root",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        #[cfg(target_os = "linux")]
        let command = self.command.text();
        let mut program = match self.command.program(&context, self.folder.as_deref()) {
            Ok(program) => program,
            Err(error) => return Err::<String, _>(error).into(),
        };
        let timeout = self.timeout.map(Duration::from_secs);
        let most = timeout.unwrap_or(context.limits.command).min(context.limits.command_most);
        program.apart = self.apart;
        #[cfg(target_os = "linux")]
        {
            use dunnock_core::policy;
            program.git = crate::sandbox::GitUse {
                checkout: policy::replaces_files(&command),
                fetches: policy::fetches(&command),
            };
            if context.access.login
                && let Some(layout) = context.layout.clone()
            {
                let (root, command) = (context.root.clone(), command.clone());
                let level = context.level;
                let look = move || crate::login::credentials(&layout, root.path(), &command, level);
                let found = tokio::task::spawn_blocking(look).await;
                program.credentials = found.ok().flatten().unwrap_or_default();
            }
        }
        #[cfg(target_os = "linux")]
        if let Some(failed) = hooks::before_push(&context, &program, &command, most).await {
            return failed;
        }
        // What has a login, or may change more of the repository, ends with its call.
        if self.apart || program.is_trusted_with_more() {
            return process::run(&context, program, most).await;
        }
        processes::run_in_session(&context, &context.processes, program, timeout).await
    }
}
