//! Fetching pages, on loopback.

#![expect(clippy::unwrap_used, reason = "a test ends where it goes wrong")]

use dunnock_egress::WebPages;
use dunnock_ports::{Page, PageError, Pages as _};
use dunnock_proto::HostSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server that answers by path, and counts its requests.
async fn server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let requests = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let requests = requests.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                requests.fetch_add(1, Ordering::SeqCst);
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap().to_owned();
                let to = |url: &str| format!("302 Found\r\nlocation: {url}");
                let (status, more, body): (String, &str, Vec<u8>) = match path.as_str() {
                    "/page" => ("200 OK".into(), "text/html; charset=utf-8", head.into_bytes()),
                    "/large" => ("200 OK".into(), "text/plain", vec![b'x'; 11 << 20]),
                    "/bomb" => ("200 OK\r\ncontent-encoding: gzip".into(), "text/plain", bomb()),
                    "/missing" => ("404 Not Found".into(), "text/plain", b"no".to_vec()),
                    "/away" => (to("http://10.0.0.1/"), "text/plain", vec![]),
                    "/number" => (to("http://2130706433/"), "text/plain", vec![]),
                    "/user" => (to("http://a@127.0.0.1/"), "text/plain", vec![]),
                    "/loop" => (to("/loop"), "text/plain", vec![]),
                    path => match path.strip_prefix("/hop/").and_then(|n| n.parse::<u8>().ok()) {
                        Some(0) => (to("/page"), "text/plain", vec![]),
                        Some(n) => (to(&format!("/hop/{}", n - 1)), "text/plain", vec![]),
                        None => ("200 OK".into(), "text/plain", b"other".to_vec()),
                    },
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {more}\r\ncontent-length: {}\r\n\
                     connection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.write_all(&body).await;
            });
        }
    });
    (port, count)
}

/// 200 MB of zeros, compressed.
fn bomb() -> Vec<u8> {
    let out = std::process::Command::new("sh")
        .args(["-c", "head -c 200000000 /dev/zero | gzip -1"])
        .output()
        .unwrap();
    assert!(out.status.success() && out.stdout.len() < 2_000_000);
    out.stdout
}

async fn fetch(hosts: &[&str], url: &str) -> Result<Page, PageError> {
    let hosts: HostSet = hosts.iter().map(|host| host.parse().unwrap()).collect();
    WebPages::new("test/1".into()).fetch(&hosts, url).await
}

/// WEB1: no form of a URL reaches what is not allowed, and each redirect is judged.
#[tokio::test]
async fn only_what_is_allowed_is_fetched() {
    let (port, count) = server().await;
    let own = format!("127.0.0.1:{port}");
    let url = |path: &str| format!("http://{own}{path}");
    let page = fetch(&[&own], &url("/page")).await.unwrap();
    assert_eq!((page.status, page.kind.as_str(), page.cut), (200, "text/html", false));
    let head = String::from_utf8(page.body).unwrap().to_lowercase();
    assert!(head.contains("user-agent: test/1") && !head.contains("cookie"), "{head}");
    assert!(!head.contains("authorization"));
    assert_eq!(fetch(&[&own], &url("/missing")).await.unwrap().status, 404);
    let page = fetch(&[&own], &url("/hop/4")).await.unwrap();
    assert_eq!(page.url, url("/page"));
    for path in ["/hop/5", "/loop"] {
        let error = fetch(&[&own], &url(path)).await.unwrap_err().to_string();
        assert!(error.contains("more than 5 redirects"), "{path}: {error}");
    }
    let away = fetch(&[&own], &url("/away")).await.unwrap_err();
    assert_eq!(away, PageError::Redirected { url: "http://10.0.0.1/".into() });
    let user = fetch(&[&own, "127.0.0.1:80"], &url("/user")).await.unwrap_err();
    assert!(matches!(user, PageError::Failed(_)), "{user:?}");
    // A number is an address to the parser of URLs, and not the one that is allowed.
    let number = fetch(&[&own], &url("/number")).await.unwrap_err();
    assert_eq!(number, PageError::Redirected { url: "http://127.0.0.1/".into() });
    count.store(0, Ordering::SeqCst);

    // Forms of addresses that lead to this machine, a private network or a metadata service.
    let hosts = [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "127.1",
        "127.0.1",
        "0",
        "0.0.0.0",
        "127.0.0.2",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[fe80::1%25lo]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[100::1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "100.64.0.1",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "metadata.google.internal",
        "127.0.0.1%00.allowed.test",
        "127.0.0.1\0.allowed.test",
        "127.0.0.1@allowed.test",
        "allowed.test@127.0.0.1",
        "allowed.test:80@127.0.0.1",
        "allowed.test\\@127.0.0.1",
        "allowed.test#@127.0.0.1",
        "allowed.test?@127.0.0.1",
        "①②⑦.⓪.⓪.①",
        "１２７.0.0.1",
        "127。0。0。1",
        "127%2e0%2e0%2e1",
        "lo\u{ad}calhost",
        "allowed.test.",
        "allowed.test..",
        " 127.0.0.1",
        "127.0.0.1 ",
        "127.0.0.1\t",
        "\n127.0.0.1",
        "{127.0.0.1,a}",
        "*.allowed.test",
        "",
    ];
    let named = ["allowed.test", "*.allowed.test", &format!("localhost:{port}")];
    for host in hosts {
        for url in [
            format!("http://{host}/"),
            format!("http://{host}:{port}/"),
            format!("https://{host}/"),
        ] {
            let fetched = fetch(&named, &url).await;
            assert!(fetched.is_err(), "{url:?}: {fetched:?}");
        }
    }
    for url in [
        format!("ftp://{own}/"),
        "file:///etc/passwd".into(),
        format!("HTTP://{own}/"),
        format!("//{own}/"),
        own.clone(),
        "data:text/plain,x".into(),
        format!("http:{own}/"),
        format!("http:///{own}/"),
    ] {
        assert!(fetch(&[&own], &url).await.is_err(), "{url}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0, "the server was reached");
    println!("figure: {} forms of hosts refused", hosts.len());
    assert!(hosts.len() >= 60);
}

/// WEB3: a page that is too large is cut, also if it is compressed.
#[tokio::test]
async fn a_page_that_is_too_large_is_cut() {
    let (port, _) = server().await;
    let own = format!("127.0.0.1:{port}");
    for path in ["/large", "/bomb"] {
        let page = fetch(&[&own], &format!("http://{own}{path}")).await.unwrap();
        assert_eq!((page.body.len(), page.cut), (10 << 20, true), "{path}");
    }
}
