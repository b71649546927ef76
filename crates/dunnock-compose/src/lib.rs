//! Chooses one adapter of each kind and connects them: store, locks, tools, checkpoints. The program
//! builds the ports of its sessions here from settings, the library from its builder. Only the
//! program's stateless service replaces some of them (`serve_host.rs`).

#![warn(missing_docs)]

use dunnock_egress::WebPages;
use dunnock_engine::{FileLocks, Ports, SystemClock};
use dunnock_model::{Environment, ModelClient, PreambleInputs};
use dunnock_ports::{Checkpoints, Files, Store, StoreError, ToolSpec};
use dunnock_proto::{Config, Isolation};
#[cfg(target_os = "linux")]
use dunnock_sandbox::Layout;
use dunnock_store::Salvaged;
use dunnock_tools::{CheckpointStore, Limits, SandboxSupport, Shell, Toolbox, instructions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Opens the store in the data folder.
///
/// # Errors
/// If it cannot be opened.
pub async fn open_store(data: &Path) -> Result<OpenedStore, StoreError> {
    let opened = dunnock_store::Sqlite::open(data).await?;
    Ok(OpenedStore { store: Arc::new(opened.store), salvaged: opened.salvaged })
}

/// An open store.
pub struct OpenedStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Set if it was damaged and rebuilt.
    pub salvaged: Option<Salvaged>,
}

/// What sessions are built from.
pub struct Parts {
    /// The data folder: locks, spooled output, journals of edits.
    pub data: PathBuf,
    /// The folder for sockets.
    pub runtime: PathBuf,
    /// The release that writes the events.
    pub app: &'static str,
    /// Events, blobs, lists and the ledger.
    pub store: Arc<dyn Store>,
    /// Requests to models.
    pub client: Arc<ModelClient>,
    /// The tools, without the store.
    pub toolbox: Toolbox,
    /// Checkpoints of files, if this system supports them.
    pub checkpoints: Option<Arc<CheckpointStore>>,
    /// Millionths of a US dollar per day over all sessions, if limited.
    pub day_budget: Option<u64>,
}

/// The ports, and those adapters that are needed by their concrete type.
#[derive(Clone)]
pub struct Composed {
    /// What a driver needs. The sandbox level is the lowest, until it has been probed.
    pub ports: Ports,
    /// Requests to models.
    pub client: Arc<ModelClient>,
    /// The tools.
    pub toolbox: Arc<Toolbox>,
    /// Checkpoints of files, if this system supports them.
    pub checkpoints: Option<Arc<CheckpointStore>>,
}

impl Parts {
    /// Connects the parts.
    #[must_use]
    pub fn compose(self) -> Composed {
        let Self { data, runtime, app, store, client, toolbox, checkpoints, day_budget } = self;
        let toolbox = Arc::new(toolbox.reading(store.clone()));
        let locks = data.join("locks");
        let ports = Ports {
            store,
            model: client.clone(),
            tools: toolbox.clone(),
            files: checkpoints.clone().map(|checkpoints| checkpoints as Arc<dyn Files>),
            checkpoints: checkpoints.clone().map(|checkpoints| checkpoints as Arc<dyn Checkpoints>),
            clock: Arc::new(SystemClock),
            ownership: Arc::new(FileLocks::new(locks.clone(), runtime, app)),
            locks,
            level: Isolation::D,
            app: app.into(),
            day_budget,
        };
        Composed { ports, client, toolbox, checkpoints }
    }
}

/// Tools that start commands with this launcher, and keep their files in the data folder. Without
/// `saves_history`, the loss of git's history is reported, but cannot be undone.
#[must_use]
pub fn toolbox(
    data: &Path,
    limits: Limits,
    saves_history: bool,
    launcher: &Path,
    #[cfg(target_os = "linux")] layout: Layout,
) -> Toolbox {
    let limits = Limits {
        spool: data.join("spool"),
        journals: data.join("edits"),
        history: saves_history.then(|| data.join("checkpoints")),
        ..limits
    };
    let pages = WebPages::new(concat!("dunnock/", env!("CARGO_PKG_VERSION")).into());
    let toolbox = Toolbox::new(limits, launcher, &[dunnock_sandbox::LAUNCH]);
    let toolbox = toolbox.fetching(Arc::new(pages));
    #[cfg(target_os = "linux")]
    let toolbox = toolbox.boxed(layout);
    toolbox
}

/// Probes how well commands can be isolated here, in an ordinary folder created for this purpose.
#[must_use]
pub fn probe(toolbox: &Toolbox, data: &Path, best: Isolation) -> SandboxSupport {
    let folder = data.join("boxes/probe");
    match dunnock_private::create_folder(&folder).and_then(|()| folder.canonicalize()) {
        Ok(folder) => toolbox.probe(&folder, best),
        Err(error) => SandboxSupport::failed(error.to_string()),
    }
}

/// Limits of a checkpoint store.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointLimits {
    /// Bytes to keep, over all workspaces.
    pub bytes: u64,
    /// How long they are kept.
    pub age: Duration,
    /// Bytes to copy at once.
    pub copy: u64,
}

/// The checkpoint store, on systems that support it, with limits if they differ from the usual
/// ones. Changes to `own` files are not the user's.
#[cfg(unix)]
#[must_use]
pub fn checkpoints(
    data: &Path,
    own: Vec<PathBuf>,
    limits: Option<CheckpointLimits>,
) -> Option<Arc<CheckpointStore>> {
    let bounds = limits.map(|CheckpointLimits { bytes, age, copy }| dunnock_tools::Bounds {
        bytes,
        age,
        copy,
        ..Default::default()
    });
    let bounds = bounds.unwrap_or_default();
    Some(Arc::new(CheckpointStore::new(data.join("checkpoints"), own, bounds)))
}

/// The checkpoint store, on systems that support it.
#[cfg(not(unix))]
#[must_use]
pub fn checkpoints(
    _: &Path,
    _: Vec<PathBuf>,
    _: Option<CheckpointLimits>,
) -> Option<Arc<CheckpointStore>> {
    None
}

/// What a preamble is rendered from.
#[must_use]
pub fn preamble_inputs(
    config: &Config,
    workspace: &str,
    shell: Shell,
    offers: Vec<ToolSpec>,
) -> PreambleInputs {
    let root = Path::new(workspace);
    PreambleInputs {
        environment: Environment {
            os: format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
            shell: shell.program().into(),
            root: workspace.into(),
            git: root.ancestors().any(|dir| dir.join(".git").exists()),
            sandbox: Vec::new(),
            machine: config.reaches_machine(),
            servers: config.servers.clone(),
        },
        instructions: instructions::find(root),
        offers,
        memory: config.planner.as_ref().map(|planner| planner.memory.clone()).unwrap_or_default(),
    }
}
