//! Cases about the local server, each with raw sockets against the real program.

use super::{judge, of};
use crate::Home;
use crate::serve::Serve;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Rules, ScriptedServer, Served};
use dunnock_testkit::web::{Heard, Live, frame, raw};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

type Held = Result<String, String>;

/// A server with a session in it.
struct Den {
    home: Home,
    serve: Serve,
    session: String,
    _model: ScriptedServer,
}

async fn den(script: Vec<Served>) -> Den {
    let model = ScriptedServer::start(script).await;
    let home = Home::with(&model);
    let serve = Serve::start(&home);
    let session = serve.api().make(&json!({}));
    Den { home, serve, session, _model: model }
}

impl Den {
    /// A request with these lines after its own, as they are.
    fn ask(&self, line: &str, host: &str, more: &str, body: &str) -> Heard {
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        raw(self.serve.at, format!("{line}\r\n{host}{more}{length}\r\n{body}").as_bytes())
    }

    fn host(&self) -> String {
        format!("host: {}\r\n", self.serve.at)
    }

    fn bearer(&self) -> String {
        format!("authorization: Bearer {}\r\n", self.serve.token)
    }

    /// As a browser that came in by its code: its cookie and the header that its page knows.
    fn browser(&self) -> (String, String) {
        let code =
            self.serve.api().post("/api/code", &json!({})).1["code"].as_str().unwrap().to_owned();
        let heard = self.login(&code);
        assert_eq!(heard.status, 200, "{}", heard.body);
        let cookie = heard.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        (
            format!("cookie: {cookie}\r\n"),
            format!("x-dunnock-token: {}\r\n", heard.json()["token"].as_str().unwrap()),
        )
    }

    fn login(&self, code: &str) -> Heard {
        let body = json!({ "code": code }).to_string();
        self.ask(
            "POST /api/login HTTP/1.1",
            &self.host(),
            "content-type: application/json\r\n",
            &body,
        )
    }

    /// What a write would be, with these headers; and whether it changed anything.
    fn write(&self, more: &str) -> Heard {
        let line = format!("POST /api/sessions/{}/commands HTTP/1.1", self.session);
        let body =
            json!({ "id": "evil", "command": { "title": { "title": "owned" } } }).to_string();
        self.ask(&line, &self.host(), more, &body)
    }

    fn changed(&self) -> bool {
        let view = self.serve.api().get(&format!("/api/sessions/{}", self.session));
        view["title"] == "owned"
    }

    fn live(&self, headers: &str) -> Result<Live, Heard> {
        Live::open(self.serve.at, &format!("/api/sessions/{}/live", self.session), headers)
    }
}

const JSON: &str = "content-type: application/json\r\n";

/// Refused with one of these, and nothing happened.
fn refused(den: &Den, heard: &Heard, with: &[u16]) -> Held {
    match with.contains(&heard.status)
        && !den.changed()
        && heard.header("access-control-allow-origin").is_none()
    {
        true => Ok(format!("{}", heard.status)),
        false => Err(format!("{} {:?} {}", heard.status, heard.headers, heard.body)),
    }
}

fn sessions(den: &Den, host: &str, more: &str) -> Heard {
    den.ask("GET /api/sessions HTTP/1.1", host, more, "")
}

