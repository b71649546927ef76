//! The history of a session as far as it can be rewound: its steps, its runs, and the states of the
//! files between them.
//!
//! Invariant: changes by this session's calls are distinguished from other changes. A checkpoint is
//! saved right before a call if the files changed since the last one, and again after it: the first
//! difference was made by others, the second by the call. If the origin of a change is unknown (a
//! process died in between), it counts as made by others: a file that was left alone can still be
//! undone, but an overwritten one is somebody's lost work.

use crate::apply::within;
use dunnock_proto::{Event, Outcome, RewindTo, Scope, Seq, Span, Step, Tree};

/// Two states of the files, before something and after it.
pub type Window = (Tree, Tree);

/// Who made the changes that led to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedBy {
    Us,
    Others,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Point {
    /// The event after which the files had this state.
    mark: Seq,
    tree: Tree,
    by: ChangedBy,
}

/// What an undo reverts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoTarget {
    /// Everything since this event: the last run.
    Run(Seq),
    /// The last rewind, which led to just after this event.
    Rewind(Seq, Scope),
}

/// A fold over a log.
#[derive(Debug, Clone, Default)]
pub struct FileHistory {
    points: Vec<Point>,
    /// Ends of calls since the last checkpoint, each with the files right before it if others had
    /// changed them.
    ended: Vec<(Seq, Option<Tree>)>,
    /// Each step with the last event that belongs to it.
    steps: Vec<(Step, Seq)>,
    /// The first event of each run, and the last one before it that counts.
    runs: Vec<(Seq, Seq)>,
    at_rest: bool,
    /// Where the last rewind led, if nothing happened since.
    rewound: Option<(Seq, Scope)>,
    asked: Option<(Seq, Scope)>,
    /// The event that the last requested rewind leads to; `None` if it undoes a rewind.
    asked_event: Option<Seq>,
    /// The events that count up to the last rewind, and the first event after it.
    hidden: Option<(Vec<Span>, Seq)>,
}

impl FileHistory {
    /// Folds in an event.
    pub fn add(&mut self, seq: Seq, event: &Event) {
        match event {
            Event::Created(_) | Event::Forked(_) => self.at_rest = true,
            Event::Prompted(_) | Event::Continued(_) if self.at_rest => {
                self.at_rest = false;
                self.rewound = None;
                self.runs.push((seq, self.last_visible(seq - 1)));
            }
            Event::StepStarted(e) => self.steps.push((e.step, seq)),
            Event::Finished(e) => {
                // After a crash, others may have changed the files before anybody looked. A call
                // that a process ran and reported on has held the folder meanwhile.
                if e.outcome != Outcome::Unknown || e.isolation.is_some() {
                    self.ended.push((seq, e.before.clone()));
                }
                self.belongs(seq);
            }
            Event::OwnerChanged(_) => self.ended.clear(),
            Event::Answered(_) | Event::StepFailed(_) => self.belongs(seq),
            Event::Ended(_) => {
                self.at_rest = true;
                self.belongs(seq);
            }
            Event::Checkpointed(e) => {
                let Some(tree) = e.tree.clone() else { return };
                let ended =
                    std::mem::take(&mut self.ended).into_iter().find(|(seq, _)| *seq == e.mark);
                let by = if ended.is_some() { ChangedBy::Us } else { ChangedBy::Others };
                if let Some((_, Some(before))) = ended {
                    self.points.push(Point {
                        mark: e.mark - 1,
                        tree: before,
                        by: ChangedBy::Others,
                    });
                }
                self.points.push(Point { mark: e.mark, tree, by });
            }
            Event::RewindRequested(e) => {
                let point =
                    e.tree.as_ref().and_then(|tree| self.points.iter().rfind(|p| p.tree == *tree));
                let to = match (e.scope, point) {
                    (Scope::Files, Some(point)) => point.mark,
                    (Scope::Files | Scope::Both | Scope::Conversation, _) => {
                        e.spans.last().map_or(1, |span| span.to)
                    }
                };
                self.asked = Some((to, e.scope));
                self.asked_event = match e.to {
                    Some(RewindTo::Event(at)) => Some(at),
                    Some(RewindTo::Undo) | None => None,
                };
            }
            Event::Rewound(e) => {
                self.rewound = self.asked.take();
                self.at_rest = true;
                self.hidden = Some((e.spans.clone(), seq + 1));
                if let Some(tree) = e.tree.clone() {
                    self.points.push(Point { mark: seq, tree, by: ChangedBy::Us });
                }
            }
            Event::Prompted(_)
            | Event::Continued(_)
            | Event::Configured(_)
            | Event::Moved(_)
            | Event::Baselined(_)
            | Event::PreambleSet(_)
            | Event::OutboxWritten(_)
            | Event::TimerFired(_)
            | Event::Asked(_)
            | Event::Replied(_)
            | Event::Granted(_)
            | Event::Revoked(_)
            | Event::Allowed(_)
            | Event::CheckCalled(_)
            | Event::Started(_)
            | Event::Planned(_)
            | Event::InterruptRequested(_)
            | Event::RewindFailed(_)
            | Event::CompactionStarted(_)
            | Event::Compacted(_)
            | Event::CompactionFailed(_)
            | Event::Titled(_)
            | Event::Noticed(_) => {}
        }
    }

