//! A planner that fixes a failing test. The model is scripted, so that this can be run anywhere;
//! with a real one only the endpoint differs.

#![expect(clippy::expect_used, clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use dunnock_agent::{Agent, Endpoint, Error, Launcher, Outcome, Task};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: this program is also the process that starts commands.
    let launcher = match Launcher::run_if_requested() {
        Ok(launcher) => launcher,
        Err(code) => return code,
    };
    let runtime = dunnock_agent::tokio::runtime::Runtime::new().expect("a runtime");
    let outcome = runtime.block_on(async {
        let home = tempfile::tempdir().expect("a folder");
        let project = project(home.path());
        let server = scripted().await;
        fix(home.path(), &project, &server.base_url(), launcher).await
    });
    match outcome {
        Ok(outcome) => {
            println!(
                "success: {}, iterations: {}, proven: {}",
                outcome.success, outcome.iterations, outcome.proven
            );
            println!("{}", outcome.summary);
            if outcome.success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn fix(data: &Path, project: &Path, url: &str, launcher: Launcher) -> Result<Outcome, Error> {
    let agent = Agent::builder(data.join("data"), launcher)
        .endpoint("script", Endpoint::chat(url))
        .model("script/scripted")
        .build()
        .await?;
    let task = Task::new("Make the test pass", project)
        .check("python3 -B test_add.py")
        .planner()
        .max_steps(5);
    agent.run(task).await
}

/// A project whose test fails.
fn project(home: &Path) -> std::path::PathBuf {
    let project = home.join("project");
    std::fs::create_dir_all(&project).expect("a folder");
    std::fs::write(project.join("add.py"), "def add(a, b):\n    return a - b\n").expect("a file");
    std::fs::write(project.join("test_add.py"), "from add import add\nassert add(2, 3) == 5\n")
        .expect("a file");
    project
}

/// Looks first, then fixes it.
async fn scripted() -> dunnock_testkit::server::ScriptedServer {
    use dunnock_testkit::model::Say;
    let diff = "--- a/add.py\n+++ b/add.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - \
                b\n+    return a + b\n";
    let plan = |thought: &str, action: serde_json::Value| {
        Say::text(
            &serde_json::json!({ "thought": thought, "plan": [], "actions": [action] }).to_string(),
        )
        .into()
    };
    let look = serde_json::json!({ "tool": "read_file", "path": "add.py" });
    let edit = serde_json::json!({ "tool": "apply_diff", "path": "add.py", "diff": diff });
    dunnock_testkit::server::ScriptedServer::start(vec![
        plan("I look.", look),
        plan("It subtracts.", edit),
    ])
    .await
}
