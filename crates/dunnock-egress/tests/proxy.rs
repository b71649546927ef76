//! The proxy as programs meet it, on loopback.

#![expect(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

use dunnock_egress::Proxy;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server that answers each request with its own head, and redirects `/away`.
async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap_or(0));
                    if head.len() > 10_000 {
                        return;
                    }
                }
                let status = match head.starts_with(b"GET /away") {
                    true => "302 Found\r\nlocation: http://10.0.0.1/",
                    false => "200 OK",
                };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", head.len());
                let _ = stream.write_all(&[answer.as_bytes(), &head].concat()).await;
            });
        }
    });
    address
}

/// A proxy that lets programs reach these hosts.
async fn proxy(rules: &[&str]) -> (Arc<Proxy>, SocketAddr) {
    let proxy = Proxy::new(rules.iter().map(|rule| rule.parse().unwrap()).collect());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(proxy.clone().serve(listener));
    (proxy, address)
}

/// Sends bytes and returns what comes back until the connection ends.
async fn send(proxy: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn what_is_allowed_is_reached_and_nothing_else() {
    let port = server().await.port();
    let other = server().await.port();
    let rules = [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "allowed.test".into()];
    let (proxy, address) = proxy(&rules.each_ref().map(String::as_str)).await;
    let get = async |url: &str, host: &str| {
        send(address, format!("GET {url} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await
    };
    let fine = get(&format!("http://127.0.0.1:{port}/page?q=1"), "evil.test").await;
    assert!(fine.starts_with("HTTP/1.1 200") && fine.contains("GET /page?q=1 HTTP/1.1"), "{fine}");
    assert!(fine.contains(&format!("host: 127.0.0.1:{port}")) && !fine.contains("evil"), "{fine}");
    // A redirect is the program's to follow, and is judged again (G264).
    let away = get(&format!("http://127.0.0.1:{port}/away"), "x").await;
    assert!(away.contains("302 Found"), "{away}");
    let cases = [
        ("http://10.0.0.1/".to_owned(), "10.0.0.1:80 is not allowed"),
        (format!("http://127.0.0.1:{other}/"), "is not allowed"),
        (format!("http://localhost:{port}/"), "which is not a public address"), // G263
        (format!("http://allowed.test.evil.test:{port}/"), "is not allowed"),   // G261
        (format!("http://user@127.0.0.1:{port}/"), "this proxy takes"),
        (format!("http://0x7f.1:{port}/"), "this proxy takes"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), "is not allowed"),
        ("/".to_owned(), "this proxy takes"),
        (format!("https://127.0.0.1:{port}/"), "this proxy takes"),
    ];
    for (url, says) in cases {
        let refused = get(&url, "x").await;
        assert!(refused.starts_with("HTTP/1.1 40") && refused.contains(says), "{url}: {refused}");
    }
    let seen = proxy.take_use();
    assert!(seen.of_no_use && seen.refused.contains("10.0.0.1:80 is not allowed"), "{seen:?}");
    // The next question does not offer addresses that a program chose.
    assert_eq!(seen.not_allowed.to_string(), format!("allowed.test.evil.test:{port}"));
    assert_eq!(proxy.take_use(), Default::default());
}

#[tokio::test]
async fn tunnels_are_judged_by_their_host() {
    let port = server().await.port();
    let (_, address) = proxy(&[&format!("127.0.0.1:{port}")]).await;
    let connect = async |target: &str, inside: &str| {
        let head = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n{inside}");
        send(address, head.as_bytes()).await
    };
    let tunnel = connect(&format!("127.0.0.1:{port}"), "GET /in HTTP/1.1\r\n\r\n").await;
    assert!(tunnel.starts_with("HTTP/1.1 200") && tunnel.contains("GET /in"), "{tunnel}");
    for target in [
        "evil.test\0.allowed.com:443", // G260
        "127.0.0.1:1",
        "127.0.0.1",
        "127.0.0.1:0",
        "127.0.0.1:99999",
        "evil.test:443",
        "localhost:443",
    ] {
        let refused = connect(target, "").await;
        assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 4"), "{target}: {refused}");
    }
}
