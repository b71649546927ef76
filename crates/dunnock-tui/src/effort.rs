//! The reasoning effort of a session, as its events describe it.

use dunnock_proto::{Effort, Preamble};

/// The effort that is sent, if the model has a setting for it and its server accepts it.
#[derive(Debug, Clone, Default)]
pub struct SentEffort {
    sent: Option<Effort>,
    /// The model whose server refused it.
    refused_by: Option<String>,
}

impl SentEffort {
    /// The effort.
    #[must_use]
    pub fn get(&self) -> Option<Effort> {
        self.sent
    }

    pub(crate) fn rendered(&mut self, preamble: &Preamble) {
        let refused = self.refused_by.as_deref() == Some(&preamble.model);
        self.sent = preamble.effort.filter(|_| !refused).map(|effort| effort.sent);
    }

    /// A server refused it. Returns what to tell the user.
    pub(crate) fn refuse(&mut self, model: &str) -> String {
        (self.sent, self.refused_by) = (None, Some(model.to_owned()));
        format!("{model} does not accept an effort; it is no longer sent")
    }

    /// Another model was chosen; its preamble follows.
    pub(crate) fn forget(&mut self) {
        self.sent = None;
    }
}

/// What an effort means, for the list of efforts.
pub(crate) fn words(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "no thinking, where the model allows it",
        Effort::Low => "fast answers",
        Effort::Medium => "the default here",
        Effort::High => "slower, for hard tasks",
        Effort::Xhigh => "more than high, where the model has it",
        Effort::Max => "slowest and most expensive",
    }
}
