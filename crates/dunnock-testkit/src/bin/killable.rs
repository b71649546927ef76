//! The program itself, with failpoints armed from the environment: what R1 kills.

fn main() -> std::process::ExitCode {
    dunnock_testkit::failpoints::arm();
    dunnock::main()
}
