//! A keeper of files that only counts.

use dunnock_ports::{BoxFuture, Checkpoints, FilesError, RestorePlan, Restored, SaveControl};
use dunnock_proto::{Checkpointed, Seq, SessionId, Tree};

/// Names a tree after the event that asked for it.
pub struct ScriptedFiles;

impl Checkpoints for ScriptedFiles {
    fn keep<'a>(
        &'a self,
        _: &'a SessionId,
        _: &'a str,
        mark: Seq,
        _: SaveControl,
    ) -> BoxFuture<'a, Checkpointed> {
        Box::pin(async move {
            Checkpointed { tree: Some(Tree(format!("tree-{mark}"))), mark, note: None }
        })
    }
    fn restore<'a>(&'a self, back: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, FilesError>> {
        Box::pin(async move { Ok(Restored { tree: back.to.clone(), note: None, partial: false }) })
    }
    fn forget<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<(), FilesError>> {
        Box::pin(async { Ok(()) })
    }
}
