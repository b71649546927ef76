//! Mistakes and misfortunes at the command line: each says what to do next (A2).

use crate::Home;
use dunnock_testkit::fixture;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Rules, ScriptedServer};

/// Holds A2: errors of the command line, word for word.
#[tokio::test(flavor = "multi_thread")]
async fn every_error_says_what_to_do_next() {
    let mut told: Vec<String> = Vec::new();
    let mut check = |home: &Home, what: &str, args: &[&str], ran: crate::Ran, code: i32| {
        let text = home.plain(&ran.err);
        assert_eq!(ran.code, code, "{what}: {}", ran.err);
        assert!(!text.contains("panicked") && !text.trim().is_empty(), "{what}: {text}");
        // The first line of a run that began is not part of the error.
        let text: String = text
            .lines()
            .filter(|l| !l.starts_with("dunnock 0."))
            .map(|l| format!("{l}\n"))
            .collect();
        let typed = home.plain(&format!("$ dunnock {}", args.join(" ")));
        told.push(format!("# {what}\n{typed}\n{text}exit {code}\n"));
    };
    let calls = [("shell", r#"{"command":"make a"}"#), ("shell", r#"{"command":"make b"}"#)];
    let server = ScriptedServer::start(vec![Say::calls(&calls).into()]).await;
    let home = Home::with(&server);
    assert_eq!(home.run(&["run", "--sandbox", "off", "go"]).await.code, 3);
    let id = home.newest().await;
    let with_server: [(&str, Vec<&str>, i32); 16] = [
        ("several pending", vec!["approve", &id], 2),
        ("no such call", vec!["decline", &id, "9.9"], 2),
        ("not a call", vec!["why", &id, "nine"], 2),
        ("a call that is not there", vec!["why", &id, "9.9"], 2),
        ("no such session", vec!["resume", "nosuchsession"], 1),
        ("no such session to show", vec!["sessions", "show", "zzzz"], 1),
        ("no task", vec!["run", "  "], 2),
        ("a word that is no command", vec!["fix"], 2),
        ("a mistyped command", vec!["sesions"], 2),
        ("not a workspace: missing", vec!["run", "--cd", "nowhere", "go"], 2),
        ("not a workspace: the whole machine", vec!["run", "--cd", "/", "go"], 2),
        ("a budget that cannot be kept", vec!["run", "--budget", "2usd", "go"], 2),
        ("a wrong flag value", vec!["run", "--approve", "maybe", "go"], 2),
        ("no such provider", vec!["run", "--model", "other/x", "go"], 2),
        ("not a model", vec!["run", "--model", "scripted", "go"], 2),
        ("a file that is not an export", vec!["sessions", "import", "/dev/null"], 1),
    ];
    for (what, args, code) in with_server {
        let ran = home.run(&args).await;
        check(&home, what, &args, ran, code);
    }
    let mut low = home.command(&["run", "--sandbox", "require=A", "go"]);
    low.env("DUNNOCK_SANDBOX_LEVEL", "C");
    check(
        &home,
        "a box that cannot be had",
        &["run", "--sandbox", "require=A", "go"],
        crate::ran(low).await,
        1,
    );
    let ran = home.run(&["run", "--model", "script/gone", "go"]).await;
    check(&home, "unknown model", &["run", "--model", "script/gone", "go"], ran, 1);
    home.configure("model = \"script/scripted\"\nmaxsteps = 3\n");
    let ran = home.run(&["run", "go"]).await;
    check(&home, "bad config line", &["run", "go"], ran, 1);
    home.configure(
        "model = \"script/scripted\"\n[providers.script]\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    );
    let ran = home.run(&["run", "go"]).await;
    check(&home, "unreachable server", &["run", "go"], ran, 1);
    home.configure(
        "model = \"script/scripted\"\n[providers.script]\nwire = \"morse\"\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    );
    let ran = home.run(&["run", "go"]).await;
    check(&home, "a wire that is not here", &["run", "go"], ran, 1);
    let strict =
        ScriptedServer::with(vec![], Rules { key: Some("right".into()), ..Rules::default() }).await;
    let home = Home::with(&strict);
    let ran = home.run(&["run", "go"]).await;
    check(&home, "wrong key", &["run", "go"], ran, 1);
    let mut keyless = home.command(&["run", "go"]);
    keyless.env_remove("SCRIPT_KEY");
    let ran = crate::ran(keyless).await;
    check(&home, "no key", &["run", "go"], ran, 1);
    let home = Home::with(&strict);
    let mut own = home.command(&["run", "go"]);
    own.current_dir(home.dir.path());
    let ran = crate::ran(own).await;
    check(&home, "not a workspace: the home folder", &["run", "go"], ran, 2);
    home.configure("[providers.x]\napi_key_env = \"sk-abc-123\"\n");
    let ran = home.run(&["config"]).await;
    check(&home, "a key where a name should be", &["config"], ran, 1);
    let home = Home::empty();
    let ran = home.run(&["resume"]).await;
    check(&home, "no session in this folder", &["resume"], ran, 1);
    let mut lonely = home.command(&["sessions", "list"]);
    lonely.env_remove("HOME");
    let ran = crate::ran(lonely).await;
    check(&home, "no home folder", &["sessions", "list"], ran, 1);
    std::fs::write(home.dir.path().join("file"), "").unwrap();
    let file = home.dir.path().join("file");
    let ran = home.run(&["sessions", "list", "--data-dir", file.to_str().unwrap()]).await;
    check(&home, "a data folder that is none", &["sessions", "list", "--data-dir", "FILE"], ran, 1);
    // In a network of its own, so that no server of this machine is found.
    let mut nothing =
        home.command_of("unshare".as_ref(), &["-rn", env!("CARGO_BIN_EXE_dunnock"), "run", "go"]);
    nothing.env_remove("OPENAI_API_KEY");
    let ran = crate::ran(nothing).await;
    check(&home, "no model", &["run", "go"], ran, 2);
    let disk = "mkdir -p disk && mount -t tmpfs -o size=64k,mode=700 none disk && exec \"$0\" \
                --data-dir disk/data run --model ollama/x go";
    let full = home
        .command_of("unshare".as_ref(), &["-rmn", "sh", "-c", disk, env!("CARGO_BIN_EXE_dunnock")]);
    let ran = crate::ran(full).await;
    check(&home, "disk full", &["--data-dir", "FULL", "run", "go"], ran, 1);
    fixture::check("fixtures/cli/errors.txt", &told.join("\n"));
}
