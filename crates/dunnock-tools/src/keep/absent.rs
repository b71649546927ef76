//! Systems on which files are not kept yet: there is no keeper, and nobody can make one.

use crate::differs::{Differs, OnTheWay, Packed, Preview};
use dunnock_core::ports::{Back, Checkpoints, Files, Restored, Wait};
use dunnock_proto::{Checkpointed, Seq, SessionId, Tree};

/// Keeps the files of workspaces; not on this system.
pub enum Keeper {}

impl Keeper {
    /// How two states differ.
    pub fn compare<'a>(&'a self, _: &'a str, _: Tree, _: Tree) -> Wait<'a, Result<Vec<Differs>, String>> {
        match *self {}
    }
    /// What going back would do.
    pub fn preview<'a>(&'a self, _: Back<'a>) -> Wait<'a, Result<Preview, String>> {
        match *self {}
    }
    /// Takes states along.
    pub fn pack_up<'a>(&'a self, _: &'a str, _: Vec<Tree>, _: OnTheWay) -> Wait<'a, Result<Packed, String>> {
        match *self {}
    }
    /// Takes in what was packed up elsewhere.
    pub fn unpack<'a>(
        &'a self,
        _: &'a str,
        _: SessionId,
        _: Vec<Vec<u8>>,
        _: Vec<Tree>,
    ) -> Wait<'a, Result<(), String>> {
        match *self {}
    }
    /// Writes the files of a state into an empty folder.
    pub fn unfold<'a>(
        &'a self,
        _: &'a str,
        _: Tree,
        _: std::path::PathBuf,
        _: bool,
    ) -> Wait<'a, Result<Vec<String>, String>> {
        match *self {}
    }
    /// Bytes that are kept.
    #[must_use]
    pub fn size(&self) -> u64 {
        match *self {}
    }
}

impl Checkpoints for Keeper {
    fn keep<'a>(&'a self, _: &'a SessionId, _: &'a str, _: Seq) -> Wait<'a, Checkpointed> {
        match *self {}
    }
    fn restore<'a>(&'a self, _: Back<'a>) -> Wait<'a, Result<Restored, String>> {
        match *self {}
    }
    fn forget<'a>(&'a self, _: &'a SessionId) -> Wait<'a, Result<(), String>> {
        match *self {}
    }
}

impl Files for Keeper {
    fn tree<'a>(&'a self, _: &'a str) -> Wait<'a, Result<Tree, String>> {
        match *self {}
    }
    fn holds<'a>(&'a self, _: &'a str, _: &'a Tree) -> Wait<'a, bool> {
        match *self {}
    }
}
