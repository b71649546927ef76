//! Folds stored records into a state and a transcript.
//!
//! Invariant: every record is checked against the chain as it is read; a log that was changed is
//! not folded further.

use dunnock_core::{Fold, State, Transcript, fold_record};
use dunnock_ports::{EventLog, StoreError};
use dunnock_proto::{At, Decoded, Event, Hash, Record, Seq, SessionId, verify_chain};

/// A folded session.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The state that decisions are based on.
    pub state: State,
    /// What the model is sent.
    pub transcript: Transcript,
    /// The chain up to the last event.
    pub chain: Hash,
    /// When an amount of the budget was last reserved.
    pub(crate) reserved_at: At,
}

impl Loaded {
    /// The state before the first event.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            state: State::default(),
            transcript: Transcript::default(),
            chain: Hash::ZERO,
            reserved_at: At(0),
        }
    }

    /// Folds in one stored event.
    ///
    /// # Errors
    /// If it does not follow the events folded before.
    pub(crate) fn fold_record(&mut self, record: &Record) -> Result<FoldedRecord, StoreError> {
        let seq = self.state.seq;
        self.chain = verify_chain(seq, self.chain, record).map_err(|at| {
            StoreError::Damaged(format!("event {at} does not match the hash chain"))
        })?;
        let event = fold_record(&mut self.state, record);
        let reserves = match &event {
            Some(Event::StepStarted(_) | Event::CompactionStarted(_)) => true,
            Some(Event::OwnerChanged(taken)) => !taken.lost.is_nothing(),
            _ => false,
        };
        if reserves {
            self.reserved_at = record.envelope.at;
        }
        let again = event
            .as_ref()
            .is_some_and(|event| self.transcript.apply(self.state.seq, event) == Fold::Again);
        Ok(FoldedRecord { event, again })
    }
}

/// The result of folding a stored event.
pub(crate) struct FoldedRecord {
    /// The event, if this release knows it.
    pub(crate) event: Option<Event>,
    /// The transcript must be folded again from the start.
    pub(crate) again: bool,
}

/// Folds a whole session.
///
/// # Errors
/// If it cannot be read, or is not what was written.
pub async fn load(log: &dyn EventLog, session: &SessionId) -> Result<Loaded, StoreError> {
    load_upto(log, session, Seq::MAX).await
}

/// Folds a session up to an event.
pub(crate) async fn load_upto(
    log: &dyn EventLog,
    session: &SessionId,
    upto: Seq,
) -> Result<Loaded, StoreError> {
    let tip = log.tip(session).await?;
    let mut loaded = Loaded::empty();
    let mut again = false;
    let mut from = None;
    let mut bad = None;
    log.read(session, 0, &mut |record| {
        if record.envelope.seq > upto {
            return false;
        }
        match loaded.fold_record(&record) {
            Ok(_) if is_changed(tip, loaded.state.seq, loaded.chain) => {
                bad = Some(changed(loaded.state.seq));
                false
            }
            Ok(taken) => {
                again |= taken.again;
                if let Some(Event::Forked(forked)) = taken.event {
                    from = Some((forked.from, forked.at));
                }
                true
            }
            Err(error) => {
                bad = Some(error);
                false
            }
        }
    })
    .await?;
    if let Some(error) = bad {
        return Err(error);
    }
    if from.is_some() || again {
        let base = match from {
            Some((parent, at)) => {
                let past = Box::pin(load_upto(log, &parent, at)).await?;
                if past.state.seq < at {
                    let (has, need) = (past.state.seq, at);
                    return Err(StoreError::Damaged(format!(
                        "the session it was forked from is incomplete: {parent} has {has} of \
                         {need} events"
                    )));
                }
                Some(past.transcript)
            }
            None => None,
        };
        loaded.transcript = refold(log, session, base, loaded.state.seq).await?;
    }
    Ok(loaded)
}

/// No later event's chain would reveal a change to the last event, so it is compared with the
/// stored tip.
fn is_changed(tip: Option<(Seq, Hash)>, seq: Seq, chain: Hash) -> bool {
    tip.is_some_and(|(last, stored)| last == seq && stored != chain)
}

fn changed(seq: Seq) -> StoreError {
    StoreError::Damaged(format!("event {seq}, the last one, does not match its stored hash"))
}

/// Folds the transcript again from the start, after a rewind or for a fork.
pub(crate) async fn refold(
    log: &dyn EventLog,
    session: &SessionId,
    base: Option<Transcript>,
    upto: Seq,
) -> Result<Transcript, StoreError> {
    let mut events: Vec<(Seq, Event)> = Vec::new();
    log.read(session, 0, &mut |record| {
        if record.envelope.seq > upto {
            return false;
        }
        if let Decoded::Known(event) = record.decode() {
            events.push((record.envelope.seq, event));
        }
        true
    })
    .await?;
    Ok(Transcript::fold(base, events.iter().map(|(seq, event)| (*seq, event))))
}

/// Checks a session's chain without folding it; returns the number of events and the tip.
///
/// # Errors
/// If an event is missing or is not what was written.
pub async fn check_chain(
    log: &dyn EventLog,
    session: &SessionId,
) -> Result<(Seq, Hash), StoreError> {
    let tip = log.tip(session).await?;
    let (mut seq, mut chain) = (0, Hash::ZERO);
    let mut bad = None;
    let mut last_changed = false;
    log.read(session, 0, &mut |record| match verify_chain(seq, chain, &record) {
        Ok(next) => {
            (seq, chain) = (seq + 1, next);
            last_changed = is_changed(tip, seq, chain);
            !last_changed
        }
        Err(at) => {
            bad = Some(at);
            false
        }
    })
    .await?;
    match bad {
        None if last_changed => Err(changed(seq)),
        None => Ok((seq, chain)),
        Some(at) => Err(StoreError::Damaged(format!(
            "event {} or {at} of {session} was changed",
            at.saturating_sub(1)
        ))),
    }
}
