//! The agent: where sessions are saved, which models it uses, and how commands are started.

use crate::run::{Run, broken};
use crate::{Error, Outcome, Task, Undone};
use dunnock_core::UndoTarget;
use dunnock_engine::{FileLocks, Ports, SystemClock, go_back, load, past};
use dunnock_model::{Environment, ModelClient, PreambleInputs, Prompts, Provider, Timeouts, Wire};
use dunnock_ports::{Checkpoints, Files};
use dunnock_proto::{Command, Config, RewindTo, Scope, SessionId};
use dunnock_tools::{Limits, Shell, Toolbox, instructions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// How commands are started: by a helper process that sandboxes them and leaves none running.
#[derive(Debug, Clone)]
pub struct Launcher(PathBuf);

impl Launcher {
    /// Uses this program itself as the helper process, by executing it again. Call it first in
    /// `main`, before any thread is started.
    ///
    /// # Errors
    /// Not a failure: this process was the helper and has finished. `main` must return this code.
    pub fn run_if_requested() -> Result<Self, ExitCode> {
        if std::env::args_os().nth(1).is_some_and(|word| word == dunnock_sandbox::LAUNCH) {
            return Err(dunnock_sandbox::serve());
        }
        // This path refers to the running program even if its file is replaced meanwhile.
        let own = if cfg!(target_os = "linux") {
            Some("/proc/self/exe".into())
        } else {
            std::env::current_exe().ok()
        };
        Ok(Self(own.unwrap_or_default()))
    }

    /// Uses a `dunnock` executable as the helper process, for callers who do not control `main`.
    pub fn from_program(program: impl Into<PathBuf>) -> Self {
        Self(program.into())
    }
}

/// How strongly commands are sandboxed, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isolation {
    /// All namespaces, Landlock and seccomp: files outside the sandbox are not visible.
    A,
    /// No mount namespace: files outside the sandbox are visible, but access is denied.
    B,
    /// Only Landlock and seccomp.
    C,
    /// No sandbox: commands need approval, unless the task uses
    /// [`Approve::All`](crate::Approve::All).
    None,
}

/// The address of a model server and the API it speaks.
#[derive(Clone)]
pub struct Endpoint {
    wire: Wire,
    url: String,
    key: Option<String>,
    window: Option<u64>,
}

/// Omits the key.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("wire", &self.wire)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    fn new(wire: Wire, url: impl Into<String>) -> Self {
        Self { wire, url: url.into(), key: None, window: None }
    }
    /// A server with the Chat Completions API, as most have. The address ends before
    /// `/chat/completions`.
    pub fn chat(url: impl Into<String>) -> Self {
        Self::new(Wire::Chat, url)
    }
    /// A server with OpenAI's Responses API.
    pub fn responses(url: impl Into<String>) -> Self {
        Self::new(Wire::Responses, url)
    }
    /// A server with Anthropic's Messages API.
    pub fn anthropic(url: impl Into<String>) -> Self {
        Self::new(Wire::Anthropic, url)
    }
    /// Ollama; the address is its root.
    pub fn ollama(url: impl Into<String>) -> Self {
        Self::new(Wire::Ollama, url)
    }
    /// Sets the API key. It is sent only to this endpoint and never shown.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }
    /// Sets the context window of its models, in tokens.
    #[must_use]
    pub fn window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }
}

/// Configures an agent. See [`Agent::open`].
#[derive(Debug)]
pub struct AgentBuilder {
    data: PathBuf,
    launcher: Launcher,
    endpoints: Vec<(String, Endpoint)>,
    model: Option<String>,
    sockets: Option<PathBuf>,
}

impl AgentBuilder {
    /// Adds an endpoint under a name, which is the first part of a model's name.
    #[must_use]
    pub fn endpoint(mut self, name: impl Into<String>, endpoint: Endpoint) -> Self {
        self.endpoints.push((name.into(), endpoint));
        self
    }

