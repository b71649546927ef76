//! Both stores keep the contract of `dunnock_testkit::store_contract`.

use dunnock_ports::{Store, StoreParts};
use dunnock_store::{Memory, Sqlite};
use std::sync::Arc;

async fn sqlite() -> (tempfile::TempDir, Arc<dyn Store>) {
    let dir = tempfile::tempdir().unwrap();
    let opened = Sqlite::open(dir.path()).await.unwrap();
    assert!(opened.salvaged.is_none());
    (dir, Arc::new(opened.store))
}

async fn memory() -> ((), Arc<dyn Store>) {
    ((), Arc::new(Memory::default()))
}

/// A store of four parts, which are one here.
async fn parts() -> (tempfile::TempDir, Arc<dyn Store>) {
    let dir = tempfile::tempdir().unwrap();
    let all = Arc::new(Sqlite::open(dir.path()).await.unwrap().store);
    let (log, blobs, catalogue) = (all.clone(), all.clone(), all.clone());
    (dir, Arc::new(StoreParts { log, blobs, catalogue, ledger: all }))
}

dunnock_testkit::store_contract!(on_sqlite, sqlite());
dunnock_testkit::store_contract!(of_parts, parts());
dunnock_testkit::store_contract!(in_memory, memory());
