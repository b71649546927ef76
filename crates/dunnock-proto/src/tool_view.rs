//! How interfaces show the calls of a tool.
//!
//! Each tool defines its view once, as data (`Tool::VIEW` in `dunnock-tools`). `cargo xtask
//! generate` writes the views of all tools into the terminal app and the web app.

use serde::Serialize;

/// How the calls of a tool are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ToolView {
    /// What comes before the summary, as in "read src/main.rs". Empty if the summary is a command.
    pub verb: &'static str,
    /// The arguments that tell one call from another, in order.
    pub summary: &'static [Piece],
    /// Arguments that hold the lines of a change.
    pub change: &'static [Change],
    /// What one line of a result is: "line", "entry". Empty if the first line of the result is
    /// shown instead of a number.
    pub counted: &'static str,
    /// How a result begins that found nothing.
    pub nothing: &'static str,
    /// Whether it runs a command: the end of its output is shown.
    pub command: bool,
    /// Whether the session answers it, so that the call itself is not shown.
    pub hidden: bool,
}

impl ToolView {
    /// A tool about one path.
    #[must_use]
    pub const fn of_path(verb: &'static str) -> Self {
        const PATH: &[Piece] = &[Piece::text(&["path"])];
        Self::new(verb, PATH)
    }

    /// A tool with this verb and summary.
    #[must_use]
    pub const fn new(verb: &'static str, summary: &'static [Piece]) -> Self {
        Self { verb, summary, change: &[], counted: "", nothing: "", command: false, hidden: false }
    }
}

/// An argument that holds lines of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The sign of its lines, "+" or "-". Empty for a patch, whose lines have their own.
    pub sign: &'static str,
    /// The name of the argument.
    pub argument: &'static str,
}

impl Change {
    /// An argument whose lines are added.
    #[must_use]
    pub const fn added(argument: &'static str) -> Self {
        Self { sign: "+", argument }
    }

    /// An argument whose lines are removed.
    #[must_use]
    pub const fn removed(argument: &'static str) -> Self {
        Self { sign: "-", argument }
    }

    /// An argument that is a patch.
    #[must_use]
    pub const fn patch(argument: &'static str) -> Self {
        Self { sign: "", argument }
    }
}

/// One argument in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Text before it, unless the argument is missing or the summary begins with it.
    pub before: &'static str,
    /// Names of arguments; the first one that is not empty is used.
    pub arguments: &'static [&'static str],
    /// How it is written.
    pub form: Form,
    /// What stands for a missing argument. If there is nothing, all arguments are shown instead of
    /// a summary.
    pub default: Option<&'static str>,
}

/// How an argument is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// As it is; the words of a list with spaces between them.
    Text,
    /// In quotes.
    Quoted,
    /// As JSON.
    Json,
    /// The files that a patch names.
    PatchedFiles,
    /// The number of its items, which are steps.
    StepCount,
}

impl Piece {
    /// The first of these arguments, as text.
    #[must_use]
    pub const fn text(arguments: &'static [&'static str]) -> Self {
        Self { before: "", arguments, form: Form::Text, default: None }
    }

    /// The argument in another form.
    #[must_use]
    pub const fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Puts text before the argument.
    #[must_use]
    pub const fn after(self, before: &'static str) -> Self {
        Self { before, ..self }
    }

    /// Uses this text if the argument is missing or empty.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }
}
