//! Long runs, each bounded in time; CI runs a share of each as ordinary tests.

use crate::say;
use crate::tidy::root;
use std::process::Command;
use std::time::Instant;

/// A long run: its name, what it shows, and how it is started.
struct Run {
    name: &'static str,
    shows: &'static str,
    minutes: u32,
    /// The tests that it runs; empty for mutants, which are no test.
    tests: &'static str,
    env: &'static [(&'static str, &'static str)],
}

const TEST: &[&str] = &["nextest", "run", "--no-fail-fast", "--success-output", "immediate", "--profile", "long", "-E"];

const RUNS: &[Run] = &[
    Run {
        name: "core",
        shows: "twenty million random steps of the core",
        minutes: 15,
        tests: "test(every_property_holds)",
        env: &[("DUNNOCK_STEPS", "20000000"), ("DUNNOCK_SEED", "7")],
    },
    Run {
        name: "kills",
        shows: "R2: two thousand kills at system calls",
        minutes: 30,
        tests: "test(r2_killed)",
        env: &[("DUNNOCK_R2", "2000")],
    },
    Run {
        name: "processes",
        shows: "R6: eight processes on one database for ten minutes",
        minutes: 15,
        tests: "test(r6_eight)",
        env: &[("DUNNOCK_R6", "600")],
    },
    Run {
        name: "damage",
        shows: "R5: five thousand damaged databases",
        minutes: 15,
        tests: "test(flipped_bytes_never)",
        env: &[("DUNNOCK_DAMAGE", "5000")],
    },
    Run {
        name: "streams",
        shows: "R9: three million mutated streams",
        minutes: 20,
        tests: "test(mutated_streams)",
        env: &[("DUNNOCK_FUZZ", "3000000")],
    },
    Run {
        name: "races",
        shows: "R19: two hundred thousand edits against another writer",
        minutes: 15,
        tests: "test(r19_)",
        env: &[("DUNNOCK_R19", "20")],
    },
    Run {
        name: "output",
        shows: "R14: ten gigabytes of output",
        minutes: 15,
        tests: "test(r14_)",
        env: &[("DUNNOCK_R14", "10240")],
    },
    Run {
        name: "asan",
        shows: "the crate that makes children, and real commands, under AddressSanitizer",
        minutes: 15,
        tests: "package(dunnock-sandbox) or (package(dunnock-tools) and (test(r12_) or test(r16_)))",
        env: &[
            ("ASAN_OPTIONS", "detect_odr_violation=0:detect_leaks=0"),
            ("RUSTC_BOOTSTRAP", "1"),
            ("RUSTFLAGS", "-Zsanitizer=address"),
            ("CARGO_BUILD_TARGET", "x86_64-unknown-linux-gnu"),
            ("CARGO_TARGET_DIR", "target/asan"),
        ],
    },
    Run {
        name: "words",
        shows: "three million mutated command lines through the splitter, the lists and the rules",
        minutes: 20,
        tests: "test(mutated_lines)",
        env: &[("DUNNOCK_FUZZ", "3000000")],
    },
    Run {
        name: "attacks",
        shows: "every proven attack of the security cases does harm without a box",
        minutes: 15,
        tests: "test(the_attacks_are_real)",
        env: &[("DUNNOCK_ATTACKS", "all")],
    },
    Run {
        name: "mutants",
        shows: "every mutant of the core's deciding code is caught by its properties",
        minutes: 90,
        tests: "",
        env: &[("DUNNOCK_STEPS", "60000")],
    },
];

/// All of them, one after the other.
pub(crate) fn all() -> Result<(), String> {
    RUNS.iter().try_for_each(run)
}

/// The one of that name.
pub(crate) fn one(name: &str) -> Result<(), String> {
    let names: Vec<&str> = RUNS.iter().map(|r| r.name).collect();
    let found = RUNS.iter().find(|r| r.name == name);
    run(found.ok_or_else(|| format!("there is no long run {name}; there are {}", names.join(", ")))?)
}

fn run(run: &Run) -> Result<(), String> {
    say(&format!("{}: {} (at most {} minutes)", run.name, run.shows, run.minutes));
    let began = Instant::now();
    let mut command = Command::new("timeout");
    command.arg(format!("{}m", run.minutes)).arg("cargo").current_dir(root());
    match run.tests {
        "" => command.args(["mutants", "--no-shuffle", "--baseline", "skip", "--timeout", "60"]),
        tests => command.args(TEST).arg(tests),
    };
    command.envs(run.env.iter().copied());
    let status = command.status().map_err(|e| format!("{}: {e}", run.name))?;
    say(&format!("{}: {} after {} s", run.name, status, began.elapsed().as_secs()));
    if status.success() { Ok(()) } else { Err(format!("the long run {} failed", run.name)) }
}
