//! Takes the web app in, if it was built: a table of its files. It builds nothing itself; `just
//! web` does.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.is_dir() { files(&path, found)? } else { found.push(path) }
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../web/dist");
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    let mut found = Vec::new();
    if dist.join("index.html").exists() {
        files(&dist, &mut found)?;
    }
    // In the same order on every machine.
    found.sort();
    let mut table = String::from("&[\n");
    for path in found {
        let name = path.strip_prefix(&dist).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let _ = writeln!(table, "({name:?}, include_bytes!({:?})),", path.canonicalize()?);
    }
    table.push(']');
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    std::fs::write(out.join("web.rs"), table)
}
