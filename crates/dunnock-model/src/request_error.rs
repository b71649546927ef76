//! Errors of requests: messages that say what to do, and whether a retry may help.

use crate::provider::Provider;
use dunnock_proto::Failure;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use std::time::Duration;

/// Maximum bytes of a server's error text to pass on.
const WORDS: usize = 500;

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestError {
    pub(crate) failure: Failure,
    pub(crate) words: String,
    /// The maximum number of attempts in total, and how long the server asked to wait.
    pub(crate) again: Option<(u32, Option<Duration>)>,
    /// The server rejected an optional part of the request.
    pub(crate) bare: bool,
}

/// The server's error text: the message inside its JSON with its code, or the plain text. It is not
/// yet truncated, and the key is not yet redacted.
pub(crate) fn words(body: &Value) -> String {
    let inner = body.get("error").filter(|e| !e.is_null()).unwrap_or(body);
    let said = [inner.get("message"), body.get("message"), body.get("detail"), Some(inner)]
        .into_iter()
        .flatten()
        .find_map(Value::as_str)
        .map_or_else(|| inner.to_string(), str::to_owned);
    // Codes are stable where the wording of messages varies.
    let codes = ["code", "param"]
        .iter()
        .filter_map(|key| inner.get(*key)?.as_str())
        .filter(|code| !said.contains(code));
    let codes: Vec<&str> = codes.collect();
    if codes.is_empty() { said } else { format!("{said} ({})", codes.join(", ")) }
}

/// The address of a provider, without any password in it.
pub(crate) fn address(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) =
                rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            path.map_or_else(
                || format!("{scheme}://{host}"),
                |path| format!("{scheme}://{host}/{path}"),
            )
        }
        None => url.to_owned(),
    }
}

fn short(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    let cut = line.floor_char_boundary(WORDS);
    if cut < line.len() { format!("{}...", &line[..cut]) } else { line.to_owned() }
}

/// The server's text on one line, with the key redacted. The key is redacted before truncation,
/// because a truncated key would no longer be found.
pub(crate) fn clean(provider: &Provider, text: &str) -> String {
    match &provider.key {
        Some(key) if key.expose_secret().len() >= 4 => {
            short(&text.replace(key.expose_secret(), "[key]"))
        }
        Some(_) | None => short(text),
    }
}

/// Phrases with which servers reject an optional part of a request.
const NICE_TO_HAVE: &[&str] = &[
    "encrypted",
    "reasoning.summary",
    "reasoning summar",
    "stream_options",
    "'include'",
    "include[",
    "(include",
    "response_format",
    "json_schema",
    "output_config",
    "text.format",
];

/// Phrases with which servers reject a request that is too long.
const TOO_LONG: &[&str] = &[
    "context_length",
    "context length",
    "context size",
    "context limit",
    "context window",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "request is too long",
    "maximum number of tokens",
    "input tokens exceed",
    "input length",
    "too many tokens",
];

impl RequestError {
    pub(crate) fn rejected(words: String) -> Self {
        Self { failure: Failure::Rejected, words, again: None, bare: false }
    }

    fn too_long(model: &str, said: &str) -> Self {
        let words = format!("the request is too long for {model}{said}");
        Self { failure: Failure::Overflow, words, again: None, bare: false }
    }

    /// An overflow error, if an error inside a stream means that the request is too long.
    pub(crate) fn overflow(provider: &Provider, model: &str, said: &str) -> Option<Self> {
        let low = said.to_lowercase();
        let text = format!(": {}", clean(provider, said));
        TOO_LONG.iter().any(|w| low.contains(w)).then(|| Self::too_long(model, &text))
    }

    /// A connection that failed, or was lost before the answer began.
    pub(crate) fn unreachable(provider: &Provider, error: &reqwest::Error) -> Self {
        let mut why = error.to_string();
        let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
        while let Some(inner) = source {
            why = inner.to_string(); // the innermost is the clearest: "Connection refused"
            source = inner.source();
        }
        let (name, url) = (&provider.name, address(&provider.base_url));
        let why = clean(provider, &why);
        if why.contains("certificate") {
            return Self::rejected(format!(
                "{name} at {url} is not trusted: {why}. If the server is yours, set SSL_CERT_FILE \
                 to its certificate"
            ));
        }
        let words = if error.is_connect() {
            format!(
                "{name} cannot be reached at {url}: {why}. Start the server, or set \
                 providers.{name}.base_url to its address"
            )
        } else if error.is_builder() {
            return Self::rejected(format!(
                "\"{url}\" is not a valid address: {why}. Correct providers.{name}.base_url"
            ));
        } else {
            format!("{name} at {url} did not answer: {why}")
        };
        // A server that is not listening rarely starts within seconds: three attempts are enough.
        Self {
            failure: Failure::Transport,
            words,
            again: Some((if error.is_connect() { 3 } else { 5 }, None)),
            bare: false,
        }
    }

    /// A response with an error status.
    pub(crate) fn status(
        provider: &Provider,
        model: &str,
        status: u16,
        wait: Option<Duration>,
        body: &[u8],
    ) -> Self {
        let text = match serde_json::from_slice::<Value>(body) {
            Ok(json) => words(&json),
            Err(_) => String::from_utf8_lossy(body).into_owned(),
        };
        let text = clean(provider, &text);
        let said = if text.is_empty() { String::new() } else { format!(": {text}") };
        let low = text.to_lowercase();
        let name = &provider.name;
        match status {
            401 | 403 => Self::rejected(match (&provider.key_env, &provider.key) {
                (Some(env), Some(_)) => {
                    format!(
                        "{name} refused the key in {env} ({status}){said}. Set {env} to a valid \
                         key"
                    )
                }
                (Some(env), None) => format!("{name} requires a key ({status}){said}. Set {env}"),
                (None, _) => format!(
                    "{name} requires a key ({status}){said}. Set providers.{name}.api_key_env to \
                     the name of the variable that contains it"
                ),
            }),
            413 => Self::too_long(model, &said),
            400 | 422 | 500 if TOO_LONG.iter().any(|w| low.contains(w)) => {
                Self::too_long(model, &said)
            }
            400 | 422 if NICE_TO_HAVE.iter().any(|w| low.contains(w)) => Self {
                bare: true,
                ..Self::rejected(format!("{name} refused the request ({status}){said}"))
            },
            400 | 404
                if low.contains("model")
                    && (status == 404
                        || ["not_found", "not found", "not exist"]
                            .iter()
                            .any(|w| low.contains(w))) =>
            {
                Self::rejected(format!(
                    "{name} has no model {model:?} ({status}){said}. \"dunnock models list\" \
                     shows its models"
                ))
            }
            404 | 405 => Self::rejected(format!(
                "there is no such service at {} ({status}){said}. Correct \
                 providers.{name}.base_url",
                address(&provider.base_url)
            )),
            300..=399 => Self::rejected(format!(
                "{name} redirects to another address ({status}), and keys are not sent to other \
                 addresses. Set providers.{name}.base_url to the new address"
            )),
            429 if low.contains("quota") || low.contains("billing") => {
                Self::rejected(format!("{name} says that your quota is used up{said}"))
            }
            408 | 409 | 425 | 429 | 500..=599 => {
                let words = format!("{name} is busy or failing ({status}){said}. Try again later");
                Self { failure: Failure::Transport, words, again: Some((5, wait)), bare: false }
            }
            _ => Self::rejected(format!("{name} refused the request ({status}){said}")),
        }
    }
}
