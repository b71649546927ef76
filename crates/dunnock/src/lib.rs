//! The `dunnock` program: a table of contents.
//!
//! `cli/` has the commands and their arguments, `config/` the settings and the folders they come
//! from, `view/` what people and programs read of a session. `compose.rs` chooses the adapters;
//! `drive.rs` follows a session through its connection until it rests, and shows it as text
//! (`view/plain.rs`) or JSON (`view/lines.rs`). `cli/terminal.rs` opens the terminal app and
//! `cli/serve.rs` the server; `host/` answers their requests. All output goes through
//! `view/output.rs`.

mod ask_terminal;
mod cli;
mod clipboard;
mod compose;
mod config;
mod drive;
mod files;
mod host;
mod login;
mod own_programs;
mod signals;
mod view;

use clap::{CommandFactory as _, Parser as _};
use cli::args::{self, Args, Command};
use cli::{
    about, bridge, cost, doctor, login as login_command, mcp, models, processes, reply, rules, run,
    sandbox, serve, sessions, terminal, trust, undo,
};
use config::keys_table;
use dunnock_proto::Scope;
use host::tui_host;
use std::process::ExitCode;
use view::{exit, output};

pub use cli::receipt::schema as receipt_schema;
pub use view::lines::schema as json_schema;

/// The version of this release.
pub(crate) const APP: &str = env!("CARGO_PKG_VERSION");

/// Every help page: the command and the text that is printed.
#[must_use]
pub fn help_pages() -> Vec<(String, String)> {
    about::help_pages(Args::command())
}

/// The OpenAPI document of the server.
#[must_use]
pub fn openapi() -> String {
    dunnock_serve::openapi()
}

/// The reference page of all settings.
#[must_use]
pub fn settings_page() -> String {
    keys_table::page()
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().collect();
    #[cfg(target_os = "linux")]
    if let Some(code) = sandbox::part(&words) {
        return code;
    }
    about::be_private();
    if words.get(1).is_some_and(|word| word == dunnock_sandbox::LAUNCH) {
        return dunnock_sandbox::serve();
    }
    let args = match about::task_or_mistake(&words, terminal::possible(), about::web_is_the_door) {
        Some(about::Typed::Task(words)) => Args::parse_from(words),
        Some(about::Typed::Mistake(text)) => {
            output::note(&text);
            return ExitCode::from(2);
        }
        None => Args::parse_from(words),
    };
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        anyhow::Ok(builder.worker_threads(2).enable_all().build()?)
    };
    let done = about::enough_threads().and_then(|()| runtime()).and_then(|runtime| {
        let done = runtime.block_on(command(args));
        runtime.shutdown_background(); // a thread waiting for standard input must not delay the exit
        done
    });
    match done {
        Ok(_) if output::lost() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            if error.is::<exit::Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

async fn command(args: Args) -> anyhow::Result<ExitCode> {
    let data = args.data_dir;
    match args.command {
        Command::Open { task, resume, plain, flags } => {
            let first = match (task, resume) {
                (Some(task), _) => tui_host::StartWith::Task(task),
                (None, Some(id)) => tui_host::StartWith::Resume(id),
                (None, None) => tui_host::StartWith::Folder,
            };
            terminal::open(data, terminal::TerminalOptions { first, plain, flags }).await
        }
        Command::Run { task, flags } => run::run(data, task, flags).await,
        Command::Resume { id, prompt, flags } => run::resume(data, id, prompt, flags).await,
        Command::Bridge(what) => {
            let asked = |how: args::Carry| bridge::BridgeOptions {
                once: how.once,
                dir: how.dir,
                copy: how.copy,
            };
            match what {
                args::Bridge::New { task, how, flags } => {
                    bridge::new(data, task, asked(how), flags).await
                }
                args::Bridge::Resume { id, how, flags } => {
                    bridge::resume(data, id, asked(how), flags).await
                }
                args::Bridge::Copy { part } => bridge::copy(data, part).await,
            }
        }
        Command::Attach { id, json: false } if terminal::possible() => {
            let (first, flags) = (tui_host::StartWith::Attach(id), args::Flags::default());
            terminal::open(data, terminal::TerminalOptions { first, plain: false, flags }).await
        }
        Command::Attach { id, json } => run::attach(data, id, json).await,
        Command::Sessions(which) => sessions::run(data, which).await,
        Command::Approve { id, call, all, always, all_projects, network, go } => {
            let say = match (always, network) {
                (true, _) => reply::Say::Always { all_projects },
                (false, true) => reply::Say::Wider,
                (false, false) => reply::Say::Yes,
            };
            reply::approve(data, &id, reply::Which::of(call, all)?, say, go).await
        }
        Command::Decline { id, call, all, note, go } => {
            reply::approve(data, &id, reply::Which::of(call, all)?, reply::Say::No(note), go).await
        }
        Command::Answer { id, words, go } => reply::answer(data, &id, words, go).await,
        Command::Undo { id, how } => undo::undo(data, id, how).await,
        Command::Rewind { id, to, files, conversation, both: _, how } => {
            let scope = match (files, conversation) {
                (true, _) => Scope::Files,
                (_, true) => Scope::Conversation,
                (false, false) => Scope::Both,
            };
            undo::rewind(data, id, to, scope, how).await
        }
        Command::Diff { id, steps, names } => undo::diff(data, id, steps, names).await,
        Command::Compact { id } => undo::compact(data, id).await,
        Command::Cost { id, json } => cost::run(data, id, json).await,
        Command::Fork { id, at } => undo::fork(data, &id, at).await,
        Command::Why { id, call } => reply::why(data, &id, &call).await,
        Command::Serve { port, listen, json } => {
            serve::run(data, serve::ServeOptions { port, listen, json, web: None }).await
        }
        Command::Web { port, no_open, json } => {
            let web = Some(if no_open { serve::Browser::Tell } else { serve::Browser::Open });
            serve::run(data, serve::ServeOptions { port, listen: None, json, web }).await
        }
        Command::Login { provider, model } => login_command::run(data, provider, model).await,
        Command::Logout { provider } => login_command::logout(data, provider),
        Command::Models(args::Models::List { json }) => models::list(data, json).await,
        Command::Models(args::Models::Check { model, json }) => {
            models::check(data, model, json).await
        }
        Command::Config { json, cd, trust } => about::config(data, cd, trust, json),
        Command::Doctor { json } => doctor::run(data, json).await,
        Command::Rules { what, json } => rules::run(what, json),
        Command::Mcp(what) => mcp::run(data, what).await,
        Command::Trust { dir, list, revoke } => trust::run(dir, list, revoke),
        Command::Processes { json, what } => processes::run(data, json, what),
        Command::Sandbox { what, json } => sandbox::run(data, what, json).await,
        Command::Completions { shell } => about::completions(shell, Args::command()),
        Command::Man { dir } => about::man(dir, Args::command()),
    }
}
