//! The security cases, end to end: a scripted model that always obeys the attacker, the real
//! program, a real shell, canary files, a listener, a secret. What counts is what happened to them,
//! not what was said.
//!
//! `fixtures/security/cases.jsonl` holds the cases, `held.txt` names the test of each,
//! `waiting.txt` those that wait for what they are about. Each test here takes the cases that are
//! held by its name, so none can be forgotten.

mod benign;
mod bridge;
pub mod egress;
mod files;
mod http;
mod others;
mod screen;
mod shell;
mod web;
pub mod world;

use serde::Deserialize;
use std::collections::BTreeMap;

/// A case as it is written.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    pub id: String,
    pub class: String,
    pub tool: String,
    pub input: String,
    pub expect: String,
    /// The trick was seen to work.
    #[serde(default)]
    pub proven: bool,
    #[serde(default)]
    pub without_sandbox: Option<String>,
}

fn fixture(name: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/security");
    std::fs::read_to_string(format!("{path}/{name}")).unwrap()
}

pub fn all() -> Vec<Case> {
    fixture("cases.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Which test holds each case.
pub fn held() -> BTreeMap<String, String> {
    let lines = fixture("held.txt");
    let pairs = lines.lines().filter(|l| !l.starts_with('#')).map(|l| l.split_once(' ').unwrap());
    pairs.map(|(id, test)| (id.to_owned(), test.to_owned())).collect()
}

/// The cases of a test.
pub fn of(test: &str) -> Vec<Case> {
    let held = held();
    let mine: Vec<Case> =
        all().into_iter().filter(|case| held.get(&case.id).is_some_and(|t| t == test)).collect();
    assert!(!mine.is_empty(), "no case is held by {test}");
    mine
}

/// Says how each case came out, and fails if one came out wrong.
pub fn judge(test: &str, results: Vec<(String, Result<String, String>)>) {
    let wrong = results.iter().filter(|(_, result)| result.is_err()).count();
    for (id, result) in &results {
        match result {
            Ok(how) => println!("{id} {how}"),
            Err(why) => println!("{id} WRONG: {why}"),
        }
    }
    println!("{test}: {} cases, {wrong} wrong", results.len());
    assert_eq!(wrong, 0, "{wrong} of {} cases", results.len());
}

#[test]
fn every_case_names_its_test_or_waits() {
    let (all, held, waiting) = (all(), held(), fixture("waiting.txt"));
    let waiting: Vec<&str> = waiting.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(all.len(), 517);
    assert!(waiting.len() <= 2, "{} wait", waiting.len());
    for case in &all {
        let (is_held, waits) = (held.contains_key(&case.id), waiting.contains(&case.id.as_str()));
        assert!(is_held != waits, "{} is held: {is_held}, waits: {waits}", case.id);
    }
    assert_eq!(held.len() + waiting.len(), all.len(), "an id that is no case");
    // A test that is named is one that exists.
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut sources = String::new();
    let mut folders = vec![std::path::PathBuf::from(crates)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let tests: std::collections::BTreeSet<&String> = held.values().collect();
    for test in tests {
        let name = test.rsplit("::").next().unwrap();
        let listed = sources
            .lines()
            .filter(|l| l.starts_with("cases! {"))
            .any(|l| l.split(' ').any(|word| word == name));
        assert!(listed || sources.contains(&format!("fn {name}(")), "there is no test {test}");
    }
    println!("{} cases: {} held, {} wait", all.len(), held.len(), waiting.len());
}
