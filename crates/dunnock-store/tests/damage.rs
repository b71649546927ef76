//! R5: a damaged database never keeps anybody from starting, and nothing false is read from it.

use dunnock_ports::{
    Appended, Blob, Blobs as _, Catalogue as _, EventLog as _, Ledger as _, StoreError,
};
use dunnock_proto::{Hash, SessionId, verify_chain};
use dunnock_store::Sqlite;
use dunnock_testkit::store_contract::{Writer, read, said, session};
use std::path::Path;

const NAME: &str = "dunnock.db";

/// A database of twelve sessions with thirty events each, closed.
async fn make(dir: &Path) -> Vec<(SessionId, Hash)> {
    let store = Sqlite::open(dir).await.unwrap().store;
    let mut tips = Vec::new();
    for n in 0..12 {
        let mut w = Writer::new(session(n));
        for round in 0..10 {
            let text = format!("session {n} round {round} {}", "x".repeat(150));
            let events = [said(&text), said("and more"), said("and yet more")];
            let mut batch = w.batch(&events, &[&format!("i{round}")]);
            if round == 0 {
                batch.blobs = vec![blob(n, 5000), blob(n, 1_100_000)];
                let version = u64::from(n);
                batch.charge = Some(dunnock_ports::Charge { day: 1, micros: 10, version });
            }
            assert_eq!(store.append(batch).await, Ok(Appended::Done));
        }
        tips.push((session(n), w.chain));
    }
    store.close().await;
    tips
}

fn blob(n: u8, size: usize) -> Blob {
    Blob::new(vec![n; size])
}

#[derive(Default, Debug)]
struct Tally {
    untouched: u32,
    found_by_chain: u32,
    salvaged: u32,
    refused: u32,
    lost_sessions: u32,
}

/// Opens whatever lies there, reads everything, writes something new.
async fn use_it(dir: &Path, tips: &[(SessionId, Hash)], tally: &mut Tally, what: &str) {
    let mut salvaged = false;
    let mut broken = false;
    // A second start must succeed at the latest: damage met while working is mended at the next
    // one.
    for start in 0..3 {
        let opened = match Sqlite::open(dir).await {
            Ok(opened) => opened,
            Err(StoreError::Failed(why)) if why.contains("later release") => {
                tally.refused += 1;
                return;
            }
            Err(error) => panic!("{what}: stuck at start {start}: {error}"),
        };
        salvaged |= opened.salvaged.is_some();
        let store = opened.store;
        let mut fine = store.list(None, 100).await.is_ok();
        for (id, tip) in tips {
            let (mut chain, mut seq, mut whole) = (Hash::ZERO, 0, true);
            let end = store
                .read(id, 0, &mut |record| {
                    match verify_chain(seq, chain, &record) {
                        Ok(next) => (chain, seq) = (next, seq + 1),
                        Err(_) => whole = false,
                    }
                    whole
                })
                .await;
            // A bad record is that session's trouble, and said; what SQLite itself cannot read is
            // mended at the next start.
            fine &= !matches!(&end, Err(error) if error.to_string().contains("(code: "));
            broken |= !whole || end.is_err() || chain != *tip;
        }
        let mut w = Writer::new(format!("newsession{start}").parse().unwrap());
        let wrote = store.append(w.batch(&[said("new")], &[])).await;
        if wrote != Ok(Appended::Done) {
            println!("{what}: start {start}: {wrote:?}");
            fine = false;
        }
        store.close().await;
        drop(store);
        if fine {
            match (salvaged, broken) {
                (true, _) => tally.salvaged += 1,
                (false, true) => tally.found_by_chain += 1,
                (false, false) => tally.untouched += 1,
            }
            if salvaged {
                let store = Sqlite::open(dir).await.unwrap().store;
                let left = store.list(None, 100).await.unwrap().len();
                tally.lost_sessions += 13u32.saturating_sub(left as u32);
                store.close().await;
            }
            return;
        }
    }
    panic!("{what}: three starts and still not usable");
}

