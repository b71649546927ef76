//! Everything a driver needs, chosen once: ports, clock, folders.

use dunnock_core::Status;
use dunnock_ports::{Checkpoints, Files, Model, Ownership, Store, Tools};
use dunnock_proto::{At, Isolation, Owner, SessionId};
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
    /// Stores events, blobs, lists and the ledger.
    pub store: Arc<dyn Store>,
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
    /// Decides which process drives a session.
    pub ownership: Arc<dyn Ownership>,
    /// The folder for locks of workspaces, which all processes of this user share.
    pub locks: PathBuf,
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

    /// The status that people see, given the stored one: a session that is to work, but that no
    /// process drives, is `paused`.
    pub async fn shown_status(&self, session: &SessionId, stored: &str) -> String {
        let working = Status::Working.to_string();
        match stored == working && matches!(self.ownership.is_driven(session).await, Ok(false)) {
            true => "paused".into(),
            false => stored.into(),
        }
    }
}
