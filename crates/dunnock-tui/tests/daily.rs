//! What people meet every day: counts, the pager, joiners in prose.

use crate::tape::{Tape, approval, approval_of, call, id, say, welcome};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use dunnock_proto::*;
use dunnock_tui::{CallText, Effect, HostEvent, HostRequest, Input, Welcome};
use serde_json::json;

const PATCH: &str = "*** Begin Patch\n*** Update File: stats.py\n@@\n-a = 1\n+a = 2\n*** Add File: \
                     report.py\n+b = 1\n*** Update File: old.py\n*** Move to: new.py\n@@\n-c\n+d\n*** End \
                     Patch";

/// A rule that opened hosts was called "shell", as if it allowed every command.
#[test]
fn a_rule_for_hosts_is_named_by_its_hosts() {
    let mut t = Tape::new(80, 24);
    let hosts = ["docs.rs".parse().unwrap()].into_iter().collect();
    let access = Access { hosts, ..Access::NOTHING };
    let rule = Rule { tool: "shell".into(), words: Vec::new(), access };
    t.working().fact(Granted { rule: rule.clone() });
    assert!(t.screen().contains("allowed in this session: hosts docs.rs"), "{}", t.screen());
    t.fact(Revoked { rule });
    assert!(t.screen().contains("no longer allowed: hosts docs.rs"), "{}", t.screen());
}

/// UX-A9: a patch of three files was counted as one.
#[test]
fn the_summary_counts_files_not_calls() {
    let mut t = Tape::new(80, 24);
    let again = json!({"path": "./stats.py", "old": "a = 2", "new": "a = 3"});
    t.working().answered(
        1,
        vec![call("apply_patch", json!({ "patch": PATCH })), call("replace_text", again)],
    );
    for index in 0..2 {
        t.started(id(1, index));
        let done = Finished::plain(id(1, index), Outcome::Done, "done");
        t.fact(Finished { diff: Some(Hash::ZERO), ..done });
    }
    t.step(2).answered(2, vec![say("Done.")]);
    t.fact(Ended { reason: EndReason::Done, proof: Proof::None, hold: false });
    assert!(t.screen().contains(" · 3 files "), "{}", t.screen());
}

/// Two commands that have ended, and a question that is open.
fn with_output() -> Tape {
    let mut t = Tape::new(80, 24);
    let shell = |command: &str| call("shell", json!({ "command": command }));
    t.working().answered(1, vec![shell("make one"), shell("make two"), shell("make three")]);
    for index in 0..2 {
        t.started(id(1, index));
        t.fact(Finished::plain(id(1, index), Outcome::Done, "short\n"));
    }
    t.question(approval_of(id(1, 2)));
    t.wait(1_000);
    t
}

fn loads(t: &Tape) -> Vec<CallId> {
    let load = |effect: &Effect| match effect {
        Effect::Ask(HostRequest::CallText(call)) => Some(*call),
        _ => None,
    };
    t.effects.iter().filter_map(load).collect()
}

fn lines(n: usize) -> String {
    (1..=n).map(|n| format!("line number {n}\n")).collect()
}

/// UX-A10: nothing opened the whole output of a call.
#[test]
fn the_pager_shows_all_of_an_output_and_scrolls() {
    let mut t = with_output();
    t.control('o');
    assert_eq!(loads(&t), [id(1, 1)], "the newest first");
    t.told(HostEvent::CallText(id(1, 1), Ok(CallText::Output(lines(200_000)))));
    let screen = t.screen();
    assert!(screen.contains("make two") && screen.contains("line number 1\n"), "{screen}");
    assert!(screen.contains("call 1 of 2 · line 1 of 200000"), "{screen}");
    t.key(KeyCode::Char('G'));
    assert!(t.screen().contains("line number 200000\n"), "{}", t.screen());
    t.key(KeyCode::PageUp);
    assert!(!t.screen().contains("line number 200000\n"), "{}", t.screen());
    t.key(KeyCode::Char('g')).key(KeyCode::Down);
    assert!(!t.screen().contains("line number 1\n") && t.screen().contains("line number 2\n"));
    t.key(KeyCode::Right);
    assert_eq!(loads(&t), [id(1, 1), id(1, 0)], "the one before it");
    t.told(HostEvent::CallText(id(1, 1), Ok(CallText::Output("late\n".into()))));
    assert!(t.screen().contains("loading"), "an answer about another call: {}", t.screen());
    let diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n";
    t.told(HostEvent::CallText(id(1, 0), Ok(CallText::Diff(diff.into()))));
    assert!(t.screen().contains("edit a.py") && t.screen().contains("    1 +y"), "{}", t.screen());
    t.key(KeyCode::Esc);
    assert!(t.screen().contains("waiting for you"), "{}", t.screen());
    assert!(t.commands().is_empty(), "{:?}", t.commands());
}

#[test]
fn no_key_answers_a_question_behind_the_pager() {
    let keys = "yntaesgqo1 ".chars().map(KeyCode::Char);
    let keys = keys.chain([KeyCode::Enter, KeyCode::BackTab, KeyCode::Tab, KeyCode::Left]);
    for code in keys {
        let mut t = with_output();
        t.key(KeyCode::Char('y')).control('o'); // the first key was not meant for it either
        t.wait(1_000).input(Input::Tick);
        t.key(code).wait(1_000).input(Input::Tick).wait(1_000).input(Input::Tick);
        assert!(t.commands().is_empty(), "{code:?}: {:?}", t.commands());
        assert!(t.state.field.is_empty(), "{code:?}: {}", t.state.field.text());
        if code != KeyCode::Char('q') {
            assert!(t.state.pager.is_some(), "{code:?}");
        }
    }
    // After it is closed, the question has to be on the screen for a while again.
    let mut t = with_output();
    t.control('o').key(KeyCode::Esc).key(KeyCode::Char('y')).wait(1_000).input(Input::Tick);
    assert!(t.commands().is_empty(), "{:?}", t.commands());
    let mut t = with_output();
    t.control('o').input(Input::Paste("yes".into()));
    assert!(t.state.field.is_empty() && t.commands().is_empty());
}

