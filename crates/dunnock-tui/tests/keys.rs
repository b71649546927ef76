//! What keys do.

use crate::tape::{Tape, approval, approval_of, call, config, id, rule};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use dunnock_proto::*;
use dunnock_tui::{COMMANDS, Effect, HostEvent, HostRequest, Input, KEYS, RuleScope};
use serde_json::json;

fn asked(t: &Tape, want: &HostRequest) -> bool {
    t.effects.iter().any(|e| matches!(e, Effect::Ask(ask) if ask == want))
}

fn asking() -> Tape {
    let mut t = Tape::new(80, 30);
    let approval =
        Approval { rule: Some(rule(&["make"])), ..approval(RequestKind::Command, Reason::ModeAsk) };
    t.working().asks("shell", json!({"command": "make"}), approval);
    t.wait(400);
    t
}

fn answers(t: &Tape) -> Vec<(Answer, Option<String>)> {
    let reply = |c: &Command| match c {
        Command::Reply { answer, note, .. } => Some((answer.clone(), note.clone())),
        _ => None,
    };
    t.commands().iter().filter_map(reply).collect()
}

/// UX-B2: typing a reply approved the command.
#[test]
fn a_reply_never_answers_however_fast_it_is_typed() {
    let mut count = 0;
    for text in ["why", "try", "any", "no idea", "yes but", "e.g. this", "not now", "sure?"] {
        for pause in [30, 60, 100, 150, 200, 300, 400] {
            let mut t = asking();
            t.wait(2_500);
            for c in text.chars() {
                t.key(KeyCode::Char(c)).wait(pause / 2).input(Input::Tick).wait(pause - pause / 2);
            }
            t.wait(2_000).input(Input::Tick);
            assert!(t.commands().is_empty(), "{text} every {pause} ms: {:?}", t.commands());
            assert_eq!(t.state.field.text(), text, "every {pause} ms");
            count += 1;
        }
    }
    println!("{count} replies, none answers");
}

#[test]
fn an_answer_key_can_take_effect_at_once_or_be_taken_back() {
    let mut t = asking();
    t.key(KeyCode::Char('y')).wait(499).input(Input::Tick);
    assert!(answers(&t).is_empty());
    assert!(t.screen().contains("“y” now"), "the wait is visible: {}", t.screen());
    t.wait(1).input(Input::Tick);
    assert_eq!(answers(&t), [(Answer::Yes, None)]);
    let mut t = asking();
    t.key(KeyCode::Char('y')).key(KeyCode::Enter);
    assert_eq!(answers(&t), [(Answer::Yes, None)]);
    // A terminal that stalled: the keys that follow were typed in time.
    let mut t = asking();
    t.key(KeyCode::Char('y')).wait(900).key(KeyCode::Char('e')).input(Input::Tick);
    assert!(t.commands().is_empty() && t.state.field.text() == "ye");
    for back in [KeyCode::Esc, KeyCode::Backspace, KeyCode::Tab, KeyCode::Down] {
        let mut t = asking();
        t.key(KeyCode::Char('y')).wait(100).key(back).wait(2_000).input(Input::Tick);
        assert!(t.commands().is_empty(), "{back:?}: {:?}", t.commands());
    }
    let mut t = asking();
    t.key(KeyCode::Char('a')).key(KeyCode::Enter);
    assert!(answers(&t).is_empty(), "the rule is shown first");
    t.wait(400).key(KeyCode::Enter);
    assert!(answers(&t).is_empty(), "it was not read yet");
    t.wait(100).key(KeyCode::Enter);
    assert_eq!(answers(&t), [(Answer::Always { rule: rule(&["make"]) }, None)]);
    let mut t = asking();
    t.key(KeyCode::Char('y')).input(Input::Paste("es, but".into()));
    t.wait(2_000).input(Input::Tick);
    assert!(t.commands().is_empty() && t.state.field.text() == "yes, but");
}

