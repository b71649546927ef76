//! Whether a command may run code of the project: scripts, hooks, build files, programs in the
//! folder. A call that nobody approved can write all of these, so a yes to such a command is a yes
//! to whatever they contain by then.

use super::words::{CommandLine, Simple};
use super::wrap::unwrapped;

/// Programs that run nothing of the project: they read no file of it as a program or a setting.
const OWN_CODE_ONLY: &[&str] = &[
    "aws",
    "az",
    "curl",
    "dig",
    "doctl",
    "gcloud",
    "gh",
    "glab",
    "gsutil",
    "host",
    "http",
    "https",
    "nslookup",
    "ping",
    "redis-cli",
    "s3cmd",
    "telnet",
    "xh",
];
/// The same, if they get no options: these can name files and programs.
const WITHOUT_OPTIONS: &[&str] = &["scp", "ssh", "wget"];
/// Commands of `git` that run nothing of the project, with hooks off.
const GIT: &[&str] =
    &["clone", "config", "fetch", "ls-remote", "pull", "push", "remote", "request-pull"];
/// Commands of `docker` and `podman` that read nothing of the project.
const CONTAINERS: &[&str] = &[
    "images", "info", "inspect", "kill", "login", "logout", "logs", "ps", "pull", "push", "rm",
    "rmi", "start", "stop", "version",
];
/// Commands of `npm` that run no script.
const PACKAGES: &[&str] = &["info", "login", "outdated", "search", "view", "whoami"];

/// Whether a command line may run code of the project.
pub(super) fn may_run(line: &CommandLine) -> bool {
    let all = unwrapped(line);
    line.obscure || all.obscure || all.commands.iter().any(|command| !own_code_only(command))
}

fn own_code_only(command: &Simple) -> bool {
    // A variable can name a program, as GIT_SSH_COMMAND does; input can be a script.
    let reads = command.files.iter().any(|(sign, _)| sign.contains('<'));
    if reads || !command.sets.is_empty() || !command.words.iter().all(|word| word.plain) {
        return false;
    }
    let mut words = command.texts();
    let name = words.next().unwrap_or_default();
    let sub = words.next().unwrap_or_default();
    match name {
        // Options before the subcommand can name programs and other folders.
        "git" => GIT.contains(&sub) && !command.texts().any(|word| names_a_program(sub, word)),
        "docker" | "podman" => CONTAINERS.contains(&sub),
        "npm" => PACKAGES.contains(&sub),
        "echo" | "printf" | "true" => true,
        _ if WITHOUT_OPTIONS.contains(&name) => !command.texts().any(|w| w.starts_with('-')),
        _ => OWN_CODE_ONLY.contains(&name),
    }
}

/// Options of git that name a program or a setting. git takes abbreviations and attached values.
fn names_a_program(sub: &str, word: &str) -> bool {
    let long = [
        "--upload-pack",
        "--receive-pack",
        "--recurse-submodules",
        "--recursive",
        "--exec",
        "--config",
        "--template",
    ];
    let name = word.split('=').next().unwrap_or(word);
    // `git push -u` sets the upstream.
    (sub != "push" && word.starts_with("-u"))
        || word.starts_with("-c")
        || word.starts_with("ext::")
        || (name.len() > 2 && long.iter().any(|option| option.starts_with(name)))
}

/// The remote of a line that is one plain `git push`; empty if it names none.
pub(super) fn pushes_to(line: &CommandLine) -> Option<String> {
    let [command] = line.commands.as_slice() else { return None };
    let words: Vec<&str> = command.texts().collect();
    let ["git", "push", rest @ ..] = words.as_slice() else { return None };
    let plain = !line.obscure && command.words.iter().all(|word| word.plain);
    let skips = rest.contains(&"--no-verify");
    let remote = rest.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default();
    (plain && !skips).then(|| remote.to_owned())
}
