//! What fuzzing found and what it begins with, played again as ordinary tests.

#[path = "../../../fuzz/src/patch.rs"]
mod patch;
#[path = "../../../fuzz/src/path.rs"]
mod path;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let found: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert!(found.len() >= 20);
    found
}

#[test]
fn the_corpus_of_patches() {
    corpus("patch").iter().for_each(|data| patch::run(data));
}

#[test]
fn the_corpus_of_paths() {
    corpus("path").iter().for_each(|data| path::run(data));
}