/// Only where a question offers the whole network does "w" answer it; elsewhere it is a letter.
#[test]
fn the_wider_access_is_an_answer_only_where_it_is_offered() {
    let mut t = asking();
    t.key(KeyCode::Char('w')).wait(2_000).input(Input::Tick);
    assert!(t.commands().is_empty() && t.state.field.text() == "w", "{}", t.state.field.text());
    let hosts = ["example.com".parse().unwrap()].into_iter().collect();
    let approval = dunnock_proto::Approval {
        access: Access { hosts, ..Access::NOTHING },
        wider: Access { network: true, ..Access::NOTHING },
        ..crate::tape::approval(RequestKind::Hosts, Reason::RequestsNetwork)
    };
    let mut t = Tape::new(80, 30);
    t.working().asks("shell", json!({"command": "curl https://example.com/"}), approval).wait(400);
    t.answer('w');
    assert_eq!(answers(&t), [(Answer::Wider, None)]);
}

/// Holds T2: y n t a e in the terminal app; the rule is shown before it is granted.
#[test]
fn each_key_of_an_approval_does_what_it_says() {
    let mut t = asking();
    t.answer('y');
    assert_eq!(answers(&t), [(Answer::Yes, None)]);
    let mut t = asking();
    t.answer('n');
    assert_eq!(answers(&t), [(Answer::No, None)]);
    let mut t = asking();
    t.answer('t').type_in("rather ninja").key(KeyCode::Enter);
    assert_eq!(answers(&t), [(Answer::No, Some("rather ninja".into()))]);
    let mut t = asking();
    t.answer('a');
    assert!(answers(&t).is_empty(), "the rule is shown before anything is granted");
    t.wait(500).key(KeyCode::Enter);
    let rule = rule(&["make"]);
    assert_eq!(answers(&t), [(Answer::Always { rule: rule.clone() }, None)]);
    assert!(
        !asked(&t, &HostRequest::Grant(rule.clone(), RuleScope::Project)),
        "somebody else may have answered"
    );
    let request = t.requests().remove(0);
    t.told(HostEvent::Frame(Frame::Accepted { id: request.id, seq: 9 }));
    assert!(asked(&t, &HostRequest::Grant(rule.clone(), RuleScope::Project)));
    let mut t = asking();
    t.answer('a').answer('g');
    let request = t.requests().remove(0);
    t.told(HostEvent::Frame(Frame::Accepted { id: request.id, seq: 9 }));
    assert!(asked(&t, &HostRequest::Grant(rule.clone(), RuleScope::AllProjects)));
    let mut t = asking();
    t.answer('a').answer('s');
    assert!(!asked(&t, &HostRequest::Grant(rule.clone(), RuleScope::Project)), "only this session");
    assert_eq!(answers(&t), [(Answer::Always { rule }, None)]);
    let mut t = asking();
    t.answer('a').key(KeyCode::Esc).answer('e');
    assert!(
        answers(&t).is_empty() && t.commands().is_empty(),
        "esc goes back, it does not stop the work"
    );
    t.answer('y');
    assert_eq!(answers(&t), [(Answer::Yes, None)], "explained, it can be answered");
}

#[test]
fn an_answer_names_the_question_that_was_shown() {
    let mut t = asking();
    t.answer('y');
    let hash = t.state.session.questions[0].hash;
    assert!(
        matches!(t.commands()[0], Command::Reply { question: QuestionId(1), hash: h, .. } if h == hash)
    );
}

#[test]
fn what_is_typed_before_the_question_is_no_answer() {
    let mut t = Tape::new(80, 30);
    t.working().asks_plain(json!({"command": "make"}));
    t.wait(100).type_in("y").wait(250).type_in("e").wait(250).type_in("s");
    assert!(t.commands().is_empty(), "each of them came too early");
    assert_eq!(t.state.field.text(), "yes", "and none of it is lost");
    t.wait(2_000).type_in("y");
    assert!(t.commands().is_empty(), "who types goes on typing");
    t.key(KeyCode::Tab).answer('y');
    assert!(t.commands().is_empty(), "nor does who came here by a key that completes words");
    t.key(KeyCode::Tab).wait(400).answer('y');
    assert_eq!(answers(&t), [(Answer::Yes, None)]);
}

