//! A place in a JSON value, and what is asked of the value there.

use std::borrow::Cow;
use std::fmt;

use super::Json;
use crate::http::{Problem, quoted};

/// A place in a JSON value: the root, or a step below another place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'p> {
    /// The value as a whole.
    Root,
    /// A member of an object.
    Key(&'p At<'p>, &'p str),
    /// An item of a list, counted from 0.
    Item(&'p At<'p>, usize),
}

impl<'p> At<'p> {
    /// The member `key` of the object here.
    pub(crate) fn key(&'p self, key: &'p str) -> At<'p> {
        At::Key(self, key)
    }

    /// The item `index` of the list here.
    pub(crate) fn item(&'p self, index: usize) -> At<'p> {
        At::Item(self, index)
    }

    /// What is wrong here.
    pub(crate) fn problem(&self, wrong: impl fmt::Display) -> Problem {
        Problem::bad_request(format!("{self} {wrong}"))
    }

    fn other_kind(&self, wanted: &str, found: &Json<'_>) -> Problem {
        self.problem(format_args!("has to be {wanted}, not {}", found.kind()))
    }

    /// The members of the object here, in the order of `known`; a key that is not known is refused.
    pub(crate) fn members<'a, const N: usize>(
        &self,
        value: Json<'a>,
        known: [&str; N],
    ) -> Result<[Option<Json<'a>>; N], Problem> {
        let mut found = [const { None }; N];
        for (key, member) in self.object(value)? {
            match known.iter().position(|known| *known == key).and_then(|at| found.get_mut(at)) {
                Some(slot) => *slot = Some(member),
                None => {
                    let known = known.join(", ");
                    return Err(self.problem(format_args!("has the unknown key {}; known are {known}", quoted(&key))));
                }
            }
        }
        Ok(found)
    }

    /// All members of the object here.
    pub(crate) fn object<'a>(&self, value: Json<'a>) -> Result<Vec<(Cow<'a, str>, Json<'a>)>, Problem> {
        match value {
            Json::Object(members) => Ok(members),
            other => Err(self.other_kind("an object", &other)),
        }
    }

    /// The items of the list here.
    pub(crate) fn list<'a>(&self, value: Json<'a>) -> Result<Vec<Json<'a>>, Problem> {
        match value {
            Json::List(items) => Ok(items),
            other => Err(self.other_kind("a list", &other)),
        }
    }

    /// The text here. Other values are not taken for text: 5 and "5" would be two counters.
    pub(crate) fn text<'a>(&self, value: Json<'a>) -> Result<Cow<'a, str>, Problem> {
        match value {
            Json::Text(text) => Ok(text),
            other @ (Json::Bool(_) | Json::Count(_) | Json::Number) => {
                Err(self.problem(format_args!("has to be a string, not {}; put it in quotes", other.kind())))
            }
            other => Err(self.other_kind("a string", &other)),
        }
    }

    /// The whole number here.
    pub(crate) fn count(&self, value: &Json<'_>) -> Result<u64, Problem> {
        let wanted = "a whole number from 0 to 18446744073709551615, written in digits";
        match value {
            Json::Count(count) => Ok(*count),
            Json::Number => Err(self.problem(format_args!("has to be {wanted}"))),
            other => Err(self.other_kind(wanted, other)),
        }
    }

    /// The boolean here.
    pub(crate) fn flag(&self, value: &Json<'_>) -> Result<bool, Problem> {
        match value {
            Json::Bool(flag) => Ok(*flag),
            other => Err(self.other_kind("true or false", other)),
        }
    }

    /// What has to be here.
    pub(crate) fn required<'a>(&self, value: Option<Json<'a>>) -> Result<Json<'a>, Problem> {
        value.ok_or_else(|| self.problem("is missing"))
    }
}

impl fmt::Display for At<'_> {
    /// `checks[3].attributes.org`; the root is `the body`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("the body"),
            Self::Key(Self::Root, key) => write_key(key, f),
            Self::Key(parent, key) => {
                write!(f, "{parent}.")?;
                write_key(key, f)
            }
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A plain key as it is, any other in quotes.
fn write_key(key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let plain = (1..=40).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if plain { f.write_str(key) } else { f.write_str(&quoted(key)) }
}
