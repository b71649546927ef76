//! The contract of a store, written against its ports alone. A store is run through it with
//! [`store_contract!`](crate::store_contract!): one test for each rule.

use dunnock_core::Status;
use dunnock_ports::{Appended, Batch, Blob, Charge, DayTotal, Listing, Store, StoreError};
use dunnock_proto::*;

/// A session's id.
#[must_use]
pub fn session(n: u8) -> SessionId {
    format!("session{n:03}").parse().unwrap()
}

/// What lists show.
#[must_use]
pub fn listing(title: &str) -> Listing {
    Listing { title: title.into(), workspace: "/w".into(), status: Status::Done, version: 1 }
}

/// A log in the making: seals events one after the other.
pub struct Writer {
    /// The session.
    pub session: SessionId,
    /// Its events so far.
    pub seq: Seq,
    /// The chain up to the last one.
    pub chain: Hash,
}

impl Writer {
    /// An empty log.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self { session, seq: 0, chain: Hash::ZERO }
    }
    /// The next events, sealed.
    pub fn batch(&mut self, events: &[Event], inputs: &[&str]) -> Batch {
        let after = self.seq;
        let mut records = Vec::new();
        for event in events {
            let record =
                seal(self.seq, self.chain, At(1000 + self.seq as i64), Cause::Driver, event);
            (self.seq, self.chain) = (record.envelope.seq, record.chain());
            records.push(record);
        }
        let inputs = inputs.iter().map(|id| (id.parse().unwrap(), self.seq)).collect();
        let listing = listing("a title");
        Batch {
            session: self.session.clone(),
            after,
            records,
            inputs,
            blobs: Vec::new(),
            listing,
            charge: None,
        }
    }
}

/// A prompt.
#[must_use]
pub fn said(text: &str) -> Event {
    Prompted { text: text.into(), images: Vec::new() }.into()
}

/// All events after one.
pub async fn read(log: &dyn Store, session: &SessionId, after: Seq) -> Vec<Record> {
    let mut records = Vec::new();
    log.read(session, after, &mut |r| {
        records.push(r);
        true
    })
    .await
    .unwrap();
    records
}

/// Makes a module of tests, one for each rule. `$make` is an expression that opens an empty store:
/// a value that must live as long as the store, and an `Arc<dyn Store>`.
#[macro_export]
macro_rules! store_contract {
    ($module:ident, $make:expr) => {
        mod $module {
            use super::*;
            $crate::store_rules! { $make;
                what_was_appended_is_read_back_byte_for_byte
                a_writer_that_has_not_seen_everything_gets_a_conflict
                a_new_session_is_made_once
                a_repeated_command_gives_its_first_answer
                reading_begins_after_a_fact_and_can_stop
                blobs_come_with_their_facts
                a_conflict_leaves_nothing_behind
                lists_are_newest_first_and_by_folder
                prefixes_find_sessions
                words_are_found_once_indexed
                the_ledger_has_versions
                a_long_batch_is_one_append
                sessions_do_not_mix
                erased_bodies_keep_their_hash
                appends_race_and_one_wins
                the_head_is_stored_beside_the_facts
                one_command_twice_in_a_batch_is_written_by_nobody
                a_cause_of_a_later_release_is_kept
                a_forgotten_session_is_gone_with_its_words_and_its_own_blobs
                a_session_that_another_branched_off_stays
                a_blob_can_come_before_its_events
                a_row_and_the_end_of_a_call_are_found_alone
                a_store_goes_on_after_it_is_reopened
            }
        }
    };
}

/// One test for each rule.
#[doc(hidden)]
#[macro_export]
macro_rules! store_rules {
    ($make:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let (_kept, store) = $make.await;
            $crate::store_contract::rules::$name(store.as_ref()).await;
        }
    )*};
}

/// The rules, each named by what it demands.
pub mod rules {
    use super::*;