#[test]
fn a_rule_is_granted_only_where_it_is_seen() {
    let mut t = Tape::new(60, 20);
    let command: String = (1..=60).map(|n| format!("echo {n}\n")).collect();
    let approval =
        Approval { rule: Some(rule(&["echo"])), ..approval(RequestKind::Command, Reason::ModeAsk) };
    t.working().asks("shell", json!({ "command": command }), approval).wait(400);
    for _ in 0..40 {
        t.wait(400).key(KeyCode::PageDown);
    }
    t.answer('a');
    assert!(
        t.screen().contains("commands that start with \"echo\"")
            && t.screen().contains("Always allow"),
        "{}",
        t.screen()
    );
}

#[test]
fn no_row_is_jumped_over_by_paging() {
    let mut t = Tape::new(40, 16);
    let command: String = (1..=80).map(|n| format!("echo row{n}.\n")).collect();
    t.working().asks_plain(json!({ "command": command })).wait(400);
    let mut seen = t.screen();
    for _ in 0..80 {
        seen.push_str(&t.key(KeyCode::PageDown).screen());
    }
    let missed: Vec<u32> = (1..=80).filter(|n| !seen.contains(&format!("row{n}."))).collect();
    assert!(missed.is_empty(), "{missed:?}");
    assert!(!t.screen().is_empty());
    t.answer('y');
    assert_eq!(answers(&t).len(), 1);
}

#[test]
fn what_is_pressed_while_another_session_opens_goes_nowhere_else() {
    let mut t = asking();
    t.type_in("x").key(KeyCode::Tab);
    t.state.field.clear();
    t.state.focus = dunnock_tui::Focus::Field;
    t.type_in("/new").key(KeyCode::Enter);
    assert!(asked(&t, &HostRequest::New));
    let before = t.commands().len();
    t.wait(400).key(KeyCode::BackTab).key(KeyCode::Esc).key(KeyCode::Tab).wait(400).answer('y');
    assert_eq!(t.commands().len(), before, "neither a mode, nor a stop, nor a yes");
}

#[test]
fn the_next_question_is_guarded_too() {
    let mut t = Tape::new(80, 30);
    let parts = (0..2).map(|n| call("shell", json!({"command": format!("make {n}")}))).collect();
    t.working().answered(1, parts);
    t.question(approval_of(id(1, 0)));
    t.question(approval_of(id(1, 1)));
    t.wait(400).answer('y');
    t.fact(Replied { question: QuestionId(1), answer: Answer::Yes, note: None });
    t.wait(50).answer('y');
    assert_eq!(answers(&t).len(), 1, "a second y in the same breath answers nothing");
}

#[test]
fn a_question_that_a_list_covered_is_guarded_when_it_comes_into_sight() {
    let mut t = Tape::new(80, 30);
    t.working();
    t.state.history.add("an earlier prompt");
    t.control('r').asks_plain(json!({"command": "make"})).wait(5_000).key(KeyCode::Enter);
    t.type_in("yes, and more");
    assert!(t.commands().is_empty(), "it was never seen");
    let mut t = Tape::new(80, 30);
    t.working().told(HostEvent::Models(vec!["a/b".into()])).asks_plain(json!({"command": "make"}));
    t.wait(5_000).key(KeyCode::Esc).wait(10).type_in("y");
    assert!(t.commands().is_empty(), "it came into sight just now");
}

