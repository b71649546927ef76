//! R20: databases of every release so far are opened by this one. `DUNNOCK_NEW_GOLDEN_LOG=1` writes
//! the one of this release.

use dunnock_ports::{Catalogue as _, Store};
use dunnock_proto::SessionId;
use dunnock_store::Sqlite;
use dunnock_testkit::scenario::{NAMES, Scenario};
use dunnock_testkit::worlds;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/logs")
}

/// What a database says, in words that a person can check.
async fn describe(dir: &Path) -> String {
    let opened = Sqlite::open(dir).await.unwrap();
    assert!(opened.salvaged.is_none(), "an old database is not a damaged one");
    let mut rows = opened.store.list(None, 100).await.unwrap();
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    let mut text = String::new();
    for row in rows {
        let (facts, chain) = dunnock_engine::check_chain(&opened.store, &row.id).await.unwrap();
        let loaded = dunnock_engine::load(&opened.store, &row.id).await.unwrap();
        assert!(loaded.state.read_only.is_none(), "{}: {:?}", row.id, loaded.state.read_only);
        let kinds: Vec<String> = kinds(&opened.store, &row.id).await;
        let request = loaded.transcript.request().unwrap();
        writeln!(text, "session {} \"{}\" {} in {}", row.id, row.title, row.status, row.workspace)
            .unwrap();
        writeln!(text, "  facts {facts} version {} chain {chain}", row.version).unwrap();
        writeln!(text, "  {}", kinds.join(" ")).unwrap();
        writeln!(
            text,
            "  step {} request {} {} bytes",
            request.step,
            request.hash(),
            request.len()
        )
        .unwrap();
        let s = loaded.state;
        writeln!(text, "  spent {} tokens, proof {:?}, last {:?}", s.spent.tokens, s.proof, s.last)
            .unwrap();
    }
    opened.store.close().await;
    text
}

async fn kinds(log: &dyn Store, session: &SessionId) -> Vec<String> {
    let mut kinds = Vec::new();
    log.read(session, 0, &mut |r| {
        kinds.push(r.envelope.kind);
        true
    })
    .await
    .unwrap();
    kinds
}

async fn bless(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    let temp = tempfile::tempdir().unwrap();
    for name in NAMES {
        let scenario = Scenario::named(name);
        let ports = worlds::in_folder(temp.path(), scenario.model()).await;
        crate::sessions::play(ports, temp.path(), &scenario).await;
    }
    let store = Sqlite::open(&temp.path().join("data")).await.unwrap().store;
    store.index(None).await.unwrap();
    store.close().await;
    std::fs::copy(temp.path().join("data/dunnock.db"), dir.join("dunnock.db")).unwrap();
    std::fs::write(dir.join("expected.txt"), describe(&temp.path().join("data")).await).unwrap();
}

/// Holds W2: a store of an earlier release opens (migrated where needed) and says the same; only
/// 0.1.0 is there yet.
#[tokio::test(flavor = "multi_thread")]
async fn r20_the_logs_of_every_release_open_unchanged() {
    let mine = logs().join(env!("CARGO_PKG_VERSION"));
    if std::env::var_os("DUNNOCK_NEW_GOLDEN_LOG").is_some() {
        bless(&mine).await;
    }
    assert!(mine.join("dunnock.db").exists(), "this release has no golden log");
    let mut releases = 0;
    for entry in std::fs::read_dir(logs()).unwrap() {
        let release = entry.unwrap().path();
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(release.join("dunnock.db"), dir.path().join("dunnock.db")).unwrap();
        let said = describe(dir.path()).await;
        let expected = std::fs::read_to_string(release.join("expected.txt")).unwrap();
        assert_eq!(said, expected, "{}", release.display());
        releases += 1;
    }
    println!("R20: {releases} release(s)");
}
