//! The person's own logins, for a command that was approved with them: which files, variables and
//! sockets of this machine belong to it.
//!
//! Nothing here is read into the program, except which remotes a repository has and whether an SSH
//! agent has keys.

use dunnock_core::policy::{self, Login};
use dunnock_proto::{CommandText, Isolation};
use dunnock_sandbox::Layout;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an SSH agent may take to answer.
const AGENT: Duration = Duration::from_millis(500);
/// Files of SSH that are no secret.
const SSH_PUBLIC: &[&str] = &["config", "known_hosts", "known_hosts2", "config.d"];
/// Keys that SSH uses by itself.
const SSH_KEYS: &[&str] = &["id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"];

/// What a command gets of the person's logins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// Files, folders and sockets that it can use.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) env: Vec<(String, String)>,
    /// git gets the credential helpers of the person's own configuration.
    pub(crate) git_helpers: bool,
    /// The same for people.
    pub(crate) words: Vec<String>,
}

/// The files, below the home folder, and variables of a login.
fn table(login: Login) -> (&'static [&'static str], &'static [&'static str]) {
    match login {
        Login::Git => (&[], &[]),
        Login::GitHub => (&[".config/gh"], &["GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"]),
        Login::Npm => (&[".npmrc"], &["NPM_TOKEN", "NODE_AUTH_TOKEN"]),
        Login::Cargo => {
            (&[".cargo/credentials.toml", ".cargo/credentials"], &["CARGO_REGISTRY_TOKEN"])
        }
        Login::Python => (&[".pypirc"], &["TWINE_USERNAME", "TWINE_PASSWORD"]),
        Login::Aws => (
            &[".aws"],
            &[
                "AWS_PROFILE",
                "AWS_REGION",
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
            ],
        ),
    }
}

/// What a command that was approved with a login gets; `None` if it uses none.
pub(crate) fn credentials(
    layout: &Layout,
    workspace: &Path,
    command: &CommandText,
    isolation: Isolation,
) -> Option<Credentials> {
    let login = policy::login(command)?;
    let home = layout.home.as_deref()?;
    let mut found = Credentials::default();
    if login == Login::Git {
        let remotes = addresses(layout.remotes(workspace), &words(command));
        if remotes.iter().any(|url| is_ssh(url)) {
            found.add_ssh(home, isolation);
        }
        if remotes.iter().any(|url| url.starts_with("https://") || url.starts_with("http://")) {
            found.add_git_helpers(layout, home);
        }
    }
    let (files, variables) = table(login);
    for name in files {
        found.add_file(home, &home.join(name));
    }
    for name in variables {
        if let Ok(value) = std::env::var(name)
            && !value.is_empty()
        {
            found.env.push(((*name).to_owned(), value));
            found.words.push(format!("{name} of your environment"));
        }
    }
    Some(found)
}

impl Credentials {
    fn add_file(&mut self, home: &Path, file: &Path) {
        let Ok(real) = file.canonicalize() else { return };
        let shown = match file.strip_prefix(home) {
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => file.display().to_string(),
        };
        self.words.push(shown);
        // A link is followed: both names are needed.
        if real != file {
            self.files.push(real);
        }
        self.files.push(file.to_path_buf());
    }

    /// The SSH agent or, if there is none with a key, the key files. Below level A, commands cannot
    /// use sockets of other programs.
    fn add_ssh(&mut self, home: &Path, isolation: Isolation) {
        let ssh = home.join(".ssh");
        let public = SSH_PUBLIC.iter().map(|name| ssh.join(name));
        self.files.extend(public.filter(|file| file.exists()));
        let agent = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
        if let Some(socket) = agent.filter(|socket| isolation == Isolation::A && has_keys(socket)) {
            self.env.push(("SSH_AUTH_SOCK".into(), socket.to_string_lossy().into_owned()));
            self.files.push(socket);
            self.words.push("your SSH agent".into());
            return;
        }
        let mut keys: Vec<PathBuf> = SSH_KEYS.iter().map(|name| ssh.join(name)).collect();
        keys.extend(identity_files(&ssh, home));
        keys.dedup();
        for key in keys.iter().filter(|key| key.is_file()) {
            self.add_file(home, key);
            let public = PathBuf::from(format!("{}.pub", key.display()));
            self.files.extend(public.exists().then_some(public));
        }
    }

    /// The credential helpers of git, with the files that they read.
    fn add_git_helpers(&mut self, layout: &Layout, home: &Path) {
        let helpers = layout.credential_helpers();
        if helpers.is_empty() {
            return;
        }
        self.git_helpers = true;
        for helper in &helpers {
            self.words.push(format!("your git credential helper ({helper})"));
        }
        let known: [(&str, &[&str]); 3] = [
            ("store", &[".git-credentials", ".config/git/credentials"]),
            ("cache", &[".cache/git/credential", ".git-credential-cache"]),
            ("gh", &[".config/gh"]),
        ];
        for (program, files) in known {
            if helpers.iter().any(|helper| program_of(helper) == program) {
                files.iter().for_each(|name| self.add_file(home, &home.join(name)));
            }
        }
    }
}

