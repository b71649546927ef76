//! One server of one session: when it starts, and what happens when it fails.

use super::process::{ServerProcess, lock};
use super::roster::Servers;
use crate::context::CallContext;
use crate::environment::person_variable;
use crate::process::{LAST_WORDS, Watch};
use crate::secrets;
use crate::web_page::visible;
use dunnock_mcp::{Catalogue, ConnectError, Connection, Era, Http, ServerConfig, ServerStart};
use dunnock_ports::CancellationToken;
use dunnock_proto::Isolation;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// How long to wait before a start that follows so many failed ones in a row.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// What has run for so long starts like a new one after its end.
const LONG: Duration = Duration::from_secs(60);
/// How long a server may take to list its tools again.
const REFRESH: Duration = Duration::from_secs(5);
/// The longest text of a failed server, in bytes.
const MOST_ERROR: usize = 4_000;
const CLOSED: &str = "the session has ended";

/// A server of a session.
pub(super) struct Server {
    config: Arc<ServerConfig>,
    /// The session closes: nothing starts any more.
    closing: CancellationToken,
    /// Held while it starts.
    live: Arc<tokio::sync::Mutex<Option<Arc<RunningServer>>>>,
    status: Mutex<Status>,
}

#[derive(Default)]
struct Status {
    /// The server that runs, for those that do not wait for a start.
    live: Option<Arc<RunningServer>>,
    is_starting: bool,
    /// Why the last start failed, and what the server wrote then.
    failed: Option<(String, String)>,
    /// What was last sent to the model of what it wrote.
    reported_stderr: String,
    failures: usize,
    failed_at: Option<Instant>,
    /// What has not been sent to the model yet.
    notes: Vec<String>,
}

/// A server that is connected.
pub(super) struct RunningServer {
    pub(super) connection: Connection,
    catalogue: Mutex<Arc<Catalogue>>,
    /// `None` for one over HTTP.
    process: Option<ServerProcess>,
    /// It was started after a secret may have been read.
    after_secret: bool,
    /// How it is isolated.
    level: Isolation,
    since: Instant,
}