    /// Sets the default model, as `endpoint/model`. A task can override it.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Puts sockets in this folder. Needed when the path of the data folder is too long for a
    /// socket (about 80 bytes).
    #[must_use]
    pub fn sockets(self, folder: impl Into<PathBuf>) -> Self {
        Self { sockets: Some(folder.into()), ..self }
    }

    /// Opens the data folder and probes how strongly commands can be sandboxed on this machine.
    ///
    /// # Errors
    /// When the folder cannot be used, or the model's endpoint is unknown.
    pub async fn build(self) -> Result<Agent, Error> {
        let data = |error: &dyn std::fmt::Display| Error::Data(error.to_string());
        let folder = std::path::absolute(&self.data).map_err(|e| data(&e))?;
        let opened = dunnock_store::Sqlite::open(&folder).await.map_err(|e| data(&e))?;
        let folder = folder.canonicalize().map_err(|e| data(&e))?;
        let log: Arc<dyn dunnock_ports::Store> = Arc::new(opened.store);
        let client = Arc::new(client(&self.endpoints));
        if let Some(model) = &self.model {
            client.knows(model).map_err(Error::Usage)?;
        }
        let limits = Limits {
            spool: folder.join("spool"),
            journals: folder.join("edits"),
            ..Limits::default()
        };
        let toolbox = Toolbox::new(limits, &self.launcher.0, &[dunnock_sandbox::LAUNCH]);
        #[cfg(target_os = "linux")]
        let toolbox = toolbox.boxed(dunnock_tools::layout(&folder, std::slice::from_ref(&folder)));
        let level = level(&toolbox, &folder);
        let checkpoints = checkpoints(&folder);
        let ports = Ports {
            log: log.clone(),
            model: client.clone(),
            tools: Arc::new(toolbox.reading(log)),
            files: checkpoints.clone().map(|checkpoints| checkpoints as Arc<dyn Files>),
            checkpoints: checkpoints.map(|checkpoints| checkpoints as Arc<dyn Checkpoints>),
            clock: Arc::new(SystemClock),
            ownership: Arc::new(FileLocks::new(
                folder.join("locks"),
                self.sockets.unwrap_or_else(|| folder.join("run")),
                env!("CARGO_PKG_VERSION"),
            )),
            locks: folder.join("locks"),
            level,
            app: env!("CARGO_PKG_VERSION").into(),
            day_budget: None,
        };
        Ok(Agent { ports, client, model: self.model })
    }
}

