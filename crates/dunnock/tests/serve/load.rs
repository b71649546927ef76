//! Many sessions at once, against bare loops in the same run. A share of it here; all of it by `cargo xtask long load`.

use serde_json::Value;
use std::process::Command;

fn number(name: &str, or: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or)
}

/// Runs the instrument; its figures.
fn load(sessions: usize, steps: usize, sandbox: &str) -> Value {
    let beside = |name: &str| {
        let mut path = std::path::PathBuf::from(env!("CARGO_BIN_EXE_dunnock"));
        path.set_file_name(name);
        path
    };
    let (instrument, floor) = (beside("dunnock-load"), beside("dunnock-floor"));
    assert!(instrument.exists() && floor.exists(), "build the whole workspace first");
    let mut command = Command::new(instrument);
    command.arg(crate::program()).arg(floor).args([&sessions.to_string(), &steps.to_string(), sandbox]);
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    println!("load: {}", told.trim());
    serde_json::from_str(&told).unwrap_or_else(|_| unreachable!("{told}{}", String::from_utf8_lossy(&ran.stderr)))
}

#[test]
fn load_of_many_sessions_at_once_loses_none() {
    let (sessions, steps) = (number("DUNNOCK_LOAD", 100), number("DUNNOCK_LOAD_STEPS", 4));
    for sandbox in ["off", "auto"] {
        let told = load(sessions, steps, sandbox);
        assert_eq!(told["done"], sessions.min(1000), "all came to their end");
        assert_eq!(told["lines"], sessions * steps, "each command ran once");
        if sessions >= 1000 {
            assert!(told["most_mb"].as_u64().unwrap() <= 150, "{told:#}");
        }
    }
}
