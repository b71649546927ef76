//! Follows a task, and answers its questions from code: the model's own, and whether its commands
//! may run.

#![expect(clippy::expect_used, clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use dunnock_agent::{
    Agent, Approve, Endpoint, Error, Event, Launcher, Outcome, QuestionKind, Reply, Task,
};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let launcher = match Launcher::run_if_requested() {
        Ok(launcher) => launcher,
        Err(code) => return code,
    };
    let runtime = dunnock_agent::tokio::runtime::Runtime::new().expect("a runtime");
    let outcome = runtime.block_on(async {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        std::fs::create_dir_all(&project).expect("a folder");
        let server = scripted().await;
        let agent = Agent::builder(home.path().join("data"), launcher)
            .endpoint("script", Endpoint::chat(server.base_url()))
            .model("script/scripted")
            .build()
            .await?;
        let outcome = follow(&agent, &project).await?;
        let made: Vec<String> = ["greeting.txt", "unwanted.txt"]
            .into_iter()
            .filter(|name| project.join(name).exists())
            .map(|name| {
                format!(
                    "{name}: {}",
                    std::fs::read_to_string(project.join(name)).unwrap_or_default().trim()
                )
            })
            .collect();
        println!("made {made:?}");
        Ok::<_, Error>(outcome)
    });
    match outcome {
        Ok(outcome) => {
            println!("success: {}, {}", outcome.success, outcome.summary);
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

async fn follow(agent: &Agent, project: &Path) -> Result<Outcome, Error> {
    let task = Task::new("Write a greeting", project).approve(Approve::Ask).interactive();
    let mut run = agent.start(task).await?;
    while let Some(event) = run.next().await? {
        match event {
            Event::Asked(question) => {
                let reply = match &question.kind {
                    QuestionKind::Person { choices, .. } => {
                        Reply::Text(choices.first().cloned().unwrap_or_default())
                    }
                    QuestionKind::Approval { arguments, .. } if arguments.contains("unwanted") => {
                        Reply::No(Some("only the greeting".into()))
                    }
                    _ => Reply::Yes,
                };
                println!("asked: {:?}, answered: {reply:?}", question.kind);
                run.answer(&question, reply).await?;
            }
            Event::CallFinished { tool, ok, .. } => {
                println!("{tool}: {}", if ok { "done" } else { "not done" })
            }
            _ => {}
        }
    }
    run.finish().await
}

/// Asks in which language, then writes two files.
async fn scripted() -> dunnock_testkit::server::ScriptedServer {
    use dunnock_testkit::model::Say;
    let ask = r#"{"question":"In which language?","choices":["German","French"]}"#;
    let script = vec![
        Say::calls(&[("ask_person", ask)]).into(),
        Say::calls(&[
            ("write_file", r#"{"path":"greeting.txt","content":"Guten Tag\n"}"#),
            ("shell", r#"{"command":"touch unwanted.txt"}"#),
        ])
        .into(),
        Say::text("The greeting is written.").into(),
    ];
    dunnock_testkit::server::ScriptedServer::start(script).await
}
