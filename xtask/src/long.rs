//! Long runs, each with a time limit; CI runs a part of each as ordinary tests.

use crate::say;
use crate::tidy::root;
use std::process::Command;
use std::time::Instant;

/// A long run: its name, what it shows, and how to start it.
struct Run {
    name: &'static str,
    shows: &'static str,
    minutes: u32,
    what: What,
    env: &'static [(&'static str, &'static str)],
}

/// What a long run does.
enum What {
    /// Runs these tests.
    Tests(&'static str),
    /// Runs these tests one at a time.
    Alone(&'static str),
    /// Tests all mutants of the core.
    Mutants,
    /// Tests mutants of the lines of the core that changed since `DUNNOCK_BASE`, or in the last
    /// four hours.
    ChangedMutants,
    /// Fuzzes these targets for this many minutes, with at least this many inputs.
    Fuzz(&'static [&'static str], u64, u64),
    /// Runs all tests that use a real model.
    Real,
    /// Builds the static binary for download, and runs these tests with it.
    Dist(&'static str),
}

const TEST: &[&str] = &[
    "nextest",
    "run",
    "--no-fail-fast",
    "--success-output",
    "immediate",
    "--profile",
    "long",
    "-E",
];

/// Placeholder for a new seed, which is printed.
const RANDOM: &str = "random";

const RUNS: &[Run] = &[
    Run {
        name: "figures",
        shows: "every wall-time figure within its bound, on a quiet machine, one test at a time",
        minutes: 30,
        what: What::Alone(
            "test(speed) or test(figures::) or test(interrupts::) or test(troubles::) or \
             test(slips::) or test(takeover) or test(an_interrupt_) or test(r10_) or test(r11_) \
             or test(r13_) or test(a_thousand_changed_files) or test(a_background_child) or \
             test(many_places) or test(a_server_that)",
        ),
        env: &[("DUNNOCK_HOLD_FIGURES", "1")],
    },
    Run {
        name: "mcp",
        shows: "MCP: kills of a server and of the program at 120 points of a call",
        minutes: 20,
        what: What::Tests("test(mcp::)"),
        env: &[("DUNNOCK_MCP_KILLS", "120")],
    },
    Run {
        name: "screens",
        shows: "every screen of the web app in both themes, wide and on a phone, with axe-core",
        minutes: 15,
        what: What::Tests("test(browser_every_screen)"),
        env: &[("DUNNOCK_ALL_SCREENS", "1")],
    },
    Run {
        name: "dist",
        shows: "the static release binary, its size, and the README examples with it",
        minutes: 30,
        what: What::Dist("test(readme::)"),
        env: &[],
    },
    Run {
        name: "fuzz",
        shows: "inboxes, patches, paths, streams and texts of arbitrary bytes, two minutes each",
        minutes: 20,
        what: What::Fuzz(&crate::fuzz::ALL, 2, 10_000),
        env: &[],
    },
    Run {
        name: "changed",
        shows: "every mutant of changed lines of the core's deciding code is caught",
        minutes: 30,
        what: What::ChangedMutants,
        env: &[("DUNNOCK_STEPS", "40000"), ("CARGO_INCREMENTAL", "1")],
    },
    Run {
        name: "core",
        shows: "twenty million random steps of the core",
        minutes: 15,
        what: What::Tests("test(every_property_holds)"),
        env: &[("DUNNOCK_STEPS", "20000000"), ("DUNNOCK_SEED", RANDOM)],
    },
    Run {
        name: "kills",
        shows: "R2: two thousand kills at system calls, and three thousand of the program, its \
                launcher or both",
        minutes: 90,
        what: What::Tests("test(r2_killed) or test(killed_programs_and_launchers)"),
        env: &[("DUNNOCK_R2", "2000"), ("DUNNOCK_KILLS", "3000")],
    },
    Run {
        name: "worlds",
        shows: "ten thousand random folders: scans that read what changed and scans that read \
                everything find the same state",
        minutes: 10,
        what: What::Tests("test(random_worlds_give_the_same_state)"),
        env: &[("DUNNOCK_WORLDS", "10000")],
    },
    Run {
        name: "personas",
        shows: "twelve models with a bad habit finish ten tasks each, unattended",
        minutes: 10,
        what: What::Tests("test(personas::)"),
        env: &[("DUNNOCK_PERSONAS", "all")],
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
        name: "events",
        shows: "R9: every hostile stream, with a million events in one answer",
        minutes: 10,
        what: What::Tests("test(r9_every)"),
        env: &[("DUNNOCK_EVENTS", "1000000")],
    },
    Run {
        name: "streams",
        shows: "R9: five million streams and texts of arbitrary bytes, on every wire and in every \
                dialect",
        minutes: 45,
        what: What::Fuzz(&["wire", "words"], 40, 5_000_000),
        env: &[],
    },
    Run {
        name: "load",
        shows: "a thousand concurrent sessions of twenty steps on one server, compared with plain \
                loops (set DUNNOCK_BIN to the release binary)",
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
        shows: "R24: a thousand sessions, round after round: memory and descriptors",
        minutes: 15,
        what: What::Tests("test(r24_)"),
        env: &[("DUNNOCK_R24", "1000")],
    },
    Run {
        name: "contract",
        shows: "schemathesis, 300 examples of each operation",
        minutes: 15,
        what: What::Tests("test(schemathesis_finds)"),
        env: &[("DUNNOCK_EXAMPLES", "300")],
    },
    Run {
        name: "real",
        shows: "a real model: a conversation that overflows, twenty plans and five planner runs, \
                all valid",
        minutes: 15,
        what: What::Real,
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
        shows: "the crate that starts child processes, and real commands, under AddressSanitizer",
        minutes: 15,
        what: What::Tests(
            "package(dunnock-sandbox) or (package(dunnock-tools) and (test(r12_) or test(r16_)))",
        ),
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
        shows: "every proven attack of the security cases does harm without a sandbox",
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

/// Runs all of them, one after the other.
pub(crate) fn all() -> Result<(), String> {
    RUNS.iter().try_for_each(run)
}

/// Runs the one with this name.
pub(crate) fn one(name: &str) -> Result<(), String> {
    let names: Vec<&str> = RUNS.iter().map(|r| r.name).collect();
    let found = RUNS.iter().find(|r| r.name == name);
    run(found.ok_or_else(|| format!("unknown long run {name}; use one of {}", names.join(", ")))?)
}

fn run(run: &Run) -> Result<(), String> {
    say(&format!("{}: {} (at most {} minutes)", run.name, run.shows, run.minutes));
    let began = Instant::now();
    let filter = match run.what {
        What::Fuzz(names, minutes, least) => {
            let inputs = crate::fuzz::run(names, minutes * 60)?;
            say(&format!("{}: {inputs} inputs", run.name));
            return if inputs >= least {
                Ok(())
            } else {
                Err(format!("expected at least {least} inputs"))
            };
        }
        What::Real => return crate::real::run(crate::real::Share::All),
        What::Dist(filter) => {
            crate::dist::make("release")?;
            Some(filter)
        }
        What::Tests(filter) | What::Alone(filter) => Some(filter),
        What::Mutants | What::ChangedMutants => None,
    };
    let mut command = crate::program("timeout");
    command.arg(format!("{}m", run.minutes)).arg("cargo").current_dir(root());
    match filter {
        None => command.args(["mutants", "--no-shuffle", "--baseline", "skip", "--timeout", "60"]),
        Some(filter) => command.args(TEST).arg(filter),
    };
    match run.what {
        What::Alone(_) => drop(command.args(["--test-threads", "1"])),
        What::ChangedMutants => drop(command.arg("--in-diff").arg(changed()?)),
        What::Dist(_) => drop(command.env("DUNNOCK_BIN", root().join("dist/dunnock"))),
        What::Tests(_) | What::Mutants | What::Fuzz(..) | What::Real => {}
    }
    for (name, value) in run.env {
        let seed = std::process::id().to_string();
        let value = if *value == RANDOM { seed.as_str() } else { value };
        say(&format!("{}: {name}={value}", run.name));
        command.env(name, value);
    }
    let status = command.status().map_err(|e| format!("{}: {e}", run.name))?;
    say(&format!("{}: {} after {} s", run.name, status, began.elapsed().as_secs()));
    if status.success() { Ok(()) } else { Err(format!("the long run {} failed", run.name)) }
}

/// Writes a diff of what changed in the core to a file.
fn changed() -> Result<std::path::PathBuf, String> {
    let git = |args: &[&str]| -> Result<String, String> {
        let output = Command::new("git")
            .args(args)
            .current_dir(root())
            .output()
            .map_err(|e| e.to_string())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let base = match std::env::var("DUNNOCK_BASE") {
        Ok(base) => base,
        Err(_) => git(&["rev-list", "-1", "--before=4 hours ago", "HEAD"])?.trim().to_owned(),
    };
    if base.is_empty() {
        return Err("no commit is older than four hours: set DUNNOCK_BASE to one".into());
    }
    let file = root().join("target/changed.diff");
    let diff = git(&["diff", &base, "HEAD", "--", "crates/dunnock-core/src"])?;
    if diff.is_empty() {
        return Err(format!("nothing changed in the core since {base}"));
    }
    std::fs::write(&file, diff).map_err(|e| e.to_string())?;
    say(&format!("changed: since {base}"));
    Ok(file)
}
