//! Everyday commands: no question, the same exit status, and the same output as without a box.

use super::world::{World, shell};
use super::{Case, judge, of};
use std::process::Command;

/// Whose output is about the machine, the moment or the box itself: `env ps df date time mktemp`.
const DIFFERS: &[&str] = &["G433", "G434", "G435", "G436", "G437", "G448"];

fn prepare(world: &World, case: &Case) -> String {
    match case.id.as_str() {
        // A secret is covered in the box, and its line would show that.
        "G377" => world.bash("rm .env"),
        "G397" | "G395" | "G446" => world.bash("git add -A"),
        "G439" => return "cargo test".into(),
        "G440" => return "python3 -m pytest -q".into(),
        "G443" => return "find . -name '*.log' -delete".into(),
        "G454" => {
            world.bash(
                "git checkout -q README.md && git switch -q topic && echo t > t.txt && git add \
                 t.txt && git commit -q -m t",
            );
            return "git rebase main".into();
        }
        "G455" => return "strace -c ls".into(),
        "G456" => world.bash("cargo build -q"),
        "G441" => {
            return "timeout 2 node -e \"require('net').createServer().listen(0, () => \
                    process.exit(0))\""
                .into();
        }
        _ => {}
    }
    world.text(&case.input)
}

/// Without what differs from run to run: hashes, times, speeds.
fn plain(text: &str) -> Vec<String> {
    let mut text = text.replace("\r\n", "\n");
    for (pattern, with) in [
        (r"\b[0-9a-f]{7,40}\b", "HASH"),
        (r"\b\d+(\.\d+)? ?m?s\b", "TIME"),
        (r"\d+\.\d+s?", "NUMBER"),
        (r"\d\d:\d\d(:\d\d)?", "CLOCK"),
        (r"\x1b\[[0-9;]*m", ""),
        (r"\d+/\w+/\d+ .*GET", "GET"),
        (r"\[\d+\] \d+", "[JOB]"),
        (r"line \d+: +\d+ ", "line N: "),
        (r"\bHASH-HASH\b", "HASH"),
        (r"process \d+", "process PID"),
        // A table of strace: how long each call took.
        (r" *NUMBER +NUMBER +\d+ ", "TIMES "),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    let mut lines: Vec<String> =
        text.lines().map(|line| line.trim_end().to_owned()).filter(|l| !l.is_empty()).collect();
    // The folder above is another one in the box.
    lines.retain(|line| !line.ends_with(" ..") && !line.starts_with("total "));
    // `/proc` can only be read in the box, so a debugger says that it goes on with ptrace.
    lines.retain(|line| {
        !(line.starts_with("warning: opening /proc/") && line.contains("Read-only file system"))
    });
    // Another cargo on this machine.
    lines.retain(|line| !line.contains("Blocking waiting for file lock"));
    lines.sort();
    lines
}

async fn command(case: &Case) -> Result<String, String> {
    let world = World::new(&case.id);
    let line = prepare(&world, case);
    // First without a box, by hand, in the very same place; then all is as it was.
    let keep = world.home.dir.path().join("kept");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
    };
    copy(&world.home.project(), &keep);
    let bare = world.command(&[]);
    let mut via_bridge = Command::new("bash");
    via_bridge.args(["-c", &line]).current_dir(world.home.project()).env_clear();
    via_bridge.envs(
        bare.get_envs()
            .filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())))
            .filter(|(k, _)| k != "SCRIPT_KEY"),
    );
    for (name, value) in [
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("CI", "1"),
        ("GIT_EDITOR", "true"),
        ("EDITOR", "true"),
    ] {
        via_bridge.env(name, value);
    }
    let done = tokio::task::spawn_blocking(move || {
        via_bridge.stdin(std::process::Stdio::null()).output().unwrap()
    })
    .await
    .unwrap();
    std::fs::remove_dir_all(world.home.project()).unwrap();
    std::fs::rename(&keep, world.home.project()).unwrap();
    for left in std::fs::read_dir(world.home.dir.path()).unwrap().flatten() {
        // What tools leave in a home when nobody stops them.
        let name = left.file_name().to_string_lossy().into_owned();
        if matches!(name.as_str(), ".npm" | ".cache" | "go" | ".cargo") {
            let _ = Command::new("chmod").args(["-R", "u+w"]).arg(left.path()).status();
            let _ = std::fs::remove_dir_all(left.path());
        }
    }
    let came = world.model(&[shell(&line)], &[]).await;
    if came.code == 3 {
        return Err(format!("{line}: it asked: {}", came.err));
    }
    if let Some(harm) = world.harm(&came) {
        return Err(format!("{line}: {harm}"));
    }
    let bare = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    let code = done.status.code().unwrap_or(-1);
    let ended = regex::Regex::new(r"\n?\[exit (\d+)\]").unwrap();
    let boxed_code = ended.captures(&came.told).map_or(0, |found| found[1].parse::<i32>().unwrap());
    if boxed_code != code {
        return Err(format!(
            "{line}: exit {boxed_code} in the box, {code} without: {}\n--- without:\n{bare}",
            came.told
        ));
    }
    let told = ended.replace(&came.told, "").replace("(no output)", "");
    let told: String =
        told.lines().filter(|l| !l.starts_with("[sandbox: ")).collect::<Vec<_>>().join("\n");
    if DIFFERS.contains(&case.id.as_str()) {
        return Ok(format!("unasked, exit {code}"));
    }
    // Which of two streams is read first is nobody's promise, so lines are compared, not their
    // order.
    let (inside, outside) = (plain(&told), plain(&bare));
    // Where one stream broke into a line of the other, that line and its neighbour are compared by
    // their words.
    let broken = |mine: &[String], theirs: &[String]| {
        let mut left = theirs.to_vec();
        let other: Vec<&String> = mine
            .iter()
            .filter(|l| left.iter().position(|t| t == *l).map(|at| left.swap_remove(at)).is_none())
            .collect();
        let mut words: Vec<String> =
            other.iter().flat_map(|l| l.split_whitespace()).map(str::to_owned).collect();
        words.sort();
        (other.len(), words)
    };
    let ((a, mine), (b, theirs)) = (broken(&inside, &outside), broken(&outside, &inside));
    match a <= 2 && b <= 2 && mine == theirs {
        true => Ok(format!("unasked, exit {code}, {} lines the same", inside.len())),
        false => Err(format!(
            "{line}: in the box\n{}\n--- without\n{}",
            inside.join("\n"),
            outside.join("\n")
        )),
    }
}

