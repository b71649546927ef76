//! Our own calls of git, with everything switched off that a repository could make it run: a plain `git status` runs programs that
//! the repository chooses.

use std::path::Path;
use std::process::{Command, Stdio};

/// Settings that name programs, or lead to some, and what they are here.
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
    "diff.submodule=short",
];
/// The same for what is no setting. Whoever is asked sees the same files of settings as whoever acts: none of the person's, whose
/// home a repository could name.
pub(crate) const SURROUNDINGS: &[(&str, &str)] = &[
    ("HOME", "/nonexistent"),
    ("XDG_CONFIG_HOME", "/nonexistent"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
];
/// Never the one that a folder on the path holds.
const PROGRAMS: &[&str] = &["/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/opt/homebrew/bin/git"];

/// Git and the options that keep it quiet in this folder; what it shall do comes behind.
///
/// # Errors
/// In words for the model, when there is no git, or the repository has something that cannot be switched off.
pub fn quiet(root: &Path) -> Result<Vec<String>, String> {
    let mut words = plain(root).ok_or("there is no git on this machine")?;
    // Filters are switched off one by one: there is no setting for all of them.
    let pattern = r"^(filter|diff)\..*\.(clean|smudge|process|required|command|textconv)$";
    let set = run(words.clone(), root, &["config", "--name-only", "-z", "--get-regexp", pattern]).unwrap_or_default();
    for name in set.split('\0').filter(|name| !name.is_empty()) {
        if name.contains('=') {
            return Err(format!(
                "this repository has a setting that cannot be switched off ({name:?}): git is not run"
            ));
        }
        let off = if name.ends_with(".required") { "false" } else { "" };
        words.extend(["-c".to_owned(), format!("{name}={off}")]);
    }
    // Where the files are is the repository's to say, but not anywhere.
    let top = run(words.clone(), root, &["rev-parse", "--show-toplevel"]).unwrap_or_default();
    let top = Path::new(top.trim_end_matches('\n'));
    match top.as_os_str().is_empty() || root.starts_with(top) {
        true => Ok(words),
        false => Err(format!("the files of this repository are elsewhere ({}): git is not run", top.display())),
    }
}

fn plain(root: &Path) -> Option<Vec<String>> {
    let program = PROGRAMS.iter().find(|path| Path::new(path).is_file())?;
    let mut words = vec![(*program).to_owned()];
    words.extend(QUIET.iter().flat_map(|set| ["-c".to_owned(), (*set).to_owned()]));
    // The person works here: it does not matter who made the folder.
    words.extend(["-c".to_owned(), format!("safe.directory={}", root.display())]);
    Some(words)
}

/// What git says, run by ourselves and without a box: only for what compares no files, since that is where filters run.
#[must_use]
pub fn ask(root: &Path, args: &[&str]) -> Option<Vec<String>> {
    Some(run(plain(root)?, root, args)?.lines().map(str::to_owned).collect())
}

fn run(words: Vec<String>, root: &Path, args: &[&str]) -> Option<String> {
    let (program, first) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(first).args(args).current_dir(root).env_clear().envs(SURROUNDINGS.iter().copied());
    let ran = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).into_owned())
}
