//! What all request handlers share.

use crate::host::Host;
use crate::keys::Keys;
use crate::overview::OverviewCache;
use crate::recent::Recent;
use dunnock_engine::SessionPool;
use std::sync::Arc;
use tokio::sync::watch;

/// Shared state of all request handlers.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) pool: Arc<SessionPool>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) recent: Arc<Recent>,
    pub(crate) briefs: Arc<OverviewCache>,
    /// Limits open live channels.
    pub(crate) lives: Arc<tokio::sync::Semaphore>,
    /// Limits concurrent calls of the stateless service.
    pub(crate) calls: Arc<tokio::sync::Semaphore>,
    pub(crate) stopped: watch::Receiver<bool>,
}

/// Waits until the server stops.
pub(crate) async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}
