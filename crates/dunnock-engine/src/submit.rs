//! Submits a command to a session that this process does not want to drive: `approve`, `answer`, a
//! prompt for later.
//!
//! If a process drives the session, the command is sent to it. Otherwise the events are stored and
//! nothing starts: that is left to the next driver.

use crate::batch_builder::BatchBuilder;
use crate::catch_up::load;
use crate::commit::{charge, day_left, ledger, preamble_drift};
use crate::error::{ConnectError, Refusal};
use crate::ports::Ports;
use dunnock_core::policy::Policy;
use dunnock_core::{DecideContext, Input, decide, failpoint};
use dunnock_ports::{Appended, Batch, StoreError};
use dunnock_proto::{Cause, CommandRequest, Seq, SessionId};
use std::time::{Duration, Instant};

/// What happened to a submitted command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// The owner accepted the command.
    ToOwner(Seq),
    /// No process drives the session; the command is stored.
    Stored(Seq),
}

/// Submits a command to a session.
///
/// # Errors
/// If the log cannot be used or the owner cannot be reached. A refusal is an answer.
pub async fn submit_offline(
    ports: &Ports,
    session: &SessionId,
    request: CommandRequest,
) -> Result<Result<Submitted, Refusal>, ConnectError> {
    let began = Instant::now();
    loop {
        #[cfg(unix)]
        if let Some(answer) = to_owner(ports, session, &request).await? {
            return Ok(answer.map(Submitted::ToOwner));
        }
        // No process may start driving between the check and the write: it would never learn of the
        // command.
        let Some(_alone) = ports.ownership.hold(session).await? else {
            if began.elapsed() > Duration::from_secs(3) {
                let holder = ports.ownership.holder(session).await;
                return Err(ConnectError::Silent { holder });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        if let Some(seq) = ports.store.answered(session, &request.id).await? {
            return Ok(Ok(Submitted::Stored(seq)));
        }
        let loaded = load(ports.store.as_ref(), session).await?;
        let before = &loaded.state;
        let at = ports.clock.now();
        let ledger = ledger(ports, at).await?;
        let input = Input::Command(request.clone());
        let now = DecideContext {
            day_left: day_left(ports, ledger, &loaded, before),
            tree_at: None,
            preamble_drift: preamble_drift(ports, before, &input),
            at,
            policy: Policy::default(),
        };
        let events = match decide(before, &now, input) {
            Ok(events) => events,
            Err(why) => {
                let questions = before.questions.iter().map(|q| q.id).collect();
                return Ok(Err(Refusal { reason: why, version: before.version, questions }));
            }
        };
        let mut builder = BatchBuilder::after(before.clone(), loaded.chain, at);
        events.iter().for_each(|event| builder.add(event, Cause::Input(request.id.clone())));
        let seq = builder.state.seq;
        let batch = Batch {
            inputs: vec![(request.id.clone(), seq)],
            charge: charge(ports, ledger, &loaded, &builder.state),
            ..builder.batch(session)
        };
        failpoint::hit("deposit.before", "");
        match ports.store.append(batch).await {
            Ok(Appended::Done) => {
                failpoint::hit("deposit.after", "");
                return Ok(Ok(Submitted::Stored(seq)));
            }
            Ok(Appended::Repeated(_, seq)) => return Ok(Ok(Submitted::Stored(seq))),
            Ok(Appended::Conflict) => {}
            // The next round checks whether it was executed.
            Err(StoreError::Unsure(_)) => ports.store.reopen().await?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The owner's answer, if there is an owner.
#[cfg(unix)]
async fn to_owner(
    ports: &Ports,
    session: &SessionId,
    request: &CommandRequest,
) -> Result<Option<Result<Seq, Refusal>>, ConnectError> {
    use crate::attach::{Attached, NotAttached};
    let Some(note) = ports.ownership.owner(session).await else { return Ok(None) };
    let Ok(now) = load(ports.store.as_ref(), session).await else { return Ok(None) };
    match Attached::connect(&note.socket, &ports.app, session, now.state.seq).await {
        Ok(mut owner) => Ok(owner.submit(request).await),
        Err(NotAttached::Nobody) => Ok(None),
        Err(NotAttached::Silent) => {
            let holder = ports.ownership.holder(session).await;
            Err(ConnectError::Silent { holder })
        }
        Err(NotAttached::Mismatch(version)) => {
            Err(ConnectError::Mismatch { pid: note.pid, version })
        }
    }
}
