//! R1: the process is killed at every named place, in three scenarios, and started again.

use dunnock_core::Transcript;
use dunnock_ports::{Catalogue as _, EventLog as _};
use dunnock_proto::*;
use dunnock_store::Sqlite;
use dunnock_testkit::scenario::NAMES;
use dunnock_testkit::tools::ScriptedTools;
use dunnock_testkit::worlds;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command as Process, Output, Stdio};

pub const DOOR: &str = env!("CARGO_BIN_EXE_dunnock-testdoor");

pub fn connection(verb: &str, dir: &Path, scenario: &str) -> Process {
    let mut command = Process::new(DOOR);
    command
        .args([verb, &dir.to_string_lossy(), scenario])
        .stdin(Stdio::null())
        .env("RUST_BACKTRACE", "0");
    command
}

pub fn told(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|l| l.starts_with("FACT "))
        .map(str::to_owned)
        .collect()
}

pub fn acked(output: &Output) -> Vec<(String, Seq)> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let acks = text.lines().filter_map(|l| l.strip_prefix("ACK "));
    acks.filter_map(|l| l.split_once(' '))
        .map(|(id, seq)| (id.to_owned(), seq.parse().unwrap()))
        .collect()
}

/// What a session came to.
pub struct Came {
    pub facts: Vec<(Seq, Event)>,
    pub lines: Vec<String>,
    pub messages: Vec<u8>,
}

pub async fn look(dir: &Path) -> Came {
    let store = Sqlite::open(&dir.join("data")).await.unwrap().store;
    let session = store.list(None, 1).await.unwrap()[0].id.clone();
    let facts = worlds::facts(&store, &session).await;
    let mut lines = Vec::new();
    store
        .read(&session, 0, &mut |r| {
            lines.push(format!("FACT {} {} {}", r.envelope.seq, r.envelope.kind, r.chain()));
            true
        })
        .await
        .unwrap();
    dunnock_engine::check_chain(&store, &session).await.unwrap();
    let transcript = Transcript::fold(None, facts.iter().map(|(seq, e)| (*seq, e)));
    let messages = transcript.request().map(|r| r.bytes()).unwrap_or_default();
    store.close().await;
    Came { facts, lines, messages }
}

pub fn unknown(came: &Came) -> BTreeSet<CallId> {
    let lost = came.facts.iter().filter_map(|(_, e)| match e {
        Event::Finished(f) if f.outcome == Outcome::Unknown => Some(f.call),
        _ => None,
    });
    lost.collect()
}

/// The calls that had begun when the process died, that may not simply run again, and whose end
/// nobody knows: they had not ended, or their launcher died before.
pub async fn begun(dir: &Path) -> BTreeSet<CallId> {
    let mut open = BTreeSet::new();
    let Ok(opened) = Sqlite::open(&dir.join("data")).await else { return open };
    if let Some(listed) = opened.store.list(None, 1).await.unwrap().first() {
        for (_, event) in worlds::facts(&opened.store, &listed.id).await {
            match event {
                Event::Started(e) if e.recovery == Recovery::Unknown => drop(open.insert(e.call)),
                Event::Finished(e) if e.outcome != Outcome::Unknown => drop(open.remove(&e.call)),
                _ => {}
            }
        }
    }
    opened.store.close().await;
    open
}

/// What was acknowledged is there right after the kill, before anything could mend it.
pub async fn check_acks(what: &str, dir: &Path, output: &Output) {
    let acked = acked(output);
    let Some((_, last)) = acked.last() else { return };
    let store = Sqlite::open(&dir.join("data")).await.unwrap().store;
    let session = store.list(None, 1).await.unwrap()[0].id.clone();
    for (id, seq) in &acked {
        let stored = store.answered(&session, &id.parse().unwrap()).await.unwrap();
        assert_eq!(stored, Some(*seq), "{what}: {id} was acknowledged and then lost");
    }
    assert!(store.tip(&session).await.unwrap().is_some_and(|(seq, _)| seq >= *last), "{what}");
    store.close().await;
}

