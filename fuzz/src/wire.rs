//! Streams of any bytes, on any wire and in any dialect: nothing panics, the pieces do not matter,
//! and no call can run whose arguments do not fit.

use dunnock_model::dialects::{Callable, schema};
use dunnock_model::{Dialect, Wire, read_pieces};
use dunnock_proto::Part;
use std::sync::{Arc, OnceLock};

fn tools() -> &'static Arc<[Callable]> {
    static TOOLS: OnceLock<Arc<[Callable]>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let schema = serde_json::json!({
            "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"],
            "additionalProperties": false,
        });
        vec![Callable { name: "shell".into(), schema }].into()
    })
}

fn read(wire: Wire, dialect: Dialect, pieces: Vec<Vec<u8>>) -> Result<Vec<Part>, String> {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(read_pieces(wire, dialect, tools(), pieces)))
}

/// The first byte says which wire and dialect, the second how long the pieces are; the rest is the
/// stream.
pub fn run(data: &[u8]) {
    let [which, size, stream @ ..] = data else { return };
    let wire = Wire::ALL[usize::from(which % 4)];
    let dialect = [Dialect::Native, Dialect::Text, Dialect::Plan][usize::from(which / 4 % 3)];
    let whole = read(wire, dialect, vec![stream.to_vec()]);
    // Not too many of them: each costs as much as a short stream.
    let size = (1 + usize::from(*size)).max(stream.len() / 64);
    let pieces = stream.chunks(size).map(<[u8]>::to_vec).collect();
    let pieces = read(wire, dialect, pieces);
    assert_eq!(whole.is_ok(), pieces.is_ok(), "{whole:?}\n{pieces:?}");
    let (Ok(whole), Ok(pieces)) = (whole, pieces) else { return };
    assert_eq!(whole, pieces);
    // A wire may bring calls of its own in any dialect; those are checked by the tool itself.
    let own = read(wire, Dialect::Native, vec![stream.to_vec()])
        .map_or(1, |parts| Part::calls(&parts).count());
    let found =
        |call: &&Arc<dunnock_proto::CallPart>| call.fault.is_none() && (call.recovered || own == 0);
    for call in Part::calls(&whole).filter(found) {
        let args = serde_json::from_str(&call.args).expect("JSON");
        let tool = tools().iter().find(|t| t.name == call.tool).expect("a known tool");
        schema::check(&tool.schema, &args).expect("arguments that fit");
    }
}
