//! Providers as data: name, address, wire, source of the key, and quirks.

use crate::dialects::Dialect;
use crate::wire::Wire;
use crate::words::words;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The header in which the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `api-key: KEY`, as Azure requires.
    ApiKey,
    /// `x-api-key: KEY`, as Anthropic requires.
    XApiKey,
}

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The environment variable of the provider.
    Variable,
    /// The user's saved keys.
    Saved,
    /// The user has just typed it.
    Typed,
}

words!(Auth { Bearer = "bearer", ApiKey = "api-key", XApiKey = "x-api-key", });

/// Quirks of a server or a model. All can be configured; `models check` detects most of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quirks {
    /// User and assistant messages must alternate: consecutive ones are merged.
    pub merge: bool,
    /// Its readable reasoning must be sent back to it.
    pub echo: bool,
    /// Encrypted reasoning is requested and sent back to it.
    pub sealed: bool,
    /// It rejects requests for usage in a stream.
    pub no_usage: bool,
    /// It requires its signature on tool calls; calls from other models carry a skip marker.
    pub signed: bool,
    /// Chat Completions takes the output limit as `max_completion_tokens`.
    pub new_limit: bool,
}

/// A service or server that offers models.
#[derive(Debug, Clone)]
pub struct Provider {
    /// As in `provider/model`.
    pub name: String,
    /// The API that it speaks.
    pub wire: Wire,
    /// The address to which the wire adds its path.
    pub base_url: String,
    /// The environment variable that holds the key, if it needs one.
    pub key_env: Option<String>,
    /// The key.
    pub key: Option<SecretString>,
    /// Where the key comes from.
    pub key_source: KeySource,
    /// The header in which the key is sent.
    pub auth: Auth,
    /// How calls are written, if configured.
    pub dialect: Option<Dialect>,
    /// Context window of its models in tokens, if configured.
    pub window: Option<u64>,
    /// The output limit to request, in tokens.
    pub max_output: Option<u64>,
    /// Additional fields for each request, as a JSON object.
    pub body: Option<String>,
    /// Its quirks.
    pub quirks: Quirks,
}

impl Provider {
    /// A provider without a key, limits or quirks.
    #[must_use]
    pub fn plain(name: &str, wire: Wire, base_url: &str) -> Self {
        Self {
            name: name.into(),
            wire,
            base_url: base_url.into(),
            key_env: None,
            key: None,
            key_source: KeySource::Variable,
            auth: wire.auth(),
            dialect: None,
            window: None,
            max_output: None,
            body: None,
            quirks: Quirks::default(),
        }
    }

    /// Whether it is on this machine: it needs no proxy, and requests do not leave the machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let host = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .any(|l| host.strip_prefix(l).is_some_and(|r| r.is_empty() || r.starts_with(':')))
    }

    /// The address for display, without any password in it.
    #[must_use]
    pub fn address(&self) -> String {
        crate::request_error::address(&self.base_url)
    }

    /// Whether it is a hosted provider from the table, so that the tables of windows and prices
    /// apply to its models.
    pub(crate) fn is_known(&self) -> bool {
        let here = |known: &&Known| known.base_url.contains('{') || known.base_url == self.base_url;
        !self.is_local()
            && KNOWN
                .iter()
                .filter(here)
                .any(|known| known.name == self.name && known.key_env.is_some())
    }

    /// The address for a wire, without a trailing slash. Ollama's own wire starts at the root; its
    /// other wires start at `/v1`.
    pub(crate) fn root(&self, wire: Wire) -> Cow<'_, str> {
        let url = self.base_url.trim_end_matches('/');
        let bare = url.strip_suffix("/v1").unwrap_or(url);
        match (self.wire, wire) {
            (_, Wire::Ollama) => Cow::Borrowed(bare),
            (Wire::Ollama, Wire::Chat | Wire::Responses | Wire::Anthropic) => {
                Cow::Owned(format!("{bare}/v1"))
            }
            (Wire::Chat | Wire::Responses | Wire::Anthropic, _) => Cow::Borrowed(url),
        }
    }
}

