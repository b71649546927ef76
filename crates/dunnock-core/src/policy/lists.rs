//! What the text of a command reveals: what is never run, what needs approval although the sandbox
//! would contain it, and what is read-only.
//!
//! Text may only tighten the rules. Nothing here allows a command that the sandbox would not
//! contain; if a line is not understood, the callers choose the strict side.

use super::words::{CommandLine, Simple, Word};
use super::wrap::{base, unwrapped};
use dunnock_proto::{Access, Isolation, Reason, Rule};

fn whole_network() -> Access {
    Access { network: true, ..Access::NOTHING }
}
fn secrets() -> Access {
    Access { secrets: true, ..Access::NOTHING }
}
fn protected_files() -> Access {
    Access { protected: true, ..Access::NOTHING }
}
/// git writes its configuration, but no hook.
fn git_config() -> Access {
    Access { git_config: true, ..Access::NOTHING }
}
fn unsandboxed() -> Access {
    Access { unsandboxed: true, ..Access::NOTHING }
}

/// What the lists find in a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Why it is never run, if so.
    pub never: Option<String>,
    /// Why approval is needed.
    pub reasons: Vec<Reason>,
    /// What it needs beyond the sandbox.
    pub access: Access,
    /// What the person may grant instead: the network, where it needs named hosts of it.
    pub wider: Access,
    /// The rule that opened the hosts it needs.
    pub opened_by: Option<Rule>,
}

/// A file or folder that other programs run or follow automatically: a change there can become a
/// command that nobody approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedName {
    /// The end of its path, in lower case, at any depth. A name may begin with `*`.
    pub path: &'static str,
    /// The sandbox makes it read-only where the kernel can. A command may touch the others, so that
    /// git can move them with their folders; changes are reverted when it has ended.
    pub read_only: bool,
}

const fn read_only(path: &'static str) -> ProtectedName {
    ProtectedName { path, read_only: true }
}

const fn watched(path: &'static str) -> ProtectedName {
    ProtectedName { path, read_only: false }
}

/// All protected names. Edit tools ask before they write to them; commands cannot change them.
/// Repositories of git have rules of their own.
pub const PROTECTED: &[ProtectedName] = &[
    read_only(".dunnock"),
    read_only(".vscode"),
    read_only(".idea"),
    read_only(".mcp.json"),
    read_only(".cursor"),
    read_only(".claude"),
    read_only(".codex"),
    read_only(".envrc"),
    read_only(".npmrc"),
    read_only(".husky"),
    read_only(".cargo/config.toml"),
    read_only(".cargo/config"),
    read_only(".github/workflows"),
    // Instructions of agents.
    watched("agents.md"),
    watched("agents.override.md"),
    watched("agent.md"),
    watched(".agents"),
    watched(".github/agents"),
    watched("claude.md"),
    watched("claude.local.md"),
    watched("gemini.md"),
    watched("qwen.md"),
    watched(".cursorrules"),
    watched(".windsurfrules"),
    watched(".clinerules"),
    watched(".goosehints"),
    watched(".github/copilot-instructions.md"),
    watched(".github/instructions"),
    watched(".github/prompts"),
    // Settings of agents.
    watched(".gemini"),
    watched(".opencode"),
    watched("opencode.json"),
    watched("opencode.jsonc"),
    watched(".kiro"),
    watched(".roo"),
    watched(".roomodes"),
    watched(".continue"),
    watched(".windsurf"),
    watched(".amazonq"),
    watched(".augment"),
    watched(".qwen"),
    watched(".crush.json"),
    watched("crush.json"),
    watched(".junie"),
    watched(".openhands"),
    watched(".rules"),
    watched(".aider.conf.yml"),
    // Settings and tasks of editors.
    watched(".zed"),
    watched(".fleet"),
    watched(".helix"),
    watched(".devcontainer"),
    watched(".devcontainer.json"),
    watched("*.code-workspace"),
    watched(".exrc"),
    watched(".nvimrc"),
    watched(".nvim.lua"),
    watched(".vimrc"),
    watched(".dir-locals.el"),
    watched(".gdbinit"),
    watched(".lldbinit"),
    watched(".gitpod.yml"),
    watched(".rprofile"),
    // Hooks.
    watched(".githooks"),
    watched(".gitmodules"),
    watched(".pre-commit-config.yaml"),
    watched(".pre-commit-config.yml"),
    watched("lefthook.yml"),
    watched("lefthook.yaml"),
    watched(".lefthook.yml"),
    watched(".lefthook.yaml"),
    watched("lefthook.toml"),
    watched("lefthook.json"),
    watched("lefthook-local.yml"),
    // CI.
    watched(".github/actions"),
    watched(".gitlab-ci.yml"),
    watched(".circleci"),
    watched(".travis.yml"),
    watched(".buildkite"),
    watched(".woodpecker.yml"),
    watched(".woodpecker"),
    watched(".drone.yml"),
    watched("bitbucket-pipelines.yml"),
    watched("azure-pipelines.yml"),
    watched("jenkinsfile"),
    watched(".gitea/workflows"),
    watched(".forgejo/workflows"),
    watched(".cirrus.yml"),
    // Package managers and version managers.
    watched(".yarnrc"),
    watched(".yarnrc.yml"),
    watched(".pnpmfile.cjs"),
    watched("bunfig.toml"),
    watched("mise.toml"),
    watched(".mise.toml"),
    watched("mise.local.toml"),
    watched("rust-toolchain.toml"),
    watched("rust-toolchain"),
    watched(".bazelrc"),
];
/// Edit tools never write there.
const NEVER: &[&str] = &[".git", ".dunnock"];

