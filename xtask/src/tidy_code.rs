//! Rules for the code itself, as tests: questions are data, `apply` consults no policy, decision
//! code stays small, no test fails on wall time.

use crate::tidy::{files_below, root};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Counts lines of code: no comments, blank lines, imports or tests.
fn code_lines(source: &str) -> usize {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut count, mut import) = (0, false);
    for line in source.lines().map(str::trim) {
        import |= line.starts_with("use ") || line.starts_with("pub use ");
        if !import && !line.is_empty() && !line.starts_with("//") {
            count += 1;
        }
        import &= !line.ends_with(';');
    }
    count
}

/// Calls that parse text.
const TAKES_APART: [&str; 14] = [
    ".split",
    ".rsplit",
    ".strip_",
    ".trim_",
    ".find(",
    ".contains(",
    ".starts_with(",
    ".ends_with(",
    ".lines(",
    ".startsWith(",
    ".endsWith(",
    ".includes(",
    ".match(",
    ".indexOf(",
];

/// Whether a line parses the text of a question.
fn parses_a_question(line: &str) -> bool {
    let words = ["heading", "text", "reasons", "access", "isolation", "rule", "preview"];
    let owners = ["view", "asks", "asked", "question", "q"];
    let named = |owner: &str, word: &str| {
        let at = format!("{owner}.{word}");
        line.match_indices(&at).any(|(n, _)| {
            let before = line[..n].chars().next_back();
            let rest = &line[n + at.len()..];
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.')
                && TAKES_APART.iter().any(|apart| rest.starts_with(apart))
        })
    };
    owners.iter().any(|owner| words.iter().any(|word| named(owner, word)))
        || ["\\nwhy: ", "\\nalways: ", "with a yes it", "\\nbox: "]
            .iter()
            .any(|mark| line.contains(mark))
}

