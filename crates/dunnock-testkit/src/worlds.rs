//! Worlds in temporary folders.

use crate::files::ScriptedFiles;
use crate::model::ScriptedModel;
use crate::tools::ScriptedTools;
use dunnock_engine::{FileLocks, Ports, SystemClock};
use dunnock_ports::{Store, fold_events};
use dunnock_proto::{Config, Event, Isolation, Seq, SessionId};
use dunnock_store::{Memory, Sqlite};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A world on a real store in `dir`, with a scripted model and scripted tools.
pub async fn in_folder(dir: &Path, model: Arc<ScriptedModel>) -> Ports {
    let store = Sqlite::open(&dir.join("data")).await.expect("the store opens").store;
    on(Arc::new(store), dir, model)
}

/// A world in memory.
#[must_use]
pub fn in_memory(dir: &Path, model: Arc<ScriptedModel>) -> Ports {
    on(Arc::new(Memory::default()), dir, model)
}

/// A world on a given store.
#[must_use]
pub fn on(store: Arc<dyn Store>, dir: &Path, model: Arc<ScriptedModel>) -> Ports {
    Ports {
        store,
        model,
        tools: Arc::new(ScriptedTools::new(&traces(dir))),
        files: None,
        checkpoints: Some(Arc::new(ScriptedFiles)),
        clock: Arc::new(SystemClock),
        ownership: Arc::new(FileLocks::new(dir.join("locks"), dir.join("run"), "test")),
        locks: dir.join("locks"),
        level: Isolation::A,
        app: "test".into(),
        day_budget: None,
    }
}

/// Where the tools of a world leave their traces.
#[must_use]
pub fn traces(dir: &Path) -> PathBuf {
    dir.join("traces")
}

/// Settings for tests: a model that exists.
#[must_use]
pub fn config() -> Config {
    Config { model: "script/1".into(), ..Config::default() }
}

/// Every event of a session that this release knows.
pub async fn facts(log: &dyn Store, session: &SessionId) -> Vec<(Seq, Event)> {
    fold_events(log, session, Vec::new(), |events, at, event| events.push((at.seq, event)))
        .await
        .expect("the log reads")
}