/// Whether a path has a protected name: edit tools ask before they write to it.
#[must_use]
pub fn is_protected(path: &str) -> bool {
    !of_edit(path).reasons.is_empty()
}

/// What the lists find in an edit of a path.
#[must_use]
pub fn of_edit(path: &str) -> Findings {
    let names = names(path);
    let mut found = Findings::default();
    if names.iter().any(|name| NEVER.contains(&name.as_str())) {
        found.never = Some("edit tools never write to .git or .dunnock".into());
    }
    let same = |(name, known): (&String, &str)| match known.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => name == known,
    };
    let within = |known: &&ProtectedName| {
        let parts = known.path.split('/');
        names.windows(parts.clone().count()).any(|part| part.iter().zip(parts.clone()).all(same))
    };
    if let Some(known) = PROTECTED.iter().find(within) {
        found.reasons.push(Reason::EditsProtected { file: known.path.to_owned() });
    }
    found
}

/// The components of a path as a file system may read them: without case, invisible characters,
/// short names and streams.
fn names(path: &str) -> Vec<String> {
    let visible: String = path.chars().filter(|c| !is_invisible(*c)).collect();
    let parts = visible.split(['/', '\\']).map(|name| name.split(':').next().unwrap_or(name));
    let parts = parts.map(|name| name.trim_end_matches([' ', '.']).to_lowercase());
    let parts = parts.map(|name| if name.starts_with("git~") { ".git".into() } else { name });
    parts.filter(|name| !name.is_empty()).collect()
}

/// Whether a character is invisible.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a path names a file that usually holds secrets.
#[must_use]
pub fn is_secret(path: &str) -> bool {
    let name = base(path).to_ascii_lowercase();
    let example = [".example", ".sample", ".template", ".dist", ".defaults"]
        .iter()
        .any(|end| name.ends_with(end));
    (name == ".env" || name.starts_with(".env.")) && !example
}

/// What the lists find in a command line at this isolation level. `serves`: an earlier call left
/// something running, which may be a server.
#[must_use]
pub fn of_line(line: &CommandLine, level: Isolation, serves: bool) -> Findings {
    let all = unwrapped(line);
    // With a network namespace, a loopback address is that of the session.
    let is_private = matches!(level, Isolation::A | Isolation::B);
    let beside = all.commands.iter().any(|c| c.beside) || serves && is_private;
    let mut found = Findings::default();
    for command in &all.commands {
        if let Some(why) = never(command, &all) {
            found.never.get_or_insert(why);
        }
        for (reason, mut access) in asks(command, level, beside) {
            // Only a single command that is fully understood leaves the sandbox, never one next to
            // it.
            access.unsandboxed &= line.commands.len() == 1 && !line.obscure;
            found.access = found.access.and(&access);
            if !found.reasons.contains(&reason) {
                found.reasons.push(reason);
            }
        }
    }
    found
}

