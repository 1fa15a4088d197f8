//! `tidegate reset LIMIT`: starts counters afresh.

use std::io::Write;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use http::Method;

use super::attributes::{Attribute, check_each_once};
use super::client::{AdminArgs, push_attributes, target};
use super::style::count;
use super::{Output, block_on};

const MORE: &str = "\
One counter is reset by all attributes of the limit's 'per'. With --all every counter of the limit
is, or every one with the attributes that are given; the server then needs the names of counters,
which it keeps if its limits file says store: {memory: {names: true}}.

Exit codes: 0 done, 1 the server refused or cannot be reached, 2 a wrong command line.

Examples:
  tidegate reset agent-minute --attr org=acme --attr agent=a1
  tidegate reset agent-minute --attr org=acme --all      all agents of one org
  tidegate reset agent-minute --all";

/// What `reset` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE, group(ArgGroup::new("whose").required(true).multiple(true).args(["attributes", "all"])))]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The limit's name
    limit: String,
    /// An attribute of the counter; repeat it for more
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = Attribute::parse)]
    attributes: Vec<Attribute>,
    /// All counters of the limit, or all with these attributes
    #[arg(long)]
    all: bool,
}

/// Resets the counters, and says how many they were.
pub(crate) fn run(args: &ResetArgs, output: Output) -> anyhow::Result<ExitCode> {
    check_each_once(&args.attributes)?;
    let client = args.admin.client()?;
    let mut query = Vec::new();
    push_attributes(&mut query, &args.attributes);
    if args.all {
        query.push(("all".to_owned(), "true".to_owned()));
    }
    let target = target(&["v1", "usage", &args.limit], &query);
    let answer = block_on(async { Ok(client.call(Method::DELETE, &target, None).await?) })?;
    if output.json {
        output.document(&answer)?;
    } else {
        let number = answer.get("reset").and_then(serde_json::Value::as_u64).unwrap_or_default();
        let counters = count(usize::try_from(number).unwrap_or(usize::MAX), "counter");
        let begin = if number == 1 { "begins" } else { "begin" };
        writeln!(anstream::stdout(), "{counters} of {} {begin} afresh.", super::style::shown(&args.limit))?;
    }
    Ok(ExitCode::SUCCESS)
}
