//! Reads JSON as the OpenAPI document describes it: an object must be an object, never a list of
//! its fields in order, and a number without a fractional part is an integer, however it is
//! written.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Number, Value};

/// Deserialises a value.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    T::deserialize(Strict(serde_json::from_slice(bytes)?))
}

struct Strict(Value);

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(b) => Unexpected::Bool(*b),
        Value::Number(_) => Unexpected::Other("number"),
        Value::String(s) => Unexpected::Str(s),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

/// The largest integer that every language can represent exactly (2^53 - 1).
const MOST: u64 = 9_007_199_254_740_991;
/// The same as a float.
const WHOLE: f64 = 9_007_199_254_740_991.0;

fn number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Error> {
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(n), ..) if n > MOST => {
            Err(Error::custom(format_args!("{n} is too large; the maximum is {MOST}")))
        }
        (Some(n), ..) => visitor.visit_u64(n),
        (_, Some(n), _) => visitor.visit_i64(n),
        (.., Some(n)) if n.fract() == 0.0 && (0.0..=WHOLE).contains(&n) => {
            visitor.visit_u64(n as u64)
        }
        (.., Some(n)) if n.fract() == 0.0 && (-WHOLE..0.0).contains(&n) => {
            visitor.visit_i64(n as i64)
        }
        (.., n) => visitor.visit_f64(n.unwrap_or(f64::NAN)),
    }
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(b),
            Value::Number(n) => number(&n, visitor),
            Value::String(s) => visitor.visit_string(s),
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter())),
            Value::Object(fields) => visitor.visit_map(Fields(fields.into_iter(), None)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(Error::invalid_type(unexpected(&other), &visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(Choice(name, None)),
            Value::Object(fields) if fields.len() == 1 => match fields.into_iter().next() {
                Some((name, value)) => visitor.visit_enum(Choice(name, Some(value))),
                None => Err(Error::custom("an empty object")),
            },
            other => {
                Err(Error::invalid_type(unexpected(&other), &"a name, or an object with one field"))
            }
        }
    }

    /// Unknown fields are ignored without validation.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct Items(std::vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for Items {
    type Error = Error;
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.0.next().map(|value| seed.deserialize(Strict(value))).transpose()
    }
}

struct Fields(<Map<String, Value> as IntoIterator>::IntoIter, Option<Value>);

impl<'de> MapAccess<'de> for Fields {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.0.next() else { return Ok(None) };
        self.1 = Some(value);
        seed.deserialize(Strict(Value::String(name))).map(Some)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Strict(self.1.take().unwrap_or_default()))
    }
}

struct Choice(String, Option<Value>);

impl<'de> EnumAccess<'de> for Choice {
    type Error = Error;
    type Variant = Content;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content), Error> {
        let name: StrDeserializer<'_, Error> = self.0.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, Content(self.1)))
    }
}

struct Content(Option<Value>);

impl<'de> VariantAccess<'de> for Content {
    type Error = Error;
    fn unit_variant(self) -> Result<(), Error> {
        match self.0 {
            None => Ok(()),
            Some(value) => Err(Error::invalid_type(unexpected(&value), &"a name without a value")),
        }
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(Strict(
            self.0.ok_or_else(|| Error::custom("a name without the value it needs"))?,
        ))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        Strict(self.0.unwrap_or_default()).deserialize_any(visitor)
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        Strict(self.0.unwrap_or_default()).deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use dunnock_proto::{Command, CommandRequest, ConfigPatch, Scope};

    #[test]
    fn what_doors_send_is_read_as_everywhere() {
        let texts = [
            r#"{"id":"a","command":"run"}"#,
            r#"{"id":"a","expect":3,"command":{"prompt":{"text":"hi"}}}"#,
            r#"{"id":"a","command":{"rewind":{"to":{"event":7},"scope":"both"}}}"#,
            r#"{"id":"a","command":{"rewind":{"to":"undo","scope":"files","force":true}}}"#,
            r#"{"id":"a","command":{"configure":{"set":{"window":null,"sandbox":{"require":"A"},"max_steps":3}}}}"#,
        ];
        for text in texts {
            let usual: CommandRequest = serde_json::from_str(text).unwrap();
            assert_eq!(read::<CommandRequest>(text.as_bytes()).unwrap(), usual, "{text}");
        }
        let set: ConfigPatch = read(br#"{"later":[2305843009213693953],"window":null}"#).unwrap();
        assert_eq!(set.window, Some(None), "set to nothing is not the same as not set");
    }

    #[test]
    fn a_list_is_no_object_and_a_whole_number_may_have_a_point() {
        assert!(read::<CommandRequest>(br#"["a",null,"run"]"#).is_err());
        assert!(read::<CommandRequest>(br#"{"id":"a","command":{"prompt":["hi"]}}"#).is_err());
        assert!(read::<CommandRequest>(br#"{"id":"a","command":{"run":null}}"#).is_err());
        assert!(
            read::<CommandRequest>(br#"{"id":"a","command":{"title":{"title":"x"},"run":null}}"#)
                .is_err()
        );
        let request: CommandRequest =
            read(br#"{"id":"a","expect":4.0,"command":"compact"}"#).unwrap();
        assert_eq!((request.expect, request.command), (Some(4), Command::Compact));
        assert!(read::<CommandRequest>(br#"{"id":"a","expect":4.5,"command":"compact"}"#).is_err());
        assert!(read::<CommandRequest>(br#"{"id":"a","expect":-1,"command":"compact"}"#).is_err());
        assert_eq!(read::<Scope>(br#""conversation""#).unwrap(), Scope::Conversation);
    }
}
