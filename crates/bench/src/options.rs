//! What was asked for on the command line, and the sizes that follow from it.

use crate::contenders::{ENTRIES, Entry};
use anyhow::{Result, bail};
use std::time::Duration;

/// How to call the program.
pub(crate) const USAGE: &str = "\
usage: tidegate-bench [--quick] [--json] [--rounds N] [--only decisions|memory|pauses] [--contender NAME]

  --quick           a smoke run of a few seconds with few keys: shows that it works, says nothing about speed
  --json            one JSON document instead of tables
  --rounds N        rounds over all contenders (default 7, at least 5 unless --quick)
  --only PART       one of the three parts
  --contender NAME  those whose name begins so, such as `tidegate`";

/// The parts of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Nanoseconds for each decision.
    Decisions,
    /// Bytes for each key.
    Memory,
    /// The worst decisions while keys come and go.
    Pauses,
}

/// A run's sizes.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Print JSON.
    pub(crate) json: bool,
    /// A smoke run.
    pub(crate) quick: bool,
    /// Run this part only.
    pub(crate) only: Option<Section>,
    /// Run those only whose name begins so; empty means everyone.
    pub(crate) contender: String,
    /// Rounds over all contenders.
    pub(crate) rounds: usize,
    /// Distinct agents.
    pub(crate) agents: u32,
    /// Calls in the prepared random order.
    pub(crate) order: usize,
    /// How long one lap of one contender should take.
    pub(crate) lap: Duration,
    /// For how long keys come and go while each decision is timed.
    pub(crate) pauses: Duration,
}

/// What this process is for.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// The benchmark.
    Run(Options),
    /// A child of it, which fills one contender and prints what that took.
    MeasureMemory {
        /// The contender's name in the memory part.
        name: String,
        /// Distinct agents to touch.
        agents: u32,
    },
    /// Print the usage.
    Help,
}

impl Options {
    /// Whether a part is to be run.
    pub(crate) fn wants(&self, section: Section) -> bool {
        self.only.is_none_or(|only| only == section)
    }

    /// Those of `entries` that are to be measured.
    pub(crate) fn chosen<'e>(&self, entries: &'e [Entry]) -> impl Iterator<Item = &'e Entry> {
        entries.iter().filter(|entry| entry.name.starts_with(&self.contender))
    }

    fn default_sizes() -> Self {
        Self {
            json: false,
            quick: false,
            only: None,
            contender: String::new(),
            rounds: 7,
            agents: 1_000_000,
            order: 1 << 22,
            lap: Duration::from_millis(100),
            pauses: Duration::from_secs(5),
        }
    }

    fn make_quick(&mut self) {
        self.quick = true;
        self.rounds = 2;
        self.agents = 10_000;
        self.order = 1 << 14;
        self.lap = Duration::from_millis(5);
        self.pauses = Duration::from_millis(300);
    }
}

impl Command {
    /// Reads the arguments that follow the program's name.
    ///
    /// # Errors
    /// Names the argument that is not understood.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        if let [flag, name, agents] = arguments
            && flag == crate::memory::CHILD_FLAG
        {
            return Ok(Self::MeasureMemory { name: name.clone(), agents: agents.parse()? });
        }
        let mut options = Options::default_sizes();
        if arguments.iter().any(|argument| argument == "--quick") {
            options.make_quick();
        }
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            match argument {
                "--quick" => {}
                "--json" => options.json = true,
                "--help" | "-h" => return Ok(Self::Help),
                "--rounds" => options.rounds = rounds(rest.next(), options.quick)?,
                "--only" => options.only = Some(section(rest.next())?),
                "--contender" => options.contender = contender(rest.next())?,
                other => bail!("unknown argument `{other}`\n{USAGE}"),
            }
        }
        Ok(Self::Run(options))
    }
}

fn rounds(value: Option<&str>, quick: bool) -> Result<usize> {
    let least = if quick { 1 } else { 5 };
    match value.and_then(|value| value.parse().ok()) {
        Some(rounds) if rounds >= least && rounds <= 1_000 => Ok(rounds),
        _ => bail!("--rounds needs a number from {least} to 1000\n{USAGE}"),
    }
}

fn contender(value: Option<&str>) -> Result<String> {
    match value {
        Some(name) if ENTRIES.iter().any(|entry| entry.name.starts_with(name)) => Ok(name.to_owned()),
        _ => {
            let names: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
            bail!("--contender needs the beginning of one of: {}\n{USAGE}", names.join("; "))
        }
    }
}

fn section(value: Option<&str>) -> Result<Section> {
    match value {
        Some("decisions") => Ok(Section::Decisions),
        Some("memory") => Ok(Section::Memory),
        Some("pauses") => Ok(Section::Pauses),
        _ => bail!("--only needs one of decisions, memory, pauses\n{USAGE}"),
    }
}
