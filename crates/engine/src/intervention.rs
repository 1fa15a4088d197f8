//! What an operator decides by hand, for a time: "stop agent X for an hour", "twice as much for acme
//! until tonight". Interventions live in the process, survive a reload and end by themselves.

use tidegate_core::{Algorithm, Span, Timestamp};

use crate::policy::{Condition, Test};

/// An operator's decision with an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervention {
    /// Whom it concerns: requests that meet all of these. At least one and at most
    /// [`CONDITIONS_MAX`], with [`VALUES_MAX`] values and [`WHEN_BYTES_MAX`] bytes in all.
    pub when: Vec<Condition>,
    /// What happens to them.
    pub effect: Effect,
    /// When it ends; at most 366 days ahead.
    pub expires_at: Timestamp,
    /// Why, in the operator's words: at most 500 characters.
    pub reason: String,
    /// Who decided: at most 100 characters.
    pub by: String,
}

/// What an intervention does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Refuses the requests, in any mode but `disabled`.
    Block,
    /// Gives the requests other numbers at one limit. Goes before the file's own overrides.
    Override {
        /// The limit's name.
        limit: String,
        /// The counting rule: of the limit's own kind.
        algorithm: Algorithm,
    },
}

/// Names an intervention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterventionId(pub u64);

/// An intervention in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveIntervention {
    /// Its name.
    pub id: InterventionId,
    /// When it began.
    pub since: Timestamp,
    /// What it is.
    pub intervention: Intervention,
}

/// Why an intervention was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterventionError {
    /// It names no one.
    #[error("an intervention has to say whom it concerns: 'when' is empty")]
    WhenEmpty,
    /// It ends in the past or too far ahead.
    #[error("an intervention ends in the future, at most 366 days ahead")]
    Expiry,
    /// It is about a limit that the file does not have.
    #[error("there is no limit '{0}' in the limits file")]
    UnknownLimit(String),
    /// The counting rule is of another kind than the limit's.
    #[error("the limit's algorithm is {own}; an override cannot make it {other}")]
    OtherAlgorithm {
        /// The limit's.
        own: &'static str,
        /// The override's.
        other: &'static str,
    },
    /// Reason or name are too long.
    #[error("the reason has at most 500 characters, the name of who decided at most 100")]
    TooLong,
    /// Its `when` is too large.
    #[error("'when' has {found} {what}, {most} are the most; write a prefix or a pattern, or several interventions")]
    WhenTooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much of it there is.
        found: usize,
        /// How much there may be.
        most: usize,
    },
    /// There are too many.
    #[error("there are {0} interventions in force, which is the most; end some first")]
    TooMany(usize),
}

/// The most conditions of one intervention.
pub const CONDITIONS_MAX: usize = 32;
/// The most values that the conditions of one intervention list, in all.
pub const VALUES_MAX: usize = 1_000;
/// The most bytes of names, values and patterns in one intervention: with the most interventions 16
/// MiB.
pub const WHEN_BYTES_MAX: usize = 16 * 1024;
/// The most that can be in force at a time.
pub const INTERVENTIONS_MAX: usize = 1_000;

impl Intervention {
    /// Checks what does not depend on the policy.
    pub(crate) fn validate(&self, now: Timestamp) -> Result<(), InterventionError> {
        if self.when.is_empty() {
            return Err(InterventionError::WhenEmpty);
        }
        self.check_size()?;
        if self.expires_at <= now || self.expires_at.since(now) > Span::from_secs(366 * 86_400) {
            return Err(InterventionError::Expiry);
        }
        if self.reason.chars().count() > 500 || self.by.chars().count() > 100 {
            return Err(InterventionError::TooLong);
        }
        Ok(())
    }

    /// What an intervention names is kept for as long as it lasts, and looked at by each request.
    fn check_size(&self) -> Result<(), InterventionError> {
        let values = |test: &Test| match test {
            Test::In(values) => values.len(),
            _ => 1,
        };
        let bytes = |test: &Test| match test {
            Test::Equals(text) | Test::Prefix(text) => text.len(),
            Test::In(values) => values.iter().map(String::len).sum(),
            Test::Glob(glob) => glob.pattern().len(),
            Test::Absent => 0,
        };
        let all = |of: &dyn Fn(&Condition) -> usize| self.when.iter().map(of).sum::<usize>();
        for (what, found, most) in [
            ("conditions", self.when.len(), CONDITIONS_MAX),
            ("values", all(&|one| values(&one.test)), VALUES_MAX),
            ("bytes of names and values", all(&|one| one.attribute.len() + bytes(&one.test)), WHEN_BYTES_MAX),
        ] {
            if found > most {
                return Err(InterventionError::WhenTooLarge { what, found, most });
            }
        }
        Ok(())
    }
}
