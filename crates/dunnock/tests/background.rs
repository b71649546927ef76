//! Processes that a command leaves running: they belong to the session and end with it, unless the
//! person chose to keep them.

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Rules, ScriptedServer, Served};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Twelve kinds of service, each started in another way, and how it is called.
fn services(port: u16) -> Vec<(&'static str, &'static str, Value)> {
    let shell = |line: String| json!({ "command": line });
    let python = format!("python3 -m http.server {port} --bind 127.0.0.1");
    let daemon = format!(
        "python3 -c 'import os, http.server as h\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    \
         h.HTTPServer((\"127.0.0.1\", {port}), h.SimpleHTTPRequestHandler).serve_forever()\n'"
    );
    let node = format!(
        "node -e 'require(\"http\").createServer((q, r) => r.end(\"hi\")).listen({port}, \"127.0.0.1\")' &"
    );
    let ssh = format!(
        "mkdir -p /run/sshd; ssh-keygen -q -t ed25519 -N \"\" -f key && $(command -v sshd || echo \
         /usr/sbin/sshd) -p {port} -h \"$PWD/key\" -o ListenAddress=127.0.0.1 -o PidFile=none"
    );
    vec![
        ("in the background", "shell", shell(format!("{python} &"))),
        ("with nohup", "shell", shell(format!("nohup {python} >log 2>&1 &"))),
        ("in a session of its own", "shell", shell(format!("setsid {python} >log 2>&1 &"))),
        ("with an empty environment", "shell", shell(format!("env -i {python} >log 2>&1 &"))),
        ("a daemon with two forks", "shell", shell(daemon)),
        ("busybox as a daemon", "shell", shell(format!("busybox httpd -p 127.0.0.1:{port}"))),
        ("node", "shell", shell(node)),
        ("sshd", "shell", shell(ssh)),
        ("two servers behind each other", "shell", shell(format!("(sleep 600 | {python}) &"))),
        ("a process", "process_start", shell(python.clone())),
        (
            "a process with a terminal",
            "process_start",
            json!({"command": python, "terminal": true}),
        ),
        ("a slow command", "shell", shell(python)),
    ]
}

/// A port that nothing uses, below those that the system gives to other tests.
fn free_port() -> u16 {
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    let random = || 12_000 + u16::try_from(now() / 7 % 20_000).unwrap();
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(random).find(free).unwrap()
}

fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Asks for a page that is not there, which the server reports on its standard error.
fn get(port: u16) {
    use std::io::{Read as _, Write as _};
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET /none HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.0 404"), "{answer:?}");
}

fn becomes(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What is in the folder of kept processes.
fn in_folder(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.data().join("processes")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Processes that name this port.
fn naming(port: u16) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&port.to_string())).collect()
}

