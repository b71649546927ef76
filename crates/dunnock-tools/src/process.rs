//! Runs a program: streams its output, and stops it on cancellation or timeout.
//!
//! Invariant: when `run` returns, everything the program started is dead (on Linux; elsewhere, its
//! process group). After `run_until`, the caller has what still runs.

use crate::captured_output::CapturedOutput;
use crate::child::{Child, Chunk, Exit, Input, Start};
use crate::context::CallContext;
use crate::environment;
use crate::limits::{Limits, Shell};
use crate::output::{ToolOutput, ToolStatus};
#[cfg(target_os = "linux")]
use crate::sandbox::CallSandbox;
use dunnock_core::policy;
use dunnock_proto::{CommandText, Delta, SeenFile, count};
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long to wait for remaining output after the program is gone: another process may hold the
/// pipe.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long to wait for output that a command wrote before its own process ended.
const LEFT_OUTPUT: Duration = Duration::from_millis(20);
/// How often to check whether a program created something it must not.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// How long a killed program may take to disappear.
const GONE: Duration = Duration::from_secs(6);
/// Time between asking a program to end and killing it.
const GRACE: Duration = Duration::from_millis(50);

/// How a program ended whose launcher died: it may have done all of its work, or none.
pub(crate) const LOST: &str =
    "outcome unknown: the process that starts commands died while this ran";

/// A program with its arguments and its folder.
pub(crate) struct Program {
    words: Vec<String>,
    /// The command as it was given.
    label: String,
    folder: Option<PathBuf>,
    /// In addition to what every program gets.
    env: &'static [(&'static str, &'static str)],
    /// Report its two streams separately.
    pub(crate) apart: bool,
    /// What it leaves running may continue.
    lasting: bool,
    /// What it does with git.
    #[cfg(target_os = "linux")]
    pub(crate) git: crate::sandbox::GitUse,
    /// What it gets of the person's logins, if that was approved.
    #[cfg(target_os = "linux")]
    pub(crate) credentials: crate::login::Credentials,
    /// Stash entries that it applies before it drops them.
    #[cfg_attr(not(unix), expect(dead_code, reason = "history is not watched"))]
    pops: usize,
}

