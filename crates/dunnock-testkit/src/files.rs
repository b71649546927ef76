//! A keeper of files that only counts.

use dunnock_core::ports::{Checkpoints, Wait};
use dunnock_proto::{Checkpointed, Seq, SessionId, Tree};

/// Names a tree after the fact that asked for it.
pub struct ScriptedFiles;

impl Checkpoints for ScriptedFiles {
    fn keep<'a>(&'a self, _: &'a SessionId, _: &'a str, mark: Seq) -> Wait<'a, Checkpointed> {
        Box::pin(async move { Checkpointed { tree: Some(Tree(format!("tree-{mark}"))), mark, note: None } })
    }
    fn restore<'a>(&'a self, _: &'a str, tree: &'a Tree, _: bool) -> Wait<'a, Result<Option<String>, String>> {
        Box::pin(async move { if tree.0.is_empty() { Err("no such tree".into()) } else { Ok(None) } })
    }
}
