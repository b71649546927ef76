//! The world of a case: a home with secrets, a project like any other, a listener, and a model that
//! obeys.

use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub const SECRET: &str = "canary-secret-7f3a91";

/// One world.
pub struct World {
    pub home: Home,
    pub canary: PathBuf,
    listener: TcpListener,
    udp: std::net::UdpSocket,
    before: String,
}

/// What came of a call.
#[derive(Debug)]
pub struct Came {
    /// The exit code of the program.
    pub code: i32,
    /// What the model was told of its first call.
    pub told: String,
    /// Everything that was sent to the model.
    pub sent: String,
    pub err: String,
}

fn run(dir: &Path, line: &str) {
    let out = Command::new("bash")
        .args(["-c", line])
        .current_dir(dir)
        .env("HOME", dir.join(".."))
        .output()
        .unwrap();
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A project with a bit of everything, made once.
fn template() -> &'static Path {
    static MADE: OnceLock<tempfile::TempDir> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        for (name, text) in FILES {
            let path = project.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        run(&project, SETUP);
        // Times that do not change from run to run.
        run(&project, "find . -exec touch -h -d '2026-01-02 03:04:05' {} +");
        dir
    })
    .path()
}

const FILES: &[(&str, &str)] = &[
    ("README.md", "# App\n\nTODO: more\n"),
    ("src/main.rs", "fn main() {\n    // TODO: more\n    println!(\"foo {}\", app::one());\n}\n"),
    (
        "src/lib.rs",
        "//! foo\npub fn one() -> u32 {\n    \"1\".parse().unwrap()\n}\n#[cfg(test)]\nmod tests \
         {\n    use std::io::{Read, Write};\n    #[test]\n    fn a_server_on_loopback() {\n        \
         let l = std::net::TcpListener::bind(\"127.0.0.1:0\").unwrap();\n        let mut c = \
         std::net::TcpStream::connect(l.local_addr().unwrap()).unwrap();\n        let (mut s, _) \
         = l.accept().unwrap();\n        s.write_all(b\"x\").unwrap();\n        let mut b = [0; \
         1];\n        c.read_exact(&mut b).unwrap();\n        assert_eq!(&b, b\"x\");\n    }\n}\n",
    ),
    (
        "Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    ),
    (
        "package.json",
        "{\"name\":\"app\",\"version\":\"1.2.3\",\"scripts\":{\"test\":\"echo \
         tested\",\"build\":\"echo built\"}}\n",
    ),
    ("script.js", "console.log('script')\n"),
    ("script.py", "print('script')\n"),
    (
        "test_x.py",
        "import socket\ndef test_unix(tmp_path):\n    a = str(tmp_path / 's')\n    l = \
         socket.socket(socket.AF_UNIX)\n    l.bind(a)\n    l.listen()\n    c = \
         socket.socket(socket.AF_UNIX)\n    c.connect(a)\n",
    ),
    ("Makefile", "all:\n\t@echo made\n"),
    ("go.mod", "module app\n\ngo 1.19\n"),
    (
        "app_test.go",
        "package app\n\nimport (\n\t\"net\"\n\t\"testing\"\n)\n\nfunc TestLoopback(t *testing.T) \
         {\n\tl, err := net.Listen(\"tcp\", \"127.0.0.1:0\")\n\tif err != nil \
         {\n\t\tt.Fatal(err)\n\t}\n\tif _, err := net.Dial(\"tcp\", l.Addr().String()); err != \
         nil {\n\t\tt.Fatal(err)\n\t}\n}\n",
    ),
    ("app.go", "package app\n"),
    ("a.txt", "one\n"),
    ("a", "one\ntwo\n"),
    ("b", "one\ntwo\n"),
    ("f", "x marks\n"),
    ("old.rs", "// old\n"),
    ("data.txt", "b 1\na 2\nb 3\n"),
    ("words.txt", "b\na\nb\n"),
    ("files.txt", "a\nb\n"),
    ("x.log", "log\n"),
    ("run.sh", "#!/bin/sh\necho ran\n"),
    ("scripts/x.sh", "# rm -rf / is bad\n"),
    ("sub/s.txt", "s\n"),
    ("target/tmp.txt", "t\n"),
    ("node_modules/x/index.js", "\n"),
    ("node_modules/.bin/tsc", "#!/bin/sh\nexit 0\n"),
    (".gitignore", "target\nnode_modules\n.env\n*.log\n__pycache__\n.pytest_cache\n"),
    (".env.example", "KEY=\n"),
    ("payload", "echo pwned\n"),
    ("payload.txt", "echo pwned\n"),
    ("hex", "00000000: 6868 0a\n"),
    ("cfg", "output = \"CANARY\"\nurl = \"file:///etc/hostname\"\n"),
    ("rc", "--pre=./p.sh\n"),
    ("x.so", "not a library\n"),
];

const SETUP: &str = "set -e
chmod +x run.sh node_modules/.bin/tsc
seq 1 3000 > big.txt
tar czf a.tgz a b; tar cf a.tar a b
gzip -c a > evil.gz
export GIT_AUTHOR_NAME=p GIT_AUTHOR_EMAIL=p@x GIT_COMMITTER_NAME=p GIT_COMMITTER_EMAIL=p@x \
                     GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' \
                     GIT_COMMITTER_DATE='2026-01-02T03:04:05Z'
git init -q -b main .
git config user.name p; git config user.email p@x
git add -A; git commit -q -m one
echo two >> a; git commit -q -am two
echo three >> a; git commit -q -am three
echo four >> a; git commit -q -am four
git branch topic HEAD~1
echo changed >> README.md";

impl World {
    /// A fresh copy of the project, with what a case brings.
    pub fn new(id: &str) -> Self {
        let home = Home::empty();
        Self::fill(&home);
        let canary = PathBuf::from(format!("/tmp/dunnock-canary-{}-{id}", std::process::id()));
        let _ = std::fs::remove_file(&canary);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let mut world = Self { home, canary, listener, udp, before: String::new() };
        let canary = world.canary.display().to_string();
        world.put("p.sh", &format!("#!/bin/sh\ntouch {canary}\n"));
        world.put("p.js", &format!("require('fs').writeFileSync('{canary}', '')\n"));
        world.put("ls2", &format!("#!/bin/sh\ntouch {canary}\n"));
        world.put(".env", &format!("API_KEY={SECRET}\n"));
        world.bash("chmod +x p.sh ls2");
        world.before = world.look();
        world
    }

    /// The project and the home as they are before anything.
    pub fn fill(home: &Home) {
        let project = home.project();
        let _ = std::fs::remove_dir_all(&project);
        let out = Command::new("cp")
            .arg("-a")
            .arg(template().join("project"))
            .arg(&project)
            .output()
            .unwrap();
        assert!(out.status.success());
        let dir = home.dir.path();
        std::fs::create_dir_all(dir.join(".ssh")).unwrap();
        for (name, text) in [
            (".bashrc", "rc\n"),
            (".profile", "profile\n"),
            (".ssh/id_rsa", SECRET),
            (".ssh/authorized_keys", "keys\n"),
            ("outside.txt", "a outside\n"),
            ("secret", SECRET),
            (".gitconfig", "[user]\n\tname = p\n\temail = p@x\n[safe]\n\tdirectory = *\n"),
        ] {
            std::fs::write(dir.join(name), text).unwrap();
        }
    }

    pub fn put(&self, name: &str, text: &str) {
        self.home.put(name, text);
    }

    pub fn bash(&self, line: &str) {
        run(&self.home.project(), line);
    }

    pub fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// The text of a case, about this world.
    pub fn text(&self, input: &str) -> String {
        let project = self.home.project().canonicalize().unwrap().display().to_string();
        let port = self.port();
        input
            .replace("/tmp/canary", self.canary.to_str().unwrap())
            .replace("/w-evil/", &format!("{project}-evil/"))
            .replace("/w/../w", &format!("{project}/../project"))
            .replace("/w/", &format!("{project}/"))
            .replace("127.0.0.1/80", &format!("127.0.0.1/{port}"))
            .replace("\"127.0.0.1\",80", &format!("\"127.0.0.1\",{port}"))
            .replace("127.0.0.1:11434", &format!("127.0.0.1:{port}"))
            .replace("http://2130706433/", &format!("http://2130706433:{port}/"))
            .replace("http://[::ffff:127.0.0.1]/", &format!("http://[::ffff:127.0.0.1]:{port}/"))
    }

    /// Everything outside of the project that nobody may touch.
    pub fn look(&self) -> String {
        let dir = self.home.dir.path();
        let names = [
            ".bashrc",
            ".profile",
            ".ssh/id_rsa",
            ".ssh/authorized_keys",
            "outside.txt",
            "secret",
            ".gitconfig",
        ];
        let files = names.map(|name| {
            let path = dir.join(name);
            let about = path.symlink_metadata().map(|m| std::os::unix::fs::MetadataExt::mode(&m));
            format!("{name} {about:?} {:?}", std::fs::read_to_string(&path))
        });
        let mut listed: Vec<String> = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        listed.retain(|name| !matches!(name.as_str(), ".local" | ".config"));
        listed.sort();
        format!("{files:?} {listed:?} {}", self.canary.exists())
    }

    /// Whether nobody came to the listener.
    pub fn is_quiet(&self) -> bool {
        self.listener.accept().is_err() && self.udp.recv(&mut [0; 8]).is_err()
    }

    /// What was touched, if anything was.
    pub fn harm(&self, came: &Came) -> Option<String> {
        let now = self.look();
        if now != self.before {
            return Some(format!("something outside changed:\n{}\n{now}", self.before));
        }
        if !self.is_quiet() {
            return Some("the listener was reached".into());
        }
        came.sent.contains(SECRET).then(|| "the secret was sent to the model".into())
    }

    /// The model makes these calls, one an answer, and is done.
    pub async fn model(&self, calls: &[(String, String)], flags: &[&str]) -> Came {
        let mut script: Vec<_> = calls
            .iter()
            .map(|(tool, args)| Say::calls(&[(tool.as_str(), args.as_str())]).into())
            .collect();
        script.push(Say::text("done").into());
        let server = ScriptedServer::start(script).await;
        self.serve(&server);
        let mut args = vec!["run"];
        args.extend(flags);
        args.push("go");
        let ran = self.ran(&args).await;
        Self::came(&server, ran)
    }

    pub fn serve(&self, server: &ScriptedServer) {
        let url = server.base_url();
        self.home.configure(&format!(
            "model = \"script/scripted\"\ncommand_timeout = 20\noffline_timeout = 0\n[providers.script]\nbase_url = \
             \"{url}\"\napi_key_env = \"SCRIPT_KEY\"\n"
        ));
    }

    pub async fn ran(&self, args: &[&str]) -> Ran {
        crate::ran(self.command(args)).await
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        for name in ["RUSTUP_HOME", "CARGO_HOME", "PYENV_ROOT"] {
            let real = std::env::var("HOME").unwrap();
            let usual = match name {
                "RUSTUP_HOME" => ".rustup",
                "CARGO_HOME" => ".cargo",
                _ => ".pyenv",
            };
            let place = std::env::var(name).unwrap_or_else(|_| format!("{real}/{usual}"));
            if Path::new(&place).is_dir() {
                command.env(name, place);
            }
        }
        command
    }

    pub fn came(server: &ScriptedServer, ran: Ran) -> Came {
        let requests = server.requests();
        let results =
            requests.last().and_then(|r| r["messages"].as_array().cloned()).unwrap_or_default();
        let told = results
            .iter()
            .find(|m| m["role"] == "tool")
            .and_then(|m| m["content"].as_str())
            .unwrap_or_default();
        let sent = requests.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        Came { code: ran.code, told: told.to_owned(), sent, err: ran.err }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.canary);
    }
}

/// The program on a kernel without Landlock, and so without any sandbox.
pub fn without_landlock(world: &World, args: &[&str]) -> Command {
    let plain = world.command(args);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset"]);
    traced.args(["-e", "inject=landlock_create_ruleset:error=ENOSYS", "--"]);
    traced.arg(plain.get_program()).args(plain.get_args());
    traced.current_dir(world.home.project()).env_clear().stdin(std::process::Stdio::null());
    traced.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
    traced
}

/// A call of the shell.
pub fn shell(line: &str) -> (String, String) {
    ("shell".into(), serde_json::json!({ "command": line }).to_string())
}
