//! The program. All of it is in the library beside, so that tests can run it with failpoints armed.

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    dunnock::main()
}
