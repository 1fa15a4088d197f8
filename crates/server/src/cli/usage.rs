//! `tidegate usage`: how counters stand.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::attributes::{Attribute, check_each_once};
use super::client::{AdminArgs, push_attributes};
use super::counters::{self, Page};
use super::{Output, block_on, style};

const MORE: &str = "\
A counter of which every attribute is given can always be shown. A list needs the names of counters,
which the server keeps if its limits file says store: {memory: {names: true}}.

Exit codes: 0 shown, 1 the server refused or cannot be reached, 2 a wrong command line.

Examples:
  tidegate usage --nearest                     which are nearest to their limit
  tidegate usage --limit agent-minute --attr org=acme --attr agent=a1
  tidegate usage --attr org=acme --items 1000
  tidegate usage --json | jq '.items[] | select(.remaining == 0)'";

/// What `usage` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(crate) struct UsageArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Only counters of this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// Only counters with this attribute; repeat it for more
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = Attribute::parse)]
    attributes: Vec<Attribute>,
    /// Show those with the least left first, on one page
    #[arg(long, conflicts_with = "cursor")]
    nearest: bool,
    /// At most so many, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    items: u16,
    /// Go on where the page before ended: what it gave as next
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// Shows a page of counters.
pub(crate) fn run(args: &UsageArgs, output: Output) -> anyhow::Result<ExitCode> {
    check_each_once(&args.attributes)?;
    let client = args.admin.client()?;
    let (answer, page) = block_on(async { Ok(counters::page(&client, &args.query()).await?) })?;
    if output.json {
        output.document(&answer)?;
    } else {
        style::warn(&page.warnings)?;
        write_text(&mut anstream::stdout().lock(), &page)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl UsageArgs {
    fn query(&self) -> Vec<(String, String)> {
        let mut query = vec![("items_max".to_owned(), self.items.to_string())];
        let mut push = |name: &str, value: &str| query.push((name.to_owned(), value.to_owned()));
        if let Some(limit) = &self.limit {
            push("limit", limit);
        }
        if let Some(cursor) = &self.cursor {
            push("cursor", cursor);
        }
        if self.nearest {
            push("order", "nearest_first");
        }
        push_attributes(&mut query, &self.attributes);
        query
    }
}

fn write_text(out: &mut impl Write, page: &Page) -> std::io::Result<()> {
    if page.items.is_empty() {
        return writeln!(out, "No counter is in use.");
    }
    counters::table(&page.items, false).write(out, "")?;
    match &page.next {
        None => Ok(()),
        Some(next) => writeln!(out, "There are more: add --cursor {}", super::style::shown(next)),
    }
}
