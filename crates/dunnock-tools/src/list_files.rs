//! `list_files`.

use crate::root::RepoPath;
use crate::tool::{Example, Hand, Said, Tool, blocking};
use crate::walk;
use dunnock_proto::{Class, Recovery};
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;

/// Entries of one answer.
const ITEMS: usize = 1_000;

/// Lists files and folders of the workspace, sorted, one a line, folders with a slash at the end. What ignore files name
/// is left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    /// Folder to list, relative to the workspace root; the root if left out.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    path: Option<String>,
    /// Only files that match, for instance "**/*.rs" or "src/*.ts"; relative to the folder.
    #[serde(default)]
    #[schemars(length(max = 500))]
    glob: Option<String>,
    /// How many levels down; all if left out.
    #[serde(default)]
    depth: Option<u8>,
}

impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Everything",
            files: &[("src/b.rs", "x"), ("a.md", "x"), (".gitignore", "out\n"), ("out/c", "x")],
            gives: ".gitignore\na.md\nsrc/\nsrc/b.rs",
            ..Example::PLAIN
        },
        Example {
            about: "What matches",
            files: &[("src/b.rs", "x"), ("src/deep/c.rs", "x"), ("a.md", "x")],
            args: r#"{"glob":"**/*.rs"}"#,
            gives: "src/b.rs\nsrc/deep/c.rs",
            ..Example::PLAIN
        },
        Example {
            about: "One level",
            files: &[("src/b.rs", "x"), ("src/deep/c.rs", "x")],
            args: r#"{"path":"src","depth":1}"#,
            gives: "src/b.rs\nsrc/deep/",
            ..Example::PLAIN
        },
        Example {
            about: "Nothing there",
            args: r#"{"path":"no"}"#,
            gives: "there is no no",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, hand: Hand) -> Said {
        blocking(move || list(&self, &hand)).await
    }
}

/// A glob as people write them: `*` stays within a folder, `**` does not.
pub(crate) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|g| g.compile_matcher()).map_err(|e| format!("the pattern cannot be used: {e}"))
}

fn list(args: &ListFiles, hand: &Hand) -> Result<String, String> {
    let path = RepoPath::parse(&hand.root, args.path.as_deref().unwrap_or(".")).map_err(|e| e.to_string())?;
    let folder = hand.root.folder(&path).map_err(|e| e.to_string())?;
    let matcher = args.glob.as_deref().map(glob).transpose()?;
    let mut items = Vec::new();
    let mut more = false;
    for entry in walk::entries(&folder, args.depth.map(|d| usize::from(d.max(1)))) {
        if hand.halt.told() {
            return Err("interrupted".into());
        }
        let is_dir = entry.file_type().is_some_and(|t| t.is_dir());
        let within = entry.path().strip_prefix(&folder).unwrap_or(entry.path());
        let fits = matcher.as_ref().is_none_or(|m| !is_dir && m.is_match(within));
        if !fits {
            continue;
        }
        if items.len() == ITEMS {
            more = true;
            break;
        }
        let slash = if is_dir { "/" } else { "" };
        items.push(format!("{}{slash}", walk::shown(hand.root.path(), entry.path())));
    }
    if items.is_empty() {
        return Ok("nothing".into());
    }
    let first = if more { format!("[TRUNCATED: first {ITEMS} items]\n") } else { String::new() };
    Ok(format!("{first}{}", items.join("\n")))
}