pub(super) fn flag(command: &Simple, short: &[char], long: &str) -> bool {
    command.texts().skip(1).take_while(|w| *w != "--").any(|w| match w.strip_prefix("--") {
        // Any prefix of a long option may stand for it.
        Some(name) => name.len() > 1 && long.starts_with(name.split('=').next().unwrap_or(name)),
        None => w.starts_with('-') && w.contains(short),
    })
}

/// Whether a word means the whole machine or a home folder, or could expand to that.
fn everything(word: &Word, line: &CommandLine) -> bool {
    let text = word.text.as_str();
    let cut = text.trim_end_matches(['/', '*', '.']);
    if !word.plain {
        if let Some(name) = cut.strip_prefix('$') {
            let name = name.trim_start_matches('{').trim_end_matches('}');
            let known = |set: &Word| set.text.starts_with(&format!("{name}="));
            let set_here = line.commands.iter().any(|c| c.sets.iter().any(known));
            return name == "HOME"
                || (text.len() > cut.len()
                    && !set_here
                    && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()));
        }
        if cut == "~" || (cut.starts_with('~') && !cut.contains('/')) {
            return true;
        }
    }
    text.starts_with('/')
        && matches!(
            cut,
            "" | "/home"
                | "/root"
                | "/etc"
                | "/usr"
                | "/var"
                | "/bin"
                | "/sbin"
                | "/lib"
                | "/lib64"
                | "/opt"
                | "/boot"
                | "/dev"
                | "/proc"
                | "/sys"
                | "/srv"
                | "/mnt"
                | "/Users"
                | "/System"
                | "/Library"
                | "/Applications"
        )
}

fn is_disk(path: &str) -> bool {
    let harmless =
        ["null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout", "stderr", "ptmx"];
    path.strip_prefix("/dev/").is_some_and(|name| {
        !harmless.contains(&name)
            && !["fd/", "pts/", "shm/", "tcp/", "udp/"].iter().any(|p| name.starts_with(p))
    })
}

