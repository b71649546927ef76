//! The binary for download: static, with a checksum.

use crate::tidy::root;
use crate::{program, say};
use std::path::Path;
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-musl";
/// The size limit for the binary.
const MOST: u64 = 40 << 20;

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Builds the web app into `web/dist`.
pub(crate) fn web() -> Result<(), String> {
    for words in [&["install", "--no-audit", "--no-fund"][..], &["run", "build"]] {
        let status = Command::new("npm").args(words).current_dir(root().join("web")).status();
        let why = |why: String| {
            format!(
                "npm {}: {why}. The web app needs Node 20.19 or newer, and npm",
                words.join(" ")
            )
        };
        if !status.map_err(|e| why(e.to_string()))?.success() {
            return Err(why("it failed".into()));
        }
    }
    Ok(())
}

/// Builds `dist/dunnock` and `dist/dunnock.sha256`.
pub(crate) fn make(profile: &str) -> Result<(), String> {
    // A quick build reuses the web app as it was last built.
    if profile == "release" {
        web()?;
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut build = program(&cargo);
    build
        .args(["build", "--profile", profile, "--locked", "-p", "dunnock", "--target", TARGET])
        .current_dir(root());
    build.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    let status = build.status().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err(format!(
            "the build failed. It needs: rustup target add {TARGET}; musl-gcc (Debian: musl-tools)"
        ));
    }
    let dist = root().join("dist");
    std::fs::create_dir_all(&dist).map_err(|e| e.to_string())?;
    let target =
        std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), Into::into);
    let (made, put) = (target.join(TARGET).join(profile).join("dunnock"), dist.join("dunnock"));
    std::fs::copy(&made, &put).map_err(|e| format!("{}: {e}", made.display()))?;
    check(&put, profile == "release")?;
    let sum = run(Command::new("sha256sum").arg("dunnock").current_dir(&dist))?;
    std::fs::write(dist.join("dunnock.sha256"), &sum).map_err(|e| e.to_string())?;
    say(&format!("dist/dunnock: {} bytes, static\n{}", size(&put)?, sum.trim_end()));
    Ok(())
}

fn size(file: &Path) -> Result<u64, String> {
    std::fs::metadata(file).map(|m| m.len()).map_err(|e| e.to_string())
}

/// Checks that the binary is static and, if it is to be shipped, small enough.
fn check(file: &Path, shipped: bool) -> Result<(), String> {
    let bytes = std::fs::read(file).map_err(|e| e.to_string())?;
    if bytes.windows(20).any(|w| w.starts_with(b"/lib64/ld-linux-x86")) {
        return Err("the binary is not static".into());
    }
    let size = size(file)?;
    if shipped && size > MOST {
        Err(format!("the binary has {size} bytes; the limit is {MOST}"))
    } else {
        Ok(())
    }
}
