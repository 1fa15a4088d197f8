//! Tables for a person, JSON for a program; progress goes to standard error.

use crate::contenders::OURS;
use crate::decisions::{self, Keys};
use crate::machine::Machine;
use crate::options::Options;
use crate::reach::Aim;
use crate::workload::{ORGS, SEED, ZIPF_EXPONENT};
use crate::{memory, pauses};
use anyhow::Result;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::io::{IsTerminal, Write, stderr, stdout};

/// Everything that one run found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Where and how it was found.
    pub(crate) made: Made,
    /// Nanoseconds for each decision.
    pub(crate) decisions: Vec<decisions::Row>,
    /// Bytes for each key.
    pub(crate) memory: Vec<memory::Row>,
    /// The worst decisions.
    pub(crate) pauses: Vec<pauses::Row>,
    /// What was aimed at; a smoke run tells nothing about that.
    pub(crate) aims: Vec<Aim>,
}

/// How a run was made.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Made {
    /// The machine.
    pub(crate) machine: Machine,
    /// Distinct agents.
    pub(crate) agents: u32,
    /// Organisations.
    pub(crate) orgs: u32,
    /// The exponent of Zipf's law.
    pub(crate) zipf_exponent: f64,
    /// The seed of the order of calls.
    pub(crate) seed: u64,
    /// Rounds over all contenders.
    pub(crate) rounds: usize,
    /// Whether it was a smoke run.
    pub(crate) quick: bool,
    /// How long the run took.
    pub(crate) seconds: f64,
}

impl Made {
    /// What is known before the run.
    pub(crate) fn with(options: &Options) -> Self {
        Self {
            machine: Machine::look(),
            agents: options.agents,
            orgs: ORGS,
            zipf_exponent: ZIPF_EXPONENT,
            seed: SEED,
            rounds: options.rounds,
            quick: options.quick,
            seconds: 0.0,
        }
    }
}

/// Prints a text and a newline to standard output.
///
/// # Errors
/// If standard output is closed.
pub(crate) fn print(text: &str) -> Result<()> {
    Ok(writeln!(stdout().lock(), "{text}")?)
}

/// Says on a terminal what goes on; elsewhere nobody watches.
pub(crate) fn progress(step: &str) {
    let mut stderr = stderr().lock();
    if stderr.is_terminal() {
        // Nothing depends on it being seen.
        let _ = write!(stderr, "\r\x1b[K{step}");
        let _ = stderr.flush();
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.made)?;
        if !self.decisions.is_empty() {
            write_decisions(f, &self.decisions)?;
        }
        if !self.memory.is_empty() {
            write_memory(f, &self.memory)?;
        }
        if !self.pauses.is_empty() {
            write_pauses(f, &self.pauses)?;
        }
        if !self.aims.is_empty() {
            write_aims(f, &self.aims)?;
        }
        Ok(())
    }
}

impl Display for Made {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Machine { cpu, cpus, load, build } = &self.machine;
        writeln!(f, "{cpu}, {cpus} processors, load {load} at the start, {build} build, {:.0} s", self.seconds)?;
        writeln!(
            f,
            "{} agents in {} organisations; Zipf exponent {}, seed {}; {} rounds in turn, medians",
            self.agents, self.orgs, self.zipf_exponent, self.seed, self.rounds
        )?;
        if self.quick || *build == "debug" {
            writeln!(f, "A smoke run or a debug build: these figures say nothing about speed.")?;
        }
        Ok(())
    }
}

fn write_decisions(f: &mut Formatter<'_>, rows: &[decisions::Row]) -> fmt::Result {
    writeln!(
        f,
        "\nNanoseconds for one decision over three levels (agent, organisation, global), and how many times ours"
    )?;
    writeln!(f, "(one thread: its processor time; two threads: elapsed time over the decisions of both)\n")?;
    for (index, row) in rows.iter().enumerate() {
        let scenario = |row: &decisions::Row| (row.keys == Keys::Hot, row.threads, row.path);
        let same: Vec<_> = rows.iter().filter(|other| scenario(other) == scenario(row)).collect();
        if index > 0 && scenario(&rows[index - 1]) == scenario(row) {
            continue;
        }
        let keys = if row.keys == Keys::Hot { "one hot key" } else { "Zipf keys" };
        writeln!(f, "{keys}, {} thread{}, {}", row.threads, if row.threads == 1 { "" } else { "s" }, row.path.name())?;
        let ours = same.iter().find(|other| other.contender == OURS).map(|ours| ours.ns);
        for row in same {
            let range = format!("{:.0} to {:.0}", row.ns_min, row.ns_max);
            let ratio = ours.map_or_else(String::new, |ours| format!("{:.1} x", row.ns / ours));
            writeln!(f, "    {:<24} {:>8.1} ns {:>18} {:>9}", row.contender, row.ns, range, ratio)?;
        }
    }
    Ok(())
}

fn write_memory(f: &mut Formatter<'_>, rows: &[memory::Row]) -> fmt::Result {
    writeln!(f, "\nBytes for each agent, resident, each contender in a process of its own, from empty\n")?;
    for row in rows {
        writeln!(
            f,
            "    {:<28} {:>7.1} B, {:>7.1} B at the highest point",
            row.contender, row.bytes_per_key, row.peak_bytes_per_key
        )?;
    }
    Ok(())
}

fn write_pauses(f: &mut Formatter<'_>, rows: &[pauses::Row]) -> fmt::Result {
    writeln!(
        f,
        "\nSingle decisions while two threads insert new agents and old ones expire; beside them a loop in the"
    )?;
    writeln!(f, "same threads, for the same time, that only reads the clock (microseconds)\n")?;
    writeln!(f, "    {:<32} {:>9} {:>8} {:>8} {:>9} {:>9}", "", "timed", "median", "p99.99", "longest", "over 1 ms")?;
    for row in rows {
        for (what, worst) in [(row.contender, row.decisions), ("  bare loop beside it", row.bare_loop)] {
            let us = |ns: u64| ns as f64 / 1_000.0;
            writeln!(
                f,
                "    {what:<32} {:>9} {:>8.2} {:>8.1} {:>9.1} {:>9}",
                worst.count,
                us(worst.p50_ns),
                us(worst.p99_99_ns),
                us(worst.max_ns),
                worst.over_1_ms
            )?;
        }
    }
    Ok(())
}

fn write_aims(f: &mut Formatter<'_>, aims: &[Aim]) -> fmt::Result {
    writeln!(f, "\nWhat Tidegate sets out to reach\n")?;
    for aim in aims {
        let met = if aim.is_met { "yes" } else { "NO" };
        writeln!(f, "    {met:<4} {:>8.2}  {}", aim.found, aim.what)?;
    }
    Ok(())
}
