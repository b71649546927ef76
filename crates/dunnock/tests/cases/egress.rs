//! Requests to the proxy through which commands in the sandbox reach named hosts.

use super::world::{World, shell};
use super::{judge, of};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that answers `/away` with a redirect, everything else with "reached", and counts the
/// requests.
pub struct Server {
    pub port: u16,
    requests: Arc<AtomicUsize>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let count = count.clone();
                std::thread::spawn(move || {
                    let mut head = [0; 4096];
                    let read = stream.read(&mut head).unwrap_or(0);
                    if read == 0 {
                        return;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    let status = match head.starts_with(b"GET /away") {
                        true => "302 Found\r\nlocation: http://10.0.0.1/",
                        false => "200 OK",
                    };
                    let _ = write!(
                        stream,
                        "HTTP/1.1 {status}\r\ncontent-length: 8\r\nconnection: close\r\n\r\nreached\n"
                    );
                });
            }
        });
        Self { port, requests }
    }

    /// How many requests came since the last look.
    pub fn requests(&self) -> usize {
        self.requests.swap(0, Ordering::SeqCst)
    }
}

/// Sends a request to the proxy as it is, and prints what comes back.
fn raw(request: &str) -> String {
    format!(
        "import os, socket\n\
         host, port = os.environ['HTTPS_PROXY'].split('//')[1].split(':')\n\
         s = socket.create_connection((host, int(port)), 10)\n\
         s.sendall(b'{request}\\r\\n\\r\\n')\n\
         print(s.recv(4096).decode('utf-8', 'replace'))\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy() {
    let server = Server::start();
    let port = server.port;
    let connect = |host: &str| raw(&format!("CONNECT {host} HTTP/1.1"));
    let mut results = Vec::new();
    for case in of("cases::egress::the_proxy") {
        // The command of the case, and the words that refuse it.
        let (command, refused) = match case.id.as_str() {
            "G260" => (connect(&format!("evil.test\\0.allowed.com:{port}")), "HTTP/1.1 400"),
            "G261" => (connect("allowed.com.evil.test:443"), "is not allowed"),
            "G262" => (connect("evilallowed.com:443"), "is not allowed"),
            "G263" => (connect(&format!("localhost:{port}")), "is not a public address"),
            "G264" => (
                format!(
                    "import urllib.request\n\
                     urllib.request.urlopen('http://127.0.0.1:{port}/away')\n"
                ),
                "10.0.0.1:80 is not allowed",
            ),
            "G265" => (
                format!(
                    "import os, socket, ssl\n\
                     host, port = os.environ['HTTPS_PROXY'].split('//')[1].split(':')\n\
                     s = socket.create_connection((host, int(port)), 10)\n\
                     s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n')\n\
                     print(s.recv(4096).decode())\n\
                     ssl._create_unverified_context().wrap_socket(s, server_hostname='evil.test')\n"
                ),
                "names another host, \"evil.test\"",
            ),
            id => unreachable!("{id} is not one of these cases"),
        };
        let world = World::new(&case.id);
        world.put("case.py", &command);
        world.put("fine.py", &raw(&format!("GET http://127.0.0.1:{port}/ HTTP/1.1")));
        let hosts = ["allowed.com", "*.allowed.com"].map(str::to_owned);
        let own = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
        let flags: Vec<&str> =
            hosts.iter().chain(&own).flat_map(|host| ["--host", host.as_str()]).collect();
        let fine = world.model(&[shell("python3 fine.py")], &flags).await;
        let reached = server.requests();
        let came = world.model(&[shell("python3 case.py")], &flags).await;
        // The redirect itself is a request to an allowed host.
        let expected = usize::from(case.id == "G264");
        let held = if reached != 1 || !fine.told.contains("reached") {
            Err(format!("what is allowed was not reached: {} {}", fine.told, fine.err))
        } else if let Some(harm) = world.harm(&came) {
            Err(harm)
        } else if server.requests() != expected || !came.told.contains(refused) {
            Err(format!("not refused with {refused:?}: {}", came.told))
        } else {
            Ok(format!("refused: {refused}"))
        };
        results.push((case.id, held));
    }
    judge("the_proxy", results);
}
