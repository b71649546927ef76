//! `delete_file`.

use crate::edit_common::{PlannedEdit, Refusal, change, open};
use crate::root::FileChange;
use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Class, Recovery, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;

/// Deletes one file in the workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteFile {
    /// Path relative to the workspace root; a file, not a folder.
    #[schemars(length(max = 4096))]
    path: String,
}

impl Tool for DeleteFile {
    const NAME: &'static str = "delete_file";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView = ToolView::of_path("delete");
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "A file",
            files: &[("a.txt", "one\n"), ("b.txt", "two\n")],
            args: r#"{"path":"a.txt"}"#,
            gives: "deleted a.txt",
            leaves: &[("b.txt", "two\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A file that does not exist",
            args: r#"{"path":"a.txt"}"#,
            gives: "a.txt does not exist",
            fails: true,
            ..Example::PLAIN
        },
        Example {
            about: "A folder",
            files: &[("src/a.txt", "one\n")],
            args: r#"{"path":"src"}"#,
            gives: "src is not a regular file",
            fails: true,
            leaves: &[("src/a.txt", "one\n")],
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        change(context, move |context| delete(&self, context)).await
    }
}

fn delete(args: &DeleteFile, context: &ToolContext) -> Result<PlannedEdit, Refusal> {
    let (path, before) = open(context, &args.path)?;
    let message = format!("deleted {}", path.shown());
    Ok(PlannedEdit {
        message,
        changes: vec![FileChange { path, before: Some(before), after: None }],
    })
}
