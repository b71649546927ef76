//! A connection to a server, over pipes or HTTP.

use crate::catalogue::Catalogue;
use crate::probe::Probe;
use crate::result::CallResult;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
    JsonObject, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    SubscriptionFilter,
};
#[expect(deprecated, reason = "servers of the older era ask for the roots at once")]
use rmcp::model::{ListRootsResult, Root};
use rmcp::service::{
    ClientInitializeError, NotificationContext, RequestContext, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ErrorData, RoleClient, serve_client_with_lifecycle,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// The longest message, in bytes.
const MOST_MESSAGE: usize = 16 << 20;
/// Pages of a list of tools.
const MOST_PAGES: usize = 50;
/// How long to wait for a server to close the connection.
const GOODBYE: Duration = Duration::from_millis(300);

/// Which form of the protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// It knows `server/discover` (2026-07-28 and later).
    Modern,
    /// It needs the `initialize` handshake (2025-11-25 and earlier).
    Legacy,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// The server knows `server/discover` but answered late, so it was taken for an older one. It
    /// can be started again with [`Era::Modern`].
    EraMisdetected,
    /// Anything else, in words.
    Failed(String),
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The server refused it, in its words.
    Refused(String),
    /// The server was not reached: it did nothing.
    NotSent(String),
    /// The connection ended before the answer came: the outcome is unknown.
    Lost,
    /// The server sent a message that is too large to be read: the outcome is unknown.
    TooLarge,
    /// The server was silent for this long: the outcome is unknown.
    Silent(Duration),
    /// The call was cancelled, and the server was notified.
    Cancelled,
    /// The server wants input from the person, or answers later. Neither is possible yet.
    Unsupported(&'static str),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "the server refused the call: {why}"),
            Self::NotSent(why) => write!(f, "the server cannot be reached: {why}"),
            Self::Lost => f.write_str("outcome unknown: the connection ended during the call"),
            Self::TooLarge => f.write_str(
                "outcome unknown: the server's answer is too large to be read; ask for less",
            ),
            Self::Silent(time) => write!(
                f,
                "outcome unknown: there was no answer within {} s; the call was cancelled",
                time.as_secs()
            ),
            Self::Cancelled => f.write_str("[stopped: the person interrupted]"),
            Self::Unsupported(what) => write!(f, "the server {what}, which is not supported yet"),
        }
    }
}

/// What the handler and the connection share.
struct Shared {
    /// The server said that its tools have changed.
    changed: AtomicBool,
    /// When it last reported progress.
    heard: Mutex<Instant>,
}

/// Answers what a server asks.
struct Handler {
    shared: Arc<Shared>,
    /// The workspace, as a URL.
    root: String,
    info: ClientConfig,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    #[expect(deprecated, reason = "servers of the older era ask for the roots at once")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(self.root.clone()).with_name("workspace")]))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.shared.changed.store(true, Ordering::Relaxed);
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        *self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// A connection to a server.
pub struct Connection {
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    peer: rmcp::Peer<RoleClient>,
    shared: Arc<Shared>,
    era: Era,
    over_http: bool,
    listener: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

/// A server over HTTP.
pub struct Http {
    /// Its address.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
}

impl Connection {
    /// Connects to a server over pipes. If its era is not known, both are tried.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn over_pipes(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        workspace: &Path,
        era: Option<Era>,
    ) -> Result<Self, ConnectError> {
        let transport =
            AsyncRwTransport::new_client(read, write).with_max_line_length(MOST_MESSAGE);
        Self::over(transport, workspace, era).await
    }

    /// Connects to a server over HTTP.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn over_http(
        http: &Http,
        workspace: &Path,
        era: Option<Era>,
    ) -> Result<Self, ConnectError> {
        let failed = |why: String| ConnectError::Failed(why);
        let first = Self::over(http_transport(http).map_err(failed)?, workspace, era).await;
        let again = match (first, era) {
            (Ok(connection), _) => return Ok(connection.by_http()),
            (Err(ConnectError::EraMisdetected), None) => Era::Modern,
            // Older servers refuse in many ways what they do not know.
            (Err(_), None) => Era::Legacy,
            (Err(error), Some(_)) => return Err(error),
        };
        let transport = http_transport(http).map_err(failed)?;
        Self::over(transport, workspace, Some(again)).await.map(Self::by_http)
    }

    fn by_http(mut self) -> Self {
        self.over_http = true;
        self
    }

