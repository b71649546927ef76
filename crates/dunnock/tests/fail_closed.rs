//! Without a sandbox, with a weaker one, with a lock that is never released, or without processes:
//! Dunnock says so, and does not go on as if nothing was wrong.

use crate::cases::world::{World, shell};
use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// RED-H7: a machine without any sandbox, and the mode `all`.
#[tokio::test(flavor = "multi_thread")]
async fn mode_all_without_a_sandbox_asks_unless_it_is_turned_off() {
    for (flags, code) in
        [(&["--approve", "all"][..], 3), (&["--approve", "all", "--sandbox", "off"], 0)]
    {
        let world = World::new("mode-all");
        let script: Vec<Served> = vec![
            Say::calls(&[("shell", r#"{"command":"echo x >> ran"}"#)]).into(),
            Say::text("done").into(),
        ];
        let server = ScriptedServer::start(script).await;
        world.serve(&server);
        let args: Vec<&str> = ["run"].iter().chain(flags).chain(&["go"]).copied().collect();
        let ran = crate::ran(crate::cases::world::without_landlock(&world, &args)).await;
        assert_eq!(ran.code, code, "{}", ran.err);
        assert_eq!(world.home.read("ran"), if code == 0 { "x\n" } else { "" }, "{}", ran.err);
        let says = "there is no sandbox here (level D), so commands need approval in mode all";
        assert_eq!(ran.err.matches(says).count(), usize::from(code == 3), "{}", ran.err);
    }
}

/// A session that had a better sandbox does not continue with a weaker one unless the person says
/// so.
#[tokio::test(flavor = "multi_thread")]
async fn a_lower_level_than_before_is_an_error_until_it_is_accepted() {
    let world = World::new("lowered");
    let script: Vec<Served> = vec![
        Say::calls(&[("shell", r#"{"command":"echo one >> ran"}"#)]).into(),
        Say::calls(&[("shell", r#"{"command":"echo two >> ran"}"#)]).into(),
        Say::text("done").into(),
    ];
    let server = ScriptedServer::start(script).await;
    world.serve(&server);
    let first = world.ran(&["run", "--approve", "all", "--max-steps", "1", "go"]).await;
    assert_eq!(first.code, 4, "{}", first.err);
    let weaker = async |args: &[&str]| {
        let mut command = world.command(args);
        command.env("DUNNOCK_SANDBOX_LEVEL", "C");
        crate::ran(command).await
    };
    let refused = weaker(&["resume", "--max-steps", "5"]).await;
    assert_eq!(refused.code, 1, "{}", refused.err);
    for words in
        ["had sandbox level A", "only level C is available now", "--sandbox require=C accepts"]
    {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    assert_eq!(world.home.read("ran"), "one\n");
    let id = world.home.newest().await;
    let levels = async || {
        let shown = world.ran(&["sessions", "show", "--json", &id]).await.out;
        let claims = shown.lines().filter(|line| line.contains(r#""owner_changed""#));
        let level = |line: &str| {
            let at = line.find("isolation").unwrap();
            line[at..].chars().find(|c| "ABCD".contains(*c)).unwrap()
        };
        claims.map(level).collect::<String>()
    };
    assert_eq!(levels().await, "A", "the refused process did not take the session over");
    let accepted = weaker(&["resume", "--max-steps", "5", "--sandbox", "require=C"]).await;
    assert_eq!(accepted.code, 0, "{}", accepted.err);
    assert_eq!(world.home.read("ran"), "one\ntwo\n");
    assert_eq!(levels().await, "AC");
}

fn signal(pid: u32, word: &str) {
    assert!(Command::new("kill").args([word, &pid.to_string()]).status().unwrap().success());
}

/// Ends a process that was stopped, whatever the test comes to.
struct StoppedProcess(Child);

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command that must end by itself.
async fn soon(home: &Home, args: &[&str]) -> Ran {
    let began = Instant::now();
    let mut child = home.start(args);
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(30) {
            let _ = child.kill();
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ran = crate::told(child.wait_with_output().unwrap());
    dunnock_testkit::timing::figure(
        &format!("{args:?} beside a stopped process"),
        began.elapsed(),
        Duration::from_millis(1_500),
    );
    ran
}

/// RED-M5: a process that is stopped while it writes to the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_stopped_in_a_transaction_is_named() {
    let server = ScriptedServer::start(vec![Say::text("done").into()]).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "go"]).await.code, 0);
    let id = home.newest().await;
    // It holds the lock that every writer of the database takes.
    let lock = home.data().join("write.lock");
    let mut holder = Command::new("flock");
    holder.arg("--no-fork").arg(lock).args(["sh", "-c", "echo locked; exec sleep 600"]);
    let mut holder = StoppedProcess(holder.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(holder.0.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let pid = holder.0.id();
    // The word is printed before `sleep` replaces the shell.
    while std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim() != "sleep" {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    signal(pid, "-STOP");
    for args in [&["sessions", "list"][..], &["resume", &id, "--prompt", "more"], &["run", "go"]] {
        let ran = soon(&home, args).await;
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.err);
        let named = format!("process {pid} (sleep, stopped) holds its lock");
        assert!(ran.err.contains(&named), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(&format!("kill -CONT {pid}")), "{args:?}: {}", ran.err);
    }
}

/// RED-M1, RED-M5: a program that is stopped, and one that died while its launcher was stopped.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_really_holds_a_session_is_named() {
    let slow = r#"{"command":"echo $$ > self; sleep 600"}"#;
    let script: Vec<Served> = vec![Say::calls(&[("shell", slow)]).into(), Say::text("done").into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    let owner = home.start(&["run", "go"]);
    let owner = StoppedProcess(owner);
    let pid = owner.0.id();
    while home.read("self").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let id = home.newest().await;
    signal(pid, "-STOP");
    let ran = soon(&home, &["resume", &id]).await;
    let named = format!("process {pid} (dunnock, stopped) has this session open");
    assert!(ran.code == 1 && ran.err.contains(&named), "{}", ran.err);
    // A new session in the folder waits for the writer, and says for whom.
    let writes: Vec<Served> = vec![
        Say::calls(&[("write_file", r#"{"path":"x","content":"x"}"#)]).into(),
        Say::text("done").into(),
    ];
    let other = ScriptedServer::start(writes).await;
    let url = other.base_url();
    home.configure(&format!(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \"{url}\"\n"
    ));
    let mut new = home.command(&["run", "new"]);
    let new = StoppedProcess(new.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    let mut new = new;
    let lines = std::io::BufReader::new(new.0.stderr.take().unwrap());
    let named = format!("waiting: process {pid} (dunnock, stopped) is writing in this folder");
    let found = tokio::task::spawn_blocking(move || {
        std::io::BufRead::lines(lines).map_while(Result::ok).any(|line| line.contains(&named))
    });
    let found = tokio::time::timeout(Duration::from_secs(30), found).await;
    assert!(found.is_ok_and(Result::unwrap), "the new session does not name the stopped one");
    drop(new);
    // The program dies; its launcher is stopped and keeps the lock until the command is dead.
    let launcher = std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .find_map(|pids| pids.split_whitespace().next()?.parse::<u32>().ok())
        .unwrap();
    signal(launcher, "-STOP");
    signal(pid, "-CONT");
    drop(owner);
    let ran = soon(&home, &["resume", &id]).await;
    signal(launcher, "-KILL");
    let named = format!("process {launcher} (dunnock's launcher, stopped) has this session open");
    assert!(ran.code == 1 && ran.err.contains(&named), "{}", ran.err);
}

/// RED-L8: with few processes the program says what is short.
#[tokio::test(flavor = "multi_thread")]
async fn few_processes_are_an_error_and_not_a_panic() {
    if dunnock_testkit::ordinary::is_root() {
        // The limit does not apply to root.
        let program = [("DUNNOCK_BIN", env!("CARGO_BIN_EXE_dunnock"))];
        let test = "fail_closed::few_processes_are_an_error_and_not_a_panic";
        let run = move || dunnock_testkit::ordinary::run(test, &program);
        println!("{}", tokio::task::spawn_blocking(run).await.unwrap());
        return;
    }
    let mut codes = std::collections::BTreeMap::<i32, u32>::new();
    for limit in 1..=30 {
        let world = World::new("few");
        let script: Vec<Served> = vec![
            Say::calls(&[("shell", &shell("touch ~/PWNED; echo x").1)]).into(),
            Say::text("done").into(),
        ];
        let server = ScriptedServer::start(script).await;
        world.serve(&server);
        let plain = world.command(&["run", "--approve", "all", "go"]);
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--nproc={limit}")).arg(plain.get_program()).args(plain.get_args());
        limited.current_dir(world.home.project()).env_clear().stdin(Stdio::null());
        limited.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
        let ran = tokio::time::timeout(Duration::from_secs(60), crate::ran(limited)).await.unwrap();
        assert!(!ran.err.contains("panicked"), "{limit}: {}", ran.err);
        assert!(ran.code == 0 || ran.code == 1, "{limit}: {} {}", ran.code, ran.err);
        assert!(ran.code == 0 || ran.err.contains("dunnock:"), "{limit}: {:?}", ran.err);
        assert!(!world.home.dir.path().join("PWNED").exists(), "{limit}: {}", ran.err);
        *codes.entry(ran.code).or_default() += 1;
    }
    println!("{codes:?}");
    assert!(codes.get(&1).is_some_and(|n| *n >= 3), "the limit was never felt: {codes:?}");
}
