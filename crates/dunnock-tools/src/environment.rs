//! The environment variables of a child.
//!
//! Invariant: none of them holds a key or a token, as far as its name and its value show.

use crate::child::Input;
use crate::context::CallContext;
use crate::secrets::holds_a_key;
use dunnock_proto::Isolation;

/// Environment variables passed to every child.
const ENVIRONMENT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "SHELL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOCACHE",
    "GRADLE_USER_HOME",
    "NODE_PATH",
    "XDG_CACHE_HOME",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
];

/// Variables that say where a toolchain or its downloads are. A child gets them, and in a sandbox
/// it also sees the folders they name.
pub const TOOLCHAINS: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "MAVEN_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "RBENV_ROOT",
    "GEM_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Set for every child: no colours, no pagers, no prompts.
const SET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("EDITOR", "true"),
    ("CI", "1"),
];

/// Variables that name the folder for temporary files, which is a different one in a sandbox.
#[cfg(target_os = "linux")]
const TEMPORARY: &[&str] = &["TMPDIR", "TEMP", "TMP"];

/// Words in the name of a variable that holds a key, in capitals.
const SECRET_WORDS: &[&str] = &[
    "AUTH",
    "COOKIE",
    "COOKIES",
    "CREDENTIAL",
    "CREDENTIALS",
    "CONNECTION",
    "DSN",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PAT",
    "PWD",
    "SAS",
    "WEBHOOK",
    "PRIVATE",
];
/// Endings of such words: `API_KEY`, `APIKEY`.
const SECRET_ENDINGS: &[&str] =
    &["KEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD"];

/// The environment of a call's program. Without a sandbox, a program gets the person's own
/// environment, but no keys. One that was allowed to leave the sandbox gets what it would get in it.
pub(crate) fn of_call(context: &CallContext, input: Input) -> Vec<(String, String)> {
    let whole = context.level == Isolation::D && !context.access.unsandboxed;
    let withheld = &context.limits.withheld_variables;
    environment(input, |name, value| {
        whole && !withheld.iter().any(|known| known == name) && !is_secret(name, value)
    })
}

/// A variable of the person's, for a server whose settings name it.
#[cfg(target_os = "linux")]
pub(crate) fn person_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The environment of the user's own command in the sandbox, with what the sandbox adds; the same
/// as for a model's command.
#[cfg(target_os = "linux")]
#[must_use]
pub fn boxed_environment(more: Vec<(String, String)>) -> Vec<(String, String)> {
    with(environment(Input::Nothing, |_, _| false), more)
}

/// Adds the sandbox's variables and drops temporary folders that are not the sandbox's.
#[cfg(target_os = "linux")]
pub(crate) fn with(
    mut env: Vec<(String, String)>,
    more: Vec<(String, String)>,
) -> Vec<(String, String)> {
    env.retain(|(name, _)| {
        !TEMPORARY.contains(&name.as_str()) && !more.iter().any(|(n, _)| n == name)
    });
    env.extend(more);
    env
}

/// The variables that every child gets, those that `also` allows, and those that are set for it.
fn environment(input: Input, also: impl Fn(&str, &str) -> bool) -> Vec<(String, String)> {
    let allowed = |name: &str| {
        ENVIRONMENT.contains(&name) || TOOLCHAINS.contains(&name) || name.starts_with("LC_")
    };
    let given = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let is_set = |name: &str| SET.iter().any(|(set, _)| *set == name);
    let mut env: Vec<(String, String)> =
        given.filter(|(name, value)| allowed(name) || !is_set(name) && also(name, value)).collect();
    env.extend(SET.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    if input == Input::Terminal {
        env.retain(|(name, _)| name != "TERM");
        env.push(("TERM".into(), "xterm".into()));
    }
    env
}

/// Whether a variable holds a key, by its name or by its value.
fn is_secret(name: &str, value: &str) -> bool {
    if ["PWD", "OLDPWD"].contains(&name) {
        return false;
    }
    let name = name.to_uppercase();
    let named = name.starts_with("DUNNOCK_")
        || name.split(|c: char| !c.is_ascii_alphabetic()).any(|word| {
            SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|end| word.ends_with(end))
        });
    // An address with a password.
    let address = value.split("://").nth(1).and_then(|rest| rest.split('/').next());
    let with_password =
        address.and_then(|host| host.rsplit_once('@')).is_some_and(|(user, _)| user.contains(':'));
    let lower = value.to_lowercase();
    let with_parameter =
        ["password=", "pwd=", "token=", "secret=", "key="].iter().any(|part| lower.contains(part));
    named || with_password || with_parameter || holds_a_key(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_with_a_key_is_known_by_its_name_or_its_value() {
        let secret = [
            ("OPENAI_API_KEY", "x"),
            ("GITHUB_TOKEN", "x"),
            ("MYAPIKEY", "x"),
            ("aws_secret_access_key", "x"),
            ("AWS_ACCESS_KEY_ID", "x"),
            ("DB_PASSWORD", "x"),
            ("MYSQL_PWD", "x"),
            ("API_KEY1", "x"),
            ("SERVICE_CONNECTION_STRING", "x"),
            ("SLACK_WEBHOOK_URL", "x"),
            ("BACKEND", "https://db.local/app?password=hunter2"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("NPM_CONFIG__AUTH", "x"),
            ("SENTRY_DSN", "x"),
            ("SESSION_COOKIE", "x"),
            ("AZURE_CREDENTIALS", "x"),
            ("GITLAB_PAT", "x"),
            ("DUNNOCK_PASSWORD", "x"),
            ("DATABASE_URL", "postgres://me:hunter2@db.local/app"),
            ("NOTE", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ];
        for (name, value) in secret {
            assert!(is_secret(name, value), "{name}={value}");
        }
        let plain = [
            ("CONDA_DEFAULT_ENV", "base"),
            ("BASH_ENV", "/etc/conda.sh"),
            ("LD_LIBRARY_PATH", "/opt/lib"),
            ("DATABASE_URL", "postgres://db.local/app"),
            ("PATHS", "/a:/b"),
            ("KEYBOARD", "de"),
            ("PWD", "/work"),
            ("DISPLAY", ":0"),
            ("OMP_NUM_THREADS", "4"),
        ];
        for (name, value) in plain {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }
}
