//! Long runs, each bounded in time; CI runs a share of each as ordinary tests.

use crate::say;
use crate::tidy::root;
use std::time::Instant;

/// A long run: its name, what it shows, and how it is started.
struct Run {
    name: &'static str,
    shows: &'static str,
    minutes: u32,
    what: What,
    env: &'static [(&'static str, &'static str)],
}

/// What a long run is.
enum What {
    /// These tests.
    Tests(&'static str),
    /// Mutants of the core.
    Mutants,
    /// Fuzzing of these targets, for so many minutes, and so many inputs at least.
    Fuzz(&'static [&'static str], u64, u64),
    /// The tests with a real model, and so many plans.
    Real(u32),
}

const TEST: &[&str] = &["nextest", "run", "--no-fail-fast", "--success-output", "immediate", "--profile", "long", "-E"];

const RUNS: &[Run] = &[
    Run {
        name: "core",
        shows: "twenty million random steps of the core",
        minutes: 15,
        what: What::Tests("test(every_property_holds)"),
        env: &[("DUNNOCK_STEPS", "20000000"), ("DUNNOCK_SEED", "7")],
    },
    Run {
        name: "kills",
        shows: "R2: two thousand kills at system calls",
        minutes: 30,
        what: What::Tests("test(r2_killed)"),
        env: &[("DUNNOCK_R2", "2000")],
    },
    Run {
        name: "processes",
        shows: "R6: eight processes on one database for ten minutes",
        minutes: 15,
        what: What::Tests("test(r6_eight)"),
        env: &[("DUNNOCK_R6", "600")],
    },
    Run {
        name: "damage",
        shows: "R5: five thousand damaged databases",
        minutes: 15,
        what: What::Tests("test(flipped_bytes_never)"),
        env: &[("DUNNOCK_DAMAGE", "5000")],
    },
    Run {
        name: "streams",
        shows: "R9: five million streams and texts of any bytes, on every wire and in every dialect",
        minutes: 45,
        what: What::Fuzz(&["wire", "words"], 40, 5_000_000),
        env: &[],
    },
    Run {
        name: "load",
        shows: "a thousand sessions of twenty steps at once on one server, beside bare loops (name the release in DUNNOCK_BIN)",
        minutes: 20,
        what: What::Tests("test(load_of_many)"),
        env: &[("DUNNOCK_LOAD", "1000"), ("DUNNOCK_LOAD_STEPS", "20")],
    },
    Run {
        name: "parked",
        shows: "ten thousand parked sessions on one server",
        minutes: 20,
        what: What::Tests("test(parked_sessions)"),
        env: &[("DUNNOCK_PARKED", "10000")],
    },
    Run {
        name: "soak",
        shows: "R24: a thousand sessions, one round after the other: memory and descriptors",
        minutes: 15,
        what: What::Tests("test(r24_)"),
        env: &[("DUNNOCK_R24", "1000")],
    },
    Run {
        name: "contract",
        shows: "schemathesis, some hundred examples of each operation",
        minutes: 15,
        what: What::Tests("test(schemathesis_finds)"),
        env: &[("DUNNOCK_EXAMPLES", "300")],
    },
    Run {
        name: "plans",
        shows: "twenty plans and five planner runs of a real model, all valid",
        minutes: 15,
        what: What::Real(20),
        env: &[],
    },
    Run {
        name: "races",
        shows: "R19: two hundred thousand edits against another writer",
        minutes: 15,
        what: What::Tests("test(r19_)"),
        env: &[("DUNNOCK_R19", "20")],
    },
    Run {
        name: "output",
        shows: "R14: ten gigabytes of output",
        minutes: 15,
        what: What::Tests("test(r14_)"),
        env: &[("DUNNOCK_R14", "10240")],
    },
    Run {
        name: "asan",
        shows: "the crate that makes children, and real commands, under AddressSanitizer",
        minutes: 15,
        what: What::Tests("package(dunnock-sandbox) or (package(dunnock-tools) and (test(r12_) or test(r16_)))"),
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
        what: What::Tests("test(mutated_lines)"),
        env: &[("DUNNOCK_FUZZ", "3000000")],
    },
    Run {
        name: "attacks",
        shows: "every proven attack of the security cases does harm without a box",
        minutes: 15,
        what: What::Tests("test(the_attacks_are_real)"),
        env: &[("DUNNOCK_ATTACKS", "all")],
    },
    Run {
        name: "mutants",
        shows: "every mutant of the core's deciding code is caught by its properties",
        minutes: 90,
        what: What::Mutants,
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
    let filter = match run.what {
        What::Fuzz(names, minutes, least) => {
            let inputs = crate::fuzz::run(names, minutes * 60)?;
            say(&format!("{}: {inputs} inputs", run.name));
            return if inputs >= least { Ok(()) } else { Err(format!("{least} inputs were wanted")) };
        }
        What::Real(plans) => return crate::real::run(plans),
        What::Tests(filter) => Some(filter),
        What::Mutants => None,
    };
    let mut command = crate::program("timeout");
    command.arg(format!("{}m", run.minutes)).arg("cargo").current_dir(root());
    match filter {
        None => command.args(["mutants", "--no-shuffle", "--baseline", "skip", "--timeout", "60"]),
        Some(filter) => command.args(TEST).arg(filter),
    };
    command.envs(run.env.iter().copied());
    let status = command.status().map_err(|e| format!("{}: {e}", run.name))?;
    say(&format!("{}: {} after {} s", run.name, status, began.elapsed().as_secs()));
    if status.success() { Ok(()) } else { Err(format!("the long run {} failed", run.name)) }
}
