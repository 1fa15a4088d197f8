//! Counters as the server tells them, and how they are shown.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::client::{Client, ClientError, target};
use super::style::{BAD, GOOD, PLAIN, STRONG, WARN, shown};
use super::table::{Cell, Column, Table};

/// What share of a quota, in percent, is near its end.
const NEAR_PERCENT: u64 = 80;
/// How many characters a whole quota is drawn with.
const BAR_CHARS: u64 = 10;

/// A page of counters.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    /// The counters.
    pub(crate) items: Vec<Counter>,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
    /// What about the question may be meant otherwise.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
}

/// One counter.
#[derive(Debug, Deserialize)]
pub(crate) struct Counter {
    limit: String,
    attributes: BTreeMap<String, String>,
    quota: u64,
    remaining: u64,
    reset_ms: u64,
}

/// Asks for a page of counters: as it was answered, and read.
///
/// # Errors
/// [`ClientError`].
pub(crate) async fn page(client: &Client, query: &[(String, String)]) -> Result<(Value, Page), ClientError> {
    let answer = client.call(Method::GET, &target(&["v1", "usage"], query), None).await?;
    let page = Page::deserialize(&answer).map_err(|_| ClientError::Other(client.address().clone()))?;
    Ok((answer, page))
}

impl Counter {
    fn used(&self) -> u64 {
        self.quota.saturating_sub(self.remaining)
    }

    fn used_percent(&self) -> u64 {
        // A quota of 0 is used up.
        (u128::from(self.used()) * 100).checked_div(u128::from(self.quota)).map_or(100, |percent| percent as u64)
    }

    /// Whose it is, on one line.
    fn whose(&self) -> String {
        if self.attributes.is_empty() {
            return "everyone".to_owned();
        }
        let pairs = self.attributes.iter().map(|(name, value)| format!("{}={}", shown(name), shown(value)));
        pairs.collect::<Vec<_>>().join(" ")
    }

    fn bar(&self) -> String {
        let full = (self.used_percent() * BAR_CHARS / 100).min(BAR_CHARS);
        (0..BAR_CHARS).map(|at| if at < full { '█' } else { '░' }).collect()
    }

    /// The counter on a line of its own, for pipes: `agent-minute agent=a1 used=59 of=60 left=1 resets_in=12s`.
    pub(crate) fn line(&self) -> String {
        let (limit, whose, reset) = (shown(&self.limit), self.whose(), brief(self.reset_ms));
        format!("{limit} {whose} used={} of={} left={} resets_in={reset}", self.used(), self.quota, self.remaining)
    }
}

/// Counters, one a row; `bars` draws how much of each is used.
pub(crate) fn table(counters: &[Counter], bars: bool) -> Table {
    let drawn = if bars { "" } else { "USED%" };
    let mut table = Table::new(&[
        Column::Left("LIMIT"),
        Column::Left("COUNTER"),
        Column::Right("USED"),
        Column::Right("OF"),
        Column::Right("LEFT"),
        Column::Right("RESETS IN"),
        Column::Right(drawn),
    ]);
    for counter in counters {
        let style = match counter.used_percent() {
            _ if counter.remaining == 0 => BAD,
            percent if percent >= NEAR_PERCENT => WARN,
            _ if bars => GOOD,
            _ => PLAIN,
        };
        let drawn = if bars { counter.bar() } else { format!("{}%", counter.used_percent()) };
        table.row([
            Cell::styled(shown(&counter.limit), STRONG),
            counter.whose().into(),
            counter.used().into(),
            counter.quota.into(),
            Cell::styled(counter.remaining.to_string(), style),
            brief(counter.reset_ms).into(),
            Cell::styled(drawn, style),
        ]);
    }
    table
}

/// A time in its two largest units: `450ms`, `12s`, `3min 4s`, `5d 3h`.
pub(crate) fn brief(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    if ms < 1_000 {
        return format!("{ms}ms");
    }
    // Rounded up: after that time it has passed.
    let mut secs = ms.div_ceil(1_000);
    let mut parts = Vec::new();
    for (size, unit) in UNITS {
        if secs >= size && parts.len() < 2 {
            parts.push(format!("{}{unit}", secs / size));
            secs %= size;
        } else if !parts.is_empty() {
            break;
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_two_units() {
        for (ms, told) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_001, "2s"),
            (60_000, "1min"),
            (184_000, "3min 4s"),
            (3_601_000, "1h"),
            (5 * 86_400_000 + 3 * 3_600_000 + 7, "5d 3h"),
        ] {
            assert_eq!(brief(ms), told);
        }
    }

    #[test]
    fn how_much_is_used() {
        let of = |quota, remaining| {
            let counter = Counter { limit: String::new(), attributes: BTreeMap::new(), quota, remaining, reset_ms: 0 };
            (counter.used_percent(), counter.bar())
        };
        assert_eq!(of(10, 10), (0, "░░░░░░░░░░".into()));
        assert_eq!(of(10, 1), (90, "█████████░".into()));
        assert_eq!(of(u64::MAX, 0), (100, "██████████".into()));
        assert_eq!(of(0, 0).0, 100);
    }
}
