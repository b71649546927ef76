//! Rules for the workspace itself, as tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

fn cargo(args: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .current_dir(root())
        .output()
        .map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Counts the packages, including ours, in the binary for download.
pub(crate) fn count_packages() -> Result<usize, String> {
    let tree =
        cargo(&["tree", "-p", "dunnock", "-e", "normal,build", "--prefix", "none", "--locked"])?;
    let mut names: Vec<&str> = tree.lines().filter_map(|l| l.split(" (").next()).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names.len())
}

/// Files below these folders of the workspace with one of these extensions.
pub(crate) fn files_below(folders: &[&str], endings: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut files = Vec::new();
    while let Some(dir) = open.pop() {
        for path in std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
        {
            match path.is_dir() {
                true => open.push(path),
                false
                    if path
                        .extension()
                        .is_some_and(|e| endings.iter().any(|ending| e == *ending)) =>
                {
                    files.push(path)
                }
                false => {}
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    /// Which of our crates each may depend on. A crate exists only to forbid a dependency.
    const EDGES: &[(&str, &[&str])] = &[
        ("dunnock-proto", &[]),
        ("dunnock-private", &[]),
        ("dunnock-syntax", &[]),
        ("dunnock-core", &["dunnock-proto"]),
        ("dunnock-ports", &["dunnock-core", "dunnock-private", "dunnock-proto"]),
        ("dunnock-store", &["dunnock-core", "dunnock-ports", "dunnock-private", "dunnock-proto"]),
        ("dunnock-engine", &["dunnock-core", "dunnock-ports", "dunnock-private", "dunnock-proto"]),
        ("dunnock-model", &["dunnock-core", "dunnock-ports", "dunnock-private", "dunnock-proto"]),
        ("dunnock-egress", &["dunnock-ports", "dunnock-proto"]),
        ("dunnock-mcp", &["dunnock-private", "dunnock-proto"]),
        ("dunnock-sandbox", &["dunnock-private"]),
        ("dunnock-tui", &["dunnock-core", "dunnock-private", "dunnock-proto"]),
        ("dunnock-serve", &["dunnock-core", "dunnock-engine", "dunnock-ports", "dunnock-proto"]),
        (
            "dunnock-tools",
            &[
                "dunnock-core",
                "dunnock-egress",
                "dunnock-mcp",
                "dunnock-ports",
                "dunnock-private",
                "dunnock-proto",
                "dunnock-sandbox",
                "dunnock-syntax",
            ],
        ),
        (
            "dunnock-testkit",
            &[
                "dunnock",
                "dunnock-core",
                "dunnock-engine",
                "dunnock-ports",
                "dunnock-proto",
                "dunnock-store",
                "dunnock-tui",
            ],
        ),
        (
            "dunnock-compose",
            &[
                "dunnock-egress",
                "dunnock-engine",
                "dunnock-model",
                "dunnock-ports",
                "dunnock-private",
                "dunnock-proto",
                "dunnock-sandbox",
                "dunnock-store",
                "dunnock-tools",
            ],
        ),
        (
            "dunnock-agent",
            &[
                "dunnock-compose",
                "dunnock-core",
                "dunnock-engine",
                "dunnock-model",
                "dunnock-ports",
                "dunnock-proto",
                "dunnock-sandbox",
                "dunnock-store",
                "dunnock-tools",
            ],
        ),
        (
            "dunnock",
            &[
                "dunnock-compose",
                "dunnock-core",
                "dunnock-engine",
                "dunnock-mcp",
                "dunnock-model",
                "dunnock-ports",
                "dunnock-private",
                "dunnock-proto",
                "dunnock-sandbox",
                "dunnock-serve",
                "dunnock-store",
                "dunnock-tools",
                "dunnock-tui",
            ],
        ),
        ("xtask", &["dunnock-proto"]),
    ];

    /// Foreign crates that the pure crates may use.
    const PURE: &[(&str, &[&str])] =
        &[("dunnock-proto", &["blake3", "schemars", "serde", "serde_json"]), ("dunnock-core", &[])];

    const LICENCES: &[&str] = &[
        "MIT",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "Zlib",
        "CC0-1.0",
        "Unicode-3.0",
        "Unlicense",
        "MIT-0",
        "BSL-1.0",
        "0BSD",
        "CDLA-Permissive-2.0",
    ];

    fn metadata(args: &[&str]) -> Value {
        let all: Vec<&str> =
            ["metadata", "--format-version", "1", "--locked"].iter().chain(args).copied().collect();
        serde_json::from_str(&cargo(&all).unwrap()).unwrap()
    }

    fn text<'a>(value: &'a Value, key: &str) -> &'a str {
        value[key].as_str().unwrap_or_default()
    }

    fn sources() -> Vec<PathBuf> {
        files_below(&["crates", "xtask"], &["rs"])
    }

    #[test]
    fn crates_depend_only_downwards() {
        let metadata = metadata(&["--no-deps"]);
        let mut seen = 0;
        for package in metadata["packages"].as_array().unwrap() {
            let name = text(package, "name");
            let (_, allowed) = EDGES
                .iter()
                .find(|(n, _)| *n == name)
                .unwrap_or_else(|| panic!("{name} is not in the table"));
            seen += 1;
            for dependency in
                package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null())
            {
                let other = text(dependency, "name");
                let ours = EDGES.iter().any(|(n, _)| *n == other);
                assert!(!ours || allowed.contains(&other), "{name} must not depend on {other}");
                if let Some((_, foreign)) = PURE.iter().find(|(n, _)| *n == name) {
                    assert!(
                        ours || foreign.contains(&other),
                        "{name} is pure and must not depend on {other}"
                    );
                }
            }
        }
        assert_eq!(seen, EDGES.len());
    }

    #[test]
    fn files_are_of_a_readable_size_and_say_what_they_are() {
        for path in sources() {
            let source = std::fs::read_to_string(&path).unwrap();
            let table = path.file_name().is_some_and(|n| n.to_string_lossy().ends_with("table.rs"));
            let lines = source.lines().count();
            assert!(
                lines <= 850 || table,
                "{} has {lines} lines: split it by topic",
                path.display()
            );
            assert!(
                source.starts_with("//!"),
                "{} does not start with a //! comment",
                path.display()
            );
        }
    }

    #[test]
    fn unsafe_is_found_only_where_children_are_made() {
        let word = concat!("un", "safe");
        for path in
            sources().iter().filter(|p| !p.components().any(|c| c.as_os_str() == "dunnock-sandbox"))
        {
            let source = std::fs::read_to_string(path).unwrap();
            // A table of words that the highlighter knows is no code.
            let table = path.file_name().is_some_and(|n| n == "languages_table.rs");
            let code = source.lines().filter(|l| !l.trim_start().starts_with("//") && !table);
            let used = code
                .filter(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word));
            assert_eq!(used.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", path.display());
        }
    }

    /// Examples are tests of their own. Only the library has some in its comments, which CI runs:
    /// there they are read.
    #[test]
    fn no_comment_holds_a_test() {
        for path in sources()
            .into_iter()
            .filter(|path| !path.components().any(|c| c.as_os_str() == "dunnock-agent"))
        {
            let source = std::fs::read_to_string(&path).unwrap();
            let block = |line: &str| {
                ["///", "//!"]
                    .iter()
                    .any(|c| line.trim_start().strip_prefix(c).is_some_and(|t| t.trim() == "```"))
            };
            assert!(
                !source.lines().any(block),
                "{} has an example in a comment; make it a test",
                path.display()
            );
        }
    }

    #[test]
    fn licences_and_sources_are_known() {
        let metadata = metadata(&[]);
        for package in metadata["packages"].as_array().unwrap() {
            let name = text(package, "name");
            let source = package["source"].as_str();
            assert!(
                source.is_none_or(|s| s.starts_with("registry+")),
                "{name} comes from {source:?}"
            );
            let licence = text(package, "license").replace('/', " OR ");
            let fine = licence.split(" OR ").any(|choice| {
                let choice = choice.trim().trim_matches(['(', ')']);
                choice.split(" AND ").all(|l| LICENCES.contains(&l.trim().trim_matches(['(', ')'])))
            });
            // Used as it is, its files unchanged: what that licence asks for. The same exception
            // stands in `deny.toml`.
            let excepted = (name, licence.as_str()) == ("nucleo-matcher", "MPL-2.0");
            assert!(fine || excepted, "{name} has the licence {licence:?}");
        }
    }

    /// Two versions of one crate need a reason in `deny.toml`.
    #[test]
    fn no_crate_is_there_twice_without_a_reason() {
        let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
        let tree =
            cargo(&["tree", "-d", "--workspace", "--depth", "0", "--prefix", "none", "--locked"])
                .unwrap();
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in tree.lines().filter(|l| !l.is_empty()) {
            let (name, rest) = line.split_once(" v").unwrap();
            let version = rest.split(' ').next().unwrap();
            let known = versions.entry(name).or_default();
            if !known.contains(&version) {
                known.push(version);
            }
        }
        for (name, versions) in versions.into_iter().filter(|(_, v)| v.len() > 1) {
            let excused = versions.iter().any(|v| deny.contains(&format!("{name}@{v}")));
            assert!(
                excused,
                "{name} has the versions {versions:?}: give a reason in deny.toml or remove one"
            );
        }
    }

    #[test]
    fn the_binary_stays_lean() {
        let packages = count_packages().unwrap();
        assert!(packages <= 350, "{packages} packages");
    }

    /// A regression test keeps its name: the ids of the reliability page that are shown here.
    #[test]
    fn every_promised_fault_has_its_test() {
        let all: String = sources().iter().map(|p| std::fs::read_to_string(p).unwrap()).collect();
        let promised = [
            "r1_plain",
            "r1_parallel",
            "r1_question",
            "r2_",
            "r3_",
            "r4_",
            "r6_",
            "r17_",
            "r18_",
            "r20_",
            "r23_",
            "r25_",
            "r27_",
        ];
        for name in promised {
            assert!(all.contains(&format!("fn {name}")), "there is no test of {name}");
        }
        assert!(
            all.contains("fn flipped_bytes_never_block_a_start_and_are_never_believed"),
            "there is no test of R5"
        );
    }
}
