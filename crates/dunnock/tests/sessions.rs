//! `dunnock sessions` on logs of an older release, and sessions carried from one place to another.

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn golden(dir: &Path) {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/logs")
        .join(env!("CARGO_PKG_VERSION"));
    std::fs::copy(logs.join("dunnock.db"), dir.join("dunnock.db")).unwrap();
}

fn dunnock(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_dunnock")));
    let Output { status, stdout, stderr } =
        command.arg("--data-dir").arg(dir).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn version_names_the_release() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, _) = dunnock(dir.path(), &["--version"]);
    assert_eq!((code, out.as_str()), (0, concat!("dunnock ", env!("CARGO_PKG_VERSION"), "\n")));
}

/// Holds W2: the store is made by itself at start, in a data folder that was not there.
#[test]
fn an_empty_list_says_so_and_the_folder_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("new/data");
    let (code, out, err) = dunnock(&data, &["sessions", "list"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "dunnock: no sessions yet\n"));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("dunnock.db")), 0o600);
}

/// Holds W2: one database: sessions of other folders are listed, --here narrows.
#[test]
fn sessions_are_listed_newest_first_one_object_a_line() {
    let dir = tempfile::tempdir().unwrap();
    golden(dir.path());
    let (code, out, _) = dunnock(dir.path(), &["sessions", "list", "--json"]);
    assert_eq!(code, 0);
    let rows: Vec<serde_json::Value> =
        out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let titles: Vec<&str> = rows.iter().map(|r| r["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["ask me first", "do three things at once", "do the plain thing"]);
    for row in &rows {
        let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["created", "id", "shown_status", "state", "title", "version", "workspace"]
        );
        assert_eq!(row["state"], "done");
        assert!(row["created"].as_str().unwrap().ends_with('Z'));
    }
    let (_, here, _) = dunnock(dir.path(), &["sessions", "list", "--here", "--json"]);
    assert_eq!(here, "", "none of them is of this folder");
}

#[test]
fn a_session_is_shown_in_words_by_the_beginning_of_its_id() {
    let dir = tempfile::tempdir().unwrap();
    golden(dir.path());
    let (_, out, _) = dunnock(dir.path(), &["sessions", "list", "--json"]);
    let first: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let id = &first["id"].as_str().unwrap()[..10];
    let (code, out, _) = dunnock(dir.path(), &["sessions", "show", id]);
    assert_eq!(code, 0);
    for words in [
        "> do the plain thing",
        "1.0 append",
        "1.0 done:\n    one",
        "> and then one more",
        "ended: done",
    ] {
        assert!(out.contains(words), "{words} is missing in:\n{out}");
    }
    let (_, facts, _) = dunnock(dir.path(), &["sessions", "show", id, "--json"]);
    assert_eq!(facts.lines().count(), 40);
    let (code, _, err) = dunnock(dir.path(), &["sessions", "show", "nosuchsession"]);
    assert_eq!(code, 1);
    assert_eq!(
        err,
        "dunnock: there is no session nosuchsession. \"dunnock sessions list\" lists all \
         sessions\n"
    );
}

#[test]
fn a_changed_fact_is_found_by_verify() {
    let dir = tempfile::tempdir().unwrap();
    golden(dir.path());
    let (code, out, _) = dunnock(dir.path(), &["sessions", "verify"]);
    assert_eq!((code, out.lines().filter(|l| l.contains("  intact  ")).count()), (0, 3));
    let path = dir.path().join("dunnock.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = br#""text":"and then one more"#;
    let at = bytes.windows(needle.len()).position(|w| w == needle).unwrap();
    bytes[at + 10] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (code, out, _) = dunnock(dir.path(), &["sessions", "verify"]);
    assert_eq!(code, 1);
    assert_eq!(out.lines().filter(|l| l.contains("CHANGED")).count(), 1, "{out}");
    let (code, out, _) = dunnock(dir.path(), &["sessions", "verify", "--json"]);
    assert_eq!((code, out.lines().filter(|l| l.contains("\"ok\":false")).count()), (1, 1));
}

#[test]
fn a_change_of_the_very_last_fact_is_found_too() {
    let dir = tempfile::tempdir().unwrap();
    golden(dir.path());
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(\"UPDATE \
                  events SET body = replace(body, 'mark', 'mask') WHERE no = 1 AND seq = (SELECT \
                  max(seq) FROM events WHERE no = 1)\"); print(db.total_changes); db.commit()";
    let edit = Command::new("python3")
        .args(["-c", script])
        .arg(dir.path().join("dunnock.db"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&edit.stdout), "1\n", "{edit:?}");
    let (code, out, _) = dunnock(dir.path(), &["sessions", "verify"]);
    assert_eq!(
        (
            code,
            out.lines()
                .filter(|l| l.contains("the last one, does not match its stored hash"))
                .count()
        ),
        (1, 1),
        "{out}"
    );
}

#[test]
fn wrong_usage_is_exit_2_and_shows_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, err) = dunnock(dir.path(), &["sesions"]);
    assert_eq!(code, 2);
    assert!(err.contains("sessions") && err.contains("--help"), "{err}");
}

/// Holds A1: listed, searched, exported, imported, resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_carried_elsewhere_whole_and_found_again() {
    use crate::Home;
    use dunnock_testkit::server::ScriptedServer;
    let server = ScriptedServer::start(crate::runs::work()).await;
    let home = Home::with(&server);
    home.put("a.txt", "one\n");
    assert_eq!(home.run(&["run", "--approve", "all", "change the quails"]).await.code, 0);
    let id = home.newest().await;
    let file = home.dir.path().join("carried.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(home.run(&["sessions", "export", &id, "--output", file]).await.code, 0);
    let shown = home.run(&["sessions", "show", &id, "--json"]).await.out;

    let found = home.run(&["sessions", "search", "quails"]).await;
    assert!(found.code == 0 && found.out.contains(&id), "{}{}", found.out, found.err);
    assert_eq!(home.run(&["sessions", "search", "nightingales"]).await.code, 1);
    let json = home.run(&["sessions", "search", "quails", "--json", "--here"]).await;
    assert!(
        serde_json::from_str::<serde_json::Value>(json.out.lines().next().unwrap()).unwrap()
            ["excerpt"]
            .is_string()
    );

    let again = home.run(&["sessions", "import", file]).await;
    assert!(again.code == 1 && again.err.contains("already exists"), "{}", again.err);
    let other = Home::with(&server);
    let taken = other.run(&["sessions", "import", file]).await;
    assert!(taken.code == 0, "{}", taken.err);
    let there = other.run(&["sessions", "show", &id, "--json"]).await.out;
    assert!(there.starts_with(&shown), "every fact came along");
    assert_eq!(
        there[shown.len()..].lines().count(),
        2,
        "and two more: it was carried here, and its mode is ask now"
    );
    assert_eq!(other.run(&["sessions", "verify"]).await.code, 0);
    // Its folder is still there, so it can be gone on with, with the preamble it had.
    let on = other.run(&["resume", &id, "--prompt", "and more"]).await;
    assert_eq!(on.code, 0, "{}", on.err);

    let text = std::fs::read_to_string(file).unwrap();
    for (what, changed) in [
        ("a changed word", text.replace("quails", "snails")),
        (
            "a missing line",
            text.lines()
                .enumerate()
                .filter(|(n, _)| *n != 3)
                .map(|(_, l)| format!("{l}\n"))
                .collect(),
        ),
        (
            "a missing blob",
            text.lines()
                .filter(|l| !l.starts_with("{\"blob\""))
                .map(|l| format!("{l}\n"))
                .collect(),
        ),
        ("a cut end", text.lines().take(9).map(|l| format!("{l}\n")).collect()),
    ] {
        std::fs::write(file, changed).unwrap();
        let fresh = Home::empty();
        let refused = fresh.run(&["sessions", "import", file]).await;
        assert_eq!(refused.code, 1, "{what}: {}", refused.err);
        assert_eq!(fresh.run(&["sessions", "list"]).await.out, "", "{what}: nothing was taken in");
    }
    assert_eq!(home.run(&["sessions", "delete", &id]).await.code, 0);
    assert_eq!(home.run(&["sessions", "show", &id]).await.code, 1);
    assert_eq!(home.run(&["sessions", "search", "quails"]).await.code, 1);
}

/// Holds W5: the mixed and the separate view.
/// Holds T7: the cut part stays readable.
#[tokio::test(flavor = "multi_thread")]
async fn all_of_an_output_can_be_read_by_person_and_model() {
    // Two pipes: their order is that of arrival, so there is time between them.
    let loud =
        "for i in $(seq 3000); do echo out $i; done; sleep 1; echo oops >&2; sleep 1; echo end";
    let server = ScriptedServer::start(vec![
        Say::calls(&[("shell", &serde_json::json!({ "command": loud }).to_string())]).into(),
        Say::calls(&[("view_file", r#"{"path":"call:1.0","first":1000,"last":1001}"#)]).into(),
        Say::calls(&[("view_file", r#"{"path":"call:9.0"}"#)]).into(),
        Say::text("done").into(),
    ])
    .await;
    let home = Home::with(&server);
    let ran = home.run(&["run", "--approve", "all", "go"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = |n: usize| {
        server.requests()[n]["messages"].as_array().unwrap().last().unwrap()["content"].clone()
    };
    let first = told(1).as_str().unwrap().to_owned();
    assert!(
        first.contains(r#"to read them: view_file {"path":"call:1.0","first":134,"last":333}]"#),
        "{first}"
    );
    assert_eq!(
        told(2),
        "Read call:1.0 (lines 1000-1001 of 3002 total)\n\n1000  out 1000\n1001  out 1001"
    );
    assert_eq!(told(3), "there was no call 9.0");
    let id = home.newest().await;
    let lines = async |args: &[&str]| home.run(args).await.out.lines().count();
    assert_eq!(lines(&["sessions", "output", &id, "1.0"]).await, 3002);
    assert_eq!(lines(&["sessions", "output", &id, "1.0", "--stream", "out"]).await, 3001);
    assert_eq!(
        home.run(&["sessions", "output", &id, "1.0", "--stream", "err"]).await.out,
        "oops\n"
    );
}
