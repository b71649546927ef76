//! A keeper of files that only counts.

use dunnock_core::ports::{Back, Checkpoints, Restored, Wait};
use dunnock_proto::{Checkpointed, Seq, SessionId, Tree};

/// Names a tree after the fact that asked for it.
pub struct ScriptedFiles;

impl Checkpoints for ScriptedFiles {
    fn keep<'a>(&'a self, _: &'a SessionId, _: &'a str, mark: Seq) -> Wait<'a, Checkpointed> {
        Box::pin(async move { Checkpointed { tree: Some(Tree(format!("tree-{mark}"))), mark, note: None } })
    }
    fn restore<'a>(&'a self, back: Back<'a>) -> Wait<'a, Result<Restored, String>> {
        Box::pin(async move { Ok(Restored { tree: back.to.clone(), note: None }) })
    }
    fn forget<'a>(&'a self, _: &'a SessionId) -> Wait<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}
