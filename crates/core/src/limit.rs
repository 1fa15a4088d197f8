//! A limit: who shares a counter, what it counts, and by which rule.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::algorithm::Algorithm;
use crate::units::Span;

/// A limit as the stores and doors see it. Which requests it applies to is the engine's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Unique among the limits of a file: 1 to 64 characters of `a-z A-Z 0-9 . _ -`.
    pub name: Arc<str>,
    /// The word for it in answers, logs and metrics: `agent`, `org`, `global`, `budget`…
    pub level: Arc<str>,
    /// The attributes whose values name a counter; none means one counter for all.
    pub per: Vec<Arc<str>>,
    /// What it counts.
    pub unit: Unit,
    /// What a refusal means.
    pub mode: Mode,
    /// The counting rule.
    pub algorithm: Algorithm,
}

impl Limit {
    /// The level that `per` gives: `budget` for a calendar limit, else the last attribute, or
    /// `global` where there is none.
    pub fn level_of(per: &[Arc<str>], algorithm: &Algorithm) -> Arc<str> {
        match (algorithm, per.last()) {
            (Algorithm::Calendar(_), _) => "budget".into(),
            (_, Some(attribute)) => Arc::clone(attribute),
            (_, None) => "global".into(),
        }
    }

    /// The most that can be admitted at one instant.
    pub fn capacity(&self) -> u64 {
        self.algorithm.capacity()
    }

    /// The time in which a full capacity comes back.
    pub fn window(&self) -> Span {
        self.algorithm.window()
    }

    /// Names the counters that this limit keeps: limits with equal identities share them, across
    /// reloads of the file.
    pub fn identity(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.name, self.per.join("\n"), self.unit, self.algorithm.layout())
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Requests, weighted by their cost.
    #[default]
    Requests,
}

impl Unit {
    /// The word in the limits file and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a refusal means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// It refuses.
    #[default]
    Enforce,
    /// It counts what it admits and says what it would have refused, but never refuses and never
    /// vetoes another limit.
    Permissive,
    /// It does not exist: no counter, no header.
    Disabled,
}

impl Mode {
    /// The word in the limits file and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Permissive => "permissive",
            Self::Disabled => "disabled",
        }
    }

    /// The milder of two modes: a file's mode can soften a limit's, not sharpen it.
    #[must_use]
    pub fn or_milder(self, other: Self) -> Self {
        self.max(other)
    }
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Enforce, Self::Permissive, Self::Disabled].into_iter().find(|mode| mode.name() == text).ok_or(())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
