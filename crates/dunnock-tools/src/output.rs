//! What a tool returns.

use dunnock_ports::Blob;
use dunnock_proto::{MissingNetwork, SeenFile};

/// How a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolStatus {
    Done,
    Failed,
    Cut,
    /// Nobody can say what it did: what watched it died.
    Unknown,
}

/// What a tool returns.
#[derive(Debug, Clone)]
pub(crate) struct ToolOutput {
    pub(crate) end: ToolStatus,
    /// For the model.
    pub(crate) text: String,
    /// The full output, if `text` is shortened.
    pub(crate) full: Option<Blob>,
    /// Which part of it came from which stream.
    pub(crate) streams: Option<Blob>,
    /// The exit code of a program.
    pub(crate) exit: Option<i32>,
    /// Files whose current content the model now knows.
    pub(crate) seen_files: Vec<SeenFile>,
    /// The diff of an edit.
    pub(crate) diff: Option<Blob>,
    /// Processes of the call are still running.
    pub(crate) left_process: bool,
    /// What it had no access to in the network.
    pub(crate) missing_network: Option<MissingNetwork>,
    /// An image that the model is shown with the text.
    pub(crate) image: Option<Blob>,
}

impl ToolOutput {
    pub(crate) fn plain(end: ToolStatus, text: String) -> Self {
        Self {
            end,
            text,
            full: None,
            streams: None,
            exit: None,
            seen_files: Vec::new(),
            diff: None,
            left_process: false,
            missing_network: None,
            image: None,
        }
    }

    /// Adds a note on a line of its own, unless it is empty.
    pub(crate) fn add(&mut self, note: &str) {
        let text = self.text.trim_end_matches('\n');
        match (text, note) {
            (_, "") => {}
            ("", note) => self.text = note.to_owned(),
            (text, note) => self.text = format!("{text}\n{note}"),
        }
    }
}

/// A tool's failure is output for the model.
impl<E: std::fmt::Display> From<Result<String, E>> for ToolOutput {
    fn from(result: Result<String, E>) -> Self {
        match result {
            Ok(text) => Self::plain(ToolStatus::Done, text),
            Err(error) => Self::plain(ToolStatus::Failed, error.to_string()),
        }
    }
}
