//! Finds what a command names: a session, a call.

use crate::compose::Composed;
use crate::config::paths;
use crate::view::exit::usage;
use anyhow::{Context as _, bail};
use dunnock_ports::Catalogue;
use dunnock_proto::{CallId, SessionId};
use std::path::Path;

/// The only session whose ID starts with `prefix`.
pub(crate) async fn by_prefix(store: &dyn Catalogue, prefix: &str) -> anyhow::Result<SessionId> {
    match store.find(prefix).await?.as_slice() {
        _ if prefix.is_empty() => {
            bail!("a session ID is required. \"dunnock sessions list\" lists them")
        }
        [] => bail!("there is no session {prefix}. \"dunnock sessions list\" lists all sessions"),
        [one] => Ok(one.clone()),
        _ => bail!(
            "several sessions start with {prefix}. Give more of the ID; \"dunnock sessions list\" \
             lists them"
        ),
    }
}

/// The session with this ID, or else the newest in this folder.
pub(crate) async fn session(
    open: &Composed,
    id: Option<&str>,
    workspace: Option<&Path>,
) -> anyhow::Result<SessionId> {
    if let Some(id) = id {
        return by_prefix(open.ports.store.as_ref(), id).await;
    }
    let workspace = paths::workspace(workspace)?;
    let newest =
        open.ports.store.list(Some(&workspace.to_string_lossy()), 1).await?.into_iter().next();
    newest.map(|row| row.id).with_context(|| {
        format!(
            "there is no session in {} yet. Start one: dunnock run \"...\"",
            workspace.display()
        )
    })
}

/// The id of a call, as it is printed.
pub(crate) fn call_id(text: &str) -> anyhow::Result<CallId> {
    text.parse().map_err(|_| {
        usage(format!(
            "{text:?} is not a call ID; use one like 3.0, as printed by \"dunnock sessions show\""
        ))
    })
}