fn client(endpoints: &[(String, Endpoint)]) -> ModelClient {
    let provider = |(name, endpoint): &(String, Endpoint)| Provider {
        key: endpoint.key.clone().map(Into::into),
        window: endpoint.window,
        ..Provider::plain(name, endpoint.wire, &endpoint.url)
    };
    let brief = |config: &Config, workspace: &str| {
        let root = Path::new(workspace);
        Ok(PreambleInputs {
            environment: Environment {
                os: format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
                shell: Shell::Auto.program().into(),
                root: workspace.into(),
                git: root.ancestors().any(|dir| dir.join(".git").exists()),
            },
            instructions: instructions::find(root),
            offers: dunnock_tools::offers(),
            memory: config
                .planner
                .as_ref()
                .map(|planner| planner.memory.clone())
                .unwrap_or_default(),
        })
    };
    let providers = endpoints.iter().map(provider).collect();
    ModelClient::new(
        providers,
        Prompts::default(),
        Arc::new(brief),
        Timeouts::default(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Probes the sandbox in an ordinary folder created for this purpose.
fn level(toolbox: &Toolbox, data: &Path) -> dunnock_proto::Isolation {
    let folder = data.join("boxes/probe");
    match std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize()) {
        Ok(folder) => toolbox.probe(&folder, dunnock_proto::Isolation::A).level,
        Err(_) => dunnock_proto::Isolation::D,
    }
}

#[cfg(unix)]
fn checkpoints(data: &Path) -> Option<Arc<dunnock_tools::CheckpointStore>> {
    let own = vec![data.to_path_buf()];
    Some(Arc::new(dunnock_tools::CheckpointStore::new(
        data.join("checkpoints"),
        own,
        dunnock_tools::Bounds::default(),
    )))
}

#[cfg(not(unix))]
fn checkpoints(_: &Path) -> Option<Arc<dunnock_tools::CheckpointStore>> {
    None
}

/// Runs tasks. Clones share the data folder and can run tasks concurrently.
#[derive(Clone)]
pub struct Agent {
    pub(crate) ports: Ports,
    pub(crate) client: Arc<ModelClient>,
    pub(crate) model: Option<String>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.model)
            .field("level", &self.ports.level)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// Starts configuring an agent that saves its sessions in this folder.
    pub fn open(data: impl Into<PathBuf>, launcher: Launcher) -> AgentBuilder {
        AgentBuilder {
            data: data.into(),
            launcher,
            endpoints: Vec::new(),
            model: None,
            sockets: None,
        }
    }

    /// How strongly commands are sandboxed on this machine.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        match self.ports.level {
            dunnock_proto::Isolation::A => Isolation::A,
            dunnock_proto::Isolation::B => Isolation::B,
            dunnock_proto::Isolation::C => Isolation::C,
            dunnock_proto::Isolation::D => Isolation::None,
        }
    }

    /// Starts a task and returns a [`Run`] to follow it.
    ///
    /// # Errors
    /// When the task cannot be started.
    pub async fn start(&self, task: Task) -> Result<Run, Error> {
        Run::begin(self, task).await
    }

    /// Runs a task until it ends. Questions are not answered: the run ends at the first one, and
    /// [`Agent::resume`] continues it.
    ///
    /// # Errors
    /// When the task cannot be started, or its session cannot be saved.
    pub async fn run(&self, task: Task) -> Result<Outcome, Error> {
        self.start(task).await?.finish().await
    }

    /// Continues a session after a crash, a stop or a question.
    ///
    /// # Errors
    /// When the session does not exist or cannot be opened.
    pub async fn resume(&self, session: &str) -> Result<Run, Error> {
        Run::resume(self, session).await
    }

    /// Undoes the last run of a session, started by its last prompt or a
    /// [resume](Agent::resume): rewinds the conversation and restores the files in the folder. A
    /// second undo undoes the first. A session that is only waiting is stopped first. Files
    /// written by a command that was still running when its run was dropped count as changed by
    /// others and are left alone. Waits until other writers in the folder have finished.
    ///
    /// # Errors
    /// When the session does not exist, is running (a [`Run`] that has not ended), or has nothing
    /// to undo. No file has been changed then.
    pub async fn undo(&self, session: &str) -> Result<Undone, Error> {
        let session = self.find(session).await?;
        let log = self.ports.log.as_ref();
        let (state, past) = (
            load(log, &session).await.map_err(broken)?.state,
            past(log, &session).await.map_err(broken)?,
        );
        let (to, scope) = match past.undo_target() {
            Some(UndoTarget::Run(before)) => (RewindTo::Event(before.max(1)), Scope::Both),
            Some(UndoTarget::Rewind(_, scope)) => (RewindTo::Undo, scope),
            None => return Err(Error::Usage("there is nothing to undo".into())),
        };
        let rewind = Command::Rewind { to, scope, force: false };
        let rewound = go_back(&self.ports, &session, &state, rewind).await.map_err(broken)?;
        Ok(Undone { note: rewound.note })
    }

    pub(crate) async fn find(&self, session: &str) -> Result<SessionId, Error> {
        let mut found = self.ports.log.find(session).await.map_err(broken)?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(Error::Usage(format!("no session, or more than one, matches {session:?}"))),
        }
    }
}