    async fn over<T: Transport<RoleClient> + 'static>(
        transport: T,
        workspace: &Path,
        era: Option<Era>,
    ) -> Result<Self, ConnectError> {
        let shared = Arc::new(Shared { changed: false.into(), heard: Mutex::new(Instant::now()) });
        let root = url::Url::from_directory_path(workspace)
            .map_or_else(|()| String::new(), |url| url.to_string());
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(Default::default());
        let info = ClientConfig::new(
            capabilities,
            Implementation::new("dunnock", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::V_2025_11_25);
        let handler = Handler { shared: shared.clone(), root, info };
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match era {
            Some(Era::Legacy) => ClientLifecycleMode::Initialize,
            Some(Era::Modern) => ClientLifecycleMode::Discover { preferred_versions: modern },
            None => ClientLifecycleMode::Auto {
                preferred_versions: modern,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
        };
        let late = Arc::new(AtomicBool::new(false));
        // Only where both eras are possible is silence an answer.
        let started = match era {
            None => {
                let probe = Probe::new(transport, late.clone());
                serve_client_with_lifecycle(handler, probe, lifecycle).await
            }
            Some(_) => serve_client_with_lifecycle(handler, transport, lifecycle).await,
        };
        let service = started.map_err(|error| match late.load(Ordering::Relaxed) {
            true => ConnectError::EraMisdetected,
            false => ConnectError::Failed(described(&error)),
        })?;
        let peer = service.peer().clone();
        let info = peer.peer_info();
        let is_modern = info.as_ref().is_some_and(|info| !info.protocol_version.has_initialize());
        let era = if is_modern { Era::Modern } else { Era::Legacy };
        let announces = info.as_ref().is_some_and(|info| {
            let tools = info.capabilities.tools.as_ref();
            tools.is_some_and(|tools| tools.list_changed == Some(true))
        });
        let listener = (is_modern && announces).then(|| {
            let (peer, shared) = (peer.clone(), shared.clone());
            tokio::spawn(async move {
                let wanted = SubscriptionFilter::builder().tools_list_changed().build();
                let Ok(mut changes) = peer.listen(wanted).await else { return };
                while let Ok(Some(_)) = changes.next().await {
                    shared.changed.store(true, Ordering::Relaxed);
                }
            })
        });
        let service = Mutex::new(Some(service));
        Ok(Self { service, peer, shared, era, over_http: false, listener })
    }

    /// Which form of the protocol the server speaks.
    #[must_use]
    pub fn era(&self) -> Era {
        self.era
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        self.peer.is_transport_closed() || service.as_ref().is_none_or(RunningService::is_closed)
    }

    /// Whether the server said, since the last call of this, that its tools have changed.
    #[must_use]
    pub fn take_changed(&self) -> bool {
        self.shared.changed.swap(false, Ordering::Relaxed)
    }

    /// The list could not be read after a change: it has to be asked for again.
    pub fn keep_changed(&self) {
        self.shared.changed.store(true, Ordering::Relaxed);
    }

    /// All tools of the server that its settings want.
    ///
    /// # Errors
    /// Why it does not list them.
    pub async fn catalogue(
        &self,
        wants: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Catalogue, String> {
        let mut catalogue = Catalogue::new(self.era);
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let listed = self.peer.list_tools(Some(page)).await;
            let listed = listed.map_err(|error| format!("its tools cannot be listed: {error}"))?;
            catalogue.add(listed.tools, wants);
            cursor = listed.next_cursor;
            if cursor.is_none() || catalogue.is_full() {
                break;
            }
        }
        Ok(catalogue)
    }

    /// Calls a tool. It may be silent for this long.
    ///
    /// # Errors
    /// Why there is no result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        silence: Duration,
        cancelled: impl Future<Output = ()>,
    ) -> Result<CallResult, CallError> {
        let heard = || *self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner);
        *self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        // When it is dropped, the server is told that the call was cancelled.
        let calling = self.peer.call_tool_once(params);
        tokio::pin!(calling, cancelled);
        let answered = loop {
            tokio::select! {
                biased;
                answered = &mut calling => break answered,
                () = &mut cancelled => return Err(CallError::Cancelled),
                () = tokio::time::sleep_until(heard() + silence) => {
                    if heard() + silence <= Instant::now() {
                        return Err(CallError::Silent(silence));
                    }
                }
            }
        };
        match answered {
            Ok(CallToolResponse::Complete(result)) => Ok(CallResult::of(result)),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(CallError::Unsupported("wants an answer from the person"))
            }
            Ok(CallToolResponse::Task(_)) => Err(CallError::Unsupported("wants to answer later")),
            Ok(_) => Err(CallError::Unsupported("answered in an unknown form")),
            Err(ServiceError::McpError(error)) => {
                Err(CallError::Refused(error.message.to_string()))
            }
            Err(ServiceError::TransportSend(error)) => {
                // Over HTTP, this is also how an answer is lost.
                match !self.over_http || was_not_connected(error.error.as_ref()) {
                    true => Err(CallError::NotSent(error.to_string())),
                    false => Err(CallError::Lost),
                }
            }
            Err(ServiceError::UnexpectedResponse) => {
                Err(CallError::Unsupported("answered in an unknown form"))
            }
            Err(_) => Err(CallError::Lost),
        }
    }

    /// Ends the connection. A server that reads its standard input sees its end.
    pub async fn close(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut service) = service {
            let _ = service.close_with_timeout(GOODBYE).await;
        }
    }
}

fn http_transport(http: &Http) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    // Fails if a provider is set already, which is then the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        // A small body could become a large one.
        .no_gzip()
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("dunnock/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())?;
    let mut headers = HashMap::new();
    for (name, value) in &http.headers {
        let name = name.parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
        // The value may be a key, so it is not repeated.
        let mut value: reqwest::header::HeaderValue =
            value.parse().map_err(|_| format!("the value of the header {name} is not valid"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(MOST_MESSAGE);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Whether a request failed before anything was sent.
fn was_not_connected(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(found) = one.downcast_ref::<reqwest::Error>() {
            return found.is_connect();
        }
        error = one.source();
    }
    false
}

/// An error of the protocol, for people.
fn described(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered".into(),
        error if error.is_authorization_required() => {
            "it wants a login. Signing in to servers is not supported yet; set a header with a token"
                .into()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => described(fallback),
        error => error.to_string(),
    }
}