/// Why a command is never run, if it is one of those.
fn never(command: &Simple, line: &CommandLine) -> Option<String> {
    let name = base(command.texts().next().unwrap_or_default());
    let args: Vec<&Word> = command.words.iter().skip(1).collect();
    let operand = |w: &&&Word| !w.text.starts_with('-');
    let all = || args.iter().filter(operand).any(|w| everything(w, line));
    if command.files.iter().any(|(sign, file)| sign.contains('>') && is_disk(&file.text)) {
        return Some("it would overwrite a disk".into());
    }
    match name {
        "rm" if flag(command, &['r', 'R'], "recursive") && all() => Some(
            "it would delete a whole system or home folder, or could if a variable is empty".into(),
        ),
        "chmod" | "chown" | "chgrp" if flag(command, &['R'], "recursive") && all() => {
            Some("it would change permissions or owners of a whole system or home folder".into())
        }
        "dd" if args.iter().any(|w| w.text.strip_prefix("of=").is_some_and(is_disk)) => {
            Some("it would overwrite a disk".into())
        }
        "wipefs" | "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "parted" | "mkswap" | "cryptsetup"
        | "blkdiscard" | "shred"
            if args.iter().any(|w| is_disk(&w.text)) =>
        {
            Some("it would overwrite a disk".into())
        }
        name if name == "mkfs" || name.starts_with("mkfs.") => {
            Some("it would overwrite a disk".into())
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => {
            Some("it would shut down or restart the machine".into())
        }
        "init" | "telinit" if args.iter().any(|w| matches!(w.text.as_str(), "0" | "6")) => {
            Some("it would shut down or restart the machine".into())
        }
        "systemctl"
            if args
                .iter()
                .any(|w| matches!(w.text.as_str(), "poweroff" | "reboot" | "halt" | "kexec")) =>
        {
            Some("it would shut down or restart the machine".into())
        }
        _ => None,
    }
}

/// The git subcommand, and what follows it.
pub(crate) fn git(command: &Simple) -> Option<(&str, Vec<&str>)> {
    let mut words = command.texts();
    if base(words.next()?) != "git" {
        return None;
    }
    loop {
        match words.next()? {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path"
            | "--config-env" => {
                words.next()?;
            }
            word if word.starts_with('-') => {}
            word => return Some((word, words.collect())),
        }
    }
}

/// git subcommands that replace files of the work tree by other versions of them.
const GIT_CHECKS_OUT: &[&str] = &[
    "am",
    "bisect",
    "checkout",
    "cherry-pick",
    "merge",
    "mv",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "switch",
];

/// Whether a git command replaces files of the work tree and can run nothing that its words name.
pub(super) fn checks_out(command: &Simple) -> bool {
    let words: Vec<&str> = command.texts().collect();
    let ["git", sub, rest @ ..] = words.as_slice() else { return false };
    let runs = |w: &&str| {
        matches!(*w, "run" | "visualize" | "view")
            || w.starts_with("--ex")
            || w.starts_with("--int")
            || w.starts_with("--str")
            || (w.starts_with('-') && !w.starts_with("--") && w.contains(['x', 'i', 's', 'X']))
    };
    GIT_CHECKS_OUT.contains(sub) && !rest.iter().any(runs)
}

/// git subcommands that write nothing.
const GIT_READS: &[&str] = &[
    "status",
    "diff",
    "log",
    "show",
    "blame",
    "grep",
    "ls-files",
    "ls-tree",
    "cat-file",
    "rev-parse",
    "rev-list",
    "describe",
    "shortlog",
    "name-rev",
    "merge-base",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "check-ignore",
    "check-attr",
    "count-objects",
    "fsck",
    "help",
    "version",
    "var",
    "whatchanged",
    "range-diff",
    "cherry",
    "archive",
    "bisect",
];

/// Whether a git command discards work.
fn destroys(sub: &str, rest: &[&str]) -> bool {
    let said = |words: &[&str]| rest.iter().any(|w| words.contains(w));
    let short =
        |c: char| rest.iter().any(|w| w.starts_with('-') && !w.starts_with("--") && w.contains(c));
    let long = |name: &str| {
        rest.iter().any(|w| {
            w.len() > 3 && w.starts_with("--") && name.starts_with(w.split('=').next().unwrap_or(w))
        })
    };
    match sub {
        "reset" => long("--hard") || long("--merge") || long("--keep"),
        "clean" => (short('f') || long("--force")) && !short('n') && !long("--dry-run"),
        "checkout" => said(&["--", "."]) || short('f') || long("--force"),
        "restore" => !(long("--staged") || short('S')) || long("--worktree") || short('W'),
        "stash" => said(&["drop", "clear"]),
        "branch" => {
            short('D') || (short('d') || long("--delete")) && (short('f') || long("--force"))
        }
        "tag" => short('d') || long("--delete"),
        "reflog" => said(&["expire", "delete"]),
        "gc" | "prune" => sub == "prune" || long("--prune"),
        "update-ref" => short('d'),
        "filter-branch" | "filter-repo" => true,
        "worktree" => said(&["remove", "prune"]),
        _ => false,
    }
}

/// Whether a command uses the network, by its name and words.
pub(super) fn uses_network(command: &Simple) -> bool {
    asks(command, Isolation::A, false).iter().any(|(_, access)| access.network)
}

/// Why a command needs approval although the sandbox would contain it.
fn asks(command: &Simple, level: Isolation, beside: bool) -> Vec<(Reason, Access)> {
    let mut why: Vec<(Reason, Access)> = Vec::new();
    let mut ask = |reason: Reason, access: Access| why.push((reason, access));
    let name = base(command.texts().next().unwrap_or_default());
    let args: Vec<&str> = command.texts().skip(1).collect();
    let first = args.iter().copied().find(|w| !w.starts_with('-')).unwrap_or_default();
    let has = |words: &[&str]| args.iter().any(|w| words.contains(w));
    let one = |words: &[&str]| words.contains(&first);
    // Commands that destroy work.
    if let Some((sub, rest)) = git(command) {
        let said = |words: &[&str]| rest.iter().any(|w| words.contains(w));
        if destroys(sub, &rest) {
            ask(Reason::DiscardsWork { command: format!("git {sub}") }, Access::NOTHING);
        }
        let away = |w: &str| w.contains("://") || (w.contains(':') && w.contains('@'));
        let remote = match sub {
            "push" | "pull" | "fetch" | "send-email" | "request-pull" | "svn" | "lfs" => true,
            "clone" | "ls-remote" | "submodule" | "archive" | "remote" => {
                rest.iter().any(|w| away(w))
                    || (sub == "remote" && said(&["update", "prune"]))
                    || (sub == "submodule" && said(&["update", "sync"]))
            }
            _ => false,
        };
        if remote {
            ask(
                Reason::ContactsRemote { command: format!("git {sub}") },
                Access { git_config: matches!(sub, "push" | "pull"), ..whole_network() },
            );
        }
        let writes_config = match sub {
            "config" => {
                !said(&["--get", "--get-all", "--get-regexp", "--list", "-l", "list", "get"])
                    && rest.iter().filter(|w| !w.starts_with('-')).count() > 1
                    || said(&["set", "unset", "--unset", "--add", "edit", "-e"])
            }
            "remote" => said(&["add", "remove", "rm", "rename", "set-url", "set-head"]),
            "branch" => {
                let short = |w: &str| !w.starts_with("--") && w.contains(['m', 'M', 'c', 'C', 'u']);
                let long = ["--move", "--copy", "--set-upstream-to", "--unset-upstream"];
                let long = |w: &str| long.iter().any(|known| w.starts_with(known));
                rest.iter().any(|w| w.starts_with('-') && (short(w) || long(w)))
            }
            _ => false,
        };
        if writes_config {
            ask(Reason::ChangesGitConfig, git_config());
        }
        let writes_more = match sub {
            "submodule" => said(&["add", "init", "deinit", "set-url"]),
            "worktree" => said(&["add", "move"]),
            _ => false,
        };
        if writes_more {
            ask(Reason::ChangesGitConfig, protected_files());
        }
        if matches!(level, Isolation::B | Isolation::C)
            && !GIT_READS.contains(&sub)
            && !(sub == "branch" && rest.iter().all(|w| w.starts_with('-')))
        {
            ask(Reason::GitUnprotected, Access::NOTHING);
        }
    }
    if name == "rm" && flag(command, &['r', 'R'], "recursive") {
        let whole = |w: &&&str| {
            matches!(w.trim_end_matches('/'), "." | ".." | "*" | "./*" | ".git" | "./.git")
        };
        if args.iter().any(|w| whole(&w)) {
            ask(Reason::DeletesFolder, protected_files());
        }
    }
    // Commands that name a secret.
    let talks_only =
        matches!(name, "echo" | "printf" | "ls" | "test" | "[" | "stat" | "git" | "find" | "fd");
    // A search pattern is not a file.
    let pattern = if matches!(name, "grep" | "rg") { first } else { "" };
    let pieces = |text: &str| text.split(['=', '@', ':', ',']).any(is_secret);
    let copies_there = matches!(name, "cp" | "touch")
        && args.iter().filter(|w| pieces(w)).count() == 1
        && args.last().is_some_and(|w| pieces(w));
    let shows = match git(command) {
        Some(("archive" | "blame" | "cat-file" | "diff" | "format-patch" | "grep" | "show", _)) => {
            true
        }
        Some(("log", words)) => words.iter().any(|w| matches!(*w, "-p" | "-u" | "--patch")),
        _ => !talks_only && !copies_there,
    };
    let named = shows && args.iter().any(|w| *w != pattern && pieces(w));
    if named || command.files.iter().any(|(sign, file)| sign.contains('<') && pieces(&file.text)) {
        ask(Reason::NamesSecret, secrets());
    }
    // Commands that contact other machines.
    let url = |w: &&str| w.contains("://") && !w.starts_with("file:");
    let loopback = |w: &str| {
        ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"]
            .iter()
            .any(|host| w.contains(&format!("//{host}")))
    };
    let network = match name {
        // A server started by the same line, or by an earlier call, runs in the same sandbox.
        "curl" | "wget" | "http" | "https" | "xh" => {
            let urls: Vec<&&str> = args.iter().filter(|w| url(w)).collect();
            let bare_host = urls.is_empty()
                && args.iter().any(|w| {
                    let is_host = !w.starts_with('-') && w.contains('.') && !w.contains("file:");
                    is_host && !(beside && w.starts_with("127.0.0.1"))
                });
            !(beside && !urls.is_empty() && urls.iter().all(|w| loopback(w)))
                && (!urls.is_empty() || bare_host)
        }
        "ssh" | "sftp" | "mosh" | "telnet" | "ftp" | "nc" | "ncat" | "netcat" | "socat" => true,
        "scp" | "rsync" => args.iter().any(|w| w.contains(':')),
        "gh" | "glab" | "hub" | "aws" | "gcloud" | "az" | "s3cmd" | "gsutil" | "doctl"
        | "heroku" | "fly" | "flyctl" | "vercel" | "netlify" | "firebase" | "kubectl" | "helm"
        | "terraform" | "tofu" | "pulumi" | "ansible" | "ansible-playbook" | "twine" | "psql"
        | "mysql" | "mariadb" | "mongosh" | "mongo" | "redis-cli" => true,
        "npm" | "pnpm" | "yarn" | "bun" => {
            one(&[
                "install",
                "i",
                "ci",
                "add",
                "update",
                "upgrade",
                "publish",
                "login",
                "adduser",
                "unpublish",
                "audit",
                "outdated",
                "create",
                "init",
                "dlx",
                "info",
                "view",
                "search",
            ]) || (name == "yarn" && args.is_empty())
        }
        "pip" | "pip3" => matches!(first, "install" | "download" | "index" | "search"),
        "uv" => matches!(first, "add" | "sync" | "lock" | "pip" | "tool" | "publish"),
        "poetry" | "pipenv" | "pdm" => {
            matches!(first, "add" | "install" | "update" | "lock" | "publish" | "sync")
        }
        "cargo" => {
            matches!(
                first,
                "add"
                    | "install"
                    | "update"
                    | "fetch"
                    | "publish"
                    | "search"
                    | "login"
                    | "yank"
                    | "owner"
            )
        }
        "go" => {
            matches!(first, "get" | "install") || (first == "mod" && has(&["download", "tidy"]))
        }
        "gem" | "bundle" | "composer" => {
            matches!(first, "install" | "update" | "push" | "add" | "require")
        }
        "brew" | "apt" | "apt-get" | "dnf" | "yum" | "pacman" | "apk" | "zypper" | "snap"
        | "flatpak" => true,
        _ => false,
    };
    let local = [
        "--version",
        "-V",
        "version",
        "--help",
        "help",
        "fmt",
        "validate",
        "lint",
        "template",
        "completion",
    ];
    if network && !args.first().is_some_and(|w| local.contains(w)) {
        ask(Reason::UsesNetwork { program: name.to_owned() }, whole_network());
    }
    // Commands that act on the machine itself.
    if matches!(
        name,
        "sudo"
            | "doas"
            | "su"
            | "pkexec"
            | "crontab"
            | "at"
            | "batch"
            | "systemctl"
            | "service"
            | "loginctl"
            | "launchctl"
            | "docker"
            | "podman"
            | "nerdctl"
            | "lxc"
            | "vagrant"
            | "mount"
            | "umount"
            | "modprobe"
            | "insmod"
            | "useradd"
            | "usermod"
            | "userdel"
            | "passwd"
            | "visudo"
            | "iptables"
            | "nft"
            | "ufw"
            | "osascript"
    ) {
        ask(Reason::ActsOnMachine { program: name.to_owned() }, unsandboxed());
    }
    if matches!(level, Isolation::B | Isolation::C) {
        let texts =
            args.iter().copied().chain(command.files.iter().map(|(_, file)| file.text.as_str()));
        let guarded =
            |text: &str| !of_edit(text).reasons.is_empty() || of_edit(text).never.is_some();
        if git(command).is_none()
            && !matches!(name, "echo" | "printf" | "ls" | "cat" | "grep" | "rg" | "find")
            && texts.into_iter().any(guarded)
        {
            ask(Reason::NamesProtected, protected_files());
        }
    }
    why
}

/// What a command would destroy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loses {
    /// These files and folders.
    Paths {
        /// Those whose names are known.
        paths: Vec<String>,
        /// There are also patterns or variables.
        more: bool,
    },
    /// Files that git does not track.
    Untracked {
        /// Also ignored files.
        ignored: bool,
    },
    /// Uncommitted changes.
    Changes,
    /// Stashed changes.
    Stash,
}

