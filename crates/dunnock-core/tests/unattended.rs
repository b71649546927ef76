//! Sessions that nobody watches: nothing waits for a person, and work does not end too early.

use crate::stage::{Scene, auto, play};
use dunnock_core::Phase;
use dunnock_proto::*;

fn alone() -> Config {
    Config { unattended: true, max_steps: 50, ..auto() }
}

/// The notices of a scene, by kind.
fn notices(scene: &Scene) -> Vec<NoticeKind> {
    let kind = |event: &Event| match event {
        Event::Noticed(e) => Some(e.kind),
        _ => None,
    };
    scene.log.iter().filter_map(kind).collect()
}

/// The result of a call.
fn shown(scene: &Scene, call: &str) -> String {
    let call: CallId = call.parse().unwrap();
    let result = |event: &Event| match event {
        Event::Finished(e) if e.call == call => Some(e.shown.to_string()),
        _ => None,
    };
    scene.log.iter().find_map(result).unwrap()
}

#[test]
fn a_question_is_answered_by_the_harness_and_the_work_goes_on() {
    let scene = play(alone(), "> go\n< ask_person: {\"question\":\"which?\"}");
    assert!(scene.s.questions.is_empty() && scene.s.step == Step(2), "{}", scene.out);
    assert!(shown(&scene, "1.0").starts_with("nobody is here to answer"), "{}", scene.out);
    let waits = play(auto(), "> go\n< ask_person: {\"question\":\"which?\"}");
    assert_eq!(waits.s.questions.len(), 1, "otherwise it waits: {}", waits.out);
}

#[test]
fn a_call_that_needs_approval_is_refused_with_the_reason() {
    let scene = play(alone(), "> go\n< shell: git push");
    assert!(scene.s.questions.is_empty() && scene.s.step == Step(2), "{}", scene.out);
    let text = shown(&scene, "1.0");
    assert!(text.contains("needs a person's approval (git push contacts a remote"), "{text}");
    for mode in [Mode::Ask, Mode::Edits] {
        let scene = play(Config { mode, ..alone() }, "> go\n< shell: make");
        assert!(shown(&scene, "1.0").contains(&format!("{mode:?}").to_lowercase()));
        assert!(scene.s.questions.is_empty() && scene.s.step == Step(2), "{}", scene.out);
    }
}

#[test]
fn an_announcement_without_a_call_is_sent_back_at_most_twice() {
    let script = "> go\n< I will start with the tests.\n< Now I begin.\n< Then I begin.";
    let scene = play(alone(), script);
    assert_eq!(notices(&scene), [NoticeKind::Unfinished; 2], "{}", scene.out);
    assert!(scene.out.contains("ended Done"), "{}", scene.out);
    // What ran counts as work, reading does not.
    let ran = play(alone(), "> go\n< shell: make\n= 1.0 ok\n< done");
    assert_eq!(notices(&ran), [], "{}", ran.out);
    let read = play(alone(), "> go\n< view: ls\n= 1.0 ok\n< I will fix it now.");
    assert_eq!(notices(&read), [NoticeKind::Unfinished], "{}", read.out);
    let called = play(alone(), "> go\n< final_output: {\"answer\":\"4\"}");
    assert_eq!(notices(&called), [], "{}", called.out);
    // A new prompt counts anew, and so does a session with somebody.
    let again = play(alone(), &format!("{script}\n> more\n< I begin."));
    assert_eq!(notices(&again).len(), 3, "{}", again.out);
    assert_eq!(notices(&play(auto(), "> go\n< I will start.")), []);
}

