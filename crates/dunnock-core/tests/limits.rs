//! Scenes about bounds: steps, budgets, windows, compaction, failures, settings.

use crate::stage::{auto, play, scene};
use dunnock_proto::*;

/// Holds W4: the limit is a question where somebody can answer, an end where nobody can.
#[test]
fn the_limit_is_a_question_for_somebody_and_an_end_for_nobody() {
    let script = "> go\n< view: a\n= 1.0 x\n";
    let alone = play(Config { max_steps: 1, ..auto() }, script);
    assert!(alone.out.ends_with("ended Limit None held\n"), "{}", alone.out);
    let asked = play(Config { max_steps: 1, attended: true, ..auto() }, script);
    assert!(
        asked.out.ends_with("asked q1 The step limit (1) was reached. Continue for 1 more?\n"),
        "{}",
        asked.out
    );
    let yes = play(Config { max_steps: 1, attended: true, ..auto() }, &format!("{script}! yes"));
    assert!(yes.out.contains("replied \n  step_started 2"), "{}", yes.out);
    let no = play(Config { max_steps: 1, attended: true, ..auto() }, &format!("{script}! no"));
    assert!(no.out.ends_with("ended Limit None held\n"), "{}", no.out);
    let prompt =
        play(Config { max_steps: 1, attended: true, ..auto() }, &format!("{script}> more"));
    assert!(
        prompt.out.contains("prompted more\n  step_started 2"),
        "a prompt lifts the limit: {}",
        prompt.out
    );
    assert!(prompt.s.questions.is_empty());
}

#[test]
fn budgets_hold_back_before_a_request_goes_out() {
    let tokens = |n| Config { budget: Budget { tokens: Some(n), ..Budget::default() }, ..auto() };
    assert!(play(tokens(150), "> go").out.contains("step_started"), "150 are enough");
    assert!(play(tokens(149), "> go").out.ends_with("ended Budget None held\n"));
    let used = play(tokens(290), "> go\n< view: a\n= 1.0 x");
    assert!(
        used.out.contains("step_started 2 holding 170"),
        "120 used and 170 held back: {}",
        used.out
    );
    let price = Price { input: 2_000_000, cached: 500_000, output: 4_000_000, written: 2_000_000 };
    let money = |n| Config {
        budget: Budget { micros: Some(n), ..Budget::default() },
        price: Some(price),
        ..auto()
    };
    assert!(play(money(400), "> go").out.contains("step_started 1 holding 150 tokens 400 micros"));
    assert!(play(money(399), "> go").out.ends_with("ended Budget None held\n"));
    let spent = play(money(10_000), "> go\n< view: a");
    assert_eq!(spent.s.spent.micros, 60 * 2 + 40 / 2 + 20 * 4, "fresh, cached and output tokens");
    assert_eq!(spent.s.reserved, Reserved::default(), "what was held back is given back");
    let time = |ms| Config { budget: Budget { ms: Some(ms), ..Budget::default() }, ..auto() };
    assert!(
        play(time(12), "> go\n< view: a\n= 1.0 x").out.contains("step_started 2"),
        "7 ms and 5 ms"
    );
    assert!(play(time(11), "> go\n< view: a\n= 1.0 x").out.ends_with("ended Budget None held\n"));
    let more = play(Config { attended: true, ..tokens(149) }, "> go\n! yes");
    assert!(
        more.out.contains("asked q1 The remaining budget does not cover")
            && more.out.contains("step_started 1"),
        "{}",
        more.out
    );
    let mut day = scene(Config { price: Some(price), ..auto() });
    day.day_left = Some(399);
    day.line("> go");
    assert!(day.out.ends_with("ended Budget None held\n"), "{}", day.out);
    day.day_left = Some(400);
    day.line("go");
    assert!(day.out.contains("step_started 1"), "the prompt was kept: {}", day.out);
}

