//! Random worlds: a million steps, with crashes, takeovers, doubts and forged reports.

use crate::inputs::{self, KINDS};
use crate::props;
use crate::rng::Rng;
use crate::world::{Came, Tally, World, fold, refold};
use dunnock_core::policy::{Findings, Policy};
use dunnock_core::{Call, Phase, PhaseName, State, wanted};
use dunnock_proto::*;
use std::collections::BTreeMap;
use std::time::Instant;

/// One world of some eighty steps, then everything is answered until it rests.
fn world(seed: u64) -> Tally {
    let mut w = World::new(seed);
    for _ in 0..80 {
        one(&mut w);
        props::now(&w);
        if w.r.chance(5) {
            props::replay(&w);
        }
    }
    w.closed_doors();
    come_to_rest(&mut w);
    props::history(&w);
    std::mem::take(&mut w.tally)
}

fn one(w: &mut World) {
    if w.driver.is_none() {
        // Nobody drives: now and then somebody answers from outside meanwhile.
        if w.r.chance(30) {
            outside(w);
        }
        let _ = w.take_over();
        return props::replay(w);
    }
    let roll = w.r.below(100);
    let lingering = w.driver.as_ref().is_some_and(|p| {
        matches!(p.state.phase, Phase::Rewinding { .. } | Phase::Compacting { .. })
    });
    match roll {
        0..=3 => {
            props::replay(w);
            w.crash();
        }
        4 => {
            let _ = w.take_over();
        } // a second process takes the session from a living one
        5..=14 => outside(w),
        15..=64 if !lingering || roll < 30 => {
            if w.report_one().is_none() {
                let s = &w.driver.as_ref().expect("a driver").state.clone();
                let command = match s.questions.is_empty() {
                    false => inputs::reply(&mut w.r, s),
                    true if w.r.chance(25) && s.phase == Phase::Rest => undo_and_back(w),
                    true => {
                        w.serial += 1;
                        Command::Prompt {
                            text: format!("prompt {}", w.serial).into(),
                            images: Vec::new(),
                        }
                    }
                };
                let _ = w.drive(inputs::Raw::Command(command));
            }
        }
        _ => {
            let s = w.driver.as_ref().expect("a driver").state.clone();
            let kind = *w.r.pick(&KINDS).expect("a kind");
            let raw = inputs::any(&mut w.r, &s, kind, &mut w.serial);
            // A `Take` that comes as an input is another process's: it must not go through this
            // driver.
            if !matches!(raw, inputs::Raw::Take(_)) || w.r.chance(20) {
                let took = matches!(raw, inputs::Raw::Take(_));
                let came = w.drive(raw);
                if took && matches!(came, Came::Accepted(_)) {
                    w.crash();
                }
            }
        }
    }
}

fn outside(w: &mut World) {
    let s = fold(&w.store.log);
    let command = match w.r.below(6) {
        0..=2 => inputs::reply(&mut w.r, &s),
        3 => Command::Interrupt,
        _ => {
            w.serial += 1;
            Command::Prompt { text: format!("prompt {}", w.serial).into(), images: Vec::new() }
        }
    };
    let _ = w.answer_from_outside(command);
    if w.r.chance(50) {
        w.poke();
    }
}

/// A rewind of a rewind restores what was said. Returns a command to go on with.
fn undo_and_back(w: &mut World) -> Command {
    let before = refold(&w.store.log);
    let told = |t: &dunnock_core::Transcript| t.request().map(|r| (r.hash(), r.bytes()));
    let seq = w.store.log.len() as Seq;
    let to = RewindTo::Event(1 + w.r.below(seq));
    let rewind = |to| Command::Rewind { to, scope: Scope::Conversation, force: false };
    if let Came::Accepted(at) = w.answer_from_outside(rewind(to))
        && at == seq + 3
        && let Came::Accepted(back) = w.answer_from_outside(rewind(RewindTo::Undo))
        && back == seq + 6
    {
        let after = refold(&w.store.log);
        assert_eq!(told(&after), told(&before), "a rewind of a rewind did not restore");
        let all = fold(&w.store.log).visible();
        let sum: u64 = all.iter().map(|s| s.to - s.from + 1).sum();
        assert!(sum >= 1 && all.iter().all(|s| s.to <= seq || s.from == back), "{all:?}");
        w.tally.undone += 1;
    }
    w.serial += 1;
    Command::Prompt { text: format!("prompt {}", w.serial).into(), images: Vec::new() }
}

