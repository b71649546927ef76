//! Which files a scan saves if there is more new content than should be copied at once.
//!
//! Without a rule, the first command in a folder with a gigabyte of data would wait for the copy.
//! The largest of the files that were never saved are left out until the rest fits. A file that was
//! left out stays out, so that a change to it does not cost a copy with every step, until a session
//! begins when all that was left out fits. A file that was saved once stays saved.

use super::file_facts::Known;
use super::listing::Listing;
use super::object::{NameOnly, Node};
use super::seen::{Seen, SeenEntry};
use dunnock_ports::SaveControl;
use dunnock_proto::Delta;
use rustix::fs::FileType;
use std::time::{Duration, Instant};

/// Larger files are not saved.
pub(crate) const LARGE: u64 = 50 << 20;
/// Files up to this size are always saved.
const SMALL: u64 = 1 << 20;
/// How often progress is reported, and from how many bytes on.
const OFTEN: Duration = Duration::from_secs(1);
const MUCH: u64 = 16 << 20;

/// Which new files a scan may copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyLimit {
    /// Maximum bytes, if the largest files can be left out.
    pub(crate) most: u64,
    /// Whether files that were left out before are saved if they fit.
    pub(crate) saves_left: bool,
}

pub(crate) struct SizeRule {
    /// Larger files are not saved if they are new or changed.
    largest: u64,
    /// Whether files that were left out before are saved now.
    saves_left: bool,
}

/// Whether a file was left out because of its size.
fn was_left(was: &SeenEntry) -> bool {
    matches!(was.node, Node::Left { why: NameOnly::Large, .. })
}

fn was_saved(was: &SeenEntry) -> bool {
    matches!(was.node, Node::File { .. })
}

impl SizeRule {
    /// Also returns how many bytes will be read.
    pub(crate) fn of(listing: &Listing, before: Option<&Seen>, limit: CopyLimit) -> (Self, u64) {
        let most = limit.most;
        let all = Self { largest: LARGE, saves_left: limit.saves_left };
        let files = listing.iter().flatten().flat_map(|folder| &folder.names);
        let files = files.filter(|name| name.kind == FileType::RegularFile && name.left.is_none());
        let total: u64 = files.map(|name| name.known.size).filter(|size| *size <= LARGE).sum();
        if before.is_none() && total <= most {
            return (all, total);
        }
        if total <= most {
            return (all, 0); // how much of it is new is not worth finding out
        }
        let mut found = NewSizes::default();
        found.add(listing, 0, before);
        let new: u64 = found.new.iter().sum();
        if limit.saves_left && new + found.left <= most {
            return (all, new + found.left);
        }
        if new <= most {
            return (Self { largest: LARGE, saves_left: false }, new);
        }
        found.new.sort_unstable();
        let (mut largest, mut sum) = (SMALL, 0);
        for size in &found.new {
            if sum + size > most && *size > SMALL {
                largest = largest.min(size - 1);
                break;
            }
            (largest, sum) = (*size.max(&SMALL), sum + size);
        }
        let bytes = found.new.iter().filter(|size| **size <= largest).sum();
        (Self { largest, saves_left: false }, bytes)
    }

    /// Whether a file is left out.
    pub(crate) fn leaves_out(&self, known: Known, was: Option<&SeenEntry>) -> bool {
        let was_left = was.is_some_and(was_left);
        known.size > LARGE
            || was_left && !self.saves_left && known.size > SMALL
            || !was.is_some_and(was_saved) && known.size > self.largest
    }

    /// Whether a file that was left out is saved now, although it has not changed.
    pub(crate) fn saves(&self, was: &SeenEntry) -> bool {
        self.saves_left && was_left(was)
    }
}

/// The sizes of files that would be read.
#[derive(Default)]
struct NewSizes {
    new: Vec<u64>,
    /// Of those that were left out, in all.
    left: u64,
}

impl NewSizes {
    fn add(&mut self, listing: &Listing, index: usize, before: Option<&Seen>) {
        let Some(Ok(folder)) = listing.get(index) else { return };
        let old = before.map_or(&[][..], |before| &before.entries);
        for name in folder.names.iter().filter(|name| name.left.is_none()) {
            let was = old.binary_search_by(|was| was.name.cmp(&name.name));
            let was = was.ok().and_then(|at| old.get(at));
            let size = name.known.size;
            match (name.folder, name.kind) {
                (Some(index), _) => {
                    self.add(listing, index, was.and_then(|was| was.below.as_deref()));
                }
                (None, FileType::RegularFile) if size <= LARGE => {
                    if was.is_some_and(was_left) {
                        self.left += size;
                    } else if !was.is_some_and(was_saved) {
                        self.new.push(size);
                    }
                }
                (None, _) => {}
            }
        }
    }
}

/// How much of the files has been copied.
pub(crate) struct CopyProgress {
    done: u64,
    total: u64,
    said: Option<Instant>,
}

impl CopyProgress {
    pub(crate) fn new(total: u64) -> Self {
        Self { done: 0, total, said: None }
    }

    pub(crate) fn add(&mut self, bytes: u64, saving: &SaveControl) {
        self.done += bytes;
        if self.total < MUCH || self.said.is_some_and(|said| said.elapsed() < OFTEN) {
            return;
        }
        self.said = Some(Instant::now());
        let (done, total) = (self.done.min(self.total) >> 20, self.total >> 20);
        let text = format!("saving your files for undo: {done} of {total} MB");
        (saving.say)(Delta::Notice { text: text.into() });
    }
}
