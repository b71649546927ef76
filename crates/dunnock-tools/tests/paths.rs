//! Nothing outside the workspace is read or written, whatever the path says (S6, W10).

use crate::{put, run};
use dunnock_proto::Outcome;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// Holds W10: every path tool resolves against the root.
/// Holds S6: the same below it.
#[tokio::test]
async fn no_path_leads_out() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    put(outer.path(), &[("secret", "s3cret\n"), ("rootish/secret", "s3cret\n")]);
    put(&root, &[("in.txt", "inside\n"), ("sub/x", "x\n")]);
    symlink("../secret", root.join("link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    symlink("in.txt", root.join("fine")).unwrap();
    let secret = outer.path().join("secret");
    let sneaky = format!("{}/../secret", root.display());
    let ways = [
        "../secret",
        "sub/../../secret",
        "/etc/passwd",
        "link",
        "up/secret",
        "etc/passwd",
        "../rootish/secret",
        secret.to_str().unwrap(),
        &sneaky,
        "/proc/self/root/etc/passwd",
        "./../secret",
    ];
    for way in ways {
        for tool in ["view_file", "search_text", "list_files"] {
            let args = match tool {
                "search_text" => serde_json::json!({"path": way, "pattern": "s3cret"}),
                _ => serde_json::json!({"path": way}),
            };
            let finished = run(&root, tool, &args.to_string()).await;
            assert!(
                !finished.shown.contains("s3cret") && !finished.shown.contains("root:"),
                "{tool} {way}: {}",
                finished.shown
            );
            assert_eq!(finished.outcome, Outcome::Failed, "{tool} {way}: {}", finished.shown);
        }
        for (tool, args) in [
            ("write_file", serde_json::json!({"path": way, "content": "bad", "overwrite": true})),
            ("insert_text", serde_json::json!({"path": way, "line": 0, "text": "bad"})),
            ("replace_text", serde_json::json!({"path": way, "old": "s3cret", "new": "bad"})),
        ] {
            let finished = run(&root, tool, &args.to_string()).await;
            assert_eq!(finished.outcome, Outcome::Failed, "{tool} {way}: {}", finished.shown);
        }
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "s3cret\n");
    let fine = run(&root, "view_file", r#"{"path":"fine"}"#).await;
    assert!(fine.shown.contains("inside"), "a link that stays inside is read: {}", fine.shown);
    let absolute =
        serde_json::json!({"path": root.canonicalize().unwrap().join("in.txt")}).to_string();
    assert!(run(&root, "view_file", &absolute).await.shown.contains("inside"));
}

#[tokio::test]
async fn nothing_is_written_through_a_link_or_into_our_folders() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(root, &[("real/a.txt", "old\n"), (".git/config", "c\n"), (".dunnock/x", "x\n")]);
    symlink("real", root.join("alias")).unwrap();
    symlink("real/a.txt", root.join("file")).unwrap();
    for path in [
        "alias/a.txt",
        "alias/new.txt",
        "file",
        ".git/config",
        ".GIT/config",
        ".git/hooks/pre-commit",
        "real/.git/hooks/x",
        ".dunnock/x",
        ".",
    ] {
        let args =
            serde_json::json!({"path": path, "content": "bad", "overwrite": true}).to_string();
        let finished = run(root, "write_file", &args).await;
        assert_eq!(finished.outcome, Outcome::Failed, "{path}: {}", finished.shown);
    }
    assert_eq!(std::fs::read_to_string(root.join("real/a.txt")).unwrap(), "old\n");
    assert!(!root.join("real/new.txt").exists());
    let left: Vec<_> = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|n| n.to_string_lossy().ends_with(".part")), "{left:?}");
}

#[tokio::test]
async fn an_edit_keeps_mode_bytes_and_other_names_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.sh");
    std::fs::write(&path, b"caf\xe9 one\r\n\xff two\r\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    std::fs::hard_link(&path, dir.path().join("other")).unwrap();
    let finished =
        run(dir.path(), "replace_text", r#"{"path":"run.sh","old":"two","new":"2"}"#).await;
    assert_eq!(finished.outcome, Outcome::Done, "{}", finished.shown);
    assert_eq!(std::fs::read(&path).unwrap(), b"caf\xe9 one\r\n\xff 2\r\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
    assert_eq!(
        std::fs::read(dir.path().join("other")).unwrap(),
        b"caf\xe9 one\r\n\xff two\r\n",
        "a new file, not the old one changed"
    );
}

#[tokio::test]
async fn a_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let finished = run(dir.path(), "view_file", r#"{"path":"pipe"}"#).await;
    assert_eq!(finished.shown.as_ref(), "pipe is not a regular file");
}