/// A model that makes one call and ends; or, if it hangs, never answers again.
async fn model(tool: &'static str, args: &Value, hangs: bool) -> (Home, ScriptedServer) {
    let (asked, args) = (AtomicUsize::new(0), args.to_string());
    let brain = move |_, _: &Value| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Served::from(Say::calls(&[(tool, &args)])),
        _ if hangs => {
            Served::from(Say::calls(&[("shell", r#"{"command":"sleep 600","timeout":600}"#)]))
        }
        _ => Served::from(Say::calls(&[("final_output", r#"{"answer":"serving"}"#)])),
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::with(&server);
    home.set("command_timeout = 2\nsandbox = \"off\"\napprove = \"all\"\n");
    (home, server)
}

/// Stops what a failed test has kept.
struct StopsKept<'a>(&'a Home);

impl Drop for StopsKept<'_> {
    fn drop(&mut self) {
        let _ = self.0.command(&["processes", "stop", "--all"]).output();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_kinds_of_service_answer_after_the_run_where_they_are_kept() {
    let mut kinds = 0;
    for at in 0..services(0).len() {
        let port = free_port();
        let (name, tool, args) = services(port).swap_remove(at);
        let (home, server) = model(tool, &args, false).await;
        let _stops = StopsKept(&home);
        let ran = home.run(&["run", "--background", "keep", "serve"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "serving\n"), "{name}: {}", ran.err);
        let said = server.requests()[1].to_string();
        // On a busy machine, a server may open its port after the call has returned.
        if tool == "shell" && name != "a slow command" {
            let result = said.split("\"role\":\"tool\"").next().unwrap_or_default();
            let result = result.rsplit("[process 1").next().unwrap_or_default();
            assert!(result.contains("continues after the session"), "{name}: {result}");
        }
        becomes(&format!("{name} answers"), || answers(port));
        if name == "in the background" {
            // Nobody reads what it writes, and that does not stop it: more than a pipe holds.
            (0..1_500).for_each(|_| get(port));
        }
        let listed = home.run(&["processes", "--json"]).await;
        assert!(!listed.out.is_empty(), "{name}: {listed:?}, {:?}", in_folder(&home));
        let listed: Value = serde_json::from_str(listed.out.trim()).unwrap();
        let ports = listed["programs"].to_string();
        assert!(ports.contains(&port.to_string()), "{name}: {listed}");
        let session = listed["session"].as_str().unwrap();
        assert!(session.starts_with(&home.newest().await), "{name}: {session}");
        let resumed = home.run(&["resume", "--prompt", "again"]).await;
        assert!(resumed.err.contains("still running: "), "{name}: {}", resumed.err);
        let stopped = home.run(&["processes", "stop", "--all"]).await;
        assert_eq!(stopped.code, 0, "{name}: {}", stopped.err);
        becomes(&format!("{name} is gone"), || !answers(port) && naming(port).is_empty());
        assert_eq!(home.run(&["processes"]).await.out, "", "{name}");
        let folder = home.data().join("processes");
        becomes("its socket is gone", || std::fs::read_dir(&folder).unwrap().count() == 0);
        println!("{name}: kept, listed, stopped");
        kinds += 1;
    }
    assert_eq!(kinds, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_where_it_was_not_to_be_kept() {
    for at in 0..services(0).len() {
        // After the end of the run.
        let port = free_port();
        let (name, tool, args) = services(port).swap_remove(at);
        let (home, server) = model(tool, &args, false).await;
        let ran = home.run(&["run", "serve"]).await;
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        let said = server.requests()[1].to_string();
        assert!(said.contains("process 1"), "{name}: {said}");
        becomes(&format!("{name} ends with the run"), || naming(port).is_empty());
        assert_eq!(home.run(&["processes"]).await.out, "", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_after_a_kill_of_the_program_or_the_launcher() {
    for at in 0..services(0).len() {
        for victim in ["program", "launcher"] {
            let port = free_port();
            let (name, tool, args) = services(port).swap_remove(at);
            let (home, server) = model(tool, &args, true).await;
            let mut run = home.start(&["run", "serve"]);
            becomes(&format!("{name} answers"), || answers(port));
            // Its call has ended: Dunnock has listed what is left of it.
            becomes("the next request", || server.requests().len() > 1);
            let launcher = children(run.id()).into_iter().next().unwrap();
            let pid = if victim == "program" { run.id() } else { launcher };
            kill(pid);
            becomes(&format!("{name} is gone after a kill of the {victim}"), || {
                naming(port).is_empty()
            });
            let _ = run.kill();
            let _ = run.wait();
        }
    }
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split(' ').filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// In a sandbox, a server is reachable by the next commands of the session, and is gone after it; a
/// kept one needs network access to be of use.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_the_sandbox_serves_the_next_calls() {
    let port = free_port();
    let calls = [
        json!({"command": format!("python3 -m http.server {port} --bind 127.0.0.1 >log 2>&1 &")}),
        json!({"command": format!(
            "echo fine > page.txt; for n in $(seq 100); do curl -s http://127.0.0.1:{port}/page.txt && \
             break; sleep 0.1; done"
        )}),
    ];
    let asked = AtomicUsize::new(0);
    let brain = move |_, _: &Value| match calls.get(asked.fetch_add(1, Ordering::SeqCst)) {
        Some(args) => Served::from(Say::calls(&[("shell", &args.to_string())])),
        None => Served::from(Say::calls(&[("final_output", r#"{"answer":"ok"}"#)])),
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::with(&server);
    let ran = home.run(&["run", "serve"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let requests = server.requests();
    let first = requests[1].to_string();
    // On a busy machine, the server may open its port after the call has returned.
    assert!(first.contains("it ends with the session]"), "{first}");
    let second = requests[2].to_string();
    assert!(second.contains("fine"), "{second}");
    assert!(!answers(port), "it is not reachable from outside");
    becomes("nothing is left", || naming(port).is_empty());
}

/// Ways to write a file again and again, in Python; `m` is a mapping of `a.txt`.
fn writers() -> Vec<(&'static str, &'static str)> {
    vec![
        ("appends", "open('a.txt', 'a').write('x')"),
        ("writes anew", "open('a.txt', 'w').write(str(n))"),
        ("writes in place", "f = open('a.txt', 'r+'); f.write(str(n)); f.close()"),
        ("replaces", "open('t', 'w').write(str(n)); os.rename('t', 'a.txt')"),
        ("cuts off", "os.truncate('a.txt', n % 3)"),
        ("removes", "os.remove('a.txt')"),
        ("writes through a mapping", "m[0] = 65 + n % 26"),
        ("makes new files", "open('n%d' % (n % 7), 'w').write(str(n))"),
        ("makes folders", "os.makedirs('d%d' % (n % 5), exist_ok=True)"),
        ("changes another file", "open('b.txt', 'w').write(str(n))"),
    ]
}

/// Undo while a process of an earlier prompt writes: each of 50 ends with the files as they were,
/// or names the process.
#[tokio::test(flavor = "multi_thread")]
async fn undo_with_live_writers_is_exact_or_reported() {
    let (mut exact, mut reported) = (0, 0);
    for (name, line) in writers() {
        let script = format!(
            "import os, time, mmap\nf = open('a.txt', 'r+')\nm = mmap.mmap(f.fileno(), 3)\n\
             for n in range(100000):\n  try:\n    {line}\n  except OSError: pass\n  \
             time.sleep(0.01)\n"
        );
        let asked = AtomicUsize::new(0);
        let brain = move |_, _: &Value| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Served::from(Say::calls(&[("shell", r#"{"command":"python3 ../writer.py &"}"#)])),
            n if n % 2 == 0 => {
                let args = json!({ "command": format!("echo {n} > c.txt") });
                Served::from(Say::calls(&[("shell", &args.to_string())]))
            }
            _ => Served::from(Say::calls(&[("final_output", r#"{"answer":"ok"}"#)])),
        };
        let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
        let server = ScriptedServer::with(vec![], rules).await;
        let home = Home::with(&server);
        home.set("sandbox = \"off\"\napprove = \"all\"\n");
        home.put("a.txt", "one");
        home.put("c.txt", "0");
        std::fs::write(home.project().parent().unwrap().join("writer.py"), script).unwrap();
        let ran = home.run(&["run", "--background", "keep", "begin"]).await;
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        for round in 0..5 {
            let ran = home.run(&["resume", "--prompt", "continue"]).await;
            assert_eq!(ran.code, 0, "{name}: {}", ran.err);
            assert_ne!(home.read("c.txt"), "0", "{name}");
            let before = files(&home);
            let undone = home.run(&["undo"]).await;
            let said = format!("{}{}", undone.out, undone.err);
            assert_eq!(home.read("c.txt"), "0", "{name} {round}: {said}");
            let same = files(&home)
                .iter()
                .filter(|(path, _)| path != "c.txt")
                .eq(before.iter().filter(|(path, _)| path != "c.txt"));
            let names = said.contains("still running") && said.contains("writer.py");
            assert!(names || same, "{name} {round}: {said}");
            exact += usize::from(same);
            reported += usize::from(names);
        }
        assert_eq!(home.run(&["processes", "stop", "--all"]).await.code, 0);
    }
    println!("undo with live writers: 50 cases, {exact} exact, {reported} reported");
    assert_eq!(reported, 50, "the writers of all cases were alive");
}

/// The files of the project, with their contents.
fn files(home: &Home) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(home.project()).unwrap().flatten();
    let named = entries.filter(|entry| entry.path().is_file());
    let mut all: Vec<_> = named
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, std::fs::read(entry.path()).ok()?))
        })
        .collect();
    all.sort();
    all
}
