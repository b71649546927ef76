//! The launcher on its own, for tests: the real program is its own launcher.

fn main() -> std::process::ExitCode {
    dunnock_sandbox::serve()
}
