//! Model profiles: measured by `dunnock models check`, saved as files, used by every session.

use crate::dialects::Dialect;
use crate::wire::Wire;
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The size of a model's system prompt and tool set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// All tools and the full system prompt.
    #[default]
    Default,
    /// Few tools and a short system prompt, for small models and small windows.
    Small,
}

words!(Size { Default = "default", Small = "small", });

/// The edit format in which a model works best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditFormat {
    /// No preference, or not tested: all edit tools are offered.
    #[default]
    Any,
    /// It writes patches.
    Patch,
    /// It replaces old text with new.
    Replace,
    /// It writes whole files.
    Whole,
}

words!(EditFormat { Any = "any", Patch = "patch", Replace = "replace", Whole = "whole", });

/// The measured properties of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Format version.
    pub v: u16,
    /// `provider/model`.
    pub model: String,
    /// The wire and address at the time of the check. With another server the profile is not used.
    pub asked: (Wire, String),
    /// The wire that works.
    pub wire: Wire,
    /// The dialect in which it calls tools.
    pub dialect: Dialect,
    /// The server can constrain answers to a schema.
    pub constrained: bool,
    /// The edit format in which it works best.
    pub edit: EditFormat,
    /// The size of its system prompt and tool set.
    pub profile: Size,
    /// Context window in tokens.
    pub window: Option<u64>,
    /// It can make several calls in one answer.
    pub parallel: bool,
    /// User and assistant messages must alternate, so consecutive ones are merged.
    pub merge: bool,
    /// It shows its reasoning.
    pub reasoning: bool,
    /// Known faults of the model or its server.
    pub faults: Vec<String>,
    /// The date of the check.
    pub checked: String,
}

impl EditFormat {
    /// Whether a tool belongs to this format, or is none that edits.
    #[must_use]
    pub fn has(self, tool: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Patch => !["replace_text", "insert_text"].contains(&tool),
            Self::Replace => tool != "apply_patch",
            Self::Whole => !["apply_patch", "replace_text", "insert_text"].contains(&tool),
        }
    }
}

/// The saved profiles.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    folder: Option<PathBuf>,
}

impl Profiles {
    /// Profiles saved in this folder.
    #[must_use]
    pub fn kept_in(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// The path of a model's profile.
    #[must_use]
    pub fn path(&self, model: &str) -> Option<PathBuf> {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c.to_string()
            } else {
                format!("%{:x}", u32::from(c))
            }
        };
        let name: String = model.chars().map(plain).collect();
        self.folder.as_ref().map(|folder| folder.join(format!("{name}.json")))
    }

    /// Loads the profile of a model, if there is one.
    ///
    /// # Errors
    /// When the profile exists but cannot be read.
    pub fn get(&self, model: &str) -> Result<Option<Profile>, String> {
        let Some(path) = self.path(model) else { return Ok(None) };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        let again = format!("Run \"dunnock models check {model}\" again");
        let profile: Profile = serde_json::from_slice(&bytes)
            .map_err(|e| format!("{} is damaged: {e}. {again}", path.display()))?;
        if profile.v != 1 {
            return Err(format!("{} was written by another release. {again}", path.display()));
        }
        Ok(Some(profile))
    }

    /// Saves a profile and returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, profile: &Profile) -> Result<Option<PathBuf>, String> {
        let Some(path) = self.path(&profile.model) else { return Ok(None) };
        let failed = |e: std::io::Error| format!("{} cannot be written: {e}", path.display());
        if let Some(folder) = path.parent() {
            dunnock_private::create_folder(folder).map_err(failed)?;
        }
        let text = serde_json::to_string_pretty(profile).map_err(|e| e.to_string())?;
        dunnock_private::replace(&path, (text + "\n").as_bytes()).map_err(failed)?;
        Ok(Some(path))
    }
}
