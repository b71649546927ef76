//! Durable appends beside a bare loop with the same pragmas, in one run.

use dunnock_ports::{Appended, EventLog as _};
use dunnock_store::Sqlite;
use dunnock_testkit::store_contract::{Writer, said, session};
use dunnock_testkit::timing;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn appends_keep_up_with_a_bare_loop() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare_path = dir.path().join("bare.db");
    let options = SqliteConnectOptions::new()
        .filename(&bare_path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", "0");
    let mut bare = sqlx::ConnectOptions::connect(&options).await.unwrap();
    sqlx::query("CREATE TABLE t (key INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        .execute(&mut bare)
        .await
        .unwrap();
    let store = Sqlite::open(&dir.path().join("store")).await.unwrap().store;
    let body = "x".repeat(500);
    let mut w = Writer::new(session(1));
    store.append(w.batch(&[said("start")], &[])).await.unwrap();
    let (mut bare_times, mut times) = (Vec::new(), Vec::new());
    let (mut bare_cpu, mut cpu) = (Vec::new(), Vec::new());
    // Many short turns, and of each side the fastest tenth: what else the machine does only ever
    // adds.
    for round in 0..i64::try_from(timing::rounds(40, 120)).unwrap() {
        let n = 25;
        let (began, used) = (Instant::now(), timing::cpu());
        for k in 0..n {
            sqlx::query("BEGIN IMMEDIATE").execute(&mut bare).await.unwrap();
            let sql = "INSERT INTO t (key, body) VALUES (?, ?), (?, ?)";
            let key = (round * n + k) * 2;
            let query = sqlx::query(sql).bind(key).bind(&body).bind(key + 1).bind(&body);
            query.execute(&mut bare).await.unwrap();
            sqlx::query("COMMIT").execute(&mut bare).await.unwrap();
        }
        bare_times.push(began.elapsed());
        bare_cpu.push(timing::cpu() - used);
        let (began, used) = (Instant::now(), timing::cpu());
        for _ in 0..n {
            let batch = w.batch(&[said(&body), said(&body)], &[]);
            assert_eq!(store.append(batch).await, Ok(Appended::Done));
        }
        times.push(began.elapsed());
        cpu.push(timing::cpu() - used);
    }
    let tenth = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 10].as_secs_f64()
    };
    let (bare, ours) = (tenth(bare_times), tenth(times));
    println!("appends: {:.0}/s, a bare loop {:.0}/s", 25.0 / ours, 25.0 / bare);
    timing::cpu_ratio("an append to a bare loop's, CPU time", tenth(cpu) / tenth(bare_cpu), 2.0);
    timing::wall_ratio("an append to a bare loop's", ours / bare, 1.0 / 0.7);
}
