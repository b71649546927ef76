//! All servers of all sessions: their settings, what is known of them, and which of them run.

use super::process::lock;
use super::server::Server;
use crate::context::CallContext;
use crate::process::Watch;
use dunnock_mcp::{Catalogue, CatalogueCache, DescriptionChange, ServerConfig, ServerStart};
use dunnock_proto::{ServerTool, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The servers that sessions in a folder may use.
#[derive(Debug, Clone, Default)]
pub struct ServerSettings {
    /// The servers.
    pub servers: Vec<ServerConfig>,
    /// Variables of the person's that servers of the project may get.
    pub variables: Vec<String>,
    /// Where catalogues are kept.
    pub cache: PathBuf,
}

/// A server of a session that runs, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// What it is doing, or why it is not.
    pub state: String,
    /// How many tools it has, if that is known.
    pub tools: Option<usize>,
}

/// The servers of a session, as the process that drives it last wrote them down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionServers {
    /// The session.
    pub session: SessionId,
    /// The process.
    pub pid: u32,
    /// Its servers.
    pub servers: Vec<ServerStatus>,
}

/// The servers of all sessions that are driven by a process now.
#[must_use]
pub fn session_servers(cache: &Path) -> Vec<SessionServers> {
    let read = |entry: std::fs::DirEntry| {
        let text = std::fs::read(entry.path()).ok()?;
        serde_json::from_slice::<SessionServers>(&text).ok()
    };
    let all = std::fs::read_dir(cache.join(SESSIONS)).into_iter().flatten().flatten();
    let mut all: Vec<SessionServers> = all
        .filter_map(read)
        .filter(|known| Path::new("/proc").join(known.pid.to_string()).exists())
        .collect();
    all.sort_by(|a, b| a.session.cmp(&b.session));
    all
}

/// The folder, below the catalogues, in which processes write down the servers of their sessions.
const SESSIONS: &str = "sessions";

/// All servers of all sessions.
pub(crate) struct Servers {
    pub(super) configs: BTreeMap<String, Arc<ServerConfig>>,
    pub(super) variables: Vec<String>,
    pub(super) cache: CatalogueCache,
    folder: PathBuf,
    /// The last catalogue of each server.
    catalogues: Mutex<BTreeMap<String, Arc<Catalogue>>>,
    sessions: Mutex<BTreeMap<(SessionId, String), Arc<Server>>>,
}

