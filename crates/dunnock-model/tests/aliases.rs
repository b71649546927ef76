//! Calls as other harnesses taught models to write them (`fixtures/calls`), and what must hold for
//! every call.

use dunnock_model::aliases::{self, Reading};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A call of the corpus.
struct Case {
    id: String,
    tool: String,
    args: String,
    /// Our tool and its arguments; `None` if it should be refused.
    means: Option<(String, Value)>,
}

fn corpus() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/calls/corpus.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let case = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let word = |name: &str| line[name].as_str().unwrap().to_owned();
        assert!(!word("source").is_empty());
        let means = line
            .get("means")
            .map(|means| (means["tool"].as_str().unwrap().to_owned(), means["args"].clone()));
        assert!(means.is_some() != line.get("refuse").is_some(), "{}", word("id"));
        let args = match &line["args"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Case { id: word("id"), tool: word("tool"), args, means }
    };
    text.lines().map(case).collect()
}

/// What a call is read as: the tool and its arguments.
fn meaning(tool: &str, args: &str) -> Result<(String, Value), String> {
    match aliases::read(tool, args, "/w", false) {
        Reading::AsCame if !aliases::names().iter().any(|(_, ours)| *ours == tool) => {
            Err("there is no such tool".into())
        }
        Reading::AsCame => serde_json::from_str(if args.trim().is_empty() { "{}" } else { args })
            .map(|args| (tool.to_owned(), args))
            .map_err(|error| error.to_string()),
        Reading::Means { tool, args } => {
            Ok((tool.to_owned(), serde_json::from_str(&args).unwrap()))
        }
        Reading::Fault(why) => Err(why),
    }
}

/// A call with paths relative to the root, which is /w, and without arguments that say the default.
fn plain((tool, args): &(String, Value)) -> (String, Value) {
    let mut args = args.clone();
    let Value::Object(map) = &mut args else { return (tool.clone(), args) };
    for name in ["path", "folder", "to"] {
        if let Some(Value::String(path)) = map.get_mut(name) {
            *path = path.strip_prefix("/w/").unwrap_or(path).trim_end_matches('/').to_owned();
        }
    }
    // Without a folder it is the name of a file, at any level.
    if let Some(Value::String(glob)) = map.get_mut("glob")
        && let Some(name) = glob.strip_prefix("**/").filter(|name| !name.contains('/'))
    {
        *glob = name.to_owned();
    }
    let root = |value: &Value| matches!(value.as_str(), Some("/w" | "." | "./" | ""));
    map.retain(|name, value| {
        !(value == &Value::Bool(false)
            || ["path", "folder"].contains(&name.as_str()) && root(value)
            || name == "first" && value == 1)
    });
    (tool.clone(), args)
}

/// Whether a call does what was meant. Where harnesses count lines from 0 or from 1, one more line
/// may be shown.
fn same(meant: &(String, Value), got: &(String, Value)) -> bool {
    let (meant, got) = (&plain(meant), &plain(got));
    if meant == got {
        return true;
    }
    let line = |call: &(String, Value), name: &str, or: i64| call.1[name].as_i64().unwrap_or(or);
    let rest = |call: &(String, Value)| {
        let mut args = call.1.clone();
        args.as_object_mut().unwrap().retain(|name, _| name != "first" && name != "last");
        (call.0.clone(), args)
    };
    let (first, last) = (line(got, "first", 1), line(got, "last", i64::MAX));
    let (meant_first, meant_last) = (line(meant, "first", 1), line(meant, "last", i64::MAX));
    meant.0 == "view_file"
        && rest(meant) == rest(got)
        && first <= meant_first
        && last >= meant_last
        && (meant_first - first) + (last - meant_last) <= 1
}

/// EFF7: names and arguments as models were trained to write them.
#[test]
fn calls_of_other_harnesses_do_what_was_meant() {
    let cases = corpus();
    let (mut accepted, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    let mut harnesses: BTreeMap<&str, u32> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for case in &cases {
        assert!(ids.insert(&case.id), "{} is there twice", case.id);
        *harnesses.entry(case.id.split('/').next().unwrap()).or_default() += 1;
        match (&case.means, meaning(&case.tool, &case.args)) {
            (Some(meant), Ok(got)) if same(meant, &got) => {
                accepted += 1;
                println!("{}: {} {}", case.id, got.0, got.1);
            }
            (meant, Ok(got)) => wrong.push(format!("{}: {got:?}, not {meant:?}", case.id)),
            (Some(_), Err(why)) => refused.push(format!("{}: {why}", case.id)),
            (None, Err(why)) => {
                refused.push(format!("{} (to be refused): {why}", case.id));
            }
        }
    }
    for line in &refused {
        println!("refused: {line}");
    }
    println!(
        "{} calls of {} sources, {accepted} accepted: {harnesses:?}",
        cases.len(),
        harnesses.len()
    );
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cases.len() >= 300, "{}", cases.len());
    assert!(accepted * 100 >= cases.len() * 95, "{accepted} of {}", cases.len());
}

