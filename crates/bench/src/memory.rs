//! How many bytes one key costs.
//!
//! Each contender is filled in a process of its own, which is this program called again with a hidden argument, so that
//! no heap holds the remains of another. The figure is the growth of the resident set between "built, empty" and "each
//! agent has called once", over the number of agents: organisations and the global limit are in it.

use crate::contenders::{Entry, MEMORY_ENTRIES};
use crate::limits;
use crate::options::Options;
use crate::report;
use crate::workload::Names;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};

/// The hidden argument that makes this program a child that measures.
pub(crate) const CHILD_FLAG: &str = "--measure-memory-of";
/// Agents whose names exist at once in the child: small beside what is measured.
const CHUNK: u32 = 1_000;

/// What one contender holds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The contender.
    pub(crate) contender: &'static str,
    /// Distinct agents touched.
    pub(crate) agents: u32,
    /// Bytes for each agent that stay.
    pub(crate) bytes_per_key: f64,
    /// Bytes for each agent at the highest point on the way, as when a table grows beside the old one.
    pub(crate) peak_bytes_per_key: f64,
}

/// What a child reports, in bytes.
#[derive(Debug, Serialize, Deserialize)]
struct Growth {
    resident: u64,
    peak: u64,
}

/// Measures every contender, one child after the other.
///
/// # Errors
/// If a child cannot be started or fails.
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    options
        .chosen(MEMORY_ENTRIES)
        .map(|entry| {
            report::progress(&format!("memory: {}", entry.name));
            let growth = ask_child(entry.name, options.agents)?;
            let per_key = |bytes: u64| bytes as f64 / f64::from(options.agents);
            Ok(Row {
                contender: entry.name,
                agents: options.agents,
                bytes_per_key: per_key(growth.resident),
                peak_bytes_per_key: per_key(growth.peak),
            })
        })
        .collect()
}

/// The child's work: fills one contender and prints its growth.
///
/// # Errors
/// If there is no such contender, or the system does not tell the size of a process (it is not Linux).
pub(crate) fn measure_in_this_process(name: &str, agents: u32) -> Result<()> {
    let entry: &Entry = MEMORY_ENTRIES.iter().find(|entry| entry.name == name).context("no such contender")?;
    let mut names = Names::of(0..CHUNK);
    let race = entry.build(&limits::ordinary(), agents as usize)?;
    let before = resident_bytes("VmRSS:")?;
    for first in (0..agents).step_by(CHUNK as usize) {
        names.refill(first..agents.min(first + CHUNK));
        let calls: Vec<_> = names.calls().collect();
        let lap = race.lap(&calls, calls.len(), 1);
        ensure!(lap.admitted == calls.len(), "{name}: {} of {} first calls were admitted", lap.admitted, calls.len());
    }
    let growth = Growth {
        resident: resident_bytes("VmRSS:")?.saturating_sub(before),
        peak: resident_bytes("VmHWM:")?.saturating_sub(before),
    };
    report::print(&serde_json::to_string(&growth)?)
}

fn ask_child(name: &str, agents: u32) -> Result<Growth> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let output = Command::new(program)
        .args([CHILD_FLAG, name, &agents.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("the child that measures memory cannot be started")?;
    ensure!(output.status.success(), "the child that measures the memory of {name} failed: {}", output.status);
    serde_json::from_slice(&output.stdout).context("the child that measures memory printed something else")
}

/// A size out of `/proc/self/status`: the counters of `statm`, in kibibytes instead of pages.
fn resident_bytes(field: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory can be measured on Linux only")?;
    let kibibytes: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .and_then(|value| value.trim().parse().ok())
        .with_context(|| format!("/proc/self/status has no {field}"))?;
    Ok(kibibytes * 1024)
}