#[test]
fn talk_is_compacted_in_two_strengths_and_then_given_up() {
    let small = Config { window: Some(200), compact_at: 100, compact_keep: 2, ..auto() };
    let script = "> go\n< view: a\n= 1.0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";
    let first = play(small.clone(), script);
    assert!(first.out.ends_with("compaction_started Shorten upto 4\n"), "{}", first.out);
    // Little room is left by that, so a summary follows at once.
    let shrunk = play(small.clone(), &format!("{script}shrunk\nshrunk"));
    let both = "compacted \n  compaction_started Summarise upto 4\nshrunk\n  compacted \n  \
                step_started 2 holding";
    assert!(shrunk.out.contains(both), "{}", shrunk.out);
    let grown = play(small.clone(), &format!("{script}grown\ngrown"));
    let end = "compaction_failed it would not be shorter: 900 bytes before, 900 after\n  \
               compaction_started Summarise upto 4\ngrown\n  compaction_failed it would not be \
               shorter: 900 bytes before, 900 after\n  step_started 2";
    assert!(grown.out.contains(end), "{}", grown.out);
    let stopped = play(small, &format!("{script}stop"));
    assert!(stopped.out.ends_with("interrupt_requested \n"), "{}", stopped.out);
    let over = play(auto(), "> go\n< view: a\n= 1.0 x\nfail overflow\nshrunk");
    assert!(
        over.out.contains("compaction_started Shorten upto 9")
            && over.out.contains("step_started 3"),
        "{}",
        over.out
    );
    let hopeless = play(auto(), "> go\nfail overflow\ngrown\ngrown\nfail overflow");
    assert!(
        hopeless.out.ends_with("ended Failed { error: \"overflow\" } None\n"),
        "{}",
        hopeless.out
    );
    let asked = play(auto(), "compact\n> go\ncompact\n< done\ncompact\nshrunk\ncompact");
    let lines: Vec<&str> = asked.out.lines().map(str::trim).collect();
    let at =
        |n: usize| lines.iter().enumerate().filter(|(_, l)| **l == "compact").nth(n).unwrap().0 + 1;
    assert_eq!(lines[at(0)], "refused: NothingToContinue");
    assert_eq!(lines[at(1)], "refused: Busy");
    assert_eq!(lines[at(2)], "compaction_started Summarise upto 4");
    assert_eq!(lines[at(3)], "refused: NothingToContinue", "there is nothing left to compact");
}

#[test]
fn a_failed_request_waits_or_ends() {
    let later = play(auto(), "> go\nfail later\n> more\ntimer_fired");
    assert!(
        later.out.contains("prompted more\ntimer_fired\n  timer_fired \n  step_started 2"),
        "a prompt waits too: {}",
        later.out
    );
    let now = play(auto(), "> go\nfail no\ngo");
    assert!(
        now.out.contains("ended Failed { error: \"no\" } None\ngo\n  continued \n  step_started 2"),
        "{}",
        now.out
    );
    let cut = play(auto(), "> go\nfail cut");
    assert!(cut.out.ends_with("ended Stopped None\n"), "{}", cut.out);
    let done = play(auto(), "> go\n< done\ngo");
    assert!(done.out.ends_with("refused: NothingToContinue\n"), "{}", done.out);
}

#[test]
fn settings_and_titles_have_bounds() {
    let refused = |command| {
        let mut scene = scene(auto());
        scene.command(command);
        scene.out.contains("refused: Invalid")
    };
    let set = |set| Command::Configure { set };
    let patch = ConfigPatch::default;
    assert!(refused(set(patch())), "nothing to set");
    assert!(refused(set(ConfigPatch { max_steps: Some(0), ..patch() })));
    assert!(refused(set(ConfigPatch { verify_tries: Some(0), ..patch() })));
    assert!(refused(set(ConfigPatch { compact_keep: Some(0), ..patch() })));
    assert!(refused(set(ConfigPatch { token_bytes: Some(0), ..patch() })));
    assert!(refused(set(ConfigPatch { stall_window: Some(0), ..patch() })));
    assert!(refused(set(ConfigPatch { compact_at: Some(0), ..patch() })));
    assert!(refused(set(ConfigPatch { compact_at: Some(101), ..patch() })));
    assert!(refused(set(ConfigPatch { model: Some(String::new()), ..patch() })));
    assert!(!refused(set(ConfigPatch {
        compact_keep: Some(1),
        compact_at: Some(100),
        max_steps: Some(1),
        ..patch()
    })));
    assert!(!refused(Command::Title { title: "x".repeat(200) }));
    assert!(refused(Command::Title { title: "x".repeat(201) }));
}

