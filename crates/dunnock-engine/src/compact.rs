//! Makes talk shorter, in two strengths, each with a new head.

use crate::world::World;
use dunnock_core::ports::{Blob, Halt};
use dunnock_core::{Transcript, Work};
use dunnock_proto::{CompactFailed, Compacted, Config, Seq, Strength};
use std::sync::Arc;

/// Old results keep this many bytes.
const KEEP: usize = 400;

pub(crate) async fn compact(
    world: World,
    transcript: Transcript,
    config: Arc<Config>,
    workspace: Arc<str>,
    (upto, strength): (Seq, Strength),
    halt: Halt,
) -> (Work, Vec<Blob>) {
    let failed = |error: String| (Work::CompactFailed(CompactFailed { error }), Vec::new());
    let (mut head, blob) = match world.model.head(&config, &workspace).await {
        Ok(made) => made,
        Err(error) => return failed(error),
    };
    let (shortened, summary) = match strength {
        Strength::Shorten => (transcript.shorten(upto, KEEP), None),
        Strength::Summarise => {
            let Some(request) = transcript.request() else { return failed("nothing was said yet".into()) };
            match world.model.summarise(blob.bytes.clone(), request, halt).await {
                Ok(summary) => (Vec::new(), Some(summary)),
                Err(error) => return failed(error),
            }
        }
    };
    head.why = "compaction".into();
    let before = transcript.len();
    let mut compacted = Compacted { upto, shortened, summary, head, before, after: 0 };
    compacted.after = transcript.len_after(&compacted);
    (Work::Compacted(compacted), vec![blob])
}
