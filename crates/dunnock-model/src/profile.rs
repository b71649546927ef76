//! What is known of a model: found by `dunnock models check`, kept as a file, followed by every session.

use crate::dialects::Dialect;
use crate::wires::Wire;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How much a model is told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Every tool, and a full briefing.
    #[default]
    Default,
    /// Few tools, a short briefing: for small models and small windows.
    Small,
}

words!(Size { Default = "default", Small = "small", });

/// How a model changes files best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditFormat {
    /// Nobody looked: every way is offered.
    #[default]
    Any,
    /// It writes patches.
    Patch,
    /// It gives the old text and the new.
    Replace,
    /// It writes whole files.
    Whole,
}

words!(EditFormat { Any = "any", Patch = "patch", Replace = "replace", Whole = "whole", });

/// What the small profile offers.
const SMALL: &[&str] =
    &["shell", "view_file", "list_files", "search_text", "write_file", "replace_text", "final_output"];

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Of this form.
    pub v: u16,
    /// `provider/model`.
    pub model: String,
    /// How it was configured then, and where it was: another server is another matter.
    pub asked: (Wire, String),
    /// How it is spoken to.
    pub wire: Wire,
    /// How calls are written.
    pub dialect: Dialect,
    /// The server can be held to a schema.
    pub constrained: bool,
    /// How it changes files best.
    pub edit: EditFormat,
    /// How much it is told at once.
    pub profile: Size,
    /// Tokens that it holds.
    pub window: Option<u64>,
    /// Several calls in one answer.
    pub parallel: bool,
    /// Messages must alternate.
    pub merge: bool,
    /// It shows its reasoning.
    pub reasoning: bool,
    /// What it or its server does wrong.
    pub faults: Vec<String>,
    /// When that was found out, as a date.
    pub checked: String,
}

impl Profile {
    /// Whether a tool is offered.
    #[must_use]
    pub fn offers(size: Size, edit: EditFormat, tool: &str) -> bool {
        let wanted = match edit {
            EditFormat::Any => true,
            EditFormat::Patch => !["replace_text", "insert_text"].contains(&tool),
            EditFormat::Replace => tool != "apply_patch",
            EditFormat::Whole => !["apply_patch", "replace_text", "insert_text"].contains(&tool),
        };
        let patch = edit == EditFormat::Patch && tool == "apply_patch";
        wanted && (size == Size::Default || SMALL.contains(&tool) || patch)
    }
}

/// Where profiles are kept.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    folder: Option<PathBuf>,
}

impl Profiles {
    /// Kept in this folder.
    #[must_use]
    pub fn kept_in(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// Where that of a model is.
    #[must_use]
    pub fn path(&self, model: &str) -> Option<PathBuf> {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) { c.to_string() } else { format!("%{:x}", u32::from(c)) }
        };
        let name: String = model.chars().map(plain).collect();
        self.folder.as_ref().map(|folder| folder.join(format!("{name}.json")))
    }

    /// What is known of a model.
    ///
    /// # Errors
    /// When there is something that cannot be read.
    pub fn get(&self, model: &str) -> Result<Option<Profile>, String> {
        let Some(path) = self.path(model) else { return Ok(None) };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        let again = format!("Run \"dunnock models check {model}\" again");
        let profile: Profile =
            serde_json::from_slice(&bytes).map_err(|e| format!("{} is damaged: {e}. {again}", path.display()))?;
        if profile.v != 1 {
            return Err(format!("{} is of a later release. {again}", path.display()));
        }
        Ok(Some(profile))
    }

    /// Keeps what was found out. Where it is now.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn put(&self, profile: &Profile) -> Result<Option<PathBuf>, String> {
        let Some(path) = self.path(&profile.model) else { return Ok(None) };
        let told = |e: std::io::Error| format!("{} cannot be written: {e}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(told)?;
        }
        let part = path.with_extension(format!("part{}", std::process::id()));
        let text = serde_json::to_string_pretty(profile).map_err(|e| e.to_string())?;
        std::fs::write(&part, text + "\n").and_then(|()| std::fs::rename(&part, &path)).map_err(told)?;
        Ok(Some(path))
    }
}
