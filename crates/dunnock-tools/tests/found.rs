//! What a hostile reading found, each with the input that went wrong.

use crate::{job, put, run, toolbox};
use dunnock_core::patch::Patch;
use dunnock_ports::{CancellationToken, Tools as _};
use dunnock_proto::{Finished, Outcome};
use dunnock_tools::edit::{MatchLevel, Miss, Text, replace};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// What a patch makes of one file; or why not.
async fn patched(before: &str, patch: &str) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("a.py", before)]);
    let finished = run(dir.path(), "apply_patch", &json!({ "patch": patch }).to_string()).await;
    let after = std::fs::read_to_string(dir.path().join("a.py")).unwrap();
    match finished.outcome {
        Outcome::Done => Ok(after),
        _ => {
            assert_eq!(after, before, "refused, and yet changed");
            Err(finished.shown.to_string())
        }
    }
}

#[tokio::test]
async fn an_anchor_that_is_not_there_refuses_the_hunk() {
    let file = "def f():\n    return 1\n\ndef get_all():\n    pass\n";
    let hunk = |anchor: &str, body: &str| {
        format!("*** Begin Patch\n*** Update File: a.py\n@@ {anchor}\n{body}\n*** End Patch")
    };
    let missing =
        patched(file, &hunk("def g():", "-    return 1\n+    return 2")).await.unwrap_err();
    assert!(missing.contains("there is no line \"def g():\""), "{missing}");
    let cut = patched(file, &hunk("def get", "+    x = 1")).await.unwrap_err();
    assert!(cut.contains("there is no line"), "{cut}");
    let found = patched(file, &hunk("def get_all", "-    pass\n+    x = 1")).await.unwrap();
    assert!(found.ends_with("def get_all():\n    x = 1\n"));
}

#[tokio::test]
async fn a_line_without_its_end_is_not_glued_to_the_next() {
    let diff =
        "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n last\n\\ No newline at end of file\n+more\n";
    assert_eq!(patched("last", diff).await.unwrap(), "last\nmore\n");
}

#[tokio::test]
async fn nothing_of_a_patch_is_passed_over() {
    // Empty lines of a new file whose mark got lost.
    let dir = tempfile::tempdir().unwrap();
    let patch = "*** Begin Patch\n*** Add File: new.md\n+# T\n\n+text\n\n*** End Patch";
    run(dir.path(), "apply_patch", &json!({ "patch": patch }).to_string()).await;
    assert_eq!(std::fs::read_to_string(dir.path().join("new.md")).unwrap(), "# T\n\ntext\n");
    let one = "*** Begin Patch\n*** Update File: a.py\n-one\n+1\n*** End Patch\n";
    let diff = "--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@\n-two\n+2\n";
    for (what, text) in [
        ("two patches", format!("{one}{one}")),
        ("a diff behind", format!("{one}{diff}")),
        ("a hunk before its file", format!("@@ -1 +1 @@\n-one\n+1\n{diff}")),
        ("lines behind a hunk", format!("{diff}\n-one\n+1\n")),
    ] {
        let refused = patched("one\ntwo\n", &text).await;
        assert!(refused.is_err(), "{what}: {refused:?}");
    }
    assert_eq!(patched("one\ntwo\n", &format!("```\n{one}```\n")).await.unwrap(), "1\ntwo\n");
}

/// Holds T8: moves (unified diff).
#[tokio::test]
async fn a_chain_of_moves_is_told() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("a", "1\n"), ("b", "2\n")]);
    let mut patch = String::new();
    for (from, to) in [("a", "t"), ("b", "a"), ("t", "b")] {
        patch.push_str(&format!(
            "diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to \
             {to}\n"
        ));
    }
    let finished = run(dir.path(), "apply_patch", &json!({ "patch": patch }).to_string()).await;
    assert_eq!(finished.shown.as_ref(), "moved b to a\nmoved t to b");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!((read("a"), read("b")), ("2\n".into(), "1\n".into()));
    assert!(!dir.path().join("t").exists());
}

#[test]
fn indentation_is_never_guessed_from_one_depth_of_two() {
    let text = Text::decode(b"class A:\n\tdef f(self):\n\t\treturn 1\n").unwrap();
    // Two steps deep in the file, one in what was given: the way out of it is known from both.
    let edited =
        replace(&text, "    return 1\n", "    return 1\n\ndef g(self):\n    return 2\n", false)
            .unwrap();
    assert_eq!(
        edited.text.text(),
        "class A:\n\tdef f(self):\n\t\treturn 1\n\n\tdef g(self):\n\t\treturn 2\n"
    );
    assert_eq!(edited.level, MatchLevel::Indentation);
    // Eight blanks may be one step or two.
    let unclear = replace(&text, "return 1\n", "if x:\n        return 1\nreturn 2\n", false);
    assert_eq!(
        unclear.unwrap().text.text(),
        "class A:\n\tdef f(self):\n\t\tif x:\n        return 1\nreturn 2\n",
        "exact, as given"
    );
    let unclear =
        replace(&text, "  return 1\n", "  if x:\n          return 1\n  return 2\n", false);
    assert_eq!(unclear, Err(Miss::Ragged(2)));
}

