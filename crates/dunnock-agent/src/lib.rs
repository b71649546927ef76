//! Dunnock as a library: create a [`Task`], run it, follow its [`Event`]s, answer its
//! [`Question`]s, and get an [`Outcome`].
//!
//! The library runs the same loop as the program: every step is durable, commands run in a
//! sandbox, changes can be undone, and a task with checks succeeds only when they pass. Given the
//! same data folder, the program can list, open, resume and undo sessions created by the library,
//! and vice versa.
//!
//! ```no_run
//! use dunnock_agent::{Agent, Endpoint, Launcher, Task, tokio};
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     // This must come first: commands are started by a helper process, which is this program.
//!     let launcher = match Launcher::run_if_requested() {
//!         Ok(launcher) => launcher,
//!         Err(code) => return code,
//!     };
//!     let Ok(runtime) = tokio::runtime::Runtime::new() else { return ExitCode::FAILURE };
//!     let outcome = runtime.block_on(async {
//!         let agent = Agent::builder("/var/lib/my-app", launcher)
//!             .endpoint("local", Endpoint::ollama("http://127.0.0.1:11434"))
//!             .model("local/qwen3")
//!             .build()
//!             .await?;
//!         let task = Task::new("Make the tests pass", "/src/project").check("cargo test").planner();
//!         agent.run(task).await
//!     });
//!     match outcome {
//!         Ok(outcome) if outcome.success => ExitCode::SUCCESS,
//!         Ok(_) | Err(_) => ExitCode::FAILURE,
//!     }
//! }
//! ```
//!
//! The library has no global state: no logger, no configuration file, no output. It reads only the
//! environment variables that commands need (`PATH`, `HOME` and the locations of toolchains).
//! You set what an agent may do when you create the agent and the task.
//!
//! The public API changes only with the major version; enums that may grow are `non_exhaustive`.

#![warn(missing_docs)]

mod agent;
mod event;
mod run;
mod task;

pub use agent::{Agent, AgentBuilder, Endpoint, Isolation, Launcher};
pub use event::{Event, Outcome, Question, QuestionKind, Reply, Undone};
pub use run::Run;
pub use task::{Approve, Task};

use std::path::PathBuf;

/// The async runtime that this library requires.
pub use tokio;

/// What went wrong. A failed task is not an error: its [`Outcome`] reports the failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid. The message says why and what to do.
    #[error("{0}")]
    Usage(String),
    /// No session has this id, or several have ids that begin with it.
    #[error("no session, or more than one, matches {0:?}")]
    NoSession(String),
    /// The session refused a command, such as an answer to a question that has changed meanwhile.
    #[error("{0}")]
    Refused(String),
    /// It could not be found out how commands can be sandboxed. Trying again may help.
    #[error("the sandbox could not be checked: {0}")]
    Sandbox(String),
    /// The data folder cannot be used.
    #[error("the data folder {} cannot be used", folder.display())]
    #[non_exhaustive]
    Data {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: BoxError,
    },
    /// The session cannot be read, saved or reached.
    #[error(transparent)]
    Session(BoxError),
}

/// The cause of an [`Error`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
