//! What a call works with: the workspace, its limits, and how its commands are sandboxed.

use crate::limits::Limits;
use crate::root::Root;
use dunnock_ports::{CancellationToken, DeltaSink};
use dunnock_proto::{Access, CallId, Isolation, SessionId};
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
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no sandbox"))]
    pub(crate) level: Isolation,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no sandbox"))]
    pub(crate) access: Access,
    /// A folder that is hidden from commands.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no sandbox"))]
    pub(crate) hidden_folder: Option<std::path::PathBuf>,
    #[cfg(target_os = "linux")]
    pub(crate) launcher: Arc<dunnock_sandbox::Launcher>,
    /// Where things are on this machine, for the sandbox.
    #[cfg(target_os = "linux")]
    pub(crate) layout: Option<Arc<dunnock_sandbox::Layout>>,
}
