//! The first message of a TLS connection, which names the host that the program wants.

use dunnock_proto::Host;
use rustls::server::Acceptor;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest first message.
const MOST: usize = 64 << 10;
/// The first byte of a TLS connection.
const HANDSHAKE: u8 = 0x16;

/// What a program sent first.
pub(crate) struct Opening {
    /// All bytes that were read; they are still to be forwarded.
    pub(crate) bytes: Vec<u8>,
    /// Its protocol.
    pub(crate) speaks: Speaks,
}

/// The protocol of a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// TLS, with the host of this name; without one if it names none.
    Tls(Option<String>),
    /// Something else.
    Other,
}

/// Reads the first message of a connection.
///
/// # Errors
/// If it ends too early, is too long or is not a proper first message of TLS.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Opening> {
    let mut bytes = Vec::new();
    let mut acceptor = Acceptor::default();
    let mut fed = 0;
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await?;
        if read == 0 || bytes.len() + read > MOST {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if bytes.first() != Some(&HANDSHAKE) {
            return Ok(Opening { bytes, speaks: Speaks::Other });
        }
        while let Some(rest) = bytes.get(fed..).filter(|rest| !rest.is_empty()) {
            fed += acceptor.read_tls(&mut { rest })?;
        }
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        if let Some(accepted) = acceptor.accept().map_err(invalid)? {
            let name = accepted.client_hello().server_name().map(str::to_owned);
            return Ok(Opening { bytes, speaks: Speaks::Tls(name) });
        }
    }
}

/// Whether a name in a first message is that of the host.
pub(crate) fn names(host: &Host, name: Option<&str>) -> bool {
    match (host, name) {
        // TLS names no addresses.
        (Host::Address(_), None) => true,
        (Host::Name(_), Some(name)) => Host::parse(name).as_ref() == Ok(host),
        (Host::Address(_) | Host::Name(_), _) => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Speaks, names, read};
    use dunnock_proto::Host;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use std::sync::Arc;

    /// What a program sends first to a host of this name.
    pub(crate) fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    #[tokio::test]
    async fn the_name_in_tls_is_that_of_the_host() {
        let host = |text: &str| Host::parse(text).unwrap();
        for (name, allowed, fits) in [
            ("allowed.com", "allowed.com", true),
            ("ALLOWED.com", "allowed.com", true),
            ("evil.test", "allowed.com", false), // G265
            ("sub.allowed.com", "allowed.com", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "allowed.com", false),
            ("allowed.com", "127.0.0.1", false),
        ] {
            let bytes = hello(name);
            // In one piece, and byte by byte.
            for size in [bytes.len(), 1] {
                let mut reader = in_pieces(&bytes, size);
                let opening = read(&mut reader).await.unwrap();
                assert_eq!(opening.bytes, bytes);
                let Speaks::Tls(named) = opening.speaks else { panic!("{name} is TLS") };
                assert_eq!(names(&host(allowed), named.as_deref()), fits, "{name} {allowed}");
            }
        }
        let opening = read(&mut &b"GET / HTTP/1.1\r\n"[..]).await.unwrap();
        assert_eq!(opening.speaks, Speaks::Other);
        for bad in [&b""[..], &b"\x16"[..], &[0x16, 3, 1, 0, 5, 2, 0, 0, 1, 0]] {
            assert!(read(&mut &*bad).await.is_err(), "{bad:?}");
        }
    }

    /// Gives the bytes in pieces of this size.
    fn in_pieces(bytes: &[u8], size: usize) -> impl tokio::io::AsyncRead + Unpin {
        let (mut give, take) = tokio::io::duplex(size);
        let bytes = bytes.to_vec();
        tokio::spawn(async move {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut give, &bytes).await;
        });
        take
    }
}
