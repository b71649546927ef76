//! File tools outside the workspace, which a person opens with `file_access = "machine"`.

use crate::{job, launcher, put};
use dunnock_ports::{CancellationToken, DeltaSink, ToolCall, Tools as _};
use dunnock_proto::{Access, Class, Finished, Isolation, Outcome};
use dunnock_tools::{Limits, Toolbox};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

struct Machine {
    toolbox: Toolbox,
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("work/in.txt", "inside\n"),
            ("work/hidden/a.txt", "denied\n"),
            ("own/key", "s3cret\n"),
            ("out/a.txt", "one\ntwo\n"),
            ("out/b.txt", "bee\n"),
            ("out/repo/.git/config", "[core]\n"),
            ("out/bare/HEAD", "ref: refs/heads/main\n"),
            ("out/bare/objects/x", ""),
            ("out/bare/refs/x", ""),
        ];
        put(folder.path(), &files);
        let out = folder.path().join("out");
        symlink(folder.path().join("out/a.txt"), out.join("link")).unwrap();
        symlink(folder.path().join("own"), out.join("to-own")).unwrap();
        symlink(folder.path().join("own/key"), out.join("to-key")).unwrap();
        symlink(folder.path().join("work/hidden/a.txt"), out.join("to-hidden")).unwrap();
        symlink("/proc/self/environ", out.join("to-environ")).unwrap();
        let mut denied = globset::GlobSetBuilder::new();
        denied.add(globset::Glob::new("hidden/**").unwrap());
        let limits = Limits {
            denied: denied.build().unwrap(),
            journals: folder.path().join("own"),
            ..Limits::default()
        };
        let own = [folder.path().join("own")];
        let layout = dunnock_tools::layout(&folder.path().join("own"), &own);
        let toolbox = Toolbox::new(limits, &launcher(), &[]).boxed(layout);
        Self { toolbox, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path as a model writes it.
    fn path(&self, name: &str) -> String {
        if name.starts_with('/') { name.into() } else { self.at(name).display().to_string() }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// A call that policy let outside, or another.
    async fn call(&self, tool: &str, args: Value, with: impl Fn(&mut ToolCall)) -> Finished {
        let mut job = job(&self.at("work"), tool, &args.to_string());
        job.call.access = Access { outside: true, ..Access::NOTHING };
        with(&mut job);
        let quiet: DeltaSink = Arc::new(|_| {});
        self.toolbox.run(job, quiet, CancellationToken::default()).await.0
    }

    async fn outside(&self, tool: &str, args: Value) -> Finished {
        self.call(tool, args, |_| {}).await
    }
}

#[tokio::test]
async fn files_outside_are_read_and_edited_by_their_absolute_paths() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name);
    let patch = format!(
        "*** Begin Patch\n*** Update File: {}\n@@\n-bee\n+wasp\n*** Add File: {}\n+new\n*** End Patch",
        path("out/b.txt"),
        path("out/deep/c.txt"),
    );
    let calls = [
        ("view_file", json!({"path": path("out/a.txt")}), "1  one"),
        ("view_file", json!({"path": path("out/link")}), "1  one"),
        ("view_file", json!({"path": path("out")}), "/out/a.txt"),
        ("list_files", json!({"path": path("out"), "glob": "*.txt"}), "/out/b.txt"),
        (
            "search_text",
            json!({"path": path("out"), "pattern": "^two", "regex": true}),
            "/out/a.txt",
        ),
        (
            "search_text",
            json!({"path": path("out/a.txt"), "pattern": "^two", "regex": true}),
            "/out/a.txt",
        ),
        ("replace_text", json!({"path": path("out/a.txt"), "old": "two", "new": "2"}), "undo"),
        ("insert_text", json!({"path": path("out/a.txt"), "line": 0, "text": "0"}), "undo"),
        ("write_file", json!({"path": path("out/d/new.txt"), "content": "x\n"}), "undo"),
        ("apply_patch", json!({ "patch": patch }), "undo does not restore"),
        ("move_file", json!({"path": path("out/d/new.txt"), "to": path("out/m.txt")}), "undo"),
        ("delete_file", json!({"path": path("out/m.txt")}), "undo"),
    ];
    for (tool, args, says) in calls {
        let done = machine.outside(tool, args.clone()).await;
        assert_eq!(done.outcome, Outcome::Done, "{tool} {args}: {}", done.shown);
        assert!(done.shown.contains(says), "{tool} {args}: {}", done.shown);
        println!("{tool} {args}");
    }
    assert_eq!(machine.read("out/a.txt"), "0\none\n2\n");
    assert_eq!(
        (machine.read("out/b.txt"), machine.read("out/deep/c.txt")),
        ("wasp\n".into(), "new\n".into())
    );
    assert!(!machine.at("out/m.txt").exists() && !machine.at("out/d/new.txt").exists());
}

