//! The program. All code is in the library, so that tests can run it with failpoints armed.

fn main() -> std::process::ExitCode {
    dunnock::main()
}
