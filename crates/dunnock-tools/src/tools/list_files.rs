//! `list_files`.

use crate::root::RepoPath;
use crate::tool::{Example, Tool, ToolContext, ToolOutput, blocking};
use crate::walk::{Key, Walk};
use dunnock_proto::{Class, Piece, Recovery, ToolView};
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Lists files and folders in the workspace, sorted, one per line, folders with a trailing slash.
/// Ignored files (.gitignore) are left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    /// Folder to list, relative to the workspace root; the root if left out.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    path: Option<String>,
    /// Only files that match, for instance "*.rs" at any level or "src/*.ts"; relative to the
    /// folder.
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
    const VIEW: ToolView = ToolView {
        counted: "entry",
        ..ToolView::new("list", &[Piece::text(&["glob", "path"]).or(".")])
    };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "Everything",
            files: &[("src/b.rs", "x"), ("a.md", "x"), (".gitignore", "out\n"), ("out/c", "x")],
            gives: ".gitignore\na.md\nsrc/\nsrc/b.rs",
            ..Example::PLAIN
        },
        Example {
            about: "Files that match a glob",
            files: &[("src/b.rs", "x"), ("src/deep/c.rs", "x"), ("a.md", "x")],
            args: r#"{"glob":"**/*.rs"}"#,
            gives: "src/b.rs\nsrc/deep/c.rs",
            ..Example::PLAIN
        },
        Example {
            about: "A glob without a folder matches names at any level",
            files: &[("src/b.rs", "x"), ("c.rs", "x"), ("a.md", "x")],
            args: r#"{"glob":"*.rs"}"#,
            gives: "c.rs\nsrc/b.rs",
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
            about: "A folder that does not exist",
            args: r#"{"path":"nowhere"}"#,
            gives: "nowhere does not exist",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        blocking(move || list(&self, &context)).await
    }
}

/// A glob in the usual syntax: `*` stays within a folder, `**` does not.
pub(crate) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|g| g.compile_matcher()).map_err(|e| format!("invalid pattern: {e}"))
}

fn list(args: &ListFiles, context: &ToolContext) -> Result<String, String> {
    let path = RepoPath::parse(&context.files, args.path.as_deref().unwrap_or("."))
        .map_err(|e| e.to_string())?;
    let folder = context.files.folder(&path).map_err(|e| e.to_string())?;
    let matcher = args.glob.as_deref().map(glob).transpose()?;
    let by_name = args.glob.as_deref().is_some_and(|glob| !glob.contains('/'));
    let shares: Mutex<Vec<Vec<(Key, bool)>>> = Mutex::default();
    Walk::new(&context.files, &folder, args.depth.map(|d| usize::from(d.max(1)))).each(|| {
        let mut share = Share { found: Vec::new(), all: &shares };
        let (matcher, folder) = (&matcher, &folder);
        move |key, entry| {
            let is_dir = entry.file_type().is_some_and(|t| t.is_dir());
            let within = || match by_name {
                true => Path::new(entry.file_name()),
                false => entry.path().strip_prefix(folder).unwrap_or(entry.path()),
            };
            if matcher.as_ref().is_none_or(|m| !is_dir && m.is_match(within())) {
                share.found.push((key, is_dir));
            }
            !context.halt.is_cancelled()
        }
    });
    if context.halt.is_cancelled() {
        return Err("interrupted".into());
    }
    let mut items = shares.into_inner().unwrap_or_else(PoisonError::into_inner).concat();
    if items.is_empty() {
        return Ok("no files found".into());
    }
    items.sort_unstable();
    let most = context.limits.listed;
    let mut out = match items.len() > most {
        true => format!("[TRUNCATED: first {most} items]\n"),
        false => String::new(),
    };
    for (key, is_dir) in items.iter().take(most) {
        out.push_str(&key.shown());
        out.push_str(if *is_dir { "/\n" } else { "\n" });
    }
    out.pop();
    Ok(out)
}

/// Lists a folder, two levels of it.
pub(crate) fn two_levels(path: &str, context: &ToolContext) -> Result<String, String> {
    list(&ListFiles { path: Some(path.to_owned()), glob: None, depth: Some(2) }, context)
}

/// What one thread found; added to `all` on drop.
struct Share<'a> {
    found: Vec<(Key, bool)>,
    all: &'a Mutex<Vec<Vec<(Key, bool)>>>,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(std::mem::take(&mut self.found));
    }
}
