//! The one place of this program that reads clocks.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The monotonic time now.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the time that passes; nothing decides by it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The processor time that this thread has used: it stands still while the machine runs something else.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither part is negative.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
