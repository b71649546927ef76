# A menu. `just` alone lists it.
default:
    @just --list

# Everything that CI checks
ci:
    bash .ci/run

# All tests
test *ARGS:
    cargo nextest run --workspace {{ARGS}}

# Formatting and lints
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Files made from the code
generate:
    cargo xtask generate

# A static Linux binary with a checksum, in dist/
dist:
    cargo xtask dist

# Long runs: core, kills, processes, damage, mutants
long *NAME:
    cargo xtask long {{NAME}}

# The web app, for the next build to take in
web:
    cargo xtask web
