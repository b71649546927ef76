//! Systems on which checkpoints do not exist yet: there is no checkpoint store.

use crate::diff_view::{DiffView, ExportFilter, PackedTrees, Preview};
use dunnock_ports::{
    BoxFuture, Checkpoints, Files, FilesError, RestorePlan, Restored, SaveControl,
};
use dunnock_proto::{Checkpointed, Seq, SessionId, Tree};

/// Saves the files of workspaces; not available on this system.
pub enum CheckpointStore {}

impl CheckpointStore {
    /// How two states differ.
    pub fn compare<'a>(
        &'a self,
        _: &'a str,
        _: Tree,
        _: Tree,
    ) -> BoxFuture<'a, Result<Vec<DiffView>, FilesError>> {
        match *self {}
    }
    /// Shows what a restore would do.
    pub fn preview<'a>(&'a self, _: RestorePlan<'a>) -> BoxFuture<'a, Result<Preview, FilesError>> {
        match *self {}
    }
    /// Packs states for export.
    pub fn pack_up<'a>(
        &'a self,
        _: &'a str,
        _: Vec<Tree>,
        _: ExportFilter,
    ) -> BoxFuture<'a, Result<PackedTrees, FilesError>> {
        match *self {}
    }
    /// Whether states that were packed elsewhere may be imported.
    ///
    /// # Errors
    /// If a state is incomplete or too large.
    pub fn check_import(&self, _: &[Vec<u8>], _: &[Tree], _: u64) -> Result<(), FilesError> {
        match *self {}
    }
    /// Imports states that were packed elsewhere.
    pub fn unpack<'a>(
        &'a self,
        _: &'a str,
        _: SessionId,
        _: Vec<Vec<u8>>,
        _: Vec<Tree>,
    ) -> BoxFuture<'a, Result<(), FilesError>> {
        match *self {}
    }
    /// Writes the files of a state into an empty folder.
    pub fn unfold<'a>(
        &'a self,
        _: &'a str,
        _: Tree,
        _: std::path::PathBuf,
        _: bool,
    ) -> BoxFuture<'a, Result<Vec<String>, FilesError>> {
        match *self {}
    }
    /// Names what restoring git's history would bring back.
    pub fn lost_history<'a>(
        &'a self,
        _: &'a str,
        _: &'a SessionId,
        _: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, FilesError>> {
        match *self {}
    }
    /// Bytes stored.
    #[must_use]
    pub fn size(&self) -> u64 {
        match *self {}
    }
}

impl Checkpoints for CheckpointStore {
    fn keep<'a>(
        &'a self,
        _: &'a SessionId,
        _: &'a str,
        _: Seq,
        _: SaveControl,
    ) -> BoxFuture<'a, Checkpointed> {
        match *self {}
    }
    fn restore<'a>(&'a self, _: RestorePlan<'a>) -> BoxFuture<'a, Result<Restored, FilesError>> {
        match *self {}
    }
    fn forget<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<(), FilesError>> {
        match *self {}
    }
}

impl Files for CheckpointStore {
    fn tree<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Tree, FilesError>> {
        match *self {}
    }
    fn holds<'a>(&'a self, _: &'a str, _: &'a Tree) -> BoxFuture<'a, bool> {
        match *self {}
    }
}
