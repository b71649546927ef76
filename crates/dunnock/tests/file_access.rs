//! `file_access = "machine"`: who can open it, what is asked, and what the model is told.

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Brain, Rules, ScriptedServer, Served};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const OPEN: [&str; 4] = ["--sandbox", "off", "--file-access", "machine"];
const TOLD: &str = "File tools also take absolute paths outside it";

/// A model that edits a file outside in each of its tasks, and ends.
async fn editor() -> (Home, ScriptedServer, PathBuf) {
    let folder = tempfile::tempdir().unwrap().keep();
    let path = folder.join("outside.txt");
    let args = json!({"path": path, "content": "changed\n", "overwrite": true}).to_string();
    let asked = AtomicUsize::new(0);
    let brain = move |_, _: &Value| match asked.fetch_add(1, Ordering::SeqCst) % 2 {
        0 => Served::from(Say::calls(&[("write_file", &args)])),
        _ => Served::from(Say::calls(&[("final_output", r#"{"answer":"done"}"#)])),
    };
    let rules = Rules { brain: Some(Brain(Arc::new(brain))), ..Rules::default() };
    let server = ScriptedServer::with(vec![], rules).await;
    let home = Home::with(&server);
    std::fs::write(&path, "before\n").unwrap();
    (home, server, path)
}

fn told(server: &ScriptedServer, request: usize) -> bool {
    server.requests()[request].to_string().contains(TOLD)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_outside_is_changed_only_where_a_person_opened_that() {
    let (home, server, path) = editor().await;
    let read = || std::fs::read_to_string(&path).unwrap();
    // Unopened, as always.
    let ran = home.run(&["run", "--sandbox", "off", "--approve", "all", "edit it"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(server.requests()[1].to_string().contains("is outside the workspace"));
    assert!(!told(&server, 0) && read() == "before\n");
    // With a sandbox it is an error, before anything is sent.
    let ran = home.run(&["run", "--file-access", "machine", "edit it"]).await;
    assert!(ran.code == 2 && ran.err.contains("add --sandbox off"), "{}", ran.err);
    // The project cannot open it.
    home.put(".dunnock/config.toml", "file_access = \"machine\"\nsandbox = \"off\"\n");
    let ran = home.run(&["run", "--approve", "all", "edit it"]).await;
    assert!(!told(&server, 2) && read() == "before\n", "{}", ran.err);
    // In mode auto the person is asked; here nobody is.
    let ran = home.run(&[&["run"], &OPEN[..], &["edit it"]].concat()).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("outside this folder; an undo will not restore it"), "{}", ran.err);
    assert!(ran.err.contains("file tools reach the whole machine"), "{}", ran.err);
    assert_eq!(read(), "before\n");
    let approved = home.run(&["approve", &home.newest().await, "--go"]).await;
    assert_eq!((approved.code, read().as_str()), (0, "changed\n"), "{}", approved.err);
    std::fs::write(&path, "before\n").unwrap();
    let unattended = home.run(&[&["run", "--unattended"], &OPEN[..], &["edit it"]].concat()).await;
    assert_eq!(read(), "before\n", "{}", unattended.err);
    let ran = home.run(&[&["run", "--approve", "all"], &OPEN[..], &["edit it"]].concat()).await;
    assert_eq!((ran.code, read().as_str()), (0, "changed\n"), "{}", ran.err);
    // The undo does not restore it, and the model was told so.
    let requests = server.requests();
    let last = requests.last().unwrap().to_string();
    assert!(last.contains("outside the workspace: an undo does not restore it"), "{last}");
    home.run(&["undo"]).await;
    assert_eq!(read(), "changed\n");
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// A session that is resumed with the flag reaches further from then on, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_is_told_what_it_reaches() {
    let (home, server, path) = editor().await;
    let read = || std::fs::read_to_string(&path).unwrap();
    let ran = home.run(&["run", "--sandbox", "off", "--approve", "all", "edit it"]).await;
    assert_eq!((ran.code, read().as_str()), (0, "before\n"), "{}", ran.err);
    let resume = [&["resume"], &OPEN[..], &["--prompt", "now edit it"]].concat();
    let ran = home.run(&resume).await;
    assert_eq!((ran.code, read().as_str()), (0, "changed\n"), "{}", ran.err);
    assert!(!told(&server, 0) && told(&server, 2), "the system prompt is rendered anew");
    let back = ["resume", "--file-access", "workspace", "--prompt", "again"];
    std::fs::write(&path, "before\n").unwrap();
    let ran = home.run(&back).await;
    assert_eq!((ran.code, read().as_str()), (0, "before\n"), "{}", ran.err);
    assert!(!told(&server, 4));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// What somebody else opened is closed in an imported session.
#[tokio::test(flavor = "multi_thread")]
async fn an_imported_session_reaches_nothing_outside() {
    let (home, server, path) = editor().await;
    let read = || std::fs::read_to_string(&path).unwrap();
    let ran = home.run(&[&["run", "--approve", "all"], &OPEN[..], &["edit it"]].concat()).await;
    assert_eq!((ran.code, read().as_str()), (0, "changed\n"), "{}", ran.err);
    std::fs::write(&path, "before\n").unwrap();
    let (id, file) = (home.newest().await, home.dir.path().join("session.jsonl"));
    let file = file.to_str().unwrap();
    let ran = home.run(&["sessions", "export", &id, "--output", file]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let there = Home::with(&server);
    let into = there.dir.path().join("into");
    let into = into.to_str().unwrap();
    let ran = there.run(&["sessions", "import", file, "--into", into]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = there.run(&["resume", &id, "--approve", "all", "--prompt", "again"]).await;
    let last = server.requests().last().unwrap().to_string();
    assert!(ran.code == 0 && !last.contains(TOLD), "{} {}", ran.code, ran.err);
    assert!(last.contains("is outside the workspace") && read() == "before\n", "{}", ran.err);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}
