//! What a command that waits would do to the folder, where that can be known: looked at, never tried.

use dunnock_core::policy::{self, Loses};
use dunnock_core::{Call, State};
use std::path::Path;
use std::process::{Command, Stdio};

/// Entries that are counted, at most.
const MOST: usize = 100_000;

/// In one line; nothing where it is not known.
pub(crate) fn of(s: &State, call: &Call) -> Option<String> {
    let root = Path::new(s.workspace.as_deref()?);
    let told: Vec<String> = policy::loses(call)
        .into_iter()
        .filter_map(|loses| match loses {
            Loses::Paths(paths) => {
                let files: usize = paths.iter().filter_map(|path| inside(root, path)).map(|path| count(&path)).sum();
                (files > 0).then(|| format!("deletes {}{}", number(files), untracked(root, &paths)))
            }
            Loses::Untracked { ignored } => {
                let args: &[&str] =
                    if ignored { &["ls-files", "-o"] } else { &["ls-files", "-o", "--exclude-standard"] };
                git(root, args).map(|names| format!("deletes up to {} that git does not track", number(names.len())))
            }
            // To compare files git would run filters of the repository's choice: what is staged can be told without.
            Loses::Changes => git(root, &["diff-index", "--cached", "--name-only", "--ignore-submodules=all", "HEAD"])
                .map(|names| format!("throws away changes that are not committed ({} staged)", number(names.len()))),
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn number(files: usize) -> String {
    match files {
        1 => "1 file".into(),
        MOST.. => format!("more than {MOST} files"),
        n => format!("{n} files"),
    }
}

/// A path of the folder; nothing for one that leads out of it.
fn inside(root: &Path, path: &str) -> Option<std::path::PathBuf> {
    let path = Path::new(path);
    let plain = path.components().all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir));
    plain.then(|| root.join(path))
}

fn count(path: &Path) -> usize {
    let mut waiting = vec![path.to_path_buf()];
    let mut files = 0;
    while let Some(path) = waiting.pop() {
        match path.symlink_metadata() {
            Ok(about) if about.is_dir() => {
                waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            Ok(_) => files += 1,
            Err(_) => {}
        }
        if files >= MOST {
            break;
        }
    }
    files
}

fn untracked(root: &Path, paths: &[String]) -> String {
    let mut args = vec!["ls-files", "-o", "--"];
    args.extend(paths.iter().map(String::as_str));
    match git(root, &args) {
        Some(names) if !names.is_empty() => format!(", {} untracked", names.len()),
        _ => String::new(),
    }
}

/// Git's own answer, with everything switched off that a repository could make it run.
fn git(root: &Path, args: &[&str]) -> Option<Vec<String>> {
    const QUIET: &[&str] = &[
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.pager=cat",
        "core.untrackedCache=false",
        "safe.bareRepository=explicit",
        "protocol.allow=never",
        "diff.external=",
    ];
    let programs = ["/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/opt/homebrew/bin/git"];
    let mut command = Command::new(programs.iter().find(|path| Path::new(path).is_file())?);
    command.args(QUIET.iter().flat_map(|set| ["-c", set]));
    command.args(args).current_dir(root).env_clear().env("GIT_OPTIONAL_LOCKS", "0").env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    ran.status.success().then(|| text.lines().map(str::to_owned).collect())
}
