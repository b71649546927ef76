//! The language model.

use crate::{Blob, BoxFuture, CancellationToken, DeltaSink, HostInfo, RenderError, SummaryError};
use dunnock_core::Request;
use dunnock_proto::{
    Answered, Config, Failure, Hash, Noticed, OutboxWritten, Preamble, SessionId, Source,
    StepFailed, Usage,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The session it belongs to.
    pub session: SessionId,
    /// The preamble as it was recorded, never as this release would render it.
    pub preamble: Arc<[u8]>,
    /// The step and the whole conversation.
    pub request: Request,
    /// The images that it refers to.
    pub pictures: BTreeMap<Hash, Arc<[u8]>>,
    /// Whether to wait long for a server that is busy or cannot be reached, because nobody watches.
    pub patient: bool,
    /// How long to wait for such a server at most, because the session has a deadline.
    pub time_left: Option<Duration>,
}

/// A model.
pub trait Model: Send + Sync {
    /// Renders the preamble for `config.model`: the bytes, and what the core must know about them.
    fn render_preamble<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        host: &'a HostInfo,
    ) -> BoxFuture<'a, Result<(Preamble, Blob), RenderError>>;
    /// The machine as a recorded preamble describes it, to render that preamble again.
    fn host_info(&self, preamble: &[u8]) -> HostInfo {
        let _ = preamble;
        HostInfo::default()
    }
    /// Asks for an answer. When cancelled, it stops and still reports.
    fn ask(
        &self,
        asking: ModelRequest,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Result<(Answered, Vec<Blob>), StepFailed>>;
    /// Writes a request to files for the user to copy; [`ask`](Self::ask) then waits for the
    /// answer.
    fn write_outbox(
        &self,
        asking: ModelRequest,
    ) -> BoxFuture<'_, Result<OutboxWritten, StepFailed>> {
        let error = "this model does not support the copy-and-paste bridge".to_owned();
        Box::pin(
            async move { Err(StepFailed::unsent(asking.request.step, Failure::Rejected, error)) },
        )
    }
    /// Summarises old conversation, using the model that the preamble names.
    fn summarise(
        &self,
        preamble: Arc<[u8]>,
        request: Request,
        halt: CancellationToken,
    ) -> BoxFuture<'_, Summary>;
    /// A notice for the model if the sources of the preamble have changed since it last knew them.
    fn preamble_drift<'a>(
        &'a self,
        config: &'a Config,
        workspace: &'a str,
        known: &'a Preamble,
        sources: &'a [Source],
    ) -> Option<Noticed> {
        let _ = (config, workspace, known, sources);
        None
    }
}

/// A summary, and what it used.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The summary, or why there is none.
    pub text: Result<Arc<str>, SummaryError>,
    /// What it used, in either case.
    pub usage: Usage,
    /// The summary started but was not completed, so `usage` is not all.
    pub broke: bool,
}
