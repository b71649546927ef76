//! The proxies through which commands in the sandbox reach named hosts.
//!
//! Each set of hosts has a private network of its own, in which one proxy listens: what runs there
//! reaches these hosts and no others. So a command without that access is in another network and
//! cannot reach the proxy.

use crate::context::CallContext;
use dunnock_egress::{NetworkUse, Proxy};
use dunnock_proto::{HostSet, MissingNetwork, SessionId};
use dunnock_sandbox::NetworkListener;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// Words of programs that could not reach a host.
const LOST: [&str; 9] = [
    "could not resolve",
    "name resolution",
    "network is unreachable",
    "enotfound",
    "eai_again",
    "econnrefused",
    "connection refused",
    "failed to download",
    "could not connect",
];

/// Whether the output of a failed command shows that it could not reach a host.
pub(crate) fn shows_lost_host(output: &str) -> bool {
    LOST.iter().any(|words| output.contains(words))
}

/// The proxies of all sessions, by the names of their networks.
#[derive(Default)]
pub(crate) struct Proxies(Mutex<HashMap<String, Arc<NetworkProxy>>>);

/// The proxy of one network.
pub(crate) struct NetworkProxy {
    session: SessionId,
    hosts: HostSet,
    /// It was started after a secret may have been read.
    after_secret: bool,
    proxy: Arc<Proxy>,
    network: NetworkListener,
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for NetworkProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxies {
    /// The proxy of the network with this name for a call; it is started if it is not there.
    pub(crate) fn of_network(
        &self,
        context: &CallContext,
        name: &str,
        hosts: &HostSet,
    ) -> std::io::Result<Arc<NetworkProxy>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(name).filter(|known| known.network.is_alive()) {
            return Ok(known.clone());
        }
        let network = context.launcher.listen(name)?;
        let listener = tokio::net::TcpListener::from_std(network.listener()?)?;
        let port = listener.local_addr()?.port();
        let proxy = Proxy::new(hosts.clone());
        let task = tokio::spawn(proxy.clone().serve(listener));
        let started = Arc::new(NetworkProxy {
            session: context.session.clone(),
            hosts: hosts.clone(),
            after_secret: context.closes_hosts,
            proxy,
            network,
            port,
            task,
        });
        all.insert(name.to_owned(), started.clone());
        Ok(started)
    }

    /// Ends the proxies of a session. Returns the names of their networks.
    pub(crate) fn close(&self, session: &SessionId) -> Vec<String> {
        self.end(|proxy| proxy.session == *session)
    }

    /// Ends the proxies of a session that were started before a secret may have been read: processes
    /// that still run could send it.
    /// Returns the names of their networks.
    pub(crate) fn close_earlier(&self, session: &SessionId) -> Vec<String> {
        self.end(|proxy| proxy.session == *session && !proxy.after_secret)
    }

    fn end(&self, which: impl Fn(&NetworkProxy) -> bool) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = all.extract_if(|_, proxy| which(proxy));
        // Processes that still run hold their proxy.
        ended.inspect(|(_, proxy)| proxy.task.abort()).map(|(name, _)| name).collect()
    }
}

impl std::fmt::Debug for NetworkProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkProxy").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl NetworkProxy {
    /// The variables by which programs find the proxy.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let url = format!("http://127.0.0.1:{}", self.port);
        // What commands serve themselves is reached directly, unless the person opened an address of
        // this machine.
        let loopback = self.opens_loopback();
        let direct = if loopback { "localhost" } else { "localhost,127.0.0.1,::1" };
        let both = |name: &str, value: &str| {
            [(name.to_lowercase(), value.to_owned()), (name.to_owned(), value.to_owned())]
        };
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        let mut env: Vec<(String, String)> =
            proxies.iter().flat_map(|name| both(name, &url)).collect();
        env.extend(both("NO_PROXY", direct));
        env.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
        env
    }

    /// Forgets what earlier commands could not reach.
    pub(crate) fn forget(&self) {
        drop(self.proxy.take_use());
    }

    /// What a command that has ended could not reach, in words for the model and for the next
    /// approval.
    pub(crate) fn missing(
        &self,
        failed: bool,
        output: &str,
    ) -> Option<(String, Option<MissingNetwork>)> {
        let NetworkUse { not_allowed, of_no_use, refused } = self.proxy.take_use();
        let lost = failed && shows_lost_host(&output.to_lowercase());
        let missing = match () {
            () if !failed => None,
            () if !not_allowed.is_empty() => Some(MissingNetwork::Hosts(not_allowed)),
            () if of_no_use || (lost && refused.is_empty()) => Some(MissingNetwork::Whole),
            () => None,
        };
        let why = match refused.is_empty() {
            true if !lost => return None,
            true => "the command did not use the proxy that HTTPS_PROXY names".to_owned(),
            false => refused.into_iter().collect::<Vec<_>>().join("; "),
        };
        let hint = match missing {
            Some(MissingNetwork::Hosts(_)) => {
                "; call again with \"network\": true to ask the person for these hosts, too"
            }
            Some(MissingNetwork::Whole) => {
                "; call again with \"network\": true to ask the person for the whole network"
            }
            None => "",
        };
        let own = match self.opens_loopback() {
            true => ". What a command serves itself is reached as localhost, not as 127.0.0.1",
            false => "",
        };
        let hosts = &self.hosts;
        Some((format!("[network: only {hosts} can be reached: {why}{hint}{own}]"), missing))
    }

    /// Whether the person opened an address of this machine. Then 127.0.0.1 means the machine.
    fn opens_loopback(&self) -> bool {
        self.hosts.iter().any(dunnock_proto::HostRule::is_loopback)
    }
}
