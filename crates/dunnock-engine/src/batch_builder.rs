//! Events that were decided and are not stored yet.

use dunnock_core::{State, apply};
use dunnock_ports::{Batch, Listing};
use dunnock_proto::{At, Cause, Event, Hash, Record, Seq, SessionId, seal};

/// Events for one append, sealed into the chain, and the state that they lead to.
pub(crate) struct BatchBuilder {
    after: Seq,
    at: At,
    chain: Hash,
    pub(crate) state: State,
    pub(crate) records: Vec<Record>,
}

impl BatchBuilder {
    /// An empty builder: its events will follow those that this state and this chain contain.
    pub(crate) fn after(state: State, chain: Hash, at: At) -> Self {
        Self { after: state.seq, at, chain, state, records: Vec::new() }
    }

    /// Seals an event and folds it.
    pub(crate) fn add(&mut self, event: &Event, cause: Cause) {
        let record = seal(self.state.seq, self.chain, self.at, cause, event);
        self.chain = record.chain();
        apply(&mut self.state, event);
        self.records.push(record);
    }

    /// The append that stores these events.
    pub(crate) fn batch(&self, session: &SessionId) -> Batch {
        Batch {
            session: session.clone(),
            after: self.after,
            records: self.records.clone(),
            inputs: Vec::new(),
            blobs: Vec::new(),
            listing: listing(&self.state),
            charge: None,
        }
    }
}

/// What lists show about a session in this state.
fn listing(s: &State) -> Listing {
    Listing {
        title: s.title.as_deref().unwrap_or_default().into(),
        workspace: s.workspace.as_deref().unwrap_or_default().into(),
        status: s.status(),
        version: s.version,
    }
}
