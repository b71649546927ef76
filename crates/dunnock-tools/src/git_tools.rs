//! `git_status` and `git_diff`.

use crate::git;
use crate::process::{self, Program};
use crate::root::RepoPath;
use crate::tool::{Example, Hand, Said, Tool};
use dunnock_proto::{Class, Recovery};
use schemars::JsonSchema;
use serde::Deserialize;

/// Shows the branch and which files are changed, staged or untracked, as git status --porcelain does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitStatus {}

impl Tool for GitStatus {
    const NAME: &'static str = "git_status";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const EXAMPLES: &'static [Example] = &[];

    async fn run(self, hand: Hand) -> Said {
        git(&hand, &["status", "--porcelain=v1", "--branch", "--ignore-submodules=dirty"], &[]).await
    }
}

/// Shows what changed in the workspace since it was staged or committed, as a diff.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitDiff {
    /// Only this file or folder.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    path: Option<String>,
    /// What is staged, not what is in the files.
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
    const EXAMPLES: &'static [Example] = &[];

    async fn run(self, hand: Hand) -> Said {
        let mut words = vec!["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"];
        if self.staged {
            words.push("--cached");
        }
        if let Some(commit) = &self.commit {
            if commit.starts_with('-') || commit.trim().is_empty() {
                return Err::<String, _>(format!("{commit:?} is not a commit")).into();
            }
            words.push(commit);
        }
        let path = self.path.as_deref().map(|path| RepoPath::parse(&hand.root, path)).transpose();
        match path {
            Ok(path) => {
                let shown: Vec<String> = path.iter().map(RepoPath::shown).collect();
                git(&hand, &words, &shown).await
            }
            Err(error) => Err::<String, _>(error).into(),
        }
    }
}

async fn git(hand: &Hand, words: &[&str], paths: &[String]) -> Said {
    let Some(quiet) = git::quiet(hand.root.path()) else {
        return Err::<String, _>("there is no git on this machine").into();
    };
    let all = quiet.into_iter().chain(words.iter().map(|word| (*word).to_owned()));
    let all = all.chain(["--".to_owned()]).chain(paths.iter().cloned());
    process::run(hand, Program::words(all.collect()), hand.limits.command).await
}
