//! Imports and removes sessions.

use crate::batch_builder::BatchBuilder;
use crate::catch_up::Loaded;
use crate::error::ConnectError;
use crate::ports::Ports;
use dunnock_core::{DecideContext, Input, Phase, Stage, State, decide};
use dunnock_ports::{Appended, Batch, Blob, StoreError};
use dunnock_proto::{
    Cause, Command, CommandRequest, ConfigPatch, Event, FileAccess, HostSet, InputId, Mode, Moved,
    Noticed, Planner, Record, Sandbox, SessionId, StepRules,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often, and with what pause, the lock of a session is tried again before it counts as driven.
const HOLD_TRIES: usize = 3;
const HOLD_PAUSE: Duration = Duration::from_millis(20);

/// How a session is imported.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// The folder in which it continues, if it is a different one.
    pub folder: Option<String>,
    /// Whether it is the user's own session: what it allows still counts.
    pub trusted: bool,
    /// Whether proof from elsewhere still counts.
    pub proven: bool,
}

/// Imports a session with its events and blobs. Its chain is verified, and every blob it refers to
/// must be present.
///
/// A chain reveals changes, not who wrote it. So nothing that the log allows counts here, unless
/// the user says that the session is their own: in the same append, work that may run is
/// interrupted, the mode becomes `ask`, the sandbox `auto` and file access that of the workspace, and
/// checks and rules are removed. Open questions stay open.
///
/// # Errors
/// If the session already exists, or the data is not what was written.
pub async fn import(
    ports: &Ports,
    session: &SessionId,
    mut records: Vec<Record>,
    blobs: Vec<Blob>,
    arrival: Arrival,
) -> Result<u64, StoreError> {
    let mut loaded = Loaded::empty();
    let mut named = BTreeSet::new();
    for record in &records {
        let event = loaded.fold_record(record)?.event;
        if let Some(Event::Forked(forked)) = &event
            && ports.store.tip(&forked.from).await?.is_none_or(|(seq, _)| seq < forked.at)
        {
            let (from, at) = (&forked.from, forked.at);
            return Err(StoreError::Refused(format!(
                "it was forked from {from} at event {at}; import that session first"
            )));
        }
        named.extend(event.iter().flat_map(Event::blobs).map(|hash| hash.0));
    }
    if loaded.state.workspace.is_none() {
        return Err(StoreError::Damaged("its first event does not create a session".into()));
    }
    if matches!(loaded.state.phase, Phase::Rewinding { .. }) {
        let why = "it was exported during a rewind, which would continue here; let the rewind \
                   finish there, then export it again";
        return Err(StoreError::Refused(why.into()));
    }
    let brought: BTreeSet<[u8; 32]> = blobs.iter().map(|blob| blob.hash.0).collect();
    if let Some(missing) = named.iter().find(|hash| !brought.contains(*hash)) {
        let missing = dunnock_proto::Hash(*missing);
        return Err(StoreError::Damaged(format!("the blob {missing} is missing")));
    }
    let before = loaded.state.workspace.as_deref().unwrap_or_default().to_owned();
    let workspace = arrival.folder.unwrap_or_else(|| before.clone());
    let mut events =
        vec![Event::from(Moved { workspace: workspace.clone(), proven: arrival.proven })];
    if workspace != before {
        let text = format!("This session was moved: the workspace root is now {workspace}.");
        events.push(Noticed::plain(text).into());
    }
    let mut builder = BatchBuilder::after(loaded.state, loaded.chain, ports.clock.now());
    if builder.state.read_only.is_none() {
        events.iter().for_each(|event| builder.add(event, Cause::Driver));
    }
    let commands = if arrival.trusted { Vec::new() } else { disarming(&builder.state) };
    for command in commands {
        let id = InputId::from_random(ports.clock.random());
        let request = CommandRequest { id: id.clone(), expect: None, command };
        let events = decide(&builder.state, &DecideContext::default(), Input::Command(request));
        let events = events.map_err(|why| {
            StoreError::Refused(format!("it could not be made safe to import: {why}"))
        })?;
        events.iter().for_each(|event| builder.add(event, Cause::Input(id.clone())));
    }
    let seq = builder.state.seq;
    let added = builder.batch(session);
    records.extend(added.records);
    let batch = Batch { after: 0, records, blobs, ..added };
    match ports.store.append(batch).await? {
        Appended::Done => Ok(seq),
        Appended::Conflict | Appended::Repeated(..) => Err(StoreError::Refused(format!(
            "session {session} already exists here; delete it first to import this one"
        ))),
    }
}

/// The commands that make a session of unknown origin safe before any process drives it.
fn disarming(s: &State) -> Vec<Command> {
    let mut commands = Vec::new();
    if s.read_only.is_some() {
        return commands; // no process can drive it
    }
    match s.phase {
        Phase::Rest | Phase::Rewinding { .. } => {}
        _ if s.stopping => {}
        // Calls waiting for approval keep waiting: nothing runs before it is given.
        Phase::Acting
            if s.calls.iter().all(|call| call.finished() || call.stage == Stage::Asked) => {}
        Phase::Ready | Phase::Thinking | Phase::Acting | Phase::Compacting { .. } => {
            commands.push(Command::Interrupt)
        }
    }
    // Foreign folders, and programs that somebody else allowed a planner, do not count either.
    let planner =
        s.config.planner.clone().map(|planner| {
            Some(Planner { allow: Vec::new(), steps: StepRules::PLANNER, ..planner })
        });
    let bridge = s.config.bridge.as_ref().map(|_| None);
    let set = ConfigPatch {
        mode: Some(Mode::Ask),
        verify: Some(Vec::new()),
        planner,
        bridge,
        // A stricter setting stays.
        sandbox: (s.config.sandbox == Sandbox::Off).then_some(Sandbox::Auto),
        file_access: Some(FileAccess::Workspace),
        hosts: Some(HostSet::NONE),
        web_fetch: Some(false),
        servers: Some(Vec::new()),
        ..ConfigPatch::default()
    };
    if s.config.with(&set) != *s.config {
        commands.push(Command::Configure { set });
    }
    commands.extend(s.grants.iter().map(|rule| Command::Revoke { rule: rule.clone() }));
    commands
}

/// Deletes a session that no process drives.
///
/// # Errors
/// If a process drives it, another session was forked from it, or the log cannot be written.
pub async fn remove(ports: &Ports, session: &SessionId) -> Result<bool, ConnectError> {
    // A list of sessions looks at the lock for a moment.
    let mut alone = ports.ownership.hold(session).await?;
    for _ in 0..HOLD_TRIES {
        if alone.is_none() {
            tokio::time::sleep(HOLD_PAUSE).await;
            alone = ports.ownership.hold(session).await?;
        }
    }
    let Some(_alone) = alone else {
        let holder = ports.ownership.holder(session).await;
        return Err(ConnectError::InUse { holder });
    };
    let gone = ports.store.delete(session).await?;
    if let Some(checkpoints) = &ports.checkpoints {
        checkpoints.forget(session).await.map_err(|why| {
            StoreError::Refused(format!("its checkpoints could not be deleted: {why}"))
        })?;
    }
    ports.ownership.forget(session).await;
    Ok(gone)
}