#[tokio::test]
async fn groups_are_numbers_and_dollars_are_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("a.txt", "foo_old\r\nx\r\ny\r\n")]);
    let call = async |old: &str, new: &str, all: bool| {
        let args =
            json!({"path": "a.txt", "old": old, "new": new, "regex": true, "all": all}).to_string();
        let finished = run(dir.path(), "replace_text", &args).await;
        (
            finished.outcome == Outcome::Done,
            std::fs::read_to_string(dir.path().join("a.txt")).unwrap(),
        )
    };
    assert_eq!(call("(foo)_old", "$1_new", false).await, (true, "foo_new\r\nx\r\ny\r\n".into()));
    assert!(!call("foo_new", "costs $5", false).await.0);
    assert_eq!(
        call("x\ny", "costs $$5\nz", false).await,
        (true, "foo_new\r\ncosts $5\r\nz\r\n".into())
    );
    assert_eq!(
        call("^", "// ", true).await,
        (true, "// foo_new\r\n// costs $5\r\n// z\r\n".into())
    );
    let found = run(dir.path(), "search_text", r#"{"pattern":"z$","regex":true}"#).await;
    assert_eq!(found.shown.as_ref(), "a.txt:3: // z");
}

#[tokio::test]
async fn a_folder_that_is_a_link_is_searched_under_its_real_name() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("real/a.txt", "needle\n")]);
    std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
    let found = run(dir.path(), "search_text", r#"{"pattern":"needle","path":"link"}"#).await;
    assert_eq!(found.shown.as_ref(), "real/a.txt:1: needle");
}

