//! Scenes, written out: tasks, questions, interrupts, crashes, checks.

use crate::stage::{auto, check, play, scene, scene_at};
use dunnock_core::policy::Policy;
use dunnock_core::{
    Claim, DecideContext, EffectOutcome, Input, Report, apply, begin, decide, wanted,
};
use dunnock_proto::*;

/// Holds T9: a read-only call is allowed unasked, the verdict is an event with its reason.
#[test]
fn a_plain_task() {
    let scene = check(
        auto(),
        "> fix it
           prompted fix it
           preamble_set
           step_started 1 holding 151 tokens 0 micros
         < looking | view: a.rs | shell: make all
           answered
           allowed 1.0 Policy(\"it is read-only\")
           allowed 1.1 Policy(\"the sandbox contains it (level A)\")
           started 1.0
         = 1.0 fn main
           finished 1.0 Done fn main
           started 1.1
         = 1.1 built it all
           finished 1.1 Done built it all
           step_started 2 holding 174 tokens 0 micros
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
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < shell: rm x | edit: y | view: z
           answered
           asked q1 shell rm x / why: edits and commands need approval in mode \"ask\"
           asked q2 edit y / why: edits and commands need approval in mode \"ask\"
           allowed 1.2 Policy(\"it is read-only\")
         ! no too risky
           replied
           finished 1.0 Declined { note: Some(\"too risky\") } the person declined this call: too \
         risky
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
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < edit: a | shell: make all
           answered
           allowed 1.0 Policy(\"the approval mode is edits\")
           asked q1 shell make all / why: commands need approval in mode \"edits\"
           started 1.0
         ! always shell ls
           refused: InvalidAnswer
         ! always edit
           refused: InvalidAnswer
         ! always shell make
           refused: InvalidAnswer
         ! always shell make all
           replied
           granted
           allowed 1.1 Person(QuestionId(1))
         = 1.0 a
           finished 1.0 Done a
           started 1.1
         = 1.1 b
           finished 1.1 Done b
           step_started 2 holding 170 tokens 0 micros
         < shell: make all x | shell: make $X | shell: make clean
           answered
           allowed 2.0 Grant(Rule { tool: \"shell\", words: [\"make\", \"all\"], access: Access { \
         network: false, hosts: HostSet({}), secrets: false, protected: false, git_config: false, repository: false, login: false, outside: false, unsandboxed: false } })
           asked q2 shell make $X / why: commands need approval in mode \"edits\"
           asked q3 shell make clean / why: commands need approval in mode \"edits\"
           started 2.0",
    );
}

#[test]
fn a_denial_wins_and_what_is_obscure_is_not_let_through() {
    let deny = vec![
        Rule { tool: "shell".into(), words: vec!["rm".into()], access: Access::NOTHING },
        Rule { tool: "child".into(), words: vec![], access: Access::NOTHING },
    ];
    let told = |mode| {
        play(
            Config { mode, deny: deny.clone(), ..auto() },
            "> go\n< shell: rm x | shell: $X y | shell: touch y | child: z | edit: e",
        )
        .out
    };
    let all = told(Mode::All);
    for line in [
        "finished 1.0 NotRun not allowed: a rule forbids shell rm",
        "finished 1.1 NotRun not allowed: a deny rule may apply, but the command is too complex \
         to check",
        "allowed 1.2 Policy(\"the approval mode is all\")",
        "finished 1.3 NotRun not allowed: a rule forbids child",
        "allowed 1.4 Policy(\"the approval mode is all\")",
    ] {
        assert!(all.contains(line), "{line} is missing in\n{all}");
    }
    let auto = told(Mode::Auto);
    assert!(
        auto.contains("asked q1 shell $X y / why: your deny rule \"shell rm\" may apply"),
        "{auto}"
    );
    assert!(auto.contains("allowed 1.4 Policy(\"it edits files in the workspace\")"), "{auto}");
    let read = told(Mode::Read);
    assert!(
        read.contains(
            "finished 1.2 NotRun not allowed: the approval mode is read: nothing may be changed"
        ),
        "{read}"
    );
}

#[test]
fn a_call_with_broken_arguments_is_neither_asked_about_nor_run() {
    for mode in [Mode::Ask, Mode::All] {
        let mut s = scene(Config { mode, ..auto() });
        s.line("> go");
        s.line("< shell: {\"command\": \"rm -rf");
        assert!(
            s.out.contains("finished 1.0 NotRun not run: the arguments are not a JSON object"),
            "{}",
            s.out
        );
        assert!(s.out.contains("step_started 2"), "the model is told and may try again: {}", s.out);
    }
}

#[test]
fn an_edit_that_other_programs_act_on_asks_like_a_command() {
    let verdict = |mode, path: &str| {
        let mut s = scene(Config { mode, ..auto() });
        s.line("> go");
        s.line(&format!("< edit: {{\"path\":\"{path}\",\"content\":\"x\"}}"));
        if s.out.contains("asked q1") {
            assert!(s.out.contains("is protected: other programs run or load it"), "{}", s.out);
            "asks"
        } else if s.out.contains("NotRun not allowed: edit tools never write to .git or .dunnock") {
            "never"
        } else {
            assert!(s.out.contains("allowed 1.0"), "{}", s.out);
            "runs"
        }
    };
    for path in [
        ".github/workflows/ci.yml",
        "./.envrc",
        "sub/.Cargo//config.toml",
        "a\\\\.vscode\\\\tasks.json",
        "AGENTS.md",
        ".gitmodules",
        ".husky/z",
    ] {
        assert_eq!(
            (verdict(Mode::Auto, path), verdict(Mode::Edits, path)),
            ("asks", "asks"),
            "{path}"
        );
        assert_eq!(verdict(Mode::All, path), "runs", "{path}");
    }
    for path in [
        "x/.git/hooks/y",
        ".GIT/config",
        ".g\u{200d}it/x",
        "GIT~1/hooks/x",
        ".git::$INDEX_ALLOCATION/x",
        ".dunnock/a",
    ] {
        for mode in [Mode::Auto, Mode::Edits, Mode::All] {
            assert_eq!(verdict(mode, path), "never", "{path}");
        }
    }
    for path in
        [".github/labels.yml", "src/config.toml", "envrc", ".gitignore", "workflows/.github", ""]
    {
        assert_eq!(verdict(Mode::Auto, path), "runs", "{path}");
    }
}

#[test]
fn without_a_box_commands_ask() {
    let mut s = scene_at(auto(), Isolation::D);
    let (platform, app) = ("t".to_owned(), "0".to_owned());
    s.owner = 9;
    s.give(Input::Claim(Claim {
        owner: Owner(9),
        isolation: Isolation::D,
        platform,
        app,
        untrusted: Some(Hash::ZERO),
        in_repository: false,
    }));
    s.line("> go");
    s.line("< shell: touch x | edit: a | shell: ls");
    assert!(
        s.out.contains(
            "asked q1 shell touch x / why: there is no sandbox here: the command can do whatever \
             you can"
        ),
        "{}",
        s.out
    );
    assert!(s.out.contains("allowed 1.2 Policy(\"it is read-only\")"), "{}", s.out);
    assert!(!s.out.contains("Trust it?"), "nobody is there to ask about trust");
}

/// RED-H7: the mode `all` runs commands without a sandbox only if the person turned it off.
#[test]
fn mode_all_asks_where_there_is_no_sandbox_unless_it_was_turned_off() {
    let all = Config { mode: Mode::All, ..auto() };
    let go = |config: Config| {
        let mut s = scene_at(config, Isolation::D);
        s.line("> go");
        s.line("< shell: touch x | edit: a | shell: ls | shell: git push");
        s.out
    };
    let out = go(all.clone());
    let why = "asked q1 shell touch x / why: there is no sandbox here: the command can do whatever \
               you can";
    assert!(out.contains(why), "{out}");
    assert!(out.contains("asked q2 shell git push"), "{out}");
    for id in ["1.1", "1.2"] {
        assert!(
            out.contains(&format!("allowed {id} Policy(\"the approval mode is all\")")),
            "{out}"
        );
    }
    let out = go(Config { sandbox: Sandbox::Off, ..all });
    assert!(!out.contains("asked"), "{out}");
    assert!(out.contains("allowed 1.0 Policy(\"the approval mode is all\")"), "{out}");
}

/// A process that isolates commands less well than an earlier one asks about each of them, until
/// the person accepts its level.
#[test]
fn a_weaker_sandbox_than_before_asks_until_it_is_accepted() {
    let rule = Rule {
        tool: "shell".into(),
        words: vec!["make".into(), "all".into()],
        access: Access::NOTHING,
    };
    for mode in [Mode::Auto, Mode::All] {
        let config = Config { mode, allow: vec![rule.clone()], ..auto() };
        for level in [Isolation::C, Isolation::D] {
            let mut s = scene(config.clone());
            // A process that runs no commands, and did not look for a sandbox, changes nothing.
            s.take_at(Isolation::D);
            s.take_at(level);
            s.line("> go");
            s.line("< shell: make x | shell: make all | shell: ls | edit: a");
            let why = "/ why: the sandbox is weaker than before: this session had level A";
            for asked in [format!("asked q1 shell make x {why}"), format!("shell make all {why}")] {
                assert!(s.out.contains(&asked), "{mode:?} {level:?}: {}", s.out);
            }
            assert!(!s.out.contains("asked q3"), "{mode:?} {level:?}: {}", s.out);
            let asked: Vec<_> = s.s.questions.iter().filter_map(|q| q.kind.approval()).collect();
            assert!(asked.iter().all(|asked| asked.rule.is_none()), "a rule would not apply");
        }
        let accepted = Config { sandbox: Sandbox::Require(Isolation::C), ..config.clone() };
        for (config, level) in [(accepted, Isolation::C), (config.clone(), Isolation::A)] {
            let mut s = scene(config);
            s.take_at(Isolation::C);
            s.take_at(level);
            s.line("> go");
            s.line("< shell: make x | shell: make all");
            assert!(!s.out.contains("asked"), "{mode:?} {level:?}: {}", s.out);
        }
    }
}

/// The same question as after a crash: a driver that lost its launcher does not know, either.
#[test]
fn an_unknown_outcome_that_is_reported_asks_like_one_after_a_crash() {
    let ends = |mode, line: &str| {
        let mut s = scene(Config { mode, ..auto() });
        s.line("> go");
        s.line(line);
        let call = s.s.calls[0].id;
        let unknown = Finished::plain(call, Outcome::Unknown, "the launcher died");
        s.give(Input::Report(Report {
            owner: Owner(s.owner),
            work: EffectOutcome::Output(unknown),
        }));
        s.out
    };
    let asked = "asked q1 The outcome of these calls is unknown: 1.0.";
    assert!(ends(Mode::Edits, "< edit: a").contains(asked));
    let out = ends(Mode::Auto, "< shell: make");
    assert!(!out.contains("asked") && out.contains("step_started 2"), "{out}");
    let out = ends(Mode::Edits, "< view: a");
    assert!(!out.contains("asked") && out.contains("step_started 2"), "{out}");
}

#[test]
fn an_interrupt_waits_for_what_runs_and_drops_what_does_not() {
    check(
        auto(),
        "> go
           prompted go
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < shell: a | shell: b
           answered
           allowed 1.0 Policy(\"the sandbox contains it (level A)\")
           allowed 1.1 Policy(\"the sandbox contains it (level A)\")
           started 1.0
         stop
           interrupt_requested
           finished 1.1 NotRun not run: the person interrupted
         stop
           refused: NothingToContinue
         = 1.0 half
           finished 1.0 Done half
           ended Stopped None
         stop
           refused: NothingToContinue
         go
           continued
           step_started 2 holding 178 tokens 0 micros
         > meanwhile
           prompted meanwhile
         stop
           interrupt_requested
         fail cut
           step_failed
           ended Stopped None
           step_started 3 holding 180 tokens 0 micros",
    );
}

#[test]
fn a_crash_makes_begun_work_unknown_and_repeats_what_may_be_repeated() {
    check(
        auto(),
        "> go
           prompted go
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < view: a | fetch: b | shell: c
           answered
           allowed 1.0 Policy(\"it is read-only\")
           allowed 1.1 Policy(\"it is read-only\")
           allowed 1.2 Policy(\"the sandbox contains it (level A)\")
           started 1.0
           started 1.1
         crash
           owner_changed
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
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < edit: a
           answered
           allowed 1.0 Policy(\"the approval mode is edits\")
           started 1.0
         crash
           owner_changed
           finished 1.0 Unknown outcome unknown: the agent was restarted while this ran
           asked q1 The outcome of these calls is unknown: 1.0. They may or may not have taken \
         effect. Continue?
         ! no
           replied
           interrupt_requested
           ended Stopped None",
    );
}

/// Holds W4: final_output ends it; failed verification after its tries ends it.
#[test]
fn done_is_what_the_checks_say() {
    check(
        Config { verify: vec!["t1".into(), "t2".into()], verify_tries: 2, ..auto() },
        "> go
           prompted go
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < done
           answered
           check_called 1.0 {\"command\":\"t1\"} try 1
           allowed 1.0 Harness
           check_called 1.1 {\"command\":\"t2\"} try 1
           allowed 1.1 Harness
           started 1.0
         = 1.0 fine
           finished 1.0 Done fine
           started 1.1
         = 1.1 failed
           finished 1.1 Failed failed
           step_started 2 holding 172 tokens 0 micros
         < final_output: {} | view: x
           answered
           finished 2.0 Done noted
           allowed 2.1 Policy(\"it is read-only\")
           started 2.1
         = 2.1 seen
           finished 2.1 Done seen
           check_called 2.2 {\"command\":\"t1\"} try 2
           allowed 2.2 Harness
           check_called 2.3 {\"command\":\"t2\"} try 2
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
fn files_are_kept_before_every_writer() {
    check(
        Config { checkpoints: true, ..auto() },
        "> go
           prompted go
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < view: r | shell: a | shell: b
           answered
           allowed 1.0 Policy(\"it is read-only\")
           allowed 1.1 Policy(\"the sandbox contains it (level A)\")
           allowed 1.2 Policy(\"the sandbox contains it (level A)\")
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

/// Holds A5: both calls and what is wrong with them.
#[test]
fn a_plan_and_a_question_of_the_models() {
    check(
        auto(),
        "> go
           prompted go
           preamble_set
           step_started 1 holding 150 tokens 0 micros
         < update_plan: {\"steps\":[{\"text\":\"a\"}]} | update_plan: nonsense | ask_person: \
         {\"question\":\"blue?\"} | ask_person: 3
           answered
           planned 1 steps
           finished 1.0 Done noted
           finished 1.1 Failed expected ident at line 1 column 2
           asked q1 blue?
           finished 1.3 Failed invalid type: integer `3`, expected struct AskPersonArgs at line 1 \
         column 1
         ! edit x
           refused: InvalidAnswer
         ! dark blue
           replied
           finished 1.2 Done dark blue
           step_started 2 holding 199 tokens 0 micros",
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
fn a_prompt_that_comes_while_the_model_thinks_is_told_after_its_answer() {
    let mut scene = scene(auto());
    for line in ["> first", "> second", "< an answer"] {
        scene.line(line);
    }
    assert!(
        scene.out.ends_with("answered \n  step_started 2 holding 170 tokens 0 micros\n"),
        "{}",
        scene.out
    );
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
fn while_it_is_asked_whether_to_go_on_nothing_goes_on() {
    let scene = play(Config { mode: Mode::Edits, ..auto() }, "> go\n< edit: a | edit: b\ncrash");
    assert!(
        scene.out.ends_with(
            "asked q1 The outcome of these calls is unknown: 1.0. They may or may not have taken \
             effect. Continue?\n"
        ),
        "{}",
        scene.out
    );
    let yes =
        play(Config { mode: Mode::Edits, ..auto() }, "> go\n< edit: a | edit: b\ncrash\n! yes");
    assert!(yes.out.ends_with("replied \n  started 1.1\n"), "{}", yes.out);
}

#[test]
fn a_rewind_does_not_overwrite_files_that_could_not_be_kept() {
    let mut scene = play(Config { checkpoints: true, ..auto() }, "> go\nkept\n< done");
    let now = DecideContext {
        day_left: None,
        tree_at: Some(Tree("old".into())),
        preamble_drift: None,
        at: At(0),
        policy: Policy::default(),
    };
    let rewind = Command::Rewind { to: RewindTo::Event(3), scope: Scope::Both, force: false };
    let request = CommandRequest { id: "r".parse().unwrap(), expect: None, command: rewind };
    for event in decide(&scene.s, &now, Input::Command(request)).unwrap() {
        scene.told(&event);
    }
    scene.line("> meanwhile");
    let mark = scene.s.dirty.unwrap();
    scene.work(EffectOutcome::Checkpointed(Checkpointed {
        tree: None,
        mark,
        note: Some("no room".into()),
    }));
    assert!(
        scene.out.contains("rewind_failed")
            && !wanted(&scene.s, Owner(1))
                .iter()
                .any(|e| matches!(e, dunnock_core::Effect::Restore { .. })),
        "{}",
        scene.out
    );
    assert!(
        scene.out.ends_with("step_started 2 holding 172 tokens 0 micros\n"),
        "the prompt is dealt with: {}",
        scene.out
    );
}

#[test]
fn arguments_that_were_not_parsed_do_not_pass_a_denial() {
    let deny =
        vec![Rule { tool: "shell".into(), words: vec!["rm".into()], access: Access::NOTHING }];
    let config = Config { mode: Mode::Ask, deny, ..auto() };
    let scene = play(config.clone(), "> go\n< shell: touch y\n! edit rm x");
    assert!(scene.out.ends_with("refused: InvalidAnswer\n"), "{}", scene.out);
    let read = play(Config { mode: Mode::Read, ..config }, "> go\n< shell: ls $X");
    assert!(read.out.contains("not allowed: the approval mode is read"), "{}", read.out);
}

/// G234: what is approved is what was shown, by its hash.
#[test]
fn an_answer_to_what_was_not_shown_is_refused() {
    let mut s = scene(Config { mode: Mode::Ask, ..auto() });
    s.line("> go");
    s.line("< shell: make all");
    let asked = s.s.questions.first().unwrap().clone();
    for hash in [Hash::ZERO, asked.kind.hash(QuestionId(99))] {
        s.command(Command::Reply { question: asked.id, hash, answer: Answer::Yes, note: None });
        assert!(s.out.ends_with("refused: Changed\n"), "{}", s.out);
    }
    s.command(Command::Reply {
        question: asked.id,
        hash: asked.hash,
        answer: Answer::Yes,
        note: None,
    });
    assert!(s.out.contains("allowed 1.0 Person(QuestionId(1))"), "{}", s.out);
}

/// UX-A12: what was approved could not be declined any more, although nothing had started.
#[test]
fn a_yes_can_be_withdrawn_until_the_call_starts() {
    let mut s = scene(Config { mode: Mode::Ask, ..auto() });
    s.line("> go");
    s.line("< shell: make a | shell: make b");
    let asked = s.s.questions.clone();
    let reply = |n: usize, answer: Answer, hash: Hash| Command::Reply {
        question: asked[n].id,
        hash,
        answer,
        note: Some("rather not".into()),
    };
    s.command(reply(0, Answer::Yes, asked[0].hash));
    s.command(reply(1, Answer::Yes, asked[1].hash));
    assert!(s.out.contains("started 1.0") && !s.out.contains("started 1.1"), "{}", s.out);
    for refused in [
        reply(0, Answer::No, asked[0].hash),
        reply(1, Answer::No, asked[0].hash),
        reply(1, Answer::Yes, asked[1].hash),
    ] {
        s.command(refused);
        assert!(s.out.ends_with("refused: NoQuestion\n"), "{}", s.out);
    }
    s.command(reply(1, Answer::No, asked[1].hash));
    let call = s.s.calls.iter().find(|call| call.id.index == 1).unwrap();
    assert!(
        call.finished() && s.out.contains("the person declined this call: rather not"),
        "{}",
        s.out
    );
    s.command(reply(1, Answer::No, asked[1].hash));
    assert!(s.out.ends_with("refused: NoQuestion\n"), "{}", s.out);
}

/// The approval that a command asks for, if it does.
fn asked_for(mode: Mode, line: &str) -> Option<Approval> {
    let mut s = scene(Config { mode, ..auto() });
    s.line("> go");
    s.line(&format!("< shell: {line}"));
    s.s.questions.first().and_then(|q| q.kind.approval().cloned())
}

#[test]
fn a_question_carries_the_reason_the_isolation_the_access_and_the_rule() {
    let network = Access { network: true, ..Access::NOTHING };
    let hosts = ["registry.npmjs.org".parse().unwrap()].into_iter().collect();
    let hosts = Access { hosts, ..Access::NOTHING };
    let unsandboxed = Access { unsandboxed: true, ..Access::NOTHING };
    let npm = asked_for(Mode::Auto, "npm install").unwrap();
    assert_eq!(npm.reasons, [Reason::UsesNetwork { program: "npm".into() }]);
    assert_eq!(
        (&npm.request, npm.isolation, &npm.access, &npm.wider),
        (&RequestKind::Hosts, Some(Isolation::A), &hosts, &network)
    );
    assert_eq!(npm.rule, Some(Rule { tool: "shell".into(), words: vec![], access: hosts }));
    let ssh = asked_for(Mode::Auto, "ssh host true").unwrap();
    assert_eq!((&ssh.request, &ssh.access), (&RequestKind::Network, &network));
    assert_eq!((ssh.wider.is_nothing(), ssh.rule), (true, None));
    let sudo = asked_for(Mode::Auto, "sudo ls").unwrap();
    assert_eq!(sudo.reasons, [Reason::ActsOnMachine { program: "sudo".into() }]);
    assert_eq!(
        (&sudo.request, sudo.access, sudo.rule),
        (&RequestKind::Unsandboxed, unsandboxed, None)
    );
    let kinds = [
        ("git reset --hard", RequestKind::Destructive),
        ("cat .env", RequestKind::Secrets),
        ("git config a b", RequestKind::Protected),
        ("git push origin main", RequestKind::Login),
        ("git push origin main; true", RequestKind::ExtraAccess),
        ("rm -rf .", RequestKind::Destructive),
    ];
    for (line, kind) in kinds {
        assert_eq!(asked_for(Mode::Auto, line).map(|a| a.request), Some(kind), "{line}");
    }
    for line in [
        "python3 x.py",
        "bash -c ls",
        "env ls",
        "npx x",
        "xargs rm",
        "find . -delete",
        "./x",
        "make; make",
        "make $X",
        "make > x",
    ] {
        assert_eq!(asked_for(Mode::Ask, line).unwrap().rule, None, "{line}");
    }
    assert_eq!(asked_for(Mode::Ask, "make test").unwrap().rule.unwrap().shape(), "shell make test");
}

/// A yes counts for the isolation that was shown: in a weaker sandbox the call does not run.
#[test]
fn a_yes_counts_for_the_isolation_that_was_shown() {
    let mut s = scene(Config { mode: Mode::Ask, ..auto() });
    s.line("> go");
    s.line("< shell: make");
    let (platform, app) = ("t".to_owned(), "0".to_owned());
    s.owner = 9;
    s.give(Input::Claim(Claim {
        owner: Owner(9),
        isolation: Isolation::D,
        platform,
        app,
        untrusted: None,
        in_repository: false,
    }));
    s.line("! yes");
    let call = s.s.calls[0].clone();
    assert_eq!(
        (call.level, s.s.level(), s.s.weaker(&call)),
        (Some(Isolation::A), Isolation::D, true)
    );
}

/// Other arguments get what they need, and never more than was shown.
#[test]
fn edited_arguments_get_no_more_than_was_shown() {
    let edited = |line: &str, args: &str| {
        let mut s = scene(Config { mode: Mode::Ask, ..auto() });
        s.line("> go");
        s.line(&format!("< shell: {line}"));
        s.line(&format!("! edit {args}"));
        (s.s.calls[0].access.clone(), s.out.contains("refused: InvalidAnswer"))
    };
    let hosts = ["registry.npmjs.org".parse().unwrap()].into_iter().collect();
    let hosts = Access { hosts, ..Access::NOTHING };
    assert_eq!(edited("npm install", r#"{"command":"npm ci"}"#), (hosts, false));
    let other = r#"{"command":"curl https://example.com/"}"#;
    assert_eq!(edited("npm install", other), (Access::NOTHING, true));
    assert_eq!(edited("docker ps", r#"{"command":"make"}"#), (Access::NOTHING, false));
    assert_eq!(edited("make", r#"{"command":"npm install"}"#), (Access::NOTHING, true));
    assert_eq!(edited("npm install", r#"{"command":"rm -rf /"}"#), (Access::NOTHING, true));
}

/// A rule that is offered can be read: no word of it is long or hides anything.
#[test]
fn no_rule_is_offered_whose_words_cannot_be_read() {
    let long = "x".repeat(5_000);
    for word in ["a\u{202e}b", "a\\tb", "a b", "\u{a0}", long.as_str()] {
        let asked = asked_for(Mode::Auto, &format!("git fetch 'https://{word}'")).unwrap();
        assert_eq!(asked.rule, None, "{word}");
    }
    assert!(asked_for(Mode::Auto, "git fetch https://example.org/x").unwrap().rule.is_some());
}

/// One yes to a program that talks is not a yes to everything that is written to it.
#[test]
fn writing_to_a_process_that_was_let_out_asks() {
    let told = |start: &str| {
        let mut s = scene(auto());
        for line in ["> go", &format!("< process_start: {start}")] {
            s.line(line);
        }
        if !s.s.questions.is_empty() {
            s.line("! yes");
        }
        for line in
            ["= 1.0 started", "< process_start: make x", "= 2.0 started", "< process_write: ls"]
        {
            s.line(line);
        }
        s.s.questions
            .first()
            .and_then(|q| Some(q.kind.approval()?.reasons.clone()))
            .unwrap_or_default()
    };
    assert_eq!(told("make run"), [], "in the sandbox nothing asks");
    assert_eq!(told("ssh host"), [Reason::FeedsProcess]);
}

#[test]
fn an_answer_has_so_many_calls_and_no_more() {
    let mut s = scene(auto());
    s.line("> go");
    let calls: Vec<&str> = (0..502).map(|_| "view: a").collect();
    s.line(&format!("< {}", calls.join(" | ")));
    assert_eq!(
        s.out.matches("NotRun not run: an answer has at most 500 calls").count(),
        2,
        "{}",
        s.out.len()
    );
    assert!(s.out.contains("allowed 1.499 ") && s.out.contains("finished 1.500 NotRun"));
}

/// How well a call was confined when it was allowed stands beside it: only commands are confined.
#[test]
fn what_was_allowed_remembers_its_box() {
    let mut s = scene(auto());
    s.line("> go");
    s.line("< shell: make | edit: a");
    let levels: Vec<Option<Isolation>> = s.s.calls.iter().map(|c| c.level).collect();
    assert_eq!(levels, [Some(Isolation::A), None]);
    assert!(s.s.calls.iter().all(|call| !s.s.weaker(call)));
    let (platform, app) = ("t".to_owned(), "0".to_owned());
    s.owner = 9;
    s.give(Input::Claim(Claim {
        owner: Owner(9),
        isolation: Isolation::C,
        platform,
        app,
        untrusted: None,
        in_repository: false,
    }));
    assert!(
        s.s.calls
            .iter()
            .filter(|call| !call.finished())
            .all(|call| s.s.weaker(call) == (call.class == Class::Command))
    );
}