/// Holds a killed and resumed run against one that was not killed.
pub fn compare(
    what: &str,
    before: &Output,
    begun: &BTreeSet<CallId>,
    after: &Came,
    base: &Came,
    dir: &Path,
) -> bool {
    for line in told(before) {
        assert!(after.lines.contains(&line), "{what}: told and then lost: {line}");
    }
    let lost = unknown(after);
    let mut starts: BTreeMap<String, u32> = BTreeMap::new();
    for (call, tool) in ScriptedTools::traces(&worlds::traces(dir)) {
        let times = starts.entry(call.clone()).or_default();
        *times += 1;
        assert!(
            *times == 1 || tool == "view" || tool == "verify",
            "{what}: {tool} {call} ran twice"
        );
    }
    for (_, event) in &after.facts {
        if let Event::Finished(f) = event
            && f.outcome == Outcome::Done
            && f.isolation.is_some()
        {
            assert!(
                starts.contains_key(&f.call.to_string()),
                "{what}: {} is done and never ran",
                f.call
            );
        }
    }
    if lost.is_empty() {
        assert_eq!(
            String::from_utf8_lossy(&after.messages),
            String::from_utf8_lossy(&base.messages),
            "{what}: the transcript differs"
        );
    }
    assert_eq!(lost, *begun, "{what}: unknown is what had begun and not ended, and nothing else");
    let ended = after
        .facts
        .iter()
        .filter(|(_, e)| matches!(e, Event::Ended(e) if e.reason == EndReason::Done))
        .count();
    let expect = base
        .facts
        .iter()
        .filter(|(_, e)| matches!(e, Event::Ended(e) if e.reason == EndReason::Done))
        .count();
    assert_eq!(ended, expect, "{what}: it did not come to its end");
    !lost.is_empty()
}

/// Everything for one scenario: a run that lists the places, then a kill and a resume at each.
async fn scenario(name: &str) -> (usize, usize, Vec<String>) {
    let whole = tempfile::tempdir().unwrap();
    let list = whole.path().join("places");
    let output =
        connection("drive", whole.path(), name).env("DUNNOCK_FAIL_LIST", &list).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    let base = look(whole.path()).await;
    let text = std::fs::read_to_string(&list).unwrap();
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    text.lines().for_each(|l| *times.entry(l.to_owned()).or_default() += 1);
    let mut places: Vec<String> = Vec::new();
    for (place, n) in &times {
        places.push(format!("{place}#1"));
        if *n > 1 {
            places.push(format!("{place}#{n}"));
        }
    }
    let mut unknowns = 0;
    let mut killed = 0;
    for place in &places {
        let dir = tempfile::tempdir().unwrap();
        let before =
            connection("drive", dir.path(), name).env("DUNNOCK_FAIL_AT", place).output().unwrap();
        // With work in parallel, a later round may pass a place less often than the first did.
        killed += usize::from(!before.status.success());
        check_acks(&format!("{name} at {place}"), dir.path(), &before).await;
        let begun = begun(dir.path()).await;
        let resumed = connection("drive", dir.path(), name).output().unwrap();
        assert!(
            resumed.status.success(),
            "{name} at {place}: {}",
            String::from_utf8_lossy(&resumed.stdout)
        );
        let after = look(dir.path()).await;
        unknowns += usize::from(compare(
            &format!("{name} at {place}"),
            &before,
            &begun,
            &after,
            &base,
            dir.path(),
        ));
    }
    println!(
        "R1 {name}: {} places, {} kills, {killed} struck, {unknowns} with an unknown outcome",
        times.len(),
        places.len()
    );
    (times.len(), killed, times.into_keys().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_plain_is_killed_everywhere_and_nothing_is_lost() {
    let (places, killed, names) = scenario(NAMES[0]).await;
    println!("{}", names.join(" "));
    assert!(places >= 60 && killed >= 60, "{places} places, {killed} kills");
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_parallel_is_killed_everywhere_and_nothing_is_lost() {
    let (places, killed, names) = scenario(NAMES[1]).await;
    println!("{}", names.join(" "));
    assert!(places >= 60 && killed >= 60, "{places} places, {killed} kills");
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_question_is_killed_everywhere_and_nothing_is_lost() {
    let (places, killed, names) = scenario(NAMES[2]).await;
    println!("{}", names.join(" "));
    assert!(places >= 60 && killed >= 60, "{places} places, {killed} kills");
}
