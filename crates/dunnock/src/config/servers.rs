//! MCP servers in settings files: the person's own, and those of a trusted project.

use crate::config::keys_table::Settings;
use crate::config::settings::read_project_file;
use anyhow::Context as _;
use dunnock_mcp::{PROJECT_FILES, ServerConfig, ServerFileFormat, ServerOrigin, read_foreign};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The project's own settings file.
const OWN_FILE: &str = ".dunnock/config.toml";

/// The part of a settings file that describes servers.
#[derive(Deserialize)]
pub(crate) struct ServersFile {
    /// The entries, by the names of the servers.
    #[serde(default)]
    pub(crate) mcp: BTreeMap<String, serde_json::Value>,
}

/// Reads the servers of a settings file that counts.
pub(crate) fn read(
    settings: &mut Settings,
    path: &Path,
    text: &str,
    project: bool,
) -> anyhow::Result<()> {
    let at = || path.display().to_string();
    let ServersFile { mcp } =
        toml::from_str(text).map_err(|error| anyhow::anyhow!("{}: {}", at(), error.message()))?;
    for (name, entry) in mcp {
        let origin = match project {
            true => ServerOrigin::Project(OWN_FILE.into()),
            false => ServerOrigin::Person,
        };
        let server = ServerConfig::parse(&name, origin, entry).with_context(at)?;
        add(settings, server);
    }
    Ok(())
}

/// The files of a project that describe servers, as far as they can be read.
pub(crate) fn project_files(folder: &Path) -> Vec<&'static str> {
    let describes = |name: &str, format: ServerFileFormat| {
        let origin = ServerOrigin::Project(name.to_owned());
        let Ok(text) = read_project_file(&folder.join(name)) else { return false };
        // What cannot be parsed counts: it may be readable for the next release.
        read_foreign(&text, format, &origin)
            .map_or(true, |found| !found.servers.is_empty() || !found.unusable.is_empty())
    };
    let mut files: Vec<&'static str> = PROJECT_FILES
        .iter()
        .filter(|(name, format)| describes(name, *format))
        .map(|(name, _)| *name)
        .collect();
    let own = read_project_file(&folder.join(OWN_FILE)).unwrap_or_default();
    if toml::from_str::<ServersFile>(&own).is_ok_and(|file| !file.mcp.is_empty()) {
        files.insert(0, OWN_FILE);
    }
    files
}

/// Reads the servers in the files of a project that other agents use as well. They count if the
/// folder is trusted.
pub(crate) fn read_project(settings: &mut Settings, folder: &Path, trusted: bool) {
    for name in project_files(folder) {
        let Some((_, format)) = PROJECT_FILES.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        if !trusted {
            settings.notes.push(format!(
                "{name}: MCP servers are ignored, because this folder is not trusted. Read it first; \
                 to trust it: dunnock trust"
            ));
            continue;
        }
        let Ok(text) = read_project_file(&folder.join(name)) else { continue };
        match read_foreign(&text, *format, &ServerOrigin::Project(name.to_owned())) {
            Ok(found) => {
                found.servers.into_iter().for_each(|server| add(settings, server));
                for (server, why) in found.unusable {
                    settings
                        .notes
                        .push(format!("{name}: the MCP server {server:?} is ignored: {why}"));
                }
            }
            Err(why) => settings.notes.push(format!("{name} is ignored: {why}")),
        }
    }
}

/// Adds a server. Of several with the same name, the person's own one counts, or else the first.
fn add(settings: &mut Settings, server: ServerConfig) {
    let Some(known) = settings.servers.iter().find(|known| known.name == server.name) else {
        settings.servers.push(server);
        return;
    };
    if let (ServerOrigin::Person, ServerOrigin::Project(file)) = (&known.origin, &server.origin) {
        settings.notes.push(format!(
            "{file}: the MCP server {} is ignored, because you have one with that name",
            server.name
        ));
    }
}
