//! Nothing leaves the machine but what goes to the model (A3).

use crate::cases::world::World;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::ScriptedServer;

/// G313: every `connect` of a whole run, of the program and all it starts.
/// Holds A3: every connect of a run, of lists, undo and sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_connects_to_the_model_and_to_nothing_else() {
    let world = World::new("connect");
    let script = vec![
        Say::calls(&[(
            "shell",
            r#"{"command":"cargo --version; git status --short; python3 script.py"}"#,
        )])
        .into(),
        Say::calls(&[("write_file", r#"{"path":"n.txt","content":"x"}"#)]).into(),
        Say::text("done").into(),
    ];
    let server = ScriptedServer::start(script).await;
    world.serve(&server);
    let log = world.home.dir.path().join("connects");
    for args in [
        vec!["run", "--verify", "true", "go"],
        vec!["run", "--json", "go"],
        vec!["sessions", "list"],
        vec!["undo"],
        vec!["sandbox"],
    ] {
        let plain = world.command(&args);
        let mut traced = std::process::Command::new("strace");
        traced.args(["-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-o"]).arg(&log).arg("--");
        traced
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(world.home.project())
            .env_clear();
        traced.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
        let ran = crate::ran(traced).await;
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        let text = std::fs::read_to_string(&log).unwrap();
        let port = server.base_url().rsplit(':').next().unwrap().trim_end_matches("/v1").to_owned();
        let inet = |line: &&str| line.contains("AF_INET");
        let other: Vec<&str> = text
            .lines()
            .filter(inet)
            .filter(|l| !(l.contains("127.0.0.1") && l.contains(&format!("htons({port})"))))
            .collect();
        let model = text.lines().filter(inet).count() - other.len();
        println!("{args:?}: {model} connections to the model, {} others", other.len());
        assert!(other.is_empty(), "{args:?}: {other:?}");
        assert_eq!(model > 0, args[0] == "run", "{args:?}");
    }
}
