//! Listing the counters of a limit, a page at a time, while they change.
//!
//! Within a shard keys are listed in the order of their hashes, which a resized table keeps, so a
//! listing misses no counter that lives through it and names none twice.

use sdd::Guard;
use tidegate_core::{Algorithm, Standing, Timestamp};

use super::bank::{Bank, Spot};
use super::cells::{Closed, Hash, Spin};
use super::table::{Name, Table};
use crate::store::{Counted, CounterPage, PageQuery, StoreError};
use crate::working::Working;

pub(super) fn page(
    bank: &Bank,
    query: &PageQuery<'_>,
    now: Timestamp,
    guard: &Guard,
) -> Result<CounterPage, StoreError> {
    if !bank.is_named() {
        return Err(StoreError::NamesOff);
    }
    if !bank.is_layout_of(query.algorithm) {
        return Err(StoreError::WrongLayout(query.limit));
    }
    let start = match query.after {
        Some(text) => Cursor::parse(text, bank.shard_count()).ok_or(StoreError::BadCursor)?,
        None => Cursor { shard: 0, passed: 0 },
    };
    let items_max = query.items_max.max(1);
    let mut page = CounterPage::default();
    let mut spin = Spin::default();
    let mut at = start;
    while at.shard < bank.shard_count() {
        match list_shard(bank, query.algorithm, &mut at, items_max, now, guard, &mut page.counters) {
            Ok(Listed::All) => at = Cursor { shard: at.shard + 1, passed: 0 },
            Ok(Listed::UpToMost) => {
                page.next = Some(at.to_text());
                break;
            }
            // The table is being replaced: its successor goes on where this one left off.
            Err(Closed) => spin.turn(),
        }
    }
    Ok(page)
}

enum Listed {
    /// No counters are left behind the cursor in its shard.
    All,
    /// There may be more, and the page is full.
    UpToMost,
}

/// Lists the cursor's shard from the cursor on, moving the cursor along.
fn list_shard(
    bank: &Bank,
    algorithm: &Algorithm,
    at: &mut Cursor,
    items_max: usize,
    now: Timestamp,
    guard: &Guard,
    counters: &mut Vec<Counted>,
) -> Result<Listed, Closed> {
    let Some(table) = bank.table_of(at.shard, guard) else { return Ok(Listed::All) };
    for (hash, index, name) in sorted_keys(table, at.passed) {
        if counters.len() == items_max {
            return Ok(Listed::UpToMost);
        }
        let now = now.max(bank.floor(hash));
        if let Some(standing) = live(algorithm, Spot { table, index }, now)? {
            let values = name.iter().map(|value| String::from(&**value)).collect();
            counters.push(Counted { values, standing });
        }
        at.passed = hash.get();
    }
    Ok(Listed::All)
}

/// How a counter stands, unless it has expired.
fn live(algorithm: &Algorithm, spot: Spot<'_>, now: Timestamp) -> Result<Option<Standing>, Closed> {
    let mut working = Working::seen(algorithm, spot)?;
    Ok((working.expires_at() > now).then(|| {
        let now = working.advance(now);
        working.standing(now)
    }))
}

/// The keys of a table behind the hash `passed`, in the order of their hashes.
fn sorted_keys(table: &Table, passed: u64) -> Vec<(Hash, usize, &Name)> {
    let mut keys: Vec<_> = table
        .cells
        .keys()
        .filter(|(_, hash)| hash.get() > passed)
        .filter_map(|(index, hash)| Some((hash, index, table.name(index)?)))
        .collect();
    keys.sort_unstable_by_key(|(hash, index, _)| (*hash, *index));
    keys
}

/// Behind the keys of a shard up to the hash `passed`.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    shard: usize,
    passed: u64,
}

impl Cursor {
    fn parse(text: &str, shards: usize) -> Option<Self> {
        let (shard, passed) = text.split_once('-')?;
        let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex(shard) || !hex(passed) {
            return None;
        }
        let shard = usize::from_str_radix(shard, 16).ok().filter(|shard| *shard < shards)?;
        Some(Self { shard, passed: u64::from_str_radix(passed, 16).ok()? })
    }

    fn to_text(self) -> String {
        format!("{:x}-{:x}", self.shard, self.passed)
    }
}