    pub async fn a_forgotten_session_is_gone_with_its_words_and_its_own_blobs(log: &dyn Store) {
        let (mut a, mut b) = (Writer::new(session(1)), Writer::new(session(2)));
        let (own, shared) = (Blob::new(vec![1; 3 << 20]), Blob::new(vec![2; 3 << 20]));
        let (small, small_shared) = (Blob::new(vec![1; 9]), Blob::new(vec![2; 9]));
        let all = vec![own.clone(), shared.clone(), small.clone(), small_shared.clone()];
        log.append(Batch { blobs: all, ..a.batch(&[said("alpha wren")], &["in-1"]) })
            .await
            .unwrap();
        let some = vec![shared.clone(), small_shared.clone()];
        log.append(Batch { blobs: some, ..b.batch(&[said("beta wren")], &[]) }).await.unwrap();
        log.index(None).await.unwrap();
        assert_eq!(log.delete(&session(1)).await, Ok(true));
        assert_eq!(log.delete(&session(1)).await, Ok(false));
        assert_eq!(read(log, &session(1), 0).await, []);
        assert_eq!(log.tip(&session(1)).await, Ok(None));
        assert_eq!(log.answered(&session(1), &"in-1".parse().unwrap()).await, Ok(None));
        assert_eq!(log.search("wren", 9).await.unwrap().len(), 1);
        assert_eq!(log.list(None, 9).await.unwrap().len(), 1);
        for (blob, there) in
            [(&own, false), (&small, false), (&shared, true), (&small_shared, true)]
        {
            assert_eq!(log.blob(blob.hash).await.unwrap().is_some(), there);
        }
        // The same blobs and the same id may come again.
        let mut again = Writer::new(session(1));
        log.append(Batch { blobs: vec![own.clone()], ..again.batch(&[said("alpha")], &[]) })
            .await
            .unwrap();
        assert_eq!(log.blob(own.hash).await.unwrap().unwrap(), own.bytes);
    }

    pub async fn a_session_that_another_branched_off_stays(log: &dyn Store) {
        log.append(Writer::new(session(1)).batch(&[said("one")], &[])).await.unwrap();
        let (config, workspace, app) = (Config::default(), "/w".to_owned(), "0".to_owned());
        let (from, step, read_secret) = (session(1), Step(0), false);
        let forked = Forked { from, at: 1, workspace, app, config, step, read_secret };
        log.append(Writer::new(session(2)).batch(&[forked.into()], &[])).await.unwrap();
        assert_eq!(log.delete(&session(1)).await, Err(StoreError::Forked(session(2))));
        assert_eq!(log.delete(&session(2)).await, Ok(true));
        assert_eq!(log.delete(&session(1)).await, Ok(true));
    }

    pub async fn a_blob_can_come_before_its_events(log: &dyn Store) {
        let (known, unknown, blob) = (session(1), session(2), Blob::new(vec![7; 100]));
        log.append(Writer::new(known.clone()).batch(&[said("one")], &[])).await.unwrap();
        assert_eq!(log.keep(&unknown, &blob).await, Err(StoreError::NoSession(unknown.clone())));
        assert_eq!(log.keep(&known, &blob).await, Ok(()));
        assert_eq!(log.blob(blob.hash).await, Ok(Some(blob.bytes.clone())));
        assert_eq!(log.uses(&known, blob.hash).await, Ok(true));
        assert_eq!(log.uses(&unknown, blob.hash).await, Ok(false));
    }

    pub async fn a_row_and_the_end_of_a_call_are_found_alone(log: &dyn Store) {
        let (call, other) =
            (CallId { step: Step(1), index: 0 }, CallId { step: Step(1), index: 1 });
        let finished = Finished::plain(call, Outcome::Done, "fine");
        let mut writer = Writer::new(session(1));
        log.append(writer.batch(&[said("one"), finished.clone().into()], &[])).await.unwrap();
        assert_eq!(log.finished(&session(1), call).await, Ok(Some(finished)));
        assert_eq!(log.finished(&session(1), other).await, Ok(None));
        let row = log.listed(&session(1)).await.unwrap().unwrap();
        assert_eq!((row.id, row.seq, row.title.as_str()), (session(1), 2, "a title"));
        assert_eq!(log.listed(&session(2)).await, Ok(None));
    }

    pub async fn a_store_goes_on_after_it_is_reopened(log: &dyn Store) {
        let mut writer = Writer::new(session(1));
        log.append(writer.batch(&[said("one")], &[])).await.unwrap();
        log.tidy().await;
        assert_eq!(log.reopen().await, Ok(()));
        assert_eq!(log.append(writer.batch(&[said("two")], &[])).await, Ok(Appended::Done));
        assert_eq!(read(log, &session(1), 0).await.len(), 2);
    }