/// A provider that needs no configuration.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// As in `provider/model`.
    pub name: &'static str,
    /// Its display name.
    pub about: &'static str,
    /// The API that it speaks.
    pub wire: Wire,
    /// The address; `{NAME}` stands for an environment variable.
    pub base_url: &'static str,
    /// The environment variable that holds the key; a local server has none.
    pub key_env: Option<&'static str>,
    /// The model to use when only the key is set; `{NAME}` as above.
    pub default_model: Option<&'static str>,
    /// The header in which the key is sent.
    pub auth: Auth,
    /// The output limit to request, where the wire requires one.
    pub max_output: Option<u64>,
    /// Its quirks.
    pub quirks: Quirks,
    /// The wire to use when this name is configured with another address, if it differs: gateways
    /// speak an older API.
    pub elsewhere: Option<Wire>,
}

const NONE: Quirks = Quirks {
    merge: false,
    echo: false,
    sealed: false,
    no_usage: false,
    signed: false,
    new_limit: false,
};

const LOCAL: Known = Known {
    name: "",
    about: "",
    wire: Wire::Chat,
    base_url: "",
    key_env: None,
    default_model: None,
    auth: Auth::Bearer,
    max_output: None,
    quirks: NONE,
    elsewhere: None,
};

/// All built-in providers, in the order of preference when nothing else decides.
pub const KNOWN: &[Known] = &[
    Known {
        name: "azure",
        about: "Azure OpenAI",
        wire: Wire::Responses,
        base_url: "{AZURE_OPENAI_ENDPOINT}/openai/v1",
        key_env: Some("AZURE_OPENAI_KEY"),
        default_model: Some("{AZURE_OPENAI_DEPLOYMENT}"),
        auth: Auth::ApiKey,
        quirks: Quirks { sealed: true, new_limit: true, ..NONE },
        ..LOCAL
    },
    Known {
        name: "openai",
        about: "OpenAI",
        wire: Wire::Responses,
        base_url: "https://api.openai.com/v1",
        key_env: Some("OPENAI_API_KEY"),
        default_model: Some("gpt-5.6-terra"),
        elsewhere: Some(Wire::Chat),
        quirks: Quirks { sealed: true, new_limit: true, ..NONE },
        ..LOCAL
    },
    Known {
        name: "anthropic",
        about: "Anthropic",
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        key_env: Some("ANTHROPIC_API_KEY"),
        default_model: Some("claude-sonnet-5-5"),
        auth: Auth::XApiKey,
        max_output: Some(32_000),
        ..LOCAL
    },
    Known {
        name: "gemini",
        about: "Google Gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        key_env: Some("GEMINI_API_KEY"),
        quirks: Quirks { signed: true, ..NONE },
        ..LOCAL
    },
    Known {
        name: "deepseek",
        about: "DeepSeek",
        base_url: "https://api.deepseek.com/v1",
        key_env: Some("DEEPSEEK_API_KEY"),
        quirks: Quirks { echo: true, ..NONE },
        ..LOCAL
    },
    Known {
        name: "mistral",
        about: "Mistral",
        base_url: "https://api.mistral.ai/v1",
        key_env: Some("MISTRAL_API_KEY"),
        quirks: Quirks { no_usage: true, merge: true, ..NONE },
        ..LOCAL
    },
    Known {
        name: "openrouter",
        about: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        key_env: Some("OPENROUTER_API_KEY"),
        ..LOCAL
    },
    Known {
        name: "ollama",
        about: "Ollama on this machine",
        wire: Wire::Ollama,
        base_url: "http://127.0.0.1:11434",
        ..LOCAL
    },
    Known {
        name: "llamacpp",
        about: "llama.cpp's server on this machine",
        base_url: "http://127.0.0.1:8080/v1",
        ..LOCAL
    },
    Known {
        name: "lmstudio",
        about: "LM Studio on this machine",
        base_url: "http://127.0.0.1:1234/v1",
        ..LOCAL
    },
    Known {
        name: "vllm",
        about: "vLLM on this machine",
        base_url: "http://127.0.0.1:8000/v1",
        ..LOCAL
    },
];

impl Known {
    /// Substitutes an environment variable in a text of the table; `None` when it is not set.
    #[must_use]
    pub fn filled(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let Some((before, rest)) = text.split_once('{') else { return Some(text.into()) };
        let (name, after) = rest.split_once('}')?;
        let value = env(name)
            .map(|v| v.trim().trim_end_matches('/').to_owned())
            .filter(|v| !v.is_empty())?;
        Some(format!("{before}{value}{after}"))
    }
}
