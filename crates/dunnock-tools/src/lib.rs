//! Reads, searches, edits and checkpoints files inside one workspace, and runs commands in it.
//!
//! Each tool is one file (the four process tools share one): an input type whose doc comment is
//! what the model reads, a `run` function, and examples that serve as its tests and its reference
//! page. `tools/mod.rs` lists them; a new tool is a file and its name there. [`Toolbox`] implements
//! the [`Tools`](dunnock_ports::Tools) port.
//!
//! Invariant: every path from a model goes through [`RepoPath`](root::RepoPath); the root comes
//! from the session.
//! Invariant: a child process gets an allowlisted environment, or, without a sandbox, the person's
//! own without keys (`environment`).
//! Invariant: what a command leaves running is a process of the session (`processes`), and dead when
//! the session ends, unless the person keeps it (on Linux; elsewhere, its process group is dead when
//! its call ends).
//! Invariant: only `checkpoint/` saves the files of the workspace; tools do not know about it.

mod captured_output;
#[cfg_attr(not(unix), path = "checkpoint/absent.rs")]
mod checkpoint;
mod child;
mod context;
mod diff_view;
pub mod edit;
mod edit_common;
mod environment;
pub mod git;
#[cfg(unix)]
mod git_history;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod hooks;
pub mod instructions;
mod limits;
#[cfg(target_os = "linux")]
mod login;
mod memory;
mod output;
mod preview;
mod process;
mod processes;
mod programs;
#[cfg(target_os = "linux")]
mod proxies;
pub mod root;
#[cfg(target_os = "linux")]
mod sandbox;
mod secrets;
#[cfg(target_os = "linux")]
mod servers;
mod snapshot;
mod terminal_text;
mod tool;
mod toolbox;
mod tools;
mod walk;
mod web_page;

#[cfg(unix)]
pub use checkpoint::Bounds;
pub use checkpoint::CheckpointStore;
pub use diff_view::{DiffView, ExportFilter, PackedTrees, Preview};
pub use environment::TOOLCHAINS;
#[cfg(target_os = "linux")]
pub use environment::boxed_environment;
pub use limits::{Limits, SandboxSupport, Shell};
pub use memory::{MEMORY, planner};
pub use programs::found;
#[cfg(target_os = "linux")]
pub use sandbox::layout;
pub use secrets::{Cleaner, holds_a_key, is_secret_file, redacted, secret_values};
#[cfg(target_os = "linux")]
pub use servers::{ServerSettings, ServerStatus, SessionServers, session_servers};

pub use tool::Example;
pub use toolbox::Toolbox;
pub use tools::{offers, page, pages, views};
