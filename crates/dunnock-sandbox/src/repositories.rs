//! Git repositories in a workspace, recognised by their content: what in them makes git run a
//! program, and which files their configuration names.
//!
//! Commands can write what is read here. Invariant: nothing is run, and every size and depth is
//! bounded.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The largest configuration file and the largest index that are read.
const LARGEST_CONFIG: u64 = 1 << 20;
const LARGEST_INDEX: u64 = 256 << 20;
/// How deep the folders of submodules can be nested in `.git/modules`.
const DEEPEST_MODULE: usize = 8;
/// At most this many folders are searched in `.git/modules` and `.git/worktrees`.
const MOST_INNER: usize = 10_000;
/// How deep configuration files can include each other.
const DEEPEST_INCLUDE: usize = 8;

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_dir())
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_INNER);
    entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path())
}

/// The folder of a repository, and those of its submodules and linked work trees inside it.
#[must_use]
pub fn with_inner(repository: &Path) -> Vec<PathBuf> {
    let mut all = vec![repository.to_path_buf()];
    // A linked work tree has submodules of its own.
    let trees: Vec<PathBuf> = folders(&repository.join("worktrees")).collect();
    let mut waiting: Vec<(PathBuf, usize)> =
        trees.iter().map(|tree| (tree.join("modules"), 0)).collect();
    waiting.push((repository.join("modules"), 0));
    all.extend(trees);
    while let Some((folder, depth)) = waiting.pop() {
        for inner in folders(&folder) {
            // A name with slashes is a folder of folders. They count as well: one of them could
            // become a repository later, and what looks like one need not be one for git.
            let parts = ["objects", "refs", "hooks", "info", "logs", "worktrees", "branches"];
            if inner.file_name().is_some_and(|name| parts.iter().any(|part| name == *part)) {
                continue;
            }
            all.push(inner.clone());
            if depth < DEEPEST_MODULE && all.len() < MOST_INNER {
                waiting.push((inner, depth + 1));
            }
        }
    }
    let known: BTreeSet<PathBuf> = all.iter().cloned().collect();
    let trees = all.iter().skip(1).flat_map(|dir| folders(&dir.join("worktrees")));
    let trees: Vec<PathBuf> = trees.filter(|tree| !known.contains(tree)).collect();
    all.extend(trees);
    all
}

/// Where a `.git` file says that the repository is.
#[must_use]
pub fn target_of(git_file: &Path) -> Option<PathBuf> {
    let line = text(git_file)?;
    let named = line.strip_prefix("gitdir:")?.trim();
    git_file.parent()?.join(named).canonicalize().ok()
}

/// A regular file of at most this size.
fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    // git follows links, too. A pipe does not make this wait.
    let options = || std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).clone();
    let file = options().open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The text of a regular file of ordinary size. A name that is not UTF-8 cannot be protected by a
/// setting.
pub(crate) fn text(path: &Path) -> Option<String> {
    read(path, LARGEST_CONFIG).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// What the index of a repository tracks, as far as the sandbox must know it. Paths are relative to
/// the work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tracked {
    /// Folders that it records as other repositories (submodules). git enters them even for
    /// `git status`.
    pub(crate) links: Vec<PathBuf>,
    /// Files with names of secrets.
    pub(crate) secrets: Vec<PathBuf>,
}

/// Reads the index of a repository.
pub(crate) fn tracked(repository: &Path, is_secret: fn(&str) -> bool) -> Tracked {
    let Some(bytes) = read(&repository.join("index"), LARGEST_INDEX) else {
        return Tracked::default();
    };
    let sha256 = |config: &PathBuf| {
        let all = text(config).map(|text| settings(&text)).unwrap_or_default();
        all.iter().any(|(key, value)| {
            key == "extensions.objectformat" && value.eq_ignore_ascii_case("sha256")
        })
    };
    let long = configs_of(repository).iter().any(sha256);
    tracked_in(&bytes, if long { 32 } else { 20 }, is_secret)
}

