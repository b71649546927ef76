//! Proxies and certificates of companies, as docs/guides/proxies.md describes them: a proxy on
//! loopback, and a certificate authority that nobody else knows.

use crate::{Home, KEY, Ran, ran};
use dunnock_testkit::server::{Rules, ScriptedServer};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

async fn with_model(address: [u8; 4], model: &str) -> ScriptedServer {
    let rules = Rules { models: vec![model.into()], ..Rules::default() };
    ScriptedServer::at_with(SocketAddr::from((address, 0)), vec![], rules).await
}

fn configure(home: &Home, base_url: &str) {
    home.configure(&format!(
        "model = \"company/m\"\n[providers.company]\nbase_url = \"{base_url}\"\napi_key_env = \
         \"SCRIPT_KEY\"\n"
    ));
}

async fn list(home: &Home, variables: &[(&str, &str)]) -> Ran {
    let mut command = home.command(&["models", "list"]);
    command.envs(variables.iter().copied());
    ran(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_used_for_other_machines_and_not_for_this_one() {
    let proxy = with_model([127, 0, 0, 1], "through-the-proxy").await;
    // An address of loopback that the program does not take for this machine.
    let server = with_model([127, 0, 0, 2], "direct").await;
    let home = Home::empty();
    configure(&home, &server.base_url());
    let through = proxy.root();
    for (variables, expected) in [
        (&[][..], "company/direct"),
        (&[("HTTP_PROXY", through.as_str())], "company/through-the-proxy"),
        (&[("http_proxy", &through)], "company/through-the-proxy"),
        (&[("ALL_PROXY", &through)], "company/through-the-proxy"),
        (&[("HTTPS_PROXY", &through)], "company/direct"),
        (&[("HTTP_PROXY", &through), ("NO_PROXY", "127.0.0.2")], "company/direct"),
        (&[("HTTP_PROXY", &through), ("NO_PROXY", "127.0.0.0/8")], "company/direct"),
        (&[("HTTP_PROXY", &through), ("no_proxy", "other.example,127.0.0.2")], "company/direct"),
    ] {
        let ran = list(&home, variables).await;
        assert!(ran.out.contains(expected), "{variables:?}: {}{}", ran.out, ran.err);
    }
    let here = with_model([127, 0, 0, 1], "here").await;
    configure(&home, &here.base_url());
    let ran = list(&home, &[("HTTP_PROXY", &through), ("ALL_PROXY", &through)]).await;
    assert!(ran.out.contains("company/here"), "{}{}", ran.out, ran.err);
}

/// A server with a certificate, and a proxy that leads every connection to it.
const COMPANY: &str = r#"
import base64, http.server, json, socket, ssl, sys, threading
cert, key, log = sys.argv[1:4]
class Model(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "behind-tls"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(cert, key)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
server.handle_error = lambda *args: None
plain_accept = server.get_request
def accept():
    client, where = plain_accept()
    return tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False), where
server.get_request = accept
threading.Thread(target=server.serve_forever, daemon=True).start()
def pipe(one, other):
    try:
        while piece := one.recv(65536):
            with open(log, "ab") as file: file.write(piece)
            other.sendall(piece)
    except OSError: pass
    finally:
        for end in (one, other):
            try: end.shutdown(socket.SHUT_RDWR)
            except OSError: pass
def serve(client):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(4096)
        if not piece: return
        head += piece
    with open(log, "ab") as file: file.write(head)
    want = b"Basic " + base64.b64encode(b"ada:s3cret")
    if want not in head:
        client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        return client.close()
    upstream = socket.create_connection(server.server_address)
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=pipe, args=(upstream, client), daemon=True).start()
    pipe(client, upstream)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], server.server_address[1], flush=True)
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"#;

struct Company {
    child: Child,
    proxy: u16,
    server: u16,
    log: PathBuf,
    authority: PathBuf,
}

impl Drop for Company {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn openssl(dir: &Path, args: &str) {
    let words = args.split_whitespace();
    let made = Command::new("openssl").args(words).current_dir(dir).output().unwrap();
    assert!(made.status.success(), "{args}: {}", String::from_utf8_lossy(&made.stderr));
}

impl Company {
    fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("names"), "subjectAltName=DNS:model.company.test,IP:127.0.0.1\n")
            .unwrap();
        let new = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(
            dir,
            &format!("req -x509 {new} -keyout ca.key -out ca.pem -subj /CN=company -days 2"),
        );
        openssl(dir, &format!("req {new} -keyout server.key -out server.csr -subj /CN=model"));
        openssl(
            dir,
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem \
             -days 2 -extfile names",
        );
        let log = dir.join("log");
        let mut child = Command::new("python3")
            .args(["-c", COMPANY])
            .args([dir.join("server.pem"), dir.join("server.key"), log.clone()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports: Vec<u16> = line.split_whitespace().map(|port| port.parse().unwrap()).collect();
        Self { child, proxy: ports[0], server: ports[1], log, authority: dir.join("ca.pem") }
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_authority_is_trusted_if_it_is_named_and_the_proxy_sees_no_key() {
    let home = Home::empty();
    let company = Company::open(&home.dir.path().join("company"));
    configure(&home, "https://model.company.test/v1");
    let proxy = format!("http://ada:s3cret@127.0.0.1:{}", company.proxy);
    let authority = company.authority.to_str().unwrap();

    let ran = list(&home, &[("HTTPS_PROXY", &proxy), ("SSL_CERT_FILE", authority)]).await;
    assert!(ran.out.contains("company/behind-tls"), "{}{}", ran.out, ran.err);
    let log = company.log();
    assert!(log.contains("CONNECT model.company.test:443"), "{log}");
    assert!(!log.contains(KEY) && !log.contains("/v1/models"), "it is all encrypted: {log}");

    // An authority in a folder, under the name that openssl gives it.
    let folder = home.dir.path().join("certificates");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(&company.authority, folder.join("company.pem")).unwrap();
    openssl(&folder, "rehash .");
    let folder = folder.to_str().unwrap();
    let ran = list(&home, &[("HTTPS_PROXY", &proxy), ("SSL_CERT_DIR", folder)]).await;
    assert!(ran.out.contains("company/behind-tls"), "{}{}", ran.out, ran.err);

    let ran = list(&home, &[("HTTPS_PROXY", &proxy)]).await;
    assert!(ran.err.contains("is not trusted") && ran.err.contains("SSL_CERT_FILE"), "{}", ran.err);
    let stranger = format!("http://127.0.0.1:{}", company.proxy);
    let ran = list(&home, &[("HTTPS_PROXY", &stranger), ("SSL_CERT_FILE", authority)]).await;
    assert!(
        !ran.out.contains("behind-tls") && ran.err.contains("cannot be reached"),
        "{}",
        ran.err
    );

    // A server of the company without a proxy.
    configure(&home, &format!("https://127.0.0.1:{}/v1", company.server));
    let ran = list(&home, &[("SSL_CERT_FILE", authority)]).await;
    assert!(ran.out.contains("company/behind-tls"), "{}{}", ran.out, ran.err);
}
