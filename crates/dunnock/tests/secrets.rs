//! A key is sent to its provider and is nowhere else: no argument list, log, frame, error, settings page or child.

use crate::{Home, KEY};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Rules, ScriptedServer};
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
    let server = ScriptedServer::with(script, Rules { key: Some(KEY.into()), ..Rules::default() }).await;
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
    for args in [&["sessions", "show", &id][..], &["sessions", "show", &id, "--json"], &["sessions", "export", &id]] {
        printed.push_str(&home.run(args).await.out);
    }
    assert!(printed.contains("PATH="), "the child's environment was printed");
    assert!(!holds(printed.as_bytes()), "the key was printed");
    // A wrong key, which the server repeats in its refusal.
    let strict = ScriptedServer::with(vec![], Rules { key: Some("another".into()), ..Rules::default() }).await;
    let refused = Home::with(&strict);
    let ran = refused.run(&["run", "--json", "look"]).await;
    assert!(
        ran.code == 1
            && ran.out.contains("refused the key")
            && !holds(ran.out.as_bytes())
            && !holds(ran.err.as_bytes())
    );
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_private() {
    // More than a megabyte of output, so that there is a blob in a file of its own.
    let script = vec![Say::calls(&[("shell", r#"{"command":"head -c 2000000 /dev/zero | tr '\\0' x"}"#)]).into()];
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
    let server = ScriptedServer::start(vec![dunnock_testkit::server::Served::from(Say::text("x")).gated()]).await;
    let home = Home::with(&server);
    let child = home.start(&["run", "go"]);
    server.wait_for(1).await;
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{}/environ", child.id())).unwrap());
    assert_eq!(owner, 0, "the kernel gives the files of a private process to root");
    server.open_gate(100);
    assert!(child.wait_with_output().unwrap().status.success());
}
