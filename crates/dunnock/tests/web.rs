//! The web app: its own tests, and the real page of the real program in a real browser.
//!
//! The tests are in `web/` (vitest; those of the browser drive Debian's Chromium through
//! playwright-core). Here they are run, file by file, and their names are counted: a file that ran
//! nothing proves nothing. What they need is installed by `npm install` and a browser.

use crate::program;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

/// A script of the web app's own tools.
fn node(script: &str, args: &[&str]) -> String {
    let script = folder().join("node_modules").join(script);
    assert!(script.exists(), "{} is not there: cd web && npm install", script.display());
    let mut command = Command::new("node");
    command
        .arg(script)
        .args(args)
        .current_dir(folder())
        .env("DUNNOCK_BIN", program())
        .env("NO_COLOR", "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}\n{text}");
    text
}

/// Runs a project of tests, or one file of it; what each test said, and how many passed.
pub fn tests(project: &str, file: &str, at_least: usize) -> String {
    let text =
        node("vitest/vitest.mjs", &["run", "--project", project, "--reporter", "verbose", file]);
    let passed: Vec<&str> =
        text.lines().filter(|line| line.trim_start().starts_with('✓')).collect();
    for line in &passed {
        println!("{}", line.trim());
    }
    for line in
        text.lines().filter(|line| line.starts_with("figure: ") || line.contains("screens ("))
    {
        println!("{line}");
    }
    println!("{project} {file}: {} passed", passed.len());
    assert!(passed.len() >= at_least, "{} tests of {file}, fewer than {at_least}", passed.len());
    text
}

#[test]
fn the_program_has_the_web_app_in_it() {
    let output = Command::new(program()).arg("--version").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains("without the web app"), "cargo xtask web, then build again: {said}");
}

#[test]
fn reducers_words_and_texts() {
    tests("unit", "", 160);
}

#[test]
fn types_lints_and_format() {
    node("typescript/bin/tsc", &["--noEmit"]);
    node("oxlint/bin/oxlint", &["--deny-warnings"]);
    node("prettier/bin/prettier.cjs", &["--check", "."]);
}

#[test]
fn built_twice_it_is_the_same() {
    let build = |out: &Path| {
        node(
            "vite/bin/vite.js",
            &["build", "--logLevel", "error", "--outDir", out.to_str().unwrap()],
        );
        let mut files = Vec::new();
        let mut folders = vec![out.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((
                        path.strip_prefix(out).unwrap().to_path_buf(),
                        std::fs::read(&path).unwrap(),
                    ));
                }
            }
        }
        files.sort();
        files
    };
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (build(&dir.path().join("one")), build(&dir.path().join("two")));
    assert!(one.len() > 10);
    assert!(one == two, "two builds differ");
    // And it is what is in the binary's own folder.
    let kept = folder().join("dist/index.html");
    let first = one
        .iter()
        .find(|(name, _)| name == Path::new("index.html"))
        .map(|(_, bytes)| bytes.clone());
    assert_eq!(first, std::fs::read(kept).ok(), "web/dist is stale: cargo xtask web");
    println!(
        "{} files, {} bytes",
        one.len(),
        one.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    );
}

/// Holds W1: `dunnock web --no-open` serves the web app and its address lets a browser in.
/// Holds W7: in a browser: prompt, approve, decline, cancel; text, reasoning, calls, output while
/// it runs.
/// Holds T2: the same keys y t a e in the browser.
/// Holds T6: kinds look different in the browser.
/// Holds T10: the model is switched in the browser with the same words.
/// Holds A1: terminal to browser and browser to a real terminal app.
#[test]
fn browser_conversations() {
    tests("browser", "e2e/conversation.test.ts", 35);
}

#[test]
fn browser_timeline_and_overview() {
    tests("browser", "e2e/timeline.test.ts", 7);
}

#[test]
fn browser_every_screen() {
    tests("browser", "e2e/looks.test.ts", 8);
}

#[test]
fn browser_forged_arguments() {
    tests("browser", "e2e/forged.test.ts", 1);
}

#[test]
fn browser_speed() {
    tests("browser", "e2e/speed.test.ts", 5);
}