#[test]
fn a_long_line_in_the_pager_is_folded_not_cut() {
    let mut t = with_output();
    t.control('o');
    let long = format!("{}END", "x".repeat(2_988));
    t.told(HostEvent::CallText(id(1, 1), Ok(CallText::Output(long))));
    t.key(KeyCode::End);
    assert!(t.screen().contains("END"), "{}", t.screen());
    t.input(Input::Resize(40, 12)).key(KeyCode::Home).key(KeyCode::End);
    assert!(t.screen().contains("END"), "{}", t.screen());
}

#[test]
fn calls_that_wait_for_others_are_shown() {
    let mut t = Tape::new(80, 24);
    let shell = |command: &str| call("shell", json!({ "command": command }));
    t.working().answered(1, vec![shell("sleep 2; echo a"), shell("sleep 2; echo b")]);
    for index in 0..2 {
        t.fact(Allowed {
            call: id(1, index),
            by: AllowedBy::Harness,
            args: None,
            hash: Hash::ZERO,
            isolation: None,
            access: Access::NOTHING,
            reads_secret: false,
        });
    }
    t.started(id(1, 0));
    let screen = t.screen();
    let row = screen.lines().find(|line| line.contains("echo b")).unwrap();
    assert!(row.contains("waiting"), "{screen}");
    t.started(id(1, 1));
    assert!(!t.screen().contains("waiting"), "{}", t.screen());
}

#[test]
fn a_long_paste_is_a_label_in_the_scrollback_too() {
    let mut t = Tape::new(80, 24);
    t.begun(crate::tape::config());
    t.type_in("look at ").input(Input::Paste(lines(300))).key(KeyCode::Enter);
    let text = t.commands().into_iter().find_map(|command| match command {
        Command::Prompt { text, .. } => Some(text),
        _ => None,
    });
    let text = text.unwrap();
    assert!(text.contains("line number 300"), "the model gets all of it");
    t.fact(Prompted { text, images: Vec::new() });
    let screen = t.screen();
    assert!(screen.contains("> look at [paste 1: 300 lines]"), "{screen}");
    assert!(!screen.contains("line number 7"), "{screen}");
}

#[test]
fn a_picture_that_is_named_is_attached() {
    let mut t = Tape::new(80, 24);
    t.begun(crate::tape::config());
    t.told(HostEvent::Files(vec!["shot.png".into(), "src/a.rs".into()]));
    t.type_in("what is in @shot.png and @src/a.rs and @gone.png?").key(KeyCode::Enter);
    let sent = t.effects.iter().find_map(|effect| match effect {
        Effect::Ask(HostRequest::Pictures { text, pictures }) => Some((text, pictures)),
        _ => None,
    });
    let (text, pictures) = sent.unwrap();
    assert_eq!(pictures, &["shot.png"]);
    assert!(text.contains("@shot.png"), "the model is told its name");
}

/// The last row, which is the same for every call, was below the edge and blocked `y`.
#[test]
fn standard_rows_do_not_have_to_be_read_again() {
    let mut unread = 0;
    for rows in 12..=24 {
        let mut t = Tape::new(50, rows);
        let approval = Approval {
            access: Access { network: true, ..Access::NOTHING },
            ..approval(RequestKind::Command, Reason::ModeAsk)
        };
        t.working().asks("shell", json!({"command": "make"}), approval);
        let screen = t.wait(1_000).screen();
        t.answer('y');
        let shown = screen.contains("/home/ada/webshop");
        assert_eq!(t.commands().len(), usize::from(shown), "{screen}");
        unread += usize::from(shown && screen.contains("below: pgdn"));
    }
    assert!(unread > 0, "the last rows were below the edge at some height");
    // Of a long command, the end has to be seen.
    let mut t = Tape::new(50, 20);
    t.working().asks_plain(json!({"command": "x\n".repeat(30)}));
    t.wait(1_000).answer('y');
    assert!(t.commands().is_empty(), "{:?}", t.commands());
}

#[test]
fn where_there_is_no_model_there_is_no_price() {
    let mut t = Tape::new(100, 24);
    t.told(HostEvent::Welcome(Welcome { model: None, ..welcome() }));
    assert!(!t.screen().contains("$0.00"), "{}", t.screen());
    t.told(HostEvent::Welcome(welcome()));
    assert!(t.screen().contains("$0.00"), "{}", t.screen());
}

#[test]
fn the_branch_in_the_status_line_follows() {
    let mut t = Tape::new(100, 24);
    t.begun(crate::tape::config());
    t.told(HostEvent::Branch(Some("wip".into())));
    assert!(t.screen().lines().any(|line| line.contains("(wip)")), "{}", t.screen());
}

#[test]
fn a_key_that_is_held_with_control_is_not_typed_in_the_pager() {
    let mut t = with_output();
    t.control('o');
    t.input(Input::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT)));
    assert!(t.state.pager.is_some());
    t.control('o');
    assert!(t.state.pager.is_none(), "the same key closes it");
}
