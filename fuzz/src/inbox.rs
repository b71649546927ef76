//! Inboxes of any letters: nothing is made up, the kind of line break does not matter, and the
//! beginning of an answer is never taken for more than the answer.

use dunnock_model::bridge::inbox::{InboxItem, read};

/// What would be done.
fn acts(text: &str) -> Vec<InboxItem> {
    read(text).said.into_iter().filter(|said| !matches!(said, InboxItem::Refused(_))).collect()
}

/// Every line of a body stood in the text, in this order.
fn stood(text: &str, body: &str, what: &str) {
    let mut lines = text.lines();
    for line in body.lines() {
        assert!(lines.any(|had| had.ends_with(line)), "{what}: {line:?} was made up");
    }
}

/// The bytes are an inbox.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data).replace('\r', "");
    let inbox = read(&text);
    assert!(!inbox.said.is_empty(), "an answer is never passed over in silence");
    assert_eq!(inbox, read(&text.replace('\n', "\r\n")), "line breaks matter");
    let upper = text.to_uppercase();
    for said in &inbox.said {
        let word = match said {
            InboxItem::Read { .. } => "READ",
            InboxItem::List { .. } => "LIST",
            InboxItem::Search { .. } => "SEARCH",
            InboxItem::Write { body, .. } => {
                stood(&text, body, "a file");
                "WRITE"
            }
            InboxItem::Replace { old, new, .. } => {
                stood(&text, old, "the old lines");
                stood(&text, new, "the new lines");
                "REPLACE"
            }
            InboxItem::Delete { .. } => "DELETE",
            InboxItem::Run { .. } => "RUN",
            InboxItem::Done => "DONE",
            InboxItem::Refused(why) => {
                assert!(why.len() > 20, "a refusal says why: {why}");
                continue;
            }
        };
        assert!(upper.contains(word), "{word} was made up");
    }
    // A beginning says no more than the whole, where that was understood in all: what stands at an
    // end may cast doubt on what stands before it. (Of fences the end decides what was inside.)
    let understood = !inbox.said.iter().any(|said| matches!(said, InboxItem::Refused(_)));
    if understood && !text.contains(['`', '~']) && !text.contains("think") {
        let all = acts(&text);
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        for end in ends.filter(|end| end % 3 == 0).take(20) {
            let some = acts(&text[..end]);
            assert!(all.starts_with(&some), "a beginning would do {some:?}, the whole {all:?}");
        }
    }
}
