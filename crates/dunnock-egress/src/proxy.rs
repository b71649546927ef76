//! An HTTP proxy: `CONNECT`, and requests with a whole URL.
//!
//! Each request is judged by itself, so that a redirect or a second request on a connection reaches
//! nothing more.

use crate::hello::{self, Speaks};
use bytes::Bytes;
use dunnock_proto::{Host, HostRule, HostSet, is_public};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many connections a program may have at once.
const MOST_CONNECTIONS: usize = 128;
/// Time limit for connecting to a host, and for the first request of a program.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many refused hosts are remembered.
const MOST_REFUSED: usize = 20;
/// Headers that are for the proxy alone.
const OWN_HEADERS: [&str; 6] =
    ["proxy-connection", "proxy-authorization", "connection", "keep-alive", "te", "upgrade"];

/// Why a connection was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Nobody allowed the host.
    NotAllowed {
        /// The host.
        host: Host,
        /// The port.
        port: u16,
    },
    /// The name leads to an address that is not public.
    NotPublic {
        /// The host.
        host: Host,
        /// One of its addresses.
        address: SocketAddr,
    },
    /// TLS names another host.
    OtherName {
        /// The host that was allowed.
        host: Host,
        /// The host that TLS names.
        named: Option<String>,
    },
    /// It is not TLS, and no rule names the port.
    NotTls {
        /// The host.
        host: Host,
    },
    /// It cannot be reached.
    Unreachable {
        /// The host.
        host: Host,
        /// Why.
        why: String,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed { host, port } => write!(f, "{host}:{port} is not allowed"),
            Self::NotPublic { host, address } => {
                write!(f, "{host} leads to {}, which is not a public address", address.ip())
            }
            Self::OtherName { host, named: Some(named) } => {
                write!(f, "the connection to {host} names another host, {named:?}")
            }
            Self::OtherName { host, named: None } => {
                write!(f, "the connection to {host} does not name the host")
            }
            Self::NotTls { host } => write!(f, "the connection to {host} is not encrypted"),
            Self::Unreachable { host, why } => write!(f, "{host} cannot be reached: {why}"),
        }
    }
}
impl std::error::Error for Refused {}

/// Connects to a host that is allowed, and leads to public addresses only.
async fn connect(allowed: &HostSet, host: &Host, port: u16) -> Result<TcpStream, Refused> {
    if !allowed.covers(host, port) {
        return Err(Refused::NotAllowed { host: host.clone(), port });
    }
    let unreachable = |why: String| Refused::Unreachable { host: host.clone(), why };
    let connecting = async {
        let addresses: Vec<SocketAddr> = match host {
            // The person saw this address.
            Host::Address(address) => vec![(*address, port).into()],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), port)).await;
                judged(host, found.map_err(|e| unreachable(e.to_string()))?.collect())?
            }
        };
        let mut why = "it has no address".to_owned();
        for address in addresses {
            match timeout(PATIENCE / 4, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => why = format!("{} does not answer", address.ip()),
            }
        }
        Err(unreachable(why))
    };
    match timeout(PATIENCE, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(unreachable("it does not answer".into())),
    }
}

/// The addresses of a name, if all of them are public.
pub(crate) fn judged(host: &Host, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
    let is_private = |address: &&SocketAddr| !is_public(address.ip()) || is_own(address.ip());
    match found.iter().find(is_private) {
        Some(address) => Err(Refused::NotPublic { host: host.clone(), address: *address }),
        None => Ok(found),
    }
}

/// Whether an address is one of this machine: it would be reached from itself. Nothing is sent.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 443))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

/// What programs requested of a proxy and did not get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkUse {
    /// Hosts that are not allowed.
    pub not_allowed: HostSet,
    /// A host is allowed, and yet was not connected: its address is not public, or what is spoken is
    /// not TLS to this host.
    pub of_no_use: bool,
    /// Why connections were refused, a sentence each.
    pub refused: BTreeSet<String>,
}

/// A proxy for the programs that share a network.
#[derive(Debug)]
pub struct Proxy {
    allowed: HostSet,
    seen: Mutex<NetworkUse>,
    connections: Arc<Semaphore>,
}

