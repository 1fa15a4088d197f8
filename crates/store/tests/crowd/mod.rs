//! What tests with many threads share.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that does not end fails")]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// `TIDEGATE_SOAK` times as many rounds; 1 by default.
pub(crate) fn soak() -> usize {
    std::env::var("TIDEGATE_SOAK").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Runs `test` in a thread of its own and fails if it does not end: a deadlock is a failure.
pub(crate) fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match ended.recv_timeout(Duration::from_mins(4) * soak() as u32) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end"),
        // It ended, or it panicked and says so.
        _ => thread.join().unwrap(),
    }
}
