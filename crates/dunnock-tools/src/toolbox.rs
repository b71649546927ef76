//! Implements the tools port: runs a call and returns how it finished.

use crate::context::CallContext;
use crate::limits::{Limits, SandboxSupport};
use crate::memory::MEMORY;
use crate::output::{ToolOutput, ToolStatus};
use crate::process::{self, Program};
use crate::processes::Processes;
use crate::root::Root;
use crate::secrets;
use crate::snapshot::snapshot;
use crate::tool::ToolContext;
use crate::tools;
use dunnock_core::{Call, failpoint};
use dunnock_ports::{
    Blob, BoxFuture, CancellationToken, DeltaSink, FilesError, HostInfo, Pages, Store, ToolCall,
    Tools,
};
#[cfg(target_os = "linux")]
use dunnock_proto::ServerTool;
use dunnock_proto::{
    Access, CallPreview, Class, Finished, HostSet, Isolation, Outcome, SessionId, TOOL_USE,
    VerifyArgs,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least that a call gets before a deadline.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// Runs every tool in the table, and the harness's own checks.
pub struct Toolbox {
    limits: Arc<Limits>,
    store: Option<Arc<dyn Store>>,
    processes: Arc<Processes>,
    pages: Option<Arc<dyn Pages>>,
    #[cfg(unix)]
    histories: Arc<crate::git_history::Histories>,
    #[cfg(target_os = "linux")]
    launcher: Arc<dunnock_sandbox::Launcher>,
    #[cfg(target_os = "linux")]
    proxies: Arc<crate::proxies::Proxies>,
    #[cfg(target_os = "linux")]
    servers: Option<Arc<crate::servers::roster::Servers>>,
    #[cfg(target_os = "linux")]
    layout: Option<Arc<dunnock_sandbox::Layout>>,
}

impl Toolbox {
    /// A toolbox with these limits, whose launcher is this program with these arguments.
    #[must_use]
    pub fn new(limits: Limits, launcher: &Path, args: &[&str]) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = (launcher, args);
        Self {
            #[cfg(unix)]
            histories: Arc::new(crate::git_history::Histories::new(limits.history.clone())),
            limits: Arc::new(limits),
            store: None,
            processes: Arc::default(),
            pages: None,
            #[cfg(target_os = "linux")]
            launcher: Arc::new(dunnock_sandbox::Launcher::new(launcher.to_path_buf(), args)),
            #[cfg(target_os = "linux")]
            proxies: Arc::default(),
            #[cfg(target_os = "linux")]
            servers: None,
            #[cfg(target_os = "linux")]
            layout: None,
        }
    }

    /// Runs commands in a sandbox, where this machine supports one.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn boxed(self, layout: dunnock_sandbox::Layout) -> Self {
        Self { layout: Some(Arc::new(layout)), ..self }
    }

    /// Finds the strongest sandbox level for a workspace, `best` at most, and why stronger ones
    /// failed.
    #[must_use]
    pub fn probe(&self, workspace: &Path, best: Isolation) -> SandboxSupport {
        #[cfg(target_os = "linux")]
        return crate::sandbox::probe(&self.launcher, self.layout.as_deref(), workspace, best);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (workspace, best);
            let why = vec![(
                Isolation::C,
                format!("there is no sandbox on {} yet", std::env::consts::OS),
            )];
            SandboxSupport { level: Isolation::D, why, failed: None }
        }
    }

    /// The top folder of the repository, if a workspace is only a folder of it.
    #[must_use]
    pub fn repository_around(&self, workspace: &Path) -> Option<PathBuf> {
        #[cfg(target_os = "linux")]
        {
            let root = workspace.canonicalize().ok()?;
            self.layout.as_ref()?.outer_around(&root).map(|outer| outer.top)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = workspace;
            None
        }
    }

    /// Fetches pages of the web with this.
    #[must_use]
    pub fn fetching(self, pages: Arc<dyn Pages>) -> Self {
        Self { pages: Some(pages), ..self }
    }

    /// Lets calls use these MCP servers.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn with_mcp_servers(self, settings: crate::servers::ServerSettings) -> Self {
        let servers = (!settings.servers.is_empty())
            .then(|| Arc::new(crate::servers::roster::Servers::new(settings)));
        Self { servers, ..self }
    }

    /// Starts an MCP server as a session in this workspace would, and returns its tools.
    ///
    /// # Errors
    /// Why it cannot be used.
    #[cfg(target_os = "linux")]
    pub async fn test_server(
        &self,
        workspace: &Path,
        isolation: Isolation,
        name: &str,
    ) -> Result<Arc<dunnock_mcp::Catalogue>, String> {
        let Some(servers) = &self.servers else { return Err("there is no MCP server".into()) };
        let call = dunnock_proto::CallId { step: dunnock_proto::Step(0), index: 0 };
        let session = SessionId::from_random(*b"dunnock mcp test");
        let root = Root::open(workspace)
            .map_err(|error| format!("the folder cannot be opened: {error}"))?;
        let context = CallContext {
            root: Arc::new(root.keeping_out(self.limits.denied.clone())),
            limits: self.limits.clone(),
            call,
            live: Arc::new(|_| {}),
            halt: CancellationToken::new(),
            session: session.clone(),
            level: isolation,
            access: Access::NOTHING,
            open_hosts: HostSet::NONE,
            closes_hosts: false,
            hidden_folder: None,
            histories: self.histories.clone(),
            launcher: self.launcher.clone(),
            proxies: self.proxies.clone(),
            layout: self.layout.clone(),
        };
        let found = servers.test(&context, name).await;
        self.close(&session).await;
        found
    }

    /// Looks up the outputs of earlier calls in this store.
    #[must_use]
    pub fn reading(self, store: Arc<dyn Store>) -> Self {
        Self { store: Some(store), ..self }
    }

    async fn work(&self, job: &ToolCall, live: DeltaSink, halt: CancellationToken) -> ToolOutput {
        let root = match Root::open(Path::new(job.workspace.as_ref())) {
            Ok(root) => Arc::new(root.keeping_out(self.limits.denied.clone())),
            Err(error) => {
                return Err::<String, _>(format!("the workspace cannot be opened: {error}")).into();
            }
        };
        let mut limits = self.limits.clone();
        if let Some(left) = job.time_left {
            // A call that ends after the deadline helps nobody.
            let limits = Arc::make_mut(&mut limits);
            for most in [&mut limits.command, &mut limits.command_most, &mut limits.verify] {
                *most = left.max(LEAST_TIME).min(*most);
            }
        }
        let call_context = CallContext {
            root,
            limits,
            call: job.call.id,
            live,
            halt,
            session: job.session.clone(),
            level: job.isolation,
            access: job.call.access.clone(),
            open_hosts: job.open_hosts.clone(),
            closes_hosts: job.closes_hosts,
            hidden_folder: job.hidden_folder.as_ref().map(PathBuf::from),
            #[cfg(unix)]
            histories: self.histories.clone(),
            #[cfg(target_os = "linux")]
            launcher: self.launcher.clone(),
            #[cfg(target_os = "linux")]
            proxies: self.proxies.clone(),
            #[cfg(target_os = "linux")]
            layout: self.layout.clone(),
        };
        #[cfg(target_os = "linux")]
        if job.closes_hosts {
            for network in self.proxies.close_earlier(&job.session) {
                self.launcher.leave(&network);
            }
        }
        let (tool, args) = (job.call.part.tool.as_str(), job.call.args());
        if job.call.harness {
            return match VerifyArgs::parse(args) {
                Ok(check) => {
                    let program = Program::line(self.limits.shell, &check.command);
                    process::run(&call_context, program, call_context.limits.verify).await
                }
                Err(error) => Err::<String, _>(error).into(),
            };
        }
        // What may run unasked was decided by the class that the log gives the tool: in the log of a
        // stranger, that may be wrong.
        // The tools of servers have classes of their own, which `tool_use` compares.
        let class = tools::class(tool).filter(|_| tool != TOOL_USE);
        if class.is_some_and(|class| class != job.call.class) {
            let text = format!(
                "this session records {tool} with another class (read, edit or command) than this \
                 release does; start a new session"
            );
            return Err::<String, _>(text).into();
        }
        let files = match self.files(job, &call_context.root) {
            Ok(files) => files,
            Err(error) => {
                let text = format!("files outside the workspace cannot be reached: {error}");
                return Err::<String, _>(text).into();
            }
        };
        let context = ToolContext {
            call_context,
            files,
            store: self.store.clone(),
            processes: self.processes.clone(),
            pages: self.pages.clone(),
            #[cfg(target_os = "linux")]
            servers: self.servers.clone(),
            server_tool: job.call.server_tool.clone(),
            seen: job.seen.clone(),
        };
        // Processes that still run must not create protected files, but an edit tool may: the person
        // was asked.
        let mut guards = match job.call.class {
            Class::Edit => {
                #[cfg_attr(
                    not(target_os = "linux"),
                    expect(unused_mut, reason = "there are no servers")
                )]
                let mut held = self.processes.hold_guards(&job.session).await;
                #[cfg(target_os = "linux")]
                if let Some(servers) = &self.servers {
                    held.extend(servers.hold_guards(&job.session).await);
                }
                held
            }
            Class::Read | Class::Command => Vec::new(),
        };
        let said = tools::run(tool, args, context).await;
        if let Some(said) = &said {
            guards.iter_mut().for_each(|guard| guard.accept(&said.seen_files));
        }
        drop(guards);
        said.unwrap_or_else(|| Err::<String, _>(format!("there is no tool {tool}")).into())
    }
}