#[tokio::test]
async fn closed_paths_stay_closed() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name);
    let view = |name: &str| ("view_file", json!({"path": path(name)}));
    let write = |name: &str| {
        ("write_file", json!({"path": path(name), "content": "bad", "overwrite": true}))
    };
    let move_to = |from: String, to: String| ("move_file", json!({"path": from, "to": to}));
    let patch = |first: &str, second: &str| {
        let text = format!(
            "*** Begin Patch\n*** Add File: {first}\n+bad\n*** Add File: {second}\n+bad\n*** End Patch"
        );
        ("apply_patch", json!({ "patch": text }))
    };
    let calls = [
        // Dunnock's own files, by any way.
        view("own/key"),
        write("own/key"),
        view("out/to-key"),
        view("out/to-own/key"),
        ("list_files", json!({"path": path("out/to-own")})),
        ("search_text", json!({"path": path("out/to-own"), "pattern": "s3"})),
        move_to(path("own/key"), path("out/key")),
        move_to(path("out/a.txt"), path("own/a.txt")),
        patch(&path("out/n.txt"), &path("own/n.txt")),
        // What the kernel shows of processes.
        view("/proc/self/environ"),
        view("out/to-environ"),
        view("/proc/self/root/etc/passwd"),
        write("/proc/self/comm"),
        view("/dev/null"),
        // Files of the workspace have rules of their own.
        view("work/in.txt"),
        view("work/hidden/a.txt"),
        view("out/to-hidden"),
        move_to("hidden/a.txt".into(), path("out/h.txt")),
        move_to(path("work/hidden/a.txt"), path("out/h.txt")),
        patch(&path("out/n.txt"), "n.txt"),
        patch(&path("out/n.txt"), &path("work/n.txt")),
        // Repositories, links, and paths that lead elsewhere.
        write("out/repo/.git/config"),
        write("out/repo/.git/hooks/pre-commit"),
        write("out/bare/hooks/pre-commit"),
        write("out/link"),
        patch(&path("out/n.txt"), "/var/n.txt"),
        write("out/../own/key"),
        view("out/../own/key"),
    ];
    for (tool, args) in calls {
        let done = machine.outside(tool, args.clone()).await;
        assert_eq!(done.outcome, Outcome::Failed, "{tool} {args}: {}", done.shown);
        assert!(!done.shown.contains("s3cret") && !done.shown.contains("PATH="), "{}", done.shown);
        println!("{tool} {args}: {}", done.shown);
    }
    // A search from above passes over them.
    let root = machine.folder.path().display().to_string();
    let found = machine.outside(
        "search_text",
        json!({"path": root, "pattern": "s3cret|denied|one", "regex": true}),
    );
    let found = found.await.shown;
    assert!(
        found.contains("out/a.txt") && !found.contains("own") && !found.contains("hidden"),
        "{found}"
    );
    assert_eq!(machine.read("own/key"), "s3cret\n");
    assert_eq!(machine.read("out/repo/.git/config"), "[core]\n");
    assert_eq!(machine.read("out/a.txt"), "one\ntwo\n");
    for planted in ["out/n.txt", "work/n.txt", "out/h.txt", "out/key", "out/bare/hooks"] {
        assert!(!machine.at(planted).exists(), "{planted}");
    }
}

/// Policy decides for each call; a sandbox is not compatible with it.
#[tokio::test]
async fn a_call_without_outside_access_stays_inside() {
    let machine = Machine::new();
    for tool in ["view_file", "write_file"] {
        let args = json!({"path": machine.path("out/a.txt"), "content": "bad", "overwrite": true});
        let plain = machine.call(tool, args.clone(), |job| job.call.access = Access::NOTHING).await;
        assert!(plain.outcome == Outcome::Failed, "{tool}: {}", plain.shown);
        let boxed = machine.call(tool, args, |job| job.isolation = Isolation::A).await;
        assert!(boxed.outcome == Outcome::Failed, "{tool}: {}", boxed.shown);
    }
    assert_eq!(machine.read("out/a.txt"), "one\ntwo\n");
}

/// What runs unasked is decided by a tool's class, which a stranger's log may state wrongly.
#[tokio::test]
async fn a_call_of_a_wrong_class_does_not_run() {
    let machine = Machine::new();
    let calls = [
        ("shell", json!({"command": "touch planted"})),
        ("write_file", json!({"path": "planted", "content": "bad"})),
        ("process_start", json!({"command": "touch planted"})),
    ];
    for (tool, args) in calls {
        let reads = |job: &mut ToolCall| {
            job.call.access = Access::NOTHING;
            job.call.class = Class::Read;
        };
        let done = machine.call(tool, args, reads).await;
        assert_eq!(done.outcome, Outcome::Failed, "{tool}: {}", done.shown);
        assert!(done.shown.contains("with another class"), "{tool}: {}", done.shown);
    }
    assert!(!machine.at("work/planted").exists());
}

/// A path in a system folder is read unasked: a link there leads nowhere else.
#[tokio::test]
async fn a_link_in_a_system_folder_does_not_lead_out_of_it() {
    let machine = Machine::new();
    let folder = tempfile::tempdir_in("/opt").unwrap();
    symlink(machine.at("out"), folder.path().join("out")).unwrap();
    symlink("/usr/lib", folder.path().join("lib")).unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (tool, args) in [
        ("view_file", json!({"path": at("out/a.txt")})),
        ("view_file", json!({"path": at("out")})),
        ("list_files", json!({"path": at("out")})),
        ("search_text", json!({"path": at("out"), "pattern": "one"})),
        ("search_text", json!({"path": at("out/a.txt"), "pattern": "one"})),
    ] {
        let done = machine.outside(tool, args.clone()).await;
        assert_eq!(done.outcome, Outcome::Failed, "{tool} {args}: {}", done.shown);
        assert!(done.shown.contains("use that path"), "{tool} {args}: {}", done.shown);
    }
    let fine = machine.outside("list_files", json!({"path": at("lib"), "depth": 1})).await;
    assert_eq!(fine.outcome, Outcome::Done, "{}", fine.shown);
}
