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
    let first = rest.first().copied().unwrap_or_default();
    // An option can name another server or another file of settings.
    let plain = || {
        let options = rest.iter().filter(|word| word.starts_with('-'));
        options
            .map(|word| word.split('=').next().unwrap_or(word))
            .all(|word| HARMLESS.contains(&word))
    };
    let one_of = |known: &[&str]| known.contains(&first) && plain();
    match *name {
        // Options of git can name programs.
        "git" if project_code::may_run(line) => None,
        "git" => {
            let (sub, _) = lists::git(one)?;
            let remote = ["push", "pull", "fetch", "clone", "ls-remote", "remote"].contains(&sub);
            remote.then_some(Login::Git)
        }
        // These print tokens.
        "gh" => (first != "auth").then_some(Login::GitHub),
        "aws" => {
            let elsewhere =
                rest.iter().any(|word| word.starts_with("--e") || word.starts_with("--no-v"));
            (!["configure", "sts", "sso"].contains(&first) && !elsewhere).then_some(Login::Aws)
        }
        "npm" => {
            one_of(&["publish", "unpublish", "deprecate", "dist-tag", "owner", "access", "whoami"])
                .then_some(Login::Npm)
        }
        "cargo" => one_of(&["publish", "yank", "owner"]).then_some(Login::Cargo),
        "twine" => one_of(&["upload"]).then_some(Login::Python),
        _ => None,
    }
}

/// Options of package managers that name no server and no file.
const HARMLESS: &[&str] = &[
    "--access",
    "--add",
    "--allow-dirty",
    "--dry-run",
    "--list",
    "--locked",
    "--no-verify",
    "--otp",
    "--package",
    "--remove",
    "--skip-existing",
    "--tag",
    "--undo",
    "--version",
    "-p",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::words;

    #[test]
    fn only_a_single_plain_command_gets_a_login() {
        for (line, login) in [
            ("git push", Some(Login::Git)),
            ("git push origin main", Some(Login::Git)),
            ("git push -u origin main", Some(Login::Git)),
            ("git clone --recursive git@h:r", None),
            ("npm whoami --userconfig=rc --registry=http://h/", None),
            ("npm publish --tag next", Some(Login::Npm)),
            ("npm --prefix vendor publish", None),
            ("cargo publish --registry x", None),
            ("gh auth token", None),
            ("aws s3 ls", Some(Login::Aws)),
            ("aws sts get-session-token", None),
            ("aws --endpoint-url http://h s3 ls", None),
            ("kubectl get pods", None),
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