impl Toolbox {
    /// The files that a tool reads and edits.
    fn files(&self, job: &ToolCall, workspace: &Arc<Root>) -> std::io::Result<Arc<Root>> {
        if !job.call.access.outside {
            return Ok(workspace.clone());
        }
        #[cfg(target_os = "linux")]
        if let Some(layout) = self.layout.as_deref().filter(|_| job.isolation == Isolation::D) {
            return workspace.machine(&layout.own).map(Arc::new);
        }
        Err(std::io::Error::other("that needs the sandbox to be off"))
    }
}

impl Tools for Toolbox {
    fn mend(&self) {
        crate::root::mend(&self.limits.journals);
    }

    fn hold(&self, lock: &std::fs::File) -> Option<Box<dyn Send + Sync>> {
        #[cfg(target_os = "linux")]
        return self.launcher.hold(lock).ok().map(|held| Box::new(held) as Box<dyn Send + Sync>);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = lock;
            None
        }
    }

    fn is_in_repository(&self, workspace: &str) -> bool {
        self.repository_around(Path::new(workspace)).is_some()
    }

    fn host_info<'a>(
        &'a self,
        workspace: &'a str,
        isolation: Isolation,
        open_hosts: &'a HostSet,
        with_snapshot: bool,
    ) -> BoxFuture<'a, HostInfo> {
        let root = PathBuf::from(workspace);
        let denied = self.limits.denied.clone();
        #[cfg(target_os = "linux")]
        let (layout, open_hosts) = (self.layout.clone(), open_hosts.to_string());
        #[cfg(not(target_os = "linux"))]
        let _ = (isolation, open_hosts);
        Box::pin(async move {
            let look = tokio::task::spawn_blocking(move || HostInfo {
                #[cfg(target_os = "linux")]
                sandbox: layout
                    .and_then(|layout| {
                        crate::sandbox::describe(&layout, &root, isolation, &open_hosts)
                    })
                    .unwrap_or_default(),
                #[cfg(not(target_os = "linux"))]
                sandbox: Vec::new(),
                snapshot: match with_snapshot {
                    true => snapshot(&root, &denied),
                    false => String::new(),
                },
            });
            look.await.unwrap_or_default()
        })
    }

    fn preview<'a>(
        &'a self,
        workspace: &'a str,
        call: &'a Call,
        access: Access,
        isolation: Isolation,
    ) -> BoxFuture<'a, Vec<CallPreview>> {
        let (root, call) = (std::path::PathBuf::from(workspace), call.clone());
        #[cfg(target_os = "linux")]
        let layout = self.layout.clone().filter(|_| !access.is_nothing());
        #[cfg(target_os = "linux")]
        let server = call
            .server_tool
            .as_ref()
            .zip(self.servers.as_ref())
            .map(|(tool, servers)| crate::preview::server_tool(servers, tool, isolation));
        #[cfg(not(target_os = "linux"))]
        let _ = (access, isolation);
        Box::pin(async move {
            #[cfg(target_os = "linux")]
            if let Some(preview) = server {
                return preview;
            }
            let look = tokio::task::spawn_blocking(move || {
                #[cfg_attr(
                    not(target_os = "linux"),
                    expect(unused_mut, reason = "nothing is added")
                )]
                let mut all = crate::preview::of(&root, &call);
                #[cfg(target_os = "linux")]
                if let Some(layout) = layout {
                    if access.login {
                        all.splice(..0, crate::preview::login(&layout, &root, &call, isolation));
                    }
                    all.splice(..0, crate::preview::programs(&layout, &root, &call));
                }
                all
            });
            look.await.unwrap_or_default()
        })
    }

    #[cfg(target_os = "linux")]
    fn server_tool(&self, _: &SessionId, name: &str) -> Option<ServerTool> {
        self.servers.as_ref()?.tool(name)
    }

    fn running<'a>(
        &'a self,
        session: &'a SessionId,
        workspace: &'a str,
    ) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "nothing is kept"))]
            let mut all = self.processes.running(session);
            #[cfg(target_os = "linux")]
            if let Some(servers) = &self.servers {
                all.extend(servers.writers(session));
            }
            #[cfg(target_os = "linux")]
            if let Some(folder) = self.limits.kept_folder.clone() {
                let look = move || dunnock_sandbox::kept_processes(&folder);
                let kept = tokio::task::spawn_blocking(look).await.ok().and_then(Result::ok);
                let kept = kept.unwrap_or_default().into_iter();
                for process in kept.filter(|process| process.kept.workspace == workspace) {
                    let command = process.kept.command.lines().next().unwrap_or_default();
                    // It is already there if it is one of this session.
                    let is_own = process.kept.session == session.as_str()
                        && all.iter().any(|line| line.ends_with(&format!("({command})")));
                    if !is_own {
                        all.push(format!("process id {} ({command})", process.pid));
                    }
                }
            }
            #[cfg(not(target_os = "linux"))]
            let _ = workspace;
            all
        })
    }

    fn close<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            #[cfg(target_os = "linux")]
            if let Some(servers) = &self.servers {
                servers.close(session).await;
            }
            self.processes.close(session).await;
            #[cfg(unix)]
            self.histories.close(session);
            #[cfg(target_os = "linux")]
            for network in
                crate::sandbox::networks(session).into_iter().chain(self.proxies.close(session))
            {
                self.launcher.leave(&network);
            }
        })
    }

    fn remember<'a>(
        &'a self,
        workspace: &'a str,
        name: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<(), FilesError>> {
        let text = secrets::without(text.to_owned());
        Box::pin(async move {
            let path = Path::new(MEMORY).join(name);
            let root = Root::open(Path::new(workspace)).map_err(FilesError::failed)?;
            // The agent's own notes do not belong in the repository.
            let ignore = Path::new(MEMORY).join(".gitignore");
            if !Path::new(workspace).join(&ignore).exists() {
                root.put_own(&ignore, b"*\n").map_err(FilesError::failed)?;
            }
            root.put_own(&path, text.as_bytes()).map_err(FilesError::failed)
        })
    }

    fn stop_all(&self) {
        #[cfg(target_os = "linux")]
        self.launcher.stop();
    }

    fn run(
        &self,
        job: ToolCall,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, (Finished, Vec<Blob>)> {
        Box::pin(async move {
            failpoint::hit("tool.before", "");
            let began = Instant::now();
            let said = self.work(&job, live, halt).await;
            failpoint::hit("tool.after", "");
            let hash = |blob: &Option<Blob>| blob.as_ref().map(|blob| blob.hash);
            let (full, streams, diff) = (hash(&said.full), hash(&said.streams), hash(&said.diff));
            let images = hash(&said.image).into_iter().collect();
            let blobs: Vec<Blob> =
                [said.full, said.streams, said.diff, said.image].into_iter().flatten().collect();
            let outcome = match said.end {
                ToolStatus::Done => Outcome::Done,
                ToolStatus::Failed => Outcome::Failed,
                ToolStatus::Cut => Outcome::Interrupted,
                ToolStatus::Unknown => Outcome::Unknown,
            };
            // A call approved to run outside the sandbox ran without one, whatever the session uses.
            let unsandboxed = job.call.access.unsandboxed;
            let isolation = if unsandboxed { Isolation::D } else { job.isolation };
            let finished = Finished {
                full,
                streams,
                exit: said.exit,
                seen_files: said.seen_files,
                diff,
                images,
                left_process: said.left_process,
                missing_network: said.missing_network,
                ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                isolation: Some(isolation),
                ..Finished::plain(job.call.id, outcome, &secrets::without(said.text))
            };
            (finished, blobs)
        })
    }
}
