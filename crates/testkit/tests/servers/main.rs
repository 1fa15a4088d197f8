//! The kit that starts servers does what it says, with every server.

use std::time::{Duration, Instant};

mod alone;
mod fault_proxy;
mod several;

/// Long enough for a server that answers, short enough to wait for one that does not.
const A_MOMENT: Duration = Duration::from_millis(100);

/// Time for an answer on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// For how long something took.
#[expect(clippy::disallowed_methods, reason = "how long real servers and connections take")]
fn now() -> Instant {
    Instant::now()
}
