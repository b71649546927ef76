//! The two ends of a connection, and the user that owns a local one, as the kernel reports it.

use axum::http::HeaderName;
use dunnock_ports::CancellationToken;
use std::net::{IpAddr, SocketAddr};

/// The header with the page's token, sent with every request of our page.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-dunnock-token");

/// Cancelled when the client disconnects, for work that nobody else should finish.
#[derive(Clone)]
pub(crate) struct ClientGone(pub(crate) CancellationToken);

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// The address that was connected to.
    pub(crate) at: SocketAddr,
    /// The client's address.
    pub(crate) from: SocketAddr,
}

impl Peer {
    /// The name of our cookie. Cookies are not separated by port, so the port is in the name.
    pub(crate) fn cookie(self) -> String {
        format!("dunnock_{}", self.at.port())
    }

    /// Whether a `Host` header names the address that was connected to.
    pub(crate) fn is_ours(self, host: &str) -> bool {
        let (ip, port) = (self.at.ip(), self.at.port());
        let names = [SocketAddr::new(ip, port).to_string(), format!("localhost:{port}")];
        let local = ip.is_loopback();
        let own = |name: &String| name == host && (local || !name.starts_with("localhost"));
        names.iter().any(own) || (port == 80 && ip.to_string() == host)
    }
}

/// An address in the format of `/proc/net/tcp` and `tcp6`: 32-bit words in native byte order.
fn written(at: SocketAddr) -> String {
    let words = |bytes: &[u8]| -> String {
        bytes
            .chunks_exact(4)
            .map(|w| format!("{:08X}", u32::from_ne_bytes([w[0], w[1], w[2], w[3]])))
            .collect()
    };
    let ip = match at.ip() {
        IpAddr::V4(ip) => words(&ip.octets()),
        IpAddr::V6(ip) => words(&ip.octets()),
    };
    format!("{ip}:{:04X}", at.port())
}

/// The user of the connection from `from` to `to` in such a table.
fn user_in(table: &str, from: &str, to: &str) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let here = fields.next()? == from && fields.next()? == to;
        here.then(|| fields.nth(4)?.parse().ok()).flatten()
    })
}

/// Whether another user on this machine opened the connection. False if the kernel does not say.
pub(crate) fn is_another_user(from: SocketAddr, to: SocketAddr) -> bool {
    if !from.ip().is_loopback() {
        return false;
    }
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let user = tables.iter().find_map(|table| user_in(table, &written(from), &written(to)));
    #[cfg(unix)]
    let ours = Some(rustix::process::geteuid().as_raw());
    #[cfg(not(unix))]
    let ours: Option<u32> = None;
    matches!((user, ours), (Some(theirs), Some(ours)) if theirs != ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_whose_a_connection_is() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(at) else { continue };
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (from, to) = (client.local_addr().unwrap(), listener.local_addr().unwrap());
            let table = std::fs::read_to_string(if from.is_ipv4() {
                "/proc/net/tcp"
            } else {
                "/proc/net/tcp6"
            })
            .unwrap();
            let user = user_in(&table, &written(from), &written(to));
            assert_eq!(user, Some(rustix::process::geteuid().as_raw()), "{from}");
            assert!(!is_another_user(from, to));
        }
    }

    #[test]
    fn another_user_is_seen() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
             timeout inode\n   0: 0100007F:A1B2 0100007F:1388 01 00000000:00000000 00:00000000 \
             00000000  1234        0 99\n";
        let (from, to) = ("127.0.0.1:41394".parse().unwrap(), "127.0.0.1:5000".parse().unwrap());
        assert_eq!(user_in(table, &written(from), &written(to)), Some(1234));
        assert_eq!(user_in(table, &written(to), &written(from)), None);
    }
}
