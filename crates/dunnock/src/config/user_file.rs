//! Changes the user's settings file, and leaves the rest of it as it is.

use crate::config::load;
use crate::config::servers::ServersFile;
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use toml::de::DeTable;

/// Sets the model of new sessions. Returns the file.
pub(crate) fn set_model(model: &str) -> anyhow::Result<PathBuf> {
    change(|text| {
        with_model(text, model).with_context(|| format!("set model = \"{model}\" in it yourself"))
    })
}

/// Adds the table of an MCP server. Returns the file.
pub(crate) fn add_server(name: &str, table: &str) -> anyhow::Result<PathBuf> {
    change(|text| with_server(text, name, table))
}

/// Removes the tables of an MCP server. Returns the file.
pub(crate) fn remove_server(name: &str) -> anyhow::Result<PathBuf> {
    change(|text| without_server(text, name))
}

/// Changes the text of the file. Returns its path.
fn change(changed: impl FnOnce(&str) -> anyhow::Result<String>) -> anyhow::Result<PathBuf> {
    let path = load::user_file()?;
    // A link to a file elsewhere stays one.
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    let text = match std::fs::read_to_string(&real) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let text = changed(&text).with_context(|| format!("{} cannot be changed", path.display()))?;
    if let Some(folder) = real.parent() {
        dunnock_private::create_folder(folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
    }
    dunnock_private::replace(&real, text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// The servers of a settings file, each as JSON.
fn servers(text: &str) -> anyhow::Result<BTreeMap<String, serde_json::Value>> {
    let file: ServersFile =
        toml::from_str(text).map_err(|error| anyhow::anyhow!("{}", error.message()))?;
    Ok(file.mcp)
}

fn with_server(text: &str, name: &str, table: &str) -> anyhow::Result<String> {
    let known = servers(text)?;
    if known.contains_key(name) {
        bail!("there is an MCP server {name} already; remove it first: dunnock mcp remove {name}");
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let after = format!("{text}{gap}{table}");
    // Nothing else may have changed.
    let mut now = servers(&after)?;
    let added = now.remove(name);
    if added.is_none() || now != known {
        bail!("add the table of the server yourself:\n{table}");
    }
    Ok(after)
}

fn without_server(text: &str, name: &str) -> anyhow::Result<String> {
    let mut known = servers(text)?;
    if known.remove(name).is_none() {
        bail!("there is no MCP server {name} in it; \"dunnock mcp list\" lists the servers");
    }
    let quoted = serde_json::to_string(name)?;
    let is_header = |line: &str| line.trim_start().starts_with('[');
    let is_own = |line: &str| {
        let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        [name, quoted.as_str()].iter().any(|name| {
            line.starts_with(&format!("[mcp.{name}]")) || line.starts_with(&format!("[mcp.{name}."))
        })
    };
    let mut inside = false;
    let mut after = String::new();
    for line in text.split_inclusive('\n') {
        if is_header(line) {
            inside = is_own(line);
        }
        if !inside {
            after.push_str(line);
        }
    }
    // A value may look like a header, and a server may be written in other forms.
    if servers(&after).ok().as_ref() != Some(&known) {
        bail!("remove the table [mcp.{name}] yourself");
    }
    Ok(after)
}

fn with_model(text: &str, model: &str) -> anyhow::Result<String> {
    let value = serde_json::to_string(model)?;
    let table = DeTable::parse(text).map_err(|error| anyhow::anyhow!("{}", error.message()))?;
    let known = table.get_ref().iter().find(|(name, _)| name.get_ref() == "model");
    let Some((_, old)) = known else { return Ok(format!("model = {value}\n{text}")) };
    let span = old.span();
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    let (before, after) = before.zip(after).context("the setting was not found")?;
    Ok(format!("{before}{value}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_model_changes() {
        for (before, after) in [
            ("", "model = \"a/b\"\n"),
            ("model = \"x/y\" # mine\nmax_steps = 3\n", "model = \"a/b\" # mine\nmax_steps = 3\n"),
            (
                "# first\n[providers.x]\nwire = 'chat'\n",
                "model = \"a/b\"\n# first\n[providers.x]\nwire = 'chat'\n",
            ),
            ("max_steps = 3\nmodel='x/y'", "max_steps = 3\nmodel=\"a/b\""),
        ] {
            let text = with_model(before, "a/b").unwrap();
            assert_eq!(text, after);
            assert!(DeTable::parse(&text).is_ok(), "{text}");
        }
        assert!(with_model("model = ", "a/b").is_err());
    }

    #[test]
    fn servers_come_and_go_and_the_rest_stays() {
        let table = "[mcp.git]\ncommand = \"mcp-server-git\"\n";
        for before in ["", "model = \"a/b\"\n", "model = \"a/b\" # mine\n[mcp.x]\ncommand = \"x\""]
        {
            let with = with_server(before, "git", table).unwrap();
            assert!(with.starts_with(before) && with.ends_with(table), "{with}");
            assert!(with_server(&with, "git", table).is_err(), "twice");
            let without = without_server(&with, "git").unwrap();
            assert_eq!(without.trim_end(), before.trim_end());
        }
        let forms = "[mcp.\"git\"]\ncommand = \"a\"\n[mcp.git.env]\nA = \"[mcp.y]\"\n[mcp.y]\ncommand = \"y\"\n";
        assert_eq!(without_server(forms, "git").unwrap(), "[mcp.y]\ncommand = \"y\"\n");
        assert!(without_server("mcp.git = { command = \"a\" }\n", "git").is_err());
        assert!(without_server("", "git").is_err());
    }
}