#[test]
fn a_window_may_be_filled_to_its_share_and_not_beyond() {
    // The second request holds back 170 tokens, or less where an answer cannot be that long.
    let script = "> go\n< view: a\n= 1.0 x";
    let window = |n| Config { window: Some(n), compact_at: 100, ..auto() };
    assert!(play(window(159), script).out.contains("step_started 2"));
    assert!(play(window(158), script).out.contains("compaction_started"));
}

#[test]
fn a_short_talk_is_not_compacted_because_the_head_is_long() {
    // A twentieth of the window may be filled, and is: by the preamble and what is held back for an
    // answer.
    let compacts = |window| {
        let config = Config { window: Some(window), compact_at: 5, ..auto() };
        play(config, "> go\n< view: a\n= 1.0 x").out.contains("compaction_started")
    };
    assert!(compacts(160), "the talk is an eighth of it");
    assert!(!compacts(161) && !compacts(2_000), "shrinking would not help");
}

#[test]
fn an_interrupt_of_a_compaction_stops_the_turn_behind_it() {
    let small = Config { window: Some(100), compact_at: 100, ..auto() };
    let scene = play(small, "> go\n< done\n> more\nstop\ngrown");
    assert!(
        scene.out.ends_with(
            "compaction_failed it would not be shorter: 900 bytes before, 900 after\n  ended \
             Stopped None held\n"
        ),
        "{}",
        scene.out
    );
    assert_eq!(scene.s.unseen, 1, "the prompt waits");
}

#[test]
fn what_a_killed_or_broken_request_may_have_cost_was_given_back() {
    let price = Price { input: 2_000_000, cached: 500_000, output: 4_000_000, written: 2_500_000 };
    let money = |n| Config {
        budget: Budget { micros: Some(n), ..Budget::default() },
        price: Some(price),
        ..auto()
    };
    // 100 tokens sent at the dearest, 50 received: 450 are held back.
    let asked = play(money(1_000), "> go");
    assert_eq!(asked.s.reserved.micros, 450, "{}", asked.out);
    let mut killed = play(money(1_000), "> go");
    killed.take();
    assert_eq!((killed.s.spent.micros, killed.s.reserved.micros), (450, 450), "{}", killed.out);
    assert!(killed.s.asks_model(), "it is asked again: {}", killed.out);
    killed.take();
    assert!(
        killed.out.contains("step_failed") && killed.out.ends_with("ended Budget None held\n"),
        "{}",
        killed.out
    );
    // Stopped in the middle: what came was paid for.
    let mut cut = play(money(10_000), "> go");
    let attempts = vec![Attempt { at: At(1), ms: 1, error: None, usage: Usage::default() }];
    let failed = StepFailed {
        attempts,
        incomplete: true,
        partial: "half".into(),
        ..StepFailed::unsent(Step(1), Failure::Interrupted, "x".into())
    };
    cut.work(dunnock_core::EffectOutcome::Failed(failed.clone()));
    assert_eq!(cut.s.spent.micros, 450, "{}", cut.out);
    // One that was never sent cost nothing; one that broke off after it said something costs all
    // the same; one that came to its end costs what it says.
    let mut unsent = play(money(10_000), "> go");
    unsent.work(dunnock_core::EffectOutcome::Failed(StepFailed::unsent(
        Step(1),
        Failure::Rejected,
        "x".into(),
    )));
    assert_eq!(unsent.s.spent.micros, 0);
    let mut known = play(money(10_000), "> go");
    known.work(dunnock_core::EffectOutcome::Failed(StepFailed {
        usage: Usage { output: 10, ..Usage::default() },
        ..failed
    }));
    assert_eq!(known.s.spent.micros, 450);
    let mut whole = play(money(10_000), "> go");
    whole.work(dunnock_core::EffectOutcome::Failed(StepFailed {
        usage: Usage { output: 10, ..Usage::default() },
        ..StepFailed::unsent(Step(1), Failure::Rejected, "x".into())
    }));
    assert_eq!(whole.s.spent.micros, 40);
}

