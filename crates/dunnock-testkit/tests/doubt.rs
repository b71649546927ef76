//! R3, R17, R25: a log that is full, doubtful or late, and a clock that jumps.

use crate::sessions::{Run, play};
use dunnock_engine::Clock;
use dunnock_ports::*;
use dunnock_proto::*;
use dunnock_store::Memory;
use dunnock_testkit::scenario::{NAMES, Scenario};
use dunnock_testkit::worlds;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It was written, and the writer is not told so.
    WroteUnsure,
    /// It was not written, and the writer is not told so.
    LostUnsure,
    /// There is no room, three times.
    Full,
    /// Somebody else wrote first: a title from another door.
    Conflict,
}

/// A log that goes wrong at one append.
struct Faulty {
    inner: Arc<Memory>,
    at: u64,
    fault: Fault,
    appends: AtomicU64,
    left: AtomicI64,
}

impl EventLog for Faulty {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            let n = self.appends.fetch_add(1, Ordering::SeqCst);
            if n < self.at || self.left.fetch_sub(1, Ordering::SeqCst) <= 0 || batch.after == 0 {
                return self.inner.append(batch).await;
            }
            match self.fault {
                Fault::WroteUnsure => {
                    self.inner.append(batch).await?;
                    Err(StoreError::Unsure("the disk said no".into()))
                }
                Fault::LostUnsure => Err(StoreError::Unsure("the disk said no".into())),
                Fault::Full => Err(StoreError::Full("no space left on device".into())),
                Fault::Conflict => {
                    let (mut last, mut chain) = (0, Hash::ZERO);
                    self.inner
                        .read(&batch.session, 0, &mut |r| {
                            (last, chain) = (r.envelope.seq, r.chain());
                            true
                        })
                        .await?;
                    let event = Event::from(Titled { title: "from outside".into() });
                    let record =
                        seal(last, chain, At(0), Cause::Input("other".parse().unwrap()), &event);
                    let other = Batch {
                        after: last,
                        records: vec![record],
                        inputs: vec![],
                        blobs: vec![],
                        charge: None,
                        ..batch.clone()
                    };
                    self.inner.append(other).await?;
                    self.inner.append(batch).await
                }
            }
        })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: Seq,
        each: &'a mut (dyn FnMut(Record) -> bool + Send),
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.read(session, after, each)
    }

    fn answered<'a>(
        &'a self,
        session: &'a SessionId,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.inner.answered(session, input)
    }

    fn tip<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Seq, Hash)>, StoreError>> {
        self.inner.tip(session)
    }

    fn delete<'a>(&'a self, s: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.delete(s)
    }

    fn reopen(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.reopen()
    }
}

impl Faulty {
    /// A store whose log is this one; its other parts work.
    fn store(self: &Arc<Self>) -> Arc<dyn Store> {
        Arc::new(StoreParts {
            log: self.clone(),
            blobs: self.inner.clone(),
            catalogue: self.inner.clone(),
            ledger: self.inner.clone(),
        })
    }
}

/// A scenario with a fault at one append: the run, the number of appends, and whether it struck.
async fn with_fault(name: &str, fault: Fault, at: u64) -> (Run, u64, bool) {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario::named(name);
    let left = AtomicI64::new(if fault == Fault::Full { 3 } else { 1 });
    let log =
        Arc::new(Faulty { inner: Arc::default(), at, fault, appends: AtomicU64::new(0), left });
    let ports = worlds::on(log.store(), dir.path(), scenario.model());
    let run = play(ports, dir.path(), &scenario).await;
    let struck = log.left.load(Ordering::SeqCst) <= 0;
    (run, log.appends.load(Ordering::SeqCst), struck)
}

#[tokio::test(flavor = "multi_thread")]
async fn r25_r3_every_append_may_be_doubtful_full_or_late() {
    let mut cases = 0;
    for name in NAMES {
        let (base, appends, _) = with_fault(name, Fault::LostUnsure, u64::MAX).await;
        assert!(base.said.is_empty(), "nothing to say when nothing is wrong: {:?}", base.said);
        for fault in [Fault::WroteUnsure, Fault::LostUnsure, Fault::Full, Fault::Conflict] {
            // A takeover that finds no room is an error: nobody could hear of it yet.
            for at in if fault == Fault::Full { 2 } else { 1 }..appends {
                let (run, _, struck) = with_fault(name, fault, at).await;
                let what = format!("{name} {fault:?} at {at}");
                assert_eq!(run.messages, base.messages, "{what}: the transcript differs");
                assert_eq!(run.traces, base.traces, "{what}: effects differ");
                match fault {
                    _ if at == 1 || !struck => {} /* nobody listens at the takeover; reports */
                    // that came together left fewer appends
                    Fault::Full => {
                        assert!(
                            run.said.iter().any(|s| s.contains("disk is full")),
                            "{what}: {:?}",
                            run.said
                        )
                    }
                    Fault::WroteUnsure | Fault::LostUnsure => {
                        assert!(
                            run.said.iter().any(|s| s.contains("checking the log")),
                            "{what}: {:?}",
                            run.said
                        );
                    }
                    Fault::Conflict => {
                        let titles =
                            run.facts.iter().filter(|(_, e)| matches!(e, Event::Titled(_))).count();
                        assert_eq!(titles, 1, "{what}: what the other wrote is kept");
                    }
                }
                cases += u32::from(struck);
            }
        }
    }
    println!("R25, R3: {cases} appends went wrong, nothing lost, nothing doubled");
    assert!(cases >= 120);
}

