//! UX-B3: an approved command can use the person's own login, and no other command can. The remotes
//! are a real sshd and a real HTTP server on this machine.

use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use serde_json::json;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that ends with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn bash(home: &Home, line: &str) -> String {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(home.project()).env_clear();
    command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", home.dir.path());
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{line}: {out}{err}");
    out.into_owned()
}

/// Starts a server and waits until it accepts connections.
fn start(mut command: Command, port: u16) -> Service {
    let service = Service(command.stdin(Stdio::null()).spawn().unwrap());
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "the server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    service
}

/// A project with a remote that an SSH key opens.
fn with_ssh(home: &Home) -> Service {
    let port = free_port();
    let dir = home.dir.path().canonicalize().unwrap();
    let dir = dir.display();
    bash(
        home,
        &format!(
            "set -e; mkdir -p {dir}/.ssh {dir}/sshd; chmod 700 {dir}/.ssh
            ssh-keygen -q -t ed25519 -N '' -f {dir}/sshd/host; ssh-keygen -q -t ed25519 -N '' -f \
             {dir}/.ssh/id_ed25519
            cp {dir}/.ssh/id_ed25519.pub {dir}/sshd/authorized
            printf 'HostKey {dir}/sshd/host\\nAuthorizedKeysFile {dir}/sshd/authorized\\nStrictModes \
             no\\nUsePAM no\\nPasswordAuthentication no\\nPermitRootLogin prohibit-password\\nPidFile \
             none\\nListenAddress 127.0.0.1\\nPort {port}\\n' > {dir}/sshd/config
            printf '[user]\\n\\tname = p\\n\\temail = p@x\\n' > {dir}/.gitconfig
            git init -q --bare -b main {dir}/remote.git; git init -q -b main; echo 1 > a; git add a; \
             git commit -qm one
            git remote add origin ssh://$(id -un)@127.0.0.1:{port}{dir}/remote.git
            # SSH takes the home folder from the user database.
            git config core.sshCommand 'ssh -F /dev/null -o StrictHostKeyChecking=no -o \
             UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i {dir}/.ssh/id_ed25519'
            [ $(id -u) != 0 ] || mkdir -p /run/sshd"
        ),
    );
    let mut sshd = Command::new("/usr/sbin/sshd");
    sshd.args(["-D", "-e", "-f"]).arg(home.dir.path().join("sshd/config")).stderr(Stdio::null());
    start(sshd, port)
}

/// The model runs one command; the person says yes if asked. Returns the question and the result.
async fn approved(home: &Home, env: &[(&str, &Path)], line: &str) -> (Ran, Ran, String) {
    let server = ScriptedServer::start(vec![
        Say::calls(&[("shell", &json!({ "command": line }).to_string())]).into(),
        Say::text("done").into(),
    ])
    .await;
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{}\"\napi_key_env = \
         \"SCRIPT_KEY\"\n",
        server.base_url()
    ));
    let mut run = home.command(&["run", "go"]);
    run.envs(env.iter().copied());
    let asked = crate::ran(run).await;
    assert_eq!(asked.code, 3, "{}", asked.err);
    let mut yes = home.command(&["approve", &home.newest().await, "--go"]);
    yes.envs(env.iter().copied());
    let done = crate::ran(yes).await;
    assert_eq!(done.code, 0, "{}", done.err);
    let requests = server.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages.iter().rfind(|message| message["role"] == "tool").unwrap();
    (asked, done, result["content"].as_str().unwrap().to_owned())
}

fn pushed(home: &Home) -> bool {
    let head = bash(home, "git rev-parse HEAD");
    let remote = bash(home, "git --git-dir=../remote.git rev-parse -q --verify main || true");
    head == remote
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_push_uses_the_ssh_key_or_the_agent() {
    for agent in [false, true] {
        for level in ["A", "B", "C"] {
            let home = Home::empty();
            let _sshd = with_ssh(&home);
            let socket = home.dir.path().join("agent");
            let mut env: Vec<(&str, &Path)> = vec![("DUNNOCK_SANDBOX_LEVEL", Path::new(level))];
            let mut agents = Vec::new();
            // Below level A, commands cannot use sockets of other programs.
            let used = agent && level == "A";
            if agent {
                let mut command = Command::new("ssh-agent");
                command.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null());
                agents.push(Service(command.spawn().unwrap()));
                let add = format!(
                    "for i in $(seq 200); do [ -S {0} ] && break; sleep 0.05; done; \
                     SSH_AUTH_SOCK={0} ssh-add -q ~/.ssh/id_ed25519",
                    socket.display()
                );
                bash(&home, &add);
                if used {
                    let plain = "git config core.sshCommand 'ssh -F /dev/null -o \
                                 StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'";
                    bash(&home, &format!("mv ~/.ssh/id_ed25519 ../moved; {plain}"));
                }
                env.push(("SSH_AUTH_SOCK", &socket));
            }
            let (asked, _, result) = approved(&home, &env, "git push -q origin main").await;
            assert!(asked.err.contains("Let this command use your login?"), "{}", asked.err);
            let what = if used { "can use your SSH agent" } else { "can use ~/.ssh/id_ed25519" };
            assert!(asked.err.contains(what), "{}", asked.err);
            assert!(pushed(&home), "agent {agent}, {level}: {result}");
            println!("agent {agent}, level {level}: pushed");
        }
    }
}

