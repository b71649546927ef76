//! The program. All of it is in the library beside, so that tests can run it with failpoints armed.

fn main() -> std::process::ExitCode {
    dunnock::main()
}
