//! What a sandbox lets commands do, in words for a model.
//!
//! Invariant: each sentence follows from the specification that the sandbox is made of; a test tries
//! at every level what the sentences say.

use crate::layout::Layout;
use crate::linux::{Isolation, SandboxSpec};
use std::path::PathBuf;

/// How many folders that the person opened are named.
const NAMED: usize = 5;

impl Layout {
    /// Two lines: what commands reach over the network, and which files. `hosts` are those that they
    /// may reach through a proxy.
    #[must_use]
    pub fn describe(&self, spec: &SandboxSpec, hosts: &str) -> [String; 2] {
        let shared = "a 127.0.0.1 that all of them in this session share";
        let network = match (spec.network, spec.isolation) {
            (true, _) => "they can use the machine's network".to_owned(),
            (false, Isolation::A | Isolation::B) if hosts.is_empty() => {
                format!("they have no network, only {shared}")
            }
            (false, Isolation::A | Isolation::B) => format!(
                "they have no network, only {shared}, and through the proxy in HTTP_PROXY and \
                 HTTPS_PROXY these hosts: {hosts}"
            ),
            (false, Isolation::C) => "they can open no sockets, not even to 127.0.0.1".to_owned(),
        };
        let workspace = match spec.writes {
            true => "the workspace",
            false => "build folders of the workspace",
        };
        let (temporary, elsewhere) = match spec.isolation {
            Isolation::A => (
                "They can also write to /tmp and the home folder, but both start empty at each call.",
                "other folders appear empty",
            ),
            Isolation::B | Isolation::C => (
                "They can also write to $TMPDIR, but not to /tmp or the home folder.",
                "they can read no other folders",
            ),
        };
        let also = |what: &str, folders: &[PathBuf]| match folders {
            [] => String::new(),
            _ => format!(" They can also {what}: {}.", named(folders)),
        };
        [
            format!("Commands run in a sandbox: {network}."),
            format!(
                "Commands can write to {workspace}. {temporary}{}{} They can read the system and \
                 toolchains; {elsewhere}.",
                also("write to", &self.writable),
                also("read", &self.readable),
            ),
        ]
    }
}

fn named(folders: &[PathBuf]) -> String {
    let quoted = folders.iter().take(NAMED).map(|folder| format!("{:?}", folder.to_string_lossy()));
    let mut all: Vec<String> = quoted.collect();
    if folders.len() > NAMED {
        all.push(format!("and {} more", folders.len() - NAMED));
    }
    all.join(", ")
}
