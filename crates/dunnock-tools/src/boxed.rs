//! The box around commands, as far as tools know of it: which one a call gets, and what is put back after it.
//!
//! Invariant: a call that must be confined is confined, or does not run.

use crate::guard::Guard;
use crate::hands::Confined;
use crate::tool::Hand;
use dunnock_core::policy;
use dunnock_proto::{Access, Level};
use dunnock_sandbox::{Cage, Launcher, Layout, Opened, Rung};
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

fn rung(level: Level) -> Option<Rung> {
    match level {
        Level::A => Some(Rung::A),
        Level::B => Some(Rung::B),
        Level::C => Some(Rung::C),
        Level::D => None,
    }
}

fn level(rung: Rung) -> Level {
    match rung {
        Rung::A => Level::A,
        Rung::B => Level::B,
        Rung::C => Level::C,
    }
}

/// The best box that can be made here.
pub(crate) fn probe(launcher: &Launcher, layout: Option<&Layout>, workspace: &Path, best: Level) -> Confined {
    let (Some(layout), Some(best)) = (layout, rung(best)) else { return Confined { level: Level::D, why: Vec::new() } };
    // As calls will want it.
    let made = layout.cage(best, workspace, Opened::default());
    let made = made.and_then(|(cage, _)| launcher.probe(Cage { shares: Some("probe".into()), ..cage }));
    launcher.leave("probe");
    match made {
        Ok(probed) => Confined {
            level: probed.best.map_or(Level::D, level),
            why: probed.why.into_iter().map(|(rung, why)| (level(rung), why)).collect(),
        },
        Err(error) => Confined { level: Level::D, why: vec![(level(best), error.to_string())] },
    }
}

/// The box of a call, the variables that belong to it, and what watches over protected names. `None` where there is none.
pub(crate) struct Boxed {
    pub(crate) cage: Cage,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) guard: Option<Guard>,
}

impl Boxed {
    pub(crate) fn of(hand: &Hand) -> Result<Option<Self>, String> {
        let Some(rung) = rung(hand.level).filter(|_| !hand.access.unsandboxed) else { return Ok(None) };
        let fail = |error: &dyn std::fmt::Display| format!("the box could not be made: {error}");
        let layout = hand.layout.as_ref().ok_or_else(|| fail(&"nobody said where things are"))?;
        let Access { network, secrets, protected, .. } = hand.access;
        let opened = Opened { network, secrets, protected };
        let (mut cage, env) = layout.cage(rung, hand.root.path(), opened).map_err(|error| fail(&error))?;
        cage.hidden.extend(hand.closed.clone());
        // A server that one call starts is reached by the next.
        cage.shares = Some(hand.session.to_string());
        let guard = if protected { None } else { Some(Guard::new(hand.root.clone(), &cage, layout)) };
        Ok(Some(Self { cage, env, guard }))
    }
}
