//! Creates and forks sessions.

use crate::batch_builder::BatchBuilder;
use crate::catch_up::{Loaded, load};
use crate::commit::{charge, day_left, ledger};
use crate::ports::Ports;
use dunnock_core::policy::Policy;
use dunnock_core::{DecideContext, Input, State, decide};
use dunnock_ports::{Appended, Batch, Blob, StoreError};
use dunnock_proto::{
    Cause, Command, CommandRequest, Config, Created, Event, Forked, Hash, InputId, Seq, SessionId,
};
use std::sync::Arc;

/// The prompt that a session begins with.
#[derive(Debug, Clone)]
pub struct FirstPrompt {
    /// What the person wrote.
    pub text: Arc<str>,
    /// Images that belong to it.
    pub images: Vec<Blob>,
}

/// Creates a session. No process drives it yet.
///
/// # Errors
/// If the log cannot be written.
pub async fn create(
    ports: &Ports,
    workspace: &str,
    config: Config,
) -> Result<SessionId, StoreError> {
    let created = created(ports, workspace, config);
    begin_with(ports, created.into()).await
}

/// Creates a session with its first prompt, in one append: no crash can leave a session without its
/// task. No process drives it yet; the first that opens it starts to work. Returns its id and the
/// number of its last event.
///
/// # Errors
/// If the log cannot be written, or the prompt is empty.
pub async fn create_with_prompt(
    ports: &Ports,
    workspace: &str,
    config: Config,
    first: FirstPrompt,
) -> Result<(SessionId, Seq), StoreError> {
    let at = ports.clock.now();
    let none = Loaded::empty();
    let day = ledger(ports, at).await?;
    let mut builder = BatchBuilder::after(State::default(), Hash::ZERO, at);
    builder.add(&created(ports, workspace, config).into(), Cause::Driver);
    let FirstPrompt { text, images } = first;
    let hashes = images.iter().map(|image| image.hash).collect();
    let id = InputId::from_random(ports.clock.random());
    let command = Command::Prompt { text, images: hashes };
    let request = CommandRequest { id: id.clone(), expect: None, command };
    let context = DecideContext {
        day_left: day_left(ports, day, &none, &builder.state),
        tree_at: None,
        preamble_drift: None,
        at,
        policy: Policy::default(),
    };
    let events = decide(&builder.state, &context, Input::Command(request))
        .map_err(|_| StoreError::Refused("the prompt is empty".into()))?;
    events.iter().for_each(|event| builder.add(event, Cause::Input(id.clone())));
    let session = SessionId::from_random(ports.clock.random());
    let seq = builder.state.seq;
    let batch = Batch {
        inputs: vec![(id, seq)],
        blobs: images,
        charge: charge(ports, day, &none, &builder.state),
        ..builder.batch(&session)
    };
    store_new(ports, batch).await?;
    Ok((session, seq))
}

fn created(ports: &Ports, workspace: &str, config: Config) -> Created {
    let base = ports.files.as_ref().and_then(|files| files.commit(workspace));
    Created { workspace: workspace.into(), app: ports.app.clone(), config, base }
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
        read_secret: whole.state.read_secret,
    };
    begin_with(ports, forked.into()).await
}

async fn begin_with(ports: &Ports, event: Event) -> Result<SessionId, StoreError> {
    let session = SessionId::from_random(ports.clock.random());
    let mut builder = BatchBuilder::after(State::default(), Hash::ZERO, ports.clock.now());
    builder.add(&event, Cause::Driver);
    store_new(ports, builder.batch(&session)).await?;
    Ok(session)
}

async fn store_new(ports: &Ports, batch: Batch) -> Result<(), StoreError> {
    match ports.store.append(batch).await? {
        Appended::Done => Ok(()),
        Appended::Conflict | Appended::Repeated(..) => {
            Err(StoreError::Refused("the new session's id is already in use; try again".into()))
        }
    }
}
