//! The stored form of an event, and the hash chain that reveals tampering.
//!
//! Invariant: the chain covers each body by its hash, so a body can be erased later and the chain
//! still verifies.
//! Invariant: stored bytes are never rewritten; older forms are converted while decoding.

use crate::{At, Event, Hash, InputId, Seq};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, sync::Arc};

/// What a reader must do with an event of an unknown kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Stop writing: the meaning of later events may depend on it.
    Must,
    /// Skip it, but keep it in the log.
    May,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "must",
            Self::May => "may",
        })
    }
}

/// What caused an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A command from a user, by its id.
    Input(InputId),
    /// A report of finished work.
    Report,
    /// The driver itself: creating a session, taking it over, starting a call.
    Driver,
    /// A cause from a newer release, preserved unchanged.
    Other(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(id) => write!(f, "input {id}"),
            Self::Report => f.write_str("report"),
            Self::Driver => f.write_str("driver"),
            Self::Other(word) => f.write_str(word),
        }
    }
}
impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        match text {
            "report" => Self::Report,
            "driver" => Self::Driver,
            _ => match text.strip_prefix("input ").map(str::parse) {
                Some(Ok(id)) => Self::Input(id),
                Some(Err(_)) | None => Self::Other(text.to_owned()),
            },
        }
    }
}
impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self::from(<std::borrow::Cow<'de, str>>::deserialize(d)?.as_ref()))
    }
}

/// The JSON of one event, byte for byte as stored, or its hash once it was erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The JSON text.
    Text(Arc<str>),
    /// The body was erased; this is its hash.
    Erased(Hash),
}

impl Body {
    /// The hash that the chain uses.
    #[must_use]
    pub fn hash(&self) -> Hash {
        match self {
            Self::Text(text) => Hash::of(text.as_bytes()),
            Self::Erased(hash) => *hash,
        }
    }
}
impl Serialize for Body {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => {
                let raw: &serde_json::value::RawValue =
                    serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(s)
            }
            Self::Erased(hash) => hash.serialize(s),
        }
    }
}
impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = <Box<serde_json::value::RawValue>>::deserialize(d)?;
        match raw.get().starts_with('"') {
            true => serde_json::from_str(raw.get()).map(Self::Erased).map_err(D::Error::custom),
            false => Ok(Self::Text(Arc::from(raw.get()))),
        }
    }
}

/// What is stored with a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Envelope {
    /// The event's position in the log, from 1.
    pub seq: Seq,
    /// When it was recorded. This does not define the order of events.
    pub at: At,
    /// What caused it.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub cause: Cause,
    /// The kind of event.
    pub kind: String,
    /// The version of the body's format.
    pub v: u16,
    /// What a reader must do if it does not know this kind.
    pub need: Need,
    /// The chain up to the previous event.
    pub prev: Hash,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The event's metadata.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The event itself.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub body: Body,
}

/// A decoded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// An event that this release knows.
    Known(Event),
    /// An event from a newer release, or an erased one, and why it could not be read.
    Unknown(String),
}

impl Record {
    /// Decodes the body.
    #[must_use]
    pub fn decode(&self) -> Decoded {
        match &self.body {
            Body::Text(text) => Event::decode(&self.envelope.kind, self.envelope.v, text),
            Body::Erased(_) => Decoded::Unknown("erased".into()),
        }
    }
    /// The chain up to and including this event.
    #[must_use]
    pub fn chain(&self) -> Hash {
        let e = &self.envelope;
        let need = match e.need {
            Need::Must => [1],
            Need::May => [0],
        };
        let cause = e.cause.to_string();
        Hash::of_parts(&[
            &e.prev.0,
            &e.seq.to_le_bytes(),
            &e.at.0.to_le_bytes(),
            cause.as_bytes(),
            e.kind.as_bytes(),
            &e.v.to_le_bytes(),
            &need,
            &self.body.hash().0,
        ])
    }
}

/// Creates the record for `event`, which follows event `seq`, whose chain is `prev`.
#[must_use]
pub fn seal(seq: Seq, prev: Hash, at: At, cause: Cause, event: &Event) -> Record {
    let kind = event.kind().to_owned();
    let envelope =
        Envelope { seq: seq + 1, at, cause, kind, v: event.v(), need: event.need(), prev };
    Record { envelope, body: Body::Text(event.body().into()) }
}

/// Checks that `record` continues a log of `seq` events with chain `head`. Returns the new chain.
///
/// # Errors
/// The sequence number from which the log is no longer what was written.
pub fn verify_chain(seq: Seq, head: Hash, record: &Record) -> Result<Hash, Seq> {
    let e = &record.envelope;
    if e.seq == seq + 1 && e.prev == head { Ok(record.chain()) } else { Err(seq + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Noticed, Titled};

    fn record(seq: Seq, prev: Hash, text: &str) -> Record {
        seal(seq, prev, At(5), Cause::Report, &Event::from(Noticed::plain(text)))
    }

    #[test]
    fn a_record_survives_its_json_form() {
        let record = record(0, Hash::ZERO, "smart “quotes”, \u{0} and \n");
        let text = serde_json::to_string(&record).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back, record);
        assert_eq!(back.chain(), record.chain());
    }

    #[test]
    fn an_erased_body_keeps_the_chain() {
        let whole = record(0, Hash::ZERO, "secret");
        let erased = Record { body: Body::Erased(whole.body.hash()), ..whole.clone() };
        assert_eq!(erased.chain(), whole.chain());
        let back: Record = serde_json::from_str(&serde_json::to_string(&erased).unwrap()).unwrap();
        assert_eq!(back, erased);
        assert!(matches!(back.decode(), Decoded::Unknown(_)));
    }

    #[test]
    fn each_part_of_a_record_is_in_the_chain() {
        let base = record(3, Hash::ZERO, "x");
        let edits: [fn(&mut Record); 8] = [
            |r| r.envelope.seq += 1,
            |r| r.envelope.at.0 += 1,
            |r| r.envelope.cause = Cause::Driver,
            |r| r.envelope.kind.push('x'),
            |r| r.envelope.v += 1,
            |r| r.envelope.need = Need::May,
            |r| r.envelope.prev = Hash::of(b"other"),
            |r| r.body = Body::Text("{}".into()),
        ];
        for (n, edit) in edits.iter().enumerate() {
            let mut changed = base.clone();
            edit(&mut changed);
            assert_ne!(changed.chain(), base.chain(), "edit {n} left no trace");
        }
    }

    #[test]
    fn a_later_release_is_recognised() {
        let known = Event::from(Titled { title: "t".into() });
        assert_eq!(Event::decode("titled", 1, &known.body()), Decoded::Known(known.clone()));
        assert!(matches!(Event::decode("titled", 2, &known.body()), Decoded::Unknown(_)));
        assert!(matches!(Event::decode("dreamt", 1, "{}"), Decoded::Unknown(_)));
        let variant = r#"{"call":"1.0","outcome":{"evaporated":{}},"shown":""}"#;
        assert!(matches!(Event::decode("finished", 1, variant), Decoded::Unknown(_)));
    }

    #[test]
    fn causes_survive_their_text_form() {
        for cause in [Cause::Report, Cause::Driver, Cause::Input("abc".parse().unwrap())] {
            assert_eq!(Cause::from(cause.to_string().as_str()), cause);
        }
        for later in ["input ", "dream 7", ""] {
            assert_eq!(
                Cause::from(later),
                Cause::Other(later.into()),
                "a later release's word is kept"
            );
        }
    }
}
