//! Reads JSON strictly: a key that stands twice is refused, nesting and lengths are bounded, and
//! numbers are whole. What the values have to be is asked through [`At`], which names the place in
//! its messages.

mod at;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

pub(crate) use at::At;

use crate::bounds::{ATTRIBUTES_MAX, BATCH_CHECKS_MAX};

/// Levels of lists and objects; a batch has four.
const DEPTH_MAX: usize = 8;

/// A JSON value. Texts without escapes are borrowed from what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number from 0 to 2^64 − 1, written as digits.
    Count(u64),
    /// Any other number.
    Number,
    /// A text.
    Text(Cow<'a, str>),
    /// At most 1,000 values.
    List(Vec<Json<'a>>),
    /// At most 64 members, each key once.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Reads `text`, which is one value and nothing else.
    ///
    /// # Errors
    /// What is wrong and where, as a sentence.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        if text.trim_ascii().is_empty() {
            return Err("there is no JSON in it".into());
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Level(DEPTH_MAX).deserialize(&mut reader).map_err(|error| error.to_string())?;
        reader.end().map_err(|error| error.to_string())?;
        Ok(value)
    }

    /// What kind of value this is, with its article.
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Count(_) | Self::Number => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads one value that may nest so many levels further.
#[derive(Clone, Copy)]
struct Level(usize);

impl Level {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        self.0.checked_sub(1).map(Self).ok_or_else(|| E::custom(format_args!("nested more than {DEPTH_MAX} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Count(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json<'de>, E> {
        Ok(Json::Number)
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let below = self.below()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            if list.len() == BATCH_CHECKS_MAX {
                return Err(A::Error::custom(format_args!("a list of more than {BATCH_CHECKS_MAX}")));
            }
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let below = self.below()?;
        let mut members: Vec<(Cow<'de, str>, Json<'de>)> = Vec::new();
        while let Some(key) = entries.next_key_seed(KeyText)? {
            if members.iter().any(|(other, _)| *other == key) {
                let key = crate::http::quoted(&key);
                return Err(A::Error::custom(format_args!("the key {key} stands twice")));
            }
            if members.len() == ATTRIBUTES_MAX {
                return Err(A::Error::custom(format_args!("an object of more than {ATTRIBUTES_MAX} keys")));
            }
            let value = entries.next_value_seed(below)?;
            members.push((key, value));
        }
        Ok(Json::Object(members))
    }
}

/// A key, borrowed where it has no escapes.
struct KeyText;

impl<'de> DeserializeSeed<'de> for KeyText {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyText {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(value.to_owned()))
    }
}
