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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Calendar, FixedWindow, TokenBucket};
    use crate::period::{CivilPeriod, PeriodKind};
    use crate::units::Rate;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    fn fixed_window(text: &str) -> Algorithm {
        Algorithm::FixedWindow(FixedWindow::new(rate(text)).unwrap())
    }

    fn token_bucket(text: &str, burst: u64) -> Algorithm {
        Algorithm::TokenBucket(TokenBucket::new(rate(text), Some(burst)).unwrap())
    }

    fn month(quota: u64, zone: &str) -> Algorithm {
        Algorithm::Calendar(Calendar::new(quota, CivilPeriod::new(PeriodKind::Month, zone, None).unwrap()))
    }

    fn limit(name: &str, per: &[&str], algorithm: Algorithm) -> Limit {
        let per: Vec<Arc<str>> = per.iter().map(|attribute| (*attribute).into()).collect();
        let level = Limit::level_of(&per, &algorithm);
        Limit { name: name.into(), level, per, unit: Unit::Requests, mode: Mode::Enforce, algorithm }
    }

    #[test]
    fn the_level_is_the_last_attribute_or_global_or_budget() {
        let minute = || fixed_window("60/min");
        assert_eq!(&*limit("a", &["org", "agent"], minute()).level, "agent");
        assert_eq!(&*limit("a", &["org"], minute()).level, "org");
        assert_eq!(&*limit("a", &[], minute()).level, "global");
        assert_eq!(&*limit("a", &["org"], month(5, "UTC")).level, "budget");
        assert_eq!(&*limit("a", &[], month(5, "UTC")).level, "budget");
    }

    #[test]
    fn a_limit_keeps_its_counters_when_only_its_numbers_change() {
        let identity = |algorithm| limit("a", &["org"], algorithm).identity();
        assert_eq!(identity(fixed_window("60/min")), identity(fixed_window("90/min")));
        assert_eq!(identity(token_bucket("60/min", 10)), identity(token_bucket("60/min", 99)));
        assert_eq!(identity(token_bucket("60/min", 10)), identity(token_bucket("1/s", 10)), "the same refill");
        assert_eq!(identity(month(5, "UTC")), identity(month(9, "UTC")));
    }

    #[test]
    fn a_limit_starts_anew_when_what_its_counters_mean_changes() {
        let minute = || fixed_window("60/min");
        let others = [
            limit("b", &["org"], minute()),
            limit("a", &["agent"], minute()),
            limit("a", &["org", "agent"], minute()),
            limit("a", &[], minute()),
            limit("a", &["org"], fixed_window("60/h")),
            limit("a", &["org"], token_bucket("60/min", 60)),
            limit("a", &["org"], token_bucket("61/min", 60)),
            limit("a", &["org"], token_bucket("7/min", 60)),
            limit("a", &["org"], month(60, "UTC")),
            limit("a", &["org"], month(60, "Europe/Berlin")),
        ];
        let mut identities: Vec<String> = others.iter().map(Limit::identity).collect();
        identities.push(limit("a", &["org"], minute()).identity());
        identities.sort_unstable();
        identities.dedup();
        assert_eq!(identities.len(), others.len() + 1);
    }

    #[test]
    fn a_mode_is_softened_and_never_sharpened() {
        let modes = [Mode::Enforce, Mode::Permissive, Mode::Disabled];
        for (index, mode) in modes.into_iter().enumerate() {
            assert_eq!(mode.name().parse(), Ok(mode));
            for (other_index, other) in modes.into_iter().enumerate() {
                assert_eq!(mode.or_milder(other), modes[index.max(other_index)]);
            }
        }
        assert_eq!("Enforce".parse::<Mode>(), Err(()));
        assert_eq!("".parse::<Mode>(), Err(()));
    }
}