/// Each case can fail: a call that no longer means the same is found.
#[test]
fn a_case_whose_meaning_changes_is_found() {
    let mut found = 0;
    for case in corpus() {
        let (Some(meant), Ok(got)) = (case.means, meaning(&case.tool, &case.args)) else {
            continue;
        };
        let mut other = got.clone();
        match other.1.as_object_mut().and_then(|args| args.values_mut().next()) {
            Some(Value::String(text)) => text.push('x'),
            Some(value) => *value = Value::from(977),
            None => other.0.push('x'),
        }
        assert!(!same(&meant, &other), "{}", case.id);
        found += 1;
    }
    assert!(found >= 285, "{found}");
}

/// Whether a tool only reads, from its name.
fn reads(tool: &str) -> bool {
    ["view_file", "list_files", "search_text", "git_status", "git_diff", "process_read"]
        .contains(&tool)
}

fn texts(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            all.push(text.clone());
            // Lists and objects that came as text.
            if let Ok(inner @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text) {
                texts(&inner, all);
            }
        }
        Value::Number(number) => all.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, all)),
        Value::Object(map) => map.values().for_each(|value| texts(value, all)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A small generator of random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.next(all.len())]
    }
}

fn value(random: &mut Random, depth: u32) -> Value {
    let words = [
        "a.rs",
        "src/main.rs",
        "/w/a.py",
        "../x",
        "echo one",
        "true",
        "false",
        "30",
        "0",
        "",
        "start",
        "view",
        "create",
        "str_replace",
        "insert",
        "read",
        "write",
        "stop",
        "*",
        "**/*.rs",
        "pending",
        "completed",
        "[\"a\",\"b\"]",
        "{\"a\":1}",
        "-1",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF",
        "*** Begin Patch\n*** Add File: b\n+x",
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
        "ä ö 漢字",
        "exec",
    ];
    match random.next(if depth > 2 { 5 } else { 8 }) {
        0..=2 => (*random.of(&words)).into(),
        3 => [0_i64, 1, 5, -1, 120, 700, 120_000][random.next(7)].into(),
        4 => [Value::Bool(true), Value::Bool(false), Value::Null][random.next(3)].clone(),
        5 | 6 => (0..random.next(3)).map(|_| value(random, depth + 1)).collect(),
        _ => {
            let keys =
                ["question", "options", "label", "step", "status", "text", "state", "command"];
            (0..random.next(4))
                .map(|_| ((*random.of(&keys)).to_owned(), value(random, depth + 1)))
                .collect()
        }
    }
}

