//! What can be typed: one source for parsing, help, completions and the manual.

use crate::settings::Value;
use clap::{Args as ClapArgs, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Common things to do:
  dunnock                                       open the terminal app in this folder
  dunnock run \"fix the failing test\"            start working; the answer is printed at the end
  dunnock run --verify \"make test\" \"...\"        \"done\" counts only when that command passes
  dunnock sessions list                         what was done, and what waits for you
  dunnock sessions show ID                      everything that was said and done in a session
  dunnock approve ID --go                       let the waiting command run, and go on
  dunnock answer ID \"the second one\" --go       answer a question, and go on
  dunnock resume                                go on with the newest session of this folder
  dunnock diff                                  what it changed
  dunnock undo                                  take that back
  dunnock resume ID --prompt \"now the docs\"     go on with more to do

An ID can be shortened to its first letters. Every command has its own --help.";

const EXITS: &str = "\
Exit codes: 0 done (and verified, if asked), 1 failed, 2 wrong usage, 3 waiting for you, 4 a limit was reached,
5 verification failed, 130 interrupted. Nothing is lost in any of them: \"dunnock resume\" goes on.";

const BACK: &str = "\
What changes is printed, and done without a question: \"dunnock undo\" takes it back again. Files that somebody else changed
since are left as they are and named; --force takes them back, too. What commands did outside the folder, in git's own
history, in ignored build folders and to files above 50 MB is not taken back.";

const BRIDGE: &str = "\
Each round is a file, 001-outbox.md: paste it into any chat, and save what the chat answers as 001-inbox.md beside it. It counts
once it has been left alone for a second. Commands run in the box as always, and ask as always; \"dunnock undo\" takes them back.
Ctrl-C leaves; nothing is lost: \"dunnock bridge resume\" goes on.";

const SERVE: &str = "\
Whoever has the token can do what you can do here. It is in a file that only you can read, new each time, and gone when the
server ends. With --listen a password is needed, too: in DUNNOCK_PASSWORD, or in ~/.config/dunnock/password (chmod 600).
Ctrl-C ends it: what runs is stopped and recorded, and goes on when it is next opened.";

/// This release, and whether the web app is in it.
fn version() -> &'static str {
    match dunnock_serve::has_web_app() {
        true => env!("CARGO_PKG_VERSION"),
        false => concat!(env!("CARGO_PKG_VERSION"), " (without the web app: cargo xtask web builds it)"),
    }
}

