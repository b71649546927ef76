//! `write_file`.

use crate::edit::Text;
use crate::edit_common::{PlannedEdit, Refusal, change, fresh};
use crate::root::{Contents, FileChange, PathError, RepoPath};
use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Change, Class, Recovery, ToolView, count};
use schemars::JsonSchema;
use serde::Deserialize;

/// Creates a file and missing parent folders. Fails if the file exists, unless overwrite is true;
/// to change part of a file, use replace_text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// Path relative to the workspace root.
    #[schemars(length(max = 4096))]
    path: String,
    /// Its complete text.
    #[schemars(length(max = 1_000_000))]
    content: String,
    /// Replace the file if it exists.
    #[serde(default)]
    overwrite: bool,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView =
        ToolView { change: &[Change::added("content")], ..ToolView::of_path("write") };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "A new file in a new folder",
            args: r#"{"path":"src/a.txt","content":"one\ntwo\n"}"#,
            gives: "wrote src/a.txt (2 lines, 8 bytes)",
            leaves: &[("src/a.txt", "one\ntwo\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A file that already exists",
            files: &[("a.txt", "old")],
            args: r#"{"path":"a.txt","content":"new"}"#,
            gives: "a.txt already exists; change it with replace_text, or set overwrite",
            fails: true,
            leaves: &[("a.txt", "old")],
        },
        Example {
            about: "Overwriting on purpose",
            files: &[("a.txt", "old")],
            args: r#"{"path":"a.txt","content":"new","overwrite":true}"#,
            gives: "replaced a.txt (1 line, 3 bytes)",
            leaves: &[("a.txt", "new")],
            ..Example::PLAIN
        },
        Example {
            about: "Byte order mark and line endings, which the model does not see, are kept",
            files: &[("a.txt", "\u{feff}one\r\ntwo\r\n")],
            args: r#"{"path":"a.txt","content":"one\n2\n","overwrite":true}"#,
            gives: "replaced a.txt (2 lines, 11 bytes, encoding and line endings kept)",
            leaves: &[("a.txt", "\u{feff}one\r\n2\r\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A folder that tools may not change",
            args: r#"{"path":".git/hooks/pre-commit","content":"x"}"#,
            gives: ".git/hooks/pre-commit is protected: tools may not change anything in .git or \
                    .dunnock",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        change(context, move |context| write(&self, context)).await
    }
}

fn write(args: &WriteFile, context: &ToolContext) -> Result<PlannedEdit, Refusal> {
    let path = RepoPath::parse(&context.files, &args.path)?;
    let name = path.shown();
    let before = match context.files.read(&path) {
        Ok(_) if !args.overwrite => return Err(PathError::Exists(name).into()),
        Ok(contents) => Some(contents),
        // It does not exist, or cannot be seen; the commit finds out which.
        Err(PathError::Missing(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mut bytes = args.content.clone().into_bytes();
    let mut kept = "";
    if let Some(old) = &before {
        fresh(context, &path, old, None)?;
        // Keep its encoding and line endings: the model saw neither.
        if let Ok(text) = Text::decode(&old.bytes)
            && let Ok(same) = text.with_all(&args.content).encode()
            && same != bytes
        {
            bytes = same;
            kept = ", encoding and line endings kept";
        }
    }
    let word = if before.is_some() { "replaced" } else { "wrote" };
    let message = format!(
        "{word} {name} ({}, {}{kept})",
        count(args.content.lines().count(), "line"),
        count(bytes.len(), "byte")
    );
    let mode = before.as_ref().and_then(|old| old.mode);
    Ok(PlannedEdit {
        message,
        changes: vec![FileChange { path, before, after: Some(Contents { bytes, mode }) }],
    })
}
