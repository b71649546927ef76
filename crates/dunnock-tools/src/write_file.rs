//! `write_file`.

use crate::root::RepoPath;
use crate::tool::{Example, Hand, Said, Tool, blocking};
use dunnock_proto::{Class, Recovery};
use schemars::JsonSchema;
use serde::Deserialize;

/// Writes a new file, and the folders above it. Fails if the file exists, unless overwrite is true; to change a part of
/// a file use replace_text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// Path relative to the workspace root.
    #[schemars(length(max = 4096))]
    path: String,
    /// All of its text.
    #[schemars(length(max = 1_000_000))]
    content: String,
    /// Replace the file if there is one.
    #[serde(default)]
    overwrite: bool,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const CLASS: Class = Class::Edit;
    const RECOVERY: Recovery = Recovery::Unknown;
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "A new file in a new folder",
            args: r#"{"path":"src/a.txt","content":"one\ntwo\n"}"#,
            gives: "wrote src/a.txt (2 lines, 8 bytes)",
            leaves: &[("src/a.txt", "one\ntwo\n")],
            ..Example::PLAIN
        },
        Example {
            about: "A file that is there",
            files: &[("a.txt", "old")],
            args: r#"{"path":"a.txt","content":"new"}"#,
            gives: "a.txt exists already; change it with replace_text, or set overwrite",
            fails: true,
            leaves: &[("a.txt", "old")],
        },
        Example {
            about: "On purpose",
            files: &[("a.txt", "old")],
            args: r#"{"path":"a.txt","content":"new","overwrite":true}"#,
            gives: "replaced a.txt (1 lines, 3 bytes)",
            leaves: &[("a.txt", "new")],
            ..Example::PLAIN
        },
        Example {
            about: "A folder that tools leave alone",
            args: r#"{"path":".git/hooks/pre-commit","content":"x"}"#,
            gives: ".git/hooks/pre-commit is not changed by tools",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, hand: Hand) -> Said {
        blocking(move || write(&self, &hand)).await
    }
}

fn write(args: &WriteFile, hand: &Hand) -> Result<String, String> {
    let said = |error: crate::root::PathError| error.to_string();
    let path = RepoPath::parse(&hand.root, &args.path).map_err(said)?;
    let (lines, bytes) = (args.content.lines().count(), args.content.len());
    let old = if args.overwrite { hand.root.read(&path).ok() } else { None };
    let word = match &old {
        Some(old) => {
            hand.seen.current(&hand.session, &path, &old.bytes)?;
            hand.root.replace(&path, args.content.as_bytes(), old.mode).map_err(said)?;
            "replaced"
        }
        None => {
            hand.root.create(&path, args.content.as_bytes()).map_err(said)?;
            "wrote"
        }
    };
    hand.seen.saw(&hand.session, &path, args.content.as_bytes());
    Ok(format!("{word} {} ({lines} lines, {bytes} bytes)", path.shown()))
}
