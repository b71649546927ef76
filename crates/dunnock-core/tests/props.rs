//! The properties, each checked by code that does not use the code it checks: oracles over the log.

use crate::inputs::{Kind, LINES, PATHS};
use crate::world::{World, fold, refold};
use dunnock_core::{
    Call, DecideContext, Effect, Input, Phase, Report, Stage, State, apply, begin, decide, due,
    settled, stopping, wanted,
};
use dunnock_proto::*;
use std::collections::{BTreeMap, BTreeSet};

/// Checked after every decide, on the driver's state.
pub fn now(w: &World) {
    let Some(p) = &w.driver else { return };
    let s = &p.state;
    let want = wanted(s, p.me);
    assert_eq!(
        s.busy(),
        !want.is_empty() || s.stopping,
        "busy if and only if something is wanted or stopping: {s:?}"
    );
    assert!(wanted(s, Owner(424_242)).is_empty(), "only the owner wants anything");
    assert!(stopping(s, Owner(424_242)).is_empty() && begin(s, Owner(424_242)).is_empty());
    for effect in &want {
        let waits = matches!(
            effect,
            Effect::AskPerson { .. }
                | Effect::Wake { .. }
                | Effect::Join { .. }
                | Effect::AwaitInbox { .. }
        );
        assert_eq!(effect.parked(), waits, "a driver may leave only what waits: {effect:?}");
    }
    let works = s.stopping || want.iter().any(|effect| !effect.parked());
    assert_eq!(settled(s), !works, "settled if and only if nothing works: {s:?}");
    let starts = !begin(s, p.me).is_empty();
    let expected = if works || starts { Some(At(0)) } else { s.wake };
    let readable = s.read_only.is_none();
    assert_eq!(due(s), expected.filter(|_| readable), "due when there is work: {s:?}");
    let mut left = s.clone();
    left.owner = None;
    assert_eq!(due(&left), due(s), "it is due whoever owns it: {s:?}");
    for effect in stopping(s, p.me) {
        let work = effect.cut().unwrap_or_else(|| panic!("{effect:?} cannot be cut"));
        let report = Input::Report(Report { owner: p.me, work });
        let events =
            decide(s, &DecideContext::default(), report).expect("what is waited for is accepted");
        assert!(!events.is_empty(), "an interrupt would wait for ever");
    }
    for call in &s.calls {
        if let Stage::Started(owner) = call.stage {
            assert_eq!(owner, p.me, "a call of a dead process still counts as started");
        }
    }
    assert!(s.bounds.len() <= 4 && s.calls.len() < 40 && s.questions.len() < 40, "the state grows");
    if s.stopping {
        assert!(
            !matches!(s.phase, Phase::Rest | Phase::Ready | Phase::Rewinding { .. }),
            "stopping with nothing to stop"
        );
    }
}

/// Replay equals live, at a crash and now and then.
pub fn replay(w: &World) {
    let Some(p) = &w.driver else { return };
    let log = &w.store.log[..p.state.seq as usize];
    assert_eq!(fold(log), p.state, "replay differs from live");
    let again = refold(log);
    assert_eq!(again.len(), p.transcript.len());
    assert_eq!(again.request().map(|r| r.hash()), p.transcript.request().map(|r| r.hash()));
}

