//! The box around commands, as far as tools know of it: which one a call gets, and what is put back after it.
//!
//! Invariant: a call that must be confined is confined, or does not run.

use crate::guard::Guard;
use crate::tool::ToolContext;
use crate::toolbox::SandboxSupport;
use dunnock_core::policy;
use dunnock_proto::{Access, Isolation};
use dunnock_sandbox::{Launcher, Layout, Opened, SandboxSpec};
use std::path::{Path, PathBuf};

/// Where things are on this machine: home, programs and toolchains as the environment says. `own` are folders of ours, which no
/// command sees; caches of workspaces lie below `data`.
#[must_use]
pub fn layout(data: &Path, own: &[PathBuf]) -> Layout {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Layout {
        home: var("HOME").map(real).filter(|home| home.parent().is_some()),
        path: std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
        variables: crate::TOOLCHAINS.iter().filter_map(|name| Some(((*name).to_owned(), real(var(name)?)))).collect(),
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

/// The best box that can be made here.
pub(crate) fn probe(launcher: &Launcher, layout: Option<&Layout>, workspace: &Path, best: Isolation) -> SandboxSupport {
    let (Some(layout), Some(best)) = (layout, kernel_level(best)) else {
        return SandboxSupport { level: Isolation::D, why: Vec::new() };
    };
    // As calls will want it.
    let made = layout.cage(best, workspace, Opened::default());
    let made = made.and_then(|(cage, _)| launcher.probe(SandboxSpec { shares: Some("probe".into()), ..cage }));
    launcher.leave("probe");
    match made {
        Ok(probed) => SandboxSupport {
            level: probed.best.map_or(Isolation::D, isolation),
            why: probed.why.into_iter().map(|(tried, why)| (isolation(tried), why)).collect(),
        },
        Err(error) => SandboxSupport { level: Isolation::D, why: vec![(isolation(best), error.to_string())] },
    }
}

/// The box of a call, the variables that belong to it, and what watches over protected names. `None` where there is none.
pub(crate) struct CallSandbox {
    pub(crate) cage: SandboxSpec,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) guard: Option<Guard>,
}

impl CallSandbox {
    pub(crate) fn of(hand: &ToolContext) -> Result<Option<Self>, String> {
        let Some(level) = kernel_level(hand.level).filter(|_| !hand.access.unsandboxed) else { return Ok(None) };
        let fail = |error: &dyn std::fmt::Display| format!("the box could not be made: {error}");
        let layout = hand.layout.as_ref().ok_or_else(|| fail(&"nobody said where things are"))?;
        let Access { network, secrets, protected, .. } = hand.access;
        let opened = Opened { network, secrets, protected };
        let (mut cage, env) = layout.cage(level, hand.root.path(), opened).map_err(|error| fail(&error))?;
        cage.hidden.extend(hand.closed.clone());
        // A server that one call starts is reached by the next.
        cage.shares = Some(hand.session.to_string());
        let guard = if protected { None } else { Some(Guard::new(hand.root.clone(), &cage, layout)) };
        Ok(Some(Self { cage, env, guard }))
    }
}
