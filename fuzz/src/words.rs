//! Calls in words of any letters: the pieces do not matter, what runs fits, and what is no call
//! comes out as it went in.

use dunnock_model::dialects::{Callable, FoundCall, Parsed, schema, text_calls::TextCallReader};
use std::sync::{Arc, OnceLock};

fn tools() -> &'static Arc<[Callable]> {
    static TOOLS: OnceLock<Arc<[Callable]>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {
                "command": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                "timeout": {"type": "integer"},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        vec![Callable { name: "shell".into(), schema }].into()
    })
}

fn hear(pieces: &mut dyn Iterator<Item = String>) -> (String, Vec<FoundCall>) {
    let (mut reader, mut out) = (TextCallReader::new(tools().clone()), Vec::new());
    pieces.for_each(|piece| reader.feed(&piece, &mut out));
    reader.finish(false, &mut out);
    let (mut said, mut calls) = (String::new(), Vec::new());
    for heard in out {
        match heard {
            Parsed::Text(text) => said.push_str(&text),
            Parsed::Call(found) => calls.push(found),
            Parsed::Reasoning(_) | Parsed::AllThought | Parsed::Doubt => {
                panic!("words are no thoughts here")
            }
        }
    }
    (said, calls)
}

/// The first byte says how long the pieces are; the rest are the words.
pub fn run(data: &[u8]) {
    let [size, words @ ..] = data else { return };
    let words = String::from_utf8_lossy(words).into_owned();
    let (said, calls) = hear(&mut std::iter::once(words.clone()));
    let chars: Vec<char> = words.chars().collect();
    let mut pieces = chars.chunks(1 + usize::from(*size)).map(|piece| piece.iter().collect());
    let again = hear(&mut pieces);
    assert_eq!((&said, &calls), (&again.0, &again.1), "the pieces matter");
    if calls.is_empty() {
        assert_eq!(said, words, "words were lost");
    }
    for call in calls.iter().filter(|call| call.fault.is_none()) {
        assert_eq!(call.tool, "shell");
        let args = serde_json::from_str(&call.args).expect("JSON");
        schema::check(&tools()[0].schema, &args).expect("arguments that fit");
    }
}
