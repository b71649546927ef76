//! Undo of many kinds of trees. Each comes back exactly, or what does not is named and the restore
//! says that it is partial.

use crate::keep::{World, listing};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tree, what a command does to it, and the paths that undo cannot bring back.
struct Case {
    name: &'static str,
    tree: &'static str,
    change: &'static str,
    missing: &'static [&'static str],
}

const fn exact(name: &'static str, tree: &'static str, change: &'static str) -> Case {
    Case { name, tree, change, missing: &[] }
}

const fn named(
    name: &'static str,
    tree: &'static str,
    change: &'static str,
    missing: &'static [&'static str],
) -> Case {
    Case { name, tree, change, missing }
}

/// `attr FILE NAME VALUE` sets an extended attribute; without a value, it removes it.
const ATTR: &str = "attr() { python3 -c 'import os, sys\nf, n, *v = sys.argv[1:]\nos.setxattr(f, \
                    n, v[0].encode()) if v else os.removexattr(f, n)' \"$@\"; }\n";

const CASES: &[Case] = &[
    exact("a changed file", "echo 1 > a", "echo 2 > a"),
    exact("a file of the same size", "echo 1 > a", "echo 2 > a; touch -r /etc/hostname a"),
    exact("a new file", "true", "echo 1 > a"),
    exact("a deleted file", "echo 1 > a", "rm a"),
    exact("an empty file", ": > a", "rm a"),
    exact("a file of zeros", "head -c 3M /dev/zero > a", "rm a"),
    exact("bytes that are no text", "printf '\\377\\000\\n\\r' > a", "echo text > a"),
    exact("a moved file", "echo 1 > a", "mv a b"),
    exact("two swapped files", "echo 1 > a; echo 2 > b", "mv a c; mv b a; mv c b"),
    exact("an executable", "echo 1 > a; chmod 755 a", "rm a"),
    exact("a lost mode", "echo 1 > a; chmod 755 a", "chmod 644 a"),
    exact("a set-group-id bit", "echo 1 > a; chmod 2755 a", "echo 2 > a"),
    exact("a file that became read-only", "echo 1 > a", "chmod 400 a"),
    exact("a read-only file", "echo 1 > a; chmod 400 a", "rm -f a"),
    exact("a deleted folder", "mkdir -p d/e; echo 1 > d/e/a", "rm -r d"),
    exact("a new folder", "true", "mkdir -p d/e; echo 1 > d/e/a"),
    exact("an empty folder", "mkdir d", "rmdir d"),
    exact("the mode of a folder", "mkdir -m 750 d; echo 1 > d/a", "chmod 777 d; rm d/a"),
    exact("a read-only folder", "mkdir d; echo 1 > d/a; chmod 555 d", "chmod 755 d; rm -r d"),
    exact("a moved folder", "mkdir -p d/e; echo 1 > d/e/a", "mv d x"),
    exact("a file that became a folder", "echo 1 > a", "rm a; mkdir a; echo 2 > a/b"),
    exact("a folder that became a file", "mkdir a; echo 2 > a/b", "rm -r a; echo 1 > a"),
    exact("a link", "echo 1 > a; ln -s a l", "rm l"),
    exact("a link that leads elsewhere", "ln -s /etc/hostname l", "ln -sfn /etc/passwd l"),
    exact("a broken link", "ln -s nowhere l", "rm l; echo 1 > l"),
    exact("a link to a folder", "mkdir d; echo 1 > d/a; ln -s d l", "rm l; mkdir l; echo 2 > l/a"),
    exact("a file that became a link", "echo 1 > a; echo 2 > b", "ln -sf b a"),
    exact("odd names", "echo 1 > 'a b'; echo 2 > $'c\\nd'; echo 3 > -- '-e'", "rm -f -- *"),
    exact("a name that is no UTF-8", "echo 1 > $'\\377'", "rm *"),
    exact("a hidden file", "echo 1 > .env; chmod 600 .env", "rm .env"),
    exact("many files", "for n in $(seq 300); do echo $n > f$n; done", "rm f*; echo x > f1"),
    exact("a deep folder", "d=$(printf 'd/%.0s' $(seq 60)); mkdir -p $d; echo 1 > $d/a", "rm -r d"),
    exact("an attribute of a deleted file", "echo 1 > a; attr a user.x 1", "rm a"),
    exact("an attribute of a changed file", "echo 1 > a; attr a user.x 1", "echo 2 > b; mv b a"),
    exact("a changed attribute", "echo 1 > a; attr a user.x 1", "attr a user.x 2"),
    exact("a removed attribute", "echo 1 > a; attr a user.x 1", "attr a user.x"),
    exact("a new attribute", "echo 1 > a", "attr a user.x 1"),
    exact(
        "an attribute of a read-only file",
        "echo 1 > a; attr a user.x 1; chmod 444 a",
        "rm -f a",
    ),
    exact("an attribute of a folder", "mkdir d; attr d user.x 1; attr d user.y 2", "rmdir d"),
    exact(
        "changed attributes of a folder",
        "mkdir d; attr d user.x 1",
        "attr d user.x; attr d user.z 3",
    ),
    exact("a new hard link", "echo 1 > a", "ln a b"),
    exact("hard links that were not touched", "echo 1 > a; ln a b; echo 1 > c", "echo 2 > c"),
    named("a hard link that was deleted", "echo 1 > a; ln a b", "rm b", &["b"]),
    named("hard links that were written to", "echo 1 > a; ln a b", "echo 2 > a", &["a", "b"]),
    named("a hard link that was replaced", "echo 1 > a; ln a b", "echo 2 > c; mv c a", &["a"]),
    named("a pipe", "mkfifo p", "rm p", &["p"]),
    named("a new pipe", "true", "mkfifo p", &["p"]),
    named("a large file", "head -c 51M /dev/zero > a", "rm a", &["a"]),
    named(
        "an ignored build folder",
        "git init -q; echo target > .gitignore; mkdir target; echo 1 > target/a",
        "rm -r target",
        &["target"],
    ),
];

