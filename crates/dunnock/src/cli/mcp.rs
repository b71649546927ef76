//! `dunnock mcp`: lists, adds, removes and tests MCP servers.

use crate::cli::args::Mcp;
use crate::compose;
use crate::config::keys_table::Settings;
use crate::config::{load, paths, servers, user_file};
use crate::view::exit::usage;
use crate::view::output;
use anyhow::{Context as _, bail};
use dunnock_mcp::{
    CatalogueCache, OWN_FILES, ServerAccess, ServerConfig, ServerFileFormat, ServerOrigin,
    ServerStart, read_foreign,
};
use dunnock_proto::{SessionId, count};
use dunnock_tools::SessionServers;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub(crate) async fn run(data: Option<PathBuf>, what: Mcp) -> anyhow::Result<ExitCode> {
    match what {
        Mcp::List { json } => list(data, json),
        Mcp::Add { from: Some(agent), name, .. } => copy(&agent, name.as_deref()),
        Mcp::Add { name, words, url, header, env, network, host, write, read, from: None } => {
            let name =
                name.ok_or_else(|| usage("name the server: dunnock mcp add NAME -- PROGRAM"))?;
            let pair = |text: &String, sign: char| {
                let (key, value) = text
                    .split_once(sign)
                    .ok_or_else(|| usage(format!("{text:?} is not of the form NAME{sign}VALUE")))?;
                anyhow::Ok((key.trim().to_owned(), Value::from(value.trim())))
            };
            let env = env.iter().map(|text| pair(text, '='));
            let env = env.collect::<anyhow::Result<serde_json::Map<_, _>>>()?;
            let headers = header.iter().map(|text| pair(text, ':'));
            let headers = headers.collect::<anyhow::Result<serde_json::Map<_, _>>>()?;
            if url.is_none() && words.is_empty() {
                return Err(usage(format!(
                    "give its program or its address: dunnock mcp add {name} -- PROGRAM, or --url URL"
                )));
            }
            let read: Vec<String> =
                read.iter().map(|path| path.to_string_lossy().into_owned()).collect();
            let entry = match url {
                Some(url) => json!({"url": url, "headers": headers}),
                None => json!({
                    "command": words, "env": env, "network": network, "hosts": host,
                    "write": write, "read": read,
                }),
            };
            let server = ServerConfig::parse(&name, ServerOrigin::Person, entry)
                .map_err(|error| usage(error.to_string()))?;
            save(&server)
        }
        Mcp::Remove { name } => {
            let path = user_file::remove_server(&name)?;
            output::aside(&format!("removed {name} from {}", path.display()));
            Ok(ExitCode::SUCCESS)
        }
        Mcp::Test { name } => test(data, &name).await,
    }
}

fn settings(data: Option<PathBuf>) -> anyhow::Result<(PathBuf, Settings)> {
    let folder = paths::workspace(None)?;
    let settings = load::settings(Some(&folder), false, load::given(data, Vec::new()))?;
    Ok((folder, settings))
}