#[test]
fn a_talk_that_did_not_fit_after_a_summary_never_fitted_again() {
    let small = Config { window: Some(200), compact_at: 100, compact_keep: 2, ..auto() };
    let script = "> go\n< view: a\n= 1.0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ngrown\ngrown\nfail overflow\n";
    let over = play(small.clone(), script);
    let again = over.out.rsplit("fail overflow").next().unwrap().to_owned();
    assert!(
        again.contains("compaction_started Shorten"),
        "what came since can be made shorter: {}",
        over.out
    );
    let hopeless = play(small, &format!("{script}grown\ngrown\nfail overflow"));
    assert!(hopeless.out.contains("ended Failed"), "and it ends: {}", hopeless.out);
}

#[test]
fn a_log_that_counts_no_bytes_for_a_token_is_folded_all_the_same() {
    let mut s = dunnock_core::State::default();
    let config = Config { token_bytes: 0, ..auto() };
    dunnock_core::apply(
        &mut s,
        &Created { workspace: "/w".into(), app: "0".into(), config, base: None }.into(),
    );
    dunnock_core::apply(&mut s, &Prompted { text: "go".into(), images: Vec::new() }.into());
    assert_eq!(s.context, 2);
}

#[test]
fn checks_that_change_files_are_run_again_until_they_do_not() {
    let config = Config { verify: vec!["fmt".into()], verify_tries: 3, ..auto() };
    let mut scene = play(config, "> go\n< done");
    let moved = |n: u16| Finished {
        checked_tree: Some(Tree("before".into())),
        tree: Some(Tree("after".into())),
        ..Finished::plain(CallId { step: Step(1), index: n }, Outcome::Done, "")
    };
    scene.work(dunnock_core::EffectOutcome::Output(moved(0)));
    assert!(scene.s.calls_open(), "it runs again: {}", scene.out);
    let still = Finished { checked_tree: None, ..moved(1) };
    scene.work(dunnock_core::EffectOutcome::Output(still));
    assert!(scene.out.ends_with("ended Done Proven\n"), "{}", scene.out);
}

#[test]
fn a_check_that_passed_while_more_was_asked_for_proved_what_came_after() {
    let config = Config { verify: vec!["test".into()], ..auto() };
    let mut scene = play(config, "> go\n< done\n> and more");
    scene.work(dunnock_core::EffectOutcome::Output(Finished::plain(
        CallId { step: Step(1), index: 0 },
        Outcome::Done,
        "",
    )));
    assert!(scene.out.contains("step_started 2"), "{}", scene.out);
    assert_eq!(scene.s.proof, Proof::None, "what comes now was not checked: {}", scene.out);
}

#[test]
fn a_budget_that_comes_later_makes_a_head_that_bounds_answers() {
    let mut scene = play(auto(), "> go\n< done");
    let set = ConfigPatch {
        budget: Some(Budget { tokens: Some(10_000), ..Budget::default() }),
        ..ConfigPatch::default()
    };
    let request = CommandRequest {
        id: "b".parse().unwrap(),
        expect: None,
        command: Command::Configure { set },
    };
    scene.give(dunnock_core::Input::Command(request));
    scene.line("> more");
    assert_eq!(scene.out.matches("preamble_set").count(), 2, "{}", scene.out);
    assert!(scene.out.contains("step_started 2"), "once is enough: {}", scene.out);
}