type Answer = Response<BoxBody<Bytes, hyper::Error>>;
/// What happens in a tunnel, once the request for it is answered.
type Tunnel = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Proxy {
    /// A proxy that connects to these hosts.
    #[must_use]
    pub fn new(allowed: HostSet) -> Arc<Self> {
        let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        Arc::new(Self { allowed, seen: Mutex::default(), connections })
    }

    /// What it refused since the last call.
    pub fn take_use(&self) -> NetworkUse {
        std::mem::take(&mut *self.seen())
    }

    fn seen(&self) -> MutexGuard<'_, NetworkUse> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves connections, until this future is dropped; all connections end with it.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let Ok(permit) = self.connections.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                // Too many descriptors, or a connection that is gone already.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let proxy = self.clone();
            tasks.spawn(async move {
                proxy.serve_connection(stream).await;
                drop(permit);
            });
        }
    }

    async fn serve_connection(self: Arc<Self>, stream: TcpStream) {
        let tunnel: Arc<Mutex<Option<Tunnel>>> = Arc::default();
        let handle = service_fn(|request| {
            let (proxy, tunnel) = (self.clone(), tunnel.clone());
            async move { Ok::<_, std::convert::Infallible>(proxy.answer(request, &tunnel).await) }
        });
        let _ = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .half_close(true)
            .serve_connection(TokioIo::new(stream), handle)
            .with_upgrades()
            .await;
        let opened = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(opened) = opened {
            opened.await;
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        tunnel: &Mutex<Option<Tunnel>>,
    ) -> Answer {
        let done = match *request.method() {
            Method::CONNECT => self.clone().tunnel(request, tunnel).await,
            _ => self.forward(request).await,
        };
        done.unwrap_or_else(|refused| self.refuse(&refused))
    }

    /// Remembers a refusal, and tells the program.
    fn refuse(&self, refused: &Refused) -> Answer {
        let words = refused.to_string();
        let mut seen = self.seen();
        if seen.refused.len() < MOST_REFUSED {
            seen.refused.insert(words.clone());
            match refused {
                Refused::NotAllowed { host, port } => {
                    // An address of this machine means its own server to a command.
                    let rule = HostRule::of(host.clone(), *port).filter(|rule| !rule.is_private());
                    seen.not_allowed = seen.not_allowed.and(&rule.into_iter().collect());
                }
                Refused::NotPublic { .. } | Refused::OtherName { .. } | Refused::NotTls { .. } => {
                    seen.of_no_use = true;
                }
                Refused::Unreachable { .. } => {}
            }
        }
        drop(seen);
        let status = match refused {
            Refused::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            Refused::NotAllowed { .. }
            | Refused::NotPublic { .. }
            | Refused::OtherName { .. }
            | Refused::NotTls { .. } => StatusCode::FORBIDDEN,
        };
        say(status, format!("{words}\n"))
    }

    /// Opens a tunnel. What is sent through it is checked as far as it is readable: TLS must name
    /// the host.
    async fn tunnel(
        self: Arc<Self>,
        request: Request<Incoming>,
        tunnel: &Mutex<Option<Tunnel>>,
    ) -> Result<Answer, Refused> {
        let Some((host, Some(port))) = request.uri().authority().and_then(target) else {
            return Ok(say(StatusCode::BAD_REQUEST, "this is not a host with a port\n".into()));
        };
        let server = connect(&self.allowed, &host, port).await?;
        let upgrade = hyper::upgrade::on(request);
        let opened: Tunnel = Box::pin(async move {
            let Ok(client) = upgrade.await else { return };
            if let Err(Some(refused)) = self.relay(TokioIo::new(client), server, host, port).await {
                drop(self.refuse(&refused));
            }
        });
        *tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(Response::new(BodyExt::boxed(Full::default().map_err(|never| match never {}))))
    }

    /// Forwards both directions of a tunnel. What the program sends is held back until it is known to
    /// name the host; where a rule names the port, it need not be TLS, and the server may speak first.
    async fn relay(
        &self,
        client: impl AsyncRead + AsyncWrite,
        server: TcpStream,
        host: Host,
        port: u16,
    ) -> Result<(), Option<Refused>> {
        let free = self.allowed.names_port(&host, port);
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let (mut from_server, mut to_server) = server.into_split();
        let up = async {
            let patience = if free { Duration::MAX } else { PATIENCE };
            let opening = timeout(patience, hello::read(&mut from_client)).await;
            let opening = opening.map_err(|_| None)?.map_err(|_| None)?;
            match opening.speaks {
                Speaks::Tls(named) if !hello::names(&host, named.as_deref()) => {
                    return Err(Some(Refused::OtherName { host, named }));
                }
                Speaks::Other if !free => return Err(Some(Refused::NotTls { host })),
                Speaks::Tls(_) | Speaks::Other => {}
            }
            to_server.write_all(&opening.bytes).await.map_err(|_| None)?;
            copy(&mut from_client, &mut to_server).await.map_err(|_| None)?;
            to_server.shutdown().await.map_err(|_| None)
        };
        let down = async {
            copy(&mut from_server, &mut to_client).await.map_err(|_| None)?;
            to_client.shutdown().await.map_err(|_| None)
        };
        // If one fails, both end.
        tokio::try_join!(up, down).map(drop)
    }

    /// Forwards a plain request.
    async fn forward(&self, request: Request<Incoming>) -> Result<Answer, Refused> {
        let uri = request.uri().clone();
        let http = uri.scheme_str() == Some("http");
        let Some((host, port)) = uri.authority().filter(|_| http).and_then(target) else {
            return Ok(say(
                StatusCode::BAD_REQUEST,
                "this proxy takes CONNECT and http URLs\n".into(),
            ));
        };
        let port = port.unwrap_or(80);
        let server = connect(&self.allowed, &host, port).await?;
        let unreachable = |error: hyper::Error| Refused::Unreachable {
            host: host.clone(),
            why: error.to_string(),
        };
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(server))
            .await
            .map_err(unreachable)?;
        tokio::spawn(connection);
        let (mut parts, body) = request.into_parts();
        // The server must take it for the host that was judged.
        let shown = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
        let named = HeaderValue::from_str(&shown);
        let Ok(named) = named else {
            return Ok(say(StatusCode::BAD_REQUEST, "this is not a host\n".into()));
        };
        for name in OWN_HEADERS {
            parts.headers.remove(name);
        }
        parts.headers.insert(header::HOST, named);
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        let path = uri.path_and_query().cloned();
        parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        let answer =
            sender.send_request(Request::from_parts(parts, body)).await.map_err(unreachable)?;
        Ok(answer.map(BodyExt::boxed))
    }
}

