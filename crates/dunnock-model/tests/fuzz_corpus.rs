//! What fuzzing found and what it begins with, played again as ordinary tests.

#[path = "../../../fuzz/src/inbox.rs"]
mod inbox;
#[path = "../../../fuzz/src/wire.rs"]
mod wire;
#[path = "../../../fuzz/src/words.rs"]
mod words;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let found: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert!(found.len() >= 18, "{}", found.len());
    found
}

#[test]
fn the_corpus_of_streams() {
    corpus("wire").iter().for_each(|data| wire::run(data));
}

#[test]
fn the_corpus_of_inboxes() {
    corpus("inbox").iter().for_each(|data| inbox::run(data));
}

#[test]
fn the_corpus_of_words() {
    corpus("words").iter().for_each(|data| words::run(data));
}
