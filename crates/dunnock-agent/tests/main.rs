//! The library as programs meet it: its examples, run; its public face, written down.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test ends where it goes wrong")]

mod api;
mod runs;

use std::path::PathBuf;
use std::process::Command;

/// An example that was built beside this test.
fn example(name: &str) -> PathBuf {
    let folder =
        std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    folder.join(name)
}

fn run(name: &str) -> (bool, String) {
    let out = Command::new(example(name))
        .output()
        .unwrap_or_else(|error| unreachable!("{name}: {error}"));
    let text =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    println!("{text}");
    (out.status.success(), text)
}

#[test]
fn p7_the_example_that_mends_a_failing_test_ends_proven() {
    let (ok, text) = run("fix_a_test");
    assert!(ok && text.contains("success: true, iterations: 2, proven: true"), "{text}");
    assert!(text.contains("Iteration 1:\n") && text.contains("- edited add.py: ok"), "{text}");
}

#[test]
fn p7_the_example_that_answers_questions_is_obeyed() {
    let (ok, text) = run("answer_questions");
    assert!(ok && text.contains("answered: Text(\"German\")"), "{text}");
    assert!(text.contains("made [\"greeting.txt: Guten Tag\"]"), "{text}");
    assert!(text.contains("success: true, The greeting is written."), "{text}");
}