/// Commands beside it, and commands that nobody approved with a login, cannot use it.
#[tokio::test(flavor = "multi_thread")]
async fn other_commands_do_not_get_the_login() {
    let home = Home::empty();
    let _sshd = with_ssh(&home);
    let key = home.dir.path().canonicalize().unwrap().join(".ssh/id_ed25519");
    let hidden =
        format!("cat {}; echo $SSH_AUTH_SOCK; git push -q origin main; true", key.display());
    for line in ["git push -q origin main && true", &hidden] {
        let (asked, _, result) = approved(&home, &[], line).await;
        assert!(!asked.err.contains("login"), "{}", asked.err);
        assert!(!result.contains("PRIVATE KEY") && !pushed(&home), "{line}: {result}");
    }
    // Nobody is asked in the mode `all`, so nobody agreed to the login.
    let server = ScriptedServer::start(vec![
        Say::calls(&[("shell", r#"{"command":"git push -q origin main"}"#)]).into(),
        Say::text("done").into(),
    ])
    .await;
    let url = server.base_url();
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{url}\"\napi_key_env = \
         \"SCRIPT_KEY\"\n"
    ));
    let ran = home.run(&["run", "go", "--approve", "all"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!pushed(&home), "{}", ran.err);
}

const HTTP: &str = r#"
import base64, functools, http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(b"me:canary").decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        super().do_GET()
    def log_message(self, *args): pass
handler = functools.partial(Handler, directory=sys.argv[2])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_fetch_uses_the_credential_helper() {
    let home = Home::empty();
    let port = free_port();
    bash(
        &home,
        &format!(
            "set -e; printf '[user]\\n\\tname = p\\n\\temail = p@x\\n[credential]\\n\\thelper = store\\n' > \
             ~/.gitconfig; echo http://me:canary@127.0.0.1%3a{port} > ~/.git-credentials; git init -q \
             -b main; echo 1 > a; git add a; git commit -qm one; git clone -q --bare . \
             ../served/remote.git; git --git-dir=../served/remote.git update-server-info; git remote \
             add origin http://127.0.0.1:{port}/remote.git"
        ),
    );
    let mut server = Command::new("python3");
    server.args(["-c", HTTP, &port.to_string()]).arg(home.dir.path().join("served"));
    let _http = start(server, port);
    let (asked, _, result) = approved(&home, &[], "git fetch -q origin").await;
    assert!(asked.err.contains("can use your git credential helper (store)"), "{}", asked.err);
    assert_eq!(
        bash(&home, "git rev-parse origin/main"),
        bash(&home, "git rev-parse HEAD"),
        "{result}"
    );
    let (asked, _, result) =
        approved(&home, &[], "git fetch -q origin && cat ~/.git-credentials").await;
    assert!(!asked.err.contains("login"), "{}", asked.err);
    assert!(!result.contains("canary"), "{result}");
}

/// `~` was taken for a name, and a folder that does not exist was accepted without a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_sandbox_read_is_an_error_and_a_tilde_works() {
    let home = Home::empty();
    std::fs::create_dir(home.dir.path().join("notes")).unwrap();
    std::fs::write(home.dir.path().join("notes/a"), "from the notes\n").unwrap();
    home.configure("sandbox_read = [\"~/notes\"]\n");
    let ran = home
        .run(&["sandbox", "run", "--", "cat", &format!("{}/notes/a", home.dir.path().display())])
        .await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "from the notes\n"), "{}", ran.err);
    for (wrong, why) in [
        ("~/absent", "sandbox_read: ~/absent does not exist or cannot be read"),
        ("notes", "sandbox_read: notes is not an absolute path"),
    ] {
        home.configure(&format!("sandbox_read = [\"{wrong}\"]\n"));
        for args in [["run", "go"].as_slice(), &["doctor"]] {
            let ran = home.run(args).await;
            assert_ne!(ran.code, 0, "{args:?}");
            assert!(format!("{}{}", ran.out, ran.err).contains(why), "{args:?}: {}", ran.err);
        }
    }
}