    pub async fn what_was_appended_is_read_back_byte_for_byte(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        let batch = w.batch(&[said("one \u{1F426} \u{0}"), said("two")], &[]);
        let wrote = batch.records.clone();
        assert_eq!(log.append(batch).await, Ok(Appended::Done));
        assert_eq!(read(log, &session(1), 0).await, wrote);
    }

    pub async fn a_writer_that_has_not_seen_everything_gets_a_conflict(log: &dyn Store) {
        let (mut a, mut b) = (Writer::new(session(1)), Writer::new(session(1)));
        log.append(a.batch(&[said("one")], &[])).await.unwrap();
        b.batch(&[said("one")], &[]);
        assert_eq!(log.append(a.batch(&[said("two")], &[])).await, Ok(Appended::Done));
        assert_eq!(log.append(b.batch(&[said("other two")], &[])).await, Ok(Appended::Conflict));
        let mut ahead = Writer { seq: 7, ..Writer::new(session(1)) };
        assert_eq!(log.append(ahead.batch(&[said("eight")], &[])).await, Ok(Appended::Conflict));
    }

    pub async fn a_new_session_is_made_once(log: &dyn Store) {
        assert_eq!(
            log.append(Writer::new(session(1)).batch(&[said("a")], &[])).await,
            Ok(Appended::Done)
        );
        assert_eq!(
            log.append(Writer::new(session(1)).batch(&[said("b")], &[])).await,
            Ok(Appended::Conflict)
        );
        assert_eq!(read(log, &session(1), 0).await.len(), 1);
    }

    pub async fn a_repeated_command_gives_its_first_answer(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        log.append(w.batch(&[said("a"), said("b")], &["x"])).await.unwrap();
        let id: InputId = "x".parse().unwrap();
        assert_eq!(
            log.append(w.batch(&[said("a")], &["x"])).await,
            Ok(Appended::Repeated(id.clone(), 2))
        );
        assert_eq!(log.answered(&session(1), &id).await, Ok(Some(2)));
        assert_eq!(log.answered(&session(1), &"y".parse().unwrap()).await, Ok(None));
        assert_eq!(log.answered(&session(2), &id).await, Ok(None));
        assert_eq!(read(log, &session(1), 0).await.len(), 2);
        let mut late = Writer::new(session(1));
        assert_eq!(
            log.append(late.batch(&[said("a")], &["x"])).await,
            Ok(Appended::Repeated(id, 2))
        );
    }

    pub async fn reading_begins_after_a_fact_and_can_stop(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        let events: Vec<Event> = (0..700).map(|n| said(&n.to_string())).collect();
        log.append(w.batch(&events, &[])).await.unwrap();
        assert_eq!(read(log, &session(1), 698).await.len(), 2);
        assert_eq!(read(log, &session(1), 700).await.len(), 0);
        assert_eq!(read(log, &session(9), 0).await.len(), 0);
        let mut seen = 0;
        log.read(&session(1), 0, &mut |_| {
            seen += 1;
            seen < 300
        })
        .await
        .unwrap();
        assert_eq!(seen, 300);
    }

    pub async fn blobs_come_with_their_facts(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        let (small, large) = (Blob::new(vec![7; 1000]), Blob::new(vec![9; (1 << 20) + 1]));
        let batch =
            Batch { blobs: vec![small.clone(), large.clone()], ..w.batch(&[said("a")], &[]) };
        assert_eq!(log.append(batch).await, Ok(Appended::Done));
        let again =
            Batch { blobs: vec![small.clone(), large.clone()], ..w.batch(&[said("b")], &[]) };
        assert_eq!(log.append(again).await, Ok(Appended::Done));
        assert_eq!(log.blob(small.hash).await, Ok(Some(small.bytes)));
        assert_eq!(log.blob(large.hash).await, Ok(Some(large.bytes)));
        assert_eq!(log.blob(Hash::ZERO).await, Ok(None));
    }

