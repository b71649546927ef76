//! The README, tried as a new user would: its commands, one block after the other, in an empty home
//! without Rust.

use crate::Home;
use dunnock_testkit::model::Say;
use dunnock_testkit::server::{Rules, ScriptedServer};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The blocks that a reader would type.
fn blocks(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let parts = text.split("\n```sh\n").skip(1);
    parts.map(|part| part.split("\n```").next().unwrap().to_owned()).collect()
}

/// The binary to try: the one that people download, if it is given, otherwise this build's.
fn binary() -> PathBuf {
    std::env::var_os("DUNNOCK_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_dunnock").into(), PathBuf::from)
}

#[tokio::test(flavor = "multi_thread")]
async fn its_commands_work_from_an_empty_home() {
    let write = r#"{"path":"haiku.txt","content":"Quiet in the hedge\n","overwrite":true}"#;
    let script = vec![
        Say::calls(&[("write_file", write)]).into(),
        Say::text("A haiku is in haiku.txt.").into(),
        Say::text("And another.").into(),
    ];
    let server =
        ScriptedServer::with(script, Rules { models: vec!["qwen3".into()], ..Rules::default() })
            .await;
    let home = Home::empty();
    let bin = home.dir.path().join(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy(binary(), bin.join("dunnock")).unwrap();
    let blocks = blocks("README.md");
    assert!(blocks.len() >= 3, "{} blocks", blocks.len());
    let began = Instant::now();
    for (n, block) in blocks.iter().enumerate() {
        let script =
            format!("set -euo pipefail\n! command -v cargo\n! command -v rustc\n{block}\n");
        let mut command = home.command_of("bash".as_ref(), &["-c", &script]);
        command.env_clear().env("HOME", home.dir.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        // The server stands in for Ollama on its usual port.
        command.env("DUNNOCK_PROVIDERS__OLLAMA__BASE_URL", server.base_url());
        let ran = crate::ran(command).await;
        assert_eq!(ran.code, 0, "block {}:\n{block}\n{}\n{}", n + 1, ran.out, ran.err);
        if n == 0 {
            println!("first answer after {:?} with {}", began.elapsed(), binary().display());
            dunnock_testkit::timing::figure(
                "the first answer of the README",
                began.elapsed(),
                Duration::from_secs(120),
            );
            assert!(ran.out.ends_with("A haiku is in haiku.txt.\n"), "{}", ran.out);
            assert_eq!(home.read("haiku.txt"), "Quiet in the hedge\n");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_a_session_that_travels_ends_proven() {
    let fix = r#"{"command":"echo fixed > code.txt"}"#;
    let script = vec![Say::calls(&[("shell", fix)]).into(), Say::text("It is fixed.").into()];
    let server = ScriptedServer::start(script).await;
    let home = Home::with(&server);
    home.put("code.txt", "broken\n");
    let bin = home.dir.path().join(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy(binary(), bin.join("dunnock")).unwrap();
    let blocks = blocks("docs/concepts/long-sessions.md");
    assert_eq!(blocks.len(), 1);
    let script = format!("set -euo pipefail\n{}\n", blocks[0]);
    let mut command = home.command_of("bash".as_ref(), &["-c", &script]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let ran = crate::ran(command).await;
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(
        ran.out.contains("It is fixed.") && ran.out.contains("**Proven: every check passed"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("it **failed before** the work"), "{}", ran.out);
    assert_eq!(home.read("code.txt"), "broken\n", "only the copy was changed");
}