/// The host and port of a request, without a user or password.
fn target(authority: &Authority) -> Option<(Host, Option<u16>)> {
    let plain = !authority.as_str().contains('@');
    let host = Host::parse(authority.host()).ok().filter(|_| plain)?;
    let port = match authority.as_str().len() > authority.host().len() {
        true => Some(authority.port_u16().filter(|port| *port > 0)?),
        false => None,
    };
    Some((host, port))
}

fn say(status: StatusCode, text: String) -> Answer {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
    let mut answer = Response::new(BodyExt::boxed(body));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::{Proxy, Refused, judged};
    use crate::hello::tests::hello;
    use dunnock_proto::Host;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    /// What comes of a tunnel to a host in which a program sends these bytes, and what arrives.
    async fn sent(rules: &[&str], port: u16, bytes: &[u8]) -> (Option<Refused>, Vec<u8>) {
        let proxy = Proxy::new(rules.iter().map(|rule| rule.parse().unwrap()).collect());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut arrived, _) = listener.accept().await.unwrap();
        let (mut program, client) = tokio::io::duplex(1 << 20);
        program.write_all(bytes).await.unwrap();
        program.shutdown().await.unwrap();
        let host = Host::parse("allowed.com").unwrap();
        let read = async {
            let mut all = Vec::new();
            arrived.read_to_end(&mut all).await.unwrap();
            drop(arrived);
            all
        };
        let (ended, all) = tokio::join!(proxy.relay(client, server, host, port), read);
        (ended.err().flatten(), all)
    }

    #[test]
    fn every_address_of_a_name_is_judged() {
        let host = Host::parse("allowed.com").unwrap();
        let fine = |found: &[&str]| {
            judged(&host, found.iter().map(|address| address.parse().unwrap()).collect()).is_ok()
        };
        assert!(fine(&["1.1.1.1:443", "[2606:4700:4700::1111]:443"]) && fine(&[]));
        for bad in ["127.0.0.1:443", "169.254.169.254:80", "168.63.129.16:80", "[fd00::1]:443"] {
            assert!(!fine(&[bad]) && !fine(&["1.1.1.1:443", bad]), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_tunnel_must_speak_tls_to_its_own_host() {
        let (fine, other) = (hello("allowed.com"), hello("evil.test"));
        let plain = b"GET / HTTP/1.1\r\n\r\n".to_vec();
        let named = |refused: Option<Refused>| match refused {
            Some(Refused::OtherName { named, .. }) => named.unwrap_or_default(),
            other => format!("{other:?}"),
        };
        assert_eq!(sent(&["allowed.com"], 443, &fine).await, (None, fine.clone()));
        let (refused, arrived) = sent(&["allowed.com"], 443, &other).await;
        assert_eq!((named(refused).as_str(), arrived.len()), ("evil.test", 0), "G265");
        let (refused, arrived) = sent(&["allowed.com"], 443, &plain).await;
        assert!(matches!(refused, Some(Refused::NotTls { .. })) && arrived.is_empty());
        // Where a rule names the port, anything may be spoken; TLS must still name the host.
        assert_eq!(sent(&["allowed.com:22"], 22, &plain).await, (None, plain.clone()));
        let (refused, arrived) = sent(&["allowed.com:22"], 22, &other).await;
        assert_eq!((named(refused).as_str(), arrived.len()), ("evil.test", 0));
    }
}
