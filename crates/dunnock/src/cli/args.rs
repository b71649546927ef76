//! Command-line arguments: one source for parsing, help, completions and the manual.

use crate::config::settings::Value;
use clap::{Args as ClapArgs, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Common commands:
  dunnock                                       open the terminal app in this folder
  dunnock login                                 set up a model: provider, key, model
  dunnock run \"fix the failing test\"            run a task and print the answer
  dunnock run --verify \"make test\" \"...\"        done only when this command passes
  dunnock sessions list                         list your sessions and which wait for you
  dunnock sessions show ID                      show a session's conversation and calls
  dunnock approve ID --go                       approve the waiting command and continue
  dunnock answer ID \"the second one\" --go       answer a question and continue
  dunnock resume                                continue the newest session in this folder
  dunnock diff                                  show what the session changed
  dunnock undo                                  undo the last task
  dunnock resume ID --prompt \"now the docs\"     continue with a new prompt

An ID can be shortened to any unique prefix. Every command has its own --help.";

const EXITS: &str = "\
Exit codes: 0 done (and verified, if asked), 1 failed, 2 usage error, 3 waiting for you, 4 a limit \
                     was reached,
5 verification failed, 130 interrupted. Nothing is lost: \"dunnock resume\" continues the session.";

const BACK: &str = "\
Dunnock prints the changes and makes them without asking; \"dunnock undo\" reverts them. Files \
                    that others changed since are
reported and left alone, unless you use --force. Changes outside the folder, in git's own history, \
                    in ignored build folders
and to files over 50 MB are not undone. The exit code is 1 if something that the session changed \
                    could not be restored.";

const BRIDGE: &str = "\
Each round is a file, 001-outbox.md. Paste it into any chat and save the answer as 001-inbox.md \
                      beside it; Dunnock reads it when
it has not changed for a second. Commands run in the sandbox and need the usual approvals; \
                      \"dunnock undo\" undoes
their changes. Ctrl-C exits; \"dunnock bridge resume\" continues.";

const LOGIN: &str = "\
There is no sign-in with a subscription: Dunnock uses API keys, or a server on this machine. The \
                     key is saved in
~/.config/dunnock/keys, which only you can read and which no command or tool of a model can \
                     access. It is sent only to the
address that is shown. An environment variable such as OPENAI_API_KEY is used instead of a saved \
                     key. Without a terminal,
the key is read from standard input: dunnock login openai < FILE";

const MCP_ADD: &str = "\
Examples:
  dunnock mcp add git -- mcp-server-git
  dunnock mcp add files --write -- mcp-server-filesystem .
  dunnock mcp add docs --url https://docs.example/mcp --header \"Authorization: Bearer ${DOCS_TOKEN}\"
  dunnock mcp add --from claude

A program runs in the sandbox: without the options above, it has no network and changes no files.";

const SERVE: &str = "\
Anyone with the token can do what you can do here. It is in a file that only you can read, is new \
                     at each start, and is removed
when the server stops. --listen also needs a password: in DUNNOCK_PASSWORD, or in \
                     ~/.config/dunnock/password (chmod 600).
Ctrl-C stops the server. Running sessions are interrupted and saved; each continues when it is \
                     next opened.";

/// The version, with a note if the web app is not included.
fn version() -> &'static str {
    match dunnock_serve::has_web_app() {
        true => env!("CARGO_PKG_VERSION"),
        false => concat!(
            env!("CARGO_PKG_VERSION"),
            " (without the web app; build it with: cargo xtask web)"
        ),
    }
}

