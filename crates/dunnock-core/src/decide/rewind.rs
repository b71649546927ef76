//! Rewinding, and undoing a rewind.
//!
//! Invariant: only while idle. Step numbers, budget, grants and ids are never rewound: only the
//! conversation and files are.

use super::Draft;
use crate::apply::within;
use crate::state::Phase;
use dunnock_proto::{Noticed, Refused, RewindRequested, RewindTo, Rewound, Scope, Seq, Span};

impl Draft<'_> {
    pub(super) fn rewind(
        &mut self,
        to: RewindTo,
        scope: Scope,
        force: bool,
    ) -> Result<(), Refused> {
        // A pending checkpoint must be saved first: otherwise it would be unclear who made the
        // changes.
        if self.s.phase != Phase::Rest || self.s.dirty.is_some() {
            return Err(Refused::Busy);
        }
        let visible = self.s.visible();
        let (conversation, files) = match to {
            RewindTo::Event(at) if within(&visible, at) => {
                (cut_after(&visible, at), self.now.tree_at.clone())
            }
            RewindTo::Event(_) => return Err(Refused::NoSuchPoint),
            RewindTo::Undo => {
                let undo = self.s.undo.clone().ok_or(Refused::NoSuchPoint)?;
                (undo.spans.clone(), undo.tree.clone())
            }
        };
        let (spans, tree) = match scope {
            Scope::Conversation => (conversation, None),
            Scope::Files => (visible, Some(files.ok_or(Refused::NoSuchPoint)?)),
            Scope::Both => (conversation, Some(files.ok_or(Refused::NoSuchPoint)?)),
        };
        let files_too = tree.is_some();
        self.record(RewindRequested { spans: spans.clone(), tree, scope, force, to: Some(to) });
        if !files_too {
            self.record(Rewound { spans, tree: None, undo: None, note: None, partial: false });
            self.tell_of_rewind();
        }
        Ok(())
    }
}

impl Draft<'_> {
    /// If only the conversation or only the files were rewound, the model must know that they no
    /// longer match.
    pub(super) fn tell_of_rewind(&mut self) {
        let text = match self.s.undo.as_ref().map(|undo| undo.scope) {
            Some(Scope::Files) => {
                "The person restored files to an earlier state. Read them again before you rely on \
                 them."
            }
            Some(Scope::Conversation) => {
                "The person rewound part of the conversation; file changes made in it were not \
                 undone. Read files again before you rely on them."
            }
            Some(Scope::Both) | None => return,
        };
        self.record(Noticed::plain(text));
    }

    /// The events that count once the files are restored: the requested ones, and those recorded
    /// during the restore.
    pub(super) fn rewound_spans(&self) -> Vec<Span> {
        let Phase::Rewinding { asked, spans, .. } = &self.s.phase else { return self.s.visible() };
        let mut all = spans.as_ref().clone();
        all.push(Span { from: asked + 1, to: self.s.seq }); // never empty: the current files were saved meanwhile
        all
    }
}

/// The part of `spans` up to and including `at`.
fn cut_after(spans: &[Span], at: Seq) -> Vec<Span> {
    let kept = spans.iter().filter(|span| span.from <= at);
    kept.map(|span| Span { from: span.from, to: span.to.min(at) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_keeps_what_lies_before_it() {
        let spans = [Span { from: 1, to: 4 }, Span { from: 9, to: 12 }];
        assert_eq!(cut_after(&spans, 3), [Span { from: 1, to: 3 }]);
        assert_eq!(cut_after(&spans, 4), [Span { from: 1, to: 4 }]);
        assert_eq!(cut_after(&spans, 9), [Span { from: 1, to: 4 }, Span { from: 9, to: 9 }]);
        assert_eq!(cut_after(&spans, 12), spans);
    }
}
