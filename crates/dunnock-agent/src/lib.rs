//! Dunnock as a library: make a [`Task`], run it, follow its [`Event`]s, answer its [`Question`]s, and get an [`Outcome`].
//!
//! It is the same loop as the program's: every step is durable, commands run in a box, changes can be taken back, and a task with
//! checks is a success only when they pass. Sessions that a library made can be listed, opened, resumed and undone with the
//! program, if it is given the same data folder, and the other way round.
//!
//! ```no_run
//! use dunnock_agent::{Agent, Launcher, Endpoint, Error, Task, tokio};
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     // First of all: commands are started through a process of their own, which is this very program.
//!     let launcher = match Launcher::run_if_requested() {
//!         Ok(launcher) => launcher,
//!         Err(code) => return code,
//!     };
//!     let Ok(runtime) = tokio::runtime::Runtime::new() else { return ExitCode::FAILURE };
//!     let outcome = runtime.block_on(async {
//!         let agent = Agent::open("/var/lib/my-app", launcher)
//!             .endpoint("local", Endpoint::ollama("http://127.0.0.1:11434"))
//!             .model("local/qwen3")
//!             .build()
//!             .await?;
//!         let task = Task::new("Make the tests pass", "/src/project").check("cargo test").planner();
//!         agent.run(task).await
//!     });
//!     match outcome {
//!         Ok(outcome) if outcome.success => ExitCode::SUCCESS,
//!         Ok(_) | Err(Error::Usage(_)) | Err(_) => ExitCode::FAILURE,
//!     }
//! }
//! ```
//!
//! Nothing here is global: no logger, no configuration file, no output, and of the environment only what commands need (`PATH`,
//! `HOME` and where toolchains are). What an agent may do is said when it is made and when a task is.
//!
//! What is public here changes only with the major version; enums that may grow say so (`non_exhaustive`).

mod agent;
mod event;
mod run;
mod task;

pub use agent::{Agent, AgentBuilder, Endpoint, Isolation, Launcher};
pub use event::{Event, Outcome, Question, QuestionKind, Reply, Undone};
pub use run::Run;
pub use task::{Approve, Task};

/// The runtime that everything here runs on.
pub use tokio;

/// What went wrong. A task that fails is no error: its [`Outcome`] says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be: the words say why, and what to do.
    #[error("{0}")]
    Usage(String),
    /// The data folder cannot be used.
    #[error("sessions cannot be kept: {0}")]
    Data(String),
    /// The session could not be reached, or refused what it was told.
    #[error("{0}")]
    Session(String),
}
