//! The sandbox around commands, as tools see it: which one a call gets, and what is reverted after
//! it.
//!
//! Invariant: a call that must be sandboxed is sandboxed, or does not run.

use crate::context::CallContext;
use crate::guard::Guard;
use crate::limits::SandboxSupport;
use dunnock_core::policy;
use dunnock_proto::{Access, Isolation};
use dunnock_sandbox::{Launcher, Layout, Opened, SandboxSpec};
use std::path::{Path, PathBuf};

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
        protected: policy::PROTECTED
            .iter()
            .map(|names| names.iter().map(|name| (*name).to_owned()).collect())
            .collect(),
        secret: policy::is_secret,
        denied: Box::new(|_| false),
        writes: true,
        found: Default::default(),
        bases: Default::default(),
    }
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

/// A call's sandbox, its variables, and the guard for protected files (`None` if the call may
/// change them).
pub(crate) struct CallSandbox {
    pub(crate) spec: SandboxSpec,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) guard: Option<Guard>,
}

impl CallSandbox {
    pub(crate) fn of(context: &CallContext) -> Result<Option<Self>, String> {
        let Some(level) = kernel_level(context.level).filter(|_| !context.access.unsandboxed)
        else {
            return Ok(None);
        };
        let fail =
            |error: &dyn std::fmt::Display| format!("the sandbox could not be created: {error}");
        let layout =
            context.layout.as_ref().ok_or_else(|| fail(&"no sandbox layout was configured"))?;
        let Access { network, secrets, protected, git_config, unsandboxed: _ } = context.access;
        let opened = Opened { network, secrets, protected, git_config };
        let (mut spec, env) =
            layout.spec(level, context.root.path(), opened).map_err(|error| fail(&error))?;
        spec.hidden.extend(context.hidden_folder.clone());
        // A server that one call starts is reachable from the next.
        spec.shares = Some(context.session.to_string());
        let guard =
            if protected { None } else { Some(Guard::new(context.root.clone(), &spec, layout)) };
        Ok(Some(Self { spec, env, guard }))
    }
}
