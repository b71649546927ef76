//! A task and its limits.

use dunnock_proto::{Budget, Config, Mode, Sandbox};
use std::path::PathBuf;

/// The approval mode: what needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Approve {
    /// Read-only: nothing may be changed.
    Read,
    /// Every change needs approval.
    Ask,
    /// Commands need approval, edits do not.
    Edits,
    /// What the sandbox can contain runs; anything that needs more access needs approval.
    #[default]
    Auto,
    /// Nothing needs approval; what is denied stays denied. Where there is no sandbox, commands
    /// still need it, unless the task uses [`Task::sandbox_off`].
    All,
}

/// A task for an agent.
///
/// ```
/// use dunnock_agent::{Approve, Task};
///
/// let task = Task::new("Fix the parser", "/src/project")
///     .check("cargo test")
///     .max_steps(12)
///     .approve(Approve::Edits);
/// assert_eq!(task.description(), "Fix the parser");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub(crate) description: String,
    pub(crate) folder: PathBuf,
    pub(crate) model: Option<String>,
    pub(crate) limit: Option<u32>,
    pub(crate) checks: Vec<String>,
    pub(crate) approve: Approve,
    pub(crate) answered: bool,
    pub(crate) planner: Option<Vec<String>>,
    pub(crate) tokens: Option<u64>,
    pub(crate) sandbox_off: bool,
}

impl Task {
    /// A task to be done in a folder.
    pub fn new(description: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        Self {
            description: description.into(),
            folder: folder.into(),
            model: None,
            limit: None,
            checks: Vec::new(),
            approve: Approve::default(),
            answered: false,
            planner: None,
            tokens: None,
            sandbox_off: false,
        }
    }

    /// The description that the task was created with.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Runs commands without a sandbox. With [`Approve::All`], they run without approval, too.
    #[must_use]
    pub fn sandbox_off(self) -> Self {
        Self { sandbox_off: true, ..self }
    }

    /// Uses this model instead of the agent's default.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the maximum number of steps (model requests), at least 1. The default is 200, or 5 for
    /// a planner.
    #[must_use]
    pub fn max_steps(self, steps: u32) -> Self {
        Self { limit: Some(steps.max(1)), ..self }
    }

    /// Adds a command that must pass for the task to succeed. Can be called several times.
    #[must_use]
    pub fn check(mut self, command: impl Into<String>) -> Self {
        self.checks.push(command.into());
        self
    }

    /// Sets the approval mode.
    #[must_use]
    pub fn approve(self, approve: Approve) -> Self {
        Self { approve, ..self }
    }

    /// Declares that the caller answers questions. Reaching a limit or budget then asks a question
    /// instead of ending the run.
    #[must_use]
    pub fn interactive(self) -> Self {
        Self { answered: true, ..self }
    }

    /// Makes the model a planner: the program runs each plan, then the checks, and ends the task
    /// when the checks pass.
    #[must_use]
    pub fn planner(self) -> Self {
        Self { planner: Some(self.planner.unwrap_or_default()), ..self }
    }

    /// Makes the model a planner and allows it a program that planners are otherwise denied.
    #[must_use]
    pub fn planner_allow(mut self, program: impl Into<String>) -> Self {
        self.planner.get_or_insert_default().push(program.into());
        self
    }

    /// Sets a limit on input and output tokens together.
    #[must_use]
    pub fn max_tokens(self, most: u64) -> Self {
        Self { tokens: Some(most), ..self }
    }

    pub(crate) fn config(&self, model: String, folder: &std::path::Path) -> Config {
        let planner = self
            .planner
            .clone()
            .map(|allow| dunnock_tools::planner(folder, &self.description, allow));
        let usual = if planner.is_some() { 5 } else { Config::default().max_steps };
        Config {
            model,
            mode: match self.approve {
                Approve::Read => Mode::Read,
                Approve::Ask => Mode::Ask,
                Approve::Edits => Mode::Edits,
                Approve::Auto => Mode::Auto,
                Approve::All => Mode::All,
            },
            sandbox: if self.sandbox_off { Sandbox::Off } else { Sandbox::Auto },
            attended: self.answered,
            max_steps: self.limit.unwrap_or(usual),
            verify: self.checks.clone(),
            budget: Budget { tokens: self.tokens, ..Budget::default() },
            baseline: true,
            checkpoints: true,
            planner,
            ..Config::default()
        }
    }
}
