//! Scenes, written out: what goes in on the left, the facts that come out below.
//!
//! `> words` a prompt, `< words` an answer, `< tool: args` a call in it (several with `|`), `= 1.0 words` a call's end,
//! `! yes`, `! no note`, `! edit args`, `! words` an answer to the first question, `stop`, `go`, `crash`, `fail words`.

use crate::inputs::head;
use dunnock_core::{Input, Now, Report, State, Take, Work, apply, begin, step, wanted};
use dunnock_proto::*;
use std::fmt::Write as _;
use std::sync::Arc;

struct Scene {
    s: State,
    owner: u128,
    serial: u32,
    out: String,
    log: Vec<Event>,
    day_left: Option<u64>,
}

fn scene(config: Config) -> Scene {
    let mut s = State::default();
    let created: Event =
        Created { workspace: "/w".into(), app: "0".into(), config: Config { model: "m/1".into(), ..config } }.into();
    apply(&mut s, &created);
    let mut scene = Scene { s, owner: 0, serial: 0, out: String::new(), log: vec![created], day_left: None };
    scene.take();
    scene.out.clear();
    scene
}

impl Scene {
    fn take(&mut self) {
        self.owner += 1;
        let (platform, app) = ("t".to_owned(), "0".to_owned());
        let take = Take { owner: Owner(self.owner), level: Level::A, platform, app, untrusted: None };
        self.give(Input::Take(take));
    }

    fn give(&mut self, input: Input) {
        let me = Owner(self.owner);
        match step(&self.s, &Now { day_left: self.day_left, tree_at: None }, input) {
            Err(refused) => writeln!(self.out, "  refused: {refused:?}").unwrap(),
            Ok(events) => {
                events.iter().for_each(|e| self.told(e));
                for event in begin(&self.s, me) {
                    self.told(&event);
                }
            }
        }
        // The head comes by itself.
        if wanted(&self.s, me).iter().any(|e| matches!(e, dunnock_core::Effect::MakeHead { .. })) {
            let head = head(&self.s.config.model, 0);
            self.give(Input::Report(Report { owner: me, work: Work::Headed(head) }));
        }
    }

    fn told(&mut self, event: &Event) {
        apply(&mut self.s, event);
        self.log.push(event.clone());
        let detail = match event {
            Event::Prompted(e) => e.text.to_string(),
            Event::TurnStarted(e) => {
                format!("{} holding {} tokens {} micros", e.turn, e.reserved.tokens, e.reserved.micros)
            }
            Event::Asked(e) => format!("{} {}", e.question, e.text.replace('\n', " / ")),
            Event::Allowed(e) => {
                format!("{} {:?}{}", e.call, e.by, e.args.as_ref().map_or(String::new(), |a| format!(" as {a}")))
            }
            Event::Started(e) => e.call.to_string(),
            Event::Called(e) => format!("{} {} try {}", e.call, e.args, e.tried),
            Event::Finished(e) => format!("{} {:?} {}", e.call, e.outcome, e.shown),
            Event::Ended(e) => format!("{:?} {:?}{}", e.why, e.proof, if e.hold { " held" } else { "" }),
            Event::CompactStarted(e) => format!("{:?} upto {}", e.strength, e.upto),
            Event::CompactFailed(e) => e.error.clone(),
            Event::Planned(e) => format!("{} steps", e.steps.len()),
            _ => String::new(),
        };
        writeln!(self.out, "  {} {detail}", event.kind()).unwrap();
    }

    fn command(&mut self, command: Command) {
        self.serial += 1;
        let id = format!("c{}", self.serial).parse().unwrap();
        self.give(Input::Order(Order { id, expect: None, command }));
    }

    fn work(&mut self, work: Work) {
        self.give(Input::Report(Report { owner: Owner(self.owner), work }));
    }

    fn answer(&mut self, parts: Vec<Part>, usage: Usage) {
        let (turn, model, wire) = (self.s.turn, "m/1".into(), "chat".into());
        let attempts = vec![Attempt { at: At(1), ms: 7, error: None, usage: Usage::default() }];
        let stop = Stop::End;
        self.work(Work::Answer(Answered {
            turn,
            attempts,
            model,
            wire,
            parts,
            stop,
            usage,
            request: Hash::ZERO,
            raw: None,
        }));
    }