/// Checked once for each world, over its whole log.
pub fn history(w: &World) {
    let log = &w.store.log;
    let mut s = State::default();
    let mut open: BTreeMap<CallId, bool> = BTreeMap::new(); // call -> writer
    let mut done: BTreeSet<CallId> = BTreeSet::new();
    let mut allowed: BTreeSet<CallId> = BTreeSet::new();
    let mut approvals: BTreeMap<QuestionId, Approval> = BTreeMap::new();
    let mut replied: BTreeMap<QuestionId, Answer> = BTreeMap::new();
    let mut granted: BTreeSet<Rule> = BTreeSet::new();
    let mut best: Option<Isolation> = None;
    let mut step = if let Some(Event::Forked(e)) = log.first() { e.step.0 } else { 0 };
    let mut question = 0;
    let mut told = 0;
    for (seq, event) in (1..).zip(log) {
        match event {
            Event::Answered(e) => {
                assert!(open.is_empty(), "an answer while calls of the one before are open");
                assert_eq!(e.step.0, step, "an answer to another step was taken");
                let calls = e.parts.iter().filter_map(|p| match p {
                    Part::Call(c) => Some(c),
                    Part::Text { .. } | Part::Reasoning { .. } => None,
                });
                open = calls
                    .zip(0..)
                    .map(|(c, index)| {
                        let reader = matches!(
                            c.tool.as_str(),
                            "view" | "fetch" | "ask_person" | "update_plan" | "final_output"
                        );
                        (CallId { step: e.step, index }, !reader)
                    })
                    .collect();
            }
            Event::CheckCalled(e) => {
                open.insert(e.call, true);
            }
            Event::Asked(e) => {
                assert!(e.question.0 > question, "a question's id came again");
                question = e.question.0;
                if let QuestionKind::Approval(approval) = &e.kind {
                    assert_eq!(
                        e.hash,
                        e.kind.hash(e.question),
                        "the hash is not that of what is shown"
                    );
                    approvals.insert(e.question, approval.as_ref().clone());
                }
            }
            Event::Replied(e) => {
                assert!(
                    replied.insert(e.question, e.answer.clone()).is_none(),
                    "two answers to one question"
                );
            }
            Event::Granted(e) => drop(granted.insert(e.rule.clone())),
            Event::OwnerChanged(e) if best.is_none_or(|best| e.isolation < best) => {
                best = Some(e.isolation);
            }
            Event::Revoked(e) => drop(granted.remove(&e.rule)),
            Event::Allowed(e) => {
                assert!(open.contains_key(&e.call), "a call that is not open was allowed");
                assert!(allowed.insert(e.call), "allowed twice");
                may_run(&s, e, (&approvals, &replied, &granted), best);
            }
            Event::Started(e) => {
                let doubt =
                    s.questions.iter().any(|q| matches!(*q.kind, QuestionKind::Unknown { .. }));
                assert!(!doubt, "work went on while it was asked whether it may");
                assert!(allowed.contains(&e.call), "begun unasked: {}", e.call);
                let writer = open[&e.call];
                for (other, writes) in open.range(..e.call) {
                    assert!(!(writer || *writes), "{} began before {other} had ended", e.call);
                }
                assert!(
                    !(writer && s.dirty.is_some()),
                    "a writer began before the files were kept"
                );
                assert!(!s.stopping, "a call began while stopping");
                let action = !s.call(e.call).is_some_and(|c| c.harness);
                if s.config.steps().sequential && action {
                    assert!(
                        open.range(..e.call).next().is_none(),
                        "an action began beside another"
                    );
                }
                if s.config.steps().drop_after_failure && action {
                    let failed =
                        |c: &&Call| c.id < e.call && c.stage == Stage::Finished { ok: false };
                    assert!(
                        s.calls.iter().find(failed).is_none(),
                        "an action ran behind one that failed"
                    );
                }
            }
            Event::OutboxWritten(e) => {
                assert_eq!(e.step.0, step, "a request of another step was handed over");
                assert!(
                    s.via_bridge() && s.awaiting_reply().is_none(),
                    "handed over twice, or to nobody"
                );
            }
            Event::Finished(e) => {
                assert!(open.remove(&e.call).is_some(), "{} ended twice or never was", e.call);
                assert!(done.insert(e.call), "{} ended in two steps", e.call);
            }
            Event::StepStarted(e) => {
                assert!(open.is_empty(), "a request while calls are open: {open:?}");
                assert_eq!(e.step.0, step + 1, "steps are counted on");
                step += 1;
                assert_eq!(e.upto, seq - 1, "a step tells everything before it");
                assert!(s.questions.is_empty(), "a request while a question stands");
                told = e.upto;
                let budget = s.config.budget.tokens.map(|b| b * (1 + s.extended));
                assert!(
                    budget.is_none_or(|b| s.spent.tokens + e.reserved.tokens <= b),
                    "over the budget"
                );
            }
            Event::Ended(e) => {
                assert!(open.is_empty(), "an end while calls are open: {:?} {open:?}", e.reason);
                if e.reason == EndReason::Done {
                    assert!(
                        s.config.verify.is_empty() || e.proof == Proof::Proven,
                        "done without its proof"
                    );
                    assert_eq!(s.unseen, 0, "an end swallowed a prompt");
                }
            }
            Event::Compacted(e) => assert!(e.after < e.before, "compaction made it longer"),
            Event::CompactionStarted(_) => {
                assert!(open.is_empty(), "compaction while calls are open")
            }
            Event::RewindRequested(_) => assert_eq!(s.phase, Phase::Rest, "a rewind while busy"),
            Event::RewindFailed(_) => assert!(matches!(s.phase, Phase::Rewinding { .. })),
            Event::Rewound(e) => {
                let mut last = 0;
                for span in &e.spans {
                    assert!(
                        last < span.from && span.from <= span.to && span.to < seq,
                        "spans are out of order"
                    );
                    last = span.to;
                }
            }
            Event::Created(_)
            | Event::Forked(_)
            | Event::Moved(_)
            | Event::Baselined(_)
            | Event::Configured(_)
            | Event::PreambleSet(_)
            | Event::Prompted(_)
            | Event::Continued(_)
            | Event::StepFailed(_)
            | Event::TimerFired(_)
            | Event::Planned(_)
            | Event::InterruptRequested(_)
            | Event::OwnerChanged(_)
            | Event::Checkpointed(_)
            | Event::CompactionFailed(_)
            | Event::Titled(_)
            | Event::Noticed(_) => {}
        }
        let version = s.version;
        apply(&mut s, event);
        let person = matches!(
            event.kind(),
            "created"
                | "forked"
                | "configured"
                | "prompted"
                | "continued"
                | "replied"
                | "revoked"
                | "interrupt_requested"
                | "rewind_requested"
                | "titled"
        ) || matches!(event, Event::CompactionStarted(e) if e.asked);
        assert_eq!(s.version, if person { seq } else { version }, "version after {}", event.kind());
    }
    prompts_told_once(w, told);
    requests(w);
    for (call, times) in &w.begun {
        let again = times.iter().skip(1);
        for (recovery, _) in again {
            assert!(
                matches!(recovery, Recovery::Repeat | Recovery::Rejoin),
                "{call} ran twice: {times:?}"
            );
        }
        let owners: BTreeSet<Owner> = times.iter().map(|(_, o)| *o).collect();
        assert_eq!(owners.len(), times.len(), "{call} was begun twice by one process");
    }
}

