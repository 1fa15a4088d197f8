//! What is known of a request: pairs of name and value.

use std::borrow::Cow;

use smallvec::SmallVec;

/// The most attributes of one request; what is added beyond them is left out, and a limit that names
/// it finds it missing.
pub const ATTRIBUTES_MAX: usize = 64;

/// What is known of a request: `org=acme`, `tool=search`. Up to four pairs need no allocation of
/// their own.
///
/// Of a name that is added twice the first value counts: put the source that you trust first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    pairs: SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>,
}

impl<'a> Attributes<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// These, and one more.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) -> Self {
        self.push(name, value);
        self
    }

    /// Adds one.
    pub fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        let name = name.into();
        if self.pairs.len() < ATTRIBUTES_MAX && self.value(&name).is_none() {
            self.pairs.push((name, value.into()));
        }
    }

    /// The value of the attribute `name`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// All pairs, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Adds all of `others`.
    pub fn append<'b: 'a>(&mut self, others: Attributes<'b>) {
        for (name, value) in others.pairs {
            self.push(name, value);
        }
    }
}
