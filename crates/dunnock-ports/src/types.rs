//! Types that all ports use.

use dunnock_proto::Delta;
use std::pin::Pin;
use std::sync::Arc;

/// A future that a port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Receives live updates.
pub type DeltaSink = Arc<dyn Fn(Delta) + Send + Sync>;
