//! Redacts keys in tool output before the model sees it, and tells the model so.
//!
//! Keys are recognised by their format, which vendors chose so that they can be found. Secrets
//! without a format of their own are not found: the sandbox and the question about secret files
//! protect those.

use regex::Regex;
use std::sync::OnceLock;

/// Key formats: a name and a pattern for each.
const FORMS: &[(&str, &str)] = &[
    (
        "a private key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("a key", r"\bsk-(?:ant-|proj-|or-|live_|test_)?[A-Za-z0-9_-]{20,}"),
    ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("an AWS key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("a Google key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("a Slack token", r"\bxox[abposr]-[A-Za-z0-9-]{20,}"),
    ("a Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("a PyPI token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("a signed token", r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}"),
    ("a password in an address", r#"\b[a-z][a-z0-9+.-]*://[^\s/:@"'`<>]+:[^\s/@"'`<>]{6,}@"#),
];

/// Characters of the Unicode block for language tags, which are invisible.
fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

fn forms() -> &'static [(&'static str, Regex)] {
    static MADE: OnceLock<Vec<(&str, Regex)>> = OnceLock::new();
    MADE.get_or_init(|| {
        FORMS.iter().filter_map(|(name, form)| Some((*name, Regex::new(form).ok()?))).collect()
    })
}

/// Whether a text contains something in the format of a key.
#[must_use]
pub fn holds_a_key(text: &str) -> bool {
    forms().iter().any(|(_, form)| form.is_match(text))
}

/// Redacts keys and certain words anywhere in bytes, even if the bytes are not text.
#[derive(Debug, Clone)]
pub struct Cleaner {
    words: Option<regex::bytes::Regex>,
    forms: std::sync::Arc<Vec<(&'static str, regex::bytes::Regex)>>,
}

impl Cleaner {
    /// Also redacts these words, the longest first.
    #[must_use]
    pub fn new(mut words: Vec<String>) -> Self {
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let any: Vec<String> = words.iter().map(|word| regex::escape(word)).collect();
        let words =
            if any.is_empty() { None } else { regex::bytes::Regex::new(&any.join("|")).ok() };
        let forms = FORMS
            .iter()
            .filter_map(|(name, form)| Some((*name, regex::bytes::Regex::new(form).ok()?)));
        Self { words, forms: std::sync::Arc::new(forms.collect()) }
    }

    /// The bytes with keys and words redacted.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        if let Some(words) = self.words.as_ref().filter(|words| words.is_match(&out)) {
            out = words.replace_all(&out, &b"[a secret, redacted]"[..]).into_owned();
        }
        for (name, form) in self.forms.iter() {
            if form.is_match(&out) {
                out = form.replace_all(&out, format!("[{name}, redacted]").as_bytes()).into_owned();
            }
        }
        out
    }
}

/// The secret values in a file: those whose names say so, and those that look random.
#[must_use]
pub fn secret_values(text: &str) -> Vec<String> {
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "pass", "pwd", "auth", "cred", "private"]
            .iter()
            .any(|word| name.contains(word))
    };
    let random = |value: &str| {
        let has = |is: fn(&char) -> bool| value.chars().any(|c| is(&c));
        value.len() >= 16
            && has(char::is_ascii_digit)
            && has(char::is_ascii_alphabetic)
            && !value.contains([' ', '/'])
    };
    let mut values = Vec::new();
    for line in text.lines() {
        let (name, value) = match (line.split_once('='), line.rsplit_once(':')) {
            (Some(pair), _) => pair,
            // `.pgpass`, `.git-credentials`, JSON: the last field.
            (None, Some((name, value))) => {
                (if line.matches(':').count() > 2 { "pass" } else { name }, value)
            }
            (None, None) => ("", ""),
        };
        let bare = |value: &str| value.trim().trim_matches(['"', '\'', ',', ';']).trim().to_owned();
        let value = bare(value);
        if value.len() >= 8 && (named(name) || random(&value)) {
            values.push(value);
        }
        // `.netrc`
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            if word == "password" {
                values.extend(words.next().map(bare).filter(|value| value.len() >= 6));
            }
        }
    }
    values
}

/// Whether a file's name says that it holds secrets, for data that leaves the machine. Covers more
/// names than those that ask for approval here.
#[must_use]
pub fn is_secret_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let names = [
        ".envrc",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".git-credentials",
        "credentials",
        "credentials.json",
        "secrets.yml",
        "secrets.yaml",
        "secrets.json",
        "secrets.toml",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    ];
    let ends = [".p12", ".pfx", ".pem", ".key", ".keystore", ".jks", ".tfvars", ".kdbx"];
    dunnock_core::policy::is_secret(path)
        || names.contains(&name.as_str())
        || ends.iter().any(|end| name.ends_with(end))
}

/// The text with keys redacted, for places that need no further note.
#[must_use]
pub fn redacted(text: &str) -> String {
    let out = |text: String, (name, form): &(&str, Regex)| {
        form.replace_all(&text, format!("[{name}]").as_str()).into_owned()
    };
    forms().iter().fold(text.to_owned(), out)
}

/// Removes keys and characters that only a model can see, and adds a line that says what was
/// removed.
pub(crate) fn without(text: String) -> String {
    let unseen = text.chars().filter(|c| is_tag(*c)).count();
    let mut text = if unseen > 0 { text.chars().filter(|c| !is_tag(*c)).collect() } else { text };
    if unseen > 0 {
        text.push_str(&format!(
            "\n[{unseen} invisible characters removed: they can hide text that a person does not \
             see]"
        ));
    }
    let mut found: Vec<(&str, usize)> = Vec::new();
    for (name, form) in forms() {
        let count = form.find_iter(&text).count();
        if count > 0 {
            text = form.replace_all(&text, format!("[{name}, redacted]").as_str()).into_owned();
            found.push((name, count));
        }
    }
    if !found.is_empty() {
        let what: Vec<String> = found.iter().map(|(name, n)| format!("{name} ({n})")).collect();
        text.push_str(&format!("\n[secrets: {} redacted before you saw this]", what.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_one() {
        assert_eq!(forms().len(), FORMS.len(), "each is a regular expression");
    }

    #[test]
    fn keys_are_taken_out_and_said_and_nothing_else_is() {
        let long = |start: &str, n: usize| format!("{start}{}", "aB3".repeat(n));
        for key in [
            "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN OPENSSH PRIVATE KEY-----\ncut off".to_owned(),
            long("sk-ant-", 10),
            long("ghp_", 12),
            long("glpat-", 7),
            "AKIAABCDEFGHIJKLMNOP".to_owned(),
            format!("AIza{}", "a".repeat(35)),
            long("xoxb-", 7),
            long("sk_live_", 8),
            long("npm_", 12),
            long("pypi-", 20),
            format!("eyJ{0}.eyJ{0}.{0}", "abcde".repeat(5)),
            "postgres://user:hunter22@db/x".to_owned(),
        ] {
            let text = without(format!("before {key} after"));
            assert!(
                !text.contains(&key) && text.contains(", redacted]") && text.contains("[secrets: "),
                "{text}"
            );
            assert!(text.starts_with("before "), "{text}");
        }
        for plain in [
            "sk-short",
            "task-force-of-many-words-in-a-name",
            "https://example.org/a:b@c",
            "-----BEGIN CERTIFICATE-----\nx",
            "AKIA",
        ] {
            assert_eq!(without(plain.to_owned()), plain);
        }
    }
}
