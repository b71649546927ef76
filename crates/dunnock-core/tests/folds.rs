//! Folds of stored events, without a decision before them.

use crate::stage::{auto, scene};
use dunnock_core::{EffectOutcome, Phase, State, apply, fold_record};
use dunnock_proto::*;
use std::sync::Arc;

/// A stored event of a kind that this release does not know.
fn unknown(need: Need) -> Record {
    let known = Event::from(Titled { title: "t".into() });
    let mut record = seal(0, Hash::ZERO, At(0), Cause::Driver, &known);
    record.envelope.kind = "from_the_future".into();
    record.envelope.need = need;
    record
}

#[test]
fn a_stored_event_is_folded_and_returned() {
    let event = Event::from(Titled { title: "a title".into() });
    let record = seal(0, Hash::ZERO, At(0), Cause::Driver, &event);
    let mut state = State::default();
    assert_eq!(fold_record(&mut state, &record), Some(event));
    assert_eq!((state.seq, state.title.as_deref()), (1, Some("a title")));
}

#[test]
fn an_unknown_event_counts_and_stops_the_session_only_if_it_must_be_understood() {
    for (need, stops) in [(Need::May, false), (Need::Must, true)] {
        let mut state = State::default();
        assert_eq!(fold_record(&mut state, &unknown(need)), None);
        assert_eq!((state.seq, state.read_only.is_some()), (1, stops), "{need}");
    }
}

#[test]
fn a_move_keeps_a_proof_only_if_it_still_counts() {
    for (proven, proof) in [(true, Proof::Proven), (false, Proof::None)] {
        let mut state = State { proof: Proof::Proven, ..State::default() };
        apply(&mut state, &Moved { workspace: "/elsewhere".into(), proven }.into());
        assert_eq!(state.proof, proof);
    }
}

#[test]
fn a_call_knows_that_its_tool_polls() {
    let mut s = scene(auto());
    s.line("> go");
    let mut preamble = s.s.preamble.as_deref().unwrap().clone();
    preamble.tools.iter_mut().for_each(|tool| tool.polls = tool.name == "view");
    s.s.preamble = Some(Arc::new(preamble));
    s.line("< view: a | fetch: b");
    let polls: Vec<bool> = s.s.calls.iter().map(|call| call.polls).collect();
    assert_eq!(polls, [true, false]);
}

#[test]
fn results_that_differ_only_in_their_outcome_are_different() {
    let mut seen = std::collections::BTreeSet::new();
    for outcome in [Outcome::Done, Outcome::Failed, Outcome::Unknown, Outcome::Interrupted] {
        let mut s = scene(auto());
        s.line("> go");
        s.line("< view: a");
        let call = s.s.calls.last().unwrap().id;
        s.told(&Finished::plain(call, outcome, "same").into());
        seen.insert(format!("{:?}", s.s.calls.last().unwrap().result));
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn a_summary_that_broke_off_counts_what_it_may_have_used() {
    for (incomplete, lost) in [(false, 0), (true, 70)] {
        let mut s = scene(auto());
        s.line("> go");
        s.s.phase = Phase::Compacting { upto: 0, strength: Strength::Summarise, due: false };
        s.s.reserved = Reserved { tokens: 100, micros: 0 };
        let usage = Usage { input: 20, output: 10, ..Usage::default() };
        let failed =
            CompactionFailed { incomplete, usage, ..CompactionFailed::because("broke off".into()) };
        s.work(EffectOutcome::CompactionFailed(failed));
        let recorded = s.log.iter().rev().find_map(|event| match event {
            Event::CompactionFailed(failed) => Some(failed.lost.tokens),
            _ => None,
        });
        assert_eq!(recorded, Some(lost));
    }
}

/// A preamble names no effort that its requests leave out, but a refusal of one model says nothing
/// about another.
#[test]
fn a_refused_effort_is_left_out_for_that_model_only() {
    let mut s = State::default();
    let named = |s: &mut State, model: &str| {
        let effort = Some(PreambleEffort { wanted: Effort::High, sent: Effort::High });
        let preamble = Preamble { effort, ..crate::inputs::preamble(model, 0) };
        apply(s, &PreambleSet { preamble }.into());
        s.preamble.as_ref().is_some_and(|preamble| preamble.effort.is_some())
    };
    assert!(named(&mut s, "m/1"));
    let mut r = crate::rng::Rng::new(1);
    let answered = Answered { effort_refused: true, ..crate::inputs::answered(&mut r, Step(1)) };
    apply(&mut s, &answered.into());
    assert_eq!(s.preamble.as_ref().unwrap().effort, None, "at once");
    assert!(!named(&mut s, "m/1"));
    assert!(named(&mut s, "m/2"));
}
