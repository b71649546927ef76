//! Signals that ask the program to exit.
//!
//! Before a connection is open, nothing runs that would have to be stopped, and a signal simply
//! ends the process. Therefore create this just before the connection.

/// SIGINT (Ctrl-C), SIGTERM and SIGHUP.
pub(crate) struct Signals {
    #[cfg(unix)]
    all: Vec<tokio::signal::unix::Signal>,
}

impl Signals {
    pub(crate) fn new() -> anyhow::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            // Our parent may have set some of them to be ignored (`nohup`).
            let deaf = ignored();
            let heard = kinds.into_iter().filter(|kind| deaf >> (kind.as_raw_value() - 1) & 1 == 0);
            Ok(Self { all: heard.map(signal).collect::<Result<_, _>>()? })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        {
            std::future::poll_fn(|cx| {
                let came = self.all.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
                if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// The signals that this process ignores, one bit each; 0 if the system does not report them.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
