//! What a model learns about the machine: the lines about the sandbox, the snapshot, and the
//! environment of commands.

use crate::{Home, Ran};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{ScriptedServer, Served};
use serde_json::{Value, json};

/// A run of these commands; the requests, the results, and how it ended.
async fn run(
    home: &Home,
    server: &ScriptedServer,
    flags: &[&str],
    env: &[(&str, &str)],
) -> (Vec<Value>, Vec<String>, Ran) {
    let args: Vec<&str> = ["run"].iter().chain(flags).chain(&["go"]).copied().collect();
    let mut command = home.command(&args);
    command.envs(env.iter().copied());
    let ran = crate::ran(command).await;
    let requests = server.requests();
    let last = requests.last().unwrap()["messages"].as_array().unwrap().clone();
    let results = last.iter().filter(|m| m["role"] == "tool");
    let results = results.map(|m| m["content"].as_str().unwrap().to_owned()).collect();
    (requests, results, ran)
}

async fn server(commands: &[&str]) -> ScriptedServer {
    let mut script: Vec<Served> = commands
        .iter()
        .map(|line| Say::calls(&[("shell", &json!({"command": line}).to_string())]).into())
        .collect();
    script.push(Say::calls(&[("final_output", r#"{"answer":"done"}"#)]).into());
    script.push(Say::calls(&[("final_output", r#"{"answer":"done"}"#)]).into());
    ScriptedServer::start(script).await
}

fn system(requests: &[Value]) -> String {
    requests[0]["messages"][0]["content"].as_str().unwrap().to_owned()
}

const NETWORK: [&str; 2] = [
    "Commands run in a sandbox: they have no network, only a 127.0.0.1 that all of them in this \
     session share.",
    "Commands run in a sandbox: they can open no sockets, not even to 127.0.0.1.",
];

/// The two lines say what a command can really do, at each level.
#[tokio::test(flavor = "multi_thread")]
async fn the_lines_about_the_sandbox_are_true_at_each_level() {
    // What each line says, and what the commands must find: the server of this test, one that the
    // session started, the workspace, /tmp, the home folder, $TMPDIR, a folder that the person
    // opened, a file elsewhere, the system.
    let levels = [
        (
            "A",
            NETWORK[0],
            "Commands can write to the workspace. They can also write to /tmp and the home folder, but \
             both start empty at each call. They can also write to: SHARED. They can read the system \
             and toolchains; other folders appear empty.",
            "machine=no session=yes workspace=yes tmp=yes home=yes shared=yes elsewhere=no system=yes \
             left=no",
        ),
        (
            "B",
            NETWORK[0],
            "Commands can write to the workspace. They can also write to $TMPDIR, but not to /tmp or \
             the home folder. They can also write to: SHARED. They can read the system and toolchains; \
             they can read no other folders.",
            "machine=no session=yes workspace=yes tmp=no home=no shared=yes elsewhere=no system=yes \
             left=no tmpdir=yes",
        ),
        (
            "C",
            NETWORK[1],
            "Commands can write to the workspace. They can also write to $TMPDIR, but not to /tmp or \
             the home folder. They can also write to: SHARED. They can read the system and toolchains; \
             they can read no other folders.",
            "machine=no session=no workspace=yes tmp=no home=no shared=yes elsewhere=no system=yes \
             left=no tmpdir=yes",
        ),
    ];
    for (level, network, files, expected) in levels {
        let shared = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("private"), "x").unwrap();
        let folder = shared.path().canonicalize().unwrap().display().to_string();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = port.local_addr().unwrap().port();
        let check = |name: &str, command: &str| {
            format!("({command}) >/dev/null 2>&1 && echo {name}=yes || echo {name}=no; ")
        };
        let mark = format!("/tmp/dunnock-{}", std::process::id());
        let session = "for n in $(seq 30); do exec 3<>/dev/tcp/127.0.0.1/8123 && exit; sleep 0.1; \
                       done; exit 1";
        let probe = [
            check("machine", &format!("exec 3<>/dev/tcp/127.0.0.1/{open}")),
            check("session", session),
            check("workspace", "echo x >probe"),
            check("tmp", &format!("echo x >{mark}")),
            check("home", "echo x >~/probe"),
            check("shared", &format!("echo x >{folder}/probe")),
            check("elsewhere", &format!("cat {}/private", elsewhere.path().display())),
            check("system", "test -x /usr/bin/env && ls /usr/lib"),
        ]
        .concat();
        let second = [
            check("left", &format!("test -e {mark} || test -e ~/probe")),
            if level == "A" { String::new() } else { check("tmpdir", "echo x >$TMPDIR/probe") },
        ]
        .concat();
        let serve = "busybox httpd -p 127.0.0.1:8123 || true";
        let server = server(&[serve, &probe, &second]).await;
        let home = Home::with(&server);
        home.set(&format!("sandbox_level = \"{level}\"\nsandbox_write = [{folder:?}]\n"));
        let (requests, results, ran) = run(&home, &server, &[], &[]).await;
        assert_eq!(ran.code, 0, "{level}: {}", ran.err);
        let text = system(&requests);
        let quoted = format!("{folder:?}");
        for line in [network.to_owned(), files.replace("SHARED", &quoted)] {
            assert!(text.contains(&format!("\n- {line}\n")), "{level}: {line} is not in\n{text}");
        }
        let found: Vec<&str> = results[1..3].iter().flat_map(|one| one.lines()).collect();
        let found: Vec<&str> = found.into_iter().filter(|line| line.contains('=')).collect();
        assert_eq!(found.join(" "), expected, "{level}: {results:?}");
        println!("{level}: two lines, {} checks", found.len());
    }
}

/// Without a sandbox there is no line about one, and a change of the level renews the text.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_there_is_no_line_about_it() {
    let server = server(&["true"]).await;
    let home = Home::with(&server);
    let (requests, _, ran) =
        run(&home, &server, &["--sandbox", "off", "--approve", "all"], &[]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!system(&requests).contains("sandbox"), "{}", system(&requests));
    let before = requests.len();
    let ran = home.run(&["resume", "--sandbox", "auto", "--prompt", "again"]).await;
    let again = server.requests();
    assert!(again.len() > before, "{}", ran.err);
    let text = again[before]["messages"][0]["content"].as_str().unwrap();
    assert!(text.contains("Commands run in a sandbox"), "{text}");
}

/// The snapshot opens the conversation of an unattended run, and only of that; it can be switched
/// off, and the request only grows at its end.
#[tokio::test(flavor = "multi_thread")]
async fn an_unattended_model_gets_a_snapshot() {
    let mut tries = 0;
    // On a busy machine, the files may not be listed in time.
    let (home, requests, first) = loop {
        let server = server(&["true"]).await;
        let home = Home::with(&server);
        home.put("src/odd\nname.txt", "never sent");
        home.put(".git/HEAD", "ref: refs/heads/topic\n");
        let (requests, _, ran) = run(&home, &server, &["--unattended"], &[]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let first = requests[0]["messages"][1]["content"].to_string();
        tries += 1;
        if first.contains("name.txt") || tries == 20 {
            break (home, requests, first);
        }
    };
    assert!(first.starts_with("\"[from the harness, not the person]\\nThe machine and the folder"));
    for part in ["date: 20", " CPUs", "programs: ", "git branch: \\\"topic\\\"", "odd\\\\nname.txt"]
    {
        assert!(first.contains(part), "{part} is not in {first}");
    }
    assert!(first.ends_with("go\"") && !first.contains("never sent"), "{first}");
    let beginning = |n: usize| requests[n]["messages"].as_array().unwrap()[..2].to_vec();
    assert!((1..requests.len()).all(|n| beginning(n) == beginning(0)), "the prefix is stable");
    assert!(!system(&requests).contains("date: 20"), "the system text stays the same for a cache");
    println!("figure: first user message with the snapshot: {} bytes", first.len());
    // Its bytes come from the log, also after a replay.
    let replayed = home.run(&["sessions", "replay", &home.newest().await]).await;
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    for (flags, settings) in [(&["--unattended"][..], "snapshot = \"off\"\n"), (&[][..], "")] {
        let server = self::server(&["true"]).await;
        let home = Home::with(&server);
        home.set(settings);
        let (requests, ..) = run(&home, &server, flags, &[]).await;
        assert_eq!(requests[0]["messages"][1]["content"], "go", "{flags:?} {settings}");
    }
}

/// Without a sandbox, commands get the person's environment, but no keys.
#[tokio::test(flavor = "multi_thread")]
async fn commands_without_a_sandbox_get_the_environment_without_keys() {
    let env = [
        ("CONDA_DEFAULT_ENV", "science"),
        ("LD_LIBRARY_PATH", "/opt/lib"),
        ("DATABASE_URL", "postgres://me:hunter2@db.local/app"),
        ("MY_API_KEY", "canary-1"),
        ("GITHUB_TOKEN", "canary-2"),
        ("COPY_OF_IT", crate::KEY),
        ("PAGER", "less"),
    ];
    for (sandbox, passed) in [("off", true), ("auto", false)] {
        let server = server(&["env"]).await;
        let home = Home::with(&server);
        let (_, results, ran) =
            run(&home, &server, &["--sandbox", sandbox, "--approve", "all"], &env).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let seen = &results[0];
        assert_eq!(seen.contains("CONDA_DEFAULT_ENV=science"), passed, "{sandbox}: {seen}");
        assert_eq!(seen.contains("LD_LIBRARY_PATH="), passed, "{sandbox}: {seen}");
        for never in ["hunter2", "canary", crate::KEY, "SCRIPT_KEY", "PAGER=less"] {
            assert!(!seen.contains(never), "{sandbox}: {never} in {seen}");
        }
    }
}
