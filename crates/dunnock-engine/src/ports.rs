//! Everything a driver needs, chosen once: ports, clock, folders. Also creates and forks sessions.

use crate::catch_up::load;
use dunnock_core::ports::{Appended, Batch, Checkpoints, Files, Log, LogError, Model, Tools};
use dunnock_core::{State, apply};
use dunnock_proto::{
    At, Cause, Config, Created, Event, Forked, Hash, Isolation, Owner, Seq, SessionId, seal,
};
use std::path::PathBuf;
use std::sync::Arc;

/// Time and randomness. The core has neither; they enter here.
pub trait Clock: Send + Sync {
    /// The wall clock. It may jump: only display and waiting depend on it.
    fn now(&self) -> At;
    /// Sixteen unpredictable bytes.
    fn random(&self) -> [u8; 16];
}

/// The clock and random numbers of this machine.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> At {
        let since =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
    fn random(&self) -> [u8; 16] {
        let mut out = [0; 16];
        if getrandom::fill(&mut out).is_err() {
            std::process::abort(); // without random numbers, no id is safe
        }
        out
    }
}

/// What a driver needs.
#[derive(Clone)]
pub struct Ports {
    /// Stores the events.
    pub log: Arc<dyn Log>,
    /// Answers requests.
    pub model: Arc<dyn Model>,
    /// Runs calls.
    pub tools: Arc<dyn Tools>,
    /// Identifies the state of the files, so that a check is bound to what it checked.
    pub files: Option<Arc<dyn Files>>,
    /// Saves checkpoints, if available.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Time and randomness.
    pub clock: Arc<dyn Clock>,
    /// The folder for locks that all processes of this user share.
    pub locks: PathBuf,
    /// The folder for sockets: a short path, private, removed at log-out.
    pub runtime: PathBuf,
    /// How well commands are isolated here.
    pub level: Isolation,
    /// This release.
    pub app: String,
    /// Millionths of a US dollar per day over all sessions, if limited.
    pub day_budget: Option<u64>,
}

impl Ports {
    /// A fresh owner id for this process at this takeover.
    pub(crate) fn fresh_owner(&self) -> Owner {
        Owner(u128::from_le_bytes(self.clock.random()))
    }
}

/// Creates a session. No process drives it yet.
///
/// # Errors
/// If the log cannot be written.
pub async fn create(ports: &Ports, workspace: &str, config: Config) -> Result<SessionId, LogError> {
    let base = ports.files.as_ref().and_then(|files| files.commit(workspace));
    let created = Created { workspace: workspace.into(), app: ports.app.clone(), config, base };
    begin_with(ports, created.into()).await
}

/// Creates a session whose history is another's, up to the event `at`.
///
/// # Errors
/// If the log cannot be read or written, or there is no such event.
pub async fn fork(ports: &Ports, from: &SessionId, at: Seq) -> Result<SessionId, LogError> {
    let whole = load(ports.log.as_ref(), from).await?;
    if at == 0 || at > whole.state.seq {
        return Err(LogError::Failed(format!(
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

async fn begin_with(ports: &Ports, event: Event) -> Result<SessionId, LogError> {
    let session = SessionId::from_random(ports.clock.random());
    let mut state = State::default();
    apply(&mut state, &event);
    let records = vec![seal(0, Hash::ZERO, ports.clock.now(), Cause::Driver, &event)];
    let listing = crate::commit::listing(&state);
    let batch = Batch {
        session: session.clone(),
        after: 0,
        records,
        inputs: Vec::new(),
        blobs: Vec::new(),
        listing,
        charge: None,
    };
    match ports.log.append(batch).await? {
        Appended::Done => Ok(session),
        Appended::Conflict | Appended::Repeated(..) => {
            Err(LogError::Failed("the new session's id is already in use; try again".into()))
        }
    }
}
