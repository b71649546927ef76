//! Tools that leave a trace: every start of a call is one line in a file, so that a doubled effect
//! cannot hide.

use dunnock_ports::{Blob, BoxFuture, CancellationToken, DeltaSink, ToolCall, Tools};
use dunnock_proto::{Delta, Finished, Outcome};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tools with a script in their arguments: `{"say":"x","ms":20,"kb":5,"fail":true,"panic":true}`.
pub struct ScriptedTools {
    traces: PathBuf,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Args {
    say: String,
    ms: u64,
    kb: usize,
    fail: bool,
    panic: bool,
    command: String,
}

impl ScriptedTools {
    /// Writes its traces to this file.
    #[must_use]
    pub fn new(traces: &Path) -> Self {
        Self { traces: traces.into() }
    }

    /// The lines so far: call, tool, process.
    #[must_use]
    pub fn traces(path: &Path) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|l| l.split_once(' '));
        lines.map(|(call, tool)| (call.to_owned(), tool.to_owned())).collect()
    }
}

impl Tools for ScriptedTools {
    fn run(
        &self,
        job: ToolCall,
        live: DeltaSink,
        halt: CancellationToken,
    ) -> BoxFuture<'_, (Finished, Vec<Blob>)> {
        Box::pin(async move {
            let call = job.call.id;
            let args: Args = serde_json::from_str(job.call.args()).unwrap_or_default();
            let mut file =
                std::fs::File::options().create(true).append(true).open(&self.traces).unwrap();
            file.write_all(format!("{call} {}\n", job.call.part.tool).as_bytes()).unwrap();
            if args.panic {
                // Unwinds without a word: what a test prints of a panic is then a failure.
                std::panic::resume_unwind(Box::new("the script says so"));
            }
            let done = |outcome, shown: String, full| Finished {
                full,
                exit: Some(0),
                ms: 1,
                isolation: Some(job.isolation),
                ..Finished::plain(call, outcome, &shown)
            };
            if args.ms > 0 {
                live(Delta::Output {
                    call,
                    offset: 0,
                    stream: "out".into(),
                    text: "working\n".into(),
                });
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(args.ms)) => {}
                    () = halt.cancelled() => return (done(Outcome::Interrupted, "cut".into(), None), Vec::new()),
                }
            }
            let blobs =
                if args.kb > 0 { vec![Blob::new(vec![b'x'; args.kb << 10])] } else { Vec::new() };
            let full = blobs.first().map(|b: &Blob| b.hash);
            let outcome =
                if args.fail || args.command == "false" { Outcome::Failed } else { Outcome::Done };
            (done(outcome, format!("{}{}", args.say, args.command), full), blobs)
        })
    }
}
