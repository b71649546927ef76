//! What a call works with: the workspace, its limits, and how its commands are sandboxed.

use crate::limits::Limits;
use crate::root::Root;
use dunnock_ports::{CancellationToken, DeltaSink};
use dunnock_proto::{Access, CallId, HostSet, Isolation, SessionId};
use std::path::PathBuf;
use std::sync::Arc;

/// What a call works with.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub(crate) root: Arc<Root>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) call: CallId,
    pub(crate) live: DeltaSink,
    pub(crate) halt: CancellationToken,
    pub(crate) session: SessionId,
    /// How its commands are sandboxed, and what access they are granted beyond that.
    pub(crate) level: Isolation,
    pub(crate) access: Access,
    /// Hosts that every command may reach, besides those that `access` has.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no sandbox"))]
    pub(crate) open_hosts: HostSet,
    /// A secret may have been read: hosts that are opened from now on were approved after that.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no sandbox"))]
    pub(crate) closes_hosts: bool,
    /// A folder that is hidden from commands.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no sandbox"))]
    pub(crate) hidden_folder: Option<PathBuf>,
    /// Git's history, which commands may destroy.
    #[cfg(unix)]
    pub(crate) histories: Arc<crate::git_history::Histories>,
    #[cfg(target_os = "linux")]
    pub(crate) launcher: Arc<dunnock_sandbox::Launcher>,
    #[cfg(target_os = "linux")]
    pub(crate) proxies: Arc<crate::proxies::Proxies>,
    /// Where things are on this machine, for the sandbox.
    #[cfg(target_os = "linux")]
    pub(crate) layout: Option<Arc<dunnock_sandbox::Layout>>,
}

impl CallContext {
    /// Where things are, for a call that has more access than those that nobody approved. Without
    /// any sandbox there is no difference.
    #[cfg(target_os = "linux")]
    pub(crate) fn approved(&self) -> Option<&dunnock_sandbox::Layout> {
        let more = !self.access.is_nothing() && self.level != Isolation::D;
        self.layout.as_deref().filter(|_| more)
    }

    /// Whether what the call leaves running continues when the session has ended. In a sandbox,
    /// only what the person approved does: nothing guards protected files any more then.
    #[cfg(target_os = "linux")]
    pub(crate) fn keeps_processes(&self) -> bool {
        let approved = self.level == Isolation::D || !self.access.is_nothing();
        self.limits.keeps_processes && approved
    }

    /// What processes that keep running did to git's history since the last report.
    pub(crate) fn lost_history(&self) -> String {
        #[cfg(unix)]
        return self.histories.report(self.root.path(), &self.session, self.call.step.0);
        #[cfg(not(unix))]
        String::new()
    }

    /// The program of this name: for a call with more access, one that no other call can have
    /// written.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        #[cfg(target_os = "linux")]
        if let Some(layout) = self.approved()
            && !name.contains('/')
        {
            let found = layout.approved_program(self.root.path(), name);
            return found.unwrap_or_else(|| PathBuf::from("/nonexistent").join(name));
        }
        crate::programs::found(name)
    }
}
