//! The requirements page: lists each requirement with the tests that cover it, generated from the
//! tests.
//!
//! A test names what it covers in a comment (`Holds W3: ...`), or starts its name with the ids
//! (`b1_b2_...`).

use crate::tidy::root;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The groups of requirements: letter, how many, title.
const GROUPS: &[(char, u32, &str)] = &[
    ('W', 11, "The agent in the terminal and the browser"),
    ('T', 11, "The terminal"),
    ('S', 6, "The stateless service"),
    ('B', 7, "The copy-and-paste bridge"),
    ('P', 7, "The planner and the library"),
    ('A', 7, "All interfaces"),
];

/// A test's name, and which part of the requirement it covers.
type Held = (String, String);

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => sources(&path, files),
            false if path.extension().is_some_and(|e| e == "rs") => files.push(path),
            false => {}
        }
    }
}

fn is_id(text: &str) -> bool {
    let mut chars = text.chars();
    let group = chars.next().and_then(|c| GROUPS.iter().find(|(letter, ..)| *letter == c));
    group.is_some_and(|(_, most, _)| {
        chars.as_str().parse().is_ok_and(|n: u32| (1..=*most).contains(&n))
    })
}

/// The tests for each id.
fn held() -> BTreeMap<String, Vec<Held>> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut all: BTreeMap<String, Vec<Held>> = BTreeMap::new();
    for path in files {
        let place = path.strip_prefix(root().join("crates")).unwrap_or(&path).with_extension("");
        let place: Vec<String> = place
            .components()
            .map(|c| c.as_os_str().to_string_lossy().into_owned())
            .filter(|name| !matches!(name.as_str(), "src" | "tests" | "mod" | "main" | "lib"))
            .collect();
        let (mut said, mut is_test): (Vec<Held>, bool) = (Vec::new(), false);
        for line in std::fs::read_to_string(&path).unwrap_or_default().lines() {
            let text = line.trim();
            if let Some((id, what)) =
                text.strip_prefix("/// Holds ").and_then(|rest| rest.split_once(": "))
            {
                said.push((id.to_owned(), what.trim_end_matches('.').to_owned()));
                continue;
            }
            // A long comment continues on the next line.
            if let (Some(rest), Some((_, what))) = (text.strip_prefix("/// "), said.last_mut()) {
                *what = format!("{what} {}", rest.trim_end_matches('.'));
                continue;
            }
            is_test |= text.starts_with("#[test]") || text.starts_with("#[tokio::test");
            let name =
                text.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ");
            let Some(name) = name.and_then(|rest| rest.split(['(', '<']).next()) else { continue };
            if is_test {
                let test = format!("{}::{name}", place.join("::"));
                let words = name
                    .split('_')
                    .skip_while(|word| is_id(&word.to_uppercase()))
                    .collect::<Vec<_>>()
                    .join(" ");
                let named = name.split('_').map(str::to_uppercase).take_while(|word| is_id(word));
                for id in named
                    .filter(|id| !said.iter().any(|(known, _)| known == id))
                    .collect::<Vec<_>>()
                {
                    said.push((id, words.clone()));
                }
                for (id, what) in said.drain(..) {
                    all.entry(id).or_default().push((test.clone(), what));
                }
            }
            said.clear();
            is_test = false;
        }
    }
    all
}

pub(crate) fn page() -> String {
    let all = held();
    let mut text = String::from(
        "# Requirements and the tests that cover them\n\nMade by `cargo xtask generate` from the \
         tests: each names the requirement that it covers in a comment (`Holds W3: ...`) or in \
         its name. A test of the workspace fails when an id has no test, or when this page is \
         stale. The browser tests run inside those of `dunnock::web`.\n",
    );
    for (letter, most, about) in GROUPS {
        let _ = write!(
            text,
            "\n## {letter}: {about}\n\n| id | test | what it covers |\n|---|---|---|\n"
        );
        for n in 1..=*most {
            for (test, what) in all.get(&format!("{letter}{n}")).into_iter().flatten() {
                let _ = writeln!(text, "| {letter}{n} | `{test}` | {} |", what.replace('|', "\\|"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_that_was_asked_for_names_the_tests_that_hold_it() {
        let all = held();
        let mut without = Vec::new();
        for (letter, most, _) in GROUPS {
            without.extend(
                (1..=*most).map(|n| format!("{letter}{n}")).filter(|id| !all.contains_key(id)),
            );
        }
        assert!(without.is_empty(), "no test covers {without:?}");
        let wrong: Vec<&String> = all.keys().filter(|id| !is_id(id)).collect();
        assert!(wrong.is_empty(), "no such ids: {wrong:?}");
        let tests: usize = all.values().map(Vec::len).sum();
        println!("figure: {} ids, {tests} tests that cover them", all.len());
    }
}