/// A clock that is wrong in a new way each time it is read.
struct Jumpy(AtomicI64);

impl Clock for Jumpy {
    fn now(&self) -> At {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        At([0, 4_000_000_000_000, -86_400_000, 1_700_000_000_000][(n % 4).unsigned_abs() as usize]
            - n * 1000)
    }
    fn random(&self) -> [u8; 16] {
        dunnock_engine::SystemClock.random()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r17_a_jumping_clock_changes_no_order_and_no_owner() {
    for name in NAMES {
        let (base, ..) = with_fault(name, Fault::Full, u64::MAX).await;
        let dir = tempfile::tempdir().unwrap();
        let scenario = Scenario::named(name);
        let mut ports = worlds::in_folder(dir.path(), scenario.model()).await;
        ports.clock = Arc::new(Jumpy(AtomicI64::new(0)));
        let run = play(ports, dir.path(), &scenario).await;
        assert_eq!(run.messages, base.messages, "{name}");
        assert_eq!(run.traces, base.traces, "{name}");
        let seqs: Vec<Seq> = run.facts.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as Seq).collect::<Vec<_>>());
        assert_eq!(
            run.facts.iter().filter(|(_, e)| matches!(e, Event::OwnerChanged(_))).count(),
            1
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_a_session_on_a_full_disk_says_so_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario::named("plain");
    let left = AtomicI64::new(1000);
    let log = Arc::new(Faulty {
        inner: Arc::default(),
        at: 1,
        fault: Fault::Full,
        appends: AtomicU64::new(0),
        left,
    });
    let ports = worlds::on(log.store(), dir.path(), scenario.model());
    let session = dunnock_engine::create(&ports, "/w", scenario.config.clone()).await.unwrap();
    let opened = tokio::time::timeout(
        std::time::Duration::from_secs(5),
        dunnock_engine::Connection::open(ports, session, 0),
    )
    .await;
    let Err(error) = opened.expect("it hangs").map(|_| ()) else { panic!("it was opened") };
    assert!(error.to_string().contains("disk is full"), "{error}");
}

/// A full disk keeps reports of work in memory. A driver that closes then must not wait for them:
/// they have arrived.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_closes_on_a_disk_that_filled_up_at_any_append() {
    let scenario = Scenario::named("parallel");
    let (_, appends, _) = with_fault("parallel", Fault::Full, u64::MAX).await;
    let mut struck = 0;
    for at in 2..appends {
        let dir = tempfile::tempdir().unwrap();
        let left = AtomicI64::new(i64::MAX);
        let log = Arc::new(Faulty {
            inner: Arc::default(),
            at,
            fault: Fault::Full,
            appends: AtomicU64::new(0),
            left,
        });
        let ports = worlds::on(log.store(), dir.path(), scenario.model());
        let session = dunnock_engine::create(&ports, "/w", scenario.config.clone()).await.unwrap();
        let mut connection =
            dunnock_engine::Connection::open(ports.clone(), session.clone(), 0).await.unwrap();
        let handle = connection.handle().unwrap().clone();
        let texts = scenario.prompts.clone();
        let prompting = tokio::spawn(async move {
            for text in texts {
                let prompt = Command::Prompt { text: text.into(), images: Vec::new() };
                let _ = connection.send(prompt).await;
                let _ = connection.handle().unwrap().summary().wait_for(|s| s.parked).await;
            }
        });
        let full = || log.left.load(Ordering::SeqCst) < i64::MAX;
        while !full() && !prompting.is_finished() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        struck += u32::from(full());
        // The calls that still run end meanwhile.
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        prompting.abort();
        let closed = tokio::time::timeout(std::time::Duration::from_secs(20), handle.close()).await;
        assert!(closed.is_ok(), "append {at}: closing hangs");
        let free = ports.ownership.claim(&session).await.unwrap();
        assert!(free.is_some(), "append {at}: the session is still locked");
    }
    assert!(struck >= 5, "{struck} of {appends} appends failed");
}