/// A question is data: no interface may parse its text.
#[test]
fn no_text_of_a_question_is_taken_apart() {
    assert!(parses_a_question("let why = asked.text.lines().next();"));
    assert!(parses_a_question("if (asks.heading.startsWith('Leave')) {"));
    assert!(parses_a_question(r#"text.strip_prefix("\nwhy: ")"#));
    assert!(!parses_a_question("lines.extend(view.reasons.iter());"));
    let sources = files_below(&["crates", "web/src"], &["rs", "ts", "tsx"]);
    for path in sources.iter().filter(|path| path.components().any(|c| c.as_os_str() == "src")) {
        for (n, line) in read(path).lines().enumerate() {
            assert!(!parses_a_question(line), "{}:{}: {line}", path.display(), n + 1);
        }
    }
    let facts = read(&root().join("crates/dunnock-proto/src/events_table.rs"));
    let asked = facts
        .split("pub struct Asked {")
        .nth(1)
        .and_then(|rest| rest.split('}').next())
        .unwrap_or_default();
    let fields: Vec<&str> =
        asked.lines().filter_map(|line| line.trim().strip_prefix("pub ")).collect();
    assert_eq!(
        fields,
        ["question: QuestionId,", "kind: QuestionKind,", "hash: Hash,"],
        "a question has no text"
    );
}

/// Decisions are recorded in the events: applying them consults neither lists nor constants.
#[test]
fn folding_consults_no_policy_and_no_constant() {
    for name in ["apply.rs", "state.rs", "effect.rs"] {
        let source = read(&root().join("crates/dunnock-core/src").join(name));
        assert!(!source.is_empty() && !source.contains("policy::"), "{name} uses policy");
        assert!(!source.contains("use crate::policy"), "{name} uses policy");
    }
    let apply = read(&root().join("crates/dunnock-core/src/apply.rs"));
    assert!(
        !apply
            .lines()
            .any(|line| line.trim_start().trim_start_matches("pub ").starts_with("const "))
    );
    assert!(
        !apply.contains("part.tool =="),
        "a tool's meaning is in the preamble, not in its name"
    );
}

/// The files that make up the loop itself. Any other concern (a preset, rewind) has its own file.
const DECIDES: [&str; 8] =
    ["answer.rs", "call.rs", "claim.rs", "end.rs", "limits.rs", "mod.rs", "prompt.rs", "reply.rs"];

/// A source as it would be on lines of 120 columns, each literal on one line: the bounds below
/// count code, not line breaks.
fn at_120_columns(source: &str) -> String {
    let mut joined = String::new();
    for line in source.lines() {
        let continues = joined.ends_with('\\');
        if continues {
            joined.pop();
        }
        joined.push_str(if continues { line.trim_start() } else { line });
        if !line.ends_with('\\') {
            joined.push('\n');
        }
    }
    let config = "max_width=120,use_small_heuristics=Max";
    let mut command = std::process::Command::new("rustfmt");
    command
        .args(["--edition", "2024", "--config", config])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("rustfmt is part of the toolchain");
    child.stdin.take().unwrap().write_all(joined.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "rustfmt failed");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn deciding_stays_readable() {
    let broken = "fn a() {\n    b(\n        \"c \\\n         d\",\n    );\n}\n";
    assert_eq!(at_120_columns(broken), "fn a() {\n    b(\"c d\");\n}\n");
    let folder = root().join("crates/dunnock-core/src/decide");
    let mut sum = 0;
    for path in files_below(&["crates/dunnock-core/src/decide"], &["rs"]) {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let lines = code_lines(&at_120_columns(&read(&path)));
        println!("decide/{name}: {lines} lines of code");
        assert!(lines <= 150, "decide/{name} has {lines} lines of code: split it by concern");
        sum += if DECIDES.contains(&name.as_str()) { lines } else { 0 };
    }
    for name in DECIDES {
        assert!(
            folder.join(name).exists(),
            "decide/{name} does not exist: remove it from the list"
        );
    }
    println!("figure: deciding: {sum} lines of code (bound 600)");
    assert!(sum <= 600, "deciding has {sum} lines of code");
}

/// Whether a line of a test fails on wall time alone.
fn fails_on_wall_time(line: &str) -> bool {
    let timed = line.contains(".elapsed()")
        || line.contains("took")
        || line.contains("toBeLessThan(") && line.contains("ms");
    let hang =
        [60, 90, 120, 300, 600].iter().any(|limit| line.contains(&format!("from_secs({limit})")));
    let upper = line.contains('<')
        && ["from_millis(", "from_secs(", "as_millis()", "as_secs()"]
            .iter()
            .any(|u| line.contains(u));
    line.contains("assert") && timed && upper && !hang
}

/// Wall times are printed, and checked by `cargo xtask long figures`: see
/// `dunnock_testkit::timing`.
#[test]
fn no_test_fails_on_wall_time_alone() {
    assert!(fails_on_wall_time("assert!(took < Duration::from_millis(100));"));
    assert!(fails_on_wall_time("assert!(began.elapsed().as_secs() < 2);"));
    assert!(!fails_on_wall_time("assert!(began.elapsed() < Duration::from_secs(60));"));
    assert!(!fails_on_wall_time("assert!(began.elapsed() >= Duration::from_secs(1));"));
    for path in files_below(&["crates"], &["rs"]) {
        let helper = path.ends_with("testkit/src/timing.rs");
        for (n, line) in read(&path).lines().enumerate().filter(|_| !helper) {
            assert!(!fails_on_wall_time(line), "{}:{}: {line}", path.display(), n + 1);
        }
    }
}

/// Names that were replaced by conventional terms; the changelog lists them.
const RETIRED: &[&str] = &[
    "Asking",
    "Boxed",
    "Briefing",
    "CompactFailed",
    "CompactStarted",
    "Confinement",
    "DoorError",
    "Ear",
    "Guest",
    "Hall",
    "Halt",
    "Hand",
    "HandOver",
    "HandedOver",
    "Hands",
    "HeadFailed",
    "Headed",
    "InterruptAsked",
    "Keeper",
    "MakeHead",
    "Misfit",
    "Offer",
    "Past",
    "RewindAsked",
    "Room",
    "Saw",
    "Seat",
    "Speaker",
    "Summed",
    "Surroundings",
    "Tongue",
    "Turn",
    "TurnFailed",
    "TurnStarted",
    "Undoes",
    "Woken",
    "box_level",
    "box_read",
    "box_write",
    "by_hand",
    "handed_over",
    "interrupt_asked",
    "rewind_asked",
    "turn_failed",
    "turn_started",
];

/// The retired names in a source file: in its code, and in backticks in its comments.
fn retired(source: &str) -> Vec<&str> {
    let pieces = source.lines().flat_map(|line| match line.trim_start().starts_with("//") {
        true => line.split('`').skip(1).step_by(2).collect(),
        false => vec![line],
    });
    let words =
        pieces.flat_map(|piece| piece.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| RETIRED.contains(word)).collect()
}

#[test]
fn no_retired_name_comes_back() {
    assert_eq!(retired("struct Hall; // a Guest\nlet by_hand = 1;"), ["Hall", "Guest", "by_hand"]);
    assert_eq!(retired("/// As [`Hall::open`] of the Hall."), ["Hall"]);
    assert!(retired("// Hall\nlet hall = \"Halls\";").is_empty());
    let sources = files_below(&["crates", "xtask", "fuzz/src", "web/src"], &["rs", "ts", "tsx"]);
    assert!(sources.len() > 200);
    for path in sources.iter().filter(|path| !path.ends_with("xtask/src/tidy_code.rs")) {
        assert_eq!(retired(&read(path)), Vec::<&str>::new(), "{}", path.display());
    }
}

/// Whether a source chooses the mode of a file or folder that it creates.
fn chooses_a_mode(source: &str) -> bool {
    let direct = source.contains("DirBuilderExt") || source.contains("OpenOptionsExt::mode");
    direct || (source.contains("OpenOptionsExt") && source.contains(".mode(0o"))
}

/// Private files are created in `dunnock-private`. The others create the user's files.
#[test]
fn private_files_are_created_in_one_place() {
    const OTHERS: &[&str] = &[
        "crates/dunnock-private/src/lib.rs",
        "crates/dunnock-tools/src/checkpoint/export.rs",
        "crates/dunnock-tools/src/root/place.rs",
    ];
    assert!(chooses_a_mode("std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);"));
    assert!(chooses_a_mode("use std::os::unix::fs::OpenOptionsExt as _; options.mode(0o600);"));
    let sources = files_below(&["crates"], &["rs"]);
    let mut found: Vec<String> = sources
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "src"))
        .filter(|path| chooses_a_mode(&read(path)))
        .map(|path| path.strip_prefix(root()).unwrap().display().to_string())
        .collect();
    found.sort();
    assert_eq!(found, OTHERS);
}

/// Whether a source starts processes: `Command` of the standard library or of tokio.
fn starts_processes(source: &str) -> bool {
    let tests =
        ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|mark| source.find(mark)).min();
    source[..tests.unwrap_or(source.len())].contains("Command::new(")
}