fn copy(from: &Path, to: &Path) {
    for name in [NAME.to_owned(), format!("{NAME}-wal")] {
        if from.join(&name).exists() {
            std::fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

fn seeds() -> u64 {
    std::env::var("DUNNOCK_DAMAGE").ok().and_then(|n| n.parse().ok()).unwrap_or(250)
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bytes_never_block_a_start_and_are_never_believed() {
    let good = tempfile::tempdir().unwrap();
    let tips = make(good.path()).await;
    let mut tally = Tally::default();
    for seed in 0..seeds() {
        let dir = tempfile::tempdir().unwrap();
        copy(good.path(), dir.path());
        let path = dir.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x55;
        for _ in 0..1 + seed % 8 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (x >> 20) as usize % bytes.len();
            bytes[at] ^= 1 << (x % 8);
        }
        std::fs::write(&path, bytes).unwrap();
        use_it(dir.path(), &tips, &mut tally, &format!("seed {seed}")).await;
    }
    println!("R5: {} seeds: {tally:?}", seeds());
    let sum = tally.untouched + tally.found_by_chain + tally.salvaged + tally.refused;
    assert_eq!(u64::from(sum), seeds());
    assert!(seeds() < 100 || (tally.found_by_chain > 20 && tally.salvaged > 5), "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_empty_and_foreign_files_are_set_aside() {
    let good = tempfile::tempdir().unwrap();
    let tips = make(good.path()).await;
    let whole = std::fs::read(good.path().join(NAME)).unwrap();
    let cuts = [
        whole[..whole.len() / 2].to_vec(),
        whole[..100].to_vec(),
        whole[..5000].to_vec(),
        Vec::new(),
        b"not a database at all, but long enough to be taken for one: ".repeat(100),
    ];
    for (n, bytes) in cuts.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NAME), bytes).unwrap();
        use_it(dir.path(), &tips, &mut Tally::default(), &format!("cut {n}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_later_release_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path()).await;
    let mut conn = sqlx_open(&dir.path().join(NAME)).await;
    let later = "INSERT INTO _sqlx_migrations SELECT 99, 'later', installed_on, 1, checksum, 1 \
                 FROM _sqlx_migrations LIMIT 1";
    sqlx::query(later).execute(&mut conn).await.unwrap();
    sqlx::Connection::close(conn).await.unwrap();
    let before = std::fs::read(dir.path().join(NAME)).unwrap();
    let Err(StoreError::Failed(why)) = Sqlite::open(dir.path()).await.map(|_| ()) else {
        panic!("it was opened")
    };
    assert!(why.contains("later release") && why.contains("--data-dir"), "{why}");
    assert_eq!(std::fs::read(dir.path().join(NAME)).unwrap(), before, "it was touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_development_build_is_named_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path()).await;
    let mut conn = sqlx_open(&dir.path().join(NAME)).await;
    sqlx::query("ALTER TABLE events RENAME TO facts").execute(&mut conn).await.unwrap();
    sqlx::Connection::close(conn).await.unwrap();
    let before = std::fs::read(dir.path().join(NAME)).unwrap();
    let Err(StoreError::Failed(why)) = Sqlite::open(dir.path()).await.map(|_| ()) else {
        panic!("it was opened")
    };
    assert!(why.contains("development build") && why.contains("--data-dir"), "{why}");
    assert_eq!(std::fs::read(dir.path().join(NAME)).unwrap(), before, "it was touched");
    // Nor is it set aside as damaged.
    std::fs::write(dir.path().join("damaged"), b"").unwrap();
    let Err(StoreError::Failed(why)) = Sqlite::open(dir.path()).await.map(|_| ()) else {
        panic!("it was rebuilt")
    };
    assert!(why.contains("development build"), "{why}");
    assert_eq!(std::fs::read(dir.path().join(NAME)).unwrap(), before, "it was touched");
}

/// Damage met while working: the next start sets the database aside and carries everything over
/// that can be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_keeps_blobs_and_ledger_and_waits_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let tips = make(dir.path()).await;
    std::fs::write(dir.path().join("damaged"), b"").unwrap();
    let opened = Sqlite::open(dir.path()).await.unwrap();
    let salvaged = opened.salvaged.unwrap();
    assert_eq!((salvaged.whole, salvaged.partly), (12, 0));
    for (n, (id, tip)) in tips.iter().enumerate() {
        assert_eq!(opened.store.tip(id).await.unwrap(), Some((30, *tip)));
        for size in [5000, 1_100_000] {
            let blob = blob(n as u8, size);
            assert_eq!(
                opened.store.blob(blob.hash).await,
                Ok(Some(blob.bytes)),
                "a blob of {id} is lost"
            );
        }
        let again: dunnock_proto::InputId = "nosuch".parse().unwrap();
        assert_eq!(opened.store.answered(id, &again).await, Ok(None));
    }
    assert_eq!(opened.store.day_total(1).await.unwrap().micros, 120);
    // While this process uses it, another start does not move it away.
    std::fs::write(dir.path().join("damaged"), b"").unwrap();
    let Err(StoreError::StoreDamaged(why)) = Sqlite::open(dir.path()).await.map(|_| ()) else {
        panic!("it was moved under a user")
    };
    assert!(why.contains("end the other dunnock processes"), "{why}");
    opened.store.close().await;
}

/// Killed inside a rebuild, after each of its steps: the next start goes on from there.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_that_was_cut_off_goes_on() {
    let good = tempfile::tempdir().unwrap();
    make(good.path()).await;
    for cut in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        copy(good.path(), dir.path());
        let (main, aside) = (dir.path().join(NAME), dir.path().join("damaged-1"));
        std::fs::create_dir(&aside).unwrap();
        match cut {
            0 => std::fs::write(dir.path().join("damaged"), "").unwrap(), /* the place is made, */
            // nothing moved
            1 => std::fs::write(dir.path().join("damaged"), "damaged-1").unwrap(), /* the note names it */
            2 => {
                std::fs::write(dir.path().join("damaged"), "damaged-1").unwrap();
                std::fs::rename(&main, aside.join(NAME)).unwrap(); // moved, nothing rebuilt
            }
            _ => {
                std::fs::write(dir.path().join("damaged"), "damaged-1").unwrap();
                std::fs::copy(&main, aside.join(NAME)).unwrap(); // rebuilt; only the note was left
            }
        }
        let store = Sqlite::open(dir.path()).await.unwrap().store;
        assert_eq!(store.list(None, 100).await.unwrap().len(), 12, "cut {cut}");
        assert!(!dir.path().join("damaged").exists(), "cut {cut}");
        store.close().await;
    }
}

/// RED-L5: a database of 0 bytes was taken for a new one.
#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_database_is_damage_and_a_new_one_is_not() {
    for evidence in ["checkpoints/w/pack", "blobs/ab/cd"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(evidence);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "x").unwrap();
        std::fs::write(dir.path().join(NAME), "").unwrap();
        let opened = Sqlite::open(dir.path()).await.unwrap();
        let salvaged = opened.salvaged.expect("the loss is reported");
        assert_eq!((salvaged.whole, salvaged.partly), (0, 0));
        assert!(salvaged.kept_in.join(NAME).exists());
        opened.store.close().await;
        let again = Sqlite::open(dir.path()).await.unwrap();
        assert_eq!(again.salvaged, None, "it is reported once");
        again.store.close().await;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("checkpoints")).unwrap();
    std::fs::write(dir.path().join(NAME), "").unwrap();
    let opened = Sqlite::open(dir.path()).await.unwrap();
    assert_eq!(opened.salvaged, None, "an interrupted first start is no damage");
    opened.store.close().await;
}

async fn sqlx_open(path: &Path) -> sqlx::SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    sqlx::ConnectOptions::connect(&options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_in_a_body_is_found_by_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path()).await;
    let mut conn = sqlx_open(&dir.path().join(NAME)).await;
    let edit = "UPDATE events SET body = replace(body, 'round 4', 'round 5') WHERE no = 3";
    assert_eq!(sqlx::query(edit).execute(&mut conn).await.unwrap().rows_affected(), 30);
    sqlx::Connection::close(conn).await.unwrap();
    let store = Sqlite::open(dir.path()).await.unwrap().store;
    let mut bad = Vec::new();
    for n in 0..12 {
        let (mut chain, mut seq) = (Hash::ZERO, 0);
        for record in read(&store, &session(n), 0).await {
            match verify_chain(seq, chain, &record) {
                Ok(next) => (chain, seq) = (next, seq + 1),
                Err(at) => {
                    bad.push((n, at));
                    break;
                }
            }
        }
    }
    assert_eq!(bad, [(2, 14)], "the fact after the changed one no longer follows");
}