/// Every call that begins has the access that its allowance names, and one that a person allowed
/// has what they were shown. How many began, and how many of those with more than the sandbox.
pub fn access(log: &[Event]) -> (u64, u64) {
    let mut s = State::default();
    let mut shown: BTreeMap<QuestionId, [Access; 2]> = BTreeMap::new();
    let mut recorded: BTreeMap<CallId, Access> = BTreeMap::new();
    let (mut all, mut more) = (0, 0);
    for event in log {
        match event {
            Event::Asked(e) => {
                let of = |asked: &Approval| [asked.access.clone(), asked.wider.clone()];
                shown.extend(e.kind.approval().map(|asked| (e.question, of(asked))));
            }
            Event::Allowed(e) => {
                if let AllowedBy::Person(question) = &e.by {
                    let [narrow, wide] = &shown[question];
                    let edited = e.args.is_some() && narrow.covers(&e.access);
                    assert!(
                        *narrow == e.access || *wide == e.access || edited,
                        "what was granted is not what was shown"
                    );
                }
                recorded.insert(e.call, e.access.clone());
            }
            Event::Started(e) => {
                let call = s.call(e.call).expect("what begins is in work");
                assert_eq!(
                    call.access, recorded[&e.call],
                    "a call began with other access than was recorded"
                );
                all += 1;
                more += u64::from(!call.access.is_nothing());
            }
            _ => {}
        }
        apply(&mut s, event);
    }
    (all, more)
}

