//! Git commands that change a repository which is larger than the workspace. The sandbox lets
//! commands read such a repository; only an approved command can write to it.

use super::lists::{Findings, git};
use super::words::CommandLine;
use super::wrap::unwrapped;
use dunnock_proto::Reason;

/// Adds the access that git commands of this line need to change the repository.
pub(super) fn note(line: &CommandLine, found: &mut Findings) {
    for command in &unwrapped(line).commands {
        let Some((sub, rest)) = git(command) else { continue };
        if changes(sub, &rest) {
            let reason = Reason::ChangesRepository { command: format!("git {sub}") };
            found.access.repository = true;
            if !found.reasons.contains(&reason) {
                found.reasons.push(reason);
            }
        }
    }
}

/// Whether a git command writes to the git folder or to files of the whole work tree.
fn changes(sub: &str, rest: &[&str]) -> bool {
    // The values of these options are no operands.
    let mut value = false;
    let rest: Vec<&str> = rest
        .iter()
        .copied()
        .filter(|word| {
            let of_option = std::mem::replace(&mut value, matches!(*word, "--format" | "--sort"));
            !of_option
        })
        .collect();
    let operands: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let first = operands.first().copied();
    let has = |words: &[&str]| {
        rest.iter().any(|word| words.contains(&word.split('=').next().unwrap_or(word)))
    };
    let short = |letters: &[char]| {
        rest.iter().any(|w| w.starts_with('-') && !w.starts_with("--") && w.contains(letters))
    };
    let lists = || {
        has(&["-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged"])
            || has(&["--points-at", "-n"])
    };
    match sub {
        "am" | "checkout" | "checkout-index" | "cherry-pick" | "commit" | "commit-graph"
        | "commit-tree" | "fast-import" | "filter-branch" | "filter-repo" | "gc" | "index-pack"
        | "maintenance" | "merge" | "merge-tree" | "mktag" | "mktree" | "multi-pack-index"
        | "pack-refs" | "prune" | "prune-packed" | "pull" | "push" | "read-tree" | "rebase"
        | "repack" | "replace" | "replay" | "reset" | "restore" | "revert" | "stage"
        | "subtree" | "svn" | "switch" | "unpack-objects" | "update-index" | "update-ref"
        | "write-tree" => true,
        "add" | "mv" | "rm" => !(short(&['n']) || has(&["--dry-run"])),
        "apply" => has(&["--index", "--cached", "-3", "--3way"]),
        "bisect" => !matches!(first, None | Some("log" | "view" | "visualize" | "terms")),
        "branch" => {
            let acts = ["--delete", "--move", "--copy", "--force", "--set-upstream-to"];
            let more = ["--unset-upstream", "--edit-description", "--track"];
            has(&acts) || has(&more) || short(&BRANCH) || (first.is_some() && !lists())
        }
        "config" => {
            let reads = ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"];
            let elsewhere = ["--global", "--system", "-f", "--file"];
            let acts = ["--unset", "--unset-all", "--add", "--replace-all", "--edit", "-e"];
            let verb = matches!(first, Some("get" | "list"));
            let one = operands.len() == 1 && !has(&acts);
            !(has(&reads) || has(&elsewhere) || verb || one)
        }
        "fetch" => !has(&["--dry-run"]),
        "hash-object" => has(&["-w"]),
        "lfs" => !matches!(first, None | Some("ls-files" | "status" | "env" | "version")),
        "notes" | "sparse-checkout" => !matches!(first, None | Some("list" | "show")),
        "reflog" => matches!(first, Some("expire" | "delete" | "drop" | "write")),
        "remote" => !matches!(first, None | Some("show" | "get-url")),
        "rerere" => !matches!(first, Some("status" | "diff" | "remaining")),
        "stash" => !matches!(first, Some("list" | "show")),
        "submodule" => !matches!(first, None | Some("status" | "summary")),
        "symbolic-ref" => operands.len() > 1 || has(&["-d", "--delete"]),
        "tag" => first.is_some() && !lists() && !has(&["-v", "--verify"]),
        "worktree" => !matches!(first, None | Some("list")),
        _ => false,
    }
}

/// Letters of short options with which `git branch` changes something.
const BRANCH: [char; 9] = ['d', 'D', 'm', 'M', 'c', 'C', 'u', 'f', 't'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_only_read_do_not_ask() {
        let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
        let changes = |line: &'static str| {
            let words = words(line);
            let (sub, rest) = words.split_first().unwrap();
            changes(sub, rest)
        };
        for line in [
            "status --short",
            "log -3",
            "diff",
            "show HEAD",
            "branch",
            "branch -a",
            "branch -vv",
            "branch --list x*",
            "branch --show-current",
            "branch --merged main",
            "tag",
            "tag -l v*",
            "tag -n3",
            "remote -v",
            "remote get-url origin",
            "stash list",
            "stash show -p",
            "worktree list",
            "config user.name",
            "config --get a.b",
            "config --list",
            "reflog",
            "reflog show",
            "submodule status",
            "symbolic-ref HEAD",
            "apply x.patch",
            "hash-object a",
            "config --global user.name x",
            "config --show-origin user.name",
            "branch --format %(refname) --sort -committerdate",
            "tag -v v1",
            "bisect log",
            "add -n .",
            "fetch --dry-run",
            "lfs ls-files",
            "ls-files",
            "grep x",
            "init x",
            "clone a b",
        ] {
            assert!(!changes(line), "{line}");
        }
        for line in [
            "add -A",
            "commit -m x",
            "switch main",
            "checkout -b x",
            "branch new",
            "branch -D x",
            "branch -m a b",
            "branch --set-upstream-to=o/m",
            "tag v1",
            "tag -d v1",
            "remote add o u",
            "stash",
            "stash pop",
            "stash push -m x",
            "worktree add ../x",
            "config user.name x",
            "config --unset a.b",
            "reflog expire --all",
            "submodule update",
            "symbolic-ref HEAD refs/heads/x",
            "apply --index x.patch",
            "hash-object -w a",
            "fetch",
            "pull",
            "push",
            "rebase main",
            "restore a",
            "rm a",
            "gc",
            "update-ref refs/heads/x HEAD",
            "reset HEAD a",
            "merge x",
        ] {
            assert!(changes(line), "{line}");
        }
    }
}