/// What holds for every call, whatever is in it. `DUNNOCK_CALLS` sets how many.
#[test]
fn whatever_comes_translation_is_stable_and_adds_nothing() {
    let count = std::env::var("DUNNOCK_CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(60_000);
    let mut random = Random(7);
    let names = aliases::names();
    let arguments = aliases::argument_names();
    let own = ["*** End Patch", "pending", "active", "done"];
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    let cases = corpus();
    for n in 0..count {
        let (name, args) = if n % 4 == 0 {
            // A call of the corpus, with one byte changed.
            let case = random.of(&cases);
            let mut bytes = case.args.clone().into_bytes();
            if !bytes.is_empty() {
                let at = random.next(bytes.len());
                match random.next(3) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes[at] = b"{}[]\",:0tn\\\n "[random.next(13)],
                    _ => bytes.truncate(at),
                }
            }
            (case.tool.clone(), String::from_utf8_lossy(&bytes).into_owned())
        } else {
            let args: Value = (0..random.next(5))
                .map(|_| ((*random.of(&arguments)).to_owned(), value(&mut random, 0)))
                .collect::<serde_json::Map<_, _>>()
                .into();
            (random.of(&names).0.clone(), args.to_string())
        };
        let cut = random.next(8) == 0;
        let (tool, text) = match aliases::read(&name, &args, "/w", cut) {
            Reading::AsCame => {
                *outcomes.entry("as it came").or_default() += 1;
                continue;
            }
            Reading::Fault(why) => {
                assert!(!why.is_empty() && why.len() < 1_000, "{why}");
                for hidden in ["bare", "apart", "exact"] {
                    assert!(!why.contains(&format!("takes {hidden}")), "{why}");
                }
                *outcomes.entry("refused").or_default() += 1;
                continue;
            }
            Reading::Means { tool, args } => (tool, args),
        };
        *outcomes.entry("translated").or_default() += 1;
        assert_eq!(
            aliases::read(tool, &text, "/w", cut),
            Reading::AsCame,
            "{name} {args} {tool} {text}"
        );
        let normal: String = name
            .rsplit('.')
            .next()
            .unwrap()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let behind: BTreeSet<&str> =
            names.iter().filter(|(known, _)| *known == normal).map(|(_, tool)| *tool).collect();
        if behind.iter().all(|tool| reads(tool)) && !behind.is_empty() {
            assert!(reads(tool), "{name} {args} became {tool} {text}");
        }
        let mut came = Vec::new();
        match serde_json::from_str::<Value>(&args) {
            Ok(value) => texts(&value, &mut came),
            // What was repaired is compared as text.
            Err(_) => continue,
        }
        let mut ran = Vec::new();
        let ours: Value = serde_json::from_str(&text).unwrap();
        if let Value::Object(map) = &ours {
            map.values().filter(|value| !value.is_number()).for_each(|v| texts(v, &mut ran));
        }
        for word in ran {
            let word = word.strip_suffix("\n*** End Patch").unwrap_or(&word);
            let known = came.iter().any(|text| text.contains(word.trim_end_matches('\n')));
            assert!(known || own.contains(&word), "{word:?} is not in {name} {args}");
        }
    }
    println!("{count} calls: {outcomes:?}");
    assert!(outcomes["translated"] > count / 20, "{outcomes:?}");
}

/// Calls that a lenient reading would run otherwise than meant.
#[test]
fn what_is_doubtful_is_refused_or_stays_as_it_is() {
    let patch = "*** Begin Patch\\n*** Update File: etc/hosts\\n@@\\n-a\\n+b\\n*** End Patch";
    let elsewhere = format!(r#"{{"command":"cd / && apply_patch <<'EOF'\n{patch}\nEOF"}}"#);
    let deep = format!("{}{}", r#"{"edits":[{"a":"#.repeat(50), "1".to_owned() + &"}]}".repeat(50));
    let two_dividers = "<<<<<<< SEARCH\\nTitle\\n=======\\nx\\n=======\\nNew\\n>>>>>>> REPLACE";
    let two_dividers = format!(r#"{{"path":"a","diff":"{two_dividers}"}}"#);
    for (tool, args) in [
        // The workspace is not there.
        ("bash", elsewhere.as_str()),
        ("git_status", r#"{"repo_path":"/"}"#),
        // The end may be missing, and with it what makes the call harmless.
        ("str_replace_editor", r#"{"command":"str_replace","path":"a","old_str":"fn x() {}""#),
        ("shell", r#"{"command":["git","clean","-fd""#),
        // Two ways to read them.
        ("Bash", r#"{"command":"ls","command":"rm -r b"}"#),
        ("Bash", r#"{"command":"ls","background":true,"is_background":false}"#),
        ("read_file", r#"{"path":"a","offset":1,"line":50}"#),
        ("replace_in_file", two_dividers.as_str()),
        // Another language.
        ("exec_command", r#"{"cmd":"print(1)","shell":"python3"}"#),
        ("Edit", deep.as_str()),
    ] {
        let read = aliases::read(tool, args, "/w", false);
        assert!(matches!(read, Reading::Fault(_)), "{tool} {args}: {read:?}");
    }
    // What was cut off is not closed.
    let open = r#"{"input":"*** Begin Patch\n*** Update File: a\n@@\n-one\n"}"#;
    let Reading::Means { args, .. } = aliases::read("apply_patch", open, "/w", true) else {
        panic!("a patch is a patch")
    };
    assert!(!args.contains("End Patch"), "{args}");
    // Other names are not guessed.
    for name in ["日本bash", "bash\">", "b a/sh"] {
        assert_eq!(aliases::read(name, r#"{"command":"ls"}"#, "/w", false), Reading::AsCame);
    }
    // Seconds stay seconds where they are meant.
    assert_eq!(
        meaning("execute_bash", r#"{"command":"make","timeout":1800}"#).unwrap().1["timeout"],
        600
    );
    assert_eq!(
        meaning("shell", r#"{"command":["/opt/My App/run"]}"#).unwrap().1["command"],
        serde_json::json!(["/opt/My App/run"])
    );
}
