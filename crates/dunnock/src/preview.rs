//! What a command that waits would do to the folder, where that can be known: looked at, never tried.

use dunnock_core::policy::{self, Loses};
use dunnock_core::{Call, State};
use dunnock_proto::{About, QuestionId, Rule};
use dunnock_tools::git;
use std::path::Path;

/// Entries that are counted, at most.
const MOST: usize = 100_000;

/// What a person should know of a command that waits.
pub(crate) struct Look {
    /// What it would do to the folder, where that is known.
    pub(crate) does: Option<String>,
    /// The rule that "always" would grant, and its words.
    pub(crate) rule: Option<(Rule, String)>,
}

/// A look at the command that a question is about. `None` for other questions.
pub(crate) fn about(s: &State, question: QuestionId) -> Option<Look> {
    let About::Approval { call } = s.question(question)?.about else { return None };
    let call = s.call(call)?;
    // All of it: what calls of this shape are let have is part of the rule.
    let rule = policy::offer(s, call).map(|rule| (rule.clone(), crate::rules::words(&rule)));
    Some(Look { does: of(s, call), rule })
}

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
                git::ask(root, args)
                    .map(|names| format!("deletes up to {} that git does not track", number(names.len())))
            }
            // To compare files git would run filters of the repository's choice: what is staged can be told without.
            Loses::Changes => {
                git::ask(root, &["diff-index", "--cached", "--name-only", "--ignore-submodules=all", "HEAD"])
                    .map(|names| format!("throws away changes that are not committed ({} staged)", number(names.len())))
            }
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
    match git::ask(root, &args) {
        Some(names) if !names.is_empty() => format!(", {} untracked", names.len()),
        _ => String::new(),
    }
}
