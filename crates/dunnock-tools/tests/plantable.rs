//! What a call that nobody approved can write, and what a call with more access reads: nothing in
//! common but the workspace. Both sides come from the plans of the sandbox, so that a new cache, layer
//! or variable cannot be forgotten.

use dunnock_sandbox::{Isolation, Layout, Opened, SandboxSpec};
use std::path::{Path, PathBuf};

/// A person with a toolchain, a git configuration, and folders of the project in `PATH` and in
/// variables.
fn layout(dir: &Path) -> Layout {
    let at = |name: &str| {
        let path = dir.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.canonicalize().unwrap()
    };
    let home = at("home");
    for folder in ["home/.cargo/bin", "home/go/pkg/mod", "home/.m2/repository"] {
        at(folder);
    }
    std::fs::write(home.join(".gitconfig"), "[user]\n\tname = a\n").unwrap();
    let project = at("project");
    Layout {
        path: vec![
            at("project/.venv/bin"),
            project.join("node_modules/.bin"),
            "bin".into(),
            home.join(".cargo/bin"),
            "/usr/bin".into(),
        ],
        variables: [
            ("VIRTUAL_ENV".to_owned(), at("project/.venv")),
            ("JAVA_HOME".to_owned(), at("java")),
        ]
        .into(),
        home: Some(home),
        writable: vec![at("shared")],
        ..crate::box_speed::layout(&at("data"))
    }
}

/// Everything that a call with this plan can leave behind.
fn written(spec: &SandboxSpec) -> Vec<PathBuf> {
    let layers = spec.layered.iter().flat_map(|layer| [layer.above.clone(), layer.work.clone()]);
    let writable = spec.writable.iter().chain(&spec.repository).cloned();
    let mut all: Vec<PathBuf> = writable.chain(layers).collect();
    all.extend([spec.tmp.clone(), spec.workspace.clone()]);
    all
}

/// Everything that a call with this plan can read, below a folder of ours or of the person's.
fn read(spec: &SandboxSpec) -> Vec<PathBuf> {
    let layers = spec.layered.iter().flat_map(|layer| {
        let lower = layer.between.iter().chain([&layer.below, &layer.above]);
        lower.cloned().collect::<Vec<_>>()
    });
    let plain = [&spec.readable, &spec.writable, &spec.own].into_iter().flatten().cloned();
    let mut all: Vec<PathBuf> = plain.chain(layers).collect();
    all.extend([spec.tmp.clone(), spec.workspace.clone()]);
    all
}

#[test]
fn a_call_with_more_access_reads_nothing_that_another_call_can_write() {
    for isolation in [Isolation::A, Isolation::B, Isolation::C] {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(dir.path());
        let project = dir.path().join("project").canonicalize().unwrap();
        let shared = layout.writable[0].clone();
        let (plain, _) = layout.spec(isolation, &project, Opened::default()).unwrap();
        for opened in [
            Opened { network: true, ..Opened::default() },
            Opened { secrets: true, ..Opened::default() },
            Opened { protected: true, ..Opened::default() },
            Opened { git_config: true, ..Opened::default() },
            Opened { repository: true, ..Opened::default() },
        ] {
            let (spec, env) = layout.spec(isolation, &project, opened).unwrap();
            let mut common = Vec::new();
            for one in written(&plain) {
                for other in read(&spec) {
                    if one.starts_with(&other) || other.starts_with(&one) {
                        common.push(one.clone());
                    }
                }
            }
            common.sort();
            common.dedup();
            // Caches are read only by programs that run code of the project anyway, and the person
            // made the last one writable for every command.
            let cache = plain.writable.last().unwrap().clone();
            assert!(cache.ends_with("cache"));
            let mut known = vec![project.clone(), cache.clone(), shared.clone()];
            known.sort();
            assert_eq!(common, known, "{isolation:?} {opened:?}");
            for (name, value) in &env {
                for path in std::env::split_paths(value) {
                    let planted = written(&plain)
                        .into_iter()
                        .filter(|place| *place != cache)
                        .find(|place| path.starts_with(place));
                    assert_eq!(planted, None, "{isolation:?}: {name}={value}");
                }
            }
        }
    }
}

#[test]
fn programs_for_a_call_with_more_access_are_found_where_no_other_call_writes() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let project = dir.path().join("project").canonicalize().unwrap();
    let put = |path: &Path| {
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    };
    put(&project.join(".venv/bin/tool"));
    assert_eq!(layout.approved_program(&project, "tool"), None);
    let own = layout.home.as_ref().unwrap().join(".cargo/bin/tool");
    put(&own);
    assert_eq!(layout.approved_program(&project, "tool"), Some(own));
    // A link in a safe folder that leads into the project.
    let link = layout.home.as_ref().unwrap().join(".cargo/bin/linked");
    std::os::unix::fs::symlink(project.join(".venv/bin/tool"), link).unwrap();
    assert_eq!(layout.approved_program(&project, "linked"), None);
}
