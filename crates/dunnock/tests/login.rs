//! `dunnock login` and `logout`: what is asked, what is tried, what is saved, and where a saved key
//! goes.

use crate::terminal::talk;
use crate::window::Window;
use crate::{Home, Ran, told};
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Fault, Rules, ScriptedServer, Served};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SAVED: &str = "canary-7d1c55e2b0aa";

/// A server that wants this key.
async fn server(script: Vec<Served>) -> ScriptedServer {
    let models = vec!["scripted".into(), "other".into()];
    let rules = Rules { key: Some(SAVED.into()), models, ..Rules::default() };
    ScriptedServer::with(script, rules).await
}

/// A home in which the server is known, but no key and no model.
fn home(server: &ScriptedServer) -> Home {
    let home = Home::empty();
    home.configure(&provider(server));
    home
}

fn provider(server: &ScriptedServer) -> String {
    format!(
        "[providers.script]\nbase_url = \"{}\"\napi_key_env = \"LOGIN_KEY\"\n",
        server.base_url()
    )
}

fn keys(home: &Home) -> PathBuf {
    home.dir.path().join(".config/dunnock/keys/keys.toml")
}

fn config(home: &Home) -> String {
    std::fs::read_to_string(home.dir.path().join(".config/dunnock/config.toml")).unwrap()
}

/// Runs a command with this text as its standard input.
async fn with_input(home: &Home, args: &[&str], text: &str) -> Ran {
    let mut command = home.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let text = text.to_owned();
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    });
    told(ended.await.unwrap())
}

