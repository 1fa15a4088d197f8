//! `tidegate top`: the counters nearest to their limit, again and again.

mod screen;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tidegate::Clock;
use tokio::time::MissedTickBehavior;

use super::attributes::{Attribute, check_each_once};
use super::client::{AdminArgs, Client, push_attributes};
use super::counters::{self, Page};
use super::{Output, block_on};
use screen::Screen;

const MORE: &str = "\
On a terminal the picture is drawn anew each time and Ctrl-C ends it; into a pipe or a file goes one
line a counter, or with --json one object a time. The server has to keep the names of counters: its
limits file says store: {memory: {names: true}}.

Exit codes: 0 ended by Ctrl-C or after --once, 1 the server refused or cannot be reached, 2 a wrong
command line.

Examples:
  tidegate top
  tidegate top --once --items 5
  tidegate top --attr org=acme --interval 5s
  tidegate top --json | jq '.items[0]'";

/// What `top` is told.
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Only counters of this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// Only counters with this attribute; repeat it for more
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = Attribute::parse)]
    attributes: Vec<Attribute>,
    /// Show one picture and end
    #[arg(long)]
    once: bool,
    /// How often to ask, from 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,
    /// At most so many counters, 1 to 1000 [default: what the terminal holds, else 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    items: Option<u16>,
}

/// Counters where there is no terminal to fill.
const ITEMS_DEFAULT: u16 = 20;

/// Shows pictures until it is ended.
pub(crate) fn run(args: &TopArgs, output: Output) -> anyhow::Result<ExitCode> {
    check_each_once(&args.attributes)?;
    let client = args.admin.client()?;
    block_on(async {
        if args.once {
            return once(args, &client, output).await;
        }
        tokio::select! {
            ended = watch(args, &client, output) => ended,
            signal = ended_by_signal() => Ok(signal?),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn once(args: &TopArgs, client: &Client, output: Output) -> anyhow::Result<()> {
    let (answer, page) = counters::page(client, &args.query(ITEMS_DEFAULT)).await?;
    if output.json {
        return Ok(output.document(&answer)?);
    }
    let mut out = anstream::stdout().lock();
    match page.items.is_empty() {
        true => writeln!(out, "{NOTHING}")?,
        false => counters::table(&page.items, false).write(&mut out, "")?,
    }
    Ok(())
}

const NOTHING: &str = "No counter is in use.";

/// Never ends by itself. Dropping it puts the terminal back.
async fn watch(args: &TopArgs, client: &Client, output: Output) -> anyhow::Result<()> {
    let draws =
        !output.json && io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let mut ticks = tokio::time::interval(args.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut screen: Option<Screen> = None;
    loop {
        ticks.tick().await;
        let items = if draws { Screen::rows() } else { ITEMS_DEFAULT };
        let asked = counters::page(client, &args.query(items)).await;
        let at = now();
        match (asked, &mut screen) {
            // The first answer is waited for before the screen is taken: an error stays readable.
            (Ok((_, page)), screen) if draws => {
                let screen = match screen {
                    Some(screen) => screen,
                    none => none.insert(Screen::enter()?),
                };
                screen.draw(&heading(args, client, &at), &page)?;
            }
            (Ok((answer, page)), _) => write_lines(&at, &answer, &page, output)?,
            (Err(error), Some(screen)) => screen.tell(&heading(args, client, &at), &error.to_string())?,
            (Err(error), None) => return Err(error.into()),
        }
    }
}

fn heading(args: &TopArgs, client: &Client, at: &str) -> String {
    format!("tidegate top · {} · {at} · every {:?} · Ctrl-C ends", client.address(), args.interval)
}

fn write_lines(at: &str, answer: &Value, page: &Page, output: Output) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if output.json {
        let items = answer.get("items").cloned().unwrap_or_default();
        return writeln!(out, "{}", json!({ "at": at, "items": items }));
    }
    if page.items.is_empty() {
        return writeln!(out, "{at} {NOTHING}");
    }
    page.items.iter().try_for_each(|counter| writeln!(out, "{at} {}", counter.line()))
}

impl TopArgs {
    fn query(&self, items_default: u16) -> Vec<(String, String)> {
        let items = self.items.unwrap_or(items_default);
        let mut query =
            vec![("order".to_owned(), "nearest_first".to_owned()), ("items_max".to_owned(), items.to_string())];
        query.extend(self.limit.iter().map(|limit| ("limit".to_owned(), limit.clone())));
        push_attributes(&mut query, &self.attributes);
        query
    }
}

/// Now, to the second, in UTC.
fn now() -> String {
    let secs = i64::try_from(Clock::system().now().as_micros() / 1_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(secs).unwrap_or(jiff::Timestamp::MAX).to_string()
}

async fn ended_by_signal() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// `500ms`, `1s`, `2min`, `1h`.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    match ms {
        Some(ms @ 100..=3_600_000) => Ok(Duration::from_millis(ms)),
        _ => Err("write a time from 100ms to 1h, for example 500ms, 2s or 1min".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        assert_eq!(parse_interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_interval("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(parse_interval("1h"), Ok(Duration::from_secs(3_600)));
        for wrong in ["", "1", "s", "99ms", "2h", "-1s", "1.5s", "99999999999999999999s"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
    }
}