impl Program {
    /// A command line for the shell.
    pub(crate) fn line(shell: Shell, line: &str) -> Self {
        let words =
            shell.words().iter().map(|w| (*w).to_owned()).chain([line.to_owned()]).collect();
        let pops = policy::pops_stash(&CommandText::Line(line.to_owned()));
        Self { pops, label: line.to_owned(), ..Self::words(words) }
    }
    /// A program run directly.
    pub(crate) fn words(words: Vec<String>) -> Self {
        Self {
            pops: policy::pops_stash(&CommandText::Words(words.clone())),
            label: words.join(" "),
            words,
            folder: None,
            env: &[],
            apart: false,
            lasting: false,
            #[cfg(target_os = "linux")]
            git: Default::default(),
            #[cfg(target_os = "linux")]
            credentials: Default::default(),
        }
    }
    /// Sets these variables, overriding any other value.
    pub(crate) fn with(self, env: &'static [(&'static str, &'static str)]) -> Self {
        Self { env, ..self }
    }
    fn surrounded(&self, mut env: Vec<(String, String)>) -> Vec<(String, String)> {
        env.retain(|(name, _)| !self.env.iter().any(|(own, _)| own == name));
        env.extend(self.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        env
    }
    /// Another program in the same folder.
    #[cfg(target_os = "linux")]
    pub(crate) fn beside(&self, words: Vec<String>) -> Self {
        Self { folder: self.folder.clone(), ..Self::words(words) }
    }
    /// Runs it in a folder below the root.
    pub(crate) fn within(self, folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..self }
    }
    /// What it leaves running may continue.
    pub(crate) fn lasting(self) -> Self {
        Self { lasting: true, ..self }
    }
    /// Whether it gets more than other commands with the same access: a login, or files of git.
    pub(crate) fn is_trusted_with_more(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.git.checkout || self.git.fetches || self.credentials != Default::default();
        #[cfg(not(target_os = "linux"))]
        false
    }
    /// The command as it was given.
    pub(crate) fn label(&self) -> String {
        self.label.clone()
    }
    /// Its name, what is needed to start it, and what to watch while it runs.
    pub(crate) fn prepare(
        self,
        context: &CallContext,
        input: Input,
    ) -> Result<(String, Start, Watch), String> {
        let Some((name, args)) = self.words.split_first() else {
            return Err("the command is empty".into());
        };
        let path = context.program(name).to_string_lossy().into_owned();
        let words = std::iter::once(path).chain(args.iter().cloned()).collect();
        let folder =
            self.folder.as_deref().unwrap_or(context.root.path()).to_string_lossy().into_owned();
        #[cfg(target_os = "linux")]
        {
            let (mut env, mut spec, mut watch) =
                (environment::of_call(context, input), None, Watch::default());
            let mut repositories = None;
            if let Some(layout) = context.approved() {
                // What names a folder that other commands can write to is not passed on.
                let inside = |value: &str| {
                    std::env::split_paths(value).any(|path| {
                        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                        [&path, &real].iter().any(|path| path.starts_with(context.root.path()))
                    })
                };
                env.retain(|(name, value)| name == "HOME" || !inside(value));
                env = environment::with(env, layout.approved_env(context.root.path()));
            }
            if let Some(boxed) = CallSandbox::of(context, self.git, &self.credentials)? {
                env = environment::with(env, boxed.env);
                let short_path = context
                    .approved()
                    .is_some_and(|layout| layout.shortens_path(context.root.path()));
                watch = Watch {
                    guards: boxed.guards,
                    level: Some(context.level),
                    network: context.access.network,
                    proxy: boxed.proxy,
                    short_path,
                    history: None,
                };
                spec = Some(boxed.spec);
                repositories = Some(boxed.repositories);
            }
            watch.history =
                self.history(context, &crate::sandbox::git_folders(context, repositories.as_ref()));
            let env = self.surrounded(env);
            let lasting = self.lasting;
            Ok((name.clone(), Start { words, folder, env, input, lasting, spec }, watch))
        }
        #[cfg(not(target_os = "linux"))]
        Ok((
            name.clone(),
            Start {
                words,
                folder,
                env: self.surrounded(environment::of_call(context, input)),
                input,
                lasting: self.lasting,
            },
            self.watch(context),
        ))
    }

    /// Watches git's history where there is no sandbox.
    #[cfg(not(target_os = "linux"))]
    fn watch(&self, context: &CallContext) -> Watch {
        #[cfg(unix)]
        return Watch { history: self.history(context, &[PathBuf::from(".git")]) };
        #[cfg(not(unix))]
        {
            let _ = context;
            Watch::default()
        }
    }

    /// Records git's history before the program runs.
    #[cfg(unix)]
    fn history(
        &self,
        context: &CallContext,
        found: &[PathBuf],
    ) -> Option<crate::git_history::HistoryWatch> {
        let root = context.root.path();
        let is_folder =
            |dir: &&PathBuf| root.join(dir).symlink_metadata().is_ok_and(|about| about.is_dir());
        let found: Vec<PathBuf> = found.iter().filter(is_folder).cloned().collect();
        let step = context.call.step.0;
        context.histories.watch(root, &context.session, step, &found, self.pops)
    }
}

/// Guards protected files while a program runs, and explains what the sandbox did when it has
/// ended.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    #[cfg(unix)]
    history: Option<crate::git_history::HistoryWatch>,
    #[cfg(target_os = "linux")]
    guards: Vec<crate::guard::Guard>,
    /// Its sandbox level, if it was sandboxed.
    #[cfg(target_os = "linux")]
    level: Option<dunnock_proto::Isolation>,
    /// It had access to the network.
    #[cfg(target_os = "linux")]
    network: bool,
    /// The proxy through which it reaches named hosts.
    #[cfg(target_os = "linux")]
    proxy: Option<std::sync::Arc<crate::proxies::NetworkProxy>>,
    /// Its `PATH` lacks folders of the workspace.
    #[cfg(target_os = "linux")]
    short_path: bool,
}

