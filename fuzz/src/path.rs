//! Paths of any characters: nothing outside is read or written, and what policy does not take for a
//! secret is none.

use dunnock_core::policy::{is_secret, plain_path};
use dunnock_tools::root::{Contents, FileChange, RepoPath, Root};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::OnceLock;

const OUTSIDE: &str = "what is outside";
const SECRET: &str = "KEY=of the folder";

struct Place {
    _dir: tempfile::TempDir,
    top: PathBuf,
    root: Root,
}

/// A folder with files, a secret, and links that lead out of it.
fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let memory = std::path::Path::new("/dev/shm");
        let dir = tempfile::tempdir_in(if memory.is_dir() {
            memory
        } else {
            std::path::Path::new("/tmp")
        })
        .unwrap();
        let top = dir.path().canonicalize().unwrap();
        let inside = top.join("w");
        std::fs::create_dir_all(inside.join("src/deep")).unwrap();
        std::fs::create_dir(top.join("out")).unwrap();
        for (name, text) in [
            ("out/x", OUTSIDE),
            ("x", OUTSIDE),
            ("w/.env", SECRET),
            ("w/a.txt", "a"),
            ("w/src/b", "b"),
        ] {
            std::fs::write(top.join(name), text).unwrap();
        }
        for (to, name) in
            [("../out", "l"), ("/", "r"), ("..", "u"), ("src", "s"), ("../x", "f"), (".env", "e")]
        {
            symlink(to, inside.join(name)).unwrap();
        }
        let root = Root::open(&inside).unwrap();
        Place { _dir: dir, top, root }
    })
}

fn outside(top: &std::path::Path) -> (usize, usize, bool) {
    let count = |folder: PathBuf| std::fs::read_dir(folder).unwrap().count();
    let same =
        |name: &str| std::fs::read(top.join(name)).is_ok_and(|bytes| bytes == OUTSIDE.as_bytes());
    (count(top.to_path_buf()), count(top.join("out")), same("x") && same("out/x"))
}

/// A path, read and then written.
pub fn run(data: &[u8]) {
    let place = place();
    let text = String::from_utf8_lossy(data);
    let Ok(path) = RepoPath::parse(&place.root, &text) else { return };
    if let Ok(read) = place.root.read(&path) {
        assert_ne!(read.bytes, OUTSIDE.as_bytes(), "{text:?} was read outside");
        assert!(
            read.bytes != SECRET.as_bytes() || is_secret(&plain_path(&text)),
            "{text:?} is a secret, unasked"
        );
    }
    // A name or two that can be made, and are gone again.
    if path.shown().len() < 40 && path.shown() != ".env" {
        let before = place.root.read(&path).ok();
        let after = Some(Contents { bytes: b"w".to_vec(), mode: None });
        let journals = place.top.join("out");
        let made = FileChange { path: path.clone(), before: before.clone(), after: after.clone() };
        if place.root.commit(&[made], &journals).is_ok() {
            let now = place.root.read(&path).ok();
            let _ =
                place.root.commit(&[FileChange { path, before: now, after: before }], &journals);
        }
    }
    assert_eq!(outside(&place.top), (3, 1, true), "{text:?} wrote outside");
}
