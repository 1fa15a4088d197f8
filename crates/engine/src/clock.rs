//! The only place that reads a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use tidegate_core::{Span, Timestamp};

/// Where an engine takes the time from: read once a request.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The system's clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still until it is set; its clones move with it. For tests and
    /// simulations.
    pub fn manual(now: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(now.as_micros()))))
    }

    /// The time.
    #[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                let since_epoch = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                // 2^64 µs are half a million years.
                Timestamp::from_micros(since_epoch.as_secs() * 1_000_000 + u64::from(since_epoch.subsec_micros()))
            }
            Source::Manual(now_us) => Timestamp::from_micros(now_us.load(Ordering::SeqCst)),
        }
    }

    /// Sets a manual clock, forwards or back; the system's is left alone.
    pub fn set(&self, now: Timestamp) {
        if let Source::Manual(now_us) = &self.0 {
            now_us.store(now.as_micros(), Ordering::SeqCst);
        }
    }

    /// Moves a manual clock forwards; the system's is left alone.
    pub fn advance(&self, span: Span) {
        if let Source::Manual(now_us) = &self.0 {
            now_us.fetch_add(span.as_micros(), Ordering::SeqCst);
        }
    }

    /// Whether time passes by itself.
    pub const fn is_system(&self) -> bool {
        matches!(self.0, Source::System)
    }
}