    pub async fn a_conflict_leaves_nothing_behind(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        log.append(w.batch(&[said("a")], &[])).await.unwrap();
        let blob = Blob::new(vec![1, 2, 3]);
        let mut late = Writer::new(session(1));
        let charge = Some(Charge { day: 3, micros: 10, version: 0 });
        let batch =
            Batch { blobs: vec![blob.clone()], charge, ..late.batch(&[said("b")], &["lost"]) };
        assert_eq!(log.append(batch).await, Ok(Appended::Conflict));
        assert_eq!(log.blob(blob.hash).await, Ok(None));
        assert_eq!(log.answered(&session(1), &"lost".parse().unwrap()).await, Ok(None));
        assert_eq!(log.day_total(3).await, Ok(DayTotal::default()));
    }

    pub async fn lists_are_newest_first_and_by_folder(log: &dyn Store) {
        for n in 1..=3 {
            let mut w = Writer::new(session(n));
            let mut batch = w.batch(&[said("a")], &[]);
            batch.listing.workspace = if n == 2 { "/other".into() } else { "/w".into() };
            log.append(batch).await.unwrap();
        }
        let ids =
            |rows: Vec<dunnock_ports::Listed>| rows.into_iter().map(|r| r.id).collect::<Vec<_>>();
        assert_eq!(ids(log.list(None, 10).await.unwrap()), [session(3), session(2), session(1)]);
        assert_eq!(ids(log.list(Some("/w"), 10).await.unwrap()), [session(3), session(1)]);
        assert_eq!(ids(log.list(None, 1).await.unwrap()), [session(3)]);
        let row = &log.list(Some("/other"), 1).await.unwrap()[0];
        assert_eq!(
            (row.title.as_str(), row.status.as_str(), row.version, row.seq),
            ("a title", "done", 1, 1)
        );
        assert_eq!((row.created, row.updated), (At(1000), At(1000)));
    }

    pub async fn prefixes_find_sessions(log: &dyn Store) {
        for n in [11, 12, 21] {
            log.append(Writer::new(session(n)).batch(&[said("a")], &[])).await.unwrap();
        }
        assert_eq!(log.find("session02").await, Ok(vec![session(21)]));
        assert_eq!(log.find("session01").await.unwrap().len(), 2);
        assert_eq!(log.find("zzz").await, Ok(vec![]));
        assert_eq!(log.find("").await.unwrap().len(), 2);
    }

