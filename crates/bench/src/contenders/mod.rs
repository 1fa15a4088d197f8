//! The libraries that are compared, each behind the same two small traits.

mod governor;
mod limitador;
mod throttlecrab;
mod tidegate;

use crate::clock;
use crate::limits::Limits;
use crate::workload::Call;
use anyhow::Result;
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
    /// One thread: its processor time, which other programs do not add to. Several: from the first one's start to the
    /// last one's end, because waiting for each other is what they are measured for.
    pub(crate) elapsed: Duration,
    /// Decisions of all threads together.
    pub(crate) decisions: usize,
    /// How many of them may pass.
    pub(crate) admitted: usize,
}

impl Lap {
    /// Nanoseconds for each decision, all threads working at once.
    pub(crate) fn ns_per_decision(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.decisions.max(1) as f64
    }
}

/// A contender to be built.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The name in the table.
    pub(crate) name: &'static str,
    library: Library,
}

#[derive(Clone, Copy)]
enum Library {
    /// With the algorithms of the agents' limit and of the other two.
    Tidegate([&'static str; 2]),
    Governor,
    Throttlecrab,
    Limitador,
}

/// The name of ours as it is by default.
pub(crate) const OURS: &str = "tidegate";

/// Everyone who is measured. Ours comes first, with its default algorithm, a fixed window, and with the one that governor
/// and throttlecrab have, a bucket kept as GCRA.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry { name: OURS, library: Library::Tidegate(["fixed_window"; 2]) },
    Entry { name: "tidegate, token_bucket", library: Library::Tidegate(["token_bucket"; 2]) },
    GOVERNOR,
    THROTTLECRAB,
    LIMITADOR,
];

/// Everyone whose memory is measured: ours once for each algorithm of the agents' limit.
pub(crate) const MEMORY_ENTRIES: &[Entry] = &[
    Entry { name: "tidegate, fixed_window", library: Library::Tidegate(["fixed_window", "fixed_window"]) },
    Entry { name: "tidegate, token_bucket", library: Library::Tidegate(["token_bucket", "fixed_window"]) },
    Entry { name: "tidegate, sliding_window", library: Library::Tidegate(["sliding_window", "fixed_window"]) },
    Entry { name: "tidegate, sliding_counter", library: Library::Tidegate(["sliding_counter", "fixed_window"]) },
    GOVERNOR,
    THROTTLECRAB,
    LIMITADOR,
];

const GOVERNOR: Entry = Entry { name: "governor 0.10", library: Library::Governor };
const THROTTLECRAB: Entry = Entry { name: "throttlecrab 0.4", library: Library::Throttlecrab };
const LIMITADOR: Entry = Entry { name: "limitador 0.14", library: Library::Limitador };

impl Entry {
    /// Builds an empty one for these limits, with room for `keys` agents where the library wants to know their number.
    ///
    /// # Errors
    /// If the library does not accept the limits.
    pub(crate) fn build(&self, limits: &Limits, keys: usize) -> Result<Box<dyn Race>> {
        Ok(match self.library {
            Library::Tidegate(algorithms) => Box::new(tidegate::Tidegate::new(limits, algorithms)?),
            Library::Governor => Box::new(governor::Governor::new(limits)?),
            Library::Throttlecrab => Box::new(throttlecrab::Throttlecrab::new(limits)),
            Library::Limitador => Box::new(limitador::Limitador::new(limits, keys)?),
        })
    }
}

impl<C: Contender> Race for C {
    fn lap(&self, calls: &[Call<'_>], decisions: usize, threads: usize) -> Lap {
        let share = decisions / threads;
        if threads == 1 {
            let before = clock::thread_time();
            let Part { admitted, .. } = part(self, calls, share);
            return Lap { elapsed: clock::thread_time() - before, decisions, admitted };
        }
        let barrier = Barrier::new(threads);
        let parts: Vec<Part> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    // Each thread begins elsewhere in the order, so they do not walk in step.
                    let calls = &calls[thread * calls.len() / threads..];
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        part(self, calls, share)
                    })
                })
                .collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
        });
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
