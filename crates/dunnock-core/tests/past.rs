//! What one can go back to, from the events alone.

use dunnock_core::{FileHistory, UndoTarget};
use dunnock_proto::*;

fn tree(name: &str) -> Option<Tree> {
    Some(Tree(name.into()))
}

/// Events by short names: `prompt`, `step N`, `answer`, `done [BEFORE]`, `kept TREE MARK`, `end`,
/// `asked UPTO`, `back TREE UPTO`.
fn past(story: &str) -> FileHistory {
    let mut past = FileHistory::default();
    for (line, seq) in story.lines().map(str::trim).filter(|l| !l.is_empty()).zip(1..) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |n: usize| words[n].parse::<u64>().unwrap();
        let call = CallId { step: Step(1), index: 0 };
        let spans =
            |n: usize| if number(n) == 0 { vec![] } else { vec![Span { from: 1, to: number(n) }] };
        let event: Event = match words[0] {
            "created" => Created {
                workspace: "w".into(),
                app: "a".into(),
                config: Config::default(),
                base: None,
            }
            .into(),
            "prompt" => Prompted { text: "p".into(), images: Vec::new() }.into(),
            "go" => Continued {}.into(),
            "step" => {
                let step = Step(number(1).try_into().unwrap());
                StepStarted {
                    step,
                    upto: seq - 1,
                    preamble: Hash::ZERO,
                    reserved: Reserved::default(),
                }
                .into()
            }
            "failed" => StepFailed::unsent(Step(1), Failure::Interrupted, String::new()).into(),
            "done" => {
                let before = words.get(1).and_then(|name| tree(name));
                Finished { before, ..Finished::plain(call, Outcome::Done, "") }.into()
            }
            "kept" => Checkpointed { tree: tree(words[1]), mark: number(2), note: None }.into(),
            "unknown" => Finished::plain(call, Outcome::Unknown, "").into(),
            "reported_unknown" => Finished {
                isolation: Some(Isolation::A),
                ..Finished::plain(call, Outcome::Unknown, "")
            }
            .into(),
            "owner_changed" => OwnerChanged {
                owner: Owner(1),
                isolation: Isolation::D,
                platform: String::new(),
                app: String::new(),
                lost: Reserved::default(),
                in_repository: false,
            }
            .into(),
            "files" => RewindRequested {
                spans: spans(2),
                tree: tree(words[1]),
                scope: Scope::Files,
                force: false,
                to: None,
            }
            .into(),
            "lost" => Checkpointed { tree: None, mark: number(1), note: None }.into(),
            "end" => Ended { reason: EndReason::Done, proof: Proof::None, hold: false }.into(),
            "asked" => RewindRequested {
                spans: spans(1),
                tree: None,
                scope: Scope::Both,
                force: false,
                to: None,
            }
            .into(),
            "back" => Rewound {
                spans: spans(2),
                tree: tree(words[1]),
                undo: None,
                note: None,
                partial: false,
            }
            .into(),
            other => unreachable!("{other}"),
        };
        past.add(seq, &event);
    }
    past
}

fn names(windows: &[(Tree, Tree)]) -> Vec<String> {
    windows.iter().map(|(a, b)| format!("{}>{}", a.0, b.0)).collect()
}

/// Two tasks; between them, and once before a call, somebody else changed something.
const STORY: &str = "created
    prompt
    step 1
    kept a 3
    done
    kept b 5
    step 2
    end
    prompt
    step 3
    kept c 10
    done d
    kept e 12
    step 4
    done
    kept e 15
    end";

#[test]
fn steps_end_where_their_last_fact_is() {
    let past = past(STORY);
    assert_eq!(past.steps(), [0, 1, 2, 3, 4]);
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|n| past.step(n)),
        [Some(1), Some(5), Some(8), Some(12), Some(17), None]
    );
    assert_eq!(past.undo_target(), Some(UndoTarget::Run(8)));
    assert_eq!(past.last(), Some(&Tree("e".into())));
    assert_eq!(FileHistory::default().undo_target(), None);
    assert_eq!(
        (
            FileHistory::default().steps(),
            FileHistory::default().last(),
            FileHistory::default().step(0)
        ),
        (vec![], None, None)
    );
}