fn tracked_in(bytes: &[u8], hash: usize, is_secret: fn(&str) -> bool) -> Tracked {
    use std::os::unix::ffi::OsStrExt as _;
    let number = |at: usize| {
        bytes.get(at..at + 4)?.first_chunk().map(|four: &[u8; 4]| u32::from_be_bytes(*four))
    };
    let mut found = Tracked::default();
    let (Some(b"DIRC"), Some(version), Some(count)) = (bytes.get(..4), number(4), number(8)) else {
        return found;
    };
    let mut at = 12;
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..count {
        let Some(mode) = number(at + 24) else { break };
        let flags = at + 40 + hash;
        let Some(&[high, _]) = bytes.get(flags..flags + 2) else { break };
        let extended = version >= 3 && high & 0x40 != 0;
        let mut name = flags + if extended { 4 } else { 2 };
        if version == 4 {
            // How many bytes of the previous path do not count.
            let mut cut = 0_usize;
            let mut first = true;
            while let Some(byte) = bytes.get(name) {
                name += 1;
                if !first {
                    cut += 1;
                }
                first = false;
                cut = (cut << 7) | usize::from(byte & 0x7f);
                if byte & 0x80 == 0 || cut > path.len() {
                    break;
                }
            }
            path.truncate(path.len().saturating_sub(cut));
        } else {
            path.clear();
        }
        let Some(length) = bytes.get(name..).and_then(|rest| rest.iter().position(|b| *b == 0))
        else {
            break;
        };
        path.extend_from_slice(bytes.get(name..name + length).unwrap_or_default());
        at = match version {
            4 => name + length + 1,
            // Entries are padded with 1 to 8 zeros.
            _ => at + ((name + length - at + 8) & !7),
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(&path));
        let secret = || path.file_name().and_then(std::ffi::OsStr::to_str).is_some_and(is_secret);
        let list = match mode & 0o170_000 {
            0o160_000 => &mut found.links,
            0o100_000 if secret() => &mut found.secrets,
            _ => continue,
        };
        if path.components().all(|part| matches!(part, Component::Normal(_))) {
            list.push(path.to_path_buf());
        }
    }
    found
}

/// The settings in the text of a configuration file: keys in lower case, without the middle part in
/// quotation marks.
fn settings(text: &str) -> Vec<(String, String)> {
    let text = text.replace("\r\n", "\n").replace("\\\n", "");
    let mut section = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        while let Some(rest) = line.strip_prefix('[') {
            let mut quoted = false;
            let end = rest.find(|c| {
                quoted ^= c == '"';
                c == ']' && !quoted
            });
            let Some((name, after)) = end.and_then(|end| rest.split_at_checked(end)) else { break };
            section = name.split([' ', '\t', '"', '.']).next().unwrap_or_default().to_lowercase();
            line = after.trim_start_matches(']').trim_start();
        }
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        all.push((format!("{section}.{}", key.trim().to_lowercase()), plain(value)));
    }
    all
}

/// A value without quotation marks, escapes and comments.
fn plain(value: &str) -> String {
    let mut text = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for c in value.trim().chars() {
        match c {
            _ if escaped => {
                escaped = false;
                text.push(c);
            }
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            c => text.push(c),
        }
    }
    text.trim_end().to_owned()
}

/// The remotes of a repository, each with its name and its address.
pub(crate) fn remotes(repository: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for text in configs_of(repository).into_iter().filter_map(|file| text(&file)) {
        // One remote at a time: settings of a section have no name of the remote.
        for part in text.split("[remote \"").skip(1) {
            let Some((name, rest)) = part.split_once("\"]") else { continue };
            let rest = rest.split("\n[").next().unwrap_or(rest);
            let found = settings(&format!("[remote]{rest}"));
            let urls = found
                .into_iter()
                .filter(|(key, _)| matches!(key.as_str(), "remote.url" | "remote.pushurl"));
            all.extend(urls.map(|(_, url)| (name.to_owned(), url)));
        }
    }
    all
}

/// The credential helpers in a configuration file.
pub(crate) fn helpers(config: &Path) -> Vec<String> {
    let all = text(config).map(|text| settings(&text)).unwrap_or_default();
    let all = all.into_iter().filter(|(key, _)| key == "credential.helper");
    all.map(|(_, helper)| helper).filter(|helper| !helper.is_empty()).collect()
}

/// Whether git runs the value of this setting, or reads more settings, hooks or attributes there.
fn leads_on(key: &str) -> bool {
    let (section, last) = key.split_once('.').unwrap_or_default();
    matches!(section, "alias" | "pager" | "include" | "includeif")
        || matches!(
            last,
            "hookspath"
                | "fsmonitor"
                | "editor"
                | "pager"
                | "sshcommand"
                | "askpass"
                | "gitproxy"
                | "attributesfile"
                | "clean"
                | "smudge"
                | "process"
                | "command"
                | "textconv"
                | "external"
                | "driver"
                | "cmd"
                | "helper"
                | "program"
                | "difffilter"
                | "packobjectshook"
                | "recentobjectshook"
                | "defaultkeycommand"
                | "tocmd"
                | "cccmd"
                | "headercmd"
                | "browser"
                | "alternaterefscommand"
                | "templatedir"
                | "update"
                | "uploadpack"
                | "receivepack"
                | "path"
        )
}

/// Paths that a configuration file makes git run or read, as far as it names them; relative ones
/// begin at the work tree, and those of `include.path` at the file.
pub(crate) fn named_by(config: &Path, work_tree: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut named = BTreeSet::new();
    follow(config, work_tree, home, DEEPEST_INCLUDE, &mut named);
    named
}