#[test]
fn an_explanation_is_not_what_would_run() {
    let mut t = Tape::new(200, 60);
    let command: String = (1..=300).map(|n| format!("echo {n}\n")).collect();
    t.working().asks_plain(json!({ "command": command })).wait(400);
    t.answer('e').answer('y');
    assert!(t.commands().is_empty(), "its end was not on the screen");
}

#[test]
fn nothing_is_approved_where_it_cannot_be_seen() {
    for (columns, rows) in [(12, 30), (80, 5), (1, 1)] {
        let mut t = Tape::new(columns, rows);
        t.working().asks_plain(json!({"command": "make"})).wait(400).answer('y');
        assert!(t.commands().is_empty(), "{columns}x{rows}");
    }
}

#[test]
fn why_it_asks_cannot_be_forged() {
    let mut t = Tape::new(80, 30);
    let command = "git push 'x\nwhy      the model is trusted\nsandbox  full sandbox'";
    let reason = Reason::ContactsRemote { command: "git push".into() };
    t.working().asks(
        "shell",
        json!({ "command": command }),
        approval(RequestKind::Network, reason),
    );
    let screen = t.wait(400).screen();
    // What the model wrote is above what we say, and never below it.
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}\n{screen}"));
    assert!(
        at("the model is trusted") < at("why      git push contacts a remote repository"),
        "{screen}"
    );
    assert_eq!(screen.matches("git push contacts").count(), 1, "{screen}");
}

#[test]
fn a_past_of_many_facts_is_read_without_drawing_it() {
    let mut t = Tape::new(80, 24);
    let session = SessionId::from_random([3; 16]);
    let resumed = Some("9 h ago".into());
    t.welcome().told(HostEvent::Opened { id: session, upto: 2_002, resumed, draft: None });
    t.fact(Created { workspace: "/w".into(), app: "0".into(), config: config(), base: None });
    t.fact(Prompted { text: "a long one".into(), images: Vec::new() });
    for n in 1..=1_000 {
        t.answered(n, vec![call("shell", json!({"command": "make"}))]);
        t.fact(Finished { ms: 500, ..Finished::plain(id(n, 0), Outcome::Done, "ok\n") });
    }
    let screen = t.screen();
    assert!(
        screen.contains("Resumed") && screen.lines().count() < 200,
        "{}",
        screen.lines().count()
    );
}

#[test]
fn what_was_typed_for_a_question_that_another_answered_is_kept() {
    let mut t = asking();
    t.answer('t').type_in("rather ninja");
    t.fact(Replied { question: QuestionId(1), answer: Answer::Yes, note: None });
    assert_eq!(t.state.field.text(), "rather ninja");
    let mut t = asking();
    t.answer('t').type_in("rather ninja").key(KeyCode::Enter);
    t.fact(Replied {
        question: QuestionId(1),
        answer: Answer::No,
        note: Some("rather ninja".into()),
    });
    assert!(t.state.field.is_empty(), "what was sent is not");
}

#[test]
fn a_paste_is_never_an_answer() {
    let mut t = asking();
    t.input(Input::Paste("y".into()));
    assert!(t.commands().is_empty());
    assert_eq!(t.state.field.text(), "y");
}

#[test]
fn what_does_not_fit_is_read_to_its_end_before_it_is_approved() {
    let mut t = Tape::new(60, 20);
    let command: String = (1..=300).map(|n| format!("echo {n}\n")).collect();
    t.working().asks_plain(json!({ "command": command })).wait(400);
    t.answer('y');
    assert!(t.commands().is_empty() && t.state.hint.contains("to the end"), "{}", t.state.hint);
    for _ in 0..40 {
        t.key(KeyCode::PageDown);
    }
    assert!(t.screen().contains("echo 300"));
    t.answer('y');
    assert_eq!(answers(&t), [(Answer::Yes, None)]);
    // To decline, nothing has to be read.
    let mut t = Tape::new(60, 20);
    t.working().asks_plain(json!({ "command": command })).wait(400).answer('n');
    assert_eq!(answers(&t), [(Answer::No, None)]);
}

