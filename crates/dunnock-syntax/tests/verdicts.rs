//! Broken edits are reported, good ones are not. The parsers of the languages themselves say which
//! is which: `python3`, `node` and `gofmt`.

#![expect(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

mod cases;

use cases::{CASES, Case};
use dunnock_syntax::{ENDINGS, broken_by_edit};
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Good syntax that the installed parsers may be too old for.
const NEWER: &[&str] = &["def short[T]", "type Pair =", "for range 3"];

/// What the languages' own parsers say about texts; `None` where the machine has none.
fn parse_all(texts: &[(&str, String)]) -> Vec<Option<bool>> {
    const PYTHON: &str = "
import ast, json, sys, tomllib
parsers = {'py': ast.parse, 'json': json.loads, 'toml': tomllib.loads}
def parses(name, text):
    parser = parsers.get(name.rsplit('.')[-1])
    try:
        return parser and parser(text) is not None
    except (SyntaxError, ValueError):
        return False
print(json.dumps([parses(*one) for one in json.load(sys.stdin)]))
";
    const NODE: &str = "
const { SourceTextModule } = require('vm');
const parses = ([name, text]) => {
  if (!name.endsWith('.mjs')) return null;
  try { return Boolean(new SourceTextModule(text)); } catch { return false; }
};
const all = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(all.map(parses)));
";
    let input = serde_json::to_vec(texts).unwrap();
    let verdicts = |program, args: &[&str]| -> Vec<Option<bool>> {
        serde_json::from_slice(&run(program, args, &input).unwrap()).unwrap()
    };
    let python = verdicts("python3", &["-c", PYTHON]);
    let node = verdicts("node", &["--no-warnings", "--experimental-vm-modules", "-e", NODE]);
    let go = texts.iter().map(|(name, text)| {
        name.ends_with(".go").then(|| run("gofmt", &["-e"], text.as_bytes()).is_some())
    });
    python
        .into_iter()
        .zip(node)
        .zip(go)
        .map(|((python, node), go)| python.or(node).or(go))
        .collect()
}

/// The output of a program that succeeds.
fn run(program: &str, args: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap(); // gofmt stops reading at an error
    output.status.success().then_some(output.stdout)
}

fn edited(case: &Case, (old, new): (&str, &str)) -> String {
    assert_eq!(case.text.matches(old).count(), 1, "{}: {old:?} is there once", case.name);
    case.text.replacen(old, new, 1)
}

#[test]
fn broken_edits_are_reported_and_good_ones_are_not() {
    let mut all: Vec<(&Case, String, bool)> = Vec::new();
    for case in CASES {
        all.extend(case.broken.iter().map(|edit| (case, edited(case, *edit), true)));
        all.extend(case.good.iter().map(|edit| (case, edited(case, *edit), false)));
        // Cut off behind a bracket, as long files of models are.
        let cut = case.text.match_indices(['(', '{', '[']).map(|(at, _)| &case.text[..=at]);
        all.extend(cut.map(|text| (case, text.to_owned(), true)));
    }
    let texts: Vec<(&str, String)> =
        all.iter().map(|(case, after, _)| (case.name, after.clone())).collect();
    let mut wrong = Vec::new();
    let (mut reported, mut confirmed, mut silent) = (0, 0, 0);
    for ((case, after, broken), parses) in all.iter().zip(parse_all(&texts)) {
        let newer = NEWER.iter().any(|syntax| after.contains(syntax));
        let cut = case.text.starts_with(after.as_str());
        if parses == Some(*broken) && !newer || cut && parses.is_none() {
            // Brackets in comments and texts may be cut off, too.
            wrong.extend((!cut).then(|| format!("the case is wrong: {after}")));
            continue;
        }
        let said = broken_by_edit(case.name, case.text, after);
        if said.is_some() != *broken {
            wrong.push(format!("{broken}, but {said:?}: {}: {after}", case.name));
        }
        let (added, removed) = change(case.text, after);
        println!("{} {removed:?} -> {added:?}: {}", case.name, said.as_deref().unwrap_or("-"));
        reported += usize::from(*broken);
        confirmed += usize::from(*broken && parses.is_some());
        silent += usize::from(!*broken);
        if *broken {
            // It was broken before the next edit.
            assert_eq!(broken_by_edit(case.name, after, &format!("{after}\n")), None);
        }
    }
    println!(
        "{reported} broken edits reported, {confirmed} of them confirmed; {silent} good ones not"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(reported >= 200 && confirmed >= 180 && silent >= 40);
}

/// What an edit added, and what it removed.
fn change<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    let same = |(one, other): &(char, char)| one == other;
    let head: usize =
        before.chars().zip(after.chars()).take_while(same).map(|(one, _)| one.len_utf8()).sum();
    let (before, after) = (&before[head..], &after[head..]);
    let ends = before.chars().rev().zip(after.chars().rev());
    let tail: usize = ends.take_while(same).map(|(one, _)| one.len_utf8()).sum();
    (&after[..after.len() - tail], &before[..before.len() - tail])
}