/// No child gets a key. Programs of the user's own are started by `own_programs.rs`, which removes
/// keys from the environment; the others clear it.
#[test]
fn processes_are_started_where_no_key_is_passed_on() {
    const STARTS: &[&str] = &[
        "crates/dunnock-sandbox/src/client.rs",
        "crates/dunnock-sandbox/src/prove.rs",
        "crates/dunnock-tools/src/child.rs",
        "crates/dunnock-tools/src/git.rs",
        "crates/dunnock/src/own_programs.rs",
    ];
    assert!(starts_processes("let child = std::process::Command::new(program);"));
    assert!(starts_processes("tokio::process::Command::new(\"vi\").spawn()"));
    let sources = files_below(&["crates"], &["rs"]);
    let mut found: Vec<(String, String)> = sources
        .iter()
        .map(|path| (path.strip_prefix(root()).unwrap().display().to_string(), read(path)))
        .filter(|(path, _)| path.contains("/src/") && !path.starts_with("crates/dunnock-testkit"))
        .filter(|(path, source)| !path.ends_with("/quiet.rs") && starts_processes(source))
        .collect();
    found.sort();
    assert_eq!(found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), STARTS);
    for (path, source) in &found {
        let (starts, clears) =
            (source.matches("Command::new(").count(), source.matches(".env_clear()").count());
        let removes = usize::from(source.contains(".env_remove("));
        assert!(clears + removes >= starts, "{path} passes its environment on");
    }
}
