//! Texts that are committed and compared: what people see.

use std::path::Path;

/// Holds `text` against the file `name` below `fixtures/` of the project (or any path from its
/// root). With `DUNNOCK_BLESS=1` the file is written instead.
///
/// # Panics
/// When they differ.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("DUNNOCK_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a file has a folder"))
            .expect("the folder can be made");
        std::fs::write(&path, text).expect("the file can be written");
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let differ = stored.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = differ.unwrap_or_else(|| stored.lines().count().min(text.lines().count()));
    assert!(
        stored == text,
        "{name} is not what it was (line {}):\n  was: {:?}\n  is:  {:?}\nIf that is meant: \
         DUNNOCK_BLESS=1, and look at the difference",
        line + 1,
        stored.lines().nth(line),
        text.lines().nth(line),
    );
}
