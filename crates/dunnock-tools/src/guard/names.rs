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
        let read = |path: &Path| {
            let mut files = Files::new();
            self.keep(path, &mut files, &mut MOST.clone()).map(|()| files)
        };
        let mut accepted = None;
        let mut accepts = |named: &Path, file: &Path, is: &(Vec<u8>, u32)| {
            let versions = accepted.get_or_insert_with(|| self.versions_now());
            versions.accepts(named, file, is)
        };
        for (path, files) in &self.names {
            let Some(now) = read(path) else {
                // Too large or unreadable now: all of it goes, and what was there comes back.
                self.remove(path);
                for (file, (bytes, mode)) in files {
                    self.put_back(file, bytes, *mode);
                }
                continue;
            };
            if now == *files {
                continue;
            }
            let new = now.iter().filter(|(file, _)| !files.contains_key(*file));
            for (file, _) in new.filter(|(file, is)| !accepts(path, file, is)) {
                self.remove(file);
            }
            let deletes = self.checkout || self.before.watched.contains(&root.join(path));
            for (file, was @ (bytes, mode)) in files {
                let kept = match now.get(file) {
                    Some(is) => is == was || accepts(path, file, is),
                    None => deletes && !self.is_there(file),
                };
                if !kept {
                    self.put_back(file, bytes, *mode);
                }
            }
        }
        for path in after.named.difference(&self.before.named) {
            let Some(relative) = self.relative(path) else { continue };
            let plain = path.symlink_metadata().is_ok_and(|about| !about.is_symlink());
            let files = read(&relative).filter(|files| plain && !files.is_empty());
            if !files
                .is_some_and(|files| files.iter().all(|(file, is)| accepts(&relative, file, is)))
            {
                self.remove(&relative);
            }
        }
    }
}
