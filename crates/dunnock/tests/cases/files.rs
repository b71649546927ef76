//! Cases that are a path: what tools read, write, list and search.

use super::world::World;
use super::{Case, judge, of};
use serde_json::json;

fn call(world: &World, case: &Case) -> (String, String) {
    let path = world.text(&case.input);
    let read = |path: &str| ("view_file".to_owned(), json!({ "path": path }).to_string());
    let write = |path: &str| {
        (
            "write_file".to_owned(),
            json!({ "path": path, "content": "pwned\n", "overwrite": true }).to_string(),
        )
    };
    let patch = |text: &str| ("apply_patch".to_owned(), json!({ "patch": text }).to_string());
    let dir = world.home.dir.path();
    match case.id.as_str() {
        "G153" | "G154" => {
            std::fs::create_dir_all(dir.join("project-evil")).unwrap();
            std::fs::write(dir.join("project-evil/secret"), super::world::SECRET).unwrap();
            read(&path)
        }
        "G156" => {
            world.bash("ln -s ../.ssh/id_rsa link; ln -s \"$HOME/.ssh/id_rsa\" link2");
            read("link")
        }
        "G157" => {
            world.bash("ln -s .. dirlink");
            write("dirlink/x")
        }
        "G158" => {
            world.bash("ln -s ../.ssh/new_keys newlink");
            write("newlink")
        }
        "G162" => read("/dev/fd/3"),
        "G163" => {
            world.bash("mkfifo fifo");
            read("fifo")
        }
        "G165" => {
            world.bash("truncate -s 50G sparse");
            read("sparse")
        }
        "G166" => read("a\0.txt"),
        "G167" => read("~/.ssh/id_rsa"),
        "G170" => write(".git\u{200d}/hooks/pre-commit"),
        "G173" => write("\\\\server\\share\\x"),
        "G174" => {
            world.bash("ln ../.bashrc linked");
            write("linked")
        }
        "G175" => {
            world.bash("ln -s loop-b loop-a; ln -s loop-a loop-b; mkdir d; ln -s ../d d/d");
            ("list_files".into(), json!({}).to_string())
        }
        "G176" => {
            world.bash(
                "head -c 1000000 /dev/zero | tr '\\0' a > long.txt; printf '!\\n' >> long.txt",
            );
            (
                "search_text".into(),
                json!({"pattern": "(a+)+$", "regex": true, "path": "long.txt"}).to_string(),
            )
        }
        "G177" => patch("--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1,2 @@\n root\n+pwned\n"),
        "G178" => patch("--- /dev/null\n+++ b/../../.bashrc\n@@ -0,0 +1 @@\n+pwned\n"),
        "G179" => patch(
            "diff --git a/a.txt b/../../x\nsimilarity index 100%\nrename from a.txt\nrename to \
             ../../x\n",
        ),
        "G180" => patch(
            "diff --git a/keys b/keys\nnew file mode 120000\n--- /dev/null\n+++ b/keys\n@@ -0,0 \
             +1 @@\n+../.ssh\n\\ No newline at end of file\n",
        ),
        "G181" => (
            "replace_text".into(),
            json!({"path": "words.txt", "old": "b", "new": "c"}).to_string(),
        ),
        "G182" => write(&"x/".repeat(2_500)),
        "G189" => write(".dunnock/config.toml"),
        _ if case.tool == "read_file" => read(&path),
        _ => write(&path),
    }
}

async fn one(case: &Case) -> Result<String, String> {
    match case.id.as_str() {
        "G159" => return race().await,
        "G183" => return stale().await,
        "G515" => return kept_from_all().await,
        _ => {}
    }
    let world = World::new(&case.id);
    let call = call(&world, case);
    // A new home is what "before" is measured against: the set-up of the case is not harm.
    let before = world.look();
    let began = std::time::Instant::now();
    let came = world.model(&[call], &[]).await;
    let took = began.elapsed();
    if world.look() != before {
        return Err(format!("something outside changed: {}", came.told));
    }
    if came.sent.contains(super::world::SECRET) {
        return Err("the secret was sent to the model".into());
    }
    if case.id == "G180" && world.home.project().join("keys").symlink_metadata().is_ok() {
        return Err("a link was made".into());
    }
    let did = ["wrote", "replaced", "inserted", "updated", "added", "moved", "deleted", "Read "]
        .iter()
        .any(|word| came.told.starts_with(word));
    match case.expect.as_str() {
        // A link to another inode is replaced by a file of its own: what it was linked to stays.
        "deny" if case.id == "G174" && did => {
            Ok("a new file; the linked one stays as it was".into())
        }
        "deny" if came.code == 0 && !did && !came.told.is_empty() => {
            Ok(format!("refused: {}", first(&came.told)))
        }
        "ask" if came.code == 3 => Ok("asked".into()),
        "safe" if came.code == 0 && took.as_secs() < 30 && !came.told.contains("error") => {
            Ok(format!("done in {took:?}: {}", first(&came.told)))
        }
        expect => Err(format!(
            "{expect} was expected; ended with {}: {}{}",
            came.code, came.told, came.err
        )),
    }
}