/// A home with a saved key and a model that answered.
async fn logged_in(server: &ScriptedServer) -> Home {
    let home = home(server);
    let args = ["login", "script", "--model", "scripted"];
    let ran = with_input(&home, &args, &format!("{SAVED}\n")).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    home
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_from_standard_input_is_tried_and_saved_privately() {
    let server = server(vec![]).await;
    let home = home(&server);
    let wrong = with_input(&home, &["login", "script", "--model", "scripted"], "not-the-key").await;
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("script refused the key (401)"), "{}", wrong.err);
    assert!(!wrong.err.contains("not-the-key"), "{}", wrong.err);
    assert!(!keys(&home).exists(), "a key that was refused is not saved");
    for (text, why) in [("two words", "blanks or control"), ("", "needs a key")] {
        let ran = with_input(&home, &["login", "script"], text).await;
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    assert!(server.asked().is_empty(), "nothing was sent to a model");

    let ran = with_input(&home, &["login", "script", "--model", "scripted"], SAVED).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!ran.err.contains(SAVED) && ran.out.is_empty(), "{ran:?}");
    assert_eq!(server.asked().len(), 1, "the model was tried");
    let file = keys(&home);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.contains(SAVED) && saved.contains(&server.base_url()), "{saved}");
    assert_eq!(config(&home), format!("model = \"script/scripted\"\n{}", provider(&server)));

    let ran = home.run(&["run", "hello"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_could_read_becomes_private() {
    let server = server(vec![]).await;
    let home = logged_in(&server).await;
    let file = keys(&home);
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&file, 0o644);
    open(file.parent().unwrap(), 0o755);
    let ran = home.run(&["run", "hello"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_to_choose_only_the_key_is_saved() {
    let server = server(vec![]).await;
    let home = home(&server);
    let ran = with_input(&home, &["login", "script"], SAVED).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "other\nscripted\n"), "{}", ran.err);
    assert!(ran.err.contains("dunnock login script --model MODEL"), "{}", ran.err);
    assert!(keys(&home).exists() && !config(&home).contains("model ="));
    // The saved key is enough for the next step.
    let ran = home.run(&["login", "script", "--model", "other"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(config(&home).starts_with("model = \"script/other\"\n"));
}

/// The attack: a project that its user trusts, or a variable, names another address for the
/// provider whose key is saved.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_cannot_send_a_saved_key_elsewhere() {
    let server = server(vec![]).await;
    let elsewhere = ScriptedServer::start(vec![]).await;
    let home = logged_in(&server).await;
    let evil = elsewhere.base_url();
    home.put(".dunnock/config.toml", &format!("[providers.script]\nbase_url = \"{evil}\"\n"));
    let by_project = home.run(&["run", "--trust", "hello"]).await;
    let mut command = home.command(&["run", "hello"]);
    command.env("DUNNOCK_PROVIDERS__SCRIPT__BASE_URL", &evil);
    let by_variable = crate::ran(command).await;
    // The same host by another name is another address.
    let alias = evil.replace("127.0.0.1", "localhost");
    let mut command = home.command(&["run", "hello"]);
    command.env("DUNNOCK_PROVIDERS__SCRIPT__BASE_URL", alias);
    let by_alias = crate::ran(command).await;
    let asked = elsewhere.asked();
    assert_eq!(asked.len(), 3, "the requests did go there");
    for got in &asked {
        let all = format!("{:?} {:?} {}", got.headers, got.body, got.path);
        assert!(!all.contains(SAVED), "the key was sent elsewhere: {all}");
        assert_eq!(got.header("authorization"), None);
    }
    for ran in [by_project, by_variable, by_alias] {
        assert!(ran.err.contains("it is not sent to http://"), "{}", ran.err);
        assert!(!ran.err.contains(SAVED));
    }
    // A new login in that folder is for the user's own address, too.
    let ran = with_input(&home, &["login", "script", "--model", "scripted"], SAVED).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(elsewhere.asked().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_is_used_instead_of_a_saved_key() {
    let server = server(vec![]).await;
    let home = logged_in(&server).await;
    let mut command = home.command(&["run", "hello"]);
    command.env("LOGIN_KEY", "from-the-environment-1");
    let ran = crate::ran(command).await;
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.err.contains("refused the key in LOGIN_KEY (401)"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_files_of_others_are_refused() {
    let server = server(vec![]).await;
    let refused = async |home: &Home, why: &str| {
        let ran = home.run(&["run", "hello"]).await;
        assert!(ran.err.contains(why), "{why}: {}", ran.err);
        assert!(!ran.err.contains(SAVED) && ran.code != 0, "{}", ran.err);
        let ran = with_input(home, &["login", "script", "--model", "scripted"], SAVED).await;
        assert!(ran.code == 1 && ran.err.contains(why), "{why}: {}", ran.err);
    };
    let asked = || server.asked().len();

    let home = logged_in(&server).await;
    let (file, away) = (keys(&home), home.dir.path().join("away.toml"));
    std::fs::rename(&file, &away).unwrap();
    symlink(&away, &file).unwrap();
    let before = asked();
    refused(&home, "keys.toml is a link, so no saved key is used").await;
    assert!(file.is_symlink() && mode(&away) == 0o600, "nothing was written through the link");

    let home = logged_in(&server).await;
    let (folder, away) =
        (keys(&home).parent().unwrap().to_path_buf(), home.dir.path().join("away"));
    std::fs::rename(&folder, &away).unwrap();
    symlink(&away, &folder).unwrap();
    refused(&home, "keys is a link, so no saved key is used").await;

    let home = logged_in(&server).await;
    std::fs::write(keys(&home), format!("key = \"{SAVED}\"")).unwrap();
    refused(&home, "keys.toml is damaged, so no saved key is used").await;

    if rustix::process::geteuid().is_root() {
        for place in ["keys", "keys/keys.toml"] {
            let home = logged_in(&server).await;
            let place = home.dir.path().join(".config/dunnock").join(place);
            std::os::unix::fs::chown(&place, Some(12345), None).unwrap();
            refused(&home, "belongs to another user, so no saved key is used").await;
        }
    }
    assert!(asked() > before);
}

/// The commands of a model run as the same user, and may ask for any file.
#[tokio::test(flavor = "multi_thread")]
async fn sandboxed_commands_and_tools_cannot_read_saved_keys() {
    let path = |path: &str| serde_json::json!({ "path": path }).to_string();
    let script = |folder: &Path| {
        let folder = folder.display();
        let look = format!(
            "cat {folder}/dunnock/keys/keys.toml ../.config/dunnock/keys/* link 2>&1; ls -laR \
             {folder}/dunnock; grep -rs canary- {folder} ~ | cat; echo looked"
        );
        let shell = serde_json::json!({ "command": look }).to_string();
        vec![
            Say::calls(&[
                ("shell", &shell),
                ("view_file", &path("link")),
                ("view_file", &path("../.config/dunnock/keys/keys.toml")),
                ("view_file", &path(&format!("{folder}/dunnock/keys/keys.toml"))),
            ])
            .into(),
            Say::text("done").into(),
        ]
    };
    // Below the home, and elsewhere: where commands may read unless it is hidden.
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    for xdg in [None, Some(outside.path().to_path_buf())] {
        let home = Home::empty();
        let folder = xdg.clone().unwrap_or_else(|| home.dir.path().join(".config"));
        let server = server(script(&folder)).await;
        std::fs::create_dir_all(folder.join("dunnock")).unwrap();
        let settings = format!("sandbox_read = [\"{}\"]\n{}", folder.display(), provider(&server));
        std::fs::write(folder.join("dunnock/config.toml"), settings).unwrap();
        let command = |args: &[&str]| {
            let mut command = home.command(args);
            command.env("XDG_CONFIG_HOME", &folder).stdin(Stdio::null());
            command
        };
        let mut login = command(&["login", "script", "--model", "scripted"]);
        let key = home.dir.path().join("key");
        std::fs::write(&key, SAVED).unwrap();
        login.stdin(std::fs::File::open(&key).unwrap());
        let ran = crate::ran(login).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        std::fs::remove_file(&key).unwrap();
        let file = folder.join("dunnock/keys/keys.toml");
        assert!(std::fs::read_to_string(&file).unwrap().contains(SAVED));
        symlink(&file, home.project().join("link")).unwrap();

        let ran = crate::ran(command(&["run", "--approve", "all", "look"])).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let last = server.requests().last().unwrap().to_string();
        assert!(last.contains("looked"), "the command ran: {last}");
        assert!(!last.contains(SAVED), "a tool read the key: {last}");
        for inside in [folder.join("dunnock"), folder.join("dunnock/keys")] {
            let ran = crate::ran(command(&["run", "--cd", inside.to_str().unwrap(), "look"])).await;
            assert_eq!(ran.code, 2, "{}", ran.err);
            assert!(ran.err.contains("cannot be a workspace"), "{}", ran.err);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_key_is_only_in_its_file() {
    let repeats = format!("your key is {SAVED}");
    let script = vec![
        Say::calls(&[("shell", &serde_json::json!({"command": repeats}).to_string())]).into(),
        Say::text(&repeats).into(),
    ];
    let server = server(script).await;
    let home = logged_in(&server).await;
    let mut printed = String::new();
    for args in [
        &["run", "--approve", "all", "look"][..],
        &["config"],
        &["doctor"],
        &["models", "list"],
        &["sessions", "show", "--json"],
        &["sessions", "export"],
    ] {
        let ran = home.run(args).await;
        printed.push_str(&ran.out);
        printed.push_str(&ran.err);
    }
    assert!(printed.contains("your key is [key]"), "the server did repeat it: {printed}");
    assert!(!printed.contains(SAVED), "{printed}");
    let mut folders = vec![home.dir.path().to_path_buf()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path)
                && bytes.windows(SAVED.len()).any(|part| part == SAVED.as_bytes())
            {
                found.push(path);
            }
        }
    }
    assert_eq!(found, [keys(&home)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_it_asks_and_does_not_show_the_key() {
    let server = server(vec![]).await;
    let home = home(&server);
    let answers = [
        ("Provider (1 to", "script\n"),
        ("Key of script", "a wrong one\n"),
        ("blanks or control", "wrong-key-0123456\n"),
        ("refused the key (401)", &format!("{SAVED}\n")),
        ("Model (a number", "scri\n"),
    ];
    let ran = talk(&home, &["login"], &answers, "").await;
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains("no sign-in with a subscription"), "{}", ran.out);
    assert!(ran.out.contains("is now the model of new sessions"), "{}", ran.out);
    for secret in [SAVED, "wrong-key-0123456", "a wrong one"] {
        assert!(!ran.out.contains(secret), "what was typed is on the screen: {}", ran.out);
    }
    assert!(config(&home).starts_with("model = \"script/scripted\"\n"));
    // Again: enter keeps the saved key, and a number chooses.
    let answers = [("enter keeps the saved one", "\n"), ("Model (a number", "1\n")];
    let ran = talk(&home, &["login", "script"], &answers, "").await;
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(config(&home).starts_with("model = \"script/other\"\n"));
}

/// Some providers list their models for everyone.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_only_the_model_refuses_is_asked_for_again() {
    let count = Arc::new(AtomicUsize::new(0));
    let brain = Brain(Arc::new(move |_, _| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Served::wrong(Say::text(""), Fault::Status(401, None)),
        _ => Say::text("ready").into(),
    }));
    let rules = Rules { brain: Some(brain), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = home(&server);
    let answers = [
        ("Key of script", "first-key-1\n"),
        ("Model (a number", "\n"),
        ("refused the key (401)", "second-key-2\n"),
        ("Model (a number", "\n"),
    ];
    let ran = talk(&home, &["login", "script"], &answers, "").await;
    assert_eq!(ran.code, 0, "{}", ran.out);
    let saved = std::fs::read_to_string(keys(&home)).unwrap();
    assert!(saved.contains("second-key-2") && !saved.contains("first-key-1"), "{saved}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_stopped_saves_nothing() {
    let server = server(vec![Served::from(Say::text("ready")).gated()]).await;
    let home = home(&server);
    let key = format!("{SAVED}\n");
    let answers =
        [("Key of script", key.as_str()), ("Model (a number", "scripted\n"), ("trying", "\u{3}")];
    let ran = talk(&home, &["login", "script"], &answers, "").await;
    assert_eq!(ran.code, 130, "{}", ran.out);
    assert!(ran.out.contains("nothing was saved"), "{}", ran.out);
    let ran = talk(&home, &["login", "script"], &[("Key of script", "\u{3}")], "").await;
    assert_eq!(ran.code, 130, "{}", ran.out);
    assert!(!keys(&home).exists() && !config(&home).contains("model ="));
}

#[tokio::test(flavor = "multi_thread")]
async fn logout_removes_a_key() {
    let server = server(vec![]).await;
    let home = logged_in(&server).await;
    let ran = home.run(&["logout", "openai"]).await;
    assert_eq!(ran.code, 2, "{}", ran.err);
    let ran = home.run(&["logout"]).await;
    assert!(ran.code == 0 && ran.err.contains("removed the saved key of script"), "{}", ran.err);
    assert!(!std::fs::read_to_string(keys(&home)).unwrap().contains(SAVED));
    let ran = home.run(&["run", "hello"]).await;
    assert!(
        ran.err.contains("Save one with dunnock login script, or set LOGIN_KEY"),
        "{}",
        ran.err
    );
    let ran = home.run(&["logout"]).await;
    assert!(ran.code == 0 && ran.err.contains("no key is saved"), "{}", ran.err);
}

/// UX-A7: only the keys of OpenAI and Anthropic were named.
#[tokio::test(flavor = "multi_thread")]
async fn every_known_key_counts() {
    let home = Home::empty();
    for known in ["gemini", "deepseek", "mistral", "openrouter"] {
        let variable = format!("{}_API_KEY", known.to_uppercase());
        let mut command = home.command(&["run", "hello"]);
        command.env(&variable, "k");
        let ran = crate::ran(command).await;
        assert_eq!(ran.code, 2);
        let expected = format!(
            "no model is configured. {variable} is set: choose a model with \"dunnock login \
             {known}\""
        );
        assert!(ran.err.contains(&expected), "{}", ran.err);
    }
    let ran = home.run(&["run", "hello"]).await;
    for word in ["dunnock login", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"] {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
    assert!(!ran.err.contains("or;"), "{}", ran.err);
}

/// The whole way in the terminal app: the first run, a wrong key, a right one, a first task.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_run_leads_to_a_model() {
    let server = server(vec![]).await;
    let home = home(&server);
    let window = Window::shell(&home, 80, 24);
    window.type_in(env!("CARGO_BIN_EXE_dunnock"));
    window.key("Enter");
    window.wait_for("Which provider?");
    window.type_in("script");
    window.key("Enter");
    window.wait_for("Paste the API key of script");
    window.type_in("wrong-key-0123456");
    window.wait_for("•••••••••••••••••");
    window.key("Enter");
    window.wait_for("refused the key (401)");
    window.type_in(SAVED);
    window.key("Enter");
    window.wait_for("Which model?");
    window.type_in("scripted");
    window.key("Enter");
    window.wait_for("Set model to script/scripted");
    window.type_in("hello there");
    window.key("Enter");
    window.wait_for("done");
    window.type_in("/quit");
    window.key("Enter");
    let screen = window.wait_for("continue: dunnock");
    assert!(!screen.contains(SAVED) && !screen.contains("wrong-key"), "{screen}");
    assert_eq!(mode(&keys(&home)), 0o600);
    assert!(config(&home).starts_with("model = \"script/scripted\"\n"));
    let mut folders = vec![home.dir.path().join(".local")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let text = std::fs::read(entry.path()).unwrap_or_default();
                    let text = String::from_utf8_lossy(&text).into_owned();
                    assert!(!text.contains(SAVED), "{}", entry.path().display());
                    assert!(!text.contains("wrong-key"), "{}", entry.path().display());
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_was_left_in_the_app_saves_nothing() {
    let server = server(vec![Served::from(Say::text("ready")).gated()]).await;
    let home = home(&server);
    let window = Window::shell(&home, 80, 24);
    window.type_in(env!("CARGO_BIN_EXE_dunnock"));
    window.key("Enter");
    window.wait_for("Which provider?");
    window.type_in("script");
    window.key("Enter");
    window.wait_for("Paste the API key");
    window.type_in(SAVED);
    window.key("Enter");
    window.wait_for("Which model?");
    window.type_in("scripted");
    window.key("Enter");
    window.wait_for("trying script/scripted");
    server.wait_for(1).await;
    window.key("Escape");
    window.wait("the list again", |screen| screen.matches("Which model?").count() > 0);
    server.open_gate(1_000);
    for title in ["Paste the API key", "Which provider?"] {
        window.key("Escape");
        window.wait_for(title);
    }
    window.key("Escape");
    window.wait_for("what would you like to do?");
    window.type_in("/quit");
    window.key("Enter");
    window.wait("the shell", |screen| screen.trim_end().ends_with('$'));
    assert!(!keys(&home).exists(), "the key of a login that was left was saved");
    assert!(!config(&home).contains("model ="));
}