#[test]
fn esc_stops_and_esc_esc_only_shows_where_one_can_go_back() {
    let mut t = Tape::new(80, 24);
    t.working().key(KeyCode::Esc);
    assert_eq!(t.commands(), [Command::Interrupt]);
    t.wait(200).key(KeyCode::Esc);
    assert!(asked(&t, &HostRequest::Points));
    assert_eq!(t.commands().len(), 1, "it never goes back by itself");
    let mut t = Tape::new(80, 24);
    t.begun(config()).key(KeyCode::Esc).wait(5_000).key(KeyCode::Esc);
    assert!(!asked(&t, &HostRequest::Points), "two that are far apart are not twice");
}

#[test]
fn ctrl_c_once_stops_or_empties_and_twice_quits() {
    let mut t = Tape::new(80, 24);
    t.begun(config()).type_in("half").control('c');
    assert!(t.state.field.is_empty() && t.commands().is_empty());
    t.control('y');
    assert_eq!(t.state.field.text(), "half", "it can be put back");
    let mut t = Tape::new(80, 24);
    t.working().type_in("half").control('c');
    assert_eq!(
        (t.commands(), t.state.field.text()),
        (vec![Command::Interrupt], "half"),
        "nothing that was typed goes"
    );
    assert!(!t.effects.contains(&Effect::Quit));
    t.wait(300).control('c');
    assert!(t.effects.contains(&Effect::Quit));
}

/// Holds T4: up and down.
#[test]
fn history_is_walked_searched_and_kept() {
    let mut t = Tape::new(80, 24);
    t.begun(config());
    for text in ["first", "second"] {
        t.type_in(text).key(KeyCode::Enter);
    }
    assert!(t.effects.contains(&Effect::Remember("first".into())));
    t.type_in("half").key(KeyCode::Up).key(KeyCode::Up);
    assert_eq!(t.state.field.text(), "first");
    t.key(KeyCode::Down).key(KeyCode::Down);
    assert_eq!(t.state.field.text(), "half");
    t.control('u').control('r').type_in("fir").key(KeyCode::Enter);
    assert_eq!(t.state.field.text(), "first");
}

#[test]
fn a_prompt_that_is_refused_comes_back() {
    let mut t = Tape::new(80, 24);
    t.begun(config()).type_in("do it").key(KeyCode::Enter);
    let Some(Effect::Ask(HostRequest::Command(request))) =
        t.effects.iter().find(|e| matches!(e, Effect::Ask(HostRequest::Command(_)))).cloned()
    else {
        unreachable!("nothing was sent")
    };
    t.told(HostEvent::Frame(Frame::Refused {
        id: request.id,
        reason: Refused::ReadOnly,
        version: 1,
        questions: Vec::new(),
    }));
    assert_eq!(t.state.field.text(), "do it");
    let mut t = Tape::new(80, 24);
    t.welcome().type_in("do it").key(KeyCode::Enter).told(HostEvent::NotSent("do it".into()));
    assert_eq!(t.state.field.text(), "do it");
}

#[test]
fn shift_tab_cycles_the_mode_and_never_reaches_all() {
    let mut t = Tape::new(80, 24);
    t.welcome();
    let mut seen = Vec::new();
    for _ in 0..8 {
        t.key(KeyCode::BackTab);
        seen.push(t.state.approvals());
    }
    assert!(!seen.contains(&Mode::All));
    assert_eq!(seen[..4], [Mode::Read, Mode::Ask, Mode::Edits, Mode::Auto]);
    let mut t = Tape::new(80, 24);
    t.begun(config()).key(KeyCode::BackTab);
    assert!(matches!(&t.commands()[0], Command::Configure { set } if set.mode == Some(Mode::Read)));
}

