//! Enforces the size limit: removes old states first, and contents that no state refers to any
//! more.
//!
//! A copy without them replaces the file, so that a kill midway loses nothing.

use super::pack::{CheckpointRoot, Pack};
use super::{Bounds, Store, diff, hash, now};
use crate::git_history;
use dunnock_proto::{Hash, SessionId, Tree};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Every store with its size and when it was last written.
pub(crate) fn stores(base: &Path) -> Vec<(PathBuf, u64, SystemTime)> {
    let found = std::fs::read_dir(base).into_iter().flatten().flatten().filter_map(|entry| {
        let file = entry.path().join("objects").metadata().ok()?;
        Some((entry.path(), file.len(), file.modified().ok()?))
    });
    found.collect()
}

/// Shrinks all stores to the limit: the least recently used goes first, the one in use last.
/// What cannot be done now is done next time.
pub(crate) fn within(base: &Path, bounds: Bounds, mine: &mut Store) {
    git_history::collect(&mine.dir, bounds.bytes, bounds.age);
    let unused = |used: SystemTime| used.elapsed().unwrap_or_default();
    let mut all = stores(base);
    all.retain(|(dir, _, used)| {
        // Nothing in it can be younger than its last change.
        let gone = *dir != mine.dir && unused(*used) > bounds.age && Pack::try_lock(dir).is_ok();
        if gone {
            let _ = std::fs::remove_dir_all(dir);
        }
        !gone
    });
    let total: u64 = all.iter().map(|(_, size, _)| size).sum();
    let Some(over) = total.checked_sub(bounds.bytes) else {
        if mine.is_old(bounds) {
            let _ = shrink(&mine.dir, u64::MAX, bounds, 1);
        }
        return;
    };
    let mut excess = over + bounds.bytes / 4;
    all.sort_by_key(|(dir, _, used)| (*dir == mine.dir, *used));
    for (dir, size, used) in all {
        if excess == 0 {
            break;
        }
        let target = size.saturating_sub(excess);
        // Keep the last state of a folder that is in use.
        let least = usize::from(dir == mine.dir || unused(used) < Duration::from_secs(86_400));
        if let Ok(after) = shrink(&dir, target, bounds, least) {
            excess = excess.saturating_sub(size.saturating_sub(after));
        }
    }
}

/// Keeps the newest states that fit into `target`, at least `least` of them. Returns the new size.
fn shrink(dir: &Path, target: u64, bounds: Bounds, least: usize) -> io::Result<u64> {
    let locked = Pack::try_lock(dir)?; // do not wait for a store that is in use
    let mut pack = Pack::open(dir, &locked)?;
    let mut roots = pack.roots().to_vec();
    roots.sort_by_key(|root| std::cmp::Reverse(root.at));
    let young = now() - i64::try_from(bounds.age.as_millis()).unwrap_or(i64::MAX);
    let (mut live, mut size) = (HashSet::new(), 0);
    let mut kept: Vec<CheckpointRoot> = Vec::new();
    for root in roots {
        if kept.len() >= least && root.at < young {
            break;
        }
        let Ok(top) = hash(&Tree(root.tree.clone())) else { continue };
        // An incomplete state could not be restored anyway.
        let Ok(new) = diff::reach(&mut pack, top, &live) else { continue };
        size += new.iter().map(|hash| pack.size_of(hash)).sum::<u64>();
        if kept.len() >= least && size > target {
            break;
        }
        live.extend(new);
        kept.push(root);
    }
    kept.reverse();
    let live: Vec<Hash> = live.into_iter().collect();
    pack.replace(&live, kept, &locked)?;
    Ok(pack.size())
}

/// Removes every state of a session, and contents that only those states used.
pub(crate) fn forget(base: &Path, session: &SessionId) -> io::Result<()> {
    for (dir, ..) in stores(base) {
        git_history::forget(&dir, session)?;
        let locked = Pack::lock(&dir)?;
        let mut pack = Pack::open(&dir, &locked)?;
        let (gone, kept): (Vec<CheckpointRoot>, Vec<CheckpointRoot>) =
            pack.roots().iter().cloned().partition(|r| r.session == *session);
        if gone.is_empty() {
            continue;
        }
        let mut live = HashSet::new();
        for root in &kept {
            if let Ok(new) =
                hash(&Tree(root.tree.clone())).and_then(|top| diff::reach(&mut pack, top, &live))
            {
                live.extend(new);
            }
        }
        let live: Vec<Hash> = live.into_iter().collect();
        pack.replace(&live, kept, &locked)?;
        // It contains file names.
        let _ = std::fs::remove_file(dir.join("index"));
    }
    Ok(())
}
