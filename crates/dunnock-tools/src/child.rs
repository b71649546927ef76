//! A child process, started by the launcher where there is one.

use tokio::sync::mpsc;

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The code, and how many processes it started could not be killed.
    Code(i32, u32),
    Signal(i32, u32),
    /// Killed for exceeding a limit; of what.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only the launcher counts"))]
    TooMuch(&'static str),
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "without a launcher that is known at once")
    )]
    NotStarted(String),
    /// Its own process ended, with a code or a signal; what it left running continues. Another
    /// `Exit` follows when that is gone.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only the launcher knows"))]
    Continues(Option<i32>, i32),
    Lost,
}

/// One piece of output.
pub(crate) struct Chunk {
    pub(crate) stream: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// A child's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Nothing,
    /// Whatever we write to the pipe.
    Pipe,
    /// A terminal, which also receives its output.
    Terminal,
}

/// A program to start.
pub(crate) struct Start {
    pub(crate) words: Vec<String>,
    pub(crate) folder: String,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) input: Input,
    /// What it leaves running may continue.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no launcher"))]
    pub(crate) lasting: bool,
    /// The sandbox it runs in, if any.
    #[cfg(target_os = "linux")]
    pub(crate) spec: Option<dunnock_sandbox::SandboxSpec>,
}

async fn read(
    stream: &'static str,
    mut from: impl tokio::io::AsyncRead + Unpin,
    send: mpsc::Sender<Chunk>,
) {
    use tokio::io::AsyncReadExt as _;
    let mut buffer = vec![0; 16 << 10];
    while let Ok(n) = from.read(&mut buffer).await {
        let bytes = buffer.get(..n).unwrap_or_default().to_vec();
        if n == 0 || send.send(Chunk { stream, bytes }).await.is_err() {
            return;
        }
    }
}

#[cfg(target_os = "linux")]
mod made {
    use super::{Chunk, Exit, Input, Start, read};
    use crate::context::CallContext;
    use dunnock_sandbox::{Bound, Bounds, Ended, KeepRequest, Lister, Run, Running};
    use std::fs::File;
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use tokio::net::unix::pipe;
    use tokio::sync::mpsc;

    pub(crate) struct Child {
        running: Running,
        /// Our ends of its streams, for a launcher that keeps it.
        streams: Vec<OwnedFd>,
    }

    /// Where a child's input is written.
    pub(crate) enum Writer {
        Pipe(pipe::Sender),
        Terminal(Arc<File>),
    }

    impl Writer {
        /// Writes to a pipe.
        pub(crate) async fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
            match self {
                Self::Pipe(pipe) => tokio::io::AsyncWriteExt::write_all(pipe, bytes).await,
                Self::Terminal(_) => Err(io::Error::other("it has a terminal")),
            }
        }