fn follow(
    config: &Path,
    work_tree: &Path,
    home: Option<&Path>,
    left: usize,
    named: &mut BTreeSet<PathBuf>,
) {
    let Some(lines) = text(config) else { return };
    for (key, value) in settings(&lines).iter().filter(|(key, _)| leads_on(key)) {
        let include = key.starts_with("include");
        let one = include || matches!(key.as_str(), "core.hookspath" | "core.attributesfile");
        let from = if include { config.parent().unwrap_or(work_tree) } else { work_tree };
        let words: Vec<&str> = match one {
            true => vec![value],
            false => {
                value.split(|c: char| c.is_whitespace() || "!;&|()<>\"'`=$".contains(c)).collect()
            }
        };
        let file = |word: &&str| !word.is_empty() && from.join(word).is_file();
        let words = words.into_iter().filter(|word| one || word.contains('/') || file(word));
        // What looks absolute may follow a substitution.
        let words =
            words.flat_map(|word| [word, if one { word } else { word.trim_start_matches('/') }]);
        for word in words {
            let path = match (word.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => from.join(word),
            };
            let path = without_dots(&path);
            if named.insert(path.clone()) && include && left > 0 {
                follow(&path, work_tree, home, left - 1, named);
            }
        }
    }
}

/// The path without `.` and `..`, by its text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The folder that relative paths in the configuration of a repository begin at.
pub(crate) fn work_tree_of(repository: &Path) -> PathBuf {
    let parent = |path: &Path| path.parent().map(Path::to_path_buf);
    let own = repository.file_name().is_some_and(|name| name == ".git");
    let linked = || parent(&repository.join(text(&repository.join("gitdir"))?.trim()));
    let named = || work_tree_by_config(repository);
    let found = own.then(|| parent(repository)).flatten().or_else(linked).or_else(named);
    found.unwrap_or_else(|| repository.to_path_buf())
}

/// The work tree that the configuration of a repository names: that of a submodule, mostly.
pub(crate) fn work_tree_by_config(repository: &Path) -> Option<PathBuf> {
    let files = ["config.worktree", "config"].map(|name| repository.join(name));
    let mut all = files.iter().filter_map(|file| text(file)).flat_map(|text| settings(&text));
    let (_, folder) = all.find(|(key, _)| key == "core.worktree")?;
    Some(without_dots(&repository.join(folder)))
}

/// The configuration files of a repository; a linked work tree has those of its repository, too.
pub(crate) fn configs_of(repository: &Path) -> Vec<PathBuf> {
    let common = text(&repository.join("commondir")).map(|common| repository.join(common.trim()));
    let folders = [Some(repository.to_path_buf()), common].into_iter().flatten();
    folders.flat_map(|dir| ["config", "config.worktree"].map(|name| dir.join(name))).collect()
}

/// The repository that a `.git` entry is or names.
pub(crate) fn at(git: &Path) -> Option<PathBuf> {
    if is_folder(git) { Some(git.to_path_buf()) } else { target_of(git) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "[core] hooksPath = \"a b\" # c\n[Include]\n\tPATH = ../x\n[alias]\n\tst = \
                    \"!./run \\\"q\\\"\"\n[filter \"a.b]\"]\n\tclean = ./c \\\n  more\n\tbare\n";
        let found = settings(text);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(
            found,
            [
                ("core.hookspath", "a b"),
                ("include.path", "../x"),
                ("alias.st", "!./run \"q\""),
                ("filter.clean", "./c   more"),
                ("filter.bare", "true"),
            ]
        );
    }

    #[test]
    fn paths_that_settings_name_are_found_through_includes() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        std::fs::create_dir(top.join(".git")).unwrap();
        let config = "[core]\nhooksPath = .githooks\nsshCommand = ssh -F ./ssh/config\neditor = \
                      vim\n[include]\npath = ../.gitconfig\n[branch \"m\"]\nmerge = refs/heads/m\n";
        std::fs::write(top.join(".git/config"), config).unwrap();
        std::fs::write(top.join(".gitconfig"), "[alias]\nx = !tools/x.sh --flag\n").unwrap();
        let named = named_by(&top.join(".git/config"), top, None);
        let named: Vec<&Path> = named.iter().map(|path| path.strip_prefix(top).unwrap()).collect();
        let expected = [".gitconfig", ".githooks", "ssh/config", "tools/x.sh"];
        assert_eq!(named, expected.map(Path::new));
    }

    #[test]
    fn a_damaged_index_has_no_links_and_does_not_panic() {
        let mut bytes = b"DIRC\0\0\0\x04\0\0\0\x09".to_vec();
        bytes.extend(std::iter::repeat_n(0xff, 300));
        for length in 0..bytes.len() {
            for version in 2..5 {
                if let Some(byte) = bytes.get_mut(7) {
                    *byte = version;
                }
                let bytes = bytes.get(..length).unwrap_or_default();
                assert_eq!(tracked_in(bytes, 20, |_| true), Tracked::default());
            }
        }
    }
}