#[tokio::test]
async fn the_limit_of_a_search_is_told_in_its_words_and_shows_nothing_of_what_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..300).map(|n| format!("before {n}\nhit {n}\n")).collect();
    put(dir.path(), &[("a.txt", &text)]);
    let found = run(dir.path(), "search_text", r#"{"pattern":"hit","context":1}"#).await.shown;
    assert!(
        found.starts_with("[TRUNCATED: reached limit 200 before completing search]\n"),
        "{found}"
    );
    assert!(found.contains("hit 199") && !found.contains("before 201"), "{found}");
    let text: String = (0..200).map(|n| format!("hit {n}\n")).collect();
    put(dir.path(), &[("a.txt", &text)]);
    let found = run(dir.path(), "search_text", r#"{"pattern":"hit"}"#).await.shown;
    assert!(
        found.starts_with("a.txt:1: hit 0") && found.ends_with("a.txt:200: hit 199"),
        "the limit at the very end"
    );
}

#[test]
fn names_of_git_are_believed_before_letters() {
    let diff = "diff --git b/foo b/foo\nnew file mode 100644\n--- /dev/null\n+++ b/foo\n@@ -0,0 \
                +1 @@\n+x\n";
    let paths: Vec<String> = Patch::parse(diff).unwrap().paths().map(str::to_owned).collect();
    assert_eq!(paths, ["b/foo"]);
}

// Git

fn git(dir: &Path, line: &str) {
    let script = format!("set -e; export HOME={}; {line}", dir.parent().unwrap().display());
    let output = Command::new("bash").args(["-c", &script]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

async fn at_d(dir: &Path, tool: &str, args: serde_json::Value) -> Finished {
    toolbox()
        .run(job(dir, tool, &args.to_string()), Arc::new(|_| {}), CancellationToken::default())
        .await
        .0
}

#[tokio::test(flavor = "multi_thread")]
async fn git_runs_nothing_that_a_repository_chooses() {
    let evil = [
        ("fsmonitor", "git config core.fsmonitor 'touch ../ran; false'"),
        (
            "filter",
            "git config filter.e.clean 'touch ../ran; cat'; echo '* filter=e' > .gitattributes",
        ),
        (
            "filter with =",
            "git config 'filter.a=b.clean' 'touch ../ran; cat'; echo '* filter=a=b' > \
             .gitattributes",
        ),
        (
            "conditional include",
            "printf '[filter \"e\"]\\nclean = touch ../ran; cat\\n' > .git/evil; git config \
             includeIf.gitdir:~/.path evil; echo '* filter=e' > .gitattributes",
        ),
        ("external diff", "git config diff.external 'touch ../ran; true'"),
        (
            "diff driver",
            "git config diff.e.command 'touch ../ran; true'; echo '* diff=e' > .gitattributes",
        ),
        (
            "textconv",
            "git config diff.e.textconv 'touch ../ran; cat'; echo '* diff=e' > .gitattributes",
        ),
        (
            "lazy fetch",
            "git config extensions.partialClone o; git config core.repositoryformatversion 1; git \
             config remote.o.url 'ext::sh -c \"touch% ../ran\"'; git config remote.o.promisor \
             true; git config protocol.ext.allow always; rm -f .git/objects/$(git rev-parse \
             HEAD:a.txt | sed 's,^..,&/,')",
        ),
    ];
    let mut bare = 0;
    for (what, trick) in evil {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("w");
        std::fs::create_dir(&dir).unwrap();
        git(
            &dir,
            "git init -q; git config user.email a@b; git config user.name n; echo one > a.txt; \
             git add .; git commit -qm one",
        );
        git(&dir, trick);
        git(&dir, "echo two > a.txt");
        for (tool, args) in [
            ("git_status", json!({})),
            ("git_diff", json!({})),
            ("git_diff", json!({"commit": "HEAD"})),
        ] {
            let finished = at_d(&dir, tool, args).await;
            assert!(!home.path().join("ran").exists(), "{what}: {tool} ran it: {}", finished.shown);
        }
        // The trick is one: git itself falls for it.
        let _ =
            Command::new("git").args(["diff"]).current_dir(&dir).env("HOME", home.path()).output();
        let _ = Command::new("git")
            .args(["status"])
            .current_dir(&dir)
            .env("HOME", home.path())
            .output();
        bare += usize::from(home.path().join("ran").exists());
    }
    println!("{} tricks, git itself falls for {bare}", evil.len());
    // Which of them depends on its version.
    assert!(bare >= 5, "{bare}");
}

#[tokio::test(flavor = "multi_thread")]
async fn git_shows_what_changed_here_and_no_secrets() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("w");
    std::fs::create_dir_all(dir.join("sub")).unwrap();
    git(
        &dir,
        "git init -q -b main; git config user.email a@b; git config user.name n; echo one > \
         a.txt; echo KEY=s3cret > .env; echo x > sub/b.txt; git add -f .; git commit -qm one",
    );
    git(&dir, "echo two > a.txt; echo KEY=s4cret > .env; echo y > sub/b.txt; echo new > c.txt");
    let status = at_d(&dir, "git_status", json!({})).await.shown;
    assert!(status.starts_with("## main\n M .env\n M a.txt\n M sub/b.txt\n?? c.txt"), "{status}");
    let diff = at_d(&dir, "git_diff", json!({})).await.shown;
    assert!(
        diff.contains("+two") && diff.contains("[not shown: .env]") && !diff.contains("cret"),
        "{diff}"
    );
    for args in
        [json!({"commit": "HEAD:.env"}), json!({"commit": "--output=x"}), json!({"path": "../x"})]
    {
        let refused = at_d(&dir, "git_diff", args.clone()).await;
        assert!(
            refused.outcome == Outcome::Failed && !refused.shown.contains("cret"),
            "{args}: {}",
            refused.shown
        );
    }
    let part = at_d(&dir, "git_diff", json!({"path": "a.txt", "commit": "HEAD"})).await.shown;
    assert!(part.contains("-one\n+two") && !part.contains("sub/b.txt"), "{part}");
    // From a folder inside, only what is in it.
    let inside = at_d(&dir.join("sub"), "git_diff", json!({})).await.shown;
    assert!(inside.contains("+y") && !inside.contains("two"), "{inside}");
    git(&dir, "git add a.txt; git config core.worktree /etc");
    let elsewhere = at_d(&dir, "git_diff", json!({})).await;
    assert!(elsewhere.shown.contains("is elsewhere (/etc)"), "{}", elsewhere.shown);
    let none = tempfile::tempdir().unwrap();
    let no = at_d(none.path(), "git_status", json!({})).await;
    assert!(
        no.outcome == Outcome::Failed && no.shown.contains("not a git repository"),
        "{}",
        no.shown
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_git_says_beside_the_names_hides_no_secret() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("w");
    std::fs::create_dir(&dir).unwrap();
    git(
        &dir,
        "git init -q; git config user.email a@b; git config user.name n; printf \
         'KEY=s3cret\\r\\n' > .env; echo a > a.txt; git add -f .; git commit -qm one",
    );
    git(
        &dir,
        "printf '* text=auto\\n* foo!bar\\n' > .gitattributes; printf 'KEY=s4cret\\r\\n' > .env; \
         echo b > a.txt",
    );
    let diff = at_d(&dir, "git_diff", json!({})).await.shown;
    assert!(
        diff.contains("+b") && diff.contains("[not shown: .env]") && !diff.contains("cret"),
        "{diff}"
    );
}

#[test]
fn a_dash_of_a_comment_does_not_become_a_minus() {
    let code = |file: &str, old: &str, new: &str| {
        replace(&Text::decode(file.as_bytes()).unwrap(), old, new, false)
            .map(|edited| edited.text.text().to_owned())
    };
    assert_eq!(code("// a \u{2014} b\n", "// a - b\n", "x = a - b\n").unwrap(), "x = a - b\n");
    assert_eq!(code("# it\u{2019}s\n", "# it's\n", "x = 'it'\n").unwrap(), "x = 'it'\n");
    let prose = code(
        "It\u{2019}s late \u{2014} go home now.\n",
        "It's late - go home now.",
        "It's late - go home soon.",
    );
    assert_eq!(prose.unwrap(), "It\u{2019}s late \u{2014} go home soon.\n");
}

#[test]
fn a_line_that_goes_on_is_no_step_of_indentation() {
    let text = Text::decode(b"def f():\n\tx = 1\n\ty = 2\n").unwrap();
    let ragged =
        replace(&text, "    x = 1\n", "    if x:\n        y = f(1,\n          2)\n", false);
    assert_eq!(ragged, Err(Miss::Ragged(1)));
}

#[tokio::test]
async fn a_block_goes_on_behind_a_label_and_what_is_outside_of_it_is_said() {
    let file = "class A {\npublic:\n  void f();\n};\nclass B {\n  int g();\n};\n";
    let hunk = |line: &str| {
        format!(
            "*** Begin Patch\n*** Update File: a.py\n@@ class A {{\n-  {line}\n+  int h();\n*** \
             End Patch"
        )
    };
    assert!(patched(file, &hunk("void f();")).await.unwrap().contains("public:\n  int h();"));
    let outside = patched(file, &hunk("int g();")).await.unwrap_err();
    assert!(
        outside
            .contains("does not occur in the block under \"class A {\", only elsewhere (line 6)"),
        "{outside}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_keeps_its_owner_and_its_mode() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.sh");
    put(dir.path(), &[("run.sh", "one\n")]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    // Only root can give a file away; for others there is nothing to lose.
    let _ = std::os::unix::fs::chown(&path, Some(4321), Some(4321));
    let owner =
        |path: &Path| path.metadata().map(|m| (m.uid(), m.gid(), m.mode() & 0o7777)).unwrap();
    let before = owner(&path);
    run(dir.path(), "replace_text", r#"{"path":"run.sh","old":"one","new":"two"}"#).await;
    assert_eq!(owner(&path), before);
    let patch =
        "*** Begin Patch\n*** Delete File: run.sh\n*** Add File: run.sh\n+three\n*** End Patch";
    run(dir.path(), "apply_patch", &json!({ "patch": patch }).to_string()).await;
    assert_eq!(
        (owner(&path), std::fs::read_to_string(&path).unwrap().as_str()),
        (before, "three\n")
    );
}

/// What a program that was killed left half done is taken back, unless somebody has worked on it
/// since.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_somebody_wrote_into_a_half_made_edit_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (root, journals) = (dir.path().join("w"), dir.path().join("journals"));
    put(&root, &[("a", "old\n"), ("b", "old\n")]);
    std::fs::create_dir(&journals).unwrap();
    // As a crash leaves it: both changed, neither confirmed.
    let mut entries = Vec::new();
    for name in ["a", "b"] {
        let part = format!(".dunnock-{name}.part");
        std::fs::write(root.join(&part), "new\n").unwrap();
        let number = std::os::unix::fs::MetadataExt::ino(&root.join(&part).metadata().unwrap());
        std::fs::rename(root.join(name), root.join("aside")).unwrap();
        std::fs::rename(root.join(&part), root.join(name)).unwrap();
        std::fs::rename(root.join("aside"), root.join(&part)).unwrap();
        let hash = dunnock_proto::Hash::of(b"new\n");
        entries.push(
            json!({"path": name.as_bytes(), "part": part, "new": {"number": number, "hash": hash}, "op": "update"}),
        );
    }
    let number = std::os::unix::fs::MetadataExt::ino(&root.metadata().unwrap());
    let page = |number: u64| {
        let place = root.to_str().unwrap().as_bytes();
        json!({"root": place, "number": number, "entries": entries, "folders": []}).to_string()
    };
    // Another disk is there now: nothing is done, and it is not forgotten.
    std::fs::write(journals.join("x.edit"), page(1)).unwrap();
    assert_eq!((dunnock_tools::root::mend(&journals), journals.join("x.edit").exists()), (0, true));
    std::fs::write(journals.join("x.edit"), page(number)).unwrap();
    // The person saves into the file that is there.
    std::fs::write(root.join("b"), "theirs\n").unwrap();
    assert_eq!(dunnock_tools::root::mend(&journals), 1);
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    assert_eq!((read("a"), read("b")), ("old\n".into(), "theirs\n".into()));
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 2);
    assert!(!journals.join("x.edit").exists());
}