/// Holds T3: every slash command works.
#[test]
fn every_slash_command_of_the_table_does_something() {
    for command in COMMANDS {
        let mut t = Tape::new(80, 24);
        t.begun(config());
        t.state.session.answer = "the answer".into();
        let before = t.screen();
        t.type_in(&format!("/{}", command.name)).key(KeyCode::Enter);
        let others = t.effects.iter().any(|e| !matches!(e, Effect::Remember(_)));
        let differs = t.screen() != before;
        assert!(others || differs, "/{} does nothing", command.name);
        assert!(!t.screen().contains("unknown command"), "/{}", command.name);
    }
    println!("{} slash commands", COMMANDS.len());
}

/// Every key of the table, pressed where it means something: something must happen.
#[test]
fn every_key_of_the_table_does_something() {
    for help in KEYS {
        for key in help.key.split(", ") {
            let mut t = match help.place {
                dunnock_tui::Place::Question => asking(),
                dunnock_tui::Place::List => {
                    let mut t = Tape::new(80, 24);
                    t.begun(config())
                        .told(HostEvent::Models(vec!["a/b".into(), "c/d".into(), "e/f".into()]))
                        .key(KeyCode::Down);
                    t
                }
                dunnock_tui::Place::Typing | dunnock_tui::Place::Anywhere => {
                    let mut t = Tape::new(80, 24);
                    t.working();
                    t.state.history.add("before");
                    if key == "tab" {
                        t.asks_plain(json!({"command": "make"})).wait(400);
                    }
                    // Words on both sides of the cursor, except where the field must be empty.
                    if !matches!(
                        key,
                        "ctrl-d" | "/" | "@" | "!" | "up" | "down" | "esc esc" | "ctrl-c" | "tab"
                    ) {
                        t.type_in("one two").control('w').type_in("two").key(KeyCode::Left);
                    }
                    t
                }
            };
            if help.place == dunnock_tui::Place::Question
                && matches!(key, "left" | "right" | "up" | "down" | "pgup" | "pgdn")
            {
                t = Tape::new(60, 16);
                let command: String = (1..=300).map(|n| format!("echo {n}\n")).collect();
                t.working().answered(
                    1,
                    vec![
                        call("shell", json!({ "command": command })),
                        call("shell", json!({ "command": command })),
                    ],
                );
                t.question(approval_of(id(1, 0)));
                t.question(approval_of(id(1, 1)));
                t.wait(400).key(KeyCode::Right).wait(400).key(KeyCode::Left).wait(400);
                if key == "left" {
                    t.key(KeyCode::Right).wait(400);
                }
                t.key(KeyCode::PageDown);
            }
            if key == "down" && help.place == dunnock_tui::Place::Typing {
                t.key(KeyCode::Up);
            }
            if key == "enter" && help.place == dunnock_tui::Place::Question {
                t.key(KeyCode::Char('y'));
            }
            let (before, effects) = (t.screen(), t.effects.len());
            press(&mut t, key);
            assert!(
                t.screen() != before || t.effects.len() > effects,
                "{key} ({}) does nothing",
                help.place.name()
            );
        }
    }
    println!("{} rows of keys", KEYS.len());
}

fn press(t: &mut Tape, key: &str) {
    for part in key.split(' ') {
        let (held, name) = match part.split_once('-') {
            Some(("ctrl", name)) => (KeyModifiers::CONTROL, name),
            Some(("alt", name)) => (KeyModifiers::ALT, name),
            Some(("shift", "tab")) => (KeyModifiers::SHIFT, "backtab"),
            _ => (KeyModifiers::NONE, part),
        };
        let code = match name {
            "esc" => KeyCode::Esc,
            "tab" => KeyCode::Tab,
            "backtab" => KeyCode::BackTab,
            "enter" => KeyCode::Enter,
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "pgup" => KeyCode::PageUp,
            "pgdn" => KeyCode::PageDown,
            name => KeyCode::Char(name.chars().next().unwrap()),
        };
        t.input(Input::Key(KeyEvent::new(code, held)));
    }
}
