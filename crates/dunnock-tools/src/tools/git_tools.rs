//! `git_status` and `git_diff`.

use crate::git;
use crate::process::{self, Program};
use crate::root::RepoPath;
use crate::tool::{Example, Tool, ToolContext, ToolOutput, ToolStatus};
use dunnock_core::policy::is_secret;
use dunnock_proto::{Class, Piece, Recovery, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

/// Shows the branch and which files are changed, staged or untracked, as git status --porcelain
/// does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitStatus {}

impl Tool for GitStatus {
    const NAME: &'static str = "git_status";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const VIEW: ToolView = ToolView::new("git status", &[]);
    const EXAMPLES: &'static [Example] = &[];

    async fn run(self, context: ToolContext) -> ToolOutput {
        let words = match quiet(&context).await {
            Ok(words) => words,
            Err(error) => return Err::<String, _>(error).into(),
        };
        // Commands cannot read Dunnock's own folder.
        let rest = [
            "status",
            "--porcelain=v1",
            "--branch",
            "--ignore-submodules=dirty",
            "--",
            ".",
            ":(exclude).dunnock",
        ];
        boxed(&context, words, &rest).await
    }
}

/// Shows what changed since the files were last staged or committed, as a diff.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitDiff {
    /// Only this file or folder.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    path: Option<String>,
    /// Show staged changes instead of unstaged ones.
    #[serde(default)]
    staged: bool,
    /// Compare with this commit or branch, for instance HEAD~1.
    #[serde(default)]
    #[schemars(length(max = 200))]
    commit: Option<String>,
}

impl Tool for GitDiff {
    const NAME: &'static str = "git_diff";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const VIEW: ToolView = ToolView::new(
        "git diff",
        &[Piece::text(&["commit"]).or(""), Piece::text(&["path"]).after(" ").or("")],
    );
    const EXAMPLES: &'static [Example] = &[];

    async fn run(self, context: ToolContext) -> ToolOutput {
        match self.diff(&context).await {
            Ok(said) => said,
            Err(error) => Err::<String, _>(error).into(),
        }
    }
}

impl GitDiff {
    async fn diff(self, context: &ToolContext) -> Result<ToolOutput, String> {
        let quiet = quiet(context).await?;
        let mut words = vec![
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            "--relative",
        ];
        words.extend(["--submodule=short", "--ignore-submodules=dirty"]);
        if self.staged {
            words.push("--cached");
        }
        let commit = match &self.commit {
            Some(name) if name.starts_with('-') => return Err(format!("{name:?} is not a commit")),
            Some(name) => {
                let whole = format!("{name}^{{commit}}");
                let root = context.root.clone();
                let ask =
                    move || git::ask(root.path(), &["rev-parse", "--verify", "--quiet", &whole]);
                let found = tokio::task::spawn_blocking(ask).await.ok().flatten();
                Some(
                    found
                        .and_then(|lines| lines.into_iter().next())
                        .ok_or(format!("{name:?} is not a commit"))?,
                )
            }
            None => None,
        };
        words.extend(commit.as_deref());
        let path =
            self.path.as_deref().map(|path| RepoPath::parse(&context.root, path)).transpose();
        let path =
            path.map_err(|error| error.to_string())?.map_or(".".to_owned(), |path| path.shown());
        // List the changed files first: those that hold keys, or that the user denies to tools, are
        // not shown.
        let here = format!(":(literal){path}");
        let names: Vec<&str> =
            words.iter().copied().chain(["--name-only", "-z", "--", &here]).collect();
        // Standard output only: git's messages would otherwise be mixed with the names.
        let alone = ["sh", "-c", "exec \"$0\" \"$@\" 2>/dev/null"]
            .map(str::to_owned)
            .into_iter()
            .chain(quiet.clone());
        let listed = boxed(context, alone.collect(), &names).await;
        if listed.end != ToolStatus::Done {
            return Ok(boxed(context, quiet, &["rev-parse", "--git-dir"]).await);
        }
        let all = match &listed.full {
            Some(blob) if blob.bytes.is_empty() => return Err(TOO_MUCH.into()),
            Some(blob) => String::from_utf8_lossy(&blob.bytes).into_owned(),
            None => listed.text.clone(),
        };
        if all.contains(char::REPLACEMENT_CHARACTER) || all.trim_end_matches('\n').contains('\n') {
            return Err(TOO_MUCH.into());
        }
        let kept_back: Vec<&str> = all
            .split('\0')
            .map(|name| name.trim_end_matches('\n'))
            .filter(|name| {
                !name.is_empty() && (is_secret(name) || context.root.is_denied(Path::new(name)))
            })
            .collect();
        let without: Vec<String> =
            kept_back.iter().map(|name| format!(":(exclude,literal){name}")).collect();
        words.extend(["--", here.as_str()]);
        words.extend(without.iter().map(String::as_str));
        let mut said = boxed(context, quiet, &words).await;
        if !kept_back.is_empty() && said.end == ToolStatus::Done {
            said.text = format!("[not shown: {}]\n{}", kept_back.join(", "), said.text);
        }
        Ok(said)
    }
}

/// If we cannot tell what would be shown, nothing is shown.
const TOO_MUCH: &str =
    "too many files differ, or a file name cannot be read; set path to a single file or folder";

async fn quiet(context: &ToolContext) -> Result<Vec<String>, String> {
    let root = context.root.clone();
    let quiet = tokio::task::spawn_blocking(move || git::quiet(root.path())).await;
    quiet.map_err(|error| format!("an error inside the agent: {error}"))?
}

async fn boxed(context: &ToolContext, quiet: Vec<String>, words: &[&str]) -> ToolOutput {
    let all = quiet.into_iter().chain(words.iter().map(|word| (*word).to_owned()));
    let program = Program::words(all.collect()).with(git::SURROUNDINGS);
    process::run(context, program, context.limits.command).await
}