/// With every question answered and every effect reporting, a session comes to rest.
fn come_to_rest(w: &mut World) {
    w.poke();
    for _ in 0..3000 {
        if w.driver.is_none() {
            let _ = w.take_over();
            continue;
        }
        let p = w.driver.as_ref().expect("a driver");
        if !p.state.busy() {
            assert!(wanted(&p.state, p.me).is_empty());
            return;
        }
        let s = p.state.clone();
        match s.questions.first() {
            Some(q) => {
                let answer = match *q.kind {
                    QuestionKind::Limit { .. }
                    | QuestionKind::Budget
                    | QuestionKind::Stalled { .. }
                    | QuestionKind::Unknown { .. } => Answer::No,
                    QuestionKind::Approval(_)
                    | QuestionKind::Person { .. }
                    | QuestionKind::Trust { .. } => Answer::Yes,
                };
                let reply = Command::Reply { question: q.id, hash: q.hash, answer, note: None };
                let _ = w.drive(inputs::Raw::Command(reply));
            }
            None => {
                let _ = w.report_one();
            }
        }
        props::now(w);
    }
    panic!("a session never came to rest: {:?}", w.driver.as_ref().map(|p| &p.state));
}

/// A step budget from the environment: mutation testing uses a small one, long runs a large one.
fn steps() -> u64 {
    std::env::var("DUNNOCK_STEPS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000)
}

#[test]
fn every_property_holds_in_random_worlds() {
    let began = Instant::now();
    let (target, threads) = (steps(), 2);
    let base: u64 = std::env::var("DUNNOCK_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let worker = |n: u64| {
            scope.spawn(move || {
                let mut sum = Tally::default();
                let mut seed = base * 1_000_000 + n;
                while sum.steps < target / threads {
                    let run = std::panic::catch_unwind(|| world(seed));
                    let tally =
                        run.unwrap_or_else(|_| panic!("the world of seed {seed} broke a property"));
                    add(&mut sum, tally);
                    seed += threads;
                }
                sum
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        workers.into_iter().map(|w| w.join().expect("a worker panicked")).collect()
    });
    let mut all = Tally::default();
    tallies.into_iter().for_each(|t| add(&mut all, t));
    report(&all, began.elapsed().as_secs_f64());
    let full = target >= 1_000_000;
    let least = if full { 100 } else { 0 };
    assert!(all.steps >= target);
    assert!(all.changed * 10 >= all.steps * 3, "too few steps change anything");
    if full {
        assert!(all.crashes >= 50_000, "too few crashes: {}", all.crashes);
        assert!(all.undone >= 100, "too few rewinds of rewinds: {}", all.undone);
    }
    for phase in ["Rest", "Ready", "Thinking", "Acting", "Compacting", "Rewinding"] {
        for kind in KINDS {
            let key = |stopping| (phase.to_owned(), stopping, kind);
            let n = [false, true].map(|s| all.pairs.get(&key(s)).copied().unwrap_or(0));
            assert!(
                n[0] + n[1] >= least,
                "{phase} x {kind} was reached only {} times",
                n[0] + n[1]
            );
        }
    }
    // A session is moved by whoever takes it in, not by a decision.
    for kind in Event::KINDS.iter().filter(|kind| **kind != "moved") {
        assert!(
            all.kinds.get(kind).copied().unwrap_or(0) >= least,
            "{kind} was recorded too rarely"
        );
    }
    for refusal in [
        "Stale",
        "NoQuestion",
        "Changed",
        "InvalidAnswer",
        "Busy",
        "NothingToContinue",
        "NoSuchPoint",
        "Budget",
        "Invalid",
        "NotRunning",
        "NotOwner",
        "NoSession",
        "ReadOnly",
    ] {
        assert!(
            all.refusals.get(refusal).copied().unwrap_or(0) >= least,
            "{refusal} was given too rarely"
        );
    }
}

fn add(sum: &mut Tally, t: Tally) {
    sum.steps += t.steps;
    sum.changed += t.changed;
    sum.crashes += t.crashes;
    sum.requests += t.requests;
    sum.undone += t.undone;
    t.pairs.into_iter().for_each(|(k, n)| *sum.pairs.entry(k).or_default() += n);
    t.kinds.into_iter().for_each(|(k, n)| *sum.kinds.entry(k).or_default() += n);
    t.refusals.into_iter().for_each(|(k, n)| *sum.refusals.entry(k).or_default() += n);
}

fn report(all: &Tally, seconds: f64) {
    let share = all.changed * 100 / all.steps;
    println!(
        "core: {} steps ({share} % change the state), {} crashes, {} requests rebuilt, {} rewinds \
         undone, {seconds:.1} s",
        all.steps, all.crashes, all.requests, all.undone
    );
    let phases = [
        PhaseName::Rest,
        PhaseName::Ready,
        PhaseName::Thinking,
        PhaseName::Acting,
        PhaseName::Compacting,
        PhaseName::Rewinding,
    ];
    println!(
        "{:>16} {}",
        "phase x input",
        phases.map(|p| format!("{:>11}", format!("{p:?}"))).join("")
    );
    for kind in KINDS {
        let row = phases.map(|p| {
            let n: u64 = [false, true]
                .iter()
                .filter_map(|s| all.pairs.get(&(format!("{p:?}"), *s, kind)))
                .sum();
            format!("{n:>11}")
        });
        println!("{kind:>16} {}", row.join(""));
    }
    for (name, table) in [
        ("facts", all.kinds.iter().map(|(k, n)| (k.to_string(), *n)).collect::<Vec<_>>()),
        ("refusals", all.refusals.iter().map(|(k, n)| (k.clone(), *n)).collect()),
    ] {
        let words: Vec<String> = table.iter().map(|(k, n)| format!("{k} {n}")).collect();
        println!("{name}: {}", words.join(", "));
    }
}

/// Lists of another release: they find nothing at all.
fn find_nothing(_: &State, _: &Call) -> Findings {
    Findings::default()
}

/// And of a third: every command needs everything, every edit is asked about.
fn find_everything(_: &State, call: &Call) -> Findings {
    let access = match call.class {
        Class::Command => {
            let all = Access { network: true, secrets: true, protected: true, ..Access::NOTHING };
            Access { git_config: true, unsandboxed: true, ..all }
        }
        Class::Read | Class::Edit => Access::NOTHING,
    };
    Findings { never: None, reasons: vec![Reason::NamesSecret], access, ..Findings::default() }
}

/// Every process has lists of its own, so that what one decided is folded, taken over and run by
/// others. The state of a log does not depend on lists, and a call has exactly the access that was
/// recorded when it was allowed.
#[test]
fn a_log_is_folded_and_run_the_same_whatever_the_lists_say() {
    let lists = [
        Policy::default(),
        Policy { findings: find_nothing },
        Policy { findings: find_everything },
    ];
    let (mut granted, mut crossed) = (0, 0);
    for seed in 0..700 {
        let mut w = World::new(seed);
        w.lists = lists.to_vec();
        for _ in 0..80 {
            one(&mut w);
            props::replay(&w);
        }
        let (all, more) = props::access(&w.store.log);
        granted += all;
        crossed += more;
    }
    println!(
        "{granted} calls began with the access that was recorded, {crossed} of them with more \
         than the sandbox"
    );
    assert!(granted > 4_000 && crossed > 400, "{granted} {crossed}");
}

#[test]
fn the_same_seed_makes_the_same_world() {
    let (a, b) = (world(42), world(42));
    assert_eq!((a.steps, a.changed, a.kinds), (b.steps, b.changed, b.kinds));
    let mut r = Rng::new(1);
    assert_ne!(r.next(), r.next());
}

/// The text without what a rename changes: names become what they were called when the digests were
/// made (`fixtures/renames.txt`), and hashes, which depend on names, become their order of
/// appearance.
fn without_names(
    text: &str,
    old_names: &BTreeMap<&str, &str>,
    hashes: &mut BTreeMap<String, usize>,
) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| word(c) != word(first)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(length);
        rest = after;
        // A hash, or the beginning of one.
        if (piece.len() == 8 || piece.len() >= 16) && piece.bytes().all(|b| b.is_ascii_hexdigit()) {
            let next = hashes.len();
            out += &format!("#{}", hashes.entry(piece[..8].to_owned()).or_insert(next));
        } else {
            out += old_names.get(piece).copied().unwrap_or(piece);
        }
    }
    out
}

