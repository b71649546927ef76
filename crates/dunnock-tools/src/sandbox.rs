//! The sandbox around commands, as tools see it: which one a call gets, and what is reverted after
//! it.
//!
//! Invariant: a call that must be sandboxed is sandboxed, or does not run.

use crate::context::CallContext;
use crate::guard::Guard;
use crate::limits::SandboxSupport;
use crate::login::Credentials;
use crate::proxies::NetworkProxy;
use crate::root::Root;
use dunnock_core::policy;
use dunnock_proto::{Access, Isolation, SessionId};
use dunnock_sandbox::{GitVariables, Launcher, Layout, Opened, SandboxSpec, Survey};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where things are on this machine: home, programs and toolchains, taken from the environment.
/// `own` are Dunnock's own folders, hidden from commands; caches of workspaces are stored below
/// `data`.
#[must_use]
pub fn layout(data: &Path, own: &[PathBuf]) -> Layout {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let var =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Layout {
        home: var("HOME").map(real).filter(|home| home.parent().is_some()),
        path: std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
        variables: crate::TOOLCHAINS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), real(var(name)?))))
            .collect(),
        own: own.to_vec(),
        boxes: data.join("boxes"),
        readable: Vec::new(),
        writable: Vec::new(),
        protected: names(true),
        watched: names(false),
        git_configs: git_configs(),
        git_variables: GitVariables::of_process(),
        secret: policy::is_secret,
        denied: Box::new(|_| false),
        writes: true,
        found: Default::default(),
        indexes: Default::default(),
        tracked_secrets: Default::default(),
        versions: Default::default(),
        bases: Default::default(),
    }
}

/// The protected names that are read-only in the sandbox, or the others.
fn names(read_only: bool) -> Vec<Vec<String>> {
    let of = policy::PROTECTED.iter().filter(|known| known.read_only == read_only);
    of.map(|known| known.path.split('/').map(str::to_owned).collect()).collect()
}

/// The configuration files of git that apply to every repository of the user.
fn git_configs() -> Vec<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = var("HOME");
    let global = var("GIT_CONFIG_GLOBAL").or_else(|| Some(home.clone()?.join(".gitconfig")));
    let config = var("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")));
    let config = config.map(|dir| dir.join("git/config"));
    [global, config, Some("/etc/gitconfig".into())].into_iter().flatten().collect()
}

fn kernel_level(isolation: Isolation) -> Option<dunnock_sandbox::Isolation> {
    match isolation {
        Isolation::A => Some(dunnock_sandbox::Isolation::A),
        Isolation::B => Some(dunnock_sandbox::Isolation::B),
        Isolation::C => Some(dunnock_sandbox::Isolation::C),
        Isolation::D => None,
    }
}

fn isolation(level: dunnock_sandbox::Isolation) -> Isolation {
    match level {
        dunnock_sandbox::Isolation::A => Isolation::A,
        dunnock_sandbox::Isolation::B => Isolation::B,
        dunnock_sandbox::Isolation::C => Isolation::C,
    }
}

/// The strongest sandbox available here.
pub(crate) fn probe(
    launcher: &Launcher,
    layout: Option<&Layout>,
    workspace: &Path,
    best: Isolation,
) -> SandboxSupport {
    let (Some(layout), Some(best)) = (layout, kernel_level(best)) else {
        return SandboxSupport { level: Isolation::D, why: Vec::new(), failed: None };
    };
    // Probe with the options that calls will use.
    let probe = || {
        let (spec, _) = layout.spec(best, workspace, Opened::default())?;
        let probed = launcher.probe(SandboxSpec { shares: Some("probe".into()), ..spec });
        launcher.leave("probe");
        probed
    };
    // What was short, or killed, may be there the second time. It never means a lower level.
    match probe().or_else(|_| probe()) {
        Ok(probed) => SandboxSupport {
            level: probed.best.map_or(Isolation::D, isolation),
            why: probed.why.into_iter().map(|(tried, why)| (isolation(tried), why)).collect(),
            failed: None,
        },
        Err(error) => SandboxSupport::failed(error.to_string()),
    }
}

/// The names of a session's private networks: that of calls that nobody approved, and that of calls
/// with more access.
pub(crate) fn networks(session: &SessionId) -> [String; 2] {
    [session.to_string(), format!("{session}-approved")]
}

/// What the sandbox of a command that nobody approved lets it do, in words for a model.
pub(crate) fn describe(
    layout: &Layout,
    workspace: &Path,
    isolation: Isolation,
    open_hosts: &str,
) -> Option<Vec<String>> {
    // What is found in the workspace does not change these words.
    let found = Survey::default();
    let level = kernel_level(isolation)?;
    let (spec, _) = layout.spec_for(level, workspace, Opened::default(), &found).ok()?;
    Some(layout.describe(&spec, open_hosts).into())
}

