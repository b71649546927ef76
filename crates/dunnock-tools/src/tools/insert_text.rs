//! `insert_text`.

use crate::edit::{self, Breaks, Text};
use crate::edit_common::{PlannedEdit, Refusal, change, open};
use crate::root::{Contents, FileChange};
use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_proto::{Change, Class, Recovery, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;

/// Inserts whole lines into a file, after a line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InsertText {
    /// Path relative to the workspace root.
    #[schemars(length(max = 4096))]
    path: String,
    /// The line after which to insert, from 1; 0 inserts at the beginning.
    line: u32,
    /// The lines to insert.
    #[schemars(length(max = 1_000_000))]
    text: String,
}

impl Tool for InsertText {
    const NAME: &'static str = "insert_text";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView =
        ToolView { change: &[Change::added("text")], ..ToolView::of_path("edit") };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "After a line",
            files: &[("a.txt", "one\nthree\n")],
            args: r#"{"path":"a.txt","line":1,"text":"two"}"#,
            gives: "inserted 1 line into a.txt\n1  one\n2  two\n3  three",
            leaves: &[("a.txt", "one\ntwo\nthree\n")],
            ..Example::PLAIN
        },
        Example {
            about: "At the end of a file without a final line break",
            files: &[("a.txt", "one")],
            args: r#"{"path":"a.txt","line":1,"text":"two"}"#,
            gives: "inserted 1 line into a.txt\n1  one\n2  two",
            leaves: &[("a.txt", "one\ntwo")],
            ..Example::PLAIN
        },
        Example {
            about: "The file keeps its line endings",
            files: &[("a.txt", "one\r\nthree\r\n")],
            args: r#"{"path":"a.txt","line":1,"text":"two\n"}"#,
            gives: "inserted 1 line into a.txt\n1  one\n2  two\n3  three",
            leaves: &[("a.txt", "one\r\ntwo\r\nthree\r\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A line that does not exist",
            files: &[("a.txt", "one\n")],
            args: r#"{"path":"a.txt","line":7,"text":"x"}"#,
            gives: "a.txt ends at line 1; there is no line 7 to insert after",
            fails: true,
            leaves: &[("a.txt", "one\n")],
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        change(context, move |context| insert(&self, context)).await
    }
}

fn insert(args: &InsertText, context: &ToolContext) -> Result<PlannedEdit, Refusal> {
    let (path, before) = open(context, &args.path)?;
    let name = path.shown();
    let text = Text::decode(&before.bytes).map_err(|error| format!("{name} {error}"))?;
    let (after, total) = (args.line as usize, text.len());
    if after > total {
        return Err(format!(
            "{name} ends at line {total}; there is no line {after} to insert after"
        )
        .into());
    }
    let lines: Vec<&str> = args.text.lines().collect();
    if lines.is_empty() {
        return Err("there are no lines to insert".into());
    }
    let mut new = lines.join("\n");
    // If the file did not end with a line break, it still does not.
    match after == total && text.is_open() {
        true => new.insert(0, '\n'),
        false => new.push('\n'),
    }
    let at = text.span(after..after).start;
    let changed = text.splice(at..at, &new, Breaks::AsThere);
    let bytes = changed.encode().map_err(|error| format!("{name} {error}"))?;
    let count = dunnock_proto::count(lines.len(), "line");
    let shown = edit::shown(&changed, std::slice::from_ref(&(after..after + lines.len())));
    let message = format!("inserted {count} into {name}{shown}");
    let after = Contents { bytes, mode: before.mode };
    Ok(PlannedEdit {
        message,
        changes: vec![FileChange { path, before: Some(before), after: Some(after) }],
    })
}
