//! `move_file`.

use crate::edit_common::{PlannedEdit, Refusal, change, open};
use crate::root::{FileChange, PathError, RepoPath};
use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Class, Piece, Recovery, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;

/// Moves a file, and creates missing parent folders. Fails if the new path already exists.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveFile {
    /// Path relative to the workspace root; a file, not a folder.
    #[schemars(length(max = 4096))]
    path: String,
    /// Its new path.
    #[schemars(length(max = 4096))]
    to: String,
}

impl Tool for MoveFile {
    const NAME: &'static str = "move_file";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView =
        ToolView::new("move", &[Piece::text(&["path"]), Piece::text(&["to"]).after(" to ")]);
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Into a new folder",
            files: &[("a.txt", "one\n")],
            args: r#"{"path":"a.txt","to":"src/b.txt"}"#,
            gives: "moved a.txt to src/b.txt",
            leaves: &[("src/b.txt", "one\n")],
            ..Example::PLAIN
        },
        Example {
            about: "The new path already exists",
            files: &[("a.txt", "one\n"), ("b.txt", "two\n")],
            args: r#"{"path":"a.txt","to":"b.txt"}"#,
            gives: "b.txt already exists and is not overwritten; choose another path",
            fails: true,
            leaves: &[("a.txt", "one\n"), ("b.txt", "two\n")],
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        change(context, move |context| moving(&self, context)).await
    }
}

fn moving(args: &MoveFile, context: &ToolContext) -> Result<PlannedEdit, Refusal> {
    let (from, before) = open(context, &args.path)?;
    let to = RepoPath::parse(&context.files, &args.to)?;
    match context.files.read(&to) {
        Err(PathError::Missing(_)) => {}
        Ok(_) | Err(PathError::NotAFile(_) | PathError::TooLong(..)) => {
            return Err(format!(
                "{} already exists and is not overwritten; choose another path",
                to.shown()
            )
            .into());
        }
        Err(error) => return Err(error.into()),
    }
    let message = format!("moved {} to {}", from.shown(), to.shown());
    let arrives = FileChange { path: to, before: None, after: Some(before.clone()) };
    let goes = FileChange { path: from, before: Some(before), after: None };
    Ok(PlannedEdit { message, changes: vec![arrives, goes] })
}