/// The git folders that a command may change, relative to the workspace; absolute if they are
/// outside.
pub(crate) fn git_folders(
    context: &CallContext,
    sandboxed: Option<&BTreeSet<PathBuf>>,
) -> Vec<PathBuf> {
    let root = context.root.path();
    let found = match (sandboxed, &context.layout) {
        (Some(found), _) => found.clone(),
        (None, Some(layout)) => {
            let mut found = layout.survey(root).repositories;
            found.extend(layout.outer(root).map(|outer| outer.common));
            found
        }
        (None, None) => BTreeSet::new(),
    };
    // Submodules and work trees belong to the repository that contains them.
    let own = |git: &&PathBuf| !git.ancestors().skip(1).any(|up| found.contains(up));
    let found = found.iter().filter(own);
    let mut all: Vec<PathBuf> =
        found.map(|git| git.strip_prefix(root).unwrap_or(git).to_path_buf()).collect();
    all.push(".git".into());
    all.sort();
    all.dedup();
    all
}

/// What a command does with git, by its words.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GitUse {
    /// It replaces files of the work tree by other versions of them.
    pub(crate) checkout: bool,
    /// It fetches commits, and runs nothing of the project.
    pub(crate) fetches: bool,
}

/// A call's sandbox, its variables, and the guards for protected files: none if the call may change
/// them.
pub(crate) struct CallSandbox {
    pub(crate) spec: SandboxSpec,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) guards: Vec<Guard>,
    /// The repositories that the call can write to.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// The proxy through which it reaches named hosts.
    pub(crate) proxy: Option<Arc<NetworkProxy>>,
}

impl CallSandbox {
    pub(crate) fn of(
        context: &CallContext,
        git: GitUse,
        credentials: &Credentials,
    ) -> Result<Option<Self>, String> {
        let Some(level) = kernel_level(context.level).filter(|_| !context.access.unsandboxed)
        else {
            return Ok(None);
        };
        let fail =
            |error: &dyn std::fmt::Display| format!("the sandbox could not be created: {error}");
        let layout =
            context.layout.as_ref().ok_or_else(|| fail(&"no sandbox layout was configured"))?;
        let Access {
            network,
            ref hosts,
            secrets,
            protected,
            git_config,
            repository,
            login,
            outside: _,
            unsandboxed: _,
        } = context.access;
        let checkout = git.checkout;
        let opened = Opened { network, secrets, protected, git_config, checkout, repository };
        let workspace = context.root.path();
        // With access to the whole repository, its work tree takes the place of the workspace.
        let around = layout.outer_around(workspace).filter(|_| repository);
        let root = match &around {
            Some(outer) => Arc::new(Root::open(&outer.top).map_err(|error| fail(&error))?),
            None => context.root.clone(),
        };
        let top = root.path();
        let found = layout.survey(top);
        let (mut spec, mut env) =
            layout.spec_for(level, top, opened, &found).map_err(|error| fail(&error))?;
        if login {
            spec.readable.extend(credentials.files.iter().cloned());
            spec.hidden.retain(|path| !credentials.files.contains(path));
            // Other commands can write to the cache of the workspace, where git would look for a
            // daemon that keeps passwords.
            env.retain(|(name, _)| name != "XDG_CACHE_HOME");
            env.extend(credentials.env.iter().cloned());
            if credentials.git_helpers {
                let set = layout.with_credential_helpers(top, &mut spec);
                let set = set.map_err(|error| fail(&error))?;
                env.retain(|(name, _)| *name != set.0);
                env.push(set);
            }
        }
        spec.hidden.extend(context.hidden_folder.clone());
        if let Some(outer) = &around {
            let tracked = layout.tracked_secrets(outer);
            spec.hidden.retain(|path| path.starts_with(workspace) || !tracked.contains(path));
            spec.hidden.extend(layout.hidden_in(workspace));
        }
        // A server that one call starts is reachable from the next, but what nobody approved
        // reaches nothing that has more access.
        let [plain, approved] = networks(&context.session);
        let mut name = if context.access.is_nothing() { plain } else { approved };
        let hosts = context.open_hosts.and(hosts);
        let opens_hosts = level != dunnock_sandbox::Isolation::C && !network;
        let proxy = match opens_hosts && !hosts.is_empty() {
            true => {
                // Each set of hosts has a network of its own.
                name = format!("{name}-{}", blake3::hash(hosts.to_string().as_bytes()).to_hex());
                let proxy = context.proxies.of_network(context, &name, &hosts);
                let proxy = proxy.map_err(|error| fail(&error))?;
                proxy.forget();
                Some(proxy)
            }
            false => None,
        };
        env.extend(proxy.iter().flat_map(|proxy| proxy.env()));
        spec.shares = Some(name);
        let mut repositories = found.repositories.clone();
        let outside = layout.outer(top).filter(|_| !spec.repository.is_empty());
        let outside = outside.map(|outer| outer.common);
        repositories.extend(outside.clone());
        let mut guards = Vec::new();
        if !protected {
            // First the git folder: the other guard reads it.
            if let Some(folder) = &outside {
                let guard = Guard::of_git_folder(context, folder, &spec, layout);
                guards.push(guard.map_err(|error| fail(&error))?);
            }
            guards.push(Guard::new(context, &root, &spec, layout, found, git));
        }
        // What is too large to be restored is read-only, where the kernel can do that.
        for path in guards.iter().flat_map(Guard::not_kept) {
            let above = path.ancestors().skip(1);
            let above = above.take_while(|up| up.starts_with(top) && *up != top);
            spec.pinned.extend(above.map(Path::to_path_buf));
            spec.closed.push(path.clone());
        }
        Ok(Some(Self { spec, env, guards, repositories, proxy }))
    }
}
