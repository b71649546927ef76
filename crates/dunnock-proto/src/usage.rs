//! What requests to a model used.

use serde::{Deserialize, Serialize};

/// What a request used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// Of those, tokens the server had cached.
    pub cached: u64,
    /// Tokens received, reasoning included.
    pub output: u64,
    /// Of those, reasoning.
    pub reasoning: u64,
    /// Of the tokens sent, those that the server wrote to its cache and charges for.
    #[serde(skip_serializing_if = "is_zero")]
    pub written: u64,
}

impl Usage {
    /// Whether no usage is known.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input += more.input;
        self.cached += more.cached;
        self.output += more.output;
        self.reasoning += more.reasoning;
        self.written += more.written;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