/// Old logs must fold as they always did, and old inputs must decide as they always did. If this
/// fails, either something broke, or the change is meant: then `DUNNOCK_BLESS=1` writes the new
/// digests, and the changelog says why.
#[test]
fn worlds_come_out_as_they_did() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let path = fixtures.join("worlds.txt");
    let renames = std::fs::read_to_string(fixtures.join("renames.txt"))
        .expect("fixtures/renames.txt is there");
    let old_names: BTreeMap<&str, &str> = renames
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(old, new)| (new, old))
        .collect();
    let digest = |seed: u64| {
        let mut hashes = BTreeMap::new();
        let mut w = World::new(seed);
        for _ in 0..80 {
            one(&mut w);
        }
        come_to_rest(&mut w);
        let log: String =
            w.store.log.iter().map(|e| format!("{} {}\n", e.kind(), e.body())).collect();
        let log = without_names(&log, &old_names, &mut hashes);
        let mut s = dunnock_core::State::default();
        let mut states = Vec::new();
        for event in &w.store.log {
            dunnock_core::apply(&mut s, event);
            let state = without_names(&format!("{s:?}"), &old_names, &mut hashes);
            states.extend_from_slice(&Hash::of(state.as_bytes()).0);
        }
        format!("{seed} {} {}\n", Hash::of(log.as_bytes()), Hash::of(&states))
    };
    let digests: String = (0..300).map(digest).collect();
    if std::env::var_os("DUNNOCK_BLESS").is_some() {
        std::fs::write(&path, &digests).expect("fixtures can be written");
    }
    let stored = std::fs::read_to_string(&path).expect("fixtures/worlds.txt is there");
    let first = digests.lines().zip(stored.lines()).find(|(a, b)| a != b);
    assert_eq!(first, None, "the first world that came out differently");
    assert_eq!(digests.len(), stored.len());
}
