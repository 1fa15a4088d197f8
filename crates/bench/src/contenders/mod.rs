//! The libraries that are compared, each behind the same two small traits.

pub(crate) mod governor;
pub(crate) mod limitador;
pub(crate) mod throttlecrab;

use crate::clock;
use crate::limits::Limits;
use crate::workload::Call;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A limiter with three limits (agent, organisation, global), used as its documentation shows.
pub(crate) trait Contender: Sync + Sized {
    /// What a thread keeps between its decisions, such as a buffer for a key.
    type Scratch: Default;

    /// Decides one call of cost 1 against all three limits. True if it may pass.
    fn decide(&self, scratch: &mut Self::Scratch, call: Call<'_>) -> bool;
}

/// A contender whose type is forgotten: whole laps cross this border, never single decisions.
pub(crate) trait Race: Sync {
    /// Makes `decisions` decisions over `calls` (again from the start when they end), split evenly over `threads`.
    fn lap(&self, calls: &[Call<'_>], decisions: usize, threads: usize) -> Lap;

    /// Times each single decision over `calls`, once through, and gives each duration to `record`.
    fn time_each(&self, calls: &[Call<'_>], record: &mut dyn FnMut(Duration));
}

/// What one lap took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lap {
    /// From the first thread's start to the last thread's end.
    pub(crate) elapsed: Duration,
    /// Decisions of all threads together.
    pub(crate) decisions: usize,
    /// How many of them may pass.
    pub(crate) admitted: usize,
}

impl Lap {
    /// Elapsed nanoseconds for each decision, all threads working at once.
    pub(crate) fn ns_per_decision(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.decisions.max(1) as f64
    }
}

/// A way to build a contender, and what to call it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The name in the table.
    pub(crate) name: &'static str,
    /// Builds an empty one for limits, and for a number of keys where the library wants to know it.
    pub(crate) build: fn(&Limits, usize) -> anyhow::Result<Box<dyn Race>>,
}

/// Everyone whose memory is measured: ours once for each algorithm.
pub(crate) const MEMORY_ENTRIES: &[Entry] = ENTRIES;

/// The name of ours.
pub(crate) const OURS: &str = "tidegate";

/// Everyone who is measured, ours first.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry { name: "governor 0.10", build: |limits, _| Ok(Box::new(governor::Governor::new(limits)?)) },
    Entry { name: "throttlecrab 0.4", build: |limits, _| Ok(Box::new(throttlecrab::Throttlecrab::new(limits))) },
    Entry { name: "limitador 0.14", build: |limits, keys| Ok(Box::new(limitador::Limitador::new(limits, keys)?)) },
];

impl<C: Contender> Race for C {
    fn lap(&self, calls: &[Call<'_>], decisions: usize, threads: usize) -> Lap {
        let share = decisions / threads;
        let parts: Vec<Part> = if threads == 1 {
            vec![part(self, calls, share)]
        } else {
            let barrier = Barrier::new(threads);
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads)
                    .map(|thread| {
                        // Each thread begins elsewhere in the order, so they do not walk in step.
                        let (before, after) = calls.split_at(thread * calls.len() / threads);
                        let barrier = &barrier;
                        scope.spawn(move || {
                            barrier.wait();
                            part(self, if after.is_empty() { before } else { after }, share)
                        })
                    })
                    .collect();
                workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
            })
        };
        let start = parts.iter().map(|part| part.start).min();
        let end = parts.iter().map(|part| part.end).max();
        Lap {
            elapsed: end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start),
            decisions: share * parts.len(),
            admitted: parts.iter().map(|part| part.admitted).sum(),
        }
    }

    fn time_each(&self, calls: &[Call<'_>], record: &mut dyn FnMut(Duration)) {
        let mut scratch = C::Scratch::default();
        for &call in calls {
            let start = clock::now();
            black_box(self.decide(&mut scratch, call));
            record(clock::now() - start);
        }
    }
}

/// One thread's part of a lap.
struct Part {
    start: Instant,
    end: Instant,
    admitted: usize,
}

fn part<C: Contender>(contender: &C, calls: &[Call<'_>], decisions: usize) -> Part {
    let mut scratch = C::Scratch::default();
    let mut admitted = 0;
    let start = clock::now();
    for &call in calls.iter().cycle().take(decisions) {
        admitted += usize::from(contender.decide(&mut scratch, black_box(call)));
    }
    Part { start, end: clock::now(), admitted }
}
