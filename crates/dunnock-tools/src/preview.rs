//! What a command that needs approval would destroy, as far as that can be known without running
//! it.

use crate::git;
use dunnock_core::Call;
use dunnock_core::policy::{self, Loses};
use dunnock_proto::CallPreview;
use std::path::{Component, Path, PathBuf};

/// Maximum files and folders examined for one call.
const MOST: u64 = 100_000;

/// Everything a call would destroy, judged by its command line, with current counts.
pub(crate) fn of(root: &Path, call: &Call) -> Vec<CallPreview> {
    policy::loses(call).iter().filter_map(|loses| one(root, loses)).collect()
}

/// The programs that a call with more access would run, where they are found for it.
#[cfg(target_os = "linux")]
pub(crate) fn programs(
    layout: &dunnock_sandbox::Layout,
    root: &Path,
    call: &Call,
) -> Vec<CallPreview> {
    let names = policy::programs(call);
    let found = names.iter().filter_map(|name| layout.approved_program(root, name));
    found.map(|path| CallPreview::Runs { program: path.display().to_string() }).collect()
}

/// The server that a call would use, and in what its tool differs from when it was last used.
#[cfg(target_os = "linux")]
pub(crate) fn server_tool(
    servers: &crate::servers::roster::Servers,
    tool: &dunnock_proto::ServerTool,
    isolation: dunnock_proto::Isolation,
) -> Vec<CallPreview> {
    let sandboxed = isolation != dunnock_proto::Isolation::D;
    let about = servers.describe_access(tool.server_name(), sandboxed);
    let about = about.map(|(target, access)| CallPreview::UsesServer { target, access });
    let differences = servers.differences(&tool.name).into_iter().map(|difference| {
        let dunnock_mcp::DescriptionChange { part, before, after } = difference;
        CallPreview::DescriptionChanged { part: part.to_owned(), before, after }
    });
    about.into_iter().chain(differences).collect()
}

/// What a call that asks for a login could use.
#[cfg(target_os = "linux")]
pub(crate) fn login(
    layout: &dunnock_sandbox::Layout,
    root: &Path,
    call: &Call,
    isolation: dunnock_proto::Isolation,
) -> Vec<CallPreview> {
    let command = dunnock_proto::CommandArgs::parse(call.args()).ok().map(|args| args.command);
    let found =
        command.and_then(|command| crate::login::credentials(layout, root, &command, isolation));
    let words = found.map(|found| found.words).unwrap_or_default();
    if words.is_empty() {
        return vec![CallPreview::FindsNoLogin];
    }
    words.into_iter().map(|what| CallPreview::UsesLogin { what }).collect()
}

fn one(root: &Path, loses: &Loses) -> Option<CallPreview> {
    match loses {
        Loses::Paths { paths, more } => {
            let inside: Vec<&str> =
                paths.iter().map(String::as_str).filter(|path| is_inside(path)).collect();
            let mut left = MOST;
            let files: u64 = inside.iter().map(|path| count(root.join(path), &mut left)).sum();
            let more = *more || left == 0 || inside.len() < paths.len();
            (files > 0).then(|| CallPreview::Deletes {
                files,
                untracked: untracked(root, &inside),
                more,
            })
        }
        Loses::Stash => Some(CallPreview::DiscardsStash),
        Loses::Untracked { ignored } => {
            let args: &[&str] = if *ignored {
                &["ls-files", "-o"]
            } else {
                &["ls-files", "-o", "--exclude-standard"]
            };
            git::ask(root, args)
                .map(|names| CallPreview::DeletesUntracked { files: names.len() as u64 })
        }
        // Comparing files would run filters that the repository chooses; listing staged changes
        // does not.
        Loses::Changes => git::ask(
            root,
            &["diff-index", "--cached", "--name-only", "--ignore-submodules=all", "HEAD"],
        )
        .map(|names| CallPreview::DiscardsChanges { staged: names.len() as u64 }),
    }
}

/// Whether a path stays inside the folder, judged by its components alone.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
}

/// Counts the files below a path. `left` limits how many entries are examined.
fn count(path: PathBuf, left: &mut u64) -> u64 {
    let mut waiting = vec![path];
    let mut files = 0;
    while let Some(path) = waiting.pop().filter(|_| *left > 0) {
        *left -= 1;
        match path.symlink_metadata() {
            Ok(about) if about.is_dir() => {
                let room = usize::try_from(*left).unwrap_or(usize::MAX);
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten().take(room);
                waiting.extend(entries.map(|entry| entry.path()));
            }
            Ok(_) => files += 1,
            Err(_) => {}
        }
    }
    files
}

fn untracked(root: &Path, paths: &[&str]) -> u64 {
    let args: Vec<&str> =
        ["--literal-pathspecs", "ls-files", "-o", "--"].iter().chain(paths).copied().collect();
    git::ask(root, &args).map_or(0, |names| names.len() as u64)
}