#[test]
fn a_rewind_knows_the_last_step_that_it_keeps() {
    let mut past = past(STORY);
    let ends = [0, 4, 5, 7, 8, 11, 12, 16, 17].map(|at| past.last_step(at));
    assert_eq!(ends, [0, 0, 1, 1, 2, 2, 3, 3, 4]);
    assert_eq!(past.undone_after(), None, "nothing was requested");
    let mut request = |to| {
        let request = RewindRequested {
            spans: Vec::new(),
            tree: None,
            scope: Scope::Both,
            force: false,
            to: Some(to),
        };
        past.add(18, &request.into());
        past.undone_after()
    };
    assert_eq!(request(RewindTo::Event(8)), Some(2));
    assert_eq!(request(RewindTo::Event(1)), Some(0));
    assert_eq!(request(RewindTo::Undo), None);
}

#[test]
fn the_files_at_a_fact_hold_what_the_person_changed_before_our_next_call() {
    let past = past(STORY);
    let at = |fact, force| past.tree_at(fact, force).map(|t| t.0.as_str());
    assert_eq!(
        (at(1, false), at(1, true)),
        (Some("a"), Some("a")),
        "before anything was kept: the first"
    );
    assert_eq!(
        (at(5, false), at(5, true)),
        (Some("c"), Some("b")),
        "at rest the person changed b to c"
    );
    assert_eq!(
        (at(3, false), at(4, true)),
        (Some("a"), Some("a")),
        "our own change is not taken for theirs"
    );
    assert_eq!((at(10, false), at(10, true)), (Some("d"), Some("c")));
    assert_eq!(at(12, false), Some("e"));
    assert_eq!(at(11, true), Some("d"), "right before the call");
    assert_eq!(FileHistory::default().tree_at(1, false), None);
}

#[test]
fn what_we_did_is_told_apart_from_what_others_did() {
    let past = past(STORY);
    let since = |tree: &str| {
        let (ours, theirs) = past.since(&Tree(tree.into()));
        (names(&ours), names(&theirs))
    };
    let list = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    assert_eq!(since("a"), (list(&["a>b", "d>e"]), list(&["b>c", "c>d"])));
    assert_eq!(since("c"), (list(&["d>e"]), list(&["c>d"])));
    assert_eq!(since("e"), (list(&[]), list(&[])));
    assert_eq!(since("unknown").0, list(&["a>b", "d>e"]));
    assert_eq!(past.since_first(), past.since(&Tree("a".into())));
}

#[test]
fn what_could_not_be_kept_leaves_a_wider_window() {
    let past = past("created\nprompt\nstep 1\nkept a 3\ndone\nlost 5\nstep 2\ndone\nkept c 8");
    assert_eq!(names(&past.since(&Tree("a".into())).0), ["a>c"]);
}

/// After a crash, nobody knows who changed the files; a driver that lost its launcher does.
#[test]
fn an_unknown_outcome_that_was_reported_changed_the_files() {
    let story = "created\nprompt\nstep 1\nkept a 3\nreported_unknown\nkept b 5";
    assert_eq!(names(&past(story).since(&Tree("a".into())).0), ["a>b"]);
    let crashed = "created\nprompt\nstep 1\nkept a 3\nunknown\nkept b 5";
    assert_eq!(names(&past(crashed).since(&Tree("a".into())).1), ["a>b"]);
}

