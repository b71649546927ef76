//! `dunnock trust`: trusts a folder's own settings, lists trusted folders, revokes trust.

use crate::config::paths;
use crate::config::trust::{Entry, brings, load, save};
use crate::view::exit::usage;
use crate::view::output;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the command.
pub(crate) fn run(dir: Option<PathBuf>, list: bool, revoke: bool) -> anyhow::Result<ExitCode> {
    let mut trusted = load()?;
    if list {
        for entry in &trusted.folder {
            let now = brings(&entry.path).map(|hash| hash.to_string());
            let word = if now.as_deref() == Some(entry.content.as_str()) {
                "trusted"
            } else {
                "changed since"
            };
            output::line(&format!("{word:<13}  {}", entry.path.display()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let folder = paths::workspace(dir.as_deref())?;
    if revoke {
        let before = trusted.folder.len();
        trusted.folder.retain(|entry| entry.path != folder);
        if trusted.folder.len() == before {
            return Err(usage(format!(
                "{} is not trusted. \"dunnock trust --list\" lists trusted folders",
                folder.display()
            )));
        }
        save(&trusted)?;
        output::aside(&format!("no longer trusted: {}", folder.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(content) = brings(&folder) else {
        output::aside(&format!(
            "{} has no settings, commands or scripts of its own: there is nothing to trust",
            folder.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    // Show the settings before they are trusted.
    let config = folder.join(".dunnock/config.toml");
    if let Ok(text) = std::fs::read_to_string(&config) {
        output::aside(&format!("{}:", config.display()));
        output::visible(&text).lines().for_each(|line| output::aside(&format!("  │ {line}")));
    }
    trusted.folder.retain(|entry| entry.path != folder);
    trusted.folder.push(Entry { path: folder.clone(), content: content.to_string() });
    save(&trusted)?;
    output::aside(&format!(
        "trusted with its current content: {}. After a change, trust it again. To revoke: dunnock \
         trust --revoke",
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}
