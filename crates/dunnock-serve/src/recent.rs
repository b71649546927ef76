//! Recently read sessions, so that reading one repeatedly costs only what is new.
//!
//! Invariant: a cached state is a fold over events of exactly this log; the hash chain proves it,
//! and anything else is read again.

use dunnock_core::{State, fold_record};
use dunnock_engine::load;
use dunnock_ports::{Store, StoreError};
use dunnock_proto::{Hash, Record, SessionId};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many sessions are cached.
const MOST: usize = 64;

/// A session's state up to an event, and the hash chain up to there.
#[derive(Clone)]
struct FoldedSession {
    session: SessionId,
    state: State,
    chain: Hash,
}

/// Most recently used last.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<FoldedSession>>);

impl Recent {
    /// The session's current state.
    pub(crate) async fn state(
        &self,
        log: &dyn Store,
        session: &SessionId,
    ) -> Result<State, StoreError> {
        let mut known = match self.take(session) {
            Some(known) => catch_up(log, known).await?,
            None => None,
        };
        if known.is_none() {
            let loaded = load(log, session).await?;
            known = Some(FoldedSession {
                session: session.clone(),
                state: loaded.state,
                chain: loaded.chain,
            });
        }
        let Some(known) = known else {
            return Err(StoreError::NoSession(session.clone()));
        };
        let state = known.state.clone();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.session != *session);
        all.push_back(known);
        while all.len() > MOST {
            all.pop_front();
        }
        Ok(state)
    }

    fn take(&self, session: &SessionId) -> Option<FoldedSession> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|known| known.session == *session).cloned()
    }
}

/// Applies the events written since; `None` if they do not continue this chain.
async fn catch_up(
    log: &dyn Store,
    mut known: FoldedSession,
) -> Result<Option<FoldedSession>, StoreError> {
    let (session, from) = (known.session.clone(), known.state.seq);
    let mut follows = true;
    let each = &mut |record: Record| {
        follows = record.envelope.prev == known.chain && record.envelope.seq == known.state.seq + 1;
        if follows {
            fold_record(&mut known.state, &record);
            known.chain = record.chain();
        }
        follows
    };
    log.read(&session, from, each).await?;
    // The log of this name is now shorter, or a different one.
    let same = match log.tip(&session).await? {
        Some((seq, chain)) => {
            seq > known.state.seq || (seq == known.state.seq && chain == known.chain)
        }
        None => false,
    };
    Ok((follows && same).then_some(known))
}