/// Everything there is to know of a tree, with owners, attributes and hard links.
fn all_of(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut links: BTreeMap<u64, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut all = listing(root);
    for path in all.keys() {
        let meta = std::fs::symlink_metadata(root.join(path)).unwrap();
        if !meta.is_dir() {
            links.entry(meta.ino()).or_default().insert(path.clone());
        }
    }
    for (path, about) in &mut all {
        let full = root.join(path);
        let meta = std::fs::symlink_metadata(&full).unwrap();
        let mut names = vec![0; 4096];
        let length = rustix::fs::llistxattr(&full, &mut names[..]).unwrap_or(0);
        let attributes: BTreeMap<String, Vec<u8>> = names[..length]
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| {
                let mut value = vec![0; 4096];
                let length = rustix::fs::lgetxattr(&full, name, &mut value[..]).unwrap();
                (String::from_utf8_lossy(name).into_owned(), value[..length].to_vec())
            })
            .collect();
        let group = links.get(&meta.ino()).filter(|_| !meta.is_dir());
        about.push_str(&format!(" {}:{} {attributes:?} {group:?}", meta.uid(), meta.gid()));
    }
    all
}

fn bash(root: &Path, line: &str) {
    let out = Command::new("bash")
        .args(["-c", &format!("set -e\n{ATTR}{line}")])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
}

/// RED-L6: attributes and hard links were lost without a word.
#[tokio::test(flavor = "multi_thread")]
async fn every_tree_comes_back_or_what_is_missing_is_named() {
    let mut count = (0, 0);
    for Case { name, tree, change, missing } in CASES {
        let world = World::new();
        let root = world.root();
        bash(&root, tree);
        let before = all_of(&root);
        let then = world.keep().await;
        bash(&root, change);
        assert_ne!(all_of(&root), before, "{name}: nothing changed");
        let now = world.keep().await;
        let ours = [(then.clone(), now.clone())];
        let back = world.back(&then, &now, &ours, &[], false).await;
        let after = all_of(&root);
        let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
        let differ: Vec<&Path> = paths
            .into_iter()
            .filter(|path| before.get(*path) != after.get(*path))
            .map(PathBuf::as_path)
            .collect();
        let note = back.note.clone().unwrap_or_default();
        if missing.is_empty() {
            assert!(differ.is_empty(), "{name}: {differ:?} {before:#?} {after:#?}");
            assert!(!back.partial && back.note.is_none(), "{name}: {note}");
            count.0 += 1;
        } else {
            assert!(!differ.is_empty(), "{name}: it came back");
            assert!(back.partial, "{name}: {note}");
            for path in *missing {
                assert!(note.contains(path), "{name}: {path} is not named: {note}");
            }
            count.1 += 1;
        }
        // A second time changes nothing more.
        let again = world.back(&then, &now, &ours, &[], false).await;
        assert_eq!(all_of(&root), after, "{name}: {:?}", again.note);
    }
    println!("{} trees came back exactly, {} were named", count.0, count.1);
    assert!(count.0 + count.1 >= 30);
}
