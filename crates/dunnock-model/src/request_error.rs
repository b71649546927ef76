//! Errors of requests: messages that say what to do, and whether a retry may help.

use crate::causes::innermost;
use crate::provider::{KeySource, Provider};
use dunnock_proto::Failure;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value};
use std::time::Duration;

/// Maximum bytes of a server's error text to pass on.
const WORDS: usize = 500;

/// Whether another attempt may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Retry {
    Never,
    /// The server refused the key, or requires one.
    OtherKey,
    /// There is no connection. `offline` if the network is the likely cause.
    Connect {
        offline: bool,
    },
    /// Nothing arrived for too long.
    Idle,
    /// The connection broke.
    Reconnect,
    /// The server is busy or failing, and may have said how long to wait.
    Busy {
        wait: Option<Duration>,
    },
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestError {
    pub(crate) failure: Failure,
    pub(crate) words: String,
    pub(crate) again: Retry,
    /// The server rejected an optional part of the request.
    pub(crate) bare: bool,
    /// The server rejected the reasoning effort.
    pub(crate) effort: bool,
    /// The server rejected a part of an earlier answer that was sent back to it.
    pub(crate) items: bool,
    /// The server does not accept images for this model.
    pub(crate) pictures: bool,
    /// What arrived before is valid.
    pub(crate) intact: bool,
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
    "prompt_cache_key",
    "parameter: 'reasoning'",
];

/// Words for a reasoning effort, each used by servers if a field that contains it was sent.
const EFFORT: &[&str] = &["effort", "think", "reasoning"];

/// Phrases of errors that are about the conversation or about another field, not about the effort.
const NOT_EFFORT: &[&str] = &["block", "signature", "summar", "_content", ".format"];

/// Phrases with which servers reject a part of an answer that was sent back.
const ITEMS: &[&str] = &["item with id", "without its required", "required 'reasoning' item"];

fn is_about_items(low: &str) -> bool {
    let numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    ITEMS.iter().any(|phrase| low.contains(phrase)) || low.split("input[").skip(1).any(numbered)
}

/// Whether an error is about the images of a request. Servers that cannot show images to the model
/// refuse them in these words, some of them as a fault of their own. The name of a model may contain
/// the same words.
fn is_about_pictures(status: u16, low: &str, model: &str) -> bool {
    let low = without_model(low, model);
    let names = ["image", "vision", "multimodal", "modalit", "mmproj"];
    let refuses = ["support", "unsupported", "missing", "does not accept", "cannot"];
    let any = |words: &[&str]| words.iter().any(|word| low.contains(word));
    match status {
        400 | 404 | 415 | 422 => any(&names),
        500..=599 => any(&names) && any(&refuses),
        _ => false,
    }
}

/// An error without the name of the model.
fn without_model(low: &str, model: &str) -> String {
    let model = model.to_lowercase();
    let short = model.rsplit('/').next().unwrap_or_default();
    let mut low = low.to_owned();
    for name in [model.as_str(), short].into_iter().filter(|name| !name.is_empty()) {
        low = low.replace(name, "-");
    }
    low
}

/// Whether an error is about one of the fields that asked for an effort. The name of a model may
/// contain the same words.
fn is_about_effort(low: &str, model: &str, sent: &Map<String, Value>) -> bool {
    if sent.is_empty() || NOT_EFFORT.iter().any(|phrase| low.contains(phrase)) {
        return false;
    }
    let low = without_model(low, model);
    let names = |word: &str| {
        low.match_indices(word).any(|(at, _)| {
            let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            !low.get(..at).unwrap_or_default().ends_with(inside)
        })
    };
    let fields = Value::Object(sent.clone()).to_string();
    low.contains("reasoning is mandatory")
        || sent.keys().any(|key| names(key))
        || EFFORT.iter().any(|word| fields.contains(word) && names(word))
}

