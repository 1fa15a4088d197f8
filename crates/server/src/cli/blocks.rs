//! `tidegate block`, `blocks` and `unblock`: stopping somebody for a time.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::attributes::{Attribute, check_each_once, line};
use super::client::{AdminArgs, Client, ClientError, target};
use super::counters::brief;
use super::style::{STRONG, shown};
use super::table::{Cell, Column, Table};
use super::{Output, block_on};

const BLOCK_MORE: &str = "\
Requests with all of these attributes are refused until the time is over or `tidegate unblock` ends
it. A block is written to the server's audit log with its reason; it lives in the server's memory,
survives a reload of the limits file, and not a restart.

Exit codes: 0 done, 1 the server refused or cannot be reached, 2 a wrong command line.

Examples:
  tidegate block --attr agent=a1 --for 1h --reason 'runs in circles'
  tidegate block --attr org=acme --attr tool=search --for 7d
  tidegate blocks
  tidegate unblock 3";

/// What `block` is told.
#[derive(Debug, Args)]
#[command(after_long_help = BLOCK_MORE)]
pub(crate) struct BlockArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// An attribute of the requests to stop; with several, requests that have all of them
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = Attribute::parse, required = true)]
    attributes: Vec<Attribute>,
    /// How long: 30s, 15min, 1h, 7d; at most 366d
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    lasts: String,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Who decided, for the audit log
    #[arg(
        long,
        value_name = "NAME",
        env = "USER",
        hide_env_values = true,
        default_value = "",
        hide_default_value = true
    )]
    by: String,
}

/// What `blocks` is told.
#[derive(Debug, Args)]
pub(crate) struct BlocksArgs {
    #[command(flatten)]
    admin: AdminArgs,
}

/// What `unblock` is told.
#[derive(Debug, Args)]
pub(crate) struct UnblockArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// The block's number, as `block` and `blocks` tell it
    id: u64,
}

/// A time as the server reads it: what stands behind the `/` of a rate, and begins with a digit.
fn time(text: &str) -> Result<String, String> {
    let begins_well = text.starts_with(|c: char| c.is_ascii_digit());
    if begins_well && format!("1/{text}").parse::<tidegate::Rate>().is_ok() {
        return Ok(text.to_owned());
    }
    Err("write a time from 1s to 366d, for example 30s, 15min, 1h or 7d".to_owned())
}

/// A block as the server tells it.
#[derive(Debug, Deserialize)]
struct Block {
    id: u64,
    when: Map<String, Value>,
    reason: String,
    by: String,
    left_ms: u64,
    #[serde(default)]
    warnings: Vec<String>,
}

/// The blocks in force.
#[derive(Debug, Deserialize)]
struct Blocks {
    items: Vec<Block>,
}

/// Begins a block.
pub(crate) fn block(args: &BlockArgs, output: Output) -> anyhow::Result<ExitCode> {
    check_each_once(&args.attributes)?;
    let client = args.admin.client()?;
    let when: Map<_, _> = args.attributes.iter().map(|a| (a.name.clone(), json!(a.value))).collect();
    let asked = json!({ "when": when, "for": args.lasts, "reason": args.reason, "by": args.by });
    let answer =
        block_on(async { Ok(client.call(Method::POST, &target(&["v1", "blocks"], &[]), Some(&asked)).await?) })?;
    if output.json {
        output.document(&answer)?;
    } else {
        let block: Block = read(&client, &answer)?;
        let (id, left) = (block.id, brief(block.left_ms));
        let whose = line(&args.attributes);
        super::style::warn(&block.warnings)?;
        writeln!(
            anstream::stdout(),
            "{STRONG}{whose}{STRONG:#} is stopped for {left}: block {id}. To end it: tidegate unblock {id}"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the blocks in force, newest first.
pub(crate) fn blocks(args: &BlocksArgs, output: Output) -> anyhow::Result<ExitCode> {
    let client = args.admin.client()?;
    let answer = block_on(async { Ok(client.call(Method::GET, &target(&["v1", "blocks"], &[]), None).await?) })?;
    if output.json {
        output.document(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let blocks: Blocks = read(&client, &answer)?;
    let mut out = anstream::stdout().lock();
    if blocks.items.is_empty() {
        writeln!(out, "Nobody is blocked.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = ["WHO", "LEFT", "BY", "REASON"].map(Column::Left);
    let mut table = Table::new(&[&[Column::Right("ID")], &columns[..]].concat());
    for block in &blocks.items {
        table.row([
            block.id.into(),
            Cell::styled(who(&block.when), STRONG),
            brief(block.left_ms).into(),
            shown(&block.by).into(),
            shown(&block.reason).into(),
        ]);
    }
    table.write(&mut out, "")?;
    Ok(ExitCode::SUCCESS)
}

/// Ends a block.
pub(crate) fn unblock(args: &UnblockArgs, output: Output) -> anyhow::Result<ExitCode> {
    let client = args.admin.client()?;
    let target = target(&["v1", "blocks", &args.id.to_string()], &[]);
    block_on(async { Ok(client.call(Method::DELETE, &target, None).await?) })?;
    if output.json {
        output.document(&json!({ "ended": args.id }))?;
    } else {
        writeln!(anstream::stdout(), "Block {} is ended.", args.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read<'a, T: Deserialize<'a>>(client: &Client, answer: &'a Value) -> Result<T, ClientError> {
    T::deserialize(answer).map_err(|_| ClientError::Other(client.address().clone()))
}

/// Whom a block concerns: `agent=a1`; what is more than a value stands as JSON.
fn who(when: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={}", shown(name), shown(&value))
    };
    when.iter().map(pair).collect::<Vec<_>>().join(" ")
}