/// The key files that the person's configuration of SSH names.
fn identity_files(ssh: &Path, home: &Path) -> Vec<PathBuf> {
    let text = crate::git::text_of(&ssh.join("config"), 1 << 20).unwrap_or_default();
    let named = text.lines().filter_map(|line| {
        let (key, value) = line.trim().split_once(|c: char| c.is_whitespace() || c == '=')?;
        key.eq_ignore_ascii_case("IdentityFile").then(|| value.trim().trim_matches('"').to_owned())
    });
    named
        .map(|value| match value.strip_prefix("~/") {
            Some(below) => home.join(below),
            None => PathBuf::from(value),
        })
        .collect()
}

/// The program of a credential helper, without its folder: `gh` for `!/usr/bin/gh auth
/// git-credential`.
fn program_of(helper: &str) -> &str {
    let first = helper.trim_start_matches('!').split_whitespace().next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or(first)
}

/// The addresses that a command of git contacts: those of the remote that it names or the address
/// itself; if it names none, those of all remotes.
fn addresses(remotes: Vec<(String, String)>, words: &[String]) -> Vec<String> {
    let mut operands = words.iter().skip(2).filter(|word| !word.starts_with('-'));
    let all = |name: Option<&String>| -> Vec<String> {
        let of = remotes.iter().filter(|(of, _)| name.is_none_or(|name| name == of));
        of.map(|(_, url)| url.clone()).collect()
    };
    match operands.next() {
        Some(word) if remotes.iter().any(|(name, _)| name == word) => all(Some(word)),
        Some(word) if word.contains("://") || word.contains('@') => vec![word.clone()],
        _ => all(None),
    }
}

fn words(command: &CommandText) -> Vec<String> {
    match command {
        CommandText::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
        CommandText::Words(words) => words.clone(),
    }
}

/// Whether git contacts this address through SSH: `ssh://host/path` or `host:path`.
fn is_ssh(url: &str) -> bool {
    if let Some((scheme, _)) = url.split_once("://") {
        return matches!(scheme, "ssh" | "git+ssh" | "ssh+git");
    }
    let host = url.split_once(':').map(|(host, _)| host);
    host.is_some_and(|host| !host.is_empty() && !host.contains('/') && !host.starts_with('-'))
}

/// Whether an SSH agent has a key: asks for its list.
fn has_keys(socket: &Path) -> bool {
    let is_socket = socket.metadata().is_ok_and(|about| about.file_type().is_socket());
    let count = || -> std::io::Result<u32> {
        let mut agent = UnixStream::connect(socket)?;
        agent.set_read_timeout(Some(AGENT))?;
        agent.set_write_timeout(Some(AGENT))?;
        agent.write_all(&[0, 0, 0, 1, 11])?;
        let mut answer = [0; 9];
        agent.read_exact(&mut answer)?;
        let [.., kind, a, b, c, d] = answer;
        Ok(if kind == 12 { u32::from_be_bytes([a, b, c, d]) } else { 0 })
    };
    is_socket && count().is_ok_and(|keys| keys > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_ssh_are_recognised() {
        for url in ["git@github.com:a/b.git", "ssh://git@h:22/x", "host:path", "h.x:/abs"] {
            assert!(is_ssh(url), "{url}");
        }
        for url in ["https://github.com/a/b", "../other", "/abs/path", "main", "file:///x", "-o:x"]
        {
            assert!(!is_ssh(url), "{url}");
        }
    }

    #[test]
    fn only_the_remote_that_a_command_names_counts() {
        let remotes = || {
            vec![
                ("origin".to_owned(), "https://h/x".to_owned()),
                ("fork".to_owned(), "git@h:y".to_owned()),
            ]
        };
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            addresses(remotes(), &words)
        };
        assert_eq!(of("git push origin HEAD:main"), ["https://h/x"]);
        assert_eq!(of("git push -u fork main"), ["git@h:y"]);
        assert_eq!(of("git push"), ["https://h/x", "git@h:y"]);
        assert_eq!(of("git clone git@other:z"), ["git@other:z"]);
        assert_eq!(program_of("!/usr/bin/gh auth git-credential"), "gh");
        assert_eq!(program_of("/home/hugh/bin/helper"), "helper");
    }

    #[test]
    fn keys_are_those_of_ssh_itself_and_of_its_configuration() {
        let home = tempfile::tempdir().unwrap();
        let ssh = home.path().join(".ssh");
        std::fs::create_dir(&ssh).unwrap();
        for name in ["id_ed25519", "id_ed25519.pub", "known_hosts", "work", "other"] {
            std::fs::write(ssh.join(name), "x").unwrap();
        }
        std::fs::write(ssh.join("config"), "Host x\n  IdentityFile ~/.ssh/work\n").unwrap();
        let mut found = Credentials::default();
        found.add_ssh(home.path(), Isolation::B);
        assert_eq!(found.words, ["~/.ssh/id_ed25519", "~/.ssh/work"]);
        assert!(!found.files.iter().any(|file| file.ends_with("other")));
    }
}
