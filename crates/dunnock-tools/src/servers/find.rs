//! `tool_find`: which tools there are, and how they are called.

use super::process::lock;
use super::roster::Servers;
use super::server::Server;
use crate::tool::{ToolContext, ToolOutput, ToolStatus};
use dunnock_mcp::{Catalogue, SearchHit, ServerConfig, search};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many tools are shown with their arguments.
const WHOLE: usize = 5;
/// How many bytes an answer has at most; about 1,500 tokens.
const MOST_BYTES: usize = 6_000;
/// How much of a description is shown.
const MOST_DESCRIPTION: usize = 700;
/// How long to wait for servers that start, if others are known already.
const SOME_KNOWN: Duration = Duration::from_secs(5);
/// The same if none is known.
const NONE_KNOWN: Duration = Duration::from_secs(30);

/// Finds tools, or lists them all if there is no query.
pub(crate) async fn find(servers: &Arc<Servers>, context: &ToolContext, query: &str) -> ToolOutput {
    if servers.configs.is_empty() {
        return Err::<String, _>("no MCP server is configured").into();
    }
    let known = tokio::select! {
        () = context.halt.cancelled() => {
            let text = "[stopped: the person interrupted]".to_owned();
            return ToolOutput::plain(ToolStatus::Cut, text);
        }
        known = known_servers(servers, context) => known,
    };
    let text = match query.trim() {
        "" => listed(&known.catalogues),
        query => found(&known.catalogues, query),
    };
    let mut output = ToolOutput::plain(ToolStatus::Done, text);
    for note in known.notes {
        output.add(&note);
    }
    output
}

/// What is known after a while.
struct KnownServers {
    catalogues: Vec<(Arc<ServerConfig>, Arc<Catalogue>)>,
    notes: Vec<String>,
}

/// Starts the servers that are not known yet, beside each other.
async fn known_servers(servers: &Arc<Servers>, context: &ToolContext) -> KnownServers {
    let all: Vec<(Arc<ServerConfig>, Arc<Server>)> = servers
        .configs
        .values()
        .map(|config| (config.clone(), servers.of_session(&context.session, config)))
        .collect();
    // A server that said that its tools have changed is asked again.
    for (_, server) in &all {
        if let Some(live) = server.running() {
            server.refresh(servers, &live).await;
        }
    }
    let unknown: Vec<_> =
        all.iter().filter(|(config, _)| servers.catalogue(config).is_none()).collect();
    let failures: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    let mut starting = JoinSet::new();
    for (config, server) in &unknown {
        let (config, server) = (config.clone(), server.clone());
        let (servers, call) = (servers.clone(), context.call_context.clone());
        // What has failed is tried again, but nobody waits for it.
        if let Some(why) = server.failure() {
            lock(&failures).insert(config.name.clone(), server.with_stderr(&why));
            tokio::spawn(async move { drop(server.live(&servers, &call).await) });
            continue;
        }
        let failures = failures.clone();
        starting.spawn(async move {
            if let Err(why) = server.live(&servers, &call).await {
                lock(&failures).insert(config.name.clone(), server.with_stderr(&why));
            }
        });
    }
    let since = Instant::now();
    let is_any_known = || all.iter().any(|(config, _)| servers.catalogue(config).is_some());
    loop {
        let wait = if is_any_known() { SOME_KNOWN } else { NONE_KNOWN };
        match tokio::time::timeout_at(since + wait, starting.join_next()).await {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    // The others go on.
    starting.detach_all();
    let mut notes = Vec::new();
    let mut catalogues = Vec::new();
    for (config, server) in &all {
        notes.extend(server.take_notes());
        match servers.catalogue(config) {
            Some(catalogue) => catalogues.push((config.clone(), catalogue)),
            None => notes.push(match lock(&failures).remove(&config.name) {
                Some(why) => format!("[MCP server {} cannot be used: {why}]", config.name),
                None => {
                    format!(
                        "[MCP server {} is still starting; call tool_find again later]",
                        config.name
                    )
                }
            }),
        }
    }
    KnownServers { catalogues, notes }
}

/// All servers with the names of their tools.
fn listed(all: &[(Arc<ServerConfig>, Arc<Catalogue>)]) -> String {
    let room = MOST_BYTES / all.len().max(1);
    let line = |(config, catalogue): &(Arc<ServerConfig>, Arc<Catalogue>)| {
        let count = dunnock_proto::count(catalogue.tools.len() as u64, "tool");
        let mut line = format!("{} ({count}): ", config.name);
        for (n, tool) in catalogue.tools.iter().enumerate() {
            if line.len() + tool.name.len() > room.max(120) {
                let _ = write!(line, "and {} more", catalogue.tools.len() - n);
                break;
            }
            let comma = if n + 1 < catalogue.tools.len() { ", " } else { "" };
            let _ = write!(line, "{}{comma}", tool.name);
        }
        line
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    match lines.is_empty() {
        true => "no tool is known yet".into(),
        false => format!(
            "{}\nTo see what a tool does and its arguments: tool_find with its name.",
            lines.join("\n")
        ),
    }
}

/// The tools that fit a query: the best ones with their arguments, then names.
fn found(all: &[(Arc<ServerConfig>, Arc<Catalogue>)], query: &str) -> String {
    let tools = all.iter().flat_map(|(config, catalogue)| {
        catalogue.tools.iter().map(|tool| (config.name.as_str(), tool))
    });
    let hits = search(query, tools);
    if hits.is_empty() {
        return format!("no tool matches {query:?}. All tools:\n{}", listed(all));
    }
    let mut out = String::new();
    let mut names = Vec::new();
    for (n, hit) in hits.iter().enumerate() {
        let whole = whole(hit);
        // The first is always shown: a call needs its arguments.
        if n == 0 || (n < WHOLE && out.len() + whole.len() <= MOST_BYTES) {
            out.push_str(&whole);
        } else {
            names.push(format!("{}/{}", hit.server, hit.tool.name));
        }
    }
    let mut line = String::new();
    for name in &names {
        if out.len() + line.len() + name.len() + 10 > MOST_BYTES || line.len() > 600 {
            break;
        }
        let comma = if line.is_empty() { "also: " } else { ", " };
        line.push_str(comma);
        line.push_str(name);
    }
    if !line.is_empty() {
        out.push_str(&line);
        out.push('\n');
    }
    let shown = hits.get(..hits.len().min(WHOLE)).unwrap_or_default();
    if let Some(name) = in_two_servers(shown) {
        let _ = writeln!(
            out,
            "[several servers have a tool {name}; choose one by its full name, SERVER/TOOL]"
        );
    }
    out
}

/// A name that several of these tools have.
fn in_two_servers<'a>(hits: &[SearchHit<'a>]) -> Option<&'a str> {
    let twice = |hit: &&SearchHit<'a>| {
        hits.iter().any(|other| other.tool.name == hit.tool.name && other.server != hit.server)
    };
    hits.iter().find(twice).map(|hit| hit.tool.name.as_str())
}

fn whole(hit: &SearchHit<'_>) -> String {
    let about = hit.tool.description.trim();
    let end = about.floor_char_boundary(MOST_DESCRIPTION.min(about.len()));
    let cut = if end < about.len() { " ..." } else { "" };
    let about = about.get(..end).unwrap_or_default().replace('\n', "\n  ");
    let hint = if hit.tool.destroys { " (can destroy)" } else { "" };
    let schema = hit.tool.schema.to_string();
    format!("{}/{}{hint}: {about}{cut}\n  arguments: {schema}\n", hit.server, hit.tool.name)
}
