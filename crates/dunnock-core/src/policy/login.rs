//! Commands that use a login of the person's: an SSH key, a credential helper, a token.

use super::lists;
use super::project_code;
use super::words::CommandLine;

/// A login of the person's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// For git remotes: SSH, or git's credential helper.
    Git,
    /// GitHub's command line.
    GitHub,
    /// The npm registry.
    Npm,
    /// crates.io.
    Cargo,
    /// PyPI.
    Python,
    /// Amazon's cloud.
    Aws,
    /// Google's cloud.
    GoogleCloud,
    /// Microsoft's cloud.
    Azure,
    /// Kubernetes clusters.
    Kubernetes,
}

/// The login that a line uses. Only a single command gets one, if it is understood completely:
/// nothing beside it can use the login, too.
pub(super) fn of_line(line: &CommandLine) -> Option<Login> {
    let [one] = line.commands.as_slice() else { return None };
    let plain = one.sets.is_empty() && one.files.is_empty() && one.words.iter().all(|w| w.plain);
    if line.obscure || !plain {
        return None;
    }
    let words: Vec<&str> = one.texts().collect();
    let (name, rest) = words.split_first()?;
    let first = rest.iter().copied().find(|word| !word.starts_with('-')).unwrap_or_default();
    match *name {
        // Options of git can name programs.
        "git" if project_code::may_run(line) => None,
        "git" => {
            let (sub, _) = lists::git(one)?;
            let remote = ["push", "pull", "fetch", "clone", "ls-remote", "remote"].contains(&sub);
            remote.then_some(Login::Git)
        }
        "gh" => Some(Login::GitHub),
        "npm" => ["publish", "unpublish", "deprecate", "dist-tag", "owner", "access", "whoami"]
            .contains(&first)
            .then_some(Login::Npm),
        "cargo" => ["publish", "yank", "owner"].contains(&first).then_some(Login::Cargo),
        "twine" => (first == "upload").then_some(Login::Python),
        "aws" => Some(Login::Aws),
        "gcloud" | "gsutil" => Some(Login::GoogleCloud),
        "az" => Some(Login::Azure),
        "kubectl" | "helm" => Some(Login::Kubernetes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::words;

    #[test]
    fn only_a_single_plain_command_gets_a_login() {
        for (line, login) in [
            ("git push", Some(Login::Git)),
            ("git push origin main", Some(Login::Git)),
            ("git fetch --prune", Some(Login::Git)),
            ("gh pr create", Some(Login::GitHub)),
            ("npm publish", Some(Login::Npm)),
            ("npm install", None),
            ("cargo publish", Some(Login::Cargo)),
            ("cargo build", None),
            ("git commit -m x", None),
            ("git push && ./x.sh", None),
            ("git push; true", None),
            ("git push | cat", None),
            ("git push > log", None),
            ("git push $X", None),
            ("git push `x`", None),
            ("GIT_SSH_COMMAND=./x git push", None),
            ("git -c core.sshCommand=./x push", None),
            ("git -C other push", None),
            ("git push --receive-pack=./x", None),
            ("git clone -c core.sshCommand=./x git@h:r", None),
            ("./git push", None),
            ("sh -c 'git push'", None),
            ("sudo git push", None),
        ] {
            assert_eq!(of_line(&words::split(line)), login, "{line}");
        }
    }
}
