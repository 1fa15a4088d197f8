//! How long one decision over three levels takes.
//!
//! For each kind of keys and each path, all contenders are built, filled with every key and led to the state that is
//! measured. Then they run lap after lap in turn (A B C, B C A, ...), so that whatever else the machine does meets
//! all of them alike, and the median lap counts.

use crate::contenders::{ENTRIES, Lap, Race};
use crate::limits::Path;
use crate::options::Options;
use crate::report;
use crate::workload::{Call, Names, zipf};
use anyhow::{Result, ensure};
use serde::Serialize;

/// Thread counts that are measured.
const THREADS: [usize; 2] = [1, 2];
/// Decisions that show how many fit into a lap.
const CALIBRATION: usize = 1_000;
/// The hot key stands this often in its order, so that starting again costs nothing.
const HOT_ORDER: usize = 1 << 12;
/// Of all decisions, how many must have gone the way the path says. Buckets give back a little while they are measured.
const PURITY_MIN: f64 = 0.999;

/// Which agents call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keys {
    /// One agent, again and again.
    Hot,
    /// All agents, drawn with Zipf's law.
    Zipf,
}

/// One contender's result in one scenario.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The contender.
    pub(crate) contender: &'static str,
    /// Which agents called.
    pub(crate) keys: Keys,
    /// What happened to the decisions.
    pub(crate) path: Path,
    /// Threads that decided at once.
    pub(crate) threads: usize,
    /// Median over the rounds, in nanoseconds: one thread's processor time for each decision, or with several threads
    /// the elapsed time over the decisions of all of them.
    pub(crate) ns: f64,
    /// The fastest round.
    pub(crate) ns_min: f64,
    /// The slowest round.
    pub(crate) ns_max: f64,
    /// Decisions in each round.
    pub(crate) decisions: usize,
}

/// Runs every scenario.
///
/// # Errors
/// If a contender cannot be built, or decides otherwise than the path demands: then its time means nothing.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    let everyone = Names::of(0..options.agents);
    let everyone: Vec<_> = everyone.calls().collect();
    let order = Names::of(zipf(options.agents, options.order));
    let order: Vec<_> = order.calls().collect();
    let one = &everyone[..1];
    let hot = one.repeat(HOT_ORDER);

    let mut rows = Vec::new();
    for path in Path::ALL {
        rows.extend(scenario(options, Keys::Hot, path, one, &hot)?);
        rows.extend(scenario(options, Keys::Zipf, path, &everyone, &order)?);
    }
    rows.sort_by_key(|row| (row.keys == Keys::Zipf, row.threads, row.path != Path::Admit));
    Ok(rows)
}

/// A contender on its way through one scenario.
struct Runner {
    name: &'static str,
    race: Box<dyn Race>,
    /// Decisions that fill a lap, for each thread count.
    decisions: [usize; THREADS.len()],
    laps: [Vec<f64>; THREADS.len()],
}

fn scenario(options: &Options, keys: Keys, path: Path, agents: &[Call<'_>], order: &[Call<'_>]) -> Result<Vec<Row>> {
    let mut runners = Vec::new();
    for entry in options.chosen(ENTRIES) {
        report::progress(&format!("{keys:?} keys, {}: filling {}", path.name(), entry.name));
        let race = entry.build(&path.limits(agents.len() as u32), agents.len())?;
        prepare(&*race, path, agents);
        let mut runner = Runner { name: entry.name, race, decisions: [0; THREADS.len()], laps: Default::default() };
        for (threads, decisions) in THREADS.into_iter().zip(&mut runner.decisions) {
            let trial = runner.race.lap(order, CALIBRATION, threads);
            check(entry.name, path, trial)?;
            *decisions = fitting(options, keys, trial, order.len());
        }
        runners.push(runner);
    }
    for round in 0..options.rounds {
        report::progress(&format!("{keys:?} keys, {}: round {} of {}", path.name(), round + 1, options.rounds));
        let begin = round * (order.len() / options.rounds);
        let calls = &order[begin..][..order.len() / options.rounds];
        for (index, threads) in THREADS.into_iter().enumerate() {
            let turn = round % runners.len();
            runners.rotate_left(turn);
            for runner in &mut runners {
                let lap = runner.race.lap(calls, runner.decisions[index], threads);
                check(runner.name, path, lap)?;
                runner.laps[index].push(lap.ns_per_decision());
            }
            runners.rotate_right(turn);
        }
    }
    Ok(runners.iter().flat_map(|runner| summary(runner, keys, path)).collect())
}

/// Makes every key exist, then exhausts what the path wants exhausted.
fn prepare(race: &dyn Race, path: Path, agents: &[Call<'_>]) {
    // Halves of an even number leave nobody out.
    let threads = if agents.len().is_multiple_of(2) { 2 } else { 1 };
    for _ in 0..path.calls_to_fill() {
        race.lap(agents, agents.len(), threads);
    }
    if path == Path::RejectGlobal {
        let rest = path.limits(agents.len() as u32).global.count as usize;
        race.lap(&agents[..1], rest, 1);
    }
}

/// A time means nothing if the decisions were not the expected ones.
fn check(name: &str, path: Path, lap: Lap) -> Result<()> {
    let expected = if path == Path::Admit { lap.admitted } else { lap.decisions - lap.admitted };
    let purity = expected as f64 / lap.decisions.max(1) as f64;
    let path = path.name();
    ensure!(
        lap.decisions > 0 && purity >= PURITY_MIN,
        "{name}: on the path `{path}`, {expected} of {} decisions went that way",
        lap.decisions
    );
    Ok(())
}

/// How many decisions fit into a lap. A lap of Zipf keys ends with its part of the order: a second time through the
/// same part would find its keys in the cache.
fn fitting(options: &Options, keys: Keys, trial: Lap, order: usize) -> usize {
    let fitting = options.lap.as_nanos() as f64 / trial.ns_per_decision().max(1.0);
    let most = if keys == Keys::Zipf { order / options.rounds } else { 1 << 24 };
    (fitting as usize).clamp(CALIBRATION, most)
}

fn summary(runner: &Runner, keys: Keys, path: Path) -> impl Iterator<Item = Row> {
    THREADS.into_iter().enumerate().map(move |(index, threads)| {
        let mut laps = runner.laps[index].clone();
        laps.sort_unstable_by(f64::total_cmp);
        Row {
            contender: runner.name,
            keys,
            path,
            threads,
            ns: median(&laps),
            ns_min: laps[0],
            ns_max: laps[laps.len() - 1],
            decisions: runner.decisions[index],
        }
    })
}

/// The middle of sorted values.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], sorted[middle]) } else { sorted[middle] }
}

#[cfg(test)]
mod tests {
    use super::{check, median};
    use crate::contenders::Lap;
    use crate::limits::Path;
    use std::time::Duration;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
    }

    #[test]
    fn a_lap_that_went_the_wrong_way_is_refused() {
        let lap = Lap { elapsed: Duration::from_secs(1), decisions: 1_000, admitted: 1_000 };
        assert!(check("x", Path::Admit, lap).is_ok());
        assert!(check("x", Path::RejectGlobal, lap).is_err());
        assert!(check("x", Path::Admit, Lap { admitted: 990, ..lap }).is_err());
    }
}
