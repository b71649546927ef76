//! A key is sent to its provider and is nowhere else: no argument list, log, frame, error, settings
//! page or child.

use crate::{Home, KEY};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Fault, Rules, ScriptedServer, Served};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn files(dir: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            files(&path, each);
        }
        each(&path);
    }
}

fn holds(bytes: &[u8]) -> bool {
    bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_key_is_found_nowhere() {
    let env = r#"{"command":"env; cat /proc/$PPID/cmdline | tr '\\0' ' '; ps -ef 2>/dev/null | head -50"}"#;
    let script = vec![Say::calls(&[("shell", env)]).into(), Say::text("done").into()];
    let server =
        ScriptedServer::with(script, Rules { key: Some(KEY.into()), ..Rules::default() }).await;
    let home = Home::with(&server);
    let mut printed = String::new();
    for args in [
        &["run", "--json", "--approve", "all", "look"][..],
        &["run", "--approve", "all", "look"],
        &["config"],
        &["config", "--json"],
        &["doctor"],
        &["models", "list"],
        &["sessions", "list", "--json"],
        &["resume", "--prompt", "more"],
    ] {
        let ran = home.run(args).await;
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        printed.push_str(&ran.out);
        printed.push_str(&ran.err);
    }
    let id = home.newest().await;
    for args in [
        &["sessions", "show", &id][..],
        &["sessions", "show", &id, "--json"],
        &["sessions", "export", &id],
    ] {
        printed.push_str(&home.run(args).await.out);
    }
    assert!(printed.contains("PATH="), "the child's environment was printed");
    assert!(!holds(printed.as_bytes()), "the key was printed");
    // A wrong key, which the server repeats in its refusal.
    let strict =
        ScriptedServer::with(vec![], Rules { key: Some("another".into()), ..Rules::default() })
            .await;
    let refused = Home::with(&strict);
    let ran = refused.run(&["run", "--json", "look"]).await;
    assert!(
        ran.code == 1
            && ran.out.contains("refused the key")
            && !holds(ran.out.as_bytes())
            && !holds(ran.err.as_bytes())
    );
    // A server that answers 200 and repeats the key inside the stream, also where the text is cut.
    for padding in [0, 480] {
        let text = format!("{} bad key {KEY} {}", "x".repeat(padding), "y".repeat(600));
        let stream = format!("data: {{\"error\":{{\"message\":\"{text}\"}}}}\n\n");
        let gateway = ScriptedServer::start(vec![Served::wrong(
            Say::text("x"),
            Fault::Raw(stream.into_bytes()),
        )])
        .await;
        let told = Home::with(&gateway);
        let ran = told.run(&["run", "--json", "look"]).await;
        let stored = told.run(&["sessions", "show", "--json"]).await;
        assert!(ran.code == 1 && ran.out.contains("the server reported an error"), "{}", ran.out);
        for text in [&ran.out, &ran.err, &stored.out] {
            assert!(!text.contains(&KEY[..12]), "a part of the key is in {text}");
        }
    }
    for place in [&home, &refused] {
        let mut seen = 0;
        files(place.dir.path(), &mut |path| {
            if path.is_file() {
                seen += 1;
                assert!(!holds(&std::fs::read(path).unwrap()), "the key is in {}", path.display());
            }
        });
        assert!(seen >= 3, "{seen} files");
    }
    assert!(server.bodies().iter().all(|b| !holds(b)), "the key is in no request's body");
}

/// Holds W2: by default in the user's data folder (~/.local/share/dunnock), private.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_private() {
    // More than a megabyte of output, so that there is a blob in a file of its own.
    let script = vec![
        Say::calls(&[("shell", r#"{"command":"head -c 2000000 /dev/zero | tr '\\0' x"}"#)]).into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "--approve", "all", "go"]).await.code, 0);
    let mut kinds = (0, 0);
    let mut check = |path: &Path| {
        let mode = std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        match path.is_dir() {
            true => {
                kinds.0 += 1;
                assert_eq!(mode & 0o077, 0, "{} is open to others: {mode:o}", path.display());
            }
            false => {
                kinds.1 += 1;
                assert_eq!(mode & 0o077, 0, "{} is open to others: {mode:o}", path.display());
            }
        }
    };
    assert_eq!(std::fs::metadata(home.data()).unwrap().permissions().mode() & 0o777, 0o700);
    files(&home.data(), &mut check);
    assert!(kinds.0 >= 2 && kinds.1 >= 3, "{kinds:?}");
    let export = home.project().join("out.jsonl");
    let id = home.newest().await;
    home.run(&["sessions", "export", &id, "--output", export.to_str().unwrap()]).await;
    assert_eq!(std::fs::metadata(export).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_of_the_same_user_cannot_read_our_environment() {
    // As root everything can be read: only an ordinary user is held off.
    let server = ScriptedServer::start(vec![Served::from(Say::text("x")).gated()]).await;
    let home = Home::with(&server);
    let child = home.start(&["run", "go"]);
    server.wait_for(1).await;
    let owner = std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata(format!("/proc/{}/environ", child.id())).unwrap(),
    );
    assert_eq!(owner, 0, "the kernel gives the files of a private process to root");
    server.open_gate(100);
    assert!(child.wait_with_output().unwrap().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_cannot_speak_to_the_terminal_or_hang_us() {
    let home = Home::empty();
    home.put(
        ".dunnock/config.toml",
        "[providers.\"\\u001b]0;pwned\\u0007\"]\nbase_url = \"http://x\"\n",
    );
    let ran = home.run(&["config"]).await;
    assert!(!ran.err.contains('\u{1b}') && !ran.out.contains('\u{1b}'), "{:?}", ran.err);
    assert!(ran.err.contains("\\u{1b}]0;pwned"), "{:?}", ran.err);
    let path = home.project().join(".dunnock/config.toml");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    let ran = home.run(&["config"]).await;
    assert!(ran.code == 1 && ran.err.contains("is not a plain file"), "{}", ran.err);
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(home.run(&["config"]).await.code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_is_in_no_file_any_more() {
    let script = vec![
        Say::calls(&[(
            "shell",
            r#"{"command":"echo wordzebrafinch; head -c 1500000 /dev/zero | tr '\\0' z; echo wordzebrafinch"}"#,
        )])
        .into(),
    ];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "--approve", "all", "keep this"]).await.code, 0);
    assert_eq!(home.run(&["run", "--approve", "all", "forget the wordgoldcrest"]).await.code, 0);
    assert_eq!(
        home.run(&["sessions", "search", "wordgoldcrest"]).await.code,
        0,
        "it is in the index, too"
    );
    let id = home.newest().await;
    let found = |word: &str| {
        let mut places = Vec::new();
        files(&home.data(), &mut |path| {
            let bytes = if path.is_file() { std::fs::read(path).unwrap() } else { Vec::new() };
            if bytes.windows(word.len()).any(|w| w == word.as_bytes())
                || path.to_string_lossy().contains(word)
            {
                places.push(path.to_path_buf());
            }
        });
        places
    };
    assert!(!found("wordgoldcrest").is_empty() && !found(&id).is_empty());
    assert_eq!(home.run(&["sessions", "delete", &id]).await.code, 0);
    assert_eq!(found("wordgoldcrest"), Vec::<std::path::PathBuf>::new());
    assert_eq!(found(&id), Vec::<std::path::PathBuf>::new());
    assert!(!found("wordzebrafinch").is_empty(), "the other session is still there");
    assert_eq!(home.run(&["sessions", "verify"]).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_imported_asks_before_it_changes_anything() {
    let call =
        |n: u32| Say::calls(&[("shell", &format!("{{\"command\":\"echo {n} >> log\"}}"))]).into();
    let server = ScriptedServer::start((0..4).map(call).collect()).await;
    let home = Home::with(&server);
    let args =
        ["run", "--approve", "all", "--max-steps", "2", "--verify", "echo checked >> log", "go"];
    assert_eq!(home.run(&args).await.code, 4);
    let before = home.read("log");
    let file = home.dir.path().join("x.jsonl");
    let id = home.newest().await;
    home.run(&["sessions", "export", &id, "--output", file.to_str().unwrap()]).await;
    let other = Home::with(&server);
    let taken = other.run(&["sessions", "import", file.to_str().unwrap()]).await;
    assert_eq!(taken.code, 0, "{}", taken.err);
    let ran = other.run(&["resume", &id]).await;
    assert_eq!(ran.code, 3, "it asks: {}", ran.err);
    assert_eq!(home.read("log"), before, "and nothing ran");
    assert!(other.run(&["sessions", "verify"]).await.code == 0);
}
