//! Searching and listing beside ripgrep itself, on the same files, in one run: fifty thousand where
//! figures are held.

use crate::{job, launcher};
use dunnock_ports::{CancellationToken, Tools as _};
use dunnock_testkit::timing;
use dunnock_tools::{Limits, Toolbox};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 3;

/// A project of many files: five folders deep, four languages, some ignored.
fn project(root: &Path, files: usize) {
    let words = [
        "account", "buffer", "cursor", "daemon", "engine", "filter", "gateway", "handler", "index",
        "journal",
    ];
    std::fs::write(root.join(".gitignore"), "out/\n*.log\n").unwrap();
    for n in 0..files {
        let folder = match n % 50 {
            0 => format!("out/d{}", n % 7),
            _ => format!("p{}/m{}/{}", n % 40, n / 40 % 25, words[n / 1_000 % 10]),
        };
        let folder = root.join(folder);
        if !folder.is_dir() {
            std::fs::create_dir_all(&folder).unwrap();
        }
        let ending = ["rs", "py", "ts", "md"][n % 4];
        let mut text = String::new();
        for line in 0..40 {
            let (a, b) = (words[(n + line) % 10], words[(n * 7 + line * 3) % 10]);
            text.push_str(&format!(
                "    let {a}_{line} = {b}.open(\"{a}/{n}\", {line})?; // {b} of the {a}\n"
            ));
        }
        if n % 9_973 == 1 {
            text.push_str("    the needle in this haystack\n");
        }
        if n % 100 == 3 {
            text.push_str("fn start_journal(cursor: Cursor) -> Result<Daemon> {\n    todo()\n}\n");
        }
        std::fs::write(folder.join(format!("f{n}.{ending}")), text).unwrap();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Where something was found, in rg's words or in ours.
fn places(text: &str) -> BTreeSet<(String, u64)> {
    let line = |line: &str| {
        let (path, rest) = line.split_once(':')?;
        let (number, _) = rest.split_once(':')?;
        Some((path.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn searching_and_listing_keep_up_with_ripgrep() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    project(&root, timing::rounds(12_000, 50_000));
    let no_cap = Limits {
        matches: usize::MAX,
        found_bytes: usize::MAX,
        listed: usize::MAX,
        ..Limits::default()
    };
    let toolbox = Toolbox::new(no_cap, &launcher(), &[]);
    let rg = |args: &[&str]| {
        let began = Instant::now();
        let mut command = Command::new("rg");
        command
            .args(["--no-config", "--hidden", "--no-require-git", "-g", "!.git"])
            .args(args)
            .current_dir(&root);
        let output = command.output().expect("rg is installed (apt: ripgrep)");
        (began.elapsed(), String::from_utf8(output.stdout).unwrap())
    };
    let mut worst: f64 = 0.0;
    for (what, tool, ours, theirs) in [
        (
            "rare literal",
            "search_text",
            r#"{"pattern":"needle in this"}"#,
            vec!["-n", "-F", "needle in this"],
        ),
        (
            "common literal",
            "search_text",
            r#"{"pattern":"cursor.open("}"#,
            vec!["-n", "-F", "cursor.open("],
        ),
        (
            "regex with context",
            "search_text",
            r#"{"pattern":"fn \\w+_journal\\(\\w+: [A-Z]\\w+\\)","regex":true,"context":2}"#,
            vec!["-n", "-C", "2", r"fn \w+_journal\(\w+: [A-Z]\w+\)"],
        ),
        ("list", "list_files", "{}", vec!["--files"]),
    ] {
        let (mut mine, mut rgs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let began = Instant::now();
            let (finished, _) = toolbox
                .run(job(&root, tool, ours), Arc::new(|_| {}), CancellationToken::default())
                .await;
            mine.push(began.elapsed());
            let (took, said) = rg(&theirs);
            rgs.push(took);
            if round > 0 {
                continue;
            }
            if tool == "search_text" {
                let (ours, theirs) = (places(&finished.shown), places(&said));
                assert!(
                    !theirs.is_empty() && ours == theirs,
                    "{what}: {} and {} matches",
                    ours.len(),
                    theirs.len()
                );
                print!("{} matches, ", ours.len());
            } else {
                let ours: BTreeSet<&str> =
                    finished.shown.lines().filter(|line| !line.ends_with('/')).collect();
                let theirs: BTreeSet<&str> = said.lines().collect();
                assert!(ours == theirs, "{} and {} files", ours.len(), theirs.len());
                print!("{} files, ", ours.len());
            }
            let again = toolbox
                .run(job(&root, tool, ours), Arc::new(|_| {}), CancellationToken::default())
                .await
                .0;
            assert!(again.shown == finished.shown, "{what}: another order the second time");
        }
        let ratio = median(mine.clone()).as_secs_f64() / median(rgs.clone()).as_secs_f64();
        println!("{what}: {:.1?}, rg {:.1?}: {ratio:.2}x", median(mine), median(rgs));
        worst = worst.max(ratio);
    }
    timing::wall_ratio("search and list, to ripgrep, the worst", worst, 1.2);
}