#[test]
fn a_rewind_hides_steps_and_its_undo_shows_them_again() {
    let gone = format!("{STORY}\nasked 8\nkept f 18\nback b 8");
    let past_ = past(&gone);
    assert_eq!(past_.steps(), [0, 1, 2]);
    assert_eq!(past_.step(3), None);
    assert_eq!(past_.undo_target(), Some(UndoTarget::Rewind(8, Scope::Both)));
    assert_eq!(names(&past_.since(&Tree("f".into())).0), ["f>b"], "going back is our doing");
    assert_eq!(past_.tree_at(20, false).map(|t| t.0.as_str()), Some("b"));
    let again = past(&format!("{gone}\nasked 17\nkept b 21\nback f 17"));
    assert_eq!(again.steps(), [0, 1, 2, 3, 4]);
    assert_eq!(again.undo_target(), Some(UndoTarget::Rewind(17, Scope::Both)));
    let on = past(&format!("{gone}\nprompt\nstep 5\nend"));
    assert_eq!(
        (on.steps(), on.undo_target()),
        (vec![0, 1, 2, 5], Some(UndoTarget::Run(8))),
        "the last fact that counts"
    );
    let later = past(&format!("{gone}\nowner_changed\nprompt\nstep 5\nend"));
    assert_eq!(later.undo_target(), Some(UndoTarget::Run(21)), "what came after the rewind counts");
    let talk = past(&format!("{STORY}\nasked 8\nback - 8").replace("back - 8", "asked 8"));
    assert_eq!(talk.undo_target(), Some(UndoTarget::Run(8)), "asked is not gone");
}

#[test]
fn an_undone_first_task_leaves_nothing_to_undo_but_that() {
    let past =
        past("created\nprompt\nstep 1\nkept a 3\ndone\nkept b 5\nend\nasked 1\nkept b 8\nback a 1");
    assert_eq!(past.undo_target(), Some(UndoTarget::Rewind(1, Scope::Both)));
    assert_eq!(past.steps(), [] as [u32; 0]);
}

#[test]
fn a_run_begins_where_the_session_rested() {
    let past = past("created\nprompt\nprompt\nstep 1\nprompt\nfailed\nend\ngo\nstep 2\nend");
    assert_eq!(
        past.undo_target(),
        Some(UndoTarget::Run(7)),
        "prompts that come while it works are of the same run"
    );
    assert_eq!([1, 2].map(|n| past.step(n)), [Some(7), Some(10)]);
    assert_eq!(
        self::past("created\nprompt\nstep 1\nprompt\nstep 2\nend").undo_target(),
        Some(UndoTarget::Run(1))
    );
}

#[test]
fn what_happened_while_nobody_was_looking_is_not_taken_for_ours() {
    let killed = past("created\nprompt\nstep 1\nkept a 3\nowner_changed\nunknown\nkept b 6");
    assert_eq!(
        (
            names(&killed.since(&Tree("a".into())).0).len(),
            names(&killed.since(&Tree("a".into())).1)
        ),
        (0, vec!["a>b".to_owned()])
    );
    let left = past("created\nprompt\nstep 1\nkept a 3\ndone\nowner_changed\nkept b 5");
    assert_eq!(names(&left.since(&Tree("a".into())).1), ["a>b"]);
    let one = past("created\nprompt\nstep 1\nkept a 3\ndone\ndone\nkept b 5");
    assert_eq!(
        names(&one.since(&Tree("a".into())).0),
        ["a>b"],
        "another call that ended meanwhile changes nothing"
    );
}

#[test]
fn files_alone_go_back_to_where_they_were_kept() {
    let past = past(&format!("{STORY}\nfiles b 17\nkept f 18\nback b 17"));
    assert_eq!(past.undo_target(), Some(UndoTarget::Rewind(5, Scope::Files)));
    assert_eq!(past.tree_at(5, true), Some(&Tree("b".into())));
}

#[test]
fn a_prompt_right_after_a_rewind_begins_at_what_counts() {
    let past = past(
        "created\nprompt\nstep 1\nend\nasked 1\nback - 1\nprompt\nstep 2\nend"
            .replace("back - 1", "back x 1")
            .as_str(),
    );
    assert_eq!(past.undo_target(), Some(UndoTarget::Run(1)));
}