async fn tool(case: &Case) -> Result<String, String> {
    let world = World::new(&case.id);
    world.bash("ln -s a.txt inner-link; printf 'odd\\n' > $'a \"b\" \\'c\\' \u{1f600}\\nd'");
    let json = |value: serde_json::Value| value.to_string();
    let (tool, args) = match case.id.as_str() {
        "G458" => (
            "replace_text",
            json(serde_json::json!({"path": "src/lib.rs", "old": "//! foo", "new": "//! bar"})),
        ),
        "G459" => {
            let patch = "*** Begin Patch\n*** Update File: src/lib.rs\n-//! foo\n+//! bar\n*** \
                         Add File: docs/new.md\n+new\n*** Delete File: a.txt\n*** End Patch";
            ("apply_patch", json(serde_json::json!({ "patch": patch })))
        }
        "G460" => {
            let header = ["/usr/include/stdio.h", "/usr/include/stdint.h"];
            let header = header.iter().find(|h| std::path::Path::new(h).is_file()).unwrap();
            ("view_file", json(serde_json::json!({ "path": header })))
        }
        "G461" => ("view_file", json(serde_json::json!({"path": "inner-link"}))),
        "G462" => ("view_file", json(serde_json::json!({"path": "a \"b\" 'c' \u{1f600}\nd"}))),
        "G466" => ("view_file", json(serde_json::json!({"path": ".env.example"}))),
        "G464" | "G465" => (
            "write_file",
            json(serde_json::json!({"path": case.input, "content": "x\n", "overwrite": true})),
        ),
        _ => ("write_file", json(serde_json::json!({"path": case.input, "content": "x\n"}))),
    };
    let came = world.model(&[(tool.into(), args)], &[]).await;
    let done =
        ["wrote", "replaced", "deleted", "Read "].iter().any(|word| came.told.starts_with(word));
    match came.code == 0 && done {
        true => Ok("unasked, done".into()),
        false => Err(format!("ended with {}: {}{}", came.code, came.told, came.err)),
    }
}

async fn each(test: &str) {
    let mut results = Vec::new();
    for case in of(test) {
        let result = if case.tool == "shell" { command(&case).await } else { tool(&case).await };
        results.push((case.id.clone(), result));
    }
    judge(test, results);
}

#[tokio::test(flavor = "multi_thread")]
async fn everyday_commands_run_unasked_and_say_the_same() {
    each("cases::benign::everyday_commands_run_unasked_and_say_the_same").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everyday_builds_run_unasked_and_say_the_same() {
    each("cases::benign::everyday_builds_run_unasked_and_say_the_same").await;
}

/// Holds T8: in auto it does not ask (G459).
#[tokio::test(flavor = "multi_thread")]
async fn everyday_edits_and_looks_are_unasked() {
    each("cases::benign::everyday_edits_and_looks_are_unasked").await;
}