/// On whose word a call runs, found out again from the log.
fn may_run(
    s: &State,
    e: &Allowed,
    (approvals, replied, granted): (
        &BTreeMap<QuestionId, Approval>,
        &BTreeMap<QuestionId, Answer>,
        &BTreeSet<Rule>,
    ),
    best: Option<Isolation>,
) {
    let call = s.call(e.call).expect("allowed calls are in work");
    let level = match s.config.sandbox {
        Sandbox::Off => Isolation::D,
        Sandbox::Auto | Sandbox::Require(_) => s.owner.map_or(Isolation::D, |seat| seat.level),
    };
    // Found by its text in a table made by hand, not by what policy makes of it.
    let line = LINES
        .iter()
        .find(|(line, ..)| call.part.args.contains(&format!("{{\"command\":\"{line}\"}}")));
    let line = line.filter(|_| call.class == Class::Command);
    let path =
        PATHS.iter().find(|(path, _)| call.part.args.contains(&format!("{{\"path\":\"{path}\"}}")));
    let kind = match (call.class, line, path) {
        (Class::Command, Some((_, _, kind)), _) => *kind,
        (Class::Edit, _, Some((_, kind))) => *kind,
        (Class::Read, _, Some((".env", _))) => Kind::Asks,
        (Class::Read, ..) => Kind::Looks,
        (Class::Command | Class::Edit, ..) => Kind::Plain,
    };
    // The person accepted this level, or there was never a better one.
    let as_before = match s.config.sandbox {
        Sandbox::Off => true,
        Sandbox::Require(least) if level <= least => true,
        Sandbox::Auto | Sandbox::Require(_) => best.is_none_or(|best| level <= best),
    };
    let reads = kind == Kind::Looks || line.is_some_and(|(line, ..)| line.starts_with("cat "));
    let acts = call.class == Class::Command && !reads;
    let unsandboxed = level == Isolation::D && s.config.sandbox != Sandbox::Off;
    let begins = |words: &[String], c: &[&str]| {
        c.len() >= words.len() && c.iter().zip(words).all(|(a, b)| a == b)
    };
    let denied = s.config.deny.iter().filter(|r| r.tool == call.part.tool).any(|r| match line {
        _ if r.words.is_empty() => true,
        Some((_, commands, kind)) => {
            *kind == Kind::Obscure || commands.iter().any(|c| begins(&r.words, c))
        }
        None => true,
    });
    let args = e.args.as_ref().unwrap_or(&call.part.args);
    assert_eq!(
        e.hash,
        Hash::of_parts(&[call.part.tool.as_bytes(), args.as_bytes()]),
        "what runs is what was allowed"
    );
    match &e.by {
        AllowedBy::Person(q) => {
            let asked = &approvals[q];
            assert_eq!(asked.call, e.call, "the person was asked about another call");
            let wider = !asked.wider.is_nothing() && asked.wider == e.access;
            assert!(wider || asked.access.covers(&e.access), "more was granted than was shown");
            assert!(
                wider || e.args.is_some() || asked.access == e.access,
                "what was granted is not what was shown"
            );
            assert!(
                asked.isolation.is_none_or(|shown| e.isolation == Some(shown)),
                "another isolation was shown"
            );
            assert_eq!(asked.call_hash, call.hash(), "another call was shown");
            match &replied[q] {
                Answer::Yes => assert_eq!(e.args, None),
                Answer::Wider => assert!(!asked.wider.is_nothing() && asked.wider == e.access),
                Answer::Edit { args } => assert_eq!(e.args.as_ref(), Some(args)),
                Answer::Always { rule } => {
                    assert!(
                        granted.contains(rule) && asked.rule.as_ref() == Some(rule),
                        "another rule was shown"
                    );
                }
                other @ (Answer::No | Answer::Text { .. }) => panic!("ran on {other:?}"),
            }
        }
        AllowedBy::Grant(rule) => {
            let opens_hosts = rule.opens_hosts() && rule.access.covers(&e.access);
            assert!(!denied && kind != Kind::Never);
            assert!(opens_hosts || rule.tool == call.part.tool);
            assert!(granted.contains(rule) || s.config.allow.contains(rule));
            if !rule.words.is_empty() {
                let (_, commands, kind) =
                    line.expect("a rule with words matches parsed commands only");
                assert!(*kind != Kind::Obscure && !commands.is_empty());
                assert!(commands.iter().all(|c| begins(&rule.words, c)), "{rule:?} {commands:?}");
            }
            let rules_count = matches!(s.config.mode, Mode::Ask | Mode::Edits | Mode::Auto);
            assert!(rules_count || s.config.mode == Mode::All && unsandboxed);
            assert!(as_before || !acts, "a rule let a command run in a weaker sandbox");
        }
        AllowedBy::Policy(_) => {
            assert!(!denied && kind != Kind::Never, "a denied call ran: {call:?}");
            let fine = match (call.class, s.config.mode) {
                (Class::Command, Mode::All | Mode::Auto) if acts && !as_before => false,
                (_, Mode::All) => !(acts && unsandboxed),
                _ if kind == Kind::Asks => false,
                _ if kind == Kind::Looks => true,
                (Class::Edit, Mode::Edits | Mode::Auto) => true,
                (Class::Command, Mode::Auto) => level < Isolation::D,
                (Class::Read | Class::Edit | Class::Command, _) => false,
            };
            assert!(
                fine,
                "policy let {:?} run in mode {:?} at {level:?}: {}",
                call.class, s.config.mode, call.part.args
            );
        }
        AllowedBy::Harness => assert!(call.harness),
    }
}

