//! Which paths an edit names: what policy judges must be what a tool will touch.

use dunnock_core::{Call, State, policy};
use dunnock_proto::*;
use std::sync::Arc;

fn call(tool: &str, class: Class, args: &str) -> Call {
    let part = CallPart {
        id: "c".into(),
        tool: tool.into(),
        args: args.into(),
        sent: None,
        recovered: false,
        fault: None,
    };
    let id = CallId { step: Step(1), index: 0 };
    Call::new(id, Arc::new(part), class, Recovery::Unknown, Some(Role::Work))
}

/// A text as a string of JSON.
fn json(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t")
    )
}

/// Holds W10: policy judges the path that the tool touches.
#[test]
fn a_path_is_judged_as_tools_read_it() {
    let s = State::default();
    for path in
        [".env", " .env", ".env ", ".env\t", ".env/", ".env/.", "./.env", "sub//.env", "/w/.env"]
    {
        for (tool, class) in
            [("view_file", Class::Read), ("write_file", Class::Edit), ("delete_file", Class::Edit)]
        {
            let found =
                policy::findings(&s, &call(tool, class, &format!("{{\"path\":{}}}", json(path))));
            assert!(!found.reasons.is_empty(), "{tool} {path:?} is not asked about");
        }
    }
    for path in [
        " .vscode/tasks.json",
        ".github//workflows/x.yml",
        "AGENTS.md\t",
        "./.npmrc",
        "a/./.husky/x",
    ] {
        let found = policy::findings(
            &s,
            &call("write_file", Class::Edit, &format!("{{\"path\":{}}}", json(path))),
        );
        assert!(!found.reasons.is_empty(), "{path:?} is not asked about");
    }
    for path in [" .git/config", ".git/./hooks/x", "sub/.GIT/config "] {
        let found = policy::findings(
            &s,
            &call("write_file", Class::Edit, &format!("{{\"path\":{}}}", json(path))),
        );
        assert!(found.never.is_some(), "{path:?} is not refused");
    }
    assert_eq!(
        policy::findings(&s, &call("write_file", Class::Edit, r#"{"path":"src/a.rs"}"#)).reasons,
        Vec::new()
    );
}

/// Holds T8: every path of a patch is judged.
#[test]
fn a_move_and_a_patch_are_judged_by_every_path_they_name() {
    let s = State::default();
    let asks = |tool: &str, args: String| {
        let found = policy::findings(&s, &call(tool, Class::Edit, &args));
        (found.never.is_some(), !found.reasons.is_empty())
    };
    assert_eq!(asks("move_file", r#"{"path":".env","to":"a.txt"}"#.into()), (false, true));
    assert_eq!(asks("move_file", r#"{"path":"a.txt","to":".envrc"}"#.into()), (false, true));
    assert_eq!(asks("move_file", r#"{"path":"a.txt","to":".git/hooks/x"}"#.into()), (true, false));
    let patches = [
        (
            "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: .env\n*** End Patch",
            (false, true),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** Move to: .vscode/x\n@@\n-a\n+b\n*** End \
             Patch",
            (false, true),
        ),
        (
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n--- a/.git/config\n+++ b/.git/config\n@@ -1 \
             +1 @@\n-a\n+b\n",
            (true, false),
        ),
        ("diff --git a/a b/.env\nrename from a\nrename to .env\n", (false, true)),
        ("--- \"a/.env \"\n+++ \"b/.env \"\n@@ -1 +1 @@\n-a\n+b\n", (false, true)),
        ("--- a/src/a\n+++ b/src/a\n@@ -1 +1 @@\n-a\n+b\n", (false, false)),
    ];
    for (patch, wanted) in patches {
        assert_eq!(
            asks("apply_patch", format!("{{\"patch\":{}}}", json(patch))),
            wanted,
            "{patch}"
        );
    }
}

#[test]
fn what_the_model_saw_is_part_of_the_session() {
    let mut s = State::default();
    let seen_files = |path: &str, text: &[u8]| SeenFile { path: path.into(), hash: Hash::of(text) };
    let finished = |seen_files: Vec<SeenFile>| {
        let id = CallId { step: Step(1), index: 0 };
        Event::Finished(Finished { seen_files, ..Finished::plain(id, Outcome::Done, "") })
    };
    for event in [
        finished(vec![seen_files("a", b"1"), seen_files("b", b"1")]),
        finished(vec![seen_files("a", b"2")]),
    ] {
        dunnock_core::apply(&mut s, &event);
    }
    assert_eq!(s.seen.get("a"), Some(&Hash::of(b"2")));
    assert_eq!(s.seen.get("b"), Some(&Hash::of(b"1")));
}

/// Files outside the workspace: who opened them, and what is asked.
#[test]
fn an_edit_outside_the_workspace_is_asked_about() {
    use dunnock_core::policy::{Policy, Verdict};
    let machine = |mode, sandbox, file_access| State {
        workspace: Some("/w/x".into()),
        config: Arc::new(Config { mode, sandbox, file_access, ..Config::default() }),
        ..State::default()
    };
    let edit =
        |path: &str| call("write_file", Class::Edit, &format!("{{\"path\":{}}}", json(path)));
    let view = |path: &str| call("view_file", Class::Read, &format!("{{\"path\":{}}}", json(path)));
    let patch = |path: &str| {
        let text = format!(
            "*** Begin Patch\n*** Add File: in.txt\n+a\n*** Add File: {path}\n+a\n*** End Patch"
        );
        call("apply_patch", Class::Edit, &format!("{{\"patch\":{}}}", json(&text)))
    };
    let moved = call("move_file", Class::Edit, r#"{"path":"a","to":"/etc/a"}"#);
    let verdict = |s: &State, call: &Call| match Policy::default().judge(s, call) {
        Verdict::Allow { access, .. } => ("allow", access.outside),
        Verdict::Ask(asked) => {
            assert!(asked.rule.is_none() || !asked.access.outside, "no rule covers it");
            ("ask", asked.access.outside)
        }
        Verdict::Deny(_) => ("deny", false),
    };
    let (off, all) = (Sandbox::Off, FileAccess::Machine);
    for (mode, edits) in [
        (Mode::Read, ("deny", false)),
        (Mode::Ask, ("ask", true)),
        (Mode::Edits, ("ask", true)),
        (Mode::Auto, ("ask", true)),
        (Mode::All, ("allow", true)),
    ] {
        let s = machine(mode, off, all);
        for call in
            [edit("/etc/a"), edit(" /etc//a"), edit("/w/xy/a"), patch("/etc/a"), moved.clone()]
        {
            assert_eq!(verdict(&s, &call), edits, "{mode:?} {}", call.args());
        }
        let reads = if mode == Mode::All { "allow" } else { "ask" };
        assert_eq!(verdict(&s, &view("/home/u/.ssh/id_rsa")), (reads, true), "{mode:?}");
        assert_eq!(verdict(&s, &view("/usr/include/stdio.h")), ("allow", true), "{mode:?}");
        assert!(!verdict(&s, &edit("/w/x/a")).1 && !verdict(&s, &edit("a")).1, "{mode:?}");
    }
    let auto = machine(Mode::Auto, off, all);
    for path in ["/library/a", "/binary", "/usrx/a", "/opt-data/a", "/proc/cpuinfo2"] {
        assert_eq!(verdict(&auto, &view(path)).0, "ask", "{path} is not of the system");
    }
    // A session-wide yes to the tool does not cover it.
    let mut granted = machine(Mode::Ask, off, all);
    granted.grants =
        vec![Rule { tool: "write_file".into(), words: vec![], access: Access::NOTHING }].into();
    assert_eq!(verdict(&granted, &edit("a")), ("allow", false));
    assert_eq!(verdict(&granted, &edit("/etc/a")), ("ask", true));
    // With a sandbox, or where nobody opened it, nothing is asked for, and the tool refuses.
    for s in [
        machine(Mode::All, Sandbox::Auto, all),
        machine(Mode::All, Sandbox::Require(Isolation::D), all),
        machine(Mode::All, off, FileAccess::Workspace),
    ] {
        assert!(!verdict(&s, &edit("/etc/a")).1 && !verdict(&s, &view("/etc/a")).1);
    }
}
