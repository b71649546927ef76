//! Creates and forks sessions.

use crate::batch_builder::BatchBuilder;
use crate::catch_up::load;
use crate::ports::Ports;
use dunnock_core::State;
use dunnock_ports::{Appended, StoreError};
use dunnock_proto::{Cause, Config, Created, Event, Forked, Hash, Seq, SessionId};

/// Creates a session. No process drives it yet.
///
/// # Errors
/// If the log cannot be written.
pub async fn create(
    ports: &Ports,
    workspace: &str,
    config: Config,
) -> Result<SessionId, StoreError> {
    let base = ports.files.as_ref().and_then(|files| files.commit(workspace));
    let created = Created { workspace: workspace.into(), app: ports.app.clone(), config, base };
    begin_with(ports, created.into()).await
}

/// Creates a session whose history is another's, up to the event `at`.
///
/// # Errors
/// If the log cannot be read or written, or there is no such event.
pub async fn fork(ports: &Ports, from: &SessionId, at: Seq) -> Result<SessionId, StoreError> {
    let whole = load(ports.store.as_ref(), from).await?;
    if at == 0 || at > whole.state.seq {
        return Err(StoreError::Refused(format!(
            "session {from} has no event {at}; its last event is {}",
            whole.state.seq
        )));
    }
    let forked = Forked {
        from: from.clone(),
        at,
        workspace: whole.state.workspace.as_deref().unwrap_or_default().into(),
        app: ports.app.clone(),
        config: whole.state.config.as_ref().clone(),
        step: whole.state.step,
    };
    begin_with(ports, forked.into()).await
}

async fn begin_with(ports: &Ports, event: Event) -> Result<SessionId, StoreError> {
    let session = SessionId::from_random(ports.clock.random());
    let mut builder = BatchBuilder::after(State::default(), Hash::ZERO, ports.clock.now());
    builder.add(&event, Cause::Driver);
    match ports.store.append(builder.batch(&session)).await? {
        Appended::Done => Ok(session),
        Appended::Conflict | Appended::Repeated(..) => {
            Err(StoreError::Refused("the new session's id is already in use; try again".into()))
        }
    }
}