/// Each prompt is told in exactly one step, the first that began after it.
fn prompts_told_once(w: &World, told: Seq) {
    let mut waiting: BTreeSet<Seq> = BTreeSet::new();
    for (seq, event) in (1..).zip(&w.store.log) {
        match event {
            Event::Prompted(_) => drop(waiting.insert(seq)),
            Event::StepStarted(e) => waiting.retain(|p| *p > e.upto),
            Event::RewindRequested(_) => waiting.clear(), // taken back, or told with the next
            _ => {}
        }
    }
    assert!(waiting.iter().all(|p| *p > told), "a prompt was never told");
    let last = fold(&w.store.log);
    assert_eq!(last.unseen as usize, waiting.len(), "prompts that wait");
    if last.phase == Phase::Rest && last.unseen > 0 {
        let held = w.store.log.iter().rev().find_map(|e| match e {
            Event::Ended(e) => Some(e.hold),
            _ => None,
        });
        assert_eq!(held, Some(true), "a session rests on a prompt that nobody held back");
    }
}

/// Every request is rebuilt from the log and compared; each extends the one before, unless the past
/// was changed.
fn requests(w: &World) {
    let mut sent: BTreeMap<Step, (Hash, &Vec<u8>)> = BTreeMap::new();
    for (step, hash, bytes) in &w.sent {
        let first = sent.entry(*step).or_insert((*hash, bytes));
        assert_eq!((first.0, first.1), (*hash, bytes), "a step was asked with two requests");
    }
    let mut before: Option<Vec<u8>> = None;
    let mut untold: Vec<(Seq, &str)> = Vec::new();
    for (seq, event) in (1usize..).zip(&w.store.log) {
        match event {
            Event::StepStarted(e) => {
                let request = refold(&w.store.log[..seq]).request().expect("a step has a request");
                let bytes = request.bytes();
                assert_eq!(request.len(), bytes.len() as u64);
                if let Some((hash, sent)) = sent.get(&e.step) {
                    assert_eq!(*hash, request.hash());
                    assert_eq!(**sent, bytes, "the request of step {} cannot be rebuilt", e.step);
                }
                if let Some(before) = &before {
                    assert!(
                        bytes.starts_with(before),
                        "step {} does not extend the request before it",
                        e.step
                    );
                }
                well_formed(&request.messages());
                // Each prompt is told by the first step after it, behind the answer that it could
                // not know.
                for (at, text) in untold.drain(..) {
                    let told = request
                        .added()
                        .iter()
                        .any(|m| matches!(m, Message::User { text: t, .. } if **t == *text));
                    assert!(told, "step {} does not tell the prompt at {at}", e.step);
                }
                before = Some(bytes);
            }
            Event::Prompted(e) => untold.push((seq as Seq, &e.text)),
            Event::Compacted(_) => before = None,
            Event::Rewound(e) => {
                before = None;
                untold.retain(|(at, _)| {
                    e.spans.iter().any(|span| span.from <= *at && *at <= span.to)
                });
            }
            _ => {}
        }
    }
}

/// Results follow their answer, in its order, each once; never a prompt between a call and its
/// result.
fn well_formed(messages: &[Message]) {
    let mut due: Vec<CallId> = Vec::new();
    let mut last_answer = None;
    for message in messages {
        match message {
            Message::Assistant { parts, .. } => {
                assert!(due.is_empty(), "an answer before the results of the one before");
                let calls = parts.iter().filter(|p| matches!(p, Part::Call(_))).count();
                last_answer = Some(calls);
                due = Vec::with_capacity(calls);
            }
            Message::Result { call, .. } => {
                let calls = last_answer.expect("a result follows an answer");
                assert_eq!(
                    usize::from(call.index),
                    due.len(),
                    "results are in the order of the calls"
                );
                due.push(*call);
                if due.len() == calls {
                    due.clear();
                    last_answer = None;
                }
            }
            Message::User { .. } | Message::Notice { .. } => {
                assert!(
                    due.is_empty() && last_answer.is_none_or(|n| n == 0),
                    "a prompt between a call and its result"
                );
            }
        }
    }
}
