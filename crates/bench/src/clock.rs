//! The one place of this program that reads a clock.

use std::time::Instant;

/// The monotonic time now.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the time that passes; nothing decides by it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
