//! Bounds and their exact words (S4), instructions of folders (A4), names of trees.

use crate::{put, run};
use dunnock_tools::instructions;

/// Holds S4: the same words in the session's own tools.
#[tokio::test]
async fn what_is_cut_says_so_in_its_first_line() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String = (1..=2_001).map(|n| format!("x{n}\n")).collect();
    put(dir.path(), &[("long", &lines)]);
    let viewed = run(dir.path(), "view_file", r#"{"path":"long"}"#).await.shown;
    let mut first = viewed.lines();
    assert_eq!(first.next(), Some("[TRUNCATED: showing first 2000 lines, 1 more available]"));
    assert_eq!(first.next(), Some("Read long (lines 1-2000 of 2001 total)"));
    let whole = run(dir.path(), "view_file", r#"{"path":"long","first":2}"#).await.shown;
    assert!(
        whole.starts_with("Read long (lines 2-2001 of 2001 total)\n\n   2  x2\n"),
        "{}",
        &whole[..100]
    );
    let searched = run(dir.path(), "search_text", r#"{"pattern":"x"}"#).await.shown;
    assert!(
        searched
            .starts_with("[TRUNCATED: reached limit 200 before completing search]\nlong:1: x1\n")
    );
    let exact: String = (1..=200).map(|_| "y\n").collect();
    put(dir.path(), &[("exact", &exact)]);
    let searched = run(dir.path(), "search_text", r#"{"pattern":"y"}"#).await.shown;
    assert!(
        searched.starts_with("exact:1: y\n"),
        "reaching the limit at the very end is not a cut"
    );
    for n in 0..1_001 {
        std::fs::write(dir.path().join(format!("f{n}")), "").unwrap();
    }
    let listed = run(dir.path(), "list_files", "{}").await.shown;
    assert_eq!(
        (listed.lines().next(), listed.lines().count()),
        (Some("[TRUNCATED: first 1000 items]"), 1_001)
    );
}

/// Holds A4: every one from the root down, CLAUDE.md where there is none.
#[test]
fn instructions_go_from_the_top_to_the_folder_and_stay_inside() {
    let outer = tempfile::tempdir().unwrap();
    put(outer.path(), &[("AGENTS.md", "not of this repository"), ("secret", "s3cret")]);
    let top = outer.path().join("repo");
    put(
        &top,
        &[
            (".git/HEAD", ""),
            ("AGENTS.md", "top\n"),
            ("CLAUDE.md", "not this"),
            ("a/CLAUDE.md", "a"),
            ("a/b/c/AGENTS.md", "c"),
        ],
    );
    std::os::unix::fs::symlink(outer.path().join("secret"), top.join("a/b/AGENTS.md")).unwrap();
    let found = instructions::find(&top.join("a/b/c"));
    let expect = [("AGENTS.md", "top"), ("a/CLAUDE.md", "a"), ("a/b/c/AGENTS.md", "c")];
    assert_eq!(found, expect.map(|(s, t)| (s.to_owned(), t.to_owned())));
}

#[test]
fn long_instructions_leave_room_for_the_task() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[
            (".git/HEAD", ""),
            ("AGENTS.md", &"a".repeat(40_000)),
            ("x/AGENTS.md", &"b".repeat(10_000)),
        ],
    );
    let found = instructions::find(&dir.path().join("x"));
    assert_eq!(found[1].1.len(), 10_000, "the more specific is whole");
    assert!(found[0].1.ends_with(" bytes left out]") && found[0].1.len() < 23_000);
}

#[tokio::test]
async fn many_places_are_counted_in_no_time() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("big.json", &"1,\n".repeat(1_000_000))]);
    let began = std::time::Instant::now();
    let said =
        run(dir.path(), "replace_text", r#"{"path":"big.json","old":",","new":";"}"#).await.shown;
    assert!(said.starts_with("the text occurs 1000000 times in big.json\n1  1,\n2  1,"), "{said}");
    assert!(said.contains("20  1,\n[999980 more places]\n"), "{said}");
    let said =
        run(dir.path(), "replace_text", r#"{"path":"big.json","old":",","new":";","all":true}"#)
            .await
            .shown;
    assert!(said.starts_with("replaced 1000000 places in big.json"), "{said}");
    assert_eq!(
        std::fs::read_to_string(dir.path().join("big.json")).unwrap(),
        "1;\n".repeat(1_000_000)
    );
    dunnock_testkit::timing::figure(
        "a million places",
        began.elapsed(),
        std::time::Duration::from_secs(10),
    );
}
