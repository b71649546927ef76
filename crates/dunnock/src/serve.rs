//! `dunnock serve` and `dunnock web`: the same sessions for browsers, scripts and other programs, until it is told to end.

use crate::exit::usage;
use crate::serve_host::ServeHost;
use crate::signals::Signals;
use crate::{output, paths, run};
use anyhow::Context as _;
use dunnock_engine::SessionPool;
use dunnock_serve::{Keys, Password, serve};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The port that is tried first.
const PORT: u16 = 5000;
/// Ports after it that are tried if nobody named one.
const MORE: u16 = 20;

/// What is asked for on the command line.
pub(crate) struct Asked {
    pub(crate) port: Option<u16>,
    pub(crate) listen: Option<String>,
    pub(crate) json: bool,
    /// For somebody who sits here, with a browser.
    pub(crate) web: Option<Browser>,
}

/// How the web app is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Browser {
    /// In the person's own browser.
    Open,
    /// By the person, who is told the address.
    Tell,
}

pub(crate) async fn run(data: Option<PathBuf>, asked: Asked) -> anyhow::Result<ExitCode> {
    let workspace = paths::workspace(None)?;
    let flags = run::given(data, Vec::new());
    let settings = paths::settings(Some(&workspace), false, flags.clone())?;
    paths::keeps_its_own(&workspace, &settings)?;
    let away = asked.listen.as_deref().map(address).transpose()?;
    let password = match away {
        Some(_) => Some(password()?),
        None => None,
    };
    let listeners = listen(away, asked.port).await?;
    let at = listeners.first().context("there is nothing to listen on")?.local_addr()?;
    let folder = paths::runtime_dir(&paths::data_dir(&settings)?);
    let keys = Arc::new(Keys::new(password));
    let token = Token::write(&folder, at.port(), keys.token())?;
    let serving = Arc::new(ServeHost::open(workspace, flags).await?);
    let log = serving.log();
    let picks = serving.clone();
    let hall = SessionPool::new(log, Box::new(move |folder| picks.world(folder)));
    let mut signals = Signals::new()?;
    let server = serve(listeners, hall, serving, keys.clone());
    let url = format!("http://{}", SocketAddr::new(near(at.ip()), at.port()));
    // The code is behind the #: a browser sends that to nobody.
    let entry = asked.web.map(|_| format!("{url}/#code={}", keys.code()));
    match (asked.json, &entry) {
        (true, None) => output::line(&serde_json::json!({ "v": 1, "url": url, "token_file": token.0 }).to_string()),
        (true, Some(open)) => {
            output::line(&serde_json::json!({ "v": 1, "url": url, "token_file": token.0, "open": open }).to_string());
        }
        (false, None) => {
            output::line(&format!("serving on {url}"));
            output::line(&format!("programs: authorization: Bearer $(cat {})", token.0.display()));
        }
        (false, Some(_)) => output::line(&format!("Dunnock is at {url}")),
    }
    if let (Some(entry), Some(how)) = (&entry, asked.web) {
        show(entry, how, asked.json).await;
    }
    if let Some(ip) = away {
        let where_to = if ip.is_unspecified() { "any address of this machine".to_owned() } else { ip.to_string() };
        output::note(&format!(
            "whoever reaches {where_to} and knows the password can run commands as you, and what is said goes over the network as it is. \
             Where that is not your own, leave --listen out and use a tunnel: ssh -L {0}:127.0.0.1:{0}",
            at.port()
        ));
    }
    let again = async {
        match asked.web {
            Some(how) if !asked.json && in_front() => {
                each_enter(how, &format!("{url}/#code="), &keys).await;
            }
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = signals.next() => {}
        () = again => {}
    }
    drop(token); // before the port is free for somebody else, who writes another
    tokio::select! {
        () = server.close() => {}
        () = signals.next() => {} // told twice: what runs is killed with us
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the address, or says it.
async fn show(entry: &str, how: Browser, json: bool) {
    if !dunnock_serve::has_web_app() {
        output::note("this build brings no web app: the page says how to build it. The API is there");
    }
    let opened = match how {
        Browser::Tell => false,
        Browser::Open => {
            let address = entry.to_owned();
            tokio::task::spawn_blocking(move || webbrowser::open(&address).is_ok()).await.unwrap_or(false)
        }
    };
    if json {
        return;
    }
    match (opened, how) {
        (true, _) => {
            output::line(&format!("It opens in your browser. If it does not, open this within 30 seconds: {entry}"));
            output::line("Enter: open it again. Ctrl-C: end; what runs is stopped and kept.");
        }
        (false, how) => {
            if how == Browser::Open {
                output::note("no browser could be opened here");
            }
            output::line(&format!("Open this within 30 seconds, it counts once: {entry}"));
            output::line("Enter: another address. Ctrl-C: end; what runs is stopped and kept.");
        }
    }
}

/// Whether a terminal is there and listens to us: one that is read from behind stops the reader.
fn in_front() -> bool {
    #[cfg(unix)]
    let front = rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
    #[cfg(not(unix))]
    let front = true;
    front && std::io::IsTerminal::is_terminal(&std::io::stdin())
}

/// Each time the person presses Enter: another address, since one counts once.
async fn each_enter(how: Browser, before: &str, keys: &Keys) {
    let (send, mut lines) = tokio::sync::mpsc::channel(1);
    // It waits for a line until the program ends, and holds nothing up.
    std::thread::spawn(move || {
        std::io::stdin().lines().take_while(Result::is_ok).all(|_| send.blocking_send(()).is_ok());
    });
    while lines.recv().await.is_some() {
        show(&format!("{before}{}", keys.code()), how, false).await;
    }
    std::future::pending().await
}

/// An address that can be written down: "any" is none.
fn near(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        known => known,
    }
}

/// An address of this machine that others can reach.
fn address(text: &str) -> anyhow::Result<IpAddr> {
    let bad = || usage(format!("{text:?} is not an address; give one of this machine, as 192.168.0.7 or 0.0.0.0"));
    text.parse().map_err(|_| bad())
}

/// The password for other machines: from a variable or a file that only this user can read.
fn password() -> anyhow::Result<Password> {
    let file = paths::config_dir()?.join("password");
    let ways = format!(
        "to listen for other machines a password is needed: in DUNNOCK_PASSWORD, or in {} (chmod 600)",
        file.display()
    );
    let text = match paths::text_var("DUNNOCK_PASSWORD").filter(|text| !text.is_empty()) {
        Some(text) => text,
        None => {
            let Ok(text) = std::fs::read_to_string(&file) else { return Err(usage(ways)) };
            #[cfg(unix)]
            if std::os::unix::fs::MetadataExt::mode(&file.metadata()?) & 0o077 != 0 {
                return Err(usage(format!("others can read {0}; close it first: chmod 600 {0}", file.display())));
            }
            text
        }
    };
    Password::new(&text).map_err(|why| usage(format!("{why}; {ways}")))
}

/// Sockets: on the address given, or on this machine's own two.
async fn listen(away: Option<IpAddr>, port: Option<u16>) -> anyhow::Result<Vec<TcpListener>> {
    let ip = away.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let ports = match port {
        Some(port) => port..=port,
        None => PORT..=PORT + MORE,
    };
    let mut last = None;
    for port in ports {
        match TcpListener::bind(SocketAddr::new(ip, port)).await {
            Ok(first) => {
                let port = first.local_addr()?.port();
                let mut all = vec![first];
                // This machine's own addresses in any case; the newer kind where there is one.
                let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
                for other in own.into_iter().filter(|own| *own != ip && !ip.is_unspecified()) {
                    all.extend(TcpListener::bind(SocketAddr::new(other, port)).await.ok());
                }
                return Ok(all);
            }
            Err(error) => last = Some((port, error)),
        }
    }
    let (port, error) = last.context("there is no port")?;
    Err(usage(format!("port {port} of {ip} cannot be listened on: {error}. Choose another with --port")))
}

/// The file with the token, gone when the server is, unless another one's is there by then.
struct Token(PathBuf, String);

impl Token {
    fn write(folder: &Path, port: u16, token: &str) -> anyhow::Result<Self> {
        paths::make_private(folder)?;
        let path = folder.join(format!("serve-{port}.token"));
        let mut file = tempfile::Builder::new().prefix(".token").tempfile_in(folder)?; // 0600 from its first moment
        std::io::Write::write_all(&mut file, token.as_bytes())?;
        file.persist(&path).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self(path, token.to_owned()))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.0).is_ok_and(|token| token == self.1) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}
