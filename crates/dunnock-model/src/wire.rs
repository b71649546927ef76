//! The API that a server speaks.

use crate::words::words;
use serde::Serialize;

/// The API of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// OpenAI's Chat Completions: most servers and gateways.
    #[default]
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's native API.
    Ollama,
}

words!(Wire { Chat = "chat", Responses = "responses", Anthropic = "anthropic", Ollama = "ollama", });