/// A coding agent: durable steps, exact undo, sandboxed commands, verified results.
#[derive(Debug, Parser)]
#[command(name = "dunnock", version = version(), disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Store sessions in this folder instead of your data folder
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Open the terminal app in this folder: same as "dunnock" alone
    Open {
        /// What to do first
        task: Option<String>,
        /// Continue this session; if ID is omitted, the newest in this folder
        #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with = "task")]
        #[expect(clippy::option_option, reason = "given or not, with an id or without")]
        resume: Option<Option<String>>,
        /// Print plain lines, for screen readers
        #[arg(long)]
        plain: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// Run a task in this folder without the terminal app, until it is done
    #[command(after_help = EXITS)]
    Run {
        /// What to do; if omitted, read from standard input
        task: Option<String>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Continue a session: after a crash, an interrupt or a limit, or with a new prompt
    #[command(after_help = EXITS)]
    Resume {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// A new prompt
        #[arg(long, value_name = "TEXT")]
        prompt: Option<String>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Copy-and-paste mode: work with any chat, without a key or an API
    #[command(subcommand)]
    Bridge(Bridge),
    /// Watch a session that another process is running; Ctrl-C only stops watching
    Attach {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// List, show, search, verify, export, import or delete sessions
    #[command(subcommand)]
    Sessions(Sessions),
    /// Approve a call that is waiting for you
    Approve {
        /// Session id or a unique prefix
        id: String,
        /// Call id as shown by "sessions show" (3.0); needed when several calls are waiting
        call: Option<String>,
        /// Approve all waiting calls
        #[arg(long, conflicts_with = "call")]
        all: bool,
        /// Also save the rule that the question shows, for the project of the session
        #[arg(long, conflicts_with = "all")]
        always: bool,
        /// With --always: save it for all projects
        #[arg(long, requires = "always")]
        all_projects: bool,
        /// Allow the whole network once, where the question offers named hosts
        #[arg(long, conflicts_with_all = ["all", "always"])]
        network: bool,
        /// Continue the session at once
        #[arg(long)]
        go: bool,
    },
    /// Decline a call that is waiting for you, optionally with a note for the model
    Decline {
        /// Session id or a unique prefix
        id: String,
        /// Call id as shown by "sessions show" (3.0); needed when several calls are waiting
        call: Option<String>,
        /// Decline all waiting calls
        #[arg(long, conflicts_with = "call")]
        all: bool,
        /// Why, or what to do instead; sent to the model
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Continue the session at once
        #[arg(long)]
        go: bool,
    },
    /// Answer a question that a session asked
    Answer {
        /// Session id or a unique prefix
        id: String,
        /// The answer; when several questions are waiting, the question id (q2) and then the
        /// answer
        #[arg(required = true, num_args = 1..=2, value_names = ["QUESTION", "TEXT"])]
        words: Vec<String>,
        /// Continue the session at once
        #[arg(long)]
        go: bool,
    },
    /// Open the web app: the same sessions in your browser
    Web {
        /// The port; by default, 5000 or the next free one
        #[arg(long, value_name = "N")]
        port: Option<u16>,
        /// Print the address instead of opening it
        #[arg(long)]
        no_open: bool,
        /// Print the address as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Serve sessions to browsers, scripts and other programs (--listen: also to other machines)
    #[command(after_help = SERVE)]
    Serve {
        /// The port; by default, 5000 or the next free one
        #[arg(long, value_name = "N")]
        port: Option<u16>,
        /// Also accept connections from other machines, on this address; needs a password
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// Print the address as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Undo the last task, or the last undo or rewind
    #[command(after_help = BACK)]
    Undo {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        #[command(flatten)]
        how: Back,
    },
    /// Restore an earlier step of a session: files, conversation, or both
    #[command(after_help = BACK)]
    Rewind {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// The step: 0 is before the first request, 3 is after the third (in "sessions show" its
        /// calls are named 3.0, 3.1, ...)
        #[arg(long, value_name = "STEP")]
        to: u32,
        /// Restore only the files
        #[arg(long, conflicts_with_all = ["conversation", "both"])]
        files: bool,
        /// Restore only the conversation; the files stay as they are now
        #[arg(long, conflicts_with = "both")]
        conversation: bool,
        /// Restore files and conversation (the default)
        #[arg(long)]
        both: bool,
        #[command(flatten)]
        how: Back,
    },
    /// Show what a session changed in its folder
    Diff {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// Range of steps, such as 2..5; if omitted, the whole session
        #[arg(value_name = "STEP..STEP")]
        steps: Option<String>,
        /// Print only file names and how the files changed
        #[arg(long)]
        names: bool,
    },
    /// Shorten a session's conversation to a summary; the task, your answers, the plan and the list
    /// of changed files stay word for word
    Compact {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
    },
    /// Show tokens and cost per step, per session and for today
    Cost {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Start a new session from a step of another
    Fork {
        /// Session id or a unique prefix
        id: String,
        /// Copy up to this step; if omitted, all of it
        #[arg(long, value_name = "STEP")]
        at: Option<u32>,
    },
    /// Explain why a call ran, needed approval or was refused
    Why {
        /// Session id or a unique prefix
        id: String,
        /// Call id as shown by "sessions show" (3.0)
        call: String,
    },
    /// Set up a model: choose a provider, save its key, try a model
    #[command(after_help = LOGIN)]
    Login {
        /// The provider: openai, anthropic, gemini, ... or one from your configuration
        provider: Option<String>,
        /// Use this model instead of choosing one from a list
        #[arg(long, value_name = "MODEL", requires = "provider")]
        model: Option<String>,
    },
    /// Remove a saved key
    Logout {
        /// The provider; may be omitted if there is only one saved key
        provider: Option<String>,
    },
    /// List or check models
    #[command(subcommand)]
    Models(Models),
    /// Show every setting, its value and where it comes from
    Config {
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
        /// Show the settings for this folder instead of the current one
        #[arg(long, value_name = "DIR")]
        cd: Option<PathBuf>,
        /// Use this folder's settings (.dunnock/config.toml) as if they were yours
        #[arg(long)]
        trust: bool,
    },
    /// Check the installation and suggest how to fix problems
    Doctor {
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Show, add or remove your saved approval rules
    Rules {
        /// Print JSON, one object per line
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        what: Option<RulesCommand>,
    },
    /// List, add, remove or test MCP servers, whose tools the model can use
    #[command(subcommand)]
    Mcp(Mcp),
    /// Trust this folder's settings as they are now
    Trust {
        /// The folder; if omitted, the current one
        dir: Option<PathBuf>,
        /// List the trusted folders and whether they have changed since
        #[arg(long)]
        list: bool,
        /// Stop trusting the folder
        #[arg(long, conflicts_with = "list")]
        revoke: bool,
    },
    /// List or stop processes that continue when their session ends (background = "keep")
    Processes {
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        what: Option<ProcessesCommand>,
    },
    /// Show how commands are sandboxed on this machine, and test it
    Sandbox {
        /// Print one JSON object
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        what: Option<Boxes>,
    },
    /// Print shell completions
    Completions {
        /// The shell; for example: dunnock completions bash > /etc/bash_completion.d/dunnock
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Write a page for each command into this folder instead
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bridge {
    /// Start: write a request to paste into a chat, wait for the answer, act on it, and repeat
    #[command(after_help = BRIDGE)]
    New {
        /// What to do; if omitted, read from standard input
        task: Option<String>,
        #[command(flatten)]
        how: Carry,
        #[command(flatten)]
        flags: Flags,
    },
    /// Continue a copy-and-paste session
    #[command(after_help = BRIDGE)]
    Resume {
        /// Session id or a unique prefix; if omitted, the newest copy-and-paste session in this
        /// folder
        id: Option<String>,
        #[command(flatten)]
        how: Carry,
        #[command(flatten)]
        flags: Flags,
    },
    /// Copy the waiting request to the clipboard
    Copy {
        /// Which part to copy, if there are several
        #[arg(default_value_t = 1)]
        part: usize,
    },
}

/// Options of `bridge`.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Carry {
    /// Run one round and exit with 3 instead of waiting for the answer
    #[arg(long)]
    pub(crate) once: bool,
    /// Use this folder for outboxes and inboxes instead of .dunnock/bridge
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Also copy each outbox to the clipboard
    #[arg(long)]
    pub(crate) copy: bool,
}

/// Options of `undo` and `rewind`.
#[derive(Debug, Default, Clone, Copy, ClapArgs)]
pub(crate) struct Back {
    /// Only print what would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also undo changes that others made since
    #[arg(long)]
    pub(crate) force: bool,
}

/// Options of `run` and `resume`.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Flags {
    /// The model, as provider/model ("dunnock models list" shows what is available)
    #[arg(long, value_name = "P/M")]
    pub(crate) model: Option<String>,
    /// How hard the model thinks: none, low, medium, high, xhigh, max
    #[arg(long, value_name = "EFFORT")]
    pub(crate) effort: Option<String>,
    /// When to ask you: read (changes nothing), ask (before any change), edits (before commands),
    /// auto (before risky calls), all (never)
    #[arg(long, value_name = "MODE")]
    pub(crate) approve: Option<String>,
    /// Never wait for anybody: refuse what needs approval, answer questions with "decide
    /// yourself", retry for long, and continue when the model stops too early
    #[arg(long)]
    pub(crate) unattended: bool,
    /// What happens to processes that the model leaves running: end (with the session), keep
    #[arg(long, value_name = "WHAT")]
    pub(crate) background: Option<String>,
    /// When to end: +900s, +15m, +2h, or a time such as 2026-11-18T23:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Sandbox for commands: auto, off, require, require=A|B|C
    #[arg(long, value_name = "MODE")]
    pub(crate) sandbox: Option<String>,
    /// Which files the file tools can reach: workspace, machine (with --sandbox off)
    #[arg(long, value_name = "WHICH")]
    pub(crate) file_access: Option<String>,
    /// A host that every command in the sandbox may reach: pypi.org, 127.0.0.1:3000; repeatable
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Let the model fetch pages of the web; you allow each host
    #[arg(long)]
    pub(crate) web_fetch: bool,
    /// A command that must pass before the task counts as done; repeatable
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    /// Stop after this many steps (model requests)
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<String>,
    /// Stop when this is used up: 200ktok, 10min, 2usd
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget: Option<String>,
    /// The model only plans; the program executes the plans until the checks pass (at most 5
    /// iterations, or --max-steps)
    #[arg(long)]
    pub(crate) planner: bool,
    /// Tools and prompts: default, or small (few tools, for small models)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Attach an image to the prompt; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Work in this folder instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,
    /// Use this folder's settings (.dunnock/config.toml) as if they were yours
    #[arg(long)]
    pub(crate) trust: bool,
    /// Also write the answer to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

impl Flags {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<(&'static str, Value)> {
        let one = |name, value: &Option<String>| value.clone().map(|v| (name, Value::Text(v)));
        let mut all: Vec<(&'static str, Value)> = [
            one("model", &self.model),
            one("effort", &self.effort),
            one("approve", &self.approve),
            one("background", &self.background),
            one("sandbox", &self.sandbox),
            one("file-access", &self.file_access),
            one("max-steps", &self.max_steps),
            one("budget", &self.budget),
            one("profile", &self.profile),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.unattended {
            all.push(("unattended", Value::Text("on".into())));
        }
        if self.planner {
            all.push(("planner", Value::Text("on".into())));
        }
        if self.web_fetch {
            all.push(("web-fetch", Value::Text("on".into())));
        }
        if !self.host.is_empty() {
            all.push(("hosts", Value::List(self.host.clone())));
        }
        if !self.verify.is_empty() {
            all.push(("verify", Value::List(self.verify.clone())));
        }
        all
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Always allow calls that start with these words
    Allow {
        /// Also give them network access
        #[arg(long)]
        network: bool,
        /// Also let them reach this host; without words, whatever needs only such hosts; repeatable
        #[arg(long, value_name = "HOST", conflicts_with = "network")]
        host: Vec<String>,
        /// Only in this folder and the folders in it
        #[arg(long)]
        here: bool,
        /// The tool and the first words of its command: shell npm install
        #[arg(required_unless_present = "host")]
        words: Vec<String>,
    },
    /// Never allow calls that start with these words
    Deny {
        /// The tool and the first words of its command: shell docker
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Remove a rule
    Revoke {
        /// The number of the rule, as shown by "dunnock rules"
        n: usize,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// List the servers of this folder: yours, and the project's if you trust it
    List {
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your settings
    #[command(after_help = MCP_ADD)]
    Add {
        /// A name for the server; with --from, copy only the server with this name
        name: Option<String>,
        /// The program and its arguments, after --
        #[arg(last = true, value_name = "PROGRAM", conflicts_with_all = ["url", "from"])]
        words: Vec<String>,
        /// The URL of a server over HTTP, instead of a program
        #[arg(long, conflicts_with_all = ["env", "network", "host", "write", "read"])]
        url: Option<String>,
        /// A header of each request: "Authorization: Bearer ${TOKEN}"; repeatable
        #[arg(long, value_name = "HEADER", requires = "url")]
        header: Vec<String>,
        /// An environment variable for the program: LOG=debug, TOKEN=${GITHUB_TOKEN}; repeatable
        #[arg(long, value_name = "NAME=VALUE")]
        env: Vec<String>,
        /// Give the program full network access
        #[arg(long, conflicts_with = "host")]
        network: bool,
        /// A host that the program may reach; repeatable
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,
        /// Let the program change files in the workspace
        #[arg(long)]
        write: bool,
        /// A folder outside the workspace that the program may read; repeatable
        #[arg(long, value_name = "DIR")]
        read: Vec<PathBuf>,
        /// Copy servers from the settings of another agent: claude, codex, gemini, cursor, opencode
        #[arg(
            long,
            value_name = "AGENT",
            conflicts_with_all = ["url", "header", "env", "network", "host", "write", "read"]
        )]
        from: Option<String>,
    },
    /// Remove a server from your settings
    Remove {
        /// Its name
        name: String,
    },
    /// Start a server as a session in this folder would, and list its tools
    Test {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProcessesCommand {
    /// Stop a process and everything it started
    Stop {
        /// Process ids, as "dunnock processes" lists them
        #[arg(required_unless_present = "all")]
        pid: Vec<i32>,
        /// Stop all of them
        #[arg(long, conflicts_with = "pid")]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Boxes {
    /// Try every known escape from the sandbox and report which are blocked
    Prove {
        /// First try each escape without the sandbox: one that fails there too proves nothing
        #[arg(long)]
        bare: bool,
        /// Use this level instead of the best available
        #[arg(long, value_name = "LEVEL", value_parser = ["A", "B", "C"])]
        level: Option<String>,
    },
    /// Run a command in this folder's sandbox
    Run {
        /// Allow access to this machine's network
        #[arg(long)]
        network: bool,
        /// Use this level instead of the best available
        #[arg(long, value_name = "LEVEL", value_parser = ["A", "B", "C"])]
        level: Option<String>,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List providers, whether they are reachable, and their models
    List {
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Test what a model can do, and save the result for every session
    Check {
        /// The model; if omitted, the configured one
        #[arg(value_name = "P/M")]
        model: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, newest first
    List {
        /// Only sessions of this folder
        #[arg(long)]
        here: bool,
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
        /// Show at most this many
        #[arg(long, value_name = "N", default_value_t = 1000)]
        most: u32,
    },
    /// Show a session's conversation and calls
    Show {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// Print the stored events as JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Print the full output of a call
    Output {
        /// Session id or a unique prefix
        id: String,
        /// Call id as shown by "sessions show" (3.0)
        call: String,
        /// Only standard output or standard error
        #[arg(long, value_name = "STREAM", value_parser = ["out", "err"])]
        stream: Option<String>,
    },
    /// Search the text of sessions
    Search {
        /// Words that must all occur
        #[arg(required = true)]
        words: Vec<String>,
        /// Only in sessions of this folder
        #[arg(long)]
        here: bool,
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
        /// Show at most this many matches
        #[arg(long, value_name = "N", default_value_t = 50)]
        most: u32,
    },
    /// Write a receipt for a pull request: task, model, steps, cost, changes, approvals, checks
    Receipt {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// Print JSON instead of Markdown
        #[arg(long)]
        json: bool,
    },
    /// Replay a session without the model in a copy of its files, and report the first difference
    Replay {
        /// Session id or a unique prefix; if omitted, the newest session in this folder
        id: Option<String>,
        /// Run no commands: only repeat the decisions and rebuild the requests
        #[arg(long)]
        log: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Verify that the logs of sessions are unchanged
    Verify {
        /// Session id or a unique prefix; if omitted, all sessions
        id: Option<String>,
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Export a session (log, outputs, files) to a file or to standard output, without keys
    Export {
        /// Session id or a unique prefix
        id: String,
        /// Write to this file; if omitted, to standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Leave out the folder's files
        #[arg(long)]
        no_files: bool,
        /// Include keys and secret files
        #[arg(long)]
        keep_secrets: bool,
    },
    /// Import a session that was exported elsewhere
    Import {
        /// The file; if omitted, standard input
        file: Option<PathBuf>,
        /// Put its files into this new folder and continue there
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
        /// The session is your own: keep its approval mode, checks and rules
        #[arg(long)]
        trust: bool,
        /// Refuse files of more than this many MB in all, in any state of the folder
        #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
        max_mb: u64,
    },
    /// Delete a session and everything only it uses; this cannot be undone
    Delete {
        /// Session id or a unique prefix
        id: String,
    },
}