    pub async fn words_are_found_once_indexed(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        log.append(w.batch(&[said("the dunnock sings"), said("in the hedge")], &[])).await.unwrap();
        log.index(None).await.unwrap();
        log.append(w.batch(&[said("another hedge")], &[])).await.unwrap();
        log.index(None).await.unwrap();
        assert_eq!(log.index(None).await, Ok(0));
        let found = log.search("hedge", 10).await.unwrap();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|f| f.session == session(1) && f.seq >= 2));
        assert_eq!(log.search("dunnock hedge", 10).await.unwrap().len(), 0);
        assert_eq!(
            log.search("\"* OR NEAR( -", 10).await.unwrap().len(),
            0,
            "words are not a query language"
        );
        assert_eq!(log.search("", 10).await.unwrap().len(), 0);
    }

    pub async fn the_ledger_has_versions(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        let charge = |micros, version| Some(Charge { day: 9, micros, version });
        let first = Batch { charge: charge(50, 0), ..w.batch(&[said("a")], &[]) };
        assert_eq!(log.append(first).await, Ok(Appended::Done));
        assert_eq!(log.day_total(9).await, Ok(DayTotal { micros: 50, version: 1 }));
        let mut other = Writer::new(session(2));
        let stale = Batch { charge: charge(70, 0), ..other.batch(&[said("a")], &[]) };
        assert_eq!(log.append(stale).await, Ok(Appended::Conflict));
        assert_eq!(read(log, &session(2), 0).await.len(), 0);
        let back = Batch { charge: charge(-80, 1), ..w.batch(&[said("b")], &[]) };
        assert_eq!(log.append(back).await, Ok(Appended::Done));
        assert_eq!(log.day_total(9).await, Ok(DayTotal { micros: 0, version: 2 }));
    }

    pub async fn a_long_batch_is_one_append(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        let events: Vec<Event> = (0..100).map(|n| said(&n.to_string())).collect();
        assert_eq!(log.append(w.batch(&events, &[])).await, Ok(Appended::Done));
        assert_eq!(read(log, &session(1), 0).await.len(), 100);
        let nothing = w.batch(&[], &[]);
        assert_eq!(log.append(nothing).await, Ok(Appended::Done));
    }

    pub async fn sessions_do_not_mix(log: &dyn Store) {
        let mut writers: Vec<Writer> = (1..=3).map(|n| Writer::new(session(n))).collect();
        for round in 0..5 {
            for (n, w) in writers.iter_mut().enumerate() {
                log.append(w.batch(&[said(&format!("{n} {round}"))], &[])).await.unwrap();
            }
        }
        for (n, w) in writers.iter().enumerate() {
            let mut chain = Hash::ZERO;
            for (seq, record) in read(log, &w.session, 0).await.iter().enumerate() {
                chain = verify_chain(seq as Seq, chain, record).unwrap();
                assert!(matches!(&record.body, Body::Text(t) if t.contains(&format!("{n} {seq}"))));
            }
            assert_eq!(chain, w.chain);
        }
    }

    pub async fn erased_bodies_keep_their_hash(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        let mut batch = w.batch(&[said("secret")], &[]);
        batch.records[0].body = Body::Erased(batch.records[0].body.hash());
        log.append(batch).await.unwrap();
        assert_eq!(read(log, &session(1), 0).await[0].chain(), w.chain);
    }

    pub async fn appends_race_and_one_wins(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        log.append(w.batch(&[said("start")], &[])).await.unwrap();
        for round in 0..20u64 {
            let rivals = (0..4).map(|n| {
                let mut rival = Writer { seq: w.seq, chain: w.chain, session: session(1) };
                rival.batch(&[said(&format!("{round} {n}"))], &[&format!("r{round}-{n}")])
            });
            let ends = futures_join(rivals.map(|b| log.append(b)).collect()).await;
            assert_eq!(ends.iter().filter(|e| **e == Ok(Appended::Done)).count(), 1);
            assert_eq!(ends.iter().filter(|e| **e == Ok(Appended::Conflict)).count(), 3);
            let last = read(log, &session(1), w.seq).await;
            assert_eq!(last.len(), 1);
            (w.seq, w.chain) = (w.seq + 1, last[0].chain());
        }
    }

    pub async fn the_head_is_stored_beside_the_facts(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        assert_eq!(log.tip(&session(1)).await, Ok(None));
        log.append(w.batch(&[said("a"), said("b")], &[])).await.unwrap();
        assert_eq!(log.tip(&session(1)).await, Ok(Some((2, w.chain))));
    }

    pub async fn one_command_twice_in_a_batch_is_written_by_nobody(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        log.append(w.batch(&[said("a")], &[])).await.unwrap();
        let twice = w.batch(&[said("b"), said("b")], &["x", "x"]);
        assert!(matches!(log.append(twice).await, Ok(Appended::Repeated(..))));
        assert_eq!(read(log, &session(1), 0).await.len(), 1);
        assert_eq!(log.answered(&session(1), &"x".parse().unwrap()).await, Ok(None));
    }

    pub async fn a_cause_of_a_later_release_is_kept(log: &dyn Store) {
        let mut w = Writer::new(session(1));
        let mut batch = w.batch(&[said("a")], &[]);
        batch.records[0].envelope.cause = Cause::Other("dream 7".into());
        let wrote = batch.records.clone();
        log.append(batch).await.unwrap();
        assert_eq!(read(log, &session(1), 0).await, wrote);
    }

    type Ends = Vec<Result<Appended, dunnock_ports::StoreError>>;

    /// Polls all of them together.
    async fn futures_join(
        mut waits: Vec<dunnock_ports::BoxFuture<'_, Result<Appended, dunnock_ports::StoreError>>>,
    ) -> Ends {
        let mut ends: Vec<Option<_>> = waits.iter().map(|_| None).collect();
        std::future::poll_fn(|cx| {
            for (wait, end) in waits.iter_mut().zip(&mut ends) {
                if end.is_none()
                    && let std::task::Poll::Ready(done) = wait.as_mut().poll(cx)
                {
                    *end = Some(done);
                }
            }
            if ends.iter().all(Option::is_some) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        ends.into_iter().flatten().collect()
    }
}