/// Phrases of systems without a network. Other errors, such as an unknown name, a refused connection
/// or a wrong certificate, do not pass by waiting.
const OFFLINE: &[&str] = &[
    "Temporary failure",
    "Try again",
    "unreachable",
    "No route to host",
    "timed out",
    "deadline",
    "Network is down",
    "Host is down",
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
        Self {
            failure: Failure::Rejected,
            words,
            again: Retry::Never,
            bare: false,
            effort: false,
            items: false,
            pictures: false,
            intact: false,
        }
    }

    fn too_long(model: &str, said: &str) -> Self {
        let words = format!("the request is too long for {model}{said}");
        Self { failure: Failure::Overflow, ..Self::rejected(words) }
    }

    /// An overflow error, if an error inside a stream means that the request is too long.
    pub(crate) fn overflow(provider: &Provider, model: &str, said: &str) -> Option<Self> {
        let low = said.to_lowercase();
        let text = format!(": {}", clean(provider, said));
        TOO_LONG.iter().any(|w| low.contains(w)).then(|| Self::too_long(model, &text))
    }

    /// A connection that failed, or was lost before the answer began.
    pub(crate) fn unreachable(provider: &Provider, error: &reqwest::Error) -> Self {
        let (name, url) = (&provider.name, address(&provider.base_url));
        let why = clean(provider, &innermost(error));
        if why.contains("certificate") {
            return Self::rejected(format!(
                "{name} at {url} is not trusted: {why}. If the server is yours, set SSL_CERT_FILE \
                 to its certificate"
            ));
        }
        let mut again = Retry::Reconnect;
        let words = if error.is_connect() {
            again = Retry::Connect { offline: OFFLINE.iter().any(|word| why.contains(word)) };
            let advice = match provider.is_local() {
                true => "Start the server, or set",
                false => "Check the network connection. If it works, set",
            };
            format!(
                "{name} cannot be reached at {url}: {why}. {advice} providers.{name}.base_url to \
                 its address"
            )
        } else if error.is_builder() {
            return Self::rejected(format!(
                "\"{url}\" is not a valid address: {why}. Correct providers.{name}.base_url"
            ));
        } else {
            format!("{name} at {url} did not answer: {why}")
        };
        Self { failure: Failure::Transport, again, ..Self::rejected(words) }
    }

    /// A response with an error status.
    pub(crate) fn status(
        provider: &Provider,
        model: &str,
        status: u16,
        wait: Option<Duration>,
        body: &[u8],
        effort: &Map<String, Value>,
    ) -> Self {
        let text = match serde_json::from_slice::<Value>(body) {
            Ok(json) => words(&json),
            Err(_) => String::from_utf8_lossy(body).into_owned(),
        };
        let text = clean(provider, &text);
        let text = text.trim_end().trim_end_matches('.'); // our own sentence goes on after it
        let said = if text.is_empty() { String::new() } else { format!(": {text}") };
        let low = text.to_lowercase();
        let name = &provider.name;
        let items = matches!(status, 400 | 404 | 422) && is_about_items(&low);
        let pictures = is_about_pictures(status, &low, model);
        let effort = matches!(status, 400 | 422) && !items && is_about_effort(&low, model, effort);
        let error = match status {
            401 | 403 => {
                let source = provider.key.as_ref().map(|_| provider.key_source);
                let words = match (&provider.key_env, source) {
                    (_, Some(KeySource::Typed)) => {
                        format!("{name} refused the key ({status}){said}")
                    }
                    (_, Some(KeySource::Saved)) => format!(
                        "{name} refused the saved key ({status}){said}. Save another one: \
                         dunnock login {name}"
                    ),
                    (Some(env), Some(KeySource::Variable)) => format!(
                        "{name} refused the key in {env} ({status}){said}. Set {env} to a valid \
                         key"
                    ),
                    (Some(env), None) => format!(
                        "{name} requires a key ({status}){said}. Save one with dunnock login \
                         {name}, or set {env}"
                    ),
                    (None, _) => format!(
                        "{name} requires a key ({status}){said}. Save one with dunnock login \
                         {name}, or set providers.{name}.api_key_env to the name of the variable \
                         that contains it"
                    ),
                };
                Self { again: Retry::OtherKey, ..Self::rejected(words) }
            }
            413 => Self::too_long(model, &said),
            400 | 422 | 500 if TOO_LONG.iter().any(|w| low.contains(w)) => {
                Self::too_long(model, &said)
            }
            400 | 422 if NICE_TO_HAVE.iter().any(|w| low.contains(w)) => Self {
                bare: true,
                ..Self::rejected(format!("{name} refused the request ({status}){said}"))
            },
            400 | 404 if items => {
                Self::rejected(format!("{name} refused the request ({status}){said}"))
            }
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
                let again = Retry::Busy { wait };
                Self { failure: Failure::Transport, again, ..Self::rejected(words) }
            }
            _ => Self::rejected(format!("{name} refused the request ({status}){said}")),
        };
        let rejected = error.failure == Failure::Rejected;
        Self {
            effort: effort && rejected,
            items: items && rejected,
            pictures: pictures && error.failure != Failure::Overflow,
            ..error
        }
    }
}