fn list(data: Option<PathBuf>, json: bool) -> anyhow::Result<ExitCode> {
    let (folder, settings) = settings(data)?;
    settings.notes.iter().for_each(|note| output::note(note));
    if !json {
        lines(&settings, &folder, None)?.iter().for_each(|line| output::line(line));
        return Ok(ExitCode::SUCCESS);
    }
    for row in rows(&settings)? {
        let Row { server, tools, running } = row;
        let running: Vec<Value> = running
            .iter()
            .map(|(session, state)| json!({"session": session, "state": state}))
            .collect();
        output::line(
            &json!({
                "name": server.name, "target": server.what(), "access": server.granted(),
                "project": server.is_of_project(), "tools": tools, "running": running,
                "variables": server.variables(),
            })
            .to_string(),
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// A server, and what is known of it.
pub(crate) struct Row<'a> {
    pub(crate) server: &'a ServerConfig,
    pub(crate) tools: Option<usize>,
    /// Sessions that are driven now, with the state of the server in each.
    pub(crate) running: Vec<(SessionId, String)>,
}

pub(crate) fn rows(settings: &Settings) -> anyhow::Result<Vec<Row<'_>>> {
    let folder = paths::data_dir(settings)?.join("mcp");
    let cache = CatalogueCache::new(folder.clone());
    let sessions = dunnock_tools::session_servers(&folder);
    let mut rows = Vec::new();
    for server in &settings.servers {
        let of = |known: &SessionServers| {
            let status = known.servers.iter().find(|status| status.name == server.name)?;
            Some((known.session.clone(), status.state.clone()))
        };
        let tools = cache.load(server).map(|catalogue| catalogue.tools.len());
        rows.push(Row { server, tools, running: sessions.iter().filter_map(of).collect() });
    }
    Ok(rows)
}

/// The servers of a folder for people, with their state in this session, or in all that run.
pub(crate) fn lines(
    settings: &Settings,
    folder: &Path,
    session: Option<&SessionId>,
) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for Row { server, tools, running } in rows(settings)? {
        let origin = match &server.origin {
            ServerOrigin::Person => "yours".to_owned(),
            ServerOrigin::Project(file) => format!("of this project, {file}"),
        };
        let known = match tools {
            Some(tools) => count(tools as u64, "tool"),
            None => "tools not known yet".to_owned(),
        };
        lines.push(format!("{}  ({origin}; {known})", server.name));
        lines.push(format!("    {}", output::one_line(&server.what())));
        lines.push(format!("    {}", output::one_line(&server.granted())));
        for (id, state) in running.iter().filter(|(id, _)| session.is_none_or(|one| one == id)) {
            let state = output::one_line(&output::visible(state));
            lines.push(match session {
                Some(_) => format!("    in this session: {state}"),
                None => format!("    in session {id}: {state}"),
            });
        }
    }
    if settings.servers.is_empty() {
        lines.push("There are no MCP servers. To add one: dunnock mcp add NAME -- PROGRAM".into());
    }
    let files = servers::project_files(folder);
    if !files.is_empty() && !crate::config::trust::is_trusted(folder) {
        lines.push(format!(
            "This project describes MCP servers ({}). They do not run before you trust the folder. \
             Read these files first; to trust it: dunnock trust",
            files.join(", ")
        ));
    }
    Ok(lines)
}

/// Adds a server to the person's settings.
fn save(server: &ServerConfig) -> anyhow::Result<ExitCode> {
    let path = user_file::add_server(&server.name, &table(server)?)?;
    output::aside(&format!("added {} to {}: {}", server.name, path.display(), server.granted()));
    output::aside(&format!("to try it: dunnock mcp test {}", server.name));
    Ok(ExitCode::SUCCESS)
}

/// The lines of a server in a settings file.
fn table(server: &ServerConfig) -> anyhow::Result<String> {
    let text = |value: &Value| serde_json::to_string(value);
    let mut out = format!("[mcp.{}]\n", key(&server.name)?);
    let pairs = match &server.start {
        ServerStart::Command { words, env } => {
            let (program, args) = words.split_first().context("the command is empty")?;
            writeln!(out, "command = {}", text(&json!(program))?)?;
            if !args.is_empty() {
                writeln!(out, "args = {}", text(&json!(args))?)?;
            }
            ("env", env)
        }
        ServerStart::Http { url, headers } => {
            writeln!(out, "url = {}", text(&json!(url))?)?;
            ("headers", headers)
        }
    };
    if !pairs.1.is_empty() {
        let mut all = Vec::new();
        for (name, value) in pairs.1 {
            all.push(format!("{} = {}", key(name)?, text(&json!(value))?));
        }
        writeln!(out, "{} = {{ {} }}", pairs.0, all.join(", "))?;
    }
    let ServerAccess { network, hosts, write, read } = &server.access;
    for (name, on) in [("network", network), ("write", write)] {
        if *on {
            writeln!(out, "{name} = true")?;
        }
    }
    if !hosts.is_empty() {
        writeln!(out, "hosts = {}", text(&json!(hosts))?)?;
    }
    if !read.is_empty() {
        writeln!(out, "read = {}", text(&json!(read))?)?;
    }
    Ok(out)
}

/// A key of TOML, in quotes where it needs them.
fn key(name: &str) -> anyhow::Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    Ok(match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => serde_json::to_string(name)?,
    })
}

