//! Images that tools show to the model.

use super::Draft;
use dunnock_proto::Finished;

/// How many images a conversation has at most, until it is compacted: each request repeats them.
const MOST_IMAGES: u32 = 20;

impl Draft<'_> {
    /// Leaves out an image of a result if the conversation has too many.
    pub(super) fn limit_images(&self, finished: &mut Finished) {
        if !finished.images.is_empty() && self.s.images >= MOST_IMAGES {
            finished.images.clear();
            finished.shown = format!(
                "{} (not shown: the conversation already has {MOST_IMAGES} images)",
                finished.shown
            )
            .into();
        }
    }
}