        pub(crate) async fn write(&mut self, text: String) -> io::Result<()> {
            match self {
                Self::Pipe(_) => self.write_bytes(text.as_bytes()).await,
                Self::Terminal(file) => {
                    let file = file.clone();
                    tokio::task::spawn_blocking(move || (&*file).write_all(text.as_bytes())).await?
                }
            }
        }
    }

    /// Opens a pseudoterminal: our side and the child's.
    fn terminal() -> io::Result<(File, OwnedFd)> {
        use rustix::fs::{Mode, OFlags};
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ptsname(&ours, Vec::new())?;
        let theirs = rustix::fs::open(
            theirs,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&theirs, size)?;
        Ok((ours.into(), theirs))
    }

    impl Child {
        /// Starts a program whose output goes to `send`.
        pub(crate) fn start(
            context: &CallContext,
            start: Start,
            send: mpsc::Sender<Chunk>,
        ) -> io::Result<(Self, Option<Writer>)> {
            let Start { words, folder, env, input, lasting, spec } = start;
            let keeps = lasting && context.keeps_processes();
            let bounds =
                Bounds { processes: context.limits.processes, memory: context.limits.memory };
            let terminal_input = input == Input::Terminal;
            let run = Run { words, folder, env, terminal: terminal_input, bounds, lasting, spec };
            if terminal_input {
                let (ours, theirs) = terminal()?;
                let fds = vec![theirs.try_clone()?, theirs.try_clone()?, theirs];
                let running = context.launcher.start(run, fds)?;
                let streams = if keeps { vec![ours.try_clone()?.into()] } else { Vec::new() };
                let ours = Arc::new(ours);
                let reader = ours.clone();
                // Reading ends when every process has closed the other side.
                std::thread::Builder::new().name("terminal".into()).stack_size(128 << 10).spawn(
                    move || {
                        let mut buffer = vec![0; 16 << 10];
                        while let Ok(n @ 1..) = (&*reader).read(&mut buffer) {
                            let bytes = buffer.get(..n).unwrap_or_default().to_vec();
                            if send.blocking_send(Chunk { stream: "out", bytes }).is_err() {
                                return;
                            }
                        }
                    },
                )?;
                return Ok((Self { running, streams }, Some(Writer::Terminal(ours))));
            }
            let (out, to_out) = io::pipe()?;
            let (err, to_err) = io::pipe()?;
            let mut fds: Vec<OwnedFd> = vec![to_out.into(), to_err.into()];
            let mut writer = None;
            let mut streams: Vec<OwnedFd> = Vec::new();
            if keeps {
                streams.extend([out.try_clone()?.into(), err.try_clone()?.into()]);
            }
            if input == Input::Pipe {
                let (from_us, to_them) = io::pipe()?;
                fds.insert(0, from_us.into());
                if keeps {
                    streams.push(to_them.try_clone()?.into());
                }
                writer = Some(Writer::Pipe(pipe::Sender::from_owned_fd(to_them.into())?));
            }
            let running = context.launcher.start(run, fds)?;
            tokio::spawn(read("out", pipe::Receiver::from_owned_fd(out.into())?, send.clone()));
            tokio::spawn(read("err", pipe::Receiver::from_owned_fd(err.into())?, send));
            Ok((Self { running, streams }, writer))
        }
        /// Waits until it and everything it started have ended.
        pub(crate) async fn ended(&mut self) -> Exit {
            match self.running.ended().await {
                Ended::Continues { code, signal } => Exit::Continues(code, signal.unwrap_or(0)),
                Ended::Exited { over: Some(Bound::Processes), .. } => Exit::TooMuch("processes"),
                Ended::Exited { over: Some(Bound::Memory), .. } => Exit::TooMuch("memory"),
                Ended::Exited { code: Some(code), left, .. } => Exit::Code(code, left),
                Ended::Exited { signal, left, .. } => Exit::Signal(signal.unwrap_or(0), left),
                Ended::Refused(why) => Exit::NotStarted(why),
                Ended::Lost => Exit::Lost,
            }
        }
        /// It keeps running; if it is kept, also when this program ends.
        pub(crate) fn background(&mut self, kept: Option<KeepRequest>) {
            self.running.background(kept, &std::mem::take(&mut self.streams));
        }
        /// Lists what runs.
        pub(crate) fn lister(&self) -> Lister {
            self.running.lister()
        }
        /// Lets it run on without us.
        pub(crate) fn release(self) {
            self.running.release();
        }
        pub(crate) fn end(&self) {
            self.running.end();
        }
        pub(crate) fn kill(&self) {
            self.running.kill();
        }
    }
}

/// Without a launcher, the child is our own, and we know only its process group.
#[cfg(not(target_os = "linux"))]
mod made {
    use super::{Chunk, Exit, Input, Start, read};
    use crate::context::CallContext;
    use std::io;
    use std::process::Stdio;
    use tokio::process::{ChildStdin, Command};
    use tokio::sync::mpsc;

    pub(crate) struct Child(tokio::process::Child);

    /// Where a child's input is written.
    pub(crate) struct Writer(ChildStdin);

    impl Writer {
        pub(crate) async fn write(&mut self, text: String) -> io::Result<()> {
            tokio::io::AsyncWriteExt::write_all(&mut self.0, text.as_bytes()).await
        }
    }

    impl Child {
        pub(crate) fn start(
            _: &CallContext,
            start: Start,
            send: mpsc::Sender<Chunk>,
        ) -> io::Result<(Self, Option<Writer>)> {
            let Start { words, folder, env, input, .. } = start;
            let (name, args) =
                words.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
            let mut command = Command::new(name);
            command.args(args).current_dir(folder).env_clear().envs(env).kill_on_drop(true);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(match input {
                Input::Nothing => Stdio::null(),
                Input::Pipe => Stdio::piped(),
                Input::Terminal => {
                    return Err(io::Error::other(
                        "terminal is not supported on this system yet; call again without it",
                    ));
                }
            });
            #[cfg(unix)]
            command.process_group(0);
            let mut child = command.spawn()?;
            let no_pipe = || io::Error::other("its output cannot be read");
            tokio::spawn(read("out", child.stdout.take().ok_or_else(no_pipe)?, send.clone()));
            tokio::spawn(read("err", child.stderr.take().ok_or_else(no_pipe)?, send));
            let writer = child.stdin.take().map(Writer);
            Ok((Self(child), writer))
        }
        pub(crate) async fn ended(&mut self) -> Exit {
            let status = self.0.wait().await;
            self.kill(); // the rest of the process group
            match status {
                Ok(status) => status.code().map_or(Exit::Signal(0, 0), |code| Exit::Code(code, 0)),
                Err(_) => Exit::Lost,
            }
        }
        #[cfg(unix)]
        fn tell(&self, signal: rustix::process::Signal) {
            let group =
                self.0.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
            if let Some(group) = group {
                let _ = rustix::process::kill_process_group(group, signal);
            }
        }
        pub(crate) fn end(&self) {
            #[cfg(unix)]
            self.tell(rustix::process::Signal::TERM);
        }
        pub(crate) fn kill(&mut self) {
            #[cfg(unix)]
            self.tell(rustix::process::Signal::KILL);
            let _ = self.0.start_kill();
        }
    }
}

pub(crate) use made::{Child, Writer};