/// A coding agent you can kill, undo and check.
#[derive(Debug, Parser)]
#[command(name = "dunnock", version = version(), disable_help_subcommand = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Keep sessions in this folder instead of the user's data folder
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
        /// Go on with this session; with the newest of this folder if no id is given
        #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with = "task")]
        #[expect(clippy::option_option, reason = "given or not, with an id or without")]
        resume: Option<Option<String>>,
        /// Lines only, nothing drawn twice: for screen readers
        #[arg(long)]
        plain: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// Work on a task in this folder until it is done, without a window of its own
    #[command(after_help = EXITS)]
    Run {
        /// What to do; read from standard input if left out
        task: Option<String>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Go on with a session: after a crash, a stop, a limit, or with more to do
    #[command(after_help = EXITS)]
    Resume {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// Something more to do
        #[arg(long, value_name = "TEXT")]
        prompt: Option<String>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Work through any chat, carried by hand: no key, no API; files to paste and to save
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
    /// Look at sessions: list, show, search, check, carry elsewhere, delete
    #[command(subcommand)]
    Sessions(Sessions),
    /// Let a call run that waits for your approval
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
        /// Go on working at once
        #[arg(long)]
        go: bool,
    },
    /// Refuse a call that waits for your approval; the model is told
    Decline {
        /// The session's id, or its beginning
        id: String,
        /// Which call, as "sessions show" names it (3.0); needed when several wait
        call: Option<String>,
        /// All that wait
        #[arg(long, conflicts_with = "call")]
        all: bool,
        /// Why, or what to do instead: told to the model
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Go on working at once
        #[arg(long)]
        go: bool,
    },
    /// Answer any question that a session asks you
    Answer {
        /// The session's id, or its beginning
        id: String,
        /// The answer, or first which question (q2) and then the answer
        #[arg(required = true, num_args = 1..=2, value_names = ["QUESTION", "TEXT"])]
        words: Vec<String>,
        /// Go on working at once
        #[arg(long)]
        go: bool,
    },
    /// Open the web app: the same sessions in your browser
    Web {
        /// The port; 5000 or the next that is free, if left out
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
        /// The port; 5000 or the next that is free, if left out
        #[arg(long, value_name = "N")]
        port: Option<u16>,
        /// Listen for other machines, too, on this address of this one; needs a password
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
        /// Say where as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Take back what the last task changed, or the last undo or rewind
    #[command(after_help = BACK)]
    Undo {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        #[command(flatten)]
        how: Back,
    },
    /// Go back to an earlier step of a session: its files, its talk, or both
    #[command(after_help = BACK)]
    Rewind {
        /// The session's id, or its beginning
        id: String,
        /// The step: 0 is before the first request, 3 is after the third (in "sessions show" its calls are named 3.0, 3.1, ...)
        #[arg(long, value_name = "STEP")]
        to: u32,
        /// Only the files
        #[arg(long, conflicts_with_all = ["talk", "both"])]
        files: bool,
        /// Only the talk: the model forgets, the files stay
        #[arg(long, conflicts_with = "both")]
        talk: bool,
        /// Files and talk, which is the default
        #[arg(long)]
        both: bool,
        #[command(flatten)]
        how: Back,
    },
    /// Show what changed in a session's folder while it worked
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
    /// Make the talk of a session shorter: a summary, with task, answers, plan and changed files word for word
    Compact {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
    },
    /// Show tokens and money: of each step, of the session, of today
    Cost {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Branch off: a new session with the talk of another, up to a step
    Fork {
        /// The session's id, or its beginning
        id: String,
        /// Up to this step; all of it if left out
        #[arg(long, value_name = "STEP")]
        at: Option<u32>,
    },
    /// Say why a call ran, asked or was refused
    Why {
        /// The session's id, or its beginning
        id: String,
        /// Which call, as "sessions show" names it (3.0)
        call: String,
    },
    /// Show which models can be used
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
    /// Check that everything is in order, and say what to do where it is not
    Doctor {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show the rules that hold in every session, make one, take one back
    Rules {
        /// One JSON object a line
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        what: Option<Rules>,
    },
    /// Trust this folder's own settings, as they are now
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
    /// Show how commands are confined here, and prove it
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
    /// Begin: write what to paste into a chat, wait for its answer, do what it says, and so on
    #[command(after_help = BRIDGE)]
    New {
        /// What to do; read from standard input if left out
        task: Option<String>,
        #[command(flatten)]
        how: Carry,
        #[command(flatten)]
        flags: Flags,
    },
    /// Go on with a conversation that is carried
    #[command(after_help = BRIDGE)]
    Resume {
        /// The session's id, or its beginning; the newest of this folder that is carried, if left out
        id: Option<String>,
        #[command(flatten)]
        how: Carry,
        #[command(flatten)]
        flags: Flags,
    },
    /// Put what waits to be carried into the clipboard
    Copy {
        /// Which part, where there are several
        #[arg(default_value_t = 1)]
        part: usize,
    },
}

/// What `bridge` can be told.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Carry {
    /// Do one round, and leave (exit 3) instead of waiting for the answer
    #[arg(long)]
    pub(crate) once: bool,
    /// Keep outboxes and inboxes in this folder instead of .dunnock/bridge
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Put each outbox into the clipboard, too
    #[arg(long)]
    pub(crate) copy: bool,
}

/// What `undo` and `rewind` can be told.
#[derive(Debug, Default, Clone, Copy, ClapArgs)]
pub(crate) struct Back {
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take back what others changed since, too
    #[arg(long)]
    pub(crate) force: bool,
}

/// What `run` and `resume` can be told.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Flags {
    /// The model, as provider/model ("dunnock models list" shows those there are)
    #[arg(long, value_name = "P/M")]
    pub(crate) model: Option<String>,
    /// Who is asked: read (change nothing), ask (every change), edits (commands ask), auto (what cannot be confined asks),
    /// all (nothing asks)
    #[arg(long, value_name = "MODE")]
    pub(crate) approve: Option<String>,
    /// How well commands must be confined: auto, off, require, require=A|B|C
    #[arg(long, value_name = "HOW")]
    pub(crate) sandbox: Option<String>,
    /// A command that must pass before the work counts as done; may be given several times
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    /// Stop after so many requests to the model
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<String>,
    /// Stop after so much: 200ktok, 10min, 2usd
    #[arg(long, value_name = "HOW MUCH")]
    pub(crate) budget: Option<String>,
    /// Let the model only plan: the program carries plans out, and ends when the checks pass (5 iterations unless --max-steps says otherwise)
    #[arg(long)]
    pub(crate) planner: bool,
    /// How much the model is told at once: default, small (few tools; for small models)
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// A picture that goes with the prompt; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Work in this folder instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,
    /// Take this folder's own settings (.dunnock/config.toml) as if they were yours
    #[arg(long)]
    pub(crate) trust: bool,
    /// Write the answer to this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object a line instead of words
    #[arg(long)]
    pub(crate) json: bool,
}

impl Flags {
    /// Those that are settings.
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
pub(crate) enum Rules {
    /// Let calls run unasked that begin with these words, and go on without options
    Allow {
        /// And let them reach the network
        #[arg(long)]
        network: bool,
        /// The tool and the first words of its command: shell npm install
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Never let calls run that begin with these words
    Deny {
        /// The tool and the first words of its command: shell docker
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Take a rule back
    Revoke {
        /// Its number, as "dunnock rules" shows it
        n: usize,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Boxes {
    /// Try every known way out of the box, and show which are held
    Prove {
        /// Try each without a box first: what is held there anyway proves nothing
        #[arg(long)]
        bare: bool,
        /// At this level instead of the best there is
        #[arg(long, value_name = "LEVEL", value_parser = ["A", "B", "C"])]
        level: Option<String>,
    },
    /// Run a command of your own in the box around this folder
    Run {
        /// With the network of this machine
        #[arg(long)]
        network: bool,
        /// At this level instead of the best there is
        #[arg(long, value_name = "LEVEL", value_parser = ["A", "B", "C"])]
        level: Option<String>,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List providers, whether they can be reached, and their models
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Find out what a model can do, in about two minutes, and keep it for every session
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
    /// Show what was said and done in a session
    Show {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// One JSON object a line: the facts as they are stored
        #[arg(long)]
        json: bool,
    },
    /// Print all of a call's output, as it came
    Output {
        /// The session's id, or its beginning
        id: String,
        /// Which call, as "sessions show" names it (3.0)
        call: String,
        /// Only what came from one of its streams
        #[arg(long, value_name = "STREAM", value_parser = ["out", "err"])]
        stream: Option<String>,
    },
    /// Find sessions by what was said and done in them
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
    /// Write a receipt for a pull request: task, model, steps, cost, changes, approvals, proofs
    Receipt {
        /// The session's id, or its beginning; the newest of this folder if left out
        id: Option<String>,
        /// As JSON instead of Markdown
        #[arg(long)]
        json: bool,
    },
    /// Run a session again without the model, in a copy of its files, and name the first difference
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
    /// Check that the facts of sessions are those that were written
    Verify {
        /// The session's id, or its beginning; all sessions if left out
        id: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Write a session with everything it needs (log, outputs, files) to a file, or to standard output; keys are taken out
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
    /// Take a session in that was exported elsewhere
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
    /// Forget a session and everything that only it needs; this cannot be taken back
    Delete {
        /// The session's id, or its beginning
        id: String,
    },
}
