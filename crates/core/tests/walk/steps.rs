//! Random steps: how far time moves, what is asked for, and whether it is taken.

use proptest::prelude::*;
use tidegate_core::{Standing, Timestamp, Verdict};

/// No walk goes on after this, 2095: what is still to come has to fit before the end of time.
const LATEST_US: u64 = 3_944_678_400_000_000;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) motion: Motion,
    pub(crate) cost: Wanted,
    /// False if another limit of the same request refuses: an admitted cost is then not taken.
    pub(crate) taken: bool,
}

/// How the clock moves before a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Motion {
    Stay,
    Forward {
        us: u64,
    },
    /// Thousandths of a window.
    ForwardWindows {
        permille: u64,
    },
    /// To the next multiple of the window, and off by this much.
    ToBoundary {
        off_us: i64,
    },
    /// As long as the last denial said, and off by this much.
    Wait {
        off_us: i64,
    },
    /// Until `remaining` grows, and off by this much.
    Next {
        off_us: i64,
    },
    /// Until the state expires, and off by this much.
    ToExpiry {
        off_us: i64,
    },
    Back {
        us: u64,
    },
    BackWindows {
        permille: u64,
    },
    /// To the start of the walk.
    BackToStart,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    Units(u64),
    /// What is left, and so much more.
    Remaining {
        more: u64,
    },
    /// Everything that the limit ever has, and so much more.
    Capacity {
        more: u64,
    },
    /// Thousandths of the capacity.
    Part {
        permille: u64,
    },
}

impl Wanted {
    pub(crate) fn units(self, remaining: u64, capacity: u64) -> u64 {
        match self {
            Self::Units(units) => units,
            Self::Remaining { more } => remaining.saturating_add(more),
            Self::Capacity { more } => capacity.saturating_add(more),
            Self::Part { permille } => u64::try_from(u128::from(capacity) * u128::from(permille) / 1_000).unwrap(),
        }
    }
}

/// Where in time a walk is, and the instants that it may be sent to.
#[derive(Debug)]
pub(crate) struct Place {
    now: u64,
    start: u64,
    latest: u64,
    window_us: u64,
    wait_us: u64,
    next_us: u64,
    expires_at: u64,
}

impl Place {
    pub(crate) fn new(start: u64, window_us: u64) -> Self {
        Self { now: start, start, latest: start, window_us, wait_us: 0, next_us: 0, expires_at: 0 }
    }

    /// The latest instant that the clock has shown.
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    pub(crate) fn remember(&mut self, verdict: Verdict, standing: Standing, expires_at: Timestamp) {
        if let Verdict::Wait(wait) = verdict {
            self.wait_us = wait.as_micros();
        }
        self.next_us = standing.next.as_micros();
        self.expires_at = expires_at.as_micros();
    }

    pub(crate) fn move_by(&mut self, motion: Motion) -> u64 {
        let windows_us = |permille| u64::try_from(u128::from(self.window_us) * u128::from(permille) / 1_000).unwrap();
        let to = match motion {
            Motion::Stay => self.now,
            Motion::Forward { us } => self.now + us,
            Motion::ForwardWindows { permille } => self.now.saturating_add(windows_us(permille)),
            Motion::ToBoundary { off_us } => {
                let window_us = self.window_us.max(1);
                self.later((self.now / window_us + 1) * window_us, off_us)
            }
            Motion::Wait { off_us } => self.later(self.now + self.wait_us, off_us),
            Motion::Next { off_us } => self.later(self.now + self.next_us, off_us),
            Motion::ToExpiry { off_us } => self.later(self.expires_at, off_us),
            Motion::Back { us } => self.now.saturating_sub(us),
            Motion::BackWindows { permille } => self.now.saturating_sub(windows_us(permille)),
            Motion::BackToStart => self.start,
        };
        self.now = to.min(LATEST_US);
        self.latest = self.latest.max(self.now);
        self.now
    }

    fn later(&self, to: u64, off_us: i64) -> u64 {
        to.saturating_add_signed(off_us).max(self.now)
    }
}

/// Steps in which the clock never goes back.
pub(crate) fn forward() -> impl Strategy<Value = Vec<Step>> {
    steps(onward().boxed())
}

/// Steps in which the clock goes back now and then.
pub(crate) fn back_and_forth() -> impl Strategy<Value = Vec<Step>> {
    let back = prop_oneof![
        3 => (0..=3_000_000_u64).prop_map(|us| Motion::Back { us }),
        3 => (0..=3_000_u64).prop_map(|permille| Motion::BackWindows { permille }),
        1 => (0..=200_000_u64).prop_map(|permille| Motion::BackWindows { permille }),
        1 => Just(Motion::BackToStart),
    ];
    steps(prop_oneof![3 => onward(), 1 => back].boxed())
}

fn steps(motion: BoxedStrategy<Motion>) -> impl Strategy<Value = Vec<Step>> {
    let step = (motion, wanted(), prop::bool::weighted(0.9));
    prop::collection::vec(step.prop_map(|(motion, cost, taken)| Step { motion, cost, taken }), 1..60)
}

fn onward() -> impl Strategy<Value = Motion> {
    prop_oneof![
        6 => Just(Motion::Stay),
        3 => (0..=5_u64).prop_map(|us| Motion::Forward { us }),
        2 => (0..=3_000_000_u64).prop_map(|us| Motion::Forward { us }),
        6 => (0..=400_u64).prop_map(|permille| Motion::ForwardWindows { permille }),
        3 => (0..=3_000_u64).prop_map(|permille| Motion::ForwardWindows { permille }),
        1 => (0..=200_000_u64).prop_map(|permille| Motion::ForwardWindows { permille }),
        2 => (-1..=1_i64).prop_map(|off_us| Motion::ToBoundary { off_us }),
        3 => (-1..=1_i64).prop_map(|off_us| Motion::Wait { off_us }),
        3 => (-1..=1_i64).prop_map(|off_us| Motion::Next { off_us }),
        1 => (-1..=1_i64).prop_map(|off_us| Motion::ToExpiry { off_us }),
        1 => (0..=30_u64).prop_map(|years| Motion::Forward { us: years * 365 * 86_400_000_000 }),
    ]
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        2 => Just(Wanted::Units(0)),
        8 => Just(Wanted::Units(1)),
        4 => (2..=9_u64).prop_map(Wanted::Units),
        6 => (0..=1_u64).prop_map(|more| Wanted::Remaining { more }),
        3 => (0..=1_u64).prop_map(|more| Wanted::Capacity { more }),
        4 => (0..=1_000_u64).prop_map(|permille| Wanted::Part { permille }),
        1 => any::<u64>().prop_map(Wanted::Units),
        1 => Just(Wanted::Units(u64::MAX)),
    ]
}