#[test]
fn open_steps_of_a_plan_are_work_that_is_left() {
    let plan = |state: &str| format!(r#"{{"steps":[{{"text":"test it","state":"{state}"}}]}}"#);
    let script =
        |state| format!("> go\n< update_plan: {} | shell: make\n= 1.1 ok\n< done", plan(state));
    for (state, sent_back) in [("pending", 1), ("active", 1), ("done", 0)] {
        let scene = play(alone(), &script(state));
        assert_eq!(notices(&scene).len(), sent_back, "{state}: {}", scene.out);
    }
    let scene = play(alone(), &script("active"));
    let Some(Event::Noticed(notice)) = scene.log.iter().rfind(|e| matches!(e, Event::Noticed(_)))
    else {
        panic!("{}", scene.out)
    };
    assert!(notice.text.contains("\n- test it\n"), "{}", notice.text);
}

#[test]
fn empty_and_cut_answers_are_told_three_times() {
    for how in ["empty", "too long"] {
        let fails = |n: usize| format!("> go\n{}", vec![format!("fail {how}"); n].join("\n"));
        let three = play(alone(), &fails(3));
        assert_eq!(notices(&three), [NoticeKind::NoAnswer; 3], "{}", three.out);
        assert_eq!(three.s.phase, Phase::Thinking, "{}", three.out);
        let four = play(alone(), &fails(4));
        assert!(four.out.contains("ended Failed"), "{}", four.out);
        let between = format!("{}\n< shell: make\n= 4.0 ok\nfail {how}", fails(3));
        let between = play(alone(), &between);
        assert_eq!(between.s.phase, Phase::Thinking, "an answer starts anew: {}", between.out);
        assert!(play(auto(), &fails(1)).out.contains("ended Failed"));
        let stopped = play(alone(), &format!("> go\nstop\nfail {how}"));
        assert_eq!(stopped.s.phase, Phase::Rest, "{}", stopped.out);
    }
    let limited = play(Config { max_steps: 2, ..alone() }, "> go\nfail empty\nfail empty");
    assert!(limited.out.contains("ended Limit"), "limits hold: {}", limited.out);
}

#[test]
fn a_second_look_comes_once_for_each_prompt_and_not_after_a_proof() {
    let config = Config { second_look: true, ..alone() };
    let work = "> go\n< shell: make\n= 1.0 ok\n< done";
    let looked = play(config.clone(), work);
    assert_eq!(notices(&looked), [NoticeKind::SecondLook], "{}", looked.out);
    assert_eq!(looked.s.phase, Phase::Thinking);
    let done = play(config.clone(), &format!("{work}\n< done"));
    assert_eq!((notices(&done).len(), done.s.phase.clone()), (1, Phase::Rest), "{}", done.out);
    // A crash between the notice and the answer repeats the request, not the notice.
    let crashed = play(config.clone(), &format!("{work}\ncrash\n< shell: make\n= 3.0 ok\n< done"));
    assert_eq!((notices(&crashed).len(), crashed.s.phase.clone()), (1, Phase::Rest));
    let next =
        play(config.clone(), &format!("{work}\n< done\n> more\n< shell: a\n= 4.0 ok\n< done"));
    assert_eq!(notices(&next).len(), 2, "{}", next.out);
    let proven = Config { verify: vec!["make test".into()], ..config.clone() };
    let proven = play(proven, &format!("{work}\n= 2.0 ok"));
    assert_eq!(notices(&proven), [], "{}", proven.out);
    assert!(proven.out.contains("ended Done Proven"), "{}", proven.out);
    assert_eq!(notices(&play(Config { second_look: true, ..auto() }, work)), []);
}

/// The notice is short, whatever the task and the plan are.
#[test]
fn a_second_look_is_at_most_1500_bytes() {
    let long = "ü".repeat(40_000);
    let steps: Vec<String> = (0..500)
        .map(|n| format!(r#"{{"text":"{n} {}","state":"active"}}"#, "x".repeat(300)))
        .collect();
    let plan = format!(r#"{{"steps":[{}]}}"#, steps.join(","));
    let config = Config { second_look: true, ..alone() };
    let mut scene = play(config, &format!("> {long}"));
    for _ in 0..30 {
        scene.line(&format!("> {}", long.replace('ü', "ü > ")));
    }
    scene.line(&format!("< update_plan: {plan} | edit: x"));
    let seen_files = (0..500)
        .map(|n| SeenFile { path: format!("{n}/{}", "y".repeat(200)), hash: Hash::ZERO })
        .collect();
    let (call, outcome) = ("1.1".parse().unwrap(), Outcome::Done);
    let finished = Finished { seen_files, ..Finished::plain(call, outcome, "ok") };
    scene.work(dunnock_core::EffectOutcome::Output(finished));
    for _ in 0..4 {
        scene.line("< done");
    }
    let longest = scene.log.iter().filter_map(|event| match event {
        Event::Noticed(e) => Some((e.text.len(), e.text.clone())),
        _ => None,
    });
    let (longest, text) = longest.max().unwrap();
    println!("the longest notice has {longest} bytes");
    assert!(notices(&scene).contains(&NoticeKind::SecondLook), "{}", text);
    assert!((800..=1_500).contains(&longest), "{longest}: {text}");
    assert!(text.contains("and 496 more"), "{text}");
}

#[test]
fn a_model_that_repeats_itself_is_told_and_never_asked_about() {
    let config = Config { checkpoints: true, mode: Mode::All, stall_limit: 4, ..alone() };
    let rounds: Vec<String> =
        (1..=20).map(|n| format!("< shell: make\n= {n}.0 no\nkept")).collect();
    let scene = play(config, &format!("> go\nkept\n{}", rounds.join("\n")));
    assert_eq!(notices(&scene), [NoticeKind::Stalled; 2], "{}", scene.out);
    assert!(scene.s.questions.is_empty() && scene.s.step == Step(21), "{}", scene.out);
}

#[test]
fn an_unknown_outcome_is_told_and_never_asked_about() {
    let config = Config { mode: Mode::Edits, ..alone() };
    let scene = play(config, "> go\n< edit: x\ncrash");
    assert!(scene.s.questions.is_empty(), "{}", scene.out);
}

/// The part of the time that the model was told of, and whether only one request follows.
fn times(scene: &Scene) -> Vec<(u8, bool)> {
    let time = |kind: NoticeKind| match kind {
        NoticeKind::Time { percent, last } => Some((percent, last)),
        _ => None,
    };
    notices(scene).into_iter().filter_map(time).collect()
}

#[test]
fn the_time_is_told_at_the_start_at_50_80_and_95_percent_and_then_one_request_follows() {
    let deadline = Some(Deadline { from: At(1_000_000), until: At(2_000_000) });
    let config = Config { deadline, max_steps: u32::MAX, ..auto() };
    let mut scene = crate::stage::scene(config.clone());
    let mut step = 0;
    let mut at = |scene: &mut Scene, ms: i64| {
        scene.at = At(ms);
        if step == 0 {
            scene.line("> go");
        } else {
            scene.line("< shell: make");
            scene.line(&format!("= {step}.0 ok"));
        }
        step += 1;
    };
    let mut told = Vec::new();
    for ms in [1_000_000, 1_200_000, 1_499_999, 1_500_000, 1_600_000, 1_900_000, 1_949_999] {
        at(&mut scene, ms);
        told.push(times(&scene).len());
    }
    assert_eq!(told, [1, 1, 1, 2, 2, 3, 3], "{}", scene.out);
    at(&mut scene, 1_950_000);
    assert_eq!(times(&scene), [(0, false), (50, false), (80, false), (95, true)]);
    assert_eq!(scene.s.phase, Phase::Thinking, "the last request: {}", scene.out);
    at(&mut scene, 1_951_000);
    assert!(scene.out.contains("ended Deadline None held"), "{}", scene.out);
    assert_eq!(scene.s.phase, Phase::Rest);
    // Nothing starts after the end, also after a takeover; a new deadline goes on.
    scene.at = At(2_000_001);
    scene.line("go");
    assert_eq!(scene.s.phase, Phase::Rest, "{}", scene.out);
    let later = Some(Deadline { from: At(2_000_001), until: At(3_000_000) });
    scene.command(Command::Configure {
        set: ConfigPatch { deadline: Some(later), ..ConfigPatch::default() },
    });
    scene.line("go");
    assert_eq!(scene.s.phase, Phase::Thinking, "{}", scene.out);
    // A jump tells only the last part, and an idle session is told nothing.
    let mut late = crate::stage::scene(config.clone());
    late.at = At(1_960_000);
    late.line("> go");
    assert_eq!(times(&late), [(95, true)], "{}", late.out);
    let idle = crate::stage::scene(config);
    assert_eq!(times(&idle), []);
    assert_eq!(times(&play(auto(), "> go\n< shell: make\n= 1.0 ok")), []);
}

#[test]
fn a_call_that_took_long_tells_the_time() {
    let deadline = Some(Deadline { from: At(0), until: At(1_000_000) });
    for (ms, told) in [(59_999, false), (60_000, true)] {
        let mut scene = play(Config { deadline, ..auto() }, "> go\n< shell: make");
        scene.at = At(300_000);
        let (call, outcome) = ("1.0".parse().unwrap(), Outcome::Done);
        let finished = Finished { ms, ..Finished::plain(call, outcome, "ok") };
        scene.work(dunnock_core::EffectOutcome::Output(finished));
        let text = "The call took 60 s. Time left: 700 s of 1000 s.";
        let found =
            scene.log.iter().any(|e| matches!(e, Event::Noticed(e) if e.text.as_ref() == text));
        assert_eq!(found, told, "{}", scene.out);
    }
}

/// A notice that no request could carry turned finished work into a limit.
#[test]
fn finished_work_is_done_where_no_further_request_may_start() {
    let look = Config { second_look: true, ..alone() };
    let one = Config { max_steps: 1, ..look.clone() };
    let done = play(one.clone(), "> go\n< final_output: {\"answer\":\"4\"}");
    assert!(done.out.contains("ended Done") && notices(&done).is_empty(), "{}", done.out);
    let said = play(one, "> go\n< done");
    assert!(said.out.contains("ended Done") && notices(&said).is_empty(), "{}", said.out);
    let budget = Budget { tokens: Some(8_300), ..Budget::default() };
    let poor = play(Config { budget, ..look.clone() }, "> go\n< done");
    assert!(!poor.out.contains("Budget"), "{}", poor.out);
    let deadline = Some(Deadline { from: At(0), until: At(1_000) });
    let mut late = crate::stage::scene(Config { deadline, ..look });
    late.at = At(960);
    late.line("> go");
    late.line("< done");
    assert!(late.out.contains("ended Done"), "{}", late.out);
}

#[test]
fn what_waits_for_a_person_goes_on_when_nobody_is_left() {
    let leave = || Command::Configure {
        set: ConfigPatch { unattended: Some(true), ..ConfigPatch::default() },
    };
    let base = Config { mode: Mode::Ask, attended: true, ..auto() };
    for script in [
        "> go\n< shell: make",
        "> go\n< ask_person: {\"question\":\"which?\"}",
        "> go\n< shell: make\n! yes\ncrash",
    ] {
        let mut scene = play(base.clone(), script);
        assert_eq!(scene.s.questions.len(), 1, "{}", scene.out);
        scene.command(leave());
        assert!(scene.s.questions.is_empty() && scene.s.step == Step(2), "{}", scene.out);
    }
    let mut limit = play(Config { max_steps: 1, ..base }, "> go\n< view: x\n= 1.0 ok");
    assert_eq!(limit.s.questions.len(), 1, "{}", limit.out);
    limit.command(leave());
    assert!(limit.s.questions.is_empty() && limit.s.phase == Phase::Rest, "{}", limit.out);
    let back = ConfigPatch { unattended: Some(false), ..ConfigPatch::default() };
    limit.command(Command::Configure { set: back });
    let told = limit.log.iter().filter(|event| match event {
        Event::Noticed(e) => e.text.contains("A person is here again"),
        _ => false,
    });
    assert_eq!(told.count(), 1, "{}", limit.out);
}

/// The last request before a deadline counts only if it was answered.
#[test]
fn the_last_request_is_sent_again_if_its_stream_breaks() {
    let deadline = Some(Deadline { from: At(0), until: At(1_000) });
    let mut scene = crate::stage::scene(Config { deadline, ..alone() });
    scene.at = At(960);
    for line in ["> go", "fail later", "timer_fired"] {
        scene.line(line);
    }
    assert_eq!((scene.s.phase.clone(), scene.s.step), (Phase::Thinking, Step(2)), "{}", scene.out);
    scene.line("< shell: make");
    scene.line("= 2.0 ok");
    assert!(scene.out.contains("ended Deadline"), "{}", scene.out);
    // Without order, no deadline.
    let wrong = Deadline { from: At(5), until: At(5) };
    let set = ConfigPatch { deadline: Some(Some(wrong)), ..ConfigPatch::default() };
    scene.command(Command::Configure { set });
    assert!(scene.out.contains("refused: Invalid"), "{}", scene.out);
}

/// Each request repeats every image.
#[test]
fn a_conversation_has_at_most_twenty_images() {
    let mut scene = play(Config { max_steps: 50, ..auto() }, "> go");
    let mut shown = Vec::new();
    for n in 1..=22_u32 {
        scene.line("< view: x");
        let call = CallId { step: Step(n), index: 0 };
        let images = vec![Hash::of(&n.to_le_bytes())];
        let finished = Finished { images, ..Finished::plain(call, Outcome::Done, "a.png") };
        scene.work(dunnock_core::EffectOutcome::Output(finished));
        let kept = scene.log.iter().rev().find_map(|event| match event {
            Event::Finished(e) => Some((e.images.len(), e.shown.contains("not shown"))),
            _ => None,
        });
        shown.push(kept.unwrap());
    }
    assert!(shown[..20].iter().all(|one| *one == (1, false)), "{shown:?}");
    assert!(shown[20..].iter().all(|one| *one == (0, true)), "{shown:?}");
}