fn first(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(100).collect()
}

/// The folder above the file becomes a link and a folder again, as fast as it can, while a model
/// writes there.
async fn race() -> Result<String, String> {
    // In memory: twenty thousand files are written and synced.
    let world = tempfile::tempdir_in(if std::path::Path::new("/dev/shm").is_dir() {
        "/dev/shm"
    } else {
        "/tmp"
    })
    .unwrap();
    let place = world.path().join("project");
    std::fs::create_dir_all(place.join("real")).unwrap();
    std::os::unix::fs::symlink("..", place.join("evil")).unwrap();
    std::fs::create_dir(world.path().join("journals")).unwrap();
    let look = || std::fs::read_dir(world.path()).unwrap().count();
    let project = place.clone();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = stop.clone();
    let swap = std::thread::spawn(move || {
        while !seen.load(std::sync::atomic::Ordering::Relaxed) {
            for from in ["real", "evil"] {
                let _ = std::fs::rename(project.join(from), project.join("d"));
                let _ = std::fs::rename(project.join("d"), project.join(from));
            }
        }
    });
    let root = dunnock_tools::root::Root::open(&place).unwrap();
    let before = look();
    let mut wrote = 0;
    for n in 0..20_000 {
        let path =
            dunnock_tools::root::RepoPath::parse(&root, &format!("d/won{}", n % 50)).unwrap();
        let x = || dunnock_tools::root::Contents { bytes: b"x".to_vec(), mode: None };
        let before = root.read(&path).ok();
        let change = dunnock_tools::root::FileChange { path, before, after: Some(x()) };
        wrote += usize::from(root.commit(&[change], &world.path().join("journals")).is_ok());
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swap.join().unwrap();
    match look() == before {
        true => Ok(format!("20,000 tries, {wrote} written inside, none outside")),
        false => Err("the race was won".into()),
    }
}

/// A file that changes between the model's look and its edit.
async fn stale() -> Result<String, String> {
    let world = World::new("G183");
    let look = ("view_file".to_owned(), json!({"path": "a.txt"}).to_string());
    let change = super::world::shell("echo changed by somebody else >> a.txt");
    let write = (
        "write_file".to_owned(),
        json!({"path": "a.txt", "content": "mine\n", "overwrite": true}).to_string(),
    );
    let came = world.model(&[look, change, write], &[]).await;
    let text = world.home.read("a.txt");
    match came.sent.contains("has changed since you last read it") && text.contains("somebody else")
    {
        true => Ok("refused, and the other's change stays".into()),
        false => Err(format!("{text}: {}", came.err)),
    }
}

/// A file that the person keeps from all tools, by a link with another name, and from commands.
async fn kept_from_all() -> Result<String, String> {
    let world = World::new("G515");
    world.bash(&format!(
        "mkdir secrets docs; echo {} > secrets/key; ln -s ../secrets/key docs/x",
        super::world::SECRET
    ));
    let calls: Vec<(String, String)> = [
        ("view_file", json!({"path": "docs/x"})),
        ("view_file", json!({"path": "secrets/key"})),
        ("search_text", json!({"pattern": "canary"})),
        ("shell", json!({"command": "cat docs/x; grep -r canary . ; cat secrets/key"})),
    ]
    .map(|(tool, args)| (tool.to_owned(), args.to_string()))
    .to_vec();
    let mut script: Vec<_> = calls
        .iter()
        .map(|(t, a)| dunnock_testkit::model::Say::calls(&[(t.as_str(), a.as_str())]).into())
        .collect();
    script.push(dunnock_testkit::model::Say::text("done").into());
    let server = dunnock_testkit::server::ScriptedServer::start(script).await;
    world.serve(&server);
    let mut command = world.command(&["run", "go"]);
    command.env("DUNNOCK_DENY_PATHS", "secrets/**");
    let came = World::came(&server, crate::ran(command).await);
    match came.code == 0 && !came.sent.contains(super::world::SECRET) {
        true => Ok("kept from every tool".into()),
        false => Err(format!("ended with {}: {}", came.code, came.sent)),
    }
}

async fn each(test: &str) {
    let mut results = Vec::new();
    for case in of(test) {
        results.push((case.id.clone(), one(&case).await));
    }
    judge(test, results);
}

/// Holds W10: 33 cases through the program.
#[tokio::test(flavor = "multi_thread")]
async fn paths_that_lead_elsewhere() {
    each("cases::files::paths_that_lead_elsewhere").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_others_act_on() {
    each("cases::files::files_that_others_act_on").await;
}
