//! `dunnock trust`: trusts a folder's own settings, lists trusted folders, revokes trust.

use crate::config::{load, paths, trust};
use crate::view::exit::usage;
use crate::view::output;
use dunnock_mcp::ServerOrigin;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub(crate) fn run(dir: Option<PathBuf>, list: bool, revoke: bool) -> anyhow::Result<ExitCode> {
    if list {
        for (folder, is_current) in trust::list()? {
            let word = if is_current { "trusted" } else { "changed since" };
            output::line(&format!("{word:<13}  {}", folder.display()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let folder = paths::workspace(dir.as_deref())?;
    if revoke {
        if !trust::revoke(&folder)? {
            return Err(usage(format!(
                "{} is not trusted. \"dunnock trust --list\" lists trusted folders",
                folder.display()
            )));
        }
        output::aside(&format!("no longer trusted: {}", folder.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(content) = trust::brings(&folder) else {
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
    for line in servers(&folder)? {
        output::aside(&line);
    }
    trust::trust(&folder, content)?;
    output::aside(&format!(
        "trusted with its current content: {}. After a change, trust it again. To revoke: dunnock \
         trust --revoke",
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The MCP servers of a project: command, access and named variables of each.
fn servers(folder: &Path) -> anyhow::Result<Vec<String>> {
    let settings = load::settings(Some(folder), true, Vec::new())?;
    let mut lines = Vec::new();
    for server in settings.servers.iter().filter(|server| server.is_of_project()) {
        let ServerOrigin::Project(file) = &server.origin else { continue };
        lines.push(format!(
            "MCP server {} ({file}): {}",
            server.name,
            output::one_line(&server.what())
        ));
        lines.push(format!("  │ {}", server.granted()));
        let variables = server.variables();
        if !variables.is_empty() {
            lines.push(format!(
                "  │ asks for your variables: {} (it gets only those that mcp_variables in your settings names)",
                output::one_line(&variables.join(", "))
            ));
        }
    }
    Ok(lines)
}