async fn held(id: &str) -> Held {
    let outside = Say::calls(&[("readFile", r#"{"filePath":"../outside.txt"}"#)]);
    let den = den(vec![if id == "G301" { outside.into() } else { Say::text("x").into() }]).await;
    let (port, own) = (den.serve.at.port(), den.host());
    let ours = format!("origin: http://{}\r\n", den.serve.at);
    match id {
        "G273" => {
            let mut told = Vec::new();
            let routes = [
                "/api/sessions",
                "/api/conversations",
                "/api/openapi.json",
                "/api/me",
                "/anything",
                "/api/agent",
            ];
            for path in routes
                .iter()
                .map(|p| (*p).to_owned())
                .chain([format!("/api/sessions/{}", den.session)])
            {
                told.push(refused(
                    &den,
                    &den.ask(&format!("GET {path} HTTP/1.1"), &own, "", ""),
                    &[401],
                )?);
            }
            let page = den.ask("GET / HTTP/1.1", &own, "", "");
            if page.status != 200 || page.body.contains(&den.session) {
                return Err(format!("the page: {page:?}"));
            }
            Ok(format!("{} paths 401, the page open", told.len()))
        }
        "G274" => refused(
            &den,
            &den.write(&format!("{}{JSON}origin: https://evil.test\r\n", den.bearer())),
            &[403],
        ),
        "G275" => {
            refused(&den, &den.write(&format!("{}{JSON}origin: null\r\n", den.bearer())), &[403])
        }
        "G276" => {
            let (cookie, token) = den.browser();
            let evil = format!("origin: http://localhost.evil.test:{port}\r\n");
            refused(&den, &den.write(&format!("{cookie}{token}{JSON}{evil}")), &[403])
        }
        "G277" => {
            let (cookie, token) = den.browser();
            for origin in [
                "http://localhost:9999".to_owned(),
                format!("https://{}", den.serve.at),
                format!("http://localhost:{port}"),
            ] {
                refused(
                    &den,
                    &den.write(&format!("{cookie}{token}{JSON}origin: {origin}\r\n")),
                    &[403],
                )?;
            }
            Ok("403 for each".into())
        }
        "G278" => refused(
            &den,
            &sessions(&den, &format!("host: evil.test:{port}\r\n"), &den.bearer()),
            &[421],
        ),
        "G279" => {
            let hosts = [
                format!("127.0.0.1.nip.io:{port}"),
                "127.0.0.1".into(),
                format!("127.0.0.1:{}", port.wrapping_add(1)),
                format!("0.0.0.0:{port}"),
                format!("127.1:{port}"),
                format!("localhost.:{port}"),
            ];
            for host in &hosts {
                refused(
                    &den,
                    &sessions(&den, &format!("host: {host}\r\n"), &den.bearer()),
                    &[421],
                )?;
            }
            let known = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
            let fine = known.iter().all(|host| {
                sessions(&den, &format!("host: {host}\r\n"), &den.bearer()).status == 200
            });
            if fine {
                Ok(format!("421 for {}", hosts.len()))
            } else {
                Err("our own name is refused".into())
            }
        }
        "G280" => {
            for second in [own.clone(), "host: evil.test\r\n".into()] {
                refused(
                    &den,
                    &sessions(&den, &format!("{own}{second}"), &den.bearer()),
                    &[400, 421],
                )?;
            }
            Ok("refused, also twice the same".into())
        }
        "G281" => {
            let line = format!("GET http://evil.test:{port}/api/sessions HTTP/1.1");
            refused(&den, &den.ask(&line, &own, &den.bearer(), ""), &[421])?;
            let same = den.ask(
                &format!("GET http://{}/api/sessions HTTP/1.1", den.serve.at),
                &own,
                &den.bearer(),
                "",
            );
            if same.status == 200 {
                Ok("421; the same authority is fine".into())
            } else {
                Err(format!("{same:?}"))
            }
        }
        "G282" => {
            let bare = den.ask("GET /api/sessions HTTP/1.0", "", &den.bearer(), "");
            refused(&den, &bare, &[400, 421])?;
            refused(
                &den,
                &den.ask("GET /api/sessions HTTP/1.1", "", &den.bearer(), ""),
                &[400, 421],
            )
        }
        "G283" => {
            let more = format!(
                "{}x-forwarded-host: localhost:{port}\r\nforwarded: host=localhost:{port}\r\n",
                den.bearer()
            );
            refused(&den, &sessions(&den, "host: evil.test\r\n", &more), &[421])
        }
        "G284" => match den.live("") {
            Err(heard) => refused(&den, &heard, &[401]),
            Ok(_) => Err("it was let in".into()),
        },
        "G285" => {
            let (cookie, token) = den.browser();
            let token = token.trim().rsplit(' ').next().unwrap().to_owned();
            let shown = format!("{cookie}sec-websocket-protocol: dunnock, token.{token}\r\n");
            for origin in ["origin: https://evil.test\r\n", "origin: null\r\n", ""] {
                match den.live(&format!("{shown}{origin}")) {
                    Err(heard) => drop(refused(&den, &heard, &[403])?),
                    Ok(_) => return Err(format!("let in with {origin:?}")),
                }
            }
            // Cookie and page, without what only our page knows: another server on this machine
            // might have seen the cookie.
            match den.live(&format!("{cookie}{ours}")) {
                Err(heard) => drop(refused(&den, &heard, &[403])?),
                Ok(_) => return Err("let in by the cookie alone".into()),
            }
            let mut own_page = den
                .live(&format!("{shown}{ours}"))
                .map_err(|no| format!("our own page is refused: {no:?}"))?;
            match own_page.next(Duration::from_secs(5)) {
                Some(_) => Ok("403; our own page is let in".into()),
                None => Err("our own page hears nothing".into()),
            }
        }
        "G286" | "G287" => {
            let kinds: &[&str] = match id {
                "G286" => &[
                    "text/plain",
                    "text/plain; charset=utf-8",
                    "",
                    "application/json, text/plain",
                    "application/jsonx",
                ],
                _ => &["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
            };
            let (cookie, token) = den.browser();
            for kind in kinds {
                let kind = if kind.is_empty() {
                    String::new()
                } else {
                    format!("content-type: {kind}\r\n")
                };
                refused(&den, &den.write(&format!("{cookie}{token}{ours}{kind}")), &[415])?;
                refused(&den, &den.write(&format!("{}{kind}", den.bearer())), &[415])?;
            }
            let right = den.write(&format!("{cookie}{token}{ours}{JSON}"));
            if right.status == 200 {
                Ok("415; JSON is taken".into())
            } else {
                Err(format!("{right:?}"))
            }
        }
        "G288" => gets_change_nothing(&den),
        "G289" => {
            let paths = ["/", "/api/sessions", "/api/agent", "/api/login"];
            for path in paths {
                let more = "access-control-request-method: POST\r\norigin: https://evil.test\r\n";
                let heard = den.ask(&format!("OPTIONS {path} HTTP/1.1"), &own, more, "");
                refused(&den, &heard, &[403, 405])?;
                let plain = den.ask(&format!("OPTIONS {path} HTTP/1.1"), &own, &den.bearer(), "");
                refused(&den, &plain, &[405])?;
                let cors = heard
                    .headers
                    .iter()
                    .chain(&plain.headers)
                    .any(|(name, _)| name.starts_with("access-control"));
                if cors {
                    return Err(format!("{heard:?}"));
                }
            }
            Ok("405, and not a word about others".into())
        }
        "G290" => {
            let (cookie, token) = den.browser();
            let value = cookie.trim().split_once('=').unwrap().1.to_owned();
            if !cookie.contains(&format!("dunnock_{port}=")) {
                return Err(format!("the cookie is not of this port: {cookie}"));
            }
            let other = den.ask(
                "GET /api/sessions HTTP/1.1",
                &own,
                &format!("cookie: dunnock_{}={value}\r\n", port.wrapping_add(1)),
                "",
            );
            refused(&den, &other, &[401])?;
            let forged = format!("cookie: dunnock_{port}={}\r\n", "0".repeat(64));
            refused(&den, &den.ask("GET /api/sessions HTTP/1.1", &own, &forged, ""), &[401])?;
            // Another app's cookie of the same name beside ours: nobody knows which is meant.
            refused(
                &den,
                &den.ask(
                    "GET /api/sessions HTTP/1.1",
                    &own,
                    &format!("{}; dunnock_{port}=x\r\n", cookie.trim()),
                    "",
                ),
                &[401],
            )?;
            // The cookie alone neither reads nor writes.
            refused(&den, &den.ask("GET /api/sessions HTTP/1.1", &own, &cookie, ""), &[403])?;
            let read = den.ask("GET /api/sessions HTTP/1.1", &own, &format!("{cookie}{token}"), "");
            if read.status != 200 {
                return Err(format!("{read:?}"));
            }
            refused(&den, &den.write(&format!("{cookie}{ours}{JSON}")), &[403])?;
            refused(
                &den,
                &den.write(&format!("{cookie}{ours}{JSON}x-dunnock-token: {}\r\n", "0".repeat(64))),
                &[403],
            )?;
            let right = den.write(&format!("{cookie}{token}{ours}{JSON}"));
            if right.status == 200 {
                Ok("only the whole of it writes".into())
            } else {
                Err(format!("{right:?}"))
            }
        }
        "G291" => {
            let code = den.serve.api().post("/api/code", &json!({})).1["code"]
                .as_str()
                .unwrap()
                .to_owned();
            let first = den.login(&code);
            let cookie = first.header("set-cookie").unwrap_or_default();
            if first.status != 200
                || !(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"))
            {
                return Err(format!("{first:?}"));
            }
            refused(&den, &den.login(&code), &[401])?;
            refused(&den, &den.login(&"0".repeat(64)), &[401])
                .map(|_| "dead after the first use".into())
        }
        "G292" => guesses(&den),
        "G293" => bind(&den),
        "G294" => {
            let pages = [
                den.ask("GET / HTTP/1.1", &own, "", ""),
                sessions(&den, &own, &den.bearer()),
                sessions(&den, &own, ""),
            ];
            let closed = |heard: &Heard| {
                let policy = heard.header("content-security-policy").unwrap_or_default();
                policy.contains("frame-ancestors 'none'")
                    && policy.contains("default-src 'none'")
                    && heard.header("x-frame-options") == Some("DENY")
                    && heard.header("x-content-type-options") == Some("nosniff")
                    && heard.header("referrer-policy") == Some("no-referrer")
            };
            if pages.iter().all(closed) {
                Ok("every answer says so".into())
            } else {
                Err(format!("{pages:?}"))
            }
        }
        "G295" => {
            let paths = [
                "/../../etc/passwd",
                "/%2e%2e/%2e%2e/etc/passwd",
                "/..%2f..%2fetc%2fpasswd",
                "/api/../../etc/passwd",
                "/api/sessions/..%2f..%2fetc%2fpasswd",
                "/api/sessions/abcdefgh/blobs/..%2f..%2fetc%2fpasswd",
                "//etc/passwd",
            ];
            for path in paths {
                for more in ["", &den.bearer()] {
                    let heard = den.ask(&format!("GET {path} HTTP/1.1"), &own, more, "");
                    if heard.body.contains("root:") || !matches!(heard.status, 400 | 401 | 404) {
                        return Err(format!("{path}: {heard:?}"));
                    }
                }
            }
            Ok(format!("{} paths lead nowhere", paths.len()))
        }
        "G296" => huge(&den),
        "G297" => slow(&den),
        "G298" => frames(&den),
        "G299" => other_user(&den),
        "G300" => Err("held by its own test".into()),
        "G301" => root_is_fixed(&den),
        other => Err(format!("{other} is not known here")),
    }
}

fn gets_change_nothing(den: &Den) -> Held {
    let mut api = den.serve.api();
    let before = api.get(&format!("/api/sessions/{}", den.session));
    let command = json!({ "id": "evil", "command": { "title": { "title": "owned" } } }).to_string();
    let paths = ["commands", "fork", "files", "diff", "checkpoints", "live", ""];
    for path in paths {
        let line = format!("GET /api/sessions/{}/{path}?command=interrupt HTTP/1.1", den.session);
        den.ask(
            line.trim_end_matches('/'),
            &den.host(),
            &format!("{}{JSON}", den.bearer()),
            &command,
        );
    }
    for path in ["/api/agent", "/api/login", "/api/code", "/api/me", "/api/sessions"] {
        den.ask(
            &format!("GET {path}?prompt=x HTTP/1.1"),
            &den.host(),
            &format!("{}{JSON}", den.bearer()),
            &command,
        );
    }
    let after = api.get(&format!("/api/sessions/{}", den.session));
    let count = api.get("/api/sessions")["sessions"].as_array().unwrap().len();
    match before == after && count == 1 {
        true => Ok("12 paths, not a fact more".into()),
        false => Err(format!("{before} became {after}, {count} sessions")),
    }
}

/// Ten thousand wrong tokens on eight connections at a time: none right, and whoever has the right
/// one is not held up.
fn guesses(den: &Den) -> Held {
    let (at, own) = (den.serve.at, den.host());
    let began = Instant::now();
    let counts: Vec<(usize, usize, usize)> = std::thread::scope(|scope| {
        let guess = |n: usize| {
            let own = &own;
            scope.spawn(move || {
                let (mut unknown, mut later, mut other) = (0, 0, 0);
                let mut line: Option<TcpStream> = None;
                for k in 0..1_250 {
                    let stream = line.get_or_insert_with(|| TcpStream::connect(at).unwrap());
                    let words = format!(
                        "GET /api/sessions HTTP/1.1\r\n{own}authorization: Bearer {:064x}\r\n\r\n",
                        n * 10_000 + k
                    );
                    stream.write_all(words.as_bytes()).unwrap();
                    let mut bytes = [0; 4096];
                    let got = stream.read(&mut bytes).unwrap_or(0);
                    let said = String::from_utf8_lossy(&bytes[..got]).into_owned();
                    match said.get(9..12) {
                        Some("401") => unknown += 1,
                        Some("403") => later += 1,
                        _ => other += 1,
                    }
                    if got == 0 || said.contains("connection: close") {
                        line = None;
                    }
                }
                (unknown, later, other)
            })
        };
        let all: Vec<_> = (0..8).map(guess).collect();
        // In the middle of it, whoever has the token is served as ever.
        let mut right = den.serve.api();
        for _ in 0..20 {
            right.get("/api/sessions");
            std::thread::sleep(Duration::from_millis(5));
        }
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let (unknown, later, other) =
        counts.iter().fold((0, 0, 0), |sum, c| (sum.0 + c.0, sum.1 + c.1, sum.2 + c.2));
    match other == 0 && unknown + later == 10_000 && later > 9_000 {
        true => Ok(format!(
            "{unknown} unknown, {later} told to wait, in {:.1} s",
            began.elapsed().as_secs_f32()
        )),
        false => Err(format!("{unknown} unknown, {later} later, {other} something else")),
    }
}

fn bind(den: &Den) -> Held {
    let ended = |command: &mut Command| {
        let told = crate::told(command.output().unwrap());
        (told.code, told.err)
    };
    let serve = ["serve", "--port", "0", "--listen", "0.0.0.0"];
    let (code, said) = ended(&mut den.home.command(&serve));
    if code != 2 || !said.contains("a password is needed") {
        return Err(format!("without a password: {code} {said}"));
    }
    let (code, said) = ended(den.home.command(&serve).env("DUNNOCK_PASSWORD", "short"));
    if code != 2 || !said.contains("at least 12") {
        return Err(format!("with a short one: {code} {said}"));
    }
    let file = den.home.dir.path().join(".config/dunnock/password");
    std::fs::write(&file, "a long enough password\n").unwrap();
    let (code, said) = ended(&mut den.home.command(&serve));
    if code != 2 || !said.contains("chmod 600") {
        return Err(format!("with a file that all can read: {code} {said}"));
    }
    std::fs::remove_file(&file).unwrap();
    // Loopback is all that listens otherwise.
    let sockets = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|file| std::fs::read_to_string(file).unwrap_or_default())
        .join("\n");
    let port = format!("{:04X}", den.serve.at.port());
    let mine: Vec<&str> = sockets
        .lines()
        .filter_map(|l| l.split_whitespace().nth(1))
        .filter(|l| l.ends_with(&format!(":{port}")))
        .collect();
    match mine
        .iter()
        .all(|l| l.starts_with("0100007F:") || l.starts_with("00000000000000000000000001000000:"))
        && !mine.is_empty()
    {
        true => Ok("refused; only loopback listens".into()),
        false => Err(format!("{mine:?}")),
    }
}

fn huge(den: &Den) -> Held {
    let before = den.serve.memory_kb();
    let line = format!(
        "POST /api/sessions/{}/commands HTTP/1.1\r\n{}{}{JSON}",
        den.session,
        den.host(),
        den.bearer()
    );
    // Said to be long: refused at once. And without saying so: refused at the limit.
    let said =
        raw(den.serve.at, format!("{line}content-length: {}\r\n\r\n", 500u64 << 20).as_bytes());
    let mut stream = TcpStream::connect(den.serve.at).unwrap();
    stream.write_all(format!("{line}transfer-encoding: chunked\r\n\r\n").as_bytes()).unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let sent = (0..500).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut bytes = [0; 64];
    let got = stream.read(&mut bytes).unwrap_or(0);
    let heard = String::from_utf8_lossy(&bytes[..got]).into_owned();
    let grown = den.serve.memory_kb().saturating_sub(before);
    match said.status == 413
        && (heard.contains(" 413 ") || got == 0)
        && sent < 100
        && grown < 64 << 10
    {
        true => Ok(format!("413; {sent} of 500 MB taken, {grown} kB more memory")),
        false => Err(format!("{said:?}, {sent} MB, {heard:?}, {grown} kB")),
    }
}

/// Two hundred that send a byte now and then: they are cut off, and others never notice.
fn slow(den: &Den) -> Held {
    let mut all: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(den.serve.at).unwrap()).collect();
    all.iter_mut().for_each(|s| s.write_all(b"GET /api/sess").unwrap());
    let (began, mut worst, mut api) = (Instant::now(), Duration::ZERO, den.serve.api());
    while began.elapsed() < Duration::from_secs(13) {
        let one = Instant::now();
        api.get("/api/sessions");
        worst = worst.max(one.elapsed());
        if began.elapsed() > Duration::from_secs(5) && began.elapsed() < Duration::from_secs(6) {
            all.iter_mut().for_each(|s| drop(s.write_all(b"i")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let gone = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut bytes = [0; 512];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(e) => return e.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    };
    let cut = all.iter_mut().map(gone).filter(|gone| *gone).count();
    match cut == 200 && worst < Duration::from_secs(10) {
        true => Ok(format!("all 200 cut off; others waited {} ms at most", worst.as_millis())),
        false => Err(format!("{cut} of 200 cut off; others waited {worst:?}")),
    }
}

fn frames(den: &Den) -> Held {
    let before = den.serve.memory_kb();
    let open = || den.live(&den.bearer()).map_err(|heard| format!("{heard:?}"));
    let closed = |mut live: Live| {
        live.until(|_| false);
        live.closed
    };
    // A gigabyte in one frame, as far as anybody takes it.
    let mut live = open()?;
    let mut long = vec![0x81, 0x80 | 127];
    long.extend((1u64 << 30).to_be_bytes());
    long.extend([1, 2, 3, 4]);
    let _ = live.bytes(&long);
    let chunk = vec![b'x'; 1 << 20];
    let taken = (0..64).take_while(|_| live.bytes(&chunk).is_ok()).count();
    let long = closed(live);
    // One that is not masked.
    let mut live = open()?;
    let _ = live.bytes(&[0x81, 2, b'{', b'}']);
    let bare = closed(live);
    // Pieces of a message that never ends.
    let mut live = open()?;
    let piece = vec![b'x'; 256 << 10];
    let _ = live.bytes(&frame(0x01, &piece));
    let pieces = (0..400).take_while(|_| live.bytes(&frame(0x00, &piece)).is_ok()).count();
    let endless = closed(live);
    let grown = den.serve.memory_kb().saturating_sub(before);
    let fine = |code: Option<u16>, want: u16| code.is_none() || code == Some(want);
    match fine(long, 1009)
        && fine(bare, 1002)
        && fine(endless, 1009)
        && pieces < 400
        && grown < 64 << 10
    {
        true => Ok(format!(
            "closed {long:?} after {taken} MB, {bare:?}, {endless:?} after {pieces} pieces; \
             {grown} kB more"
        )),
        false => {
            Err(format!("{long:?} {bare:?} {endless:?}, {taken} MB, {pieces} pieces, {grown} kB"))
        }
    }
}

/// Another user of the machine: the port can be reached, and nothing is to be had there without the
/// token, which cannot be read.
fn other_user(den: &Den) -> Held {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = &den.serve.token_file;
    let (of_file, of_folder) = (mode(file), mode(file.parent().unwrap()));
    if of_file != 0o600 || of_folder != 0o700 {
        return Err(format!("{of_file:o} in {of_folder:o}"));
    }
    if !dunnock_testkit::ordinary::is_root() {
        return Ok("0600 in 0700; nobody else to be".into());
    }
    let mut cat = Command::new("cat");
    cat.arg(file).uid(65_534).gid(65_534);
    let read = cat.output().unwrap();
    let mut curl = Command::new("curl");
    curl.args([
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        &format!("http://{}/api/sessions", den.serve.at),
    ])
    .uid(65_534)
    .gid(65_534);
    let asked = String::from_utf8_lossy(&curl.output().unwrap().stdout).into_owned();
    let socket =
        Command::new("ls").arg(file.parent().unwrap()).uid(65_534).gid(65_534).output().unwrap();
    match !read.status.success()
        && read.stdout.is_empty()
        && asked == "401"
        && !socket.status.success()
    {
        true => Ok("another user: the token cannot be read, 401".into()),
        false => Err(format!("{read:?} {asked} {socket:?}")),
    }
}

/// The service works where it was started, whatever a request says.
fn root_is_fixed(den: &Den) -> Held {
    std::fs::write(den.home.dir.path().join("outside.txt"), "TOPSECRET").unwrap();
    let mut api = den.serve.api();
    for extra in
        [json!({ "root": "/" }), json!({ "workspace": "/" }), json!({ "cwd": "/", "path": "/" })]
    {
        let mut body = json!({ "prompt": "read" });
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let (_, answer) = api.post("/api/agent", &body);
        if answer.to_string().contains("TOPSECRET") || answer["success"] != false {
            return Err(answer.to_string());
        }
    }
    let asked = den._model.requests();
    let root = den.home.project().canonicalize().unwrap();
    let told = |request: &serde_json::Value| {
        request["messages"][0]["content"]
            .as_str()
            .unwrap_or_default()
            .contains(root.to_str().unwrap())
    };
    match asked.len() == 3 && asked.iter().all(told) {
        true => Ok("the same folder for each".into()),
        false => Err(format!("{} requests", asked.len())),
    }
}

#[test]
fn cases_of_the_local_server() {
    let name = "cases::http::cases_of_the_local_server";
    // Each with threads of its own: one that waits holds no other up.
    let alone = |case: super::Case| {
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            (case.id.clone(), runtime.block_on(held(&case.id)))
        })
    };
    // Those that measure how others fare come after the rest.
    let (timed, rest): (Vec<_>, Vec<_>) =
        of(name).into_iter().partition(|case| ["G292", "G297"].contains(&case.id.as_str()));
    let waiting: Vec<_> = rest.into_iter().map(alone).collect();
    let mut results: Vec<_> = waiting.into_iter().map(|one| one.join().unwrap()).collect();
    results.extend(timed.into_iter().map(|case| alone(case).join().unwrap()));
    judge(name, results);
}

/// A command in the box cannot come to the server that runs it, and so cannot approve itself. One
/// that was let have the network can, and stands before the door like any other program: the token
/// is not to be seen from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_boxed_child_cannot_reach_the_server() {
    let name = "cases::http::a_boxed_child_cannot_reach_the_server";
    // The model learns the port when the server has it.
    let port: Arc<OnceLock<u16>> = Arc::default();
    let known = port.clone();
    let brain = move |_: dunnock_testkit::speech::Wire, request: &serde_json::Value| -> Served {
        let port = known.get().unwrap();
        let script = format!(
            "import glob, os, socket\nfor at in ('127.0.0.1', '::1', 'localhost'):\n    try:\n        socket.create_connection((at, {port}), 2); print('REACHED', at)\n    except OSError as e:\n        print('no', at, e)\nfor path in glob.glob(os.environ['HOME'] + '/.local/share/dunnock/run/*') + glob.glob('/run/user/*/dunnock/*'):\n    print('SEEN', path)\nprint('over')\n"
        );
        let asks = format!(
            "curl -s -m 2 http://127.0.0.1:{port}/api/sessions; cat \
             ~/.local/share/dunnock/run/*.token; echo over"
        );
        let results =
            request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count();
        match results {
            0 => Say::calls(&[(
                "shell",
                &json!({ "command": ["python3", "-c", script] }).to_string(),
            )])
            .into(),
            1 => Say::calls(&[("shell", &json!({ "command": asks }).to_string())]).into(),
            _ => Say::text("x").into(),
        }
    };
    let model = ScriptedServer::with(
        Vec::new(),
        Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() },
    )
    .await;
    let home = Home::with(&model);
    let serve = Serve::start(&home);
    port.set(serve.at.port()).unwrap();
    let mut api = serve.api();
    let mut results = Vec::new();
    for case in of(name) {
        let id = api.make(&json!({ "prompt": "reach it" }));
        let view = api.until(&id, &["waiting"]);
        let order = crate::serve::reply("yes", &view, "yes");
        assert_eq!(api.post(&format!("/api/sessions/{id}/commands"), &order).0, 200);
        let view = api.until(&id, &["done"]);
        let ended: Vec<&serde_json::Value> =
            view["events"].as_array().unwrap().iter().filter(|f| f["kind"] == "finished").collect();
        let shown = |n: usize| ended[n]["body"]["shown"].as_str().unwrap().to_owned();
        let level = ended[0]["body"]["isolation"].as_str().unwrap_or("?").to_owned();
        let (first, second) = (shown(0), shown(1));
        let held = first.contains("no 127.0.0.1")
            && first.contains("over")
            && !first.contains("REACHED")
            && !first.contains("SEEN");
        let known = second.contains("authentication required")
            && second.contains("over")
            && !second.contains(&serve.token);
        let how = format!(
            "not reached from level {level}; with the network granted: 401, no token to be seen"
        );
        results.push((
            case.id.clone(),
            if held && known && level != "D" { Ok(how) } else { Err(format!("{first}\n{second}")) },
        ));
    }
    judge(name, results);
}
