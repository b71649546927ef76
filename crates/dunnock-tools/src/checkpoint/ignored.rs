//! Whether programs can recreate a folder: it is ignored by git's rules, and its name says so.
//!
//! Both are required: something that is merely ignored may be the user's own (`.env`, notes), and
//! so may something that merely has such a name.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Names of folders that builds and package managers fill.
const BUILD: &[&str] = &[
    ".angular",
    ".build",
    ".bundle",
    ".cache",
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".zig-cache",
    "DerivedData",
    "Pods",
    "__pycache__",
    "_build",
    "bin",
    "bower_components",
    "build",
    "cmake-build-debug",
    "cmake-build-release",
    "coverage",
    "dist",
    "dist-newstyle",
    "elm-stuff",
    "node_modules",
    "obj",
    "out",
    "target",
    "vendor",
    "venv",
    "zig-cache",
    "zig-out",
];

pub(crate) struct Ignored {
    root: PathBuf,
    /// By folder, loaded when needed.
    rules: HashMap<PathBuf, Gitignore>,
    /// Rules of the repository and of the user.
    outer: Option<Vec<Gitignore>>,
}

impl Ignored {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), rules: HashMap::new(), outer: None }
    }

    pub(crate) fn build_like(name: &[u8]) -> bool {
        BUILD.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
    }

    /// Whether git ignores the folder at `path`, relative to the root.
    pub(crate) fn is(&mut self, path: &Path) -> bool {
        self.ignores(path, true)
    }

    /// Whether git ignores `path`, or a folder above it.
    pub(crate) fn ignores(&mut self, path: &Path, folder: bool) -> bool {
        let above: Vec<PathBuf> =
            path.ancestors().filter(|p| !p.as_os_str().is_empty()).map(Path::to_path_buf).collect();
        above.iter().rev().any(|part| self.names(part, folder || part != path))
    }

    /// Whether a rule matches exactly this path.
    fn names(&mut self, path: &Path, folder: bool) -> bool {
        let full = self.root.join(path);
        for dir in path.ancestors().skip(1) {
            let root = &self.root;
            let rules = self
                .rules
                .entry(dir.to_path_buf())
                .or_insert_with(|| rules_in(&root.join(dir), &root.join(dir).join(".gitignore")));
            match rules.matched(&full, folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        let root = &self.root;
        let outer = self.outer.get_or_insert_with(|| {
            vec![rules_in(root, &root.join(".git/info/exclude")), Gitignore::global().0]
        });
        outer.iter().any(|rules| rules.matched(&full, folder).is_ignore())
    }
}

/// The rules in a file, if it is a regular one: reading a pipe of that name would never end.
fn rules_in(folder: &Path, file: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    if std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() < 1 << 20) {
        let _ = builder.add(file);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_for_the_search() {
        assert!(BUILD.is_sorted());
    }

    #[test]
    fn only_what_is_ignored_and_build_like_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".gitignore"), "/target\n*.log\nsub/\n!keep/\n").unwrap();
        std::fs::create_dir(dir.path().join("inner")).unwrap();
        std::fs::write(dir.path().join("inner/.gitignore"), "build\n!target\n").unwrap();
        let mut ignored = Ignored::new(dir.path());
        for (path, expected) in [
            ("target", true),
            ("inner/target", false),
            ("inner/build", true),
            ("build", false),
            ("sub/deep/dist", true),
        ] {
            assert_eq!(ignored.is(Path::new(path)), expected, "{path}");
        }
    }
}