pub(crate) fn loses(line: &CommandLine) -> Vec<Loses> {
    let mut all = Vec::new();
    for command in &unwrapped(line).commands {
        let name = base(command.texts().next().unwrap_or_default());
        let operands = command.words.iter().skip(1).filter(|w| !w.text.starts_with('-'));
        if matches!(name, "rm" | "rmdir" | "unlink" | "shred") {
            let (plain, more): (Vec<&Word>, Vec<&Word>) = operands.partition(|w| w.plain);
            let paths = plain.into_iter().map(|w| w.text.clone()).collect();
            all.push(Loses::Paths { paths, more: !more.is_empty() });
        }
        match git(command).filter(|(sub, rest)| destroys(sub, rest)) {
            Some(("clean", rest)) => {
                let ignored = rest.iter().any(|w| w.starts_with('-') && w.contains(['x', 'X']));
                all.push(Loses::Untracked { ignored });
            }
            Some(("stash", _)) => all.push(Loses::Stash),
            Some(("reset" | "checkout" | "restore", _)) => all.push(Loses::Changes),
            Some(_) | None => {}
        }
    }
    all
}

/// Whether a line is read-only, judging by its parsed words: it needs no approval at any isolation
/// level.
#[must_use]
pub fn only_looks(line: &CommandLine) -> bool {
    !line.obscure && !line.commands.is_empty() && line.commands.iter().all(looks)
}

