//! Patches and edits of any bytes: nothing panics, nothing is touched that was not named, and no
//! byte is lost on the way.

use dunnock_core::patch::Patch;
use dunnock_tools::edit::{self, CurrentFile, Text};
use dunnock_tools::root::Contents;

/// A file, a `0xff`, and a patch; the patch's two halves are an edit, too.
pub fn run(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0xff).unwrap_or(data.len() / 2);
    let (file, rest) = data.split_at(at);
    let text = String::from_utf8_lossy(rest.get(1..).unwrap_or_default()).into_owned();
    if let Ok(decoded) = Text::decode(file) {
        assert_eq!(decoded.encode().as_deref(), Ok(file), "a file that is not its own bytes again");
        let half = text.floor_char_boundary(text.len() / 2);
        let (old, new) = text.split_at(half);
        if !old.is_empty()
            && let Ok(edited) = edit::replace(&decoded, old, new, false)
        {
            assert!(edited.text != decoded, "an edit that changes nothing");
            let _ = edit::shown(&edited.text, &edited.lines);
        } else {
            let lines: Vec<&str> = old.lines().collect();
            let _ = edit::describe(&decoded, &lines);
        }
    }
    let Ok(patch) = Patch::parse(&text) else { return };
    let named: Vec<String> = patch.paths().map(str::to_owned).collect();
    let mut looked = Vec::new();
    let mut look = |path: &str| {
        looked.push(path.to_owned());
        let there = !path.starts_with("new");
        let now = there.then(|| Contents { bytes: file.to_vec(), mode: Some(0o644) });
        Ok(CurrentFile { name: path.to_owned(), now })
    };
    let files = edit::apply(&patch, &mut look);
    assert!(
        looked.iter().all(|path| named.contains(path)),
        "a file was looked at that policy does not see"
    );
    if let Ok(files) = files {
        assert!(
            files.keys().all(|path| named.contains(path)),
            "a file was touched that policy does not see"
        );
    }
}
