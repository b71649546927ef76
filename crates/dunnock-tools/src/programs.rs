//! Finds programs on `PATH`.

use std::path::PathBuf;

/// The path of a program in `PATH`, as the program itself will see it; just the name if it is not
/// found or is already a path.
#[must_use]
pub fn found(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let plain = !name.contains(std::path::is_separator) && cfg!(unix);
    let found = plain.then(|| {
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_program(file))
    });
    found.flatten().unwrap_or_else(|| PathBuf::from(name))
}

fn is_program(file: &std::path::Path) -> bool {
    #[cfg(unix)]
    let runs = |m: &std::fs::Metadata| {
        std::os::unix::fs::PermissionsExt::mode(&m.permissions()) & 0o111 != 0
    };
    #[cfg(not(unix))]
    let runs = |_: &std::fs::Metadata| true;
    file.is_absolute() && std::fs::metadata(file).is_ok_and(|m| m.is_file() && runs(&m))
}
