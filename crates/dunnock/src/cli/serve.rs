//! `dunnock serve` and `dunnock web`: serve the sessions to browsers, scripts and other programs.

use crate::config::{load, paths};
use crate::host::serve_host::ServeHost;
use crate::own_programs::OwnPrograms;
use crate::signals::Signals;
use crate::view::exit::usage;
use crate::view::output;
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
/// How many ports after it are tried if no port was given.
const MORE: u16 = 20;

/// Command-line options.
pub(crate) struct ServeOptions {
    pub(crate) port: Option<u16>,
    pub(crate) listen: Option<String>,
    pub(crate) json: bool,
    /// For `dunnock web`: how to open the browser.
    pub(crate) web: Option<Browser>,
}

/// How the web app is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Browser {
    /// Open it in the user's browser.
    Open,
    /// Print the address for the user to open.
    Tell,
}

pub(crate) async fn run(data: Option<PathBuf>, asked: ServeOptions) -> anyhow::Result<ExitCode> {
    let workspace = paths::workspace(None)?;
    let flags = load::given(data, Vec::new());
    let settings = load::settings(Some(&workspace), false, flags.clone())?;
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
    let programs = OwnPrograms::new(&settings, &workspace);
    let serving = Arc::new(ServeHost::open(workspace, flags).await?);
    let log = serving.store();
    let picks = serving.clone();
    let pool = SessionPool::new(log, Box::new(move |folder| picks.ports(folder)));
    let mut signals = Signals::new()?;
    let server = serve(listeners, pool, serving, keys.clone());
    let url = format!("http://{}", SocketAddr::new(near(at.ip()), at.port()));
    // The code is in the fragment, which a browser never sends to a server.
    let entry = asked.web.map(|_| format!("{url}/#code={}", keys.code()));
    match (asked.json, &entry) {
        (true, None) => output::line(
            &serde_json::json!({ "v": 1, "url": url, "token_file": token.0 }).to_string(),
        ),
        (true, Some(open)) => {
            output::line(
                &serde_json::json!({ "v": 1, "url": url, "token_file": token.0, "open": open })
                    .to_string(),
            );
        }
        (false, None) => {
            output::line(&format!("serving on {url}"));
            output::line(&format!("programs: authorization: Bearer $(cat {})", token.0.display()));
        }
        (false, Some(_)) => output::line(&format!("Dunnock is running at {url}")),
    }
    if let (Some(entry), Some(how)) = (&entry, asked.web) {
        show(&programs, entry, how, asked.json).await;
    }
    if let Some(ip) = away {
        let where_to = if ip.is_unspecified() {
            "any address of this machine".to_owned()
        } else {
            ip.to_string()
        };
        output::note(&format!(
            "anyone who can reach {where_to} and knows the password can run commands as you, and \
             the traffic is not encrypted. On a network that is not your own, omit --listen and \
             use a tunnel: ssh -L {0}:127.0.0.1:{0}",
            at.port()
        ));
    }
    let again = async {
        match asked.web {
            Some(how) if !asked.json && in_front() => {
                each_enter(&programs, how, &format!("{url}/#code="), &keys).await;
            }
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = signals.next() => {}
        () = again => {}
    }
    drop(token); // before another server can take the port and write its own token
    tokio::select! {
        () = server.close() => {}
        () = signals.next() => {} // second signal: running work is killed when we exit
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the address in a browser, or prints it.
async fn show(programs: &OwnPrograms, entry: &str, how: Browser, json: bool) {
    if !dunnock_serve::has_web_app() {
        output::note("this build has no web app; the page says how to build it. The API works");
    }
    let opened = match how {
        Browser::Tell => false,
        Browser::Open => {
            let (address, programs) = (entry.to_owned(), programs.clone());
            tokio::task::spawn_blocking(move || programs.browse(&address)).await.unwrap_or(false)
        }
    };
    if json {
        return;
    }
    match (opened, how) {
        (true, _) => {
            output::line(&format!(
                "Opening your browser. If that fails, open this within 30 seconds: {entry}"
            ));
            output::line("Enter: open it again. Ctrl-C: quit; running work is stopped and saved.");
        }
        (false, how) => {
            if how == Browser::Open {
                output::note("could not open a browser here");
            }
            output::line(&format!("Open this within 30 seconds; it works once: {entry}"));
            output::line("Enter: new link. Ctrl-C: quit; running work is stopped and saved.");
        }
    }
}

/// Whether we are in the foreground of a terminal: a background process that reads from it is
/// stopped.
fn in_front() -> bool {
    #[cfg(unix)]
    let front = rustix::termios::tcgetpgrp(std::io::stdin())
        .is_ok_and(|group| group == rustix::process::getpgrp());
    #[cfg(not(unix))]
    let front = true;
    front && std::io::IsTerminal::is_terminal(&std::io::stdin())
}

/// Shows a new link each time the user presses Enter, because each link works only once.
async fn each_enter(programs: &OwnPrograms, how: Browser, before: &str, keys: &Keys) {
    let (send, mut lines) = tokio::sync::mpsc::channel(1);
    // This thread waits for input until the program exits, without delaying the exit.
    std::thread::spawn(move || {
        std::io::stdin().lines().take_while(Result::is_ok).all(|_| send.blocking_send(()).is_ok());
    });
    while lines.recv().await.is_some() {
        show(programs, &format!("{before}{}", keys.code()), how, false).await;
    }
    std::future::pending().await
}

/// An address to connect to: loopback instead of "any address".
fn near(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        known => known,
    }
}

/// Parses the address for `--listen`.
fn address(text: &str) -> anyhow::Result<IpAddr> {
    let bad = || {
        usage(format!(
            "{text:?} is not an address; use one of this machine, like 192.168.0.7 or 0.0.0.0"
        ))
    };
    text.parse().map_err(|_| bad())
}

/// The password for other machines: from a variable or a file that only this user can read.
fn password() -> anyhow::Result<Password> {
    let file = paths::config_dir()?.join("password");
    let ways = format!(
        "a password is needed to listen for other machines: set DUNNOCK_PASSWORD, or write it to \
         {} (chmod 600)",
        file.display()
    );
    let text = match paths::text_var("DUNNOCK_PASSWORD").filter(|text| !text.is_empty()) {
        Some(text) => text,
        None => {
            let Ok(text) = std::fs::read_to_string(&file) else { return Err(usage(ways)) };
            #[cfg(unix)]
            if std::os::unix::fs::MetadataExt::mode(&file.metadata()?) & 0o077 != 0 {
                return Err(usage(format!(
                    "others can read {0}; make it private: chmod 600 {0}",
                    file.display()
                )));
            }
            text
        }
    };
    Password::new(&text).map_err(|why| usage(format!("{why}; {ways}")))
}

/// Listens on the given address and on both loopback addresses.
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
                // Always listen on loopback too; on IPv6 if it is available.
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
    Err(usage(format!("cannot listen on port {port} of {ip}: {error}. Choose another with --port")))
}

/// The token file. It is removed when the server stops, unless another server has replaced it by
/// then.
struct Token(PathBuf, String);

impl Token {
    fn write(folder: &Path, port: u16, token: &str) -> anyhow::Result<Self> {
        dunnock_private::create_folder(folder)?;
        let path = folder.join(format!("serve-{port}.token"));
        let mut file = tempfile::Builder::new().prefix(".token").tempfile_in(folder)?; // created with mode 0600
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
