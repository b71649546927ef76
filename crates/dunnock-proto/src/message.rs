//! Messages of a request to the model, in a form that is independent of any provider.
//!
//! Invariant: [`Message::bytes`] depends on the message alone. The hash of a request is built from
//! it, so a request can be rebuilt and compared years later.

use crate::{CallId, Hash, Part, PlanStep, ServerToolArgs};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A prompt of the user.
    User {
        /// The text of the prompt.
        text: Arc<str>,
        /// Images, as blobs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Hash>,
    },
    /// An answer of the model.
    Assistant {
        /// The model that wrote it: opaque parts are only sent back to the same model.
        model: Arc<str>,
        /// The wire protocol it came over.
        wire: Arc<str>,
        /// The parts, in order.
        parts: Arc<[Part]>,
        /// The same as the server sent it, to send back to the same model; empty if it has no such
        /// form.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        items: Arc<[Arc<str>]>,
        /// Whether the answer was cut off.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// The result of a call.
    Result {
        /// Our id for the call.
        call: CallId,
        /// The provider's id for the call.
        id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The exact text sent to the model.
        text: Arc<str>,
        /// Whether the call succeeded.
        ok: bool,
        /// Images that belong to it, as blobs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Hash>,
    },
    /// A message from the harness.
    Notice {
        /// The text of the message.
        text: Arc<str>,
    },
}

impl Message {
    /// The images in it.
    #[must_use]
    pub fn pictures(&self) -> &[Hash] {
        match self {
            Self::User { images, .. } | Self::Result { images, .. } => images,
            Self::Assistant { .. } | Self::Notice { .. } => &[],
        }
    }
    /// The message in the form that is hashed and compared.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default() // plain structs with text keys cannot fail to serialise
    }
}

/// The arguments of a call that asks the person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskPersonArgs {
    /// The question.
    pub question: Arc<str>,
    /// Answers to choose from.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// The arguments of a call that sets the plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PlanArgs {
    /// All steps.
    pub steps: Vec<PlanStep>,
}

/// The arguments of a call that declares the work finished.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FinalArgs {
    /// The answer shown to the user.
    #[serde(default)]
    pub answer: Arc<str>,
}

/// The arguments that name the files of a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PathArgs {
    /// The path, as the model wrote it.
    pub path: Option<String>,
    /// The destination, if the file is moved.
    pub to: Option<String>,
    /// A patch; it names its own files.
    pub patch: Option<String>,
}

/// The tool that fetches pages of the web.
pub const WEB_FETCH: &str = "web_fetch";

/// The arguments of a call that fetches a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PageArgs {
    /// The page.
    pub url: String,
}

/// The arguments that all tools running a command share.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommandArgs {
    /// The command to run.
    pub command: CommandText,
    /// Whether it needs the machine's network.
    #[serde(default)]
    pub network: bool,
    /// The folder it runs in, relative to the workspace.
    #[serde(default)]
    pub folder: Option<String>,
}

/// A command: a line for a shell, or an argument vector to run directly.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum CommandText {
    /// A shell line.
    Line(String),
    /// An argument vector.
    Words(Vec<String>),
}

/// The arguments of a verification check: one command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyArgs {
    /// The command.
    pub command: String,
}

macro_rules! from_text {
    ($($name:ident)*) => {$(
        impl $name {
            /// Parses the arguments as the model wrote them.
            ///
            /// # Errors
            /// What is wrong with the arguments, for the model.
            pub fn parse(args: &str) -> Result<Self, String> {
                serde_json::from_str(args).map_err(|e| e.to_string())
            }
        }
    )*};
}
from_text!(AskPersonArgs PlanArgs FinalArgs PathArgs PageArgs CommandArgs VerifyArgs ServerToolArgs);

impl VerifyArgs {
    /// The arguments as JSON text.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
