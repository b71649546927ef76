//! Reads, searches, edits, runs and keeps files inside one workspace.
//!
//! One tool, one file (four verbs on a process share one): an input type whose doc comment is what the model reads, a `run`,
//! and examples that are its tests and its reference page. The list of tools is in `table.rs`; a new tool is a file and a line there. [`Toolbox`] is the
//! [`Tools`](dunnock_core::ports::Tools) port.
//!
//! Invariant: every path of a model goes through [`RepoPath`](root::RepoPath); the root comes from the session.
//! Invariant: a child process sees an environment by allow list, and is gone with everything it started when its call ends, or
//! when its session does if it was started to run on (Linux; elsewhere with its group).
//! Invariant: files of the workspace are saved by `checkpoint/` alone; tools do not know of it.

mod apply_patch;
mod ask_person;
mod captured_output;
#[cfg_attr(not(unix), path = "checkpoint/absent.rs")]
mod checkpoint;
mod child;
mod delete_file;
mod diff_view;
pub mod edit;
mod edit_common;
mod final_output;
pub mod git;
mod git_tools;
#[cfg(target_os = "linux")]
mod guard;
mod insert_text;
pub mod instructions;
mod list_files;
mod memory;
mod move_file;
mod preview;
mod process;
mod process_tools;
mod processes;
mod replace_text;
pub mod root;
#[cfg(target_os = "linux")]
mod sandbox;
mod search_text;
mod secrets;
mod shell;
mod table;
mod tool;
mod toolbox;
mod update_plan;
mod view_file;
mod walk;
mod write_file;

#[cfg(unix)]
pub use checkpoint::Bounds;
pub use checkpoint::CheckpointStore;
pub use diff_view::{DiffView, ExportFilter, PackedTrees, Preview};
pub use memory::{MEMORY, planner};
#[cfg(target_os = "linux")]
pub use process::boxed_environment;
pub use process::{TOOLCHAINS, found};
#[cfg(target_os = "linux")]
pub use sandbox::layout;
pub use secrets::{Cleaner, holds_a_key, is_secret_file, redacted, secret_values};
pub use table::{offers, page, pages};
pub use tool::Example;
pub use toolbox::{Limits, SandboxSupport, Shell, Toolbox};
