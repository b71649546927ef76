//! Providers are data: a name, an address, a wire and where the key is.

use secrecy::SecretString;
use std::fmt;
use std::str::FromStr;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's Chat Completions, streaming: most servers and gateways.
    Chat,
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "chat",
        })
    }
}

impl FromStr for Wire {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "chat" => Ok(Self::Chat),
            "responses" | "anthropic" | "ollama" => {
                Err(format!("the wire {text} is not in this release; use \"chat\", which most servers speak too"))
            }
            _ => Err(format!("there is no wire {text:?}; use \"chat\"")),
        }
    }
}

/// Somebody who serves models.
#[derive(Debug, Clone)]
pub struct Provider {
    /// As in `provider/model`.
    pub name: String,
    /// How it is spoken to.
    pub wire: Wire,
    /// The address before `/chat/completions`.
    pub base_url: String,
    /// The variable that holds the key, if it wants one.
    pub key_env: Option<String>,
    /// The key.
    pub key: Option<SecretString>,
}

impl Provider {
    /// Whether it is on this machine: no proxy stands before it, and asking it tells nobody anything.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let host = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .any(|l| host.strip_prefix(l).is_some_and(|r| r.is_empty() || r.starts_with(':')))
    }
}

/// A provider that needs no configuration.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// As in `provider/model`.
    pub name: &'static str,
    /// The address before `/chat/completions`.
    pub base_url: &'static str,
    /// The variable that holds the key; a local server has none.
    pub key_env: Option<&'static str>,
    /// The model to use when only the key is there.
    pub default_model: Option<&'static str>,
    /// What it is, for people.
    pub about: &'static str,
}

/// Those there are, in the order in which they are chosen when nothing else decides.
pub const KNOWN: &[Known] = &[
    Known {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        key_env: Some("OPENAI_API_KEY"),
        default_model: Some("gpt-5.1"),
        about: "OpenAI",
    },
    Known {
        name: "ollama",
        base_url: "http://127.0.0.1:11434/v1",
        key_env: None,
        default_model: None,
        about: "Ollama on this machine",
    },
    Known {
        name: "llamacpp",
        base_url: "http://127.0.0.1:8080/v1",
        key_env: None,
        default_model: None,
        about: "llama.cpp's server on this machine",
    },
    Known {
        name: "lmstudio",
        base_url: "http://127.0.0.1:1234/v1",
        key_env: None,
        default_model: None,
        about: "LM Studio on this machine",
    },
    Known {
        name: "vllm",
        base_url: "http://127.0.0.1:8000/v1",
        key_env: None,
        default_model: None,
        about: "vLLM on this machine",
    },
];