/// Whether an absolute path belongs to the system, so that anyone may read it.
#[must_use]
pub fn is_of_system(path: &str) -> bool {
    const FOLDERS: [&str; 8] =
        ["/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt"];
    const FILES: [&str; 4] = ["/proc/cpuinfo", "/proc/meminfo", "/dev/null", "/etc/os-release"];
    let below = |folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    FOLDERS.into_iter().any(below) || FILES.contains(&path)
}

fn looks(command: &Simple) -> bool {
    let plain = command.sets.is_empty()
        && command.files.is_empty()
        && command.words.iter().all(|w| w.plain);
    let args: Vec<&str> = command.texts().skip(1).collect();
    let any = |test: &dyn Fn(&str) -> bool| args.iter().any(|w| test(w));
    let short = |c: char| any(&|w| w.starts_with('-') && !w.starts_with("--") && w.contains(c));
    let long = |name: &str| {
        any(&|w| {
            w.len() > 2 && w.starts_with("--") && name.starts_with(w.split('=').next().unwrap_or(w))
        })
    };
    let secret = any(&|w| {
        is_secret(w) || w.contains("/.ssh/") || w.contains("id_rsa") || w.contains("id_ed25519")
    });
    // Paths outside the folder and the system could be anything.
    let outside = any(&|w| {
        w.contains("..") || w.starts_with('~') || (w.starts_with('/') && !is_of_system(w))
    });
    plain
        && !secret
        && !outside
        && match command.texts().next().unwrap_or_default() {
            "ls" | "pwd" | "cat" | "head" | "tail" | "wc" | "stat" | "du" | "df" | "which"
            | "echo" => true,
            "date" => !short('s') && !short('f') && !long("--set") && !long("--file"),
            "file" => {
                !short('C')
                    && !short('m')
                    && !short('f')
                    && !long("--compile")
                    && !long("--magic-file")
                    && !long("--files-from")
            }
            "rg" | "grep" => {
                !short('z')
                    && !any(&|w| {
                        w.starts_with("--pre")
                            || w.starts_with("--host")
                            || w.starts_with("--search-z")
                    })
            }
            "find" => !any(&|w| {
                w.starts_with("-exec")
                    || w.starts_with("-ok")
                    || w == "-delete"
                    || w.starts_with("-f") && w != "-follow" && w != "-false" && w != "-fstype"
            }),
            _ => false,
        }
}
