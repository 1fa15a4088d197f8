//! The worst decisions while a million keys come and go.
//!
//! Two threads insert new agents at a steady pace; limits are short, so that as many keys expire as arrive once the
//! first period is over, and whatever a contender does to grow and to clean up happens among these decisions. Each is
//! timed alone. A machine stops every program now and then, so each thread gives an equal time to a bare loop that
//! does nothing but read the clock: what that loop suffers is not the contender's doing.

use crate::clock;
use crate::contenders::{ENTRIES, Entry, Race};
use crate::histogram::Histogram;
use crate::limits;
use crate::options::Options;
use crate::report;
use crate::workload::Names;
use anyhow::{Context, Result};
use serde::Serialize;
use std::time::{Duration, Instant};

const THREADS: u32 = 2;
/// Each thread's time is cut into slices, each with its share of new agents.
const SLICE: Duration = Duration::from_millis(1);
/// Half a million new agents a second over both threads; within [`PERIOD`], a million.
const AGENTS_PER_SLICE: u32 = 250;
const PERIOD: Duration = Duration::from_secs(2);
/// Past this a decision is a pause.
const PAUSE: Duration = Duration::from_millis(1);

/// The worst of a set of durations.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Worst {
    /// Durations timed.
    pub(crate) count: u64,
    /// Half of them are no longer than this.
    pub(crate) p50_ns: u64,
    /// 1 of 10,000 is longer than this.
    pub(crate) p99_99_ns: u64,
    /// The longest.
    pub(crate) max_ns: u64,
    /// How many are longer than a millisecond.
    pub(crate) over_1_ms: u64,
}

/// One contender's decisions, and the bare loop beside them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The contender.
    pub(crate) contender: &'static str,
    /// Its decisions.
    pub(crate) decisions: Worst,
    /// Clock readings in the same threads, for the same time in total.
    pub(crate) bare_loop: Worst,
}

/// Measures every contender, one after the other.
///
/// # Errors
/// If a contender cannot be built or a thread dies.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    options.chosen(ENTRIES).map(|entry| row(options, entry)).collect()
}

fn row(options: &Options, entry: &Entry) -> Result<Row> {
    report::progress(&format!("pauses: {}", entry.name));
    let race = entry.build(&limits::short_lived(PERIOD), 4 * options.agents as usize)?;
    let until = clock::now() + options.pauses;
    let mut decisions = Timings::new();
    let mut bare = Timings::new();
    std::thread::scope(|scope| {
        let race = &*race;
        let workers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || insert(race, thread, until))).collect();
        for worker in workers {
            let (its_decisions, its_bare) = worker.join().ok().context("a thread that measures pauses died")?;
            decisions.merge(&its_decisions);
            bare.merge(&its_bare);
        }
        anyhow::Ok(())
    })?;
    Ok(Row { contender: entry.name, decisions: decisions.worst(), bare_loop: bare.worst() })
}

/// One thread: in each slice new agents, then as long a bare loop, then nothing until the slice is over.
fn insert(race: &dyn Race, thread: u32, until: Instant) -> (Timings, Timings) {
    let mut names = Names::default();
    let (mut decisions, mut bare) = (Timings::new(), Timings::new());
    let mut next_agent = thread;
    let mut slice_end = clock::now();
    while slice_end < until {
        names.refill((0..AGENTS_PER_SLICE).map(|index| next_agent + index * THREADS));
        next_agent = (next_agent + AGENTS_PER_SLICE * THREADS) % AGENT_NUMBERS;
        let calls: Vec<_> = names.calls().collect();
        let start = clock::now();
        race.time_each(&calls, &mut |duration| decisions.record(duration));
        let end = clock::now();
        read_the_clock_until(end + (end - start), &mut bare);
        slice_end = (slice_end + SLICE).max(clock::now());
        while clock::now() < slice_end {
            std::hint::spin_loop();
        }
    }
    (decisions, bare)
}

/// Agents are numbered below ten million; by the time the numbers start again, the first ones have long expired.
const AGENT_NUMBERS: u32 = 8_000_000;

/// The bare loop: the time between two readings is all that the machine itself adds to a decision.
fn read_the_clock_until(until: Instant, timings: &mut Timings) {
    let mut before = clock::now();
    while before < until {
        let after = clock::now();
        timings.record(after - before);
        before = clock::now();
    }
}

/// Durations, and how many of them were pauses.
struct Timings {
    histogram: Histogram,
    pauses: u64,
}

impl Timings {
    fn new() -> Self {
        Self { histogram: Histogram::new(), pauses: 0 }
    }

    fn record(&mut self, duration: Duration) {
        self.histogram.record(duration);
        self.pauses += u64::from(duration > PAUSE);
    }

    fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.pauses += other.pauses;
    }

    fn worst(&self) -> Worst {
        Worst {
            count: self.histogram.total(),
            p50_ns: self.histogram.quantile_ns(0.5),
            p99_99_ns: self.histogram.quantile_ns(0.9999),
            max_ns: self.histogram.max_ns(),
            over_1_ms: self.pauses,
        }
    }
}
