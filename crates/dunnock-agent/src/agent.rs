//! The agent: where sessions are saved, which models it uses, and how commands are started.

use crate::run::{Run, broken};
use crate::{BoxError, Error, Outcome, Task, Undone};
use dunnock_compose::{Parts, checkpoints, preamble_inputs, probe};
use dunnock_core::UndoTarget;
use dunnock_engine::{Ports, RewindError, go_back, load, past};
use dunnock_model::{ModelClient, Prompts, Provider, Timeouts, Wire};
use dunnock_proto::{Command, Config, RewindTo, Scope, SessionId};
use dunnock_tools::{Limits, Shell};
use std::path::PathBuf;
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
///
/// ```
/// use dunnock_agent::Isolation;
///
/// assert!(Isolation::A < Isolation::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// All namespaces, Landlock and seccomp: files outside the sandbox are not visible.
    A,
    /// No mount namespace: files outside the sandbox are visible, but access is denied.
    B,
    /// Only Landlock and seccomp.
    C,
    /// No sandbox: commands need approval, unless the task uses
    /// [`Approve::All`](crate::Approve::All) with
    /// [`Task::sandbox_off`](crate::Task::sandbox_off).
    None,
}

/// The address of a model server and the API it speaks.
///
/// ```
/// use dunnock_agent::Endpoint;
///
/// let endpoint = Endpoint::chat("http://127.0.0.1:8080/v1").key("secret").context_window(32_768);
/// assert!(!format!("{endpoint:?}").contains("secret"));
/// ```
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
    pub fn context_window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }
}

/// Configures an agent. See [`Agent::builder`].
#[derive(Debug, Clone)]
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
    pub fn socket_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { sockets: Some(folder.into()), ..self }
    }

    /// Opens the data folder and probes how strongly commands can be sandboxed on this machine.
    ///
    /// # Errors
    /// When the folder cannot be used, or the model's endpoint is unknown.
    pub async fn build(self) -> Result<Agent, Error> {
        let failed = |source: BoxError| Error::Data { folder: self.data.clone(), source };
        let folder = std::path::absolute(&self.data).map_err(|e| failed(e.into()))?;
        let opened = dunnock_compose::open_store(&folder).await.map_err(|e| failed(e.into()))?;
        let folder = folder.canonicalize().map_err(|e| failed(e.into()))?;
        let client = Arc::new(client(&self.endpoints));
        if let Some(model) = &self.model {
            client.knows(model).map_err(Error::Usage)?;
        }
        let own = vec![folder.clone()];
        let toolbox = dunnock_compose::toolbox(
            &folder,
            Limits::default(),
            true,
            &self.launcher.0,
            #[cfg(target_os = "linux")]
            dunnock_tools::layout(&folder, &own),
        );
        let found = probe(&toolbox, &folder, dunnock_proto::Isolation::A);
        if let Some(why) = found.failed {
            return Err(Error::Sandbox(why));
        }
        let level = found.level;
        let composed = Parts {
            runtime: self.sockets.unwrap_or_else(|| folder.join("run")),
            app: env!("CARGO_PKG_VERSION"),
            store: opened.store,
            client,
            toolbox,
            checkpoints: checkpoints(&folder, own, None),
            day_budget: None,
            data: folder,
        }
        .compose();
        let ports = Ports { level, ..composed.ports };
        Ok(Agent { ports, client: composed.client, model: self.model })
    }
}

fn client(endpoints: &[(String, Endpoint)]) -> ModelClient {
    let provider = |(name, endpoint): &(String, Endpoint)| Provider {
        key: endpoint.key.clone().map(Into::into),
        window: endpoint.window,
        ..Provider::plain(name, endpoint.wire, &endpoint.url)
    };
    let brief = |config: &Config, workspace: &str| {
        Ok(preamble_inputs(config, workspace, Shell::Auto, dunnock_tools::offers()))
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

/// Runs tasks. Clones share the data folder and can run tasks concurrently.
///
/// ```
/// use dunnock_agent::{Agent, Endpoint, Error, Launcher, tokio};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let data = home.path().join("data");
/// let agent = Agent::builder(data, Launcher::from_program("dunnock"))
///     .endpoint("local", Endpoint::ollama("http://127.0.0.1:11434"))
///     .model("remote/qwen3")
///     .build();
/// let runtime = tokio::runtime::Runtime::new().expect("a runtime");
/// // There is no endpoint "remote".
/// assert!(matches!(runtime.block_on(agent), Err(Error::Usage(_))));
/// ```
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
    pub fn builder(data: impl Into<PathBuf>, launcher: Launcher) -> AgentBuilder {
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
        let log = self.ports.store.as_ref();
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
        let rewound = go_back(&self.ports, &session, &state, rewind).await;
        let rewound = rewound.map_err(|error| match error {
            RewindError::AtWork | RewindError::Refused(_) => Error::Refused(error.to_string()),
            RewindError::Failed(_) | RewindError::Connect(_) => broken(error),
        })?;
        Ok(Undone { note: rewound.note })
    }

    pub(crate) async fn find(&self, session: &str) -> Result<SessionId, Error> {
        let mut found = self.ports.store.find(session).await.map_err(broken)?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(Error::NoSession(session.into())),
        }
    }
}
