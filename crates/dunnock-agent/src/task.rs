//! What is to be done, and within which bounds.

use dunnock_proto::{Budget, Config, Mode};
use std::path::PathBuf;

/// Who is asked, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Approve {
    /// Nothing may change.
    Read,
    /// Whatever changes something asks.
    Ask,
    /// Commands ask, edits do not.
    Edits,
    /// What the box holds runs; what would leave it asks.
    #[default]
    Auto,
    /// Nothing asks; what is denied stays denied.
    All,
}

/// A task.
///
/// ```
/// use dunnock_agent::{Approve, Task};
///
/// let task = Task::new("Mend the parser", "/src/project")
///     .check("cargo test")
///     .max_steps(12)
///     .approve(Approve::Edits);
/// assert_eq!(task.description(), "Mend the parser");
/// ```
#[derive(Debug, Clone)]
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
}

impl Task {
    /// Something to be done in a folder.
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
        }
    }

    /// What is to be done.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// By this model instead of the agent's.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// At most this many steps (model requests). The default is 200, and 5 for a planner.
    #[must_use]
    pub fn max_steps(self, steps: u32) -> Self {
        Self { limit: Some(steps.max(1)), ..self }
    }

    /// Only a success if this command passes; may be given several times.
    #[must_use]
    pub fn check(mut self, command: impl Into<String>) -> Self {
        self.checks.push(command.into());
        self
    }

    /// With these things asked about.
    #[must_use]
    pub fn approve(self, approve: Approve) -> Self {
        Self { approve, ..self }
    }

    /// Somebody answers questions: limits and budgets are then asked about, too, instead of ending the work.
    #[must_use]
    pub fn interactive(self) -> Self {
        Self { answered: true, ..self }
    }

    /// The model only plans: the program acts, checks after each plan, and ends when the checks pass.
    #[must_use]
    pub fn planner(self) -> Self {
        Self { planner: Some(self.planner.unwrap_or_default()), ..self }
    }

    /// A planner that may use a program although planners are denied it.
    #[must_use]
    pub fn planner_may_use(mut self, program: impl Into<String>) -> Self {
        self.planner.get_or_insert_default().push(program.into());
        self
    }

    /// With at most so many tokens, in and out.
    #[must_use]
    pub fn tokens(self, most: u64) -> Self {
        Self { tokens: Some(most), ..self }
    }

    pub(crate) fn config(&self, model: String, folder: &std::path::Path) -> Config {
        let planner = self.planner.clone().map(|allow| dunnock_tools::planner(folder, &self.description, allow));
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
