//! The kinds of events that make up a session, in the past tense.
//!
//! Each event is one struct of `events_table.rs`, listed there in `events!` with its name on disk,
//! its version and its need: a reader that does not know it may continue ([`Need::May`]) or must
//! stop writing ([`Need::Must`]).
//!
//! [`Need::May`]: crate::Need::May
//! [`Need::Must`]: crate::Need::Must

use crate::Event;

macro_rules! events {
    ($($name:ident $kind:literal $v:literal $need:ident,)*) => {
        /// An event. The state of a session is a fold over its events and nothing else.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant is documented at its struct")]
        pub enum Event { $($name($name),)* }

        impl Event {
            /// The names of all kinds, as on disk.
            pub const KINDS: &'static [&'static str] = &[$($kind,)*];
            /// Every kind with its version and need, as shown on the reference page.
            pub const TABLE: &'static [(&'static str, u16, Need)] = &[$(($kind, $v, Need::$need),)*];
            /// Every kind with the schema of its body.
            #[cfg(feature = "schema")]
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($kind, generator.subschema_for::<$name>()),)*]
            }
            /// Its name on disk.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => $kind,)* }
            }
            /// The version of its format.
            #[must_use]
            pub fn v(&self) -> u16 {
                match self { $(Self::$name(_) => $v,)* }
            }
            /// Whether a reader that does not know it may continue.
            #[must_use]
            pub fn need(&self) -> Need {
                match self { $(Self::$name(_) => Need::$need,)* }
            }
            /// Its body as stored.
            #[must_use]
            pub fn body(&self) -> String {
                let text = match self { $(Self::$name(fact) => serde_json::to_string(fact),)* };
                text.unwrap_or_default() // plain structs with text keys cannot fail to serialise
            }
            /// Decodes a stored body. A kind, version or variant from a newer release is
            /// [`Decoded::Unknown`].
            #[must_use]
            pub fn decode(kind: &str, v: u16, body: &str) -> Decoded {
                match kind {
                    $($kind if v <= $v => serde_json::from_str::<$name>(body)
                        .map_or_else(|e| Decoded::Unknown(e.to_string()), |fact| Decoded::Known(Self::$name(fact))),)*
                    $($kind => Decoded::Unknown(format!("unknown version {v} of {kind}")),)*
                    _ => Decoded::Unknown(format!("unknown kind of event: {kind}")),
                }
            }
        }
        $(impl From<$name> for Event {
            fn from(fact: $name) -> Self { Self::$name(fact) }
        })*
    };
}

impl Event {
    /// The blobs it refers to: these must be exported along with the session.
    #[must_use]
    pub fn blobs(&self) -> Vec<crate::Hash> {
        match self {
            Self::PreambleSet(e) => vec![e.preamble.hash],
            Self::Compacted(e) => vec![e.preamble.hash],
            Self::Prompted(e) => e.images.clone(),
            Self::Answered(e) => e.raw.into_iter().collect(),
            Self::Finished(e) => {
                let one = e.full.into_iter().chain(e.streams).chain(e.diff);
                one.chain(e.images.iter().copied()).collect()
            }
            _ => Vec::new(),
        }
    }
}