/// Copies servers from the settings of another agent.
fn copy(agent: &str, only: Option<&str>) -> anyhow::Result<ExitCode> {
    let Some((_, below, format)) = OWN_FILES.iter().find(|(name, ..)| *name == agent) else {
        let names: Vec<&str> = OWN_FILES.iter().map(|(name, ..)| *name).collect();
        return Err(usage(format!("unknown agent {agent:?}; use {}", names.join(", "))));
    };
    let home = paths::var("HOME").context("HOME is not set")?;
    let path = home.join(below);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let text = if agent == "codex" { of_codex(&text, &path)? } else { text };
    let found = read_foreign(&text, *format, &ServerOrigin::Person)
        .with_context(|| path.display().to_string())?;
    let known = load::settings(None, false, Vec::new())?.servers;
    let mut added = 0;
    for server in found.servers.iter().filter(|one| only.is_none_or(|name| one.name == name)) {
        if known.iter().any(|known| known.name == server.name) {
            output::aside(&format!(
                "{} is left as it is: you have a server of that name",
                server.name
            ));
            continue;
        }
        save(server)?;
        added += 1;
    }
    let wanted = |name: &str| only.is_none_or(|only| name == only);
    let unusable = || found.unusable.iter().filter(|(name, _)| wanted(name));
    if let Some(name) = only
        && unusable().count() == 0
        && !found.servers.iter().any(|server| wanted(&server.name))
    {
        return Err(usage(format!("{} has no MCP server {name:?}", path.display())));
    }
    for (name, why) in unusable() {
        output::aside(&format!("{} is not copied: {why}", output::one_line(name)));
    }
    if added == 0 && found.servers.is_empty() {
        output::aside(&format!("{} has no MCP servers", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The servers of Codex's settings in the form of most agents.
fn of_codex(text: &str, path: &Path) -> anyhow::Result<String> {
    #[derive(serde::Deserialize)]
    struct Codex {
        #[serde(default)]
        mcp_servers: serde_json::Map<String, Value>,
    }
    let codex: Codex = toml::from_str(text)
        .map_err(|error| anyhow::anyhow!("{}: {}", path.display(), error.message()))?;
    debug_assert!(
        OWN_FILES
            .iter()
            .any(|(name, _, format)| *name == "codex" && *format == ServerFileFormat::McpServers)
    );
    Ok(json!({"mcpServers": codex.mcp_servers}).to_string())
}

#[cfg(target_os = "linux")]
async fn test(data: Option<PathBuf>, name: &str) -> anyhow::Result<ExitCode> {
    let (folder, settings) = settings(data)?;
    if !settings.servers.iter().any(|server| server.name == name) {
        return Err(usage(format!("there is no server {name:?}; \"dunnock mcp list\" lists them")));
    }
    let mut work = compose::open(&settings, None).await?;
    work.confine(&settings, settings.sandbox.value)?;
    let level = match settings.sandbox.value {
        dunnock_proto::Sandbox::Off => dunnock_proto::Isolation::D,
        _ => work.ports.level,
    };
    let tested = work.toolbox().test_server(&folder, level, name).await;
    let catalogue = match tested {
        Ok(catalogue) => catalogue,
        Err(why) => bail!("{name} cannot be used: {}", output::visible(&why)),
    };
    for tool in &catalogue.tools {
        let about = tool.description.lines().next().unwrap_or_default();
        let hint = match (tool.reads_only, tool.destroys) {
            (true, _) => " (says that it only reads)",
            (false, true) => " (says that it can destroy)",
            (false, false) => "",
        };
        output::line(&output::visible(&format!("{}{hint}: {about}", tool.name)));
    }
    let left_out = match catalogue.left_out {
        0 => String::new(),
        n => format!("; {} left out, because of their names or sizes", count(n as u64, "tool")),
    };
    output::aside(&format!(
        "{name} works: {}{left_out}",
        count(catalogue.tools.len() as u64, "tool")
    ));
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(target_os = "linux"))]
async fn test(_: Option<PathBuf>, _: &str) -> anyhow::Result<ExitCode> {
    bail!("MCP servers are not supported on this system yet")
}
