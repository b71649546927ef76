//! Our own calls of git, with everything switched off that a repository could make it run: a plain `git status` runs programs that
//! the repository chooses.

use std::path::Path;
use std::process::{Command, Stdio};

/// Settings that name programs, and what they are here.
const QUIET: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "diff.external=",
];
/// Never the one that a folder on the path holds.
const PROGRAMS: &[&str] = &["/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/opt/homebrew/bin/git"];

/// Git and the options that keep it quiet in this folder; what it shall do comes behind. `None` if there is no git.
#[must_use]
pub fn quiet(root: &Path) -> Option<Vec<String>> {
    let mut words = plain()?;
    // Filters are switched off one by one: there is no setting for all of them.
    let args = [
        "config",
        "--name-only",
        "-z",
        "--get-regexp",
        r"^(filter|diff)\..*\.(clean|smudge|process|required|command|textconv)$",
    ];
    let set = run(words.clone(), root, &args).unwrap_or_default();
    for name in set.split('\0').filter(|name| !name.is_empty()) {
        let off = if name.ends_with(".required") { "false" } else { "" };
        words.extend(["-c".to_owned(), format!("{name}={off}")]);
    }
    Some(words)
}

fn plain() -> Option<Vec<String>> {
    let program = PROGRAMS.iter().find(|path| Path::new(path).is_file())?;
    let mut words = vec![(*program).to_owned(), "--no-optional-locks".into(), "--literal-pathspecs".into()];
    words.extend(QUIET.iter().flat_map(|set| ["-c".to_owned(), (*set).to_owned()]));
    Some(words)
}

/// What git says, run by ourselves and without a box: only for what compares no files, since that is where filters run.
#[must_use]
pub fn ask(root: &Path, args: &[&str]) -> Option<Vec<String>> {
    Some(run(plain()?, root, args)?.lines().map(str::to_owned).collect())
}

fn run(words: Vec<String>, root: &Path, args: &[&str]) -> Option<String> {
    let (program, first) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(first).args(args).current_dir(root).env_clear().env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).into_owned())
}