    fn line(&mut self, line: &str) {
        writeln!(self.out, "{line}").unwrap();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            ">" => self.command(Command::Prompt { text: rest.into(), images: Vec::new() }),
            "<" => {
                let part = |text: &str| match text.split_once(": ") {
                    Some((tool, args)) => {
                        let words = args.split(' ').map(str::to_owned).collect();
                        let shape = Some(Shape { commands: vec![words], opaque: args.contains('$') });
                        let (id, tool, args) = ("call_0".into(), tool.into(), args.into());
                        Part::Call(Arc::new(CallPart { id, tool, args, recovered: false, shape }))
                    }
                    None => Part::Text { text: text.into() },
                };
                self.answer(
                    rest.split(" | ").map(part).collect(),
                    Usage { input: 100, cached: 40, output: 20, reasoning: 0 },
                );
            }
            "=" => {
                let (call, shown) = rest.split_once(' ').unwrap();
                let outcome = if shown == "failed" { Outcome::Failed } else { Outcome::Done };
                let (call, shown) = (call.parse().unwrap(), shown.into());
                self.work(Work::Output(Finished {
                    call,
                    outcome,
                    shown,
                    full: None,
                    tree: None,
                    exit: None,
                    ms: 5,
                    level: None,
                }));
            }
            "!" => {
                let Some(q) = self.s.questions.first().cloned() else { panic!("nothing is asked at {line}") };
                let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
                let note = (!more.is_empty()).then(|| more.to_owned());
                let answer = match first {
                    "yes" => Answer::Yes,
                    "no" => Answer::No,
                    "edit" => Answer::Edit { args: more.into() },
                    "always" => {
                        let (tool, words) = more.split_once(' ').unwrap_or((more, ""));
                        let words = words.split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect();
                        Answer::Always { rule: Rule { tool: tool.into(), words } }
                    }
                    _ => Answer::Text { text: rest.into() },
                };
                self.command(Command::Reply { question: q.id, hash: q.hash, answer, note });
            }
            "stop" => self.command(Command::Interrupt),
            "go" => self.command(Command::Run),
            "compact" => self.command(Command::Compact),
            "crash" => self.take(),
            "fail" => {
                let failure = match rest {
                    "overflow" => Failure::Overflow,
                    "cut" => Failure::Cut,
                    _ => Failure::Transport,
                };
                let retry_at = (rest == "later").then_some(At(9));
                let (turn, attempts, partial) = (self.s.turn, Vec::new(), "".into());
                let usage = Usage::default();
                self.work(Work::Failed(TurnFailed {
                    turn,
                    attempts,
                    failure,
                    error: rest.into(),
                    partial,
                    usage,
                    retry_at,
                }));
            }
            "shrunk" | "grown" => {
                let dunnock_core::Phase::Compacting { upto, strength, .. } = self.s.phase else {
                    panic!("not compacting")
                };
                let summary = (strength == Strength::Summarise).then(|| Arc::from("short"));
                let (before, after) = if word == "shrunk" { (900, 80) } else { (900, 900) };
                let head = head("m/1", 1);
                self.work(Work::Compacted(Compacted { upto, shortened: Vec::new(), summary, head, before, after }));
            }
            "woken" => self.work(Work::Woken(At(9))),
            "kept" => {
                let mark = self.s.dirty.unwrap_or(0);
                self.work(Work::Checkpointed(Checkpointed { tree: Some(Tree("t".into())), mark, note: None }));
            }
            other => panic!("no such line: {other}"),
        }
    }
}

fn play(config: Config, script: &str) -> Scene {
    let mut scene = scene(config);
    script.lines().for_each(|line| scene.line(line.trim()));
    scene
}

/// The script and, after each line, the facts it made.
#[track_caller]
fn check(config: Config, script_and_facts: &str) -> Scene {
    let expected: Vec<&str> = script_and_facts.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).collect();
    let indent = expected.iter().skip(1).map(|l| l.len() - l.trim_start().len()).min().unwrap_or(0);
    let expected: Vec<&str> =
        expected.iter().enumerate().map(|(n, l)| if n == 0 { *l } else { &l[indent..] }).collect();
    let script: Vec<&str> = expected.iter().filter(|l| !l.starts_with(' ')).copied().collect();
    let scene = play(config, &script.join("\n"));
    let got: Vec<&str> = scene.out.lines().map(str::trim_end).collect();
    assert_eq!(got.join("\n"), expected.join("\n"));
    scene
}

