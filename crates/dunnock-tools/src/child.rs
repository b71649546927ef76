//! A child process, made by the launcher where there is one.

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    /// And so many processes that it started could not be ended.
    Code(i32, u32),
    Signal(i32, u32),
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "without a launcher that is known at once"))]
    NotStarted(String),
    Lost,
}

#[cfg(target_os = "linux")]
mod made {
    use super::Exit;
    use crate::tool::Hand;
    use dunnock_sandbox::{Ended, Run, Running};
    use std::io;
    use tokio::net::unix::pipe;

    pub(crate) struct Child(Running);

    impl Child {
        pub(crate) fn start(
            hand: &Hand,
            words: Vec<String>,
            folder: String,
            env: Vec<(String, String)>,
        ) -> io::Result<(Self, pipe::Receiver, pipe::Receiver)> {
            let (out, to_out) = io::pipe()?;
            let (err, to_err) = io::pipe()?;
            let running = hand.launcher.start(Run { words, folder, env }, to_out.into(), to_err.into())?;
            let out = pipe::Receiver::from_owned_fd(out.into())?;
            let err = pipe::Receiver::from_owned_fd(err.into())?;
            Ok((Self(running), out, err))
        }
        /// Its end, and that of everything it started.
        pub(crate) async fn ended(&mut self) -> Exit {
            match self.0.ended().await {
                Ended::Exited { code: Some(code), left, .. } => Exit::Code(code, left),
                Ended::Exited { signal, left, .. } => Exit::Signal(signal.unwrap_or(0), left),
                Ended::Refused(why) => Exit::NotStarted(why),
                Ended::Lost => Exit::Lost,
            }
        }
        pub(crate) fn end(&self) {
            self.0.end();
        }
        pub(crate) fn kill(&self) {
            self.0.kill();
        }
    }
}

/// Without a launcher: the child is ours, and only its group is known.
#[cfg(not(target_os = "linux"))]
mod made {
    use super::Exit;
    use crate::tool::Hand;
    use std::io;
    use std::process::Stdio;
    use tokio::process::{ChildStderr, ChildStdout, Command};

    pub(crate) struct Child(tokio::process::Child);

    impl Child {
        pub(crate) fn start(
            _: &Hand,
            words: Vec<String>,
            folder: String,
            env: Vec<(String, String)>,
        ) -> io::Result<(Self, ChildStdout, ChildStderr)> {
            let (name, args) = words.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
            let mut command = Command::new(name);
            command.args(args).current_dir(folder).env_clear().envs(env).kill_on_drop(true);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            #[cfg(unix)]
            command.process_group(0);
            let mut child = command.spawn()?;
            let no_pipe = || io::Error::other("its output cannot be read");
            let (out, err) = (child.stdout.take().ok_or_else(no_pipe)?, child.stderr.take().ok_or_else(no_pipe)?);
            Ok((Self(child), out, err))
        }
        pub(crate) async fn ended(&mut self) -> Exit {
            let status = self.0.wait().await;
            self.kill(); // what is left of the group
            match status {
                Ok(status) => status.code().map_or(Exit::Signal(0, 0), |code| Exit::Code(code, 0)),
                Err(_) => Exit::Lost,
            }
        }
        #[cfg(unix)]
        fn tell(&self, signal: rustix::process::Signal) {
            let group = self.0.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
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

pub(crate) use made::Child;
