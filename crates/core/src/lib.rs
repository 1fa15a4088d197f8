//! The words and the counting rules of Tidegate: pure functions and plain types, without I/O and
//! without a clock. Every rule takes `now` as an argument.
//!
//! # Layout
//! - [`units`]: time, cost and rate.
//! - [`algorithm`]: the counting rules; one file each, with its formula.
//! - [`period`]: civil periods (day, month…) in a time zone.
//! - [`limit`], [`request`], [`decision`]: what stands in a limits file, what a door asks, what a
//!   limit answers.

pub mod algorithm;
pub mod decision;
pub mod limit;
pub mod period;
pub mod request;
pub mod units;

pub use algorithm::{Algorithm, AlgorithmError, Counter};
pub use decision::{Standing, Verdict};
pub use limit::{Limit, Mode, Unit};
pub use period::{CivilPeriod, PeriodError, PeriodKind};
pub use request::Request;
pub use units::{Cost, Rate, RateError, RateFault, Span, Timestamp};
