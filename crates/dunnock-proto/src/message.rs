//! What the model is shown, in a form that belongs to no provider.
//!
//! Invariant: [`Message::bytes`] is a function of the message alone; the hash of a request is built from it, so a
//! request can be rebuilt and compared years later.

use crate::{CallId, Hash, Part, PlanStep};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The person's words.
    User {
        /// The words.
        text: Arc<str>,
        /// Pictures, as blobs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Hash>,
    },
    /// An answer of a model.
    Assistant {
        /// Who made it: opaque parts go back only to their maker.
        model: Arc<str>,
        /// Over which wire.
        wire: Arc<str>,
        /// In order.
        parts: Arc<[Part]>,
        /// It was cut off.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// What came of a call.
    Result {
        /// Our name for it.
        call: CallId,
        /// The provider's name for it.
        id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The exact text.
        text: Arc<str>,
        /// Whether it did what it should.
        ok: bool,
    },
    /// Something the harness says.
    Notice {
        /// The words.
        text: Arc<str>,
    },
}

impl Message {
    /// The pictures in it.
    #[must_use]
    pub fn pictures(&self) -> &[Hash] {
        match self {
            Self::User { images, .. } => images,
            Self::Assistant { .. } | Self::Result { .. } | Self::Notice { .. } => &[],
        }
    }
    /// The message in the form that is hashed and compared.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default() // plain structs with text keys: there is nothing to fail
    }
}

/// The arguments of a call that asks the person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskPersonArgs {
    /// What is asked.
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

/// The arguments of a call that says that the work is finished.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FinalArgs {
    /// What the person is told.
    #[serde(default)]
    pub answer: Arc<str>,
}

/// The arguments that say which files a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PathArgs {
    /// As the model wrote it.
    pub path: Option<String>,
    /// Where it goes, if it is moved.
    pub to: Option<String>,
    /// A patch, which names its files.
    pub patch: Option<String>,
}

/// What every tool that runs a command is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommandArgs {
    /// What to run.
    pub command: CommandText,
    /// It wants the network of the machine.
    #[serde(default)]
    pub network: bool,
}

/// A command: a line for a shell, or words to run directly.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum CommandText {
    /// A line.
    Line(String),
    /// Words.
    Words(Vec<String>),
}

/// The arguments of a check: one command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyArgs {
    /// The command.
    pub command: String,
}

macro_rules! from_text {
    ($($name:ident)*) => {$(
        impl $name {
            /// Reads the arguments as the model wrote them.
            ///
            /// # Errors
            /// What is wrong with them, for the model.
            pub fn parse(args: &str) -> Result<Self, String> {
                serde_json::from_str(args).map_err(|e| e.to_string())
            }
        }
    )*};
}
from_text!(AskPersonArgs PlanArgs FinalArgs PathArgs CommandArgs VerifyArgs);

impl VerifyArgs {
    /// As a call's arguments.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
