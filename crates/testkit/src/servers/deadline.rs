//! How long the kit waits for a server, and how it asks whether it still may.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before the test fails: a loaded machine needs a second at worst.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// Between two looks.
const POLL: Duration = Duration::from_millis(3);

/// Looks again and again until there is an answer.
///
/// # Panics
/// After [`DEADLINE`], with what `otherwise` says.
#[track_caller]
pub(super) fn wait_for<T>(mut look: impl FnMut() -> Option<T>, otherwise: impl FnOnce() -> String) -> T {
    let begun = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        if begun.elapsed() > DEADLINE {
            panic!("after {} s: {}", DEADLINE.as_secs(), otherwise());
        }
        thread::sleep(POLL);
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a real process takes")]
fn now() -> Instant {
    Instant::now()
}
