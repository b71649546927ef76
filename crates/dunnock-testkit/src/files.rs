//! A keeper of files that only counts.

use dunnock_core::ports::{BoxFuture, Checkpoints, RestorePlan, Restored};
use dunnock_proto::{Checkpointed, Seq, SessionId, Tree};

/// Names a tree after the event that asked for it.
pub struct ScriptedFiles;

impl Checkpoints for ScriptedFiles {
    fn keep<'a>(&'a self, _: &'a SessionId, _: &'a str, mark: Seq) -> BoxFuture<'a, Checkpointed> {
        Box::pin(async move {
            Checkpointed { tree: Some(Tree(format!("tree-{mark}"))), mark, note: None }
        })
    }
    fn restore<'a>(&'a self, back: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, String>> {
        Box::pin(async move { Ok(Restored { tree: back.to.clone(), note: None }) })
    }
    fn forget<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}
