//! `tidegate explain FILE --attr org=acme …`: which limits a request would meet, and why not the
//! others. Works on the file alone; no server is asked.

mod report;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tidegate::{Clock, Cost, Engine, Request, Timestamp};

use super::attributes::{Attribute, check_each_once, line};
use super::style::{BAD, FAINT, STRONG, WARN, count};
use super::table::{Cell, Column, Table};
use super::{Output, limits_file};
use report::{Met, Other, Report};

const MORE: &str = "\
The limits are told in the order in which they are checked, each with the counter that the request
shares, what it takes from it, and where its numbers come from. Then the limits that it does not
meet, and why. Nothing is counted; how full a running server's counters are: tidegate usage.

Exit codes: 0 told, 1 the file has a fault, 2 a wrong command line.

Examples:
  tidegate explain limits.yaml --attr org=acme --attr agent=a1
  tidegate explain limits.yaml --attr org=acme --attr tool=research --cost 5
  tidegate explain limits.yaml --attr org=acme --keys
  tidegate explain limits.yaml --attr org=acme --json | jq '.meets[].name'";

/// What `explain` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(crate) struct ExplainArgs {
    /// The limits file; '-' is standard input
    file: PathBuf,
    /// An attribute of the request; repeat it for more
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = Attribute::parse)]
    attributes: Vec<Attribute>,
    /// Also tell what the counters are called in Redis (they are always in --json)
    #[arg(long)]
    keys: bool,
    /// The request's cost; 0 only looks
    #[arg(long, default_value_t = 1, value_name = "N")]
    cost: u64,
}

/// Explains one request.
pub(crate) fn run(args: &ExplainArgs, output: Output) -> anyhow::Result<ExitCode> {
    check_each_once(&args.attributes)?;
    let loaded = match limits_file::read(&args.file)? {
        Ok(loaded) => loaded,
        Err(faults) if output.json => {
            output.document(&faults)?;
            return Ok(ExitCode::FAILURE);
        }
        Err(faults) => {
            limits_file::write_faults(&mut anstream::stderr().lock(), &faults)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    // No limit's conditions depend on the time, and a clock that stands still needs no thread.
    let engine = Engine::with_clock(loaded.policy, Clock::manual(Timestamp::EPOCH));
    let pairs: Vec<(&str, &str)> = args.attributes.iter().map(|a| (a.name.as_str(), a.value.as_str())).collect();
    let explanation = engine.explain(&Request::new(&pairs).with_cost(Cost::new(args.cost)));
    let report = Report::new(&args.attributes, args.cost, &explanation, &engine.policy());
    if output.json {
        output.document(&report)?;
    } else {
        write_text(&mut anstream::stdout().lock(), args, &report)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_text(out: &mut impl Write, args: &ExplainArgs, report: &Report) -> std::io::Result<()> {
    let attributes = &args.attributes;
    let whose = if attributes.is_empty() { "without attributes".to_owned() } else { line(attributes) };
    writeln!(out, "A request {STRONG}{whose}{STRONG:#} with cost {}", report.cost)?;
    for unused in &report.unused {
        writeln!(out, "{WARN}warning:{WARN:#} {unused}")?;
    }
    if report.meets.is_empty() {
        writeln!(out, "\n{WARN}meets no limit{WARN:#}: it always passes.")?;
    } else {
        writeln!(out, "\nmeets {}, checked in this order:", count(report.meets.len(), "limit"))?;
        met_table(&report.meets).write(out, "  ")?;
        for met in &report.meets {
            for note in &met.notes {
                writeln!(out, "  {WARN}{}{WARN:#}: {note}", met.name)?;
            }
        }
    }
    if args.keys {
        write_keys(out, &report.meets)?;
    }
    if !report.others.is_empty() {
        writeln!(out, "\ndoes not meet {}:", count(report.others.len(), "other"))?;
        other_table(&report.others).write(out, "  ")?;
    }
    Ok(())
}

fn write_keys(out: &mut impl Write, meets: &[Met]) -> std::io::Result<()> {
    let mut keys = Table::new(&[Column::Left("LIMIT"), Column::Left("KEY")]);
    let mut has_keys = false;
    for (met, key) in meets.iter().filter_map(|met| Some((met, met.store_key.as_deref()?))) {
        has_keys = true;
        keys.row([met.name.as_str().into(), key.into()]);
    }
    if !has_keys {
        return writeln!(out, "\nno counter has a key in Redis: the file has no 'store.backend: redis'");
    }
    writeln!(out, "\nkeys in Redis:")?;
    keys.write(out, "  ")
}

fn met_table(meets: &[Met]) -> Table {
    let mut table = Table::new(&[
        Column::Right("#"),
        Column::Left("LIMIT"),
        Column::Left("LEVEL"),
        Column::Left("COUNTER"),
        Column::Right("COST"),
        Column::Left("ALLOWS"),
        Column::Left("ALGORITHM"),
        Column::Left("MODE"),
    ]);
    for (met, number) in meets.iter().zip(1..) {
        let name_style = if met.refuses { BAD } else { STRONG };
        let mode_style = if met.mode == "enforce" { super::style::PLAIN } else { WARN };
        table.row([
            number.into(),
            Cell::styled(met.name.as_str(), name_style),
            met.level.as_str().into(),
            met.counter_line.as_str().into(),
            met.cost.into(),
            met.allows.as_str().into(),
            met.algorithm.into(),
            Cell::styled(met.mode, mode_style),
        ]);
    }
    table
}

fn other_table(others: &[Other]) -> Table {
    let mut table = Table::new(&[Column::Left("LIMIT"), Column::Left("WHY NOT")]);
    for other in others {
        table.row([other.name.as_str().into(), Cell::styled(other.because.as_str(), FAINT)]);
    }
    table
}
