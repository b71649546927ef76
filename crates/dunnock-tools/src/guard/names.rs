//! Files that other programs follow, such as instructions of agents, hooks and settings of CI. What
//! a command changed in them is reverted when it has ended, unless the user had that version.

use super::{Files, Guard, MOST};
use dunnock_sandbox::Survey;
use std::path::Path;

impl Guard {
    /// Restores files of protected names that changed, and removes new ones. A command may delete,
    /// move and copy those that it can write to.
    pub(super) fn check_names(&self, after: &Survey) {
        let root = self.root.path();
        let mut accepted = None;
        let mut accepts = |named: &Path, file: &Path, is: &(Vec<u8>, u32)| {
            let versions = accepted.get_or_insert_with(|| self.versions_now());
            versions.accepts(named, file, is)
        };
        for (path, files) in &self.names {
            let deletes = self.checkout || self.before.watched.contains(&root.join(path));
            self.restore(path, files, deletes, |file, is| accepts(path, file, is));
        }
        for path in after.named.difference(&self.before.named) {
            let Some(relative) = self.relative(path) else { continue };
            let plain = path.symlink_metadata().is_ok_and(|about| !about.is_symlink());
            let mut files = Files::new();
            let read = self.keep(&relative, &mut files, &mut MOST.clone()).is_some();
            let stays = plain
                && read
                && !files.is_empty()
                && files.iter().all(|(file, is)| accepts(&relative, file, is));
            if !stays {
                self.remove(&relative);
            }
        }
    }
}
