//! Runs git for our own use, with everything disabled that a repository could make it run: even a
//! plain `git status` runs programs that the repository chooses.

use std::io::Read as _;
use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Overrides for settings that name a program or lead git to run one.
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
/// Environment variables for the same purpose. The `git config` query and the git command that
/// follows read the same configuration files, and never the user's own: a repository could refer to
/// the user's home.
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
/// Timeout for one of our own git calls.
const PATIENCE: Duration = Duration::from_secs(20);
/// Fixed paths: a `git` from some folder in `PATH` is never used.
const PROGRAMS: &[&str] =
    &["/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/opt/homebrew/bin/git"];

/// The state of a folder's work tree: the folder that has its `HEAD`.
#[cfg(unix)]
fn own_folder(folder: &Path) -> Option<PathBuf> {
    let dot = folder.ancestors().map(|dir| dir.join(".git")).find(|dot| dot.exists())?;
    match dot.is_dir() {
        true => Some(dot),
        // In a worktree, `.git` is a file that points to its own state.
        false => Some(dot.parent()?.join(text_of(&dot, 4096)?.strip_prefix("gitdir:")?.trim())),
    }
}

/// The branch checked out in a folder's repository, read without running git. `None` for anything
/// that does not look like a branch: a hostile `.git` file can lead to other people's files.
#[cfg(unix)]
pub(crate) fn branch(folder: &Path) -> Option<String> {
    let head = text_of(&own_folder(folder)?.join("HEAD"), 4096)?;
    head.lines().next()?.strip_prefix("ref: refs/heads/").map(|name| name.trim().to_owned())
}

/// The commit checked out in a folder's repository, read from its files without running git.
#[cfg(unix)]
pub(crate) fn commit(folder: &Path) -> Option<String> {
    let small = |path: &Path| text_of(path, 4096);
    let own = own_folder(folder)?;
    let common =
        small(&own.join("commondir")).map_or_else(|| own.clone(), |text| own.join(text.trim()));
    let is_commit =
        |text: &str| matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    let head = small(&own.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
        return Some(head.trim().to_owned()).filter(|text| is_commit(text));
    };
    if name.contains("..") || name.starts_with('/') {
        return None;
    }
    let loose = small(&common.join(name)).map(|text| text.trim().to_owned());
    let packed = || {
        let all = text_of(&common.join("packed-refs"), 256 << 20)?;
        all.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').map(str::to_owned))
    };
    loose.or_else(packed).filter(|text| is_commit(text))
}

/// The text of a regular file of at most this size. Commands can put anything in its place.
#[cfg(unix)]
pub(crate) fn text_of(path: &Path, most: u64) -> Option<String> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// The git program and the options that disable everything it could run in this folder; the caller
/// appends the subcommand.
///
/// # Errors
/// With a message for the model, when git is missing, the repository has a setting that cannot be
/// disabled, or its work tree is elsewhere.
pub fn quiet(root: &Path) -> Result<Vec<String>, String> {
    let mut words =
        plain().ok_or_else(|| format!("git was not found at {}", PROGRAMS.join(", ")))?;
    // Filters are disabled one by one: no setting disables all of them.
    let pattern = r"^(filter|diff)\..*\.(clean|smudge|process|required|command|textconv)$";
    let set = run(words.clone(), root, &["config", "--name-only", "-z", "--get-regexp", pattern])
        .unwrap_or_default();
    for name in set.split('\0').filter(|name| !name.is_empty()) {
        if name.contains('=') {
            return Err(format!(
                "git was not run: this repository has a setting that cannot be disabled ({name:?})"
            ));
        }
        let off = if name.ends_with(".required") { "false" } else { "" };
        words.extend(["-c".to_owned(), format!("{name}={off}")]);
    }
    // Of the user's own settings, keep those that affect how files are compared.
    for name in ["core.autocrlf", "core.eol", "core.fileMode"] {
        if let Some(value) = of_the_person(name) {
            words.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
    }
    // A repository may name its own work tree, but it must contain the workspace.
    let top = run(words.clone(), root, &["rev-parse", "--show-toplevel"]).unwrap_or_default();
    let top = Path::new(top.trim_end_matches('\n'));
    match top.as_os_str().is_empty() || root.starts_with(top) {
        true => Ok(words),
        false => Err(format!(
            "git was not run: the work tree of this repository is elsewhere ({})",
            top.display()
        )),
    }
}

fn plain() -> Option<Vec<String>> {
    let program = PROGRAMS.iter().find(|path| Path::new(path).is_file())?;
    let mut words = vec![(*program).to_owned()];
    words.extend(QUIET.iter().flat_map(|set| ["-c".to_owned(), (*set).to_owned()]));
    // The user chose to work here, so the owner of the folder does not matter.
    words.extend(["-c".to_owned(), "safe.directory=*".to_owned()]);
    Some(words)
}

/// Runs git without a sandbox and returns its output lines. Only for commands that do not compare
/// file contents, because comparing runs filters.
#[must_use]
pub fn ask(root: &Path, args: &[&str]) -> Option<Vec<String>> {
    Some(run(plain()?, root, args)?.lines().map(str::to_owned).collect())
}

fn run(words: Vec<String>, root: &Path, args: &[&str]) -> Option<String> {
    bytes(words, root, args).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn bytes(words: Vec<String>, root: &Path, args: &[&str]) -> Option<Vec<u8>> {
    let (program, first) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(first).args(args).current_dir(root).env_clear().envs(SURROUNDINGS.iter().copied());
    finished(command)
}

/// An object of the repository, as git finds it: its name may not be true.
#[cfg(target_os = "linux")]
pub(crate) fn object(root: &Path, kind: &str, name: &str) -> Option<Vec<u8>> {
    bytes(plain()?, root, &["--no-replace-objects", "cat-file", kind, name])
}

/// Reads a setting from the user's global configuration, which no repository can change.
fn of_the_person(name: &str) -> Option<String> {
    let program = PROGRAMS.iter().find(|path| Path::new(path).is_file())?;
    let mut command = Command::new(program);
    command.args(["config", "--global", "--get", name]).current_dir("/").env_clear();
    command.envs(
        ["HOME", "XDG_CONFIG_HOME"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))),
    );
    let text = String::from_utf8_lossy(&finished(command)?).trim().to_owned();
    Some(text).filter(|value| !value.is_empty())
}

/// The program's output, if it succeeds within `PATIENCE`.
fn finished(mut command: Command) -> Option<Vec<u8>> {
    let mut child =
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).spawn().ok()?;
    let mut out = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).map(|_| bytes)
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                break child.wait().ok()?;
            }
        }
    };
    let bytes = reader.join().ok()?.ok()?;
    status.success().then_some(bytes)
}
