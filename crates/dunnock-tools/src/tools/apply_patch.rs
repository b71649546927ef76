//! `apply_patch`.

use crate::edit::{self, CurrentFile, Outcome, Text};
use crate::edit_common::{PlannedEdit, Refusal, change, fresh};
use crate::root::{FileChange, PathError, RepoPath};
use crate::tool::{Example, Tool, ToolContext, ToolOutput};
use dunnock_core::patch::Patch;
use dunnock_proto::{Change, Class, Form, Piece, Recovery, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Updates, adds, moves and deletes files: all changes or none. Takes a unified diff, or:
/// *** Begin Patch, then for each file *** Update File: PATH (and *** Move to: PATH), *** Add File:
/// PATH or *** Delete File: PATH, then *** End Patch. Each change comes after @@ or @@
/// LINE (a line above it, such as the function's first line); its lines begin with a space
/// (unchanged), - (removed) or + (added), with 3 unchanged lines before and after.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyPatch {
    /// The patch.
    #[schemars(length(max = 1_000_000))]
    patch: String,
}

impl Tool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const VIEW: ToolView = ToolView {
        change: &[Change::patch("patch")],
        ..ToolView::new("edit", &[Piece::text(&["patch"]).form(Form::PatchedFiles)])
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Several files",
            files: &[
                ("a.py", "def f():\n    return 1\n\ndef g():\n    return 1\n"),
                ("old.txt", "x\n"),
            ],
            args: r#"{"patch":"*** Begin Patch\n*** Update File: a.py\n@@ def g():\n-    return 1\n+    return 2\n*** Add File: new.txt\n+hello\n*** Delete File: old.txt\n*** End Patch"}"#,
            gives: "updated a.py\n3  \n4  def g():\n5      return 2\nadded new.txt (1 \
                    line)\ndeleted old.txt",
            leaves: &[
                ("a.py", "def f():\n    return 1\n\ndef g():\n    return 2\n"),
                ("new.txt", "hello\n"),
            ],
            ..Example::PLAIN
        },
        Example {
            about: "A unified diff",
            files: &[("src/a.c", "int a;\nint b;\nint c;\n")],
            args: r#"{"patch":"--- a/src/a.c\n+++ b/src/a.c\n@@ -1,3 +1,3 @@\n int a;\n-int b;\n+long b;\n int c;\n"}"#,
            gives: "updated src/a.c\n1  int a;\n2  long b;\n3  int c;",
            leaves: &[("src/a.c", "int a;\nlong b;\nint c;\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A file is moved and changed",
            files: &[("a.txt", "one\ntwo\n")],
            args: r#"{"patch":"*** Begin Patch\n*** Update File: a.txt\n*** Move to: docs/b.txt\n@@\n-two\n+2\n*** End Patch"}"#,
            gives: "moved a.txt to docs/b.txt\n1  one\n2  2",
            leaves: &[("docs/b.txt", "one\n2\n")],
            ..Example::PLAIN
        },
        Example {
            about: "One part does not match, so nothing is changed",
            files: &[("a.txt", "one\n"), ("b.txt", "two\n")],
            args: r#"{"patch":"*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Update File: b.txt\n-twice\n+2\n*** End Patch"}"#,
            gives: "the text does not occur in b.txt; nothing in it is similar. Its content:\n1  \
                    two\nNo file was changed",
            fails: true,
            leaves: &[("a.txt", "one\n"), ("b.txt", "two\n")],
        },
        Example {
            about: "A path outside the workspace",
            args: r#"{"patch":"--- a/../../x\n+++ b/../../x\n@@ -1 +1 @@\n-a\n+b\n"}"#,
            gives: "../../x is outside the workspace; give a path inside it, relative to its \
                    root\nNo file was changed",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        change(context, move |context| patched(&self, context)).await
    }
}

fn patched(args: &ApplyPatch, context: &ToolContext) -> Result<PlannedEdit, Refusal> {
    let patch = Patch::parse(&args.patch)?;
    let mut paths: BTreeMap<String, RepoPath> = BTreeMap::new();
    let mut look = |path: &str| -> Result<CurrentFile, Refusal> {
        let path = RepoPath::parse(&context.files, path)?;
        let name = path.shown();
        let now = match context.files.read(&path) {
            Ok(contents) => {
                fresh(context, &path, &contents, None)?;
                Some(contents)
            }
            Err(PathError::Missing(_)) => None,
            Err(error) => return Err(error.into()),
        };
        paths.insert(name.clone(), path);
        Ok(CurrentFile { name, now })
    };
    let mut refused = None;
    let files = edit::apply(&patch, &mut |path| {
        look(path).map_err(|refusal| {
            let message = refusal.message.clone();
            refused = Some(refusal);
            message
        })
    });
    let files = files.map_err(|message| {
        let mut refusal = refused.unwrap_or_else(|| message.into());
        refusal.message.push_str("\nNo file was changed");
        refusal
    })?;
    let moved: Vec<&String> = files.values().filter_map(|file| file.was.as_ref()).collect();
    let went_on = |name: &String, file: &Outcome| file.after.is_none() && moved.contains(&name);
    let message = files
        .iter()
        .filter(|(name, file)| !went_on(name, file))
        .filter_map(|(name, file)| tell(name, file));
    let message = message.collect::<Vec<_>>().join("\n");
    let changes = files.into_iter().filter(|(_, file)| file.before != file.after).filter_map(
        |(name, file)| {
            Some(FileChange { path: paths.remove(&name)?, before: file.before, after: file.after })
        },
    );
    let changes: Vec<FileChange> = changes.collect();
    if changes.is_empty() {
        return Err("the patch changes nothing".into());
    }
    Ok(PlannedEdit { message, changes })
}

/// What happened to a file, for the model; `None` if it is unchanged.
fn tell(name: &str, file: &Outcome) -> Option<String> {
    let text = file.after.as_ref().and_then(|after| Text::decode(&after.bytes).ok());
    let mut message = match (&file.before, &file.after, &file.was) {
        (_, Some(_), Some(was)) => format!("moved {was} to {name}"),
        (None, Some(_), None) => {
            let lines = text.map_or(0, |text| text.len());
            return Some(format!("added {name} ({})", dunnock_proto::count(lines, "line")));
        }
        (Some(before), Some(after), None) if before != after => format!("updated {name}"),
        (Some(_), None, _) => format!("deleted {name}"),
        (Some(_) | None, ..) => return None,
    };
    if let Some(words) = file.level.and_then(edit::MatchLevel::words) {
        let _ = write!(message, " ({words})");
    }
    if let Some(text) = text.filter(|_| !file.lines.is_empty()) {
        message.push_str(&edit::shown(&text, &file.lines));
    }
    Some(message)
}
