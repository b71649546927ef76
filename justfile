# A menu. `just` alone lists it.
default:
    @just --list

# The inner loop: formatting, lints and the tests that take seconds
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
    cargo nextest run --workspace --locked --no-fail-fast -E 'not (test(browser_) | test(kills) | test(cases::) | test(speed) | test(r4_) | test(r6_) | test(r9_) | test(r19_) | test(r24_) | test(schemathesis) | test(load_of) | test(everyday_) | test(context::) | test(damage::) | test(bench_edits) | test(every_property) | test(a_log_is_folded) | test(boxed::two_hundred) | test(figures::) | test(web::) | test(replays::) | test(guides::) | test(window::) | test(forged::) | test(long_running::) | test(keep_kills) | test(slips::) | test(syscalls::) | test(many::) | test(real::) | test(r2_) | test(r7_) | test(r14_) | test(r13_))'

# Everything that CI checks
ci:
    bash .ci/run

# All tests
test *ARGS:
    cargo nextest run --workspace {{ARGS}}

# Files made from the code
generate:
    cargo xtask generate

# A static Linux binary with a checksum, in dist/
dist:
    cargo xtask dist

# Long runs: one by NAME, or all of them (hours)
long *NAME:
    cargo xtask long {{NAME}}

# The web app, for the next build to take in
web:
    cargo xtask web
