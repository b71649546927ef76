//! Runs tests again as somebody who is not root. Only root can become somebody else, so nobody else
//! needs this.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

const NOBODY: u32 = 65_534;

/// Whether we could become somebody else.
#[must_use]
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

/// Runs those tests of this very test program whose names contain `tests`, as an ordinary user;
/// what they say. Programs that they start are copied to where that user can go, and named in the
/// environment.
///
/// # Panics
/// When one of them fails, or there are none.
pub fn run(tests: &str, programs: &[(&str, &str)]) -> String {
    let home = tempfile::tempdir_in("/tmp").unwrap();
    std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let copy = |from: PathBuf, name: &str| {
        let to = home.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let mut command = Command::new(copy(std::env::current_exe().unwrap(), "tests"));
    command
        .args([tests, "--nocapture", "--test-threads", "1"])
        .current_dir(home.path())
        .uid(NOBODY)
        .gid(NOBODY);
    command.env("HOME", home.path()).env("TMPDIR", home.path());
    for (variable, program) in programs {
        command.env(variable, copy(PathBuf::from(program), variable));
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let ran = said.contains("test result: ok") && !said.contains(" 0 passed");
    assert!(output.status.success() && ran, "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}
