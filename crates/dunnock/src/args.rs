//! Command-line arguments: one source for parsing, help, completions and the manual.

use crate::settings::Value;
use clap::{Args as ClapArgs, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Common things to do:
  dunnock                                       open the terminal app in this folder
  dunnock run \"fix the failing test\"            run a task; prints the answer
  dunnock run --verify \"make test\" \"...\"        \"done\" means that this command passes
  dunnock sessions list                         your sessions, and which wait for you
  dunnock sessions show ID                      the conversation and the calls of a session
  dunnock approve ID --go                       approve the waiting command and continue
  dunnock answer ID \"the second one\" --go       answer a question and continue
  dunnock resume                                continue the newest session of this folder
  dunnock diff                                  what it changed
  dunnock undo                                  undo the last task
  dunnock resume ID --prompt \"now the docs\"     continue with a new prompt

An ID can be shortened to its first letters. Every command has its own --help.";

const EXITS: &str = "\
Exit codes: 0 done (and verified, if asked), 1 failed, 2 wrong usage, 3 waiting for you, 4 a limit was reached,
5 verification failed, 130 interrupted. Nothing is lost: \"dunnock resume\" continues.";

const BACK: &str = "\
The changes are printed and made without asking; \"dunnock undo\" reverts them. Files that others changed since are reported
and left alone, unless you use --force. Changes outside the folder, in git's own history, in ignored build folders and to
files above 50 MB are not undone.";

const BRIDGE: &str = "\
Each round is a file, 001-outbox.md. Paste it into any chat and save the answer as 001-inbox.md beside it; it is read when it
has not changed for a second. Commands run in the sandbox and need the same approvals as always; \"dunnock undo\" undoes
their changes. Ctrl-C exits; \"dunnock bridge resume\" continues.";

const SERVE: &str = "\
Anyone with the token can do what you can do here. It is in a file that only you can read, new at each start, and removed when the
server ends. --listen also needs a password: in DUNNOCK_PASSWORD, or in ~/.config/dunnock/password (chmod 600).
Ctrl-C stops the server. Running work is stopped and recorded, and continues when the session is next opened.";

/// The version, with a note if the web app is not included.
fn version() -> &'static str {
    match dunnock_serve::has_web_app() {
        true => env!("CARGO_PKG_VERSION"),
        false => concat!(env!("CARGO_PKG_VERSION"), " (without the web app: cargo xtask web builds it)"),
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
    /// Open the terminal app in this folder: what "dunnock" alone does
    Open {
        /// What to do first
        task: Option<String>,
        /// Continue this session; without an id, the newest of this folder
        #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with = "task")]
        #[expect(clippy::option_option, reason = "given or not, with an id or without")]
        resume: Option<Option<String>>,
        /// Plain lines, for screen readers
        #[arg(long)]
        plain: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// Run a task in this folder without the terminal app, until it is done
    #[command(after_help = EXITS)]
    Run {
        /// What to do; read from standard input if left out
        task: Option<String>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Continue a session: after a crash, an interrupt or a limit, or with a new prompt
    #[command(after_help = EXITS)]
    Resume {
        /// The session's id, or its beginning; the newest of this folder if left out
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
    /// Watch a session that another process is working on; Ctrl-C leaves it working
    Attach {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// List, show, search, verify, export, import or delete sessions
    #[command(subcommand)]
    Sessions(Sessions),
    /// Approve a call that waits for you
    Approve {
        /// The session's id, or its beginning
        id: String,
        /// Which call, as "sessions show" names it (3.0); needed when several wait
        call: Option<String>,
        /// All that wait
        #[arg(long, conflicts_with = "call")]
        all: bool,
        /// And from now on, in every session, by the rule that the question shows
        #[arg(long, conflicts_with = "all")]
        always: bool,
        /// Continue the session at once
        #[arg(long)]
        go: bool,
    },
    /// Decline a call that waits for you, with a note for the model
    Decline {
        /// The session's id, or its beginning
        id: String,
        /// Which call, as "sessions show" names it (3.0); needed when several wait
        call: Option<String>,
        /// All that wait
        #[arg(long, conflicts_with = "call")]
        all: bool,
        /// Why, or what to do instead; sent to the model
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Continue the session at once
        #[arg(long)]
        go: bool,
    },
    /// Answer a question of a session
    Answer {
        /// The session's id, or its beginning
        id: String,
        /// The answer, or first which question (q2) and then the answer
        #[arg(required = true, num_args = 1..=2, value_names = ["QUESTION", "TEXT"])]
        words: Vec<String>,
        /// Continue the session at once
        #[arg(long)]
        go: bool,
    },
    /// Open the web app: the same sessions in your browser
    Web {
        /// The port; by default 5000 or the next free one
        #[arg(long, value_name = "N")]
        port: Option<u16>,
        /// Say the address instead of opening it
        #[arg(long)]
        no_open: bool,
        /// Say where as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Serve sessions to browsers, scripts and other programs, on this machine only
    #[command(after_help = SERVE)]
    Serve {
        /// The port; by default 5000 or the next free one
        #[arg(long, value_name = "N")]
        port: Option<u16>,
        /// Listen for other machines, too, on this address of this one; needs a password
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// Say where as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Undo the last task, or the last undo or rewind
    #[command(after_help = BACK)]
    Undo {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        #[command(flatten)]
        how: Back,
    },
    /// Restore an earlier step of a session: files, conversation, or both
    #[command(after_help = BACK)]
    Rewind {
        /// The session's id, or its beginning
        id: String,
        /// The step: 0 is before the first request, 3 is after the third (in "sessions show" its calls are named 3.0, 3.1, ...)
        #[arg(long, value_name = "STEP")]
        to: u32,
        /// Only the files
        #[arg(long, conflicts_with_all = ["conversation", "both"])]
        files: bool,
        /// Only the conversation: the model forgets, the files stay
        #[arg(long, conflicts_with = "both")]
        conversation: bool,
        /// Files and conversation (the default)
        #[arg(long)]
        both: bool,
        #[command(flatten)]
        how: Back,
    },
    /// Show what a session changed in its folder
    Diff {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// From one step to another, as 2..5; from the beginning to the end if left out
        #[arg(value_name = "STEP..STEP")]
        steps: Option<String>,
        /// Only the names of files and how they changed
        #[arg(long)]
        names: bool,
    },
    /// Shorten the conversation of a session: a summary, with the task, answers, plan and changed files word for word
    Compact {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
    },
    /// Show tokens and cost per step, per session and for today
    Cost {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Start a new session from a step of another
    Fork {
        /// The session's id, or its beginning
        id: String,
        /// Up to this step; all of it if left out
        #[arg(long, value_name = "STEP")]
        at: Option<u32>,
    },
    /// Explain why a call ran, needed approval or was refused
    Why {
        /// The session's id, or its beginning
        id: String,
        /// Which call, as "sessions show" names it (3.0)
        call: String,
    },
    /// List or check models
    #[command(subcommand)]
    Models(Models),
    /// Show every setting, its value and where it comes from
    Config {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// Work in this folder
        #[arg(long, value_name = "DIR")]
        cd: Option<PathBuf>,
        /// Take this folder's own settings as if they were yours
        #[arg(long)]
        trust: bool,
    },
    /// Check the installation and say how to fix what is wrong
    Doctor {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show, add or remove your saved approval rules
    Rules {
        /// One JSON object a line
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        what: Option<RulesCommand>,
    },
    /// Trust this folder's settings as they are now
    Trust {
        /// The folder; this one if left out
        dir: Option<PathBuf>,
        /// Show which folders are trusted, and whether they changed since
        #[arg(long)]
        list: bool,
        /// No longer trust it
        #[arg(long, conflicts_with = "list")]
        revoke: bool,
    },
    /// Show how commands are sandboxed on this machine, and test it
    Sandbox {
        /// One JSON object
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        what: Option<Boxes>,
    },
    /// Print completions for a shell
    Completions {
        /// For instance: dunnock completions bash > /etc/bash_completion.d/dunnock
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
        /// What to do; read from standard input if left out
        task: Option<String>,
        #[command(flatten)]
        how: Carry,
        #[command(flatten)]
        flags: Flags,
    },
    /// Continue a copy-and-paste session
    #[command(after_help = BRIDGE)]
    Resume {
        /// The session's id, or its beginning; the newest of this folder that is carried, if left out
        id: Option<String>,
        #[command(flatten)]
        how: Carry,
        #[command(flatten)]
        flags: Flags,
    },
    /// Copy the waiting request to the clipboard
    Copy {
        /// Which part, where there are several
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
    /// Keep outboxes and inboxes in this folder instead of .dunnock/bridge
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Also copy each outbox to the clipboard
    #[arg(long)]
    pub(crate) copy: bool,
}

/// Options of `undo` and `rewind`.
#[derive(Debug, Default, Clone, Copy, ClapArgs)]
pub(crate) struct Back {
    /// Only print what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also undo what others changed since
    #[arg(long)]
    pub(crate) force: bool,
}

/// Options of `run` and `resume`.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Flags {
    /// The model, as provider/model ("dunnock models list" shows those there are)
    #[arg(long, value_name = "P/M")]
    pub(crate) model: Option<String>,
    /// When to ask you: read (never; nothing is changed), ask (any change), edits (commands), auto (what the sandbox cannot
    /// contain), all (never)
    #[arg(long, value_name = "MODE")]
    pub(crate) approve: Option<String>,
    /// Sandbox for commands: auto, off, require, require=A|B|C
    #[arg(long, value_name = "HOW")]
    pub(crate) sandbox: Option<String>,
    /// A command that must pass before the work is done; repeatable
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    /// Stop after this many steps (model requests)
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<String>,
    /// Stop when this is used up: 200ktok, 10min, 2usd
    #[arg(long, value_name = "HOW MUCH")]
    pub(crate) budget: Option<String>,
    /// The model only plans; the program executes the plans until the checks pass (at most 5 iterations, or --max-steps)
    #[arg(long)]
    pub(crate) planner: bool,
    /// Tools and prompts: default, or small (few tools, for small models)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// An image for the prompt; repeatable
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
            one("approve", &self.approve),
            one("sandbox", &self.sandbox),
            one("max-steps", &self.max_steps),
            one("budget", &self.budget),
            one("profile", &self.profile),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.planner {
            all.push(("planner", Value::Text("on".into())));
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
        /// And let them reach the network
        #[arg(long)]
        network: bool,
        /// The tool and the first words of its command: shell npm install
        #[arg(required = true)]
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
        /// Its number, as "dunnock rules" shows it
        n: usize,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Boxes {
    /// Try every known escape from the sandbox and report which are blocked
    Prove {
        /// Try each without the sandbox first: what fails there proves nothing
        #[arg(long)]
        bare: bool,
        /// Use this level instead of the best available
        #[arg(long, value_name = "LEVEL", value_parser = ["A", "B", "C"])]
        level: Option<String>,
    },
    /// Run a command of yours in the sandbox of this folder
    Run {
        /// With this machine's network
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
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Test what a model can do (about two minutes) and save the result for every session
    Check {
        /// The model; the one that is configured if left out
        #[arg(value_name = "P/M")]
        model: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, newest first
    List {
        /// Only those of this folder
        #[arg(long)]
        here: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 1000)]
        most: u32,
    },
    /// Show the conversation and the calls of a session
    Show {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// One JSON object a line: the events as they are stored
        #[arg(long)]
        json: bool,
    },
    /// Print the full output of a call
    Output {
        /// The session's id, or its beginning
        id: String,
        /// Which call, as "sessions show" names it (3.0)
        call: String,
        /// Only what came from one of its streams
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
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// At most this many places
        #[arg(long, value_name = "N", default_value_t = 50)]
        most: u32,
    },
    /// Write a receipt for a pull request: task, model, steps, cost, changes, approvals, checks
    Receipt {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// As JSON instead of Markdown
        #[arg(long)]
        json: bool,
    },
    /// Replay a session without the model in a copy of its files, and report the first difference
    Replay {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// Run nothing: make only the decisions and the requests again
        #[arg(long)]
        log: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Verify that the logs of sessions are unchanged
    Verify {
        /// The session's id, or its beginning; all sessions if left out
        id: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Export a session (log, outputs, files) to a file or to standard output, without keys
    Export {
        /// The session's id, or its beginning
        id: String,
        /// The file
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Leave the files of the folder out
        #[arg(long)]
        no_files: bool,
        /// Leave keys and secret files in
        #[arg(long)]
        keep_secrets: bool,
    },
    /// Import a session that was exported elsewhere
    Import {
        /// The file; standard input if left out
        file: Option<PathBuf>,
        /// Put its files into this new folder, and go on there
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
        /// It is your own: keep its mode, its checks and its rules
        #[arg(long)]
        trust: bool,
    },
    /// Delete a session and everything only it uses; this cannot be undone
    Delete {
        /// The session's id, or its beginning
        id: String,
    },
}
