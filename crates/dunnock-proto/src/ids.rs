//! Identifiers for sessions, processes, steps, calls, questions and content.
//!
//! Invariant: an id that the core creates ([`CallId`], [`QuestionId`], [`Step`], [`Seq`]) never
//! repeats within a session, not even after a rewind. Ids that need randomness are created outside
//! and passed in as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// The position of an event in its session's log. The first event is 1; 0 means "before
/// everything".
pub type Seq = u64;

/// A moment, in milliseconds since 1970 (UTC). It does not define an order: [`Seq`] does.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct At(pub i64);

/// Why a text is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadId(&'static str);

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! text_form {
    ($name:ident, $pattern:literal, $about:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(D::Error::custom)
            }
        }
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "description": $about })
            }
        }
    };
}

/// Names a session: 8 to 40 characters of `a-z0-9`, so that it is safe as a file name and a prefix
/// is easy to type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// Creates an id of twenty characters from sixteen random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; 16]) -> Self {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut n = u128::from_le_bytes(bytes);
        let mut text = String::with_capacity(20);
        for _ in 0..20 {
            text.push(LETTERS[(n & 31) as usize] as char);
            n >>= 5;
        }
        Self(text)
    }
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl FromStr for SessionId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        let fits = (8..=40).contains(&text.len());
        let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if fits && plain {
            Ok(Self(text.into()))
        } else {
            Err(BadId("a session id is 8 to 40 characters of a-z and 0-9"))
        }
    }
}
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
text_form!(SessionId, "^[a-z0-9]{8,40}$", "The id of a session.");

/// Names one command. The sender chooses it, so that sending the command again has no further
/// effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputId(String);

impl InputId {
    /// Creates an id of thirty-two characters from sixteen random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(format!("{:032x}", u128::from_le_bytes(bytes)))
    }
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl FromStr for InputId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        let fits = (1..=64).contains(&text.len());
        if fits && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(text.into()))
        } else {
            Err(BadId("a command id is 1 to 64 visible ASCII characters"))
        }
    }
}
impl fmt::Display for InputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
text_form!(InputId, "^[!-~]{1,64}$", "The id of a command, chosen by its sender.");

/// One process at one takeover. The value is fresh each time, so that work started by a dead
/// process is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u128);

impl FromStr for Owner {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        u128::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| BadId("an owner is a hexadecimal number"))
    }
}
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
text_form!(Owner, "^[0-9a-f]{1,32}$", "The id of a process that drives a session.");

/// One model request, numbered from 1 throughout the session.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step(pub u32);

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One call in an answer. We assign this id: the provider's own is only data, since local models
/// repeat theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The step whose answer asked for it.
    pub step: Step,
    /// The position in that answer.
    pub index: u16,
}
impl FromStr for CallId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = BadId("a call is written STEP.INDEX, for example 3.0");
        let (step, index) = text.split_once('.').ok_or(bad)?;
        Ok(Self {
            step: Step(step.parse().map_err(|_| bad)?),
            index: index.parse().map_err(|_| bad)?,
        })
    }
}
impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.step, self.index)
    }
}
text_form!(
    CallId,
    "^(0|[1-9][0-9]{0,8})\\.(0|[1-9][0-9]{0,3})$",
    "The id of a call, written STEP.INDEX."
);

/// One question to the person, numbered from 1 throughout the session.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuestionId(pub u32);

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}

/// A BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The start value of a log's chain.
    pub const ZERO: Self = Self([0; 32]);
    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
    /// The hash of several pieces, each prefixed with its length, so that moving a boundary changes
    /// it.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }
}
impl FromStr for Hash {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = BadId("a hash is 64 hexadecimal digits");
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(bad);
        }
        let value = |d: u8| (d as char).to_digit(16).map(|v| v as u8);
        let mut out = [0; 32];
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0]).zip(value(pair[1])).map(|(h, l)| h << 4 | l).ok_or(bad)?;
        }
        Ok(Self(out))
    }
}
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}
impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.8}", self.to_string())
    }
}
text_form!(Hash, "^[0-9a-f]{64}$", "A BLAKE3 hash in hexadecimal digits.");

/// Names a state of the workspace's files in the checkpoint store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tree(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_their_text_form() {
        let call = CallId { step: Step(12), index: 3 };
        assert_eq!(call.to_string().parse(), Ok(call));
        let hash = Hash::of(b"x");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(serde_json::to_string(&call).unwrap(), "\"12.3\"");
        let owner = Owner(0xabc);
        assert_eq!(owner.to_string().parse(), Ok(owner));
        let id = SessionId::from_random([7; 16]);
        assert_eq!(id.as_str().len(), 20);
        assert_eq!(id.as_str().parse(), Ok(id));
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in ["", "short", "UPPERCASE1", "has space 1", "../../etc/passwd"] {
            assert!(text.parse::<SessionId>().is_err(), "{text}");
        }
        assert!("3".parse::<CallId>().is_err());
        assert!("zz".parse::<Hash>().is_err());
        assert!("g".repeat(64).parse::<Hash>().is_err());
        assert!("".parse::<InputId>().is_err());
        assert!("a b".parse::<InputId>().is_err());
    }

    #[test]
    fn moving_a_boundary_changes_the_hash() {
        assert_ne!(Hash::of_parts(&[b"ab", b"c"]), Hash::of_parts(&[b"a", b"bc"]));
    }
}
