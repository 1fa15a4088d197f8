//! How long the kit waits for a server, and how it asks whether it still may.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before the test fails: a loaded machine needs a second at worst.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// As [`DEADLINE`], for what servers must settle among themselves, with waits of their own.
const LONG_DEADLINE: Duration = Duration::from_secs(30);

/// Between two looks.
const POLL: Duration = Duration::from_millis(3);

/// Looks again and again until there is an answer.
///
/// # Panics
/// After [`DEADLINE`], with what `otherwise` says.
#[track_caller]
pub(super) fn wait_for<T>(look: impl FnMut() -> Option<T>, otherwise: impl FnOnce() -> String) -> T {
    wait_within(DEADLINE, look, otherwise)
}

/// As [`wait_for`], for 30 s.
///
/// # Panics
/// After that, with what `otherwise` says.
#[track_caller]
pub(super) fn wait_long_for<T>(look: impl FnMut() -> Option<T>, otherwise: impl FnOnce() -> String) -> T {
    wait_within(LONG_DEADLINE, look, otherwise)
}

#[track_caller]
fn wait_within<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>, otherwise: impl FnOnce() -> String) -> T {
    let begun = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        if begun.elapsed() > deadline {
            panic!("after {} s: {}", deadline.as_secs(), otherwise());
        }
        thread::sleep(POLL);
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a real process takes")]
fn now() -> Instant {
    Instant::now()
}