fn auto() -> Config {
    Config { max_output: 50, max_steps: 9, ..Config::default() }
}

#[test]
fn a_plain_task() {
    let scene = check(
        auto(),
        "> fix it
           prompted fix it
           headed
           turn_started 1 holding 151 tokens 0 micros
         < looking | view: a.rs | shell: make all
           answered
           allowed 1.0 Policy(\"it only looks\")
           allowed 1.1 Policy(\"the box holds it (level A)\")
           started 1.0
         = 1.0 fn main
           finished 1.0 Done fn main
           started 1.1
         = 1.1 built it all
           finished 1.1 Done built it all
           turn_started 2 holding 174 tokens 0 micros
         < all done
           answered
           ended Done None",
    );
    assert_eq!((scene.s.spent.tokens, scene.s.spent.ms, scene.s.context), (240, 24, 20));
    assert_eq!(scene.s.title.as_deref(), Some("fix it"));
}

#[test]
fn a_declined_call_is_told_to_the_model() {
    check(
        Config { mode: Mode::Ask, ..auto() },
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < shell: rm x | edit: y | view: z
           answered
           asked q1 shell rm x / why: the mode is ask: whatever changes something asks
           asked q2 edit y / why: the mode is ask: whatever changes something asks
           allowed 1.2 Policy(\"it only looks\")
         ! no too risky
           replied
           finished 1.0 Declined { note: Some(\"too risky\") } the person declined this call: too risky
         ! edit z
           replied
           allowed 1.1 Person(QuestionId(2)) as z
           started 1.1
         = 1.1 ok
           finished 1.1 Done ok
           started 1.2",
    );
}

#[test]
fn always_is_for_calls_of_its_shape_only() {
    check(
        Config { mode: Mode::Edits, ..auto() },
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < edit: a | shell: make all
           answered
           allowed 1.0 Policy(\"the mode is edits\")
           asked q1 shell make all / why: the mode is edits: commands ask
           started 1.0
         ! always shell ls
           refused: Misfit
         ! always edit
           refused: Misfit
         ! always shell make
           replied
           granted
           allowed 1.1 Person(QuestionId(1))
         = 1.0 a
           finished 1.0 Done a
           started 1.1
         = 1.1 b
           finished 1.1 Done b
           turn_started 2 holding 170 tokens 0 micros
         < shell: make clean | shell: make $X | shell: ls
           answered
           allowed 2.0 Grant(Rule { tool: \"shell\", words: [\"make\"] })
           asked q2 shell make $X / why: the mode is edits: commands ask
           asked q3 shell ls / why: the mode is edits: commands ask
           started 2.0",
    );
}

#[test]
fn a_denial_wins_and_what_is_obscure_is_not_let_through() {
    let deny =
        vec![Rule { tool: "shell".into(), words: vec!["rm".into()] }, Rule { tool: "child".into(), words: vec![] }];
    let told = |mode| {
        play(
            Config { mode, deny: deny.clone(), ..auto() },
            "> go\n< shell: rm x | shell: ls $X | shell: ls y | child: z | edit: e",
        )
        .out
    };
    let all = told(Mode::All);
    for line in [
        "finished 1.0 NotRun not allowed: a rule forbids shell rm",
        "finished 1.1 NotRun not allowed: a rule forbids some of these, and this one is obscure",
        "allowed 1.2 Policy(\"the mode is all\")",
        "finished 1.3 NotRun not allowed: a rule forbids child",
        "allowed 1.4 Policy(\"the mode is all\")",
    ] {
        assert!(all.contains(line), "{line} is missing in\n{all}");
    }
    let auto = told(Mode::Auto);
    assert!(
        auto.contains("asked q1 shell ls $X / why: a rule forbids some of these, and this one is obscure"),
        "{auto}"
    );
    assert!(auto.contains("allowed 1.4 Policy(\"an edit in the workspace\")"), "{auto}");
    let read = told(Mode::Read);
    assert!(read.contains("finished 1.2 NotRun not allowed: the mode is read: nothing may change"), "{read}");
}

#[test]
fn without_a_box_commands_ask() {
    let mut s = scene(auto());
    let (platform, app) = ("t".to_owned(), "0".to_owned());
    s.owner = 9;
    s.give(Input::Take(Take { owner: Owner(9), level: Level::D, platform, app, untrusted: Some(Hash::ZERO) }));
    s.line("> go");
    s.line("< shell: ls | edit: a");
    assert!(
        s.out.contains("asked q1 shell ls / why: there is no box here (level D): commands run unconfined"),
        "{}",
        s.out
    );
    assert!(!s.out.contains("Trust it?"), "nobody is there to ask about trust");
}

#[test]
fn an_interrupt_waits_for_what_runs_and_drops_what_does_not() {
    check(
        auto(),
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < shell: a | shell: b
           answered
           allowed 1.0 Policy(\"the box holds it (level A)\")
           allowed 1.1 Policy(\"the box holds it (level A)\")
           started 1.0
         stop
           interrupt_asked
           finished 1.1 NotRun not run: the person interrupted
         stop
           refused: Nothing
         = 1.0 half
           finished 1.0 Done half
           ended Stopped None
         stop
           refused: Nothing
         go
           continued
           turn_started 2 holding 178 tokens 0 micros
         > meanwhile
           prompted meanwhile
         stop
           interrupt_asked
         fail cut
           turn_failed
           ended Stopped None
           turn_started 3 holding 180 tokens 0 micros",
    );
}

#[test]
fn a_crash_makes_begun_work_unknown_and_repeats_what_may_be_repeated() {
    check(
        auto(),
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < view: a | fetch: b | shell: c
           answered
           allowed 1.0 Policy(\"it only looks\")
           allowed 1.1 Policy(\"it only looks\")
           allowed 1.2 Policy(\"the box holds it (level A)\")
           started 1.0
           started 1.1
         crash
           taken
           finished 1.1 Unknown outcome unknown: the agent was restarted while this ran
           started 1.0
         = 1.0 text
           finished 1.0 Done text
           started 1.2",
    );
    check(
        Config { mode: Mode::Edits, ..auto() },
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < edit: a
           answered
           allowed 1.0 Policy(\"the mode is edits\")
           started 1.0
         crash
           taken
           finished 1.0 Unknown outcome unknown: the agent was restarted while this ran
           asked q1 it is not known whether these calls took effect: 1.0. Go on?
         ! no
           replied
           interrupt_asked
           ended Stopped None",
    );
}

#[test]
fn done_is_what_the_checks_say() {
    check(
        Config { verify: vec!["t1".into(), "t2".into()], verify_tries: 2, ..auto() },
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < done
           answered
           called 1.0 {\"command\":\"t1\"} try 1
           allowed 1.0 Harness
           called 1.1 {\"command\":\"t2\"} try 1
           allowed 1.1 Harness
           started 1.0
         = 1.0 fine
           finished 1.0 Done fine
           started 1.1
         = 1.1 failed
           finished 1.1 Failed failed
           turn_started 2 holding 172 tokens 0 micros
         < final_output: {} | view: x
           answered
           finished 2.0 Done noted
           allowed 2.1 Policy(\"it only looks\")
           started 2.1
         = 2.1 seen
           finished 2.1 Done seen
           called 2.2 {\"command\":\"t1\"} try 2
           allowed 2.2 Harness
           called 2.3 {\"command\":\"t2\"} try 2
           allowed 2.3 Harness
           started 2.2
         = 2.2 failed
           finished 2.2 Failed failed
           started 2.3
         = 2.3 fine
           finished 2.3 Done fine
           ended Unproven Failed",
    );
}

#[test]
fn the_limit_is_a_question_for_somebody_and_an_end_for_nobody() {
    let script = "> go\n< view: a\n= 1.0 x\n";
    let alone = play(Config { max_steps: 1, ..auto() }, script);
    assert!(alone.out.ends_with("ended Limit None held\n"), "{}", alone.out);
    let asked = play(Config { max_steps: 1, attended: true, ..auto() }, script);
    assert!(asked.out.ends_with("asked q1 the limit of 1 steps is reached. Go on for 1 more?\n"), "{}", asked.out);
    let yes = play(Config { max_steps: 1, attended: true, ..auto() }, &format!("{script}! yes"));
    assert!(yes.out.contains("replied \n  turn_started 2"), "{}", yes.out);
    let no = play(Config { max_steps: 1, attended: true, ..auto() }, &format!("{script}! no"));
    assert!(no.out.ends_with("ended Limit None held\n"), "{}", no.out);
    let prompt = play(Config { max_steps: 1, attended: true, ..auto() }, &format!("{script}> more"));
    assert!(prompt.out.contains("prompted more\n  turn_started 2"), "a prompt lifts the limit: {}", prompt.out);
    assert!(prompt.s.questions.is_empty());
}

#[test]
fn budgets_hold_back_before_a_request_goes_out() {
    let tokens = |n| Config { budget: Budget { tokens: Some(n), ..Budget::default() }, ..auto() };
    assert!(play(tokens(150), "> go").out.contains("turn_started"), "150 are enough");
    assert!(play(tokens(149), "> go").out.ends_with("ended Budget None held\n"));
    let used = play(tokens(290), "> go\n< view: a\n= 1.0 x");
    assert!(used.out.contains("turn_started 2 holding 170"), "120 used and 170 held back: {}", used.out);
    let price = Price { input: 2_000_000, cached: 500_000, output: 4_000_000 };
    let money = |n| Config { budget: Budget { micros: Some(n), ..Budget::default() }, price: Some(price), ..auto() };
    assert!(play(money(400), "> go").out.contains("turn_started 1 holding 150 tokens 400 micros"));
    assert!(play(money(399), "> go").out.ends_with("ended Budget None held\n"));
    let spent = play(money(10_000), "> go\n< view: a");
    assert_eq!(spent.s.spent.micros, 60 * 2 + 40 / 2 + 20 * 4, "fresh, cached and output tokens");
    assert_eq!(spent.s.reserved, Reserved::default(), "what was held back is given back");
    let time = |ms| Config { budget: Budget { ms: Some(ms), ..Budget::default() }, ..auto() };
    assert!(play(time(12), "> go\n< view: a\n= 1.0 x").out.contains("turn_started 2"), "7 ms and 5 ms");
    assert!(play(time(11), "> go\n< view: a\n= 1.0 x").out.ends_with("ended Budget None held\n"));
    let more = play(Config { attended: true, ..tokens(149) }, "> go\n! yes");
    assert!(
        more.out.contains("asked q1 the budget does not cover") && more.out.contains("turn_started 1"),
        "{}",
        more.out
    );
    let mut day = scene(Config { price: Some(price), ..auto() });
    day.day_left = Some(399);
    day.line("> go");
    assert!(day.out.ends_with("ended Budget None held\n"), "{}", day.out);
    day.day_left = Some(400);
    day.line("go");
    assert!(day.out.contains("turn_started 1"), "the prompt was kept: {}", day.out);
}

#[test]
fn talk_is_compacted_in_two_strengths_and_then_given_up() {
    let small = Config { window: Some(200), compact_at: 100, compact_keep: 2, ..auto() };
    let script = "> go\n< view: a\n= 1.0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";
    let first = play(small.clone(), script);
    assert!(first.out.ends_with("compact_started Shorten upto 4\n"), "{}", first.out);
    let shrunk = play(small.clone(), &format!("{script}shrunk"));
    assert!(shrunk.out.ends_with("compacted \n  turn_started 2 holding 170 tokens 0 micros\n"), "{}", shrunk.out);
    let grown = play(small.clone(), &format!("{script}grown\ngrown"));
    let end = "compact_failed it would not have become shorter: 900 bytes, then 900\n  compact_started Summarise upto 4\ngrown\n  compact_failed it would not have become shorter: 900 bytes, then 900\n  turn_started 2";
    assert!(grown.out.contains(end), "{}", grown.out);
    let stopped = play(small, &format!("{script}stop"));
    assert!(stopped.out.ends_with("interrupt_asked \n"), "{}", stopped.out);
    let over = play(auto(), "> go\n< view: a\n= 1.0 x\nfail overflow\nshrunk");
    assert!(over.out.contains("compact_started Shorten upto 9") && over.out.contains("turn_started 3"), "{}", over.out);
    let hopeless = play(auto(), "> go\nfail overflow\ngrown\ngrown\nfail overflow");
    assert!(hopeless.out.ends_with("ended Failed { error: \"overflow\" } None\n"), "{}", hopeless.out);
    let asked = play(auto(), "compact\n> go\ncompact\n< done\ncompact\nshrunk\ncompact");
    let lines: Vec<&str> = asked.out.lines().map(str::trim).collect();
    let at = |n: usize| lines.iter().enumerate().filter(|(_, l)| **l == "compact").nth(n).unwrap().0 + 1;
    assert_eq!(lines[at(0)], "refused: Nothing");
    assert_eq!(lines[at(1)], "refused: Busy");
    assert_eq!(lines[at(2)], "compact_started Summarise upto 4");
    assert_eq!(lines[at(3)], "refused: Nothing", "there is nothing left to compact");
}

#[test]
fn a_failed_request_waits_or_ends() {
    let later = play(auto(), "> go\nfail later\n> more\nwoken");
    assert!(
        later.out.contains("prompted more\nwoken\n  woken \n  turn_started 2"),
        "a prompt waits too: {}",
        later.out
    );
    let now = play(auto(), "> go\nfail no\ngo");
    assert!(now.out.contains("ended Failed { error: \"no\" } None\ngo\n  continued \n  turn_started 2"), "{}", now.out);
    let cut = play(auto(), "> go\nfail cut");
    assert!(cut.out.ends_with("ended Stopped None\n"), "{}", cut.out);
    let done = play(auto(), "> go\n< done\ngo");
    assert!(done.out.ends_with("refused: Nothing\n"), "{}", done.out);
}

#[test]
fn files_are_kept_before_every_writer() {
    check(
        Config { checkpoints: true, ..auto() },
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < view: r | shell: a | shell: b
           answered
           allowed 1.0 Policy(\"it only looks\")
           allowed 1.1 Policy(\"the box holds it (level A)\")
           allowed 1.2 Policy(\"the box holds it (level A)\")
           started 1.0
         = 1.0 r
           finished 1.0 Done r
         kept
           checkpointed
           started 1.1
         = 1.1 a
           finished 1.1 Done a
         kept
           checkpointed
           started 1.2",
    );
}

#[test]
fn a_plan_and_a_question_of_the_models() {
    check(
        auto(),
        "> go
           prompted go
           headed
           turn_started 1 holding 150 tokens 0 micros
         < update_plan: {\"steps\":[{\"text\":\"a\"}]} | update_plan: nonsense | ask_person: {\"question\":\"blue?\"} | ask_person: 3
           answered
           planned 1 steps
           finished 1.0 Done noted
           finished 1.1 Failed expected ident at line 1 column 2
           asked q1 blue?
           finished 1.3 Failed invalid type: integer `3`, expected struct AskPersonArgs at line 1 column 1
         ! edit x
           refused: Misfit
         ! dark blue
           replied
           finished 1.2 Done dark blue
           turn_started 2 holding 199 tokens 0 micros",
    );
}

#[test]
fn nothing_begins_in_a_session_of_a_later_release() {
    let mut scene = play(Config { checkpoints: true, ..auto() }, "> go\n< shell: a");
    let mark = scene.s.dirty.unwrap();
    apply(&mut scene.s, &Checkpointed { tree: None, mark, note: None }.into());
    assert_eq!(begin(&scene.s, Owner(1)).len(), 1, "it could begin now");
    scene.s.skip("dreamt", "no such kind", true);
    assert!(begin(&scene.s, Owner(1)).is_empty());
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
    assert!(refused(set(ConfigPatch { compact_at: Some(0), ..patch() })));
    assert!(refused(set(ConfigPatch { compact_at: Some(101), ..patch() })));
    assert!(refused(set(ConfigPatch { model: Some(String::new()), ..patch() })));
    assert!(!refused(set(ConfigPatch { compact_keep: Some(1), compact_at: Some(100), max_steps: Some(1), ..patch() })));
    assert!(!refused(Command::Title { title: "x".repeat(200) }));
    assert!(refused(Command::Title { title: "x".repeat(201) }));
}

#[test]
fn a_window_may_be_filled_to_its_share_and_not_beyond() {
    // The second request holds back 170 tokens.
    let script = "> go\n< view: a\n= 1.0 x";
    let window = |n| Config { window: Some(n), compact_at: 100, ..auto() };
    assert!(play(window(170), script).out.contains("turn_started 2"));
    assert!(play(window(169), script).out.contains("compact_started"));
}

#[test]
fn a_prompt_that_comes_while_the_model_thinks_is_told_after_its_answer() {
    let mut scene = scene(auto());
    for line in ["> first", "> second", "< an answer"] {
        scene.line(line);
    }
    assert!(scene.out.ends_with("answered \n  turn_started 2 holding 170 tokens 0 micros\n"), "{}", scene.out);
    let request = dunnock_core::Transcript::fold(None, (1..).zip(&scene.log)).request().unwrap();
    let told: Vec<String> = request
        .messages()
        .iter()
        .map(|m| match m {
            Message::User { text, .. } => format!("user {text}"),
            Message::Assistant { .. } => "answer".into(),
            Message::Result { .. } | Message::Notice { .. } => "other".into(),
        })
        .collect();
    assert_eq!(told, ["user first", "answer", "user second"]);
}

#[test]
fn an_interrupt_of_a_compaction_stops_the_turn_behind_it() {
    let small = Config { window: Some(100), compact_at: 100, ..auto() };
    let scene = play(small, "> go\n< done\n> more\nstop\ngrown");
    assert!(
        scene.out.ends_with(
            "compact_failed it would not have become shorter: 900 bytes, then 900\n  ended Stopped None held\n"
        ),
        "{}",
        scene.out
    );
    assert_eq!(scene.s.unseen, 1, "the prompt waits");
}

#[test]
fn while_it_is_asked_whether_to_go_on_nothing_goes_on() {
    let scene = play(Config { mode: Mode::Edits, ..auto() }, "> go\n< edit: a | edit: b\ncrash");
    assert!(
        scene.out.ends_with("asked q1 it is not known whether these calls took effect: 1.0. Go on?\n"),
        "{}",
        scene.out
    );
    let yes = play(Config { mode: Mode::Edits, ..auto() }, "> go\n< edit: a | edit: b\ncrash\n! yes");
    assert!(yes.out.ends_with("replied \n  started 1.1\n"), "{}", yes.out);
}

#[test]
fn a_rewind_does_not_overwrite_files_that_could_not_be_kept() {
    let mut scene = play(Config { checkpoints: true, ..auto() }, "> go\nkept\n< done");
    let now = Now { day_left: None, tree_at: Some(Tree("old".into())) };
    let rewind = Command::Rewind { to: RewindTo::Fact(3), scope: Scope::Both, force: false };
    let order = Order { id: "r".parse().unwrap(), expect: None, command: rewind };
    for event in step(&scene.s, &now, Input::Order(order)).unwrap() {
        scene.told(&event);
    }
    scene.line("> meanwhile");
    let mark = scene.s.dirty.unwrap();
    scene.work(Work::Checkpointed(Checkpointed { tree: None, mark, note: Some("no room".into()) }));
    assert!(
        scene.out.contains("rewind_failed")
            && !wanted(&scene.s, Owner(1)).iter().any(|e| matches!(e, dunnock_core::Effect::Restore { .. })),
        "{}",
        scene.out
    );
    assert!(
        scene.out.ends_with("turn_started 2 holding 172 tokens 0 micros\n"),
        "the prompt is dealt with: {}",
        scene.out
    );
}

#[test]
fn arguments_that_were_not_parsed_do_not_pass_a_denial() {
    let deny = vec![Rule { tool: "shell".into(), words: vec!["rm".into()] }];
    let config = Config { mode: Mode::Ask, deny, ..auto() };
    let scene = play(config.clone(), "> go\n< shell: ls\n! edit rm x");
    assert!(scene.out.ends_with("refused: Misfit\n"), "{}", scene.out);
    let read = play(Config { mode: Mode::Read, ..config }, "> go\n< shell: ls $X");
    assert!(read.out.contains("not allowed: the mode is read"), "{}", read.out);
}