impl RunningServer {
    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        lock(&self.catalogue).clone()
    }

    fn is_over(&self) -> bool {
        // The process is the truth: a connection may not notice its end.
        let ended = self.process.as_ref().is_some_and(|process| process.ended().is_some());
        ended || self.connection.is_closed()
    }

    /// Waits until it sends a message that is too large to be read.
    pub(super) async fn oversized(&self) {
        match &self.process {
            Some(process) => process.oversized().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until its process has ended; forever if it has none.
    pub(super) async fn end(&self) {
        match &self.process {
            Some(process) => process.end().await,
            None => std::future::pending().await,
        }
    }

    async fn close(&self) {
        self.connection.close().await;
        if let Some(process) = &self.process {
            process.close().await;
        }
    }
}

impl Server {
    pub(super) fn new(config: Arc<ServerConfig>) -> Self {
        let closing = CancellationToken::new();
        Self { config, closing, live: Arc::default(), status: Mutex::default() }
    }

    /// What it is doing, for people.
    pub(super) fn state(&self) -> String {
        let status = lock(&self.status);
        match (&status.live, &status.failed) {
            (Some(live), _) if !live.is_over() => "running".into(),
            _ if status.is_starting => "starting".into(),
            (_, Some((why, _))) => format!("failed: {why}"),
            (Some(_), None) => "ended".into(),
            (None, None) => "not started".into(),
        }
    }

    /// Why its last start failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.status).failed.as_ref().map(|(why, _)| why.clone())
    }

    /// The server, if it runs.
    pub(super) fn running(&self) -> Option<Arc<RunningServer>> {
        lock(&self.status).live.clone().filter(|live| !live.is_over())
    }

    pub(super) fn watch(&self) -> Option<Arc<tokio::sync::Mutex<Watch>>> {
        let status = lock(&self.status);
        Some(status.live.as_ref()?.process.as_ref()?.watch.clone())
    }

    pub(super) fn may_write(&self) -> bool {
        let status = lock(&self.status);
        self.config.access.write && status.live.as_ref().is_some_and(|live| !live.is_over())
    }

    /// What has not been sent to the model yet about this server.
    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.status).notes)
    }

    /// An error with the last lines of the server's standard error, which are reported
    /// once.
    pub(super) fn with_stderr(&self, error: &str) -> String {
        let mut status = lock(&self.status);
        let stderr = status.failed.as_ref().map(|(_, stderr)| stderr.clone()).unwrap_or_default();
        match stderr.is_empty() || status.reported_stderr == stderr {
            true => error.to_owned(),
            false => {
                let text = format!("{error}\nIt wrote:\n{stderr}");
                status.reported_stderr = stderr;
                text
            }
        }
    }

    /// The running server. If it does not run, it is started; the start continues if the caller
    /// stops waiting.
    pub(super) async fn live(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        context: &CallContext,
    ) -> Result<Arc<RunningServer>, String> {
        let (server, servers, context) = (self.clone(), servers.clone(), context.clone());
        // Usually it runs.
        if let Ok(slot) = self.live.try_lock()
            && let Some(live) = slot.as_ref()
            && !live.is_over()
            && !self.is_unfit(&context, live)
        {
            return Ok(live.clone());
        }
        let starting = tokio::spawn(async move {
            let mut slot = server.live.clone().lock_owned().await;
            if server.closing.is_cancelled() {
                return Err(CLOSED.to_owned());
            }
            if let Some(live) = slot.take() {
                if !live.is_over() && !server.is_unfit(&context, &live) {
                    *slot = Some(live.clone());
                    return Ok(live);
                }
                server.note_end(&live);
                live.close().await;
            }
            server.wait_turn()?;
            lock(&server.status).is_starting = true;
            servers.publish(&context.session);
            let started = tokio::select! {
                () = server.closing.cancelled() => return Err(CLOSED.to_owned()),
                started = server.start(&servers, &context) => started,
            };
            let result = server.note_start(started);
            if let Ok(live) = &result {
                *slot = Some(live.clone());
                if live.process.is_some() {
                    let (live, servers, session) =
                        (live.clone(), servers.clone(), context.session.clone());
                    tokio::spawn(async move {
                        live.end().await;
                        servers.publish(&session);
                    });
                }
            }
            servers.publish(&context.session);
            result
        });
        starting.await.unwrap_or_else(|error| Err(format!("an error inside the agent: {error}")))
    }

    /// Whether it must be started anew for a call: its hosts were closed when a secret was read,
    /// and the call was approved after that; or it is isolated in another way than the call must
    /// be.
    fn is_unfit(&self, context: &CallContext, live: &RunningServer) -> bool {
        let lost_hosts =
            context.closes_hosts && !live.after_secret && !self.config.access.hosts.is_empty();
        lost_hosts || (live.process.is_some() && live.level != context.level)
    }

    /// Records how a start ended.
    fn note_start(
        &self,
        started: Result<RunningServer, StartFailure>,
    ) -> Result<Arc<RunningServer>, String> {
        let mut status = lock(&self.status);
        status.is_starting = false;
        match started {
            Ok(live) => {
                let live = Arc::new(live);
                status.failed = None;
                status.live = Some(live.clone());
                Ok(live)
            }
            Err(StartFailure { why, stderr, .. }) => {
                status.failures += 1;
                status.failed_at = Some(Instant::now());
                status.failed = Some((why.clone(), stderr));
                status.live = None;
                Err(why)
            }
        }
    }

    /// Counts the end of a server that was not asked to end.
    fn note_end(&self, live: &RunningServer) {
        let Some(process) = &live.process else { return };
        let Some(how) = process.ended() else { return };
        let stderr = self.cleaned(&process.stderr());
        let mut status = lock(&self.status);
        // What has run for a while starts like a new one.
        let is_new = live.since.elapsed() > LONG;
        status.failures = if is_new { 1 } else { status.failures + 1 };
        status.failed_at = Some(Instant::now());
        let stderr = if stderr.is_empty() { stderr } else { format!("; it wrote:\n{stderr}") };
        status.notes.push(format!("[MCP server {} ended ({how}){stderr}]", self.config.name));
    }

    /// Whether it is time for another start.
    fn wait_turn(&self) -> Result<(), String> {
        let mut status = lock(&self.status);
        let Some(failed_at) = status.failed_at else { return Ok(()) };
        let since = failed_at.elapsed();
        if since > LONG {
            status.failures = 0;
        }
        let last = PAUSES.len() - 1;
        let pause = PAUSES.get(status.failures.saturating_sub(1).min(last)).copied();
        match pause.unwrap_or_default().checked_sub(since).filter(|left| !left.is_zero()) {
            None => Ok(()),
            Some(left) => {
                let why = status.failed.as_ref().map_or("it ended", |(why, _)| why.as_str());
                let seconds = left.as_secs() + 1;
                Err(format!("{why}; it is started again in {seconds} s at the earliest"))
            }
        }
    }

    /// Starts it, and asks for its tools. An error comes with what it wrote to standard error.
    async fn start(
        &self,
        servers: &Servers,
        context: &CallContext,
    ) -> Result<RunningServer, StartFailure> {
        let known = servers.catalogue(&self.config).map(|catalogue| catalogue.era);
        let mut result = self.start_as(servers, context, known).await;
        match &result {
            Err(StartFailure { is_modern: true, .. }) => {
                result = self.start_as(servers, context, Some(Era::Modern)).await;
            }
            // Some servers end when they are asked for what they do not know.
            Err(StartFailure { ended: true, .. }) if known.is_none() => {
                result = self.start_as(servers, context, Some(Era::Legacy)).await;
            }
            // It may have been replaced by another release.
            Err(_) if known.is_some() => result = self.start_as(servers, context, None).await,
            Ok(_) | Err(_) => {}
        }
        result
    }

    async fn start_as(
        &self,
        servers: &Servers,
        context: &CallContext,
        era: Option<Era>,
    ) -> Result<RunningServer, StartFailure> {
        let plain = |why: String| StartFailure {
            why,
            stderr: String::new(),
            is_modern: false,
            ended: false,
        };
        let values = self.config.values(&person_variable, &servers.variables).map_err(plain)?;
        let workspace = context.root.path().to_path_buf();
        let until = self.config.start_timeout;
        let late = || format!("it did not answer within {} s", until.as_secs());
        let (process, connected) = match &self.config.start {
            ServerStart::Http { url, .. } => {
                let http = Http { url: url.clone(), headers: values };
                let connecting = Connection::over_http(&http, &workspace, era);
                (None, tokio::time::timeout(until, connecting).await)
            }
            ServerStart::Command { .. } => {
                let (process, (read, write)) =
                    ServerProcess::start(context, &self.config, values).map_err(plain)?;
                let connecting = Connection::over_pipes(read, write, &workspace, era);
                let connected = tokio::time::timeout(until, connecting).await;
                (Some(process), connected)
            }
        };
        let listed = match connected {
            Ok(Ok(connection)) => {
                let wants = |name: &str| self.config.wants(name);
                let oversized = async {
                    match &process {
                        Some(process) => process.oversized().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    listed = connection.catalogue(&wants) => match listed {
                        Ok(catalogue) => Ok((connection, catalogue)),
                        Err(why) => Err((why, false)),
                    },
                    () = oversized => Err(("its list of tools is too large".into(), false)),
                    () = tokio::time::sleep(until) => Err((late(), false)),
                }
            }
            Ok(Err(ConnectError::EraMisdetected)) => Err((String::new(), true)),
            Ok(Err(ConnectError::Failed(why))) => Err((why, false)),
            Err(_) => Err((late(), false)),
        };
        let is_late = matches!(&listed, Err((why, _)) if *why == late());
        match listed {
            Ok((connection, catalogue)) => {
                let catalogue = Arc::new(catalogue);
                self.note_change(servers.keep(&self.config, &catalogue), &catalogue);
                let catalogue = Mutex::new(catalogue);
                let after_secret = context.closes_hosts;
                let (level, since) = (context.level, Instant::now());
                Ok(RunningServer { connection, catalogue, process, after_secret, level, since })
            }
            Err((why, is_modern)) => {
                let why = self.cleaned(&why);
                let Some(process) = process else {
                    return Err(StartFailure { is_modern, ..plain(why) });
                };
                // A connection that ends is the first sign of the end of its process.
                if !is_late {
                    let _ = tokio::time::timeout(LAST_WORDS, process.end()).await;
                }
                let how = process.ended();
                process.close().await;
                let ended = how.is_some();
                let why = how.map_or(why.clone(), |how| format!("{why} ({how})"));
                Err(StartFailure { why, stderr: self.cleaned(&process.stderr()), is_modern, ended })
            }
        }
    }

    /// Asks for the tools again if the server said that they have changed.
    pub(super) async fn refresh(&self, servers: &Servers, live: &RunningServer) {
        if !live.connection.take_changed() {
            return;
        }
        let wants = |name: &str| self.config.wants(name);
        let listing = live.connection.catalogue(&wants);
        let Ok(Ok(catalogue)) = tokio::time::timeout(REFRESH, listing).await else {
            live.connection.keep_changed();
            return;
        };
        let catalogue = Arc::new(catalogue);
        self.note_change(servers.keep(&self.config, &catalogue), &catalogue);
        *lock(&live.catalogue) = catalogue;
    }

    /// Notes for the model how the tools have changed.
    fn note_change(&self, before: Option<Arc<Catalogue>>, now: &Catalogue) {
        let Some(before) = before.filter(|before| before.as_ref() != now) else { return };
        let names = |tools: Vec<&str>| {
            let more = tools.len().saturating_sub(8);
            let shown = tools.iter().take(8).copied().collect::<Vec<_>>().join(", ");
            if more > 0 { format!("{shown} and {more} more") } else { shown }
        };
        let added = now.tools.iter().filter(|tool| before.tool(&tool.name).is_none());
        let removed = before.tools.iter().filter(|tool| now.tool(&tool.name).is_none());
        let changed = now
            .tools
            .iter()
            .filter(|tool| before.tool(&tool.name).is_some_and(|known| known != *tool));
        let parts = [
            ("added", added.map(|tool| tool.name.as_str()).collect::<Vec<_>>()),
            ("removed", removed.map(|tool| tool.name.as_str()).collect()),
            ("described differently", changed.map(|tool| tool.name.as_str()).collect()),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, tools)| !tools.is_empty())
            .map(|(how, tools)| format!("{how}: {}", names(tools)))
            .collect();
        if !parts.is_empty() {
            let note =
                format!("[tools of MCP server {} changed; {}]", self.config.name, parts.join("; "));
            let mut status = lock(&self.status);
            // Only the last change counts.
            status.notes.retain(|known| !known.starts_with("[tools of"));
            status.notes.push(note);
        }
    }

    /// A text that a server may have written, short and without control characters, without keys
    /// and without the values that the server was given.
    pub(super) fn cleaned(&self, text: &str) -> String {
        let mut text = visible(text).into_owned();
        let names = self.config.variables();
        let values = self.config.values(&person_variable, &names).unwrap_or_default();
        let variables = names.iter().filter_map(|name| person_variable(name));
        for value in values.into_iter().map(|(_, value)| value).chain(variables) {
            if value.len() >= 6 {
                text = text.replace(&value, "[removed]");
            }
        }
        if let ServerStart::Http { url, .. } = &self.config.start {
            text = text.replace(url, "its address");
        }
        let end = text.floor_char_boundary(MOST_ERROR.min(text.len()));
        if end < text.len() {
            text.truncate(end);
            text.push_str(" ...");
        }
        secrets::without(text)
    }

    /// Ends it.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        let live = self.live.lock().await.take();
        lock(&self.status).live = None;
        if let Some(live) = live {
            live.close().await;
        }
    }
}

/// Why a server is not there.
struct StartFailure {
    why: String,
    stderr: String,
    /// It speaks the newer era, but was started as one of the older.
    is_modern: bool,
    /// Its process ended by itself.
    ended: bool,
}