    fn belongs(&mut self, seq: Seq) {
        if let Some((_, last)) = self.steps.last_mut() {
            *last = seq;
        }
    }

    /// What an undo would revert.
    #[must_use]
    pub fn undo_target(&self) -> Option<UndoTarget> {
        match self.rewound {
            Some((to, scope)) => Some(UndoTarget::Rewind(to, scope)),
            None => self
                .runs
                .iter()
                .rev()
                .find(|(first, _)| self.visible(*first))
                .map(|(_, before)| UndoTarget::Run(*before)),
        }
    }

    /// The last event of a step. For step 0 (or the one before the first visible step), the last
    /// event before the first prompt.
    #[must_use]
    pub fn step(&self, step: u32) -> Option<Seq> {
        let found = self.visible_steps().find(|(number, _)| number.0 == step).map(|(_, last)| last);
        let first = self.visible_steps().next().map_or(u32::MAX, |(number, _)| number.0);
        found.or_else(|| {
            (step + 1 == first).then(|| self.runs.first().map(|(_, before)| *before)).flatten()
        })
    }

    /// The last step that ended at or before an event; 0 if none did.
    #[must_use]
    pub fn last_step(&self, at: Seq) -> u32 {
        let ended = self.steps.iter().filter(|(_, last)| *last <= at);
        ended.map(|(step, _)| step.0).max().unwrap_or(0)
    }

    /// The last step that the requested rewind keeps; `None` if it undoes a rewind.
    #[must_use]
    pub fn undone_after(&self) -> Option<u32> {
        self.asked_event.map(|at| self.last_step(at))
    }

    /// The steps that the session can be rewound to.
    #[must_use]
    pub fn steps(&self) -> Vec<u32> {
        let first = self.visible_steps().next().and_then(|(number, _)| number.0.checked_sub(1));
        first.into_iter().chain(self.visible_steps().map(|(number, _)| number.0)).collect()
    }

    fn visible_steps(&self) -> impl Iterator<Item = (Step, Seq)> {
        self.steps.iter().copied().filter(|(_, last)| self.visible(*last))
    }

    /// The last event up to this one that counts.
    fn last_visible(&self, seq: Seq) -> Seq {
        match &self.hidden {
            Some((spans, since)) if seq < *since => {
                spans.iter().map(|s| s.to.min(seq)).max().unwrap_or(1)
            }
            Some(_) | None => seq,
        }
    }

    /// Whether an event still counts.
    fn visible(&self, seq: Seq) -> bool {
        self.hidden.as_ref().is_none_or(|(spans, since)| seq >= *since || within(spans, seq))
    }

    /// The files at an event. If no call of ours ran before the next checkpoint, that later state
    /// is used, since it includes what the person changed meanwhile. With `force`, which also
    /// reverts others' changes, it is not.
    #[must_use]
    pub fn tree_at(&self, at: Seq, force: bool) -> Option<&Tree> {
        let next = self.points.iter().find(|p| p.mark > at).filter(|p| p.by == ChangedBy::Others);
        let last = self.points.iter().rev().find(|p| p.mark <= at);
        let found = if force { last.or(next) } else { next.or(last) };
        found.map(|p| &p.tree)
    }

    /// The files of the last checkpoint.
    #[must_use]
    pub fn last(&self) -> Option<&Tree> {
        self.points.last().map(|p| &p.tree)
    }

    /// Like [`Self::since`], but since the first checkpoint.
    #[must_use]
    pub fn since_first(&self) -> (Vec<Window>, Vec<Window>) {
        self.windows_from(0)
    }

    /// The changes to the files since they had this state: those by our calls, and all others.
    #[must_use]
    pub fn since(&self, tree: &Tree) -> (Vec<Window>, Vec<Window>) {
        self.windows_from(self.points.iter().rposition(|p| p.tree == *tree).unwrap_or(0))
    }

    fn windows_from(&self, from: usize) -> (Vec<Window>, Vec<Window>) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for pair in self.points.get(from..).unwrap_or_default().windows(2) {
            if let [before, after] = pair
                && before.tree != after.tree
            {
                let window = (before.tree.clone(), after.tree.clone());
                match after.by {
                    ChangedBy::Us => ours.push(window),
                    ChangedBy::Others => theirs.push(window),
                }
            }
        }
        (ours, theirs)
    }
}
