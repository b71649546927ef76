//! The launcher alone, for tests: the program itself is its own launcher.

fn main() -> std::process::ExitCode {
    dunnock_sandbox::serve()
}
