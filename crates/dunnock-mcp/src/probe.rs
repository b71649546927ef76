//! Finds out which era of the protocol a server speaks, without a long wait for servers that ignore
//! unknown requests; and drops notifications that have no reader.

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a server may be silent when it is asked whether it knows `server/discover`.
pub(crate) const SILENCE: Duration = Duration::from_secs(2);

/// A transport that answers `server/discover` in the place of a server that is silent.
pub(crate) struct Probe<T> {
    inner: T,
    /// The request that waits for an answer, and until when.
    asked: Option<(RequestId, Instant)>,
    /// The request that was answered here.
    given_up: Option<RequestId>,
    /// The server answered it after all: it knows `server/discover`, but it starts slowly.
    late: Arc<AtomicBool>,
}

impl<T> Probe<T> {
    pub(crate) fn new(inner: T, late: Arc<AtomicBool>) -> Self {
        Self { inner, asked: None, given_up: None, late }
    }
}

impl<T: Transport<RoleClient>> Probe<T> {
    /// The next message; `None` in the outer option if the server was silent for too long.
    async fn next(&mut self) -> Option<Option<ServerJsonRpcMessage>> {
        match self.asked.as_ref().map(|(_, until)| *until) {
            None => Some(self.inner.receive().await),
            Some(until) => tokio::time::timeout_at(until, self.inner.receive()).await.ok(),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
        {
            self.asked = Some((request.id.clone(), Instant::now() + SILENCE));
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Some(message) = self.next().await else {
                let (id, _) = self.asked.take()?;
                self.given_up = Some(id.clone());
                let why = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer", None);
                return Some(ServerJsonRpcMessage::error(why, Some(id)));
            };
            let message = message?;
            let id = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) => None,
                JsonRpcMessage::Notification(notification) => {
                    match is_read(&notification.notification) {
                        true => return Some(message),
                        false => continue,
                    }
                }
            };
            if id.is_some() && id == self.given_up.as_ref() {
                if let JsonRpcMessage::Response(response) = &message
                    && matches!(response.result, ServerResult::DiscoverResult(_))
                {
                    self.late.store(true, Ordering::Relaxed);
                }
                continue;
            }
            if id.is_some() && id == self.asked.as_ref().map(|(id, _)| id) {
                self.asked = None;
            }
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// Whether somebody reads a notification. Servers may send thousands of others.
fn is_read(notification: &ServerNotification) -> bool {
    matches!(
        notification,
        ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::SubscriptionsAcknowledgedNotification(_)
            | ServerNotification::ProgressNotification(_)
            | ServerNotification::CancelledNotification(_)
    )
}
