//! Fuzzing on the stable compiler: its own pass for coverage, libFuzzer for the rest.

use crate::say;
use std::path::Path;
use std::process::Command;

/// Every fuzz target with its longest input. Each has a file in `fuzz/src`, one of the same name in
/// `fuzz/src/bin`, and a folder in `fuzz/corpus`.
const TARGETS: &[(&str, u32)] =
    &[("inbox", 4096), ("patch", 8192), ("path", 8192), ("wire", 2048), ("words", 2048)];

/// Their names.
pub const ALL: [&str; 5] = ["inbox", "patch", "path", "wire", "words"];

const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Builds all targets and runs these in parallel for some seconds. Findings go to
/// `target/fuzz/found`, new inputs next to it. Returns the number of inputs.
pub fn run(names: &[&str], seconds: u64) -> Result<u64, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let target = root.join("target/fuzz");
    // Named explicitly, so that build scripts are not built with these flags.
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let build = crate::program("cargo")
        .args([
            "build",
            "--quiet",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--locked",
            "--target",
            &host,
            "--target-dir",
        ])
        .arg(&target)
        .env("RUSTFLAGS", FLAGS)
        .current_dir(root)
        .status();
    if !build.map_err(|e| e.to_string())?.success() {
        return Err("the fuzz targets do not build".into());
    }
    let mut running = Vec::new();
    for (name, longest) in TARGETS.iter().filter(|(name, _)| names.contains(name)) {
        let (grown, found) = (
            target.join(format!("corpus-{name}")),
            root.join(format!("target/fuzz/found/{name}/")),
        );
        for folder in [&grown, &found] {
            std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
        }
        let log =
            std::fs::File::create(target.join(format!("{name}.log"))).map_err(|e| e.to_string())?;
        let mut command = Command::new(target.join(&host).join("debug").join(name));
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}", found.display()));
        command.arg(format!("-max_len={longest}"));
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        command.arg(&grown).arg(root.join("fuzz/corpus").join(name));
        running.push((name, command.stderr(log).spawn().map_err(|e| format!("{name}: {e}"))?));
    }
    let (mut failed, mut inputs) = (Vec::new(), 0);
    for (name, mut child) in running {
        let ok = child.wait().map_err(|e| e.to_string())?.success();
        let log = std::fs::read_to_string(target.join(format!("{name}.log"))).unwrap_or_default();
        let runs = log
            .lines()
            .find_map(|l| l.strip_prefix("stat::number_of_executed_units:"))
            .unwrap_or("?")
            .trim();
        inputs += runs.parse::<u64>().unwrap_or(0);
        let cover = log
            .lines()
            .rev()
            .find_map(|l| l.split_once("cov: ")?.1.split(' ').next())
            .unwrap_or("?");
        say(&format!(
            "fuzz {name}: {runs} inputs in {seconds} s, {cover} edges, {}",
            if ok { "nothing found" } else { "FAILED" }
        ));
        if !ok {
            say(&log
                .lines()
                .rev()
                .take(30)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
                .join("\n"));
            failed.push(*name);
        }
    }
    if failed.is_empty() {
        Ok(inputs)
    } else {
        Err(format!("fuzzing found something: {}", failed.join(", ")))
    }
}
