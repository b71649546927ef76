//! A model that repeats itself: when it is told, when the person is asked, and what is no loop.

use crate::stage::{auto, play};
use dunnock_core::EffectOutcome;
use dunnock_proto::*;

#[test]
fn going_in_circles_is_told_twice_and_then_asked() {
    let config = Config { checkpoints: true, mode: Mode::All, max_steps: 50, ..auto() };
    let round =
        |n: u32, command: &str, result: &str| format!("< shell: {command}\n= {n}.0 {result}\nkept");
    let rounds = |rounds: &[(&str, &str)]| {
        let lines: Vec<String> = rounds
            .iter()
            .zip(1..)
            .map(|((command, result), n)| round(n, command, result))
            .collect();
        play(config.clone(), &format!("> go\nkept\n{}", lines.join("\n")))
    };
    let told = |scene: &crate::stage::Scene| scene.out.matches("noticed").count();
    let asked = |scene: &crate::stage::Scene| {
        scene.s.questions.iter().filter(|q| matches!(*q.kind, QuestionKind::Stalled { .. })).count()
    };
    let same = |n: usize| rounds(&vec![("make", "no"); n]);
    for (times, notices) in [(2, 0), (3, 1), (5, 1), (6, 2), (9, 2)] {
        let scene = same(times);
        assert_eq!((told(&scene), asked(&scene)), (notices, 0), "{times}: {}", scene.out);
    }
    let mut often = same(10);
    assert_eq!((told(&often), asked(&often)), (2, 1), "{}", often.out);
    assert_eq!(often.s.step, Step(10), "the question holds the next step");
    often.line("! yes");
    assert_eq!(often.s.step, Step(11), "{}", often.out);
    let patient = Config { stall_limit: 0, ..config.clone() };
    let lines: Vec<String> = (1..=20).map(|n| round(n, "make", "no")).collect();
    let patient = play(patient, &format!("> go\nkept\n{}", lines.join("\n")));
    assert_eq!((told(&patient), asked(&patient)), (2, 0), "{}", patient.out);
    let once = Config { stall_limit: 1, ..config.clone() };
    for (times, questions) in [(1, 0), (2, 1)] {
        let lines: Vec<String> = (1..=times).map(|n| round(n, "make", "no")).collect();
        let once = play(once.clone(), &format!("> go\nkept\n{}", lines.join("\n")));
        assert_eq!(asked(&once), questions, "one answer repeats nothing: {}", once.out);
    }
    let steps = rounds(&[("a", "x"), ("b", "y"), ("a", "x"), ("b", "y")]);
    assert_eq!((told(&steps), asked(&steps)), (1, 0), "circles of two: {}", steps.out);
    let wide = |n: usize| {
        let names: Vec<String> = (0..n).map(|k| format!("c{k}")).collect();
        let all: Vec<(&str, &str)> =
            names.iter().chain(&names).map(|name| (name.as_str(), "x")).collect();
        told(&rounds(&all))
    };
    assert_eq!((wide(6), wide(7)), (2, 0), "circles of up to six are seen");
    let results = rounds(&[("make", "1 error"), ("make", "2 errors"), ("make", "3 errors")]);
    assert_eq!((told(&results), asked(&results)), (0, 0), "another result is progress");
    let mut files = play(config.clone(), "> go\nkept\n< shell: make\n= 1.0 no");
    for (n, tree) in [(2, "t2"), (3, "t3")] {
        let mark = files.s.dirty.unwrap();
        files.work(EffectOutcome::Checkpointed(Checkpointed {
            tree: Some(Tree(tree.into())),
            mark,
            note: None,
        }));
        files.line("< shell: make");
        files.line(&format!("= {n}.0 no"));
    }
    assert_eq!((told(&files), asked(&files)), (0, 0), "other files are progress: {}", files.out);
    let unknown = play(
        Config { checkpoints: false, ..config.clone() },
        "> go\n< shell: a\n= 1.0 x\n< shell: a\n= 2.0 x\n< shell: a\n= 3.0 x",
    );
    assert_eq!(
        (told(&unknown), asked(&unknown)),
        (0, 0),
        "where files are not known nothing is concluded"
    );
    let mut person = same(9);
    person.line("> try again");
    person.line("< shell: make");
    person.line("= 10.0 no");
    assert_eq!(asked(&person), 0, "a prompt starts anew: {}", person.out);
    // UX-A6: waiting for something is not a loop.
    let mut waiting = play(config.clone(), "> go\nkept");
    for step in 1..=15 {
        waiting.line("< shell: sleep 1; echo pending");
        let call = CallId { step: Step(step), index: 0 };
        let done = Finished::plain(call, Outcome::Done, "pending");
        waiting.work(EffectOutcome::Output(Finished { ms: 1_003, ..done }));
        waiting.line("kept");
    }
    assert_eq!((told(&waiting), asked(&waiting)), (0, 0), "{}", waiting.out);
}
