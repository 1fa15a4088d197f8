//! Tidegate beside other rate limiters, in one process on one machine.
//!
//! # Layout
//! - `contenders`: the libraries, each behind the same trait, used as its documentation shows;
//! - `workload`, `limits`: who calls, and which three limits each decision has to pass;
//! - `decisions`: nanoseconds for each decision; `memory`: bytes for each key; `pauses`: the worst decisions;
//! - `reach`: what is aimed at; `report`: tables and JSON; `options`, `machine`, `clock`, `histogram`: what they need.

mod clock;
mod contenders;
mod decisions;
mod histogram;
mod limits;
mod machine;
mod memory;
mod options;
mod pauses;
mod reach;
mod report;
mod workload;

use anyhow::Result;
use options::{Command, Options, Section};
use report::{Made, Report};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Command::parse(&arguments)? {
        Command::Help => report::print(options::USAGE),
        Command::MeasureMemory { name, agents } => memory::measure_in_this_process(&name, agents),
        Command::Run(options) => run(&options),
    }
}

fn run(options: &Options) -> Result<()> {
    let start = clock::now();
    let mut made = Made::with(options);
    let decisions = if options.wants(Section::Decisions) { decisions::run(options)? } else { Vec::new() };
    let memory = if options.wants(Section::Memory) { memory::run(options)? } else { Vec::new() };
    let pauses = if options.wants(Section::Pauses) { pauses::run(options)? } else { Vec::new() };
    made.seconds = (clock::now() - start).as_secs_f64();
    report::progress("");
    let aims = if options.quick { Vec::new() } else { reach::aims(&decisions, &memory, &pauses) };
    let report = Report { made, decisions, memory, pauses, aims };
    report::print(&if options.json { serde_json::to_string_pretty(&report)? } else { report.to_string() })
}