impl Watch {
    /// Checks while a program runs, so that what it must not create is gone before anything acts on
    /// it.
    pub(crate) fn look(&self) {
        #[cfg(target_os = "linux")]
        self.guards.iter().for_each(crate::guard::Guard::look);
    }

    /// An edit tool has given these files their content: the person allowed it, so they stay.
    pub(crate) fn accept(&mut self, edited: &[SeenFile]) {
        #[cfg(target_os = "linux")]
        for guard in &mut self.guards {
            edited.iter().for_each(|file| guard.accept(Path::new(&file.path), file.hash));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = edited;
    }

    /// Tells the model what the sandbox did to a finished program, and what the program did to git's
    /// history; empty if neither did anything.
    pub(crate) fn over(&mut self, failed: bool, output: &str) -> String {
        let said = self.sandbox_over(failed, output);
        #[cfg(unix)]
        if let Some(history) = &mut self.history {
            let all = [said, history.over()].into_iter();
            return all.filter(|said| !said.is_empty()).collect::<Vec<_>>().join("\n");
        }
        said
    }

    /// Tells the model which hosts a finished program could not reach.
    pub(crate) fn add_missing_network(&self, output: &mut ToolOutput) {
        #[cfg(target_os = "linux")]
        if let Some(proxy) = &self.proxy {
            let failed = output.end == ToolStatus::Failed;
            let missing = proxy.missing(failed, &output.text);
            if let Some((text, missing)) = missing {
                output.add(&text);
                output.missing_network = missing;
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = output;
    }

    /// What the sandbox did, without git's history.
    pub(crate) fn sandbox_over(&self, failed: bool, output: &str) -> String {
        #[cfg(target_os = "linux")]
        {
            let mut said = Vec::new();
            let back: Vec<String> =
                self.guards.iter().flat_map(crate::guard::Guard::over).collect();
            if !back.is_empty() {
                let names = back.join(", ");
                said.push(format!(
                    "[sandbox: commands may not create or change protected files; reverted unless noted: \
                     {names}]"
                ));
            }
            if failed && self.short_path {
                said.push(
                    "[with more access, programs in folders of the workspace are not on PATH; \
                     name them by path, for instance .venv/bin/pip]"
                        .into(),
                );
            }
            // A refusal by the kernel looks like any other error: if the output shows one, the
            // sandbox may be the reason.
            let refused = [
                "operation not permitted",
                "permission denied",
                "read-only file system",
                "eperm",
                "eacces",
                "erofs",
                "permissionerror",
            ];
            let output = output.to_lowercase();
            let lost = failed && crate::proxies::shows_lost_host(&output);
            let seen = |words: &[&str]| failed && words.iter().any(|word| output.contains(word));
            match self.level {
                Some(dunnock_proto::Isolation::C) if seen(&refused) => said.push(
                    "[sandbox: level C allows no sockets except socketpair, and no access to /tmp \
                     (use $TMPDIR); \"dunnock doctor\" tells the person how to get level A]"
                        .into(),
                ),
                Some(level) if seen(&refused) => said.push(format!(
                    "[sandbox: level {level:?}; commands can write only to this folder (with edits = \
                     \"tools-only\" only to its build folders), $TMPDIR and their caches, and not to \
                     .git/config, hooks and similar files]"
                )),
                Some(_) if !self.network && self.proxy.is_none() && lost => said.push(
                    "[sandbox: without \"network\": true, a command has at most a private loopback; \
                     call again with it to ask the person for network access]"
                        .into(),
                ),
                Some(_) | None => {}
            }
            said.join("\n")
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (failed, output);
            String::new()
        }
    }
}

/// Why we stopped waiting for a program.
enum Over {
    Exited(Exit),
    TimedOut,
    /// It is still running, and continues.
    Slow,
    Halted,
}

/// Runs a program to completion, or until it takes too long.
pub(crate) async fn run(context: &CallContext, program: Program, most: Duration) -> ToolOutput {
    match run_until(context, program, most, WhenSlow::Stop).await {
        Ran::Ended(output) | Ran::Continues(output, _) => output,
    }
}

/// What happens to a program that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenSlow {
    /// It is stopped.
    Stop,
    /// It continues.
    Continue,
}

/// How a program that may outlive its call ended.
pub(crate) enum Ran {
    /// It ended, and everything that it started.
    Ended(ToolOutput),
    /// Something still runs; the output is what came so far.
    Continues(ToolOutput, Box<RunningProgram>),
}

/// A program that is still running when its call ends.
pub(crate) struct RunningProgram {
    pub(crate) label: String,
    pub(crate) child: Child,
    pub(crate) chunks: mpsc::Receiver<Chunk>,
    pub(crate) watch: Watch,
    /// It was slow, as opposed to something that it left running.
    pub(crate) ends_by_itself: bool,
}

/// Runs a program until it ends or has taken this long. If it was marked as `lasting`, what it leaves
/// running continues.
pub(crate) async fn run_until(
    context: &CallContext,
    program: Program,
    most: Duration,
    when_slow: WhenSlow,
) -> Ran {
    let label = program.label();
    let apart = program.apart.then(Default::default);
    let (name, start, mut watch) = match program.prepare(context, Input::Nothing) {
        Ok(start) => start,
        Err(error) => return Ran::Ended(Err::<String, _>(error).into()),
    };
    let (send, mut chunks) = mpsc::channel(16);
    let (mut child, _) = match Child::start(context, start, send) {
        Ok(started) => started,
        Err(error) => {
            let error = format!("{name} cannot be started: {error}");
            return Ran::Ended(Err::<String, _>(error).into());
        }
    };
    let mut output = Output {
        kept: CapturedOutput::new(&context.limits.spool),
        apart,
        offset: 0,
        pending: Default::default(),
        context,
    };
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let deadline = tokio::time::sleep(most);
    tokio::pin!(deadline);
    let over = loop {
        tokio::select! {
            biased;
            () = context.halt.cancelled() => break Over::Halted,
            () = &mut deadline => match when_slow {
                WhenSlow::Continue => break Over::Slow,
                WhenSlow::Stop => break Over::TimedOut,
            },
            _ = ticks.tick() => watch.look(),
            exit = child.ended() => break Over::Exited(exit),
            Some(chunk) = chunks.recv() => output.take(chunk),
        }
    };
    if matches!(over, Over::Slow | Over::Exited(Exit::Continues(..))) {
        // What was written before its own process ended belongs to the call.
        let until = tokio::time::Instant::now() + LEFT_OUTPUT;
        // What keeps writing is always ready: only the clock ends this.
        while tokio::time::Instant::now() < until
            && let Ok(Some(chunk)) = tokio::time::timeout_at(until, chunks.recv()).await
        {
            output.take(chunk);
        }
        let slow = matches!(over, Over::Slow);
        let mut said = said(output.kept, None, over, most, &name, context);
        let more = watch.sandbox_over(said.end == ToolStatus::Failed, &said.text);
        watch.add_missing_network(&mut said);
        said.add(&more);
        let running = RunningProgram { label, child, chunks, watch, ends_by_itself: slow };
        return Ran::Continues(said, Box::new(running));
    }
    if !matches!(over, Over::Exited(_)) {
        stop(&mut child).await;
    }
    let last = async {
        while let Some(chunk) = chunks.recv().await {
            output.take(chunk);
        }
    };
    // Everything that could hold the pipes is dead, so they contain all that is left.
    let _ = tokio::time::timeout(LAST_WORDS, last).await;
    let apart = output
        .apart
        .take()
        .map(|streams| streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    let mut said = said(output.kept, apart, over, most, &name, context);
    let more = watch.over(said.end == ToolStatus::Failed, &said.text);
    watch.add_missing_network(&mut said);
    said.add(&more);
    Ran::Ended(said)
}

/// What a person reads about a process that continues when the session has ended; `None` if it ends
/// with it.
#[cfg(target_os = "linux")]
pub(crate) fn kept(context: &CallContext, label: &str) -> Option<dunnock_sandbox::KeepRequest> {
    let folder = context.limits.kept_folder.clone().filter(|_| context.keeps_processes())?;
    dunnock_private::create_folder(&folder).ok()?;
    Some(dunnock_sandbox::KeepRequest {
        folder,
        session: context.session.to_string(),
        workspace: context.root.path().to_string_lossy().into_owned(),
        command: label.chars().take(200).collect(),
    })
}

/// Names programs with their ports.
#[cfg(target_os = "linux")]
pub(crate) fn described(programs: &[dunnock_sandbox::Program]) -> String {
    let mut all: Vec<String> = Vec::new();
    for dunnock_sandbox::Program { name, ports, .. } in programs {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let said = match ports.as_slice() {
            [] => name.clone(),
            [port] => format!("{name} on port {port}"),
            ports => format!("{name} on ports {}", ports.join(", ")),
        };
        if !all.contains(&said) {
            all.push(said);
        }
    }
    if all.is_empty() { "unknown programs".into() } else { all.join(", ") }
}

/// Asks the program to end, then kills it, and waits until it is gone.
pub(crate) async fn stop(child: &mut Child) -> Option<Exit> {
    child.end();
    let gone = async |child: &mut Child| loop {
        match child.ended().await {
            Exit::Continues(..) => {}
            exit => return exit,
        }
    };
    if let Ok(exit) = tokio::time::timeout(GRACE, gone(child)).await {
        return Some(exit);
    }
    child.kill();
    tokio::time::timeout(GONE, gone(child)).await.ok()
}

/// The end of a text within both limits; what is left out is lost.
pub(crate) fn shortened(text: &str, lines: usize, bytes: usize) -> String {
    let skipped = text.lines().count().saturating_sub(lines);
    let from = text.split_inclusive('\n').take(skipped).map(str::len).sum::<usize>();
    let from = text.ceil_char_boundary(from.max(text.len().saturating_sub(bytes)));
    let rest = text.get(from..).unwrap_or_default();
    if from > 0 {
        format!("[{from} bytes of older output left out]\n{rest}")
    } else {
        rest.to_owned()
    }
}

/// Says how a command ended that left processes behind.
fn survivors(end: &str, left: u32) -> String {
    let left = count(left, "process");
    format!("[{end}; {left} that it started could not be killed]")
}

fn said(
    kept: CapturedOutput,
    apart: Option<[String; 2]>,
    over: Over,
    most: Duration,
    name: &str,
    context: &CallContext,
) -> ToolOutput {
    let (lines, bytes) = (context.limits.output_lines, context.limits.output_bytes);
    let shown = kept.shown(lines, bytes, context.call);
    let mut text = match apart {
        Some([out, err]) if !(out.is_empty() && err.is_empty()) => {
            let stream = |text: &str| match text.trim_end_matches('\n') {
                "" => "(nothing)".to_owned(),
                text => shortened(text, lines / 2, bytes / 2),
            };
            format!("standard output:\n{}\nstandard error:\n{}", stream(&out), stream(&err))
        }
        Some(_) | None => shown.text,
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (end, exit, last) = match over {
        Over::Exited(Exit::Code(code, left)) if left > 0 => {
            (ToolStatus::Failed, Some(code), survivors(&format!("exit {code}"), left))
        }
        Over::Exited(Exit::Signal(signal, left)) if left > 0 => {
            (ToolStatus::Failed, None, survivors(&format!("ended by signal {signal}"), left))
        }
        Over::Exited(Exit::Code(0, _)) if text.is_empty() => {
            (ToolStatus::Done, Some(0), "(no output)".to_owned())
        }
        Over::Exited(Exit::Code(0, _)) => (ToolStatus::Done, Some(0), String::new()),
        Over::Exited(Exit::Code(code, _)) => {
            (ToolStatus::Failed, Some(code), format!("[exit {code}]"))
        }
        Over::Exited(Exit::Signal(signal, _)) => {
            (ToolStatus::Failed, None, format!("[ended by signal {signal}]"))
        }
        Over::Exited(Exit::TooMuch(what)) => {
            let Limits { processes, memory, .. } = *context.limits;
            let bound = if what == "memory" {
                format!("{} MB of memory", memory >> 20)
            } else {
                count(processes, "process")
            };
            (ToolStatus::Failed, None, format!("[stopped: it used more than {bound}]"))
        }
        Over::Exited(Exit::NotStarted(why)) => {
            (ToolStatus::Failed, None, format!("{name} cannot be started: {why}"))
        }
        Over::Exited(Exit::Continues(Some(0), _)) => (ToolStatus::Done, Some(0), String::new()),
        Over::Exited(Exit::Continues(Some(code), _)) => {
            (ToolStatus::Failed, Some(code), format!("[exit {code}]"))
        }
        Over::Exited(Exit::Continues(None, signal)) => {
            (ToolStatus::Failed, None, format!("[ended by signal {signal}]"))
        }
        Over::Slow => (ToolStatus::Done, None, String::new()),
        Over::Exited(Exit::Lost) => (ToolStatus::Unknown, None, format!("[{LOST}]")),
        Over::TimedOut => (
            ToolStatus::Failed,
            None,
            format!("[stopped: it took longer than {} s]", most.as_secs()),
        ),
        Over::Halted => (ToolStatus::Cut, None, "[stopped: the person interrupted]".to_owned()),
    };
    text.push_str(&last);
    let text = if last.is_empty() { text.trim_end_matches('\n').to_owned() } else { text };
    ToolOutput {
        end,
        text,
        full: shown.full,
        streams: shown.streams,
        exit,
        seen_files: Vec::new(),
        diff: None,
        left_process: false,
        missing_network: None,
        image: None,
    }
}

/// Output so far, on its way to the log and to live subscribers.
struct Output<'a> {
    kept: CapturedOutput,
    /// The end of each stream, if they are reported separately.
    apart: Option<[Vec<u8>; 2]>,
    offset: u64,
    /// For each stream, the first bytes of a character that is still incomplete.
    pending: [Vec<u8>; 2],
    context: &'a CallContext,
}

impl Output<'_> {
    fn take(&mut self, chunk: Chunk) {
        self.kept.push(chunk.stream, &chunk.bytes);
        if let Some([out, err]) = &mut self.apart {
            let stream = if chunk.stream == "out" { out } else { err };
            stream.extend_from_slice(&chunk.bytes);
            let most = self.context.limits.output_bytes.saturating_mul(2);
            if stream.len() > most.saturating_mul(2) {
                stream.drain(..stream.len() - most);
            }
        }
        let [out, err] = &mut self.pending;
        let pending = if chunk.stream == "out" { out } else { err };
        let mut bytes = std::mem::take(pending);
        bytes.extend_from_slice(&chunk.bytes);
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            *pending = bytes.split_off(error.valid_up_to());
        }
        let text = String::from_utf8_lossy(&bytes);
        if !text.is_empty() {
            let (call, offset, stream) = (self.context.call, self.offset, chunk.stream.into());
            self.offset += text.len() as u64;
            (self.context.live)(Delta::Output { call, offset, stream, text: text.into() });
        }
    }
}