/// Every edit of the bench: only those are reported that the language's own parser rejects.
#[test]
fn only_edits_of_the_bench_that_break_a_file_are_reported() {
    let bench = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bench/edits");
    let lines = std::fs::read_to_string(bench.join("edits.jsonl")).unwrap();
    let (mut edits, mut reported) = (0, Vec::new());
    for line in lines.lines() {
        let edit: Value = serde_json::from_str(line).unwrap();
        if edit["encoding"] != "utf-8" || edit["expect"] != "applied" {
            continue;
        }
        let name = edit["file"].as_str().unwrap();
        let before = std::fs::read_to_string(bench.join("files").join(name)).unwrap();
        let number = |key: &str| usize::try_from(edit[key].as_u64().unwrap()).unwrap();
        let (at, cut) = (number("at"), number("cut"));
        let Some((head, rest)) = before.split_at_checked(at) else { continue };
        let Some(tail) = rest.get(cut..) else { continue };
        let after = format!("{head}{}{tail}", edit["put"].as_str().unwrap());
        edits += 1;
        if broken_by_edit(name, &before, &after).is_some() {
            reported.push((name.to_owned(), after, edit["id"].to_string()));
        }
    }
    let texts: Vec<(&str, String)> =
        reported.iter().map(|(name, after, _)| (name.as_str(), after.clone())).collect();
    for ((_, _, id), parses) in reported.iter().zip(parse_all(&texts)) {
        assert_eq!(parses, Some(false), "{id}");
    }
    let reported = reported.len();
    println!("{edits} edits of the bench, {reported} of them break their file and are reported");
    assert!(edits >= 300, "{edits}");
}

#[test]
fn what_cannot_be_judged_has_no_verdict() {
    let deep = |open: &str| open.repeat(100_000);
    // Each level is indented more: scanners keep them all.
    let staircase = |levels: usize| -> String {
        (0..levels).map(|n| format!("{}if a:\n", " ".repeat(n))).collect()
    };
    for (name, before, after) in [
        ("a.json", "[]", deep("[")),
        ("a.toml", "a = 1", format!("a = {}", deep("["))),
        ("a.py", "a = 1", staircase(90)),
        ("a.py", "a = 1", staircase(510)),
        ("a.py", "a = 1", format!("{}f'{{'", staircase(511))),
        ("a.py", "a = 1", format!("if a:\n{}{}(", " ".repeat(900), "a;".repeat(50_000))),
        ("a.py", "a = 1", format!("if a:\n{}a\n  (", " ".repeat(60_000))),
        ("a.py", "a = 1", deep("(")),
        ("a.go", "package a", deep("{")),
        ("a.js", "1", deep("`${")),
        ("a.js", "1", "a ? b : ".repeat(60_000)),
        ("a.rs", "fn a() {}", "fn a( {}".into()),
        ("py", "a = 1", "a = (".into()),
        (".py", "a = 1", "a = (".into()),
        ("tsconfig.json", "{}", "{} // a comment".into()),
        (".vscode/settings.json", "{}", "{} // a comment".into()),
        ("tsconfig.json", "{ // a comment\n}", "{".into()),
        ("chart.yaml", "a: 1", "a: [".into()),
    ] {
        // Deep input may have a verdict; it must end, and not overflow the stack.
        let said = broken_by_edit(name, before, &after);
        assert!(said.is_none() || after.len() > 1_000, "{name}: {said:?}");
    }
    let long = format!("a = 1\n{}", "b = 2\n".repeat(60_000));
    assert_eq!(broken_by_edit("a.py", "a = 1\n", &format!("{long}(")), None);
    assert_eq!(broken_by_edit("a.py", "a = (", "a = ("), None);
}

#[test]
fn a_verdict_says_where() {
    let said = |name, before, after| broken_by_edit(name, before, after).unwrap();
    assert_eq!(
        said("src/a.py", "def f(x):\n    return x\n", "def f(x):\n    return (x\n"),
        "src/a.py no longer parses (it did before this edit): line 2: syntax error near: return (x"
    );
    assert_eq!(
        said("a.json", "{}", "{\n  \"a\": 1,\n}"),
        "a.json no longer parses (it did before this edit): line 3: key must be a string"
    );
    assert!(ENDINGS.iter().all(|ending| {
        broken_by_edit(&format!("a.{ending}"), "", "}{ ) [").is_some()
            || broken_by_edit(&format!("a.{ending}"), "{}", "}{ ) [").is_some()
            || broken_by_edit(&format!("a.{ending}"), "package a", "}{ ) [").is_some()
    }));
}
