//! Sessions as they were last read, so that whoever reads one again and again pays only for what is new.
//!
//! Invariant: what is kept is a fold over events of exactly this log; the chain says so, and anything else is read anew.

use dunnock_core::ports::{Log, LogError};
use dunnock_core::{State, apply};
use dunnock_engine::load;
use dunnock_proto::{Decoded, Hash, Need, Record, SessionId};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Sessions that are kept.
const MOST: usize = 64;

/// A session up to an event, and the chain up to there.
#[derive(Clone)]
struct Known {
    session: SessionId,
    state: State,
    chain: Hash,
}

/// The newest last.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Known>>);

impl Recent {
    /// A session as it stands.
    pub(crate) async fn state(&self, log: &dyn Log, session: &SessionId) -> Result<State, LogError> {
        let mut known = match self.take(session) {
            Some(known) => catch_up(log, known).await?,
            None => None,
        };
        if known.is_none() {
            let loaded = load(log, session).await?;
            known = Some(Known { session: session.clone(), state: loaded.state, chain: loaded.chain });
        }
        let Some(known) = known else { return Err(LogError::Failed(format!("there is no session {session}"))) };
        let state = known.state.clone();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.session != *session);
        all.push_back(known);
        while all.len() > MOST {
            all.pop_front();
        }
        Ok(state)
    }

    fn take(&self, session: &SessionId) -> Option<Known> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|known| known.session == *session).cloned()
    }
}

/// With what was written since; nothing if that does not follow.
async fn catch_up(log: &dyn Log, mut known: Known) -> Result<Option<Known>, LogError> {
    let (session, from) = (known.session.clone(), known.state.seq);
    let mut follows = true;
    let each = &mut |record: Record| {
        follows = record.envelope.prev == known.chain && record.envelope.seq == known.state.seq + 1;
        if follows {
            match record.decode() {
                Decoded::Known(event) => apply(&mut known.state, &event),
                Decoded::Unknown(why) => {
                    known.state.skip(&record.envelope.kind, &why, record.envelope.need == Need::Must);
                }
            }
            known.chain = record.chain();
        }
        follows
    };
    log.read(&session, from, each).await?;
    // A log of the same name that is shorter, or another one.
    let same = match log.tip(&session).await? {
        Some((seq, chain)) => seq > known.state.seq || (seq == known.state.seq && chain == known.chain),
        None => false,
    };
    Ok((follows && same).then_some(known))
}
