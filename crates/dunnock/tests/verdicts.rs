//! "Done" means proven: every way in which a check can end, with its verdict, its exit code and its
//! receipt.

use crate::{Home, Ran};
use dunnock_testkit::fixture;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use serde_json::Value;
use std::time::Duration;

#[test]
fn the_schema_of_receipts_is_committed() {
    fixture::check("docs/reference/receipt.schema.json", &dunnock::receipt_schema());
}

fn write(path: &str, text: &str) -> Served {
    let args = serde_json::json!({"path": path, "content": text, "overwrite": true}).to_string();
    Say::calls(&[("write_file", &args)]).into()
}

fn says(text: &str) -> Served {
    Say::text(text).into()
}

/// A receipt, made twice, valid, and the same in both forms.
async fn receipt(home: &Home, what: &str) -> Value {
    let schema: Value = serde_json::from_str(&dunnock::receipt_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut texts = Vec::new();
    for flags in [&["sessions", "receipt", "--json"][..], &["sessions", "receipt"]] {
        let (first, second) = (home.run(flags).await, home.run(flags).await);
        assert_eq!(first.code, 0, "{what}: {}", first.err);
        assert_eq!(first.out, second.out, "{what}: made again it is another");
        texts.push(first.out);
    }
    let json: Value = serde_json::from_str(&texts[0]).unwrap();
    let errors: Vec<String> = validator.iter_errors(&json).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{what}: {errors:?}\n{json}");
    let chain = json["chain"].as_str().unwrap();
    assert!(texts[1].contains(chain), "{what}: {}", texts[1]);
    let verified = home.run(&["sessions", "verify"]).await;
    assert!(verified.out.contains(chain), "{what}: {}", verified.out);
    json
}

struct Scene {
    name: &'static str,
    script: Vec<Served>,
    verify: &'static [&'static str],
    config: &'static str,
    /// Exit code and verdict.
    ends: (i32, &'static str),
    /// What the receipt says of each check: passed, try, passed before.
    checks: &'static [(bool, u32, bool)],
    /// What the closing line holds.
    closing: &'static str,
}

fn scenes() -> Vec<Scene> {
    let scene = |name, script, verify, ends, checks, closing| Scene {
        name,
        script,
        verify,
        config: "",
        ends,
        checks,
        closing,
    };
    vec![
        scene(
            "passes at once",
            vec![write("a.txt", "good\n"), says("done")],
            &["test -d ."],
            (0, "proven"),
            &[(true, 1, true)],
            "proven by `test -d .`",
        ),
        scene(
            "after two tries",
            vec![write("a.txt", "bad\n"), says("done"), write("a.txt", "good\n"), says("now")],
            &["grep -q good a.txt"],
            (0, "proven"),
            &[(true, 2, false)],
            "proven by `grep -q good a.txt` (it failed before)",
        ),
        scene(
            // A counter outside of the folder: the files are the same, and the end is another. The
            // first run is before the work.
            "flaky",
            vec![write("a.txt", "x\n"), says("done"), says("I changed nothing")],
            &["n=$(cat \"$HOME/n\" 2>/dev/null || echo 0); echo $((n + 1)) > \"$HOME/n\"; test \
               $n -ge 2"],
            (0, "proven"),
            &[(true, 2, false)],
            "flaky",
        ),
        Scene {
            config: "verify_timeout = 1\n",
            ..scene(
                "hangs",
                vec![says("done"), says("done"), says("done")],
                &["sleep 30"],
                (5, "failed"),
                &[(false, 3, false)],
                "not proven: `sleep 30`",
            )
        },
        scene(
            "failed before",
            vec![write("a.txt", "good\n"), says("done")],
            &["test -f a.txt"],
            (0, "proven"),
            &[(true, 1, false)],
            "(it failed before)",
        ),
        scene(
            "failed before and still fails",
            vec![says("done"), says("done"), says("done")],
            &["test -f missing"],
            (5, "failed"),
            &[(false, 3, false)],
            "not proven: `test -f missing` (it failed before) failed",
        ),
        scene(
            "agent claims without doing",
            vec![says("All tests pass now."), says("They really do."), says("Trust me.")],
            &["grep -q fixed code.txt"],
            (5, "failed"),
            &[(false, 3, false)],
            "not proven",
        ),
        scene(
            "a check that edits files once, like a formatter",
            vec![write("a.txt", "x  \n"), says("done")],
            &["sed -i 's/ *$//' a.txt", "test -f a.txt"],
            (0, "proven"),
            &[(true, 2, false), (true, 2, false)],
            "proven by",
        ),
        scene(
            "a check that edits files each time",
            vec![write("a.txt", "x\n"), says("done")],
            &["echo more >> a.txt"],
            (5, "stale"),
            &[(true, 3, true)],
            "proof stale: `echo more >> a.txt` changes files each time",
        ),
        scene(
            "none given",
            vec![write("a.txt", "x\n"), says("done")],
            &[],
            (0, "unverified"),
            &[],
            "not checked (no --verify)",
        ),
        scene(
            "several, all pass",
            vec![write("a.txt", "x\n"), says("done")],
            &["test -f a.txt", "true", "grep -q x a.txt"],
            (0, "proven"),
            &[(true, 1, false), (true, 1, true), (true, 1, false)],
            "proven by `test -f a.txt` (it failed before), `true`, `grep -q x a.txt`",
        ),
        scene(
            "several, one fails",
            vec![says("done"), says("done"), says("done")],
            &["true", "false"],
            (5, "failed"),
            &[(true, 3, true), (false, 3, false)],
            "not proven: `false` (it failed before) failed",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_of_a_check_has_its_verdict_exit_and_receipt() {
    for scene in scenes() {
        let server = ScriptedServer::start(scene.script).await;
        let home = Home::with(&server);
        if !scene.config.is_empty() {
            home.set(scene.config);
        }
        home.put("code.txt", "broken\n");
        let mut args = vec!["run", "--approve", "all"];
        if scene.name == "flaky" {
            args.extend(["--sandbox", "off"]);
        }
        scene.verify.iter().for_each(|command| args.extend(["--verify", command]));
        args.push("do it");
        let name = scene.name;
        let ran = home.run(&args).await;
        assert_eq!(ran.code, scene.ends.0, "{name}: {}", ran.err);
        assert!(ran.err.contains(scene.closing), "{name}: {}", ran.err);
        let receipt = receipt(&home, name).await;
        assert_eq!(receipt["verdict"], scene.ends.1, "{name}: {receipt}");
        let rows = receipt["checks"].as_array().unwrap();
        let rows: Vec<(bool, u64, Option<bool>)> = rows
            .iter()
            .map(|row| {
                (
                    row["passed"].as_bool().unwrap(),
                    row["tries"].as_u64().unwrap(),
                    row["passed_before"].as_bool(),
                )
            })
            .collect();
        let wanted: Vec<(bool, u64, Option<bool>)> = scene
            .checks
            .iter()
            .map(|(passed, tries, before)| (*passed, u64::from(*tries), Some(*before)))
            .collect();
        assert_eq!(rows, wanted, "{name}");
        for (row, command) in receipt["checks"].as_array().unwrap().iter().zip(scene.verify) {
            assert_eq!(row["command"], *command, "{name}");
            assert!(
                row["tree"].as_str().is_some_and(|tree| tree.starts_with("files:")),
                "{name}: {row}"
            );
            assert_eq!(row["flaky"], name == "flaky", "{name}");
            assert!(row["exit"].is_number() || name == "hangs", "{name}: {row}");
        }
        let shown = home.run(&["sessions", "show"]).await;
        assert!(shown.out.contains(&format!("verdict: {}", scene.ends.1)), "{name}: {}", shown.out);
        let again = home.run(&["resume", "--json"]).await;
        let last: Value = serde_json::from_str(again.out.lines().last().unwrap()).unwrap();
        if scene.ends.0 == 0 {
            assert_eq!(
                (again.code, &last["verdict"]),
                (0, &Value::from(scene.ends.1)),
                "{name}: {last}"
            );
        }
        println!("verdict {:<10} exit {}  {name}", scene.ends.1, scene.ends.0);
    }
}

async fn with_slow_check() -> (ScriptedServer, Home) {
    let server =
        ScriptedServer::start(vec![write("a.txt", "good\n"), says("done"), says("done")]).await;
    let home = Home::with(&server);
    home.set("baseline = \"off\"\n");
    (server, home)
}

/// Until a file is there.
pub async fn until(home: &Home, name: &str) {
    for _ in 0..500 {
        if home.project().join(name).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(home.project().join(name).exists(), "{name} never came");
}

fn ended(child: std::process::Child) -> Ran {
    crate::told(child.wait_with_output().unwrap())
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_was_cancelled_proves_nothing_and_one_that_was_killed_runs_again() {
    // A stamp in a folder that does not count shows that the check runs.
    let check = "mkdir -p .cache && touch .cache/CACHEDIR.TAG; touch .cache/began; test -f \
                 .cache/go || sleep 60; grep -q good a.txt";
    for kill in [false, true] {
        let (_server, home) = with_slow_check().await;
        let child = home.start(&["run", "--approve", "all", "--verify", check, "do it"]);
        until(&home, ".cache/began").await;
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        let signal =
            if kill { rustix::process::Signal::KILL } else { rustix::process::Signal::INT };
        rustix::process::kill_process(pid, signal).unwrap();
        let ran = ended(child);
        let name = if kill { "killed during" } else { "cancelled" };
        assert_eq!(ran.code, if kill { -1 } else { 130 }, "{name}: {}", ran.err);
        let first = receipt(&home, name).await;
        assert_eq!(first["verdict"], "unverified", "{name}: {first}");
        home.put(".cache/go", "");
        let again = home.run(&["resume"]).await;
        assert_eq!(again.code, 0, "{name}: {}", again.err);
        let second = receipt(&home, name).await;
        assert_eq!(second["verdict"], "proven", "{name}: {second}");
        println!("verdict unverified, then proven  {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_changed_after_the_proof_make_it_stale_and_back_again() {
    let server = ScriptedServer::start(vec![write("a.txt", "good\n"), says("done")]).await;
    let home = Home::with(&server);
    assert_eq!(
        home.run(&["run", "--approve", "all", "--verify", "grep -q good a.txt", "go"]).await.code,
        0
    );
    assert_eq!(receipt(&home, "proven").await["verdict"], "proven");
    home.put("a.txt", "good, and more\n");
    let stale = receipt(&home, "changed after the proof").await;
    assert_eq!(stale["verdict"], "stale");
    assert_eq!(home.run(&["resume"]).await.code, 5);
    home.put("a.txt", "good\n");
    assert_eq!(receipt(&home, "as it was").await["verdict"], "proven");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_tells_task_model_cost_changes_approvals_and_base_and_no_key() {
    let key = format!("sk-{}", "a1B2".repeat(8));
    let run = serde_json::json!({"command": "echo hi > b.txt"}).to_string();
    let server = ScriptedServer::start(vec![
        Say::calls(&[("shell", &run)]).using(100, 10).into(),
        Say {
            usage: dunnock_proto::Usage { input: 100, output: 10, ..Default::default() },
            ..write("a.txt", "one\ntwo\n").say
        }
        .into(),
        Say {
            usage: dunnock_proto::Usage {
                input: 1000,
                cached: 400,
                output: 50,
                ..Default::default()
            },
            ..Say::text("done")
        }
        .into(),
    ])
    .await;
    let home = Home::with(&server);
    home.set("price = \"script/scripted: 1 in, 0.5 cached, 10 out\"\n");
    home.put("a.txt", "one\n");
    let git = |args: &[&str]| {
        let mut command = home.command_of("git".as_ref(), args);
        command
            .env("GIT_AUTHOR_NAME", "t")
            .env("GIT_AUTHOR_EMAIL", "t@e")
            .env("GIT_COMMITTER_NAME", "t");
        let done = command.env("GIT_COMMITTER_EMAIL", "t@e").output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let head = git(&["rev-parse", "HEAD"]);
    let task = format!("use {key} and `stop` here\n# not a heading");
    let ran = home.run(&["run", "--approve", "ask", "--sandbox", "off", &task]).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    let waiting = receipt(&home, "waiting").await;
    assert_eq!(
        (&waiting["state"], &waiting["approvals"][0]["answer"]),
        (&Value::from("waiting"), &Value::Null)
    );
    assert_eq!(home.run(&["approve", &home.newest().await, "--go"]).await.code, 3);
    let last = home.run(&["approve", &home.newest().await, "--go"]).await;
    assert_eq!(last.code, 0, "{}", last.err);
    let receipt = receipt(&home, "all of it").await;
    assert_eq!(receipt["base"], head.as_str());
    assert_eq!(receipt["models"], serde_json::json!(["script/scripted"]), "{receipt}");
    assert_eq!(receipt["steps"], 3);
    assert_eq!(
        receipt["usd"].as_f64(),
        Some(0.0017),
        "200, 200, 600 + 200 + 500 millionths: {receipt}"
    );
    let changes: Vec<String> = receipt["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| format!("{} {} {} {}", c["path"], c["how"], c["added"], c["removed"]))
        .collect();
    assert_eq!(changes, ["\"a.txt\" \"changed\" 1 0", "\"b.txt\" \"added\" 1 0"]);
    assert_eq!(receipt["approvals"].as_array().unwrap().len(), 2);
    assert_eq!(receipt["approvals"][0]["asked"], "shell echo hi > b.txt");
    assert_eq!(receipt["approvals"][0]["answer"], "yes");
    let markdown = home.run(&["sessions", "receipt"]).await.out;
    assert!(!markdown.contains(&key) && !receipt.to_string().contains(&key), "{markdown}");
    assert!(markdown.contains("> # not a heading") && markdown.contains("$0.0017"), "{markdown}");
    let cost = home.run(&["cost"]).await;
    assert!(
        cost.out.contains("session") && cost.out.contains("$0.0017") && cost.out.contains("today"),
        "{}",
        cost.out
    );
    let rows = home.run(&["cost", "--json"]).await;
    let rows: Vec<Value> =
        rows.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 5, "three steps, the session, the day: {rows:?}");
    assert_eq!(
        (rows[2]["tokens_cached"].as_u64(), rows[4]["usd"].as_f64()),
        (Some(400), Some(0.0017))
    );
}