impl Servers {
    pub(crate) fn new(settings: ServerSettings) -> Self {
        let ServerSettings { servers, variables, cache } = settings;
        let configs = servers.into_iter().map(|config| (config.name.clone(), Arc::new(config)));
        Self {
            configs: configs.collect(),
            variables,
            cache: CatalogueCache::new(cache.clone()),
            folder: cache.join(SESSIONS),
            catalogues: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    /// The settings of a server.
    pub(super) fn config(&self, name: &str) -> Option<Arc<ServerConfig>> {
        self.configs.get(name).cloned()
    }

    /// What a server offers, if that is known.
    pub(super) fn catalogue(&self, config: &ServerConfig) -> Option<Arc<Catalogue>> {
        let mut all = lock(&self.catalogues);
        if let Some(known) = all.get(&config.name) {
            return Some(known.clone());
        }
        let loaded = Arc::new(self.cache.load(config)?);
        all.insert(config.name.clone(), loaded.clone());
        Some(loaded)
    }

    /// Keeps what a server offers. Returns what it offered before.
    pub(super) fn keep(
        &self,
        config: &ServerConfig,
        catalogue: &Arc<Catalogue>,
    ) -> Option<Arc<Catalogue>> {
        let before = self.catalogue(config);
        if before.as_ref() != Some(catalogue) {
            lock(&self.catalogues).insert(config.name.clone(), catalogue.clone());
            // Without the cache, the server is asked again in the next session.
            let _ = self.cache.save(config, catalogue);
        }
        before
    }

    /// What is known of a tool, by `server/tool`.
    pub(crate) fn tool(&self, name: &str) -> Option<ServerTool> {
        let (server, tool) = name.split_once('/')?;
        let config = self.config(server)?;
        Some(self.catalogue(&config)?.tool(tool)?.record(&config))
    }

    /// A server as a question shows it: its command or address, and what it is granted.
    pub(crate) fn describe_access(&self, name: &str, sandboxed: bool) -> Option<(String, String)> {
        let config = self.config(name)?;
        let is_program = matches!(config.start, ServerStart::Command { .. });
        let access = match (is_program, sandboxed) {
            (true, true) => format!("in the sandbox: {}", config.granted()),
            (true, false) => "without a sandbox".to_owned(),
            (false, _) => config.granted(),
        };
        Some((config.what(), access))
    }

    /// In what a tool differs from when it was last used.
    pub(crate) fn differences(&self, name: &str) -> Vec<DescriptionChange> {
        let found = name.split_once('/').and_then(|(server, tool)| {
            let config = self.config(server)?;
            let catalogue = self.catalogue(&config)?;
            let before = self.cache.used(&config, tool)?;
            Some(catalogue.tool(tool)?.differences(&before))
        });
        found.unwrap_or_default()
    }

    /// A server of a session; it is not started by this.
    pub(super) fn of_session(
        &self,
        session: &SessionId,
        config: &Arc<ServerConfig>,
    ) -> Arc<Server> {
        let key = (session.clone(), config.name.clone());
        let new = || Arc::new(Server::new(config.clone()));
        lock(&self.sessions).entry(key).or_insert_with(new).clone()
    }

    /// Writes down the state of a session's servers, for people who ask another process.
    pub(super) fn publish(&self, session: &SessionId) {
        let servers = {
            let sessions = lock(&self.sessions);
            let mine = sessions.iter().filter(|((of, _), _)| of == session);
            mine.map(|((_, name), server)| (name.clone(), server.state())).collect::<Vec<_>>()
        };
        // The session was closed meanwhile.
        if servers.is_empty() {
            return;
        }
        let status = |(name, state): (String, String)| {
            let catalogue = self.config(&name).and_then(|config| self.catalogue(&config));
            ServerStatus { name, state, tools: catalogue.map(|known| known.tools.len()) }
        };
        let servers = servers.into_iter().map(status).collect();
        let known = SessionServers { session: session.clone(), pid: std::process::id(), servers };
        let text = serde_json::to_vec(&known).unwrap_or_default(); // plain structs with text keys
        // It only informs; a session does not fail because of it.
        let _ = dunnock_private::create_folder(&self.folder)
            .and_then(|()| dunnock_private::replace(&self.published(session), &text));
    }

    fn published(&self, session: &SessionId) -> PathBuf {
        self.folder.join(format!("{session}.json"))
    }

    /// Starts a server and returns what it offers.
    pub(crate) async fn test(
        self: &Arc<Self>,
        context: &CallContext,
        name: &str,
    ) -> Result<Arc<Catalogue>, String> {
        let config = self.config(name).ok_or_else(|| format!("there is no server {name}"))?;
        let server = self.of_session(&context.session, &config);
        let started = server.live(self, context).await;
        let live = started.map_err(|error| server.with_stderr(&error))?;
        Ok(live.catalogue())
    }

    /// Stops the guards of a session's servers until the returned values are dropped.
    pub(crate) async fn hold_guards(
        &self,
        session: &SessionId,
    ) -> Vec<tokio::sync::OwnedMutexGuard<Watch>> {
        let mine: Vec<Arc<Server>> = {
            let all = lock(&self.sessions);
            let mine = all.iter().filter(|((of, _), _)| of == session);
            mine.map(|(_, server)| server.clone()).collect()
        };
        let mut held = Vec::new();
        for watch in mine.iter().filter_map(|server| server.watch()) {
            held.push(watch.lock_owned().await);
        }
        held
    }

    /// Servers of a session that run and may change files, a line each.
    pub(crate) fn writers(&self, session: &SessionId) -> Vec<String> {
        let all = lock(&self.sessions);
        let mine = all.iter().filter(|((of, _), server)| of == session && server.may_write());
        mine.map(|((_, name), _)| format!("MCP server {name}")).collect()
    }

    /// Ends the servers of a session, and waits until they are gone.
    pub(crate) async fn close(&self, session: &SessionId) {
        let gone: Vec<Arc<Server>> = {
            let mut all = lock(&self.sessions);
            all.extract_if(.., |(of, _), _| of == session).map(|(_, server)| server).collect()
        };
        let closing: Vec<_> = gone
            .into_iter()
            .map(|server| tokio::spawn(async move { server.close().await }))
            .collect();
        if !closing.is_empty() {
            let _ = std::fs::remove_file(self.published(session));
        }
        for one in closing {
            let _ = one.await;
        }
    }
}
