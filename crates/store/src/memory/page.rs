//! Listing the counters of a limit, a page at a time, while they change.
//!
//! Within a shard keys are listed in the order of their hashes, which a resized table keeps, so a
//! listing misses no counter that lives through it and names none twice.

use sdd::Guard;
use tidegate_core::Timestamp;

use super::bank::{Bank, Spot};
use super::cells::Hash;
use super::table::{Name, Table};
use super::working::look;
use crate::store::{Counted, CounterPage, PageQuery, StoreError};

pub(super) fn page(
    bank: &Bank,
    query: &PageQuery<'_>,
    now: Timestamp,
    guard: &Guard,
) -> Result<CounterPage, StoreError> {
    if !bank.is_named() {
        return Err(StoreError::NamesOff);
    }
    let after = query.after.map(|text| Cursor::parse(text).ok_or(StoreError::BadCursor)).transpose()?;
    let items_max = query.items_max.max(1);
    let mut page = CounterPage::default();
    for (shard, table) in bank.tables(after.map_or(0, |cursor| cursor.shard), guard) {
        let passed = after.filter(|cursor| cursor.shard == shard).map_or(0, |cursor| cursor.hash);
        for (hash, index, name) in sorted_keys(table, passed) {
            if page.counters.len() == items_max {
                return Ok(page);
            }
            // A table that is being replaced right now still shows its last state.
            let spot = Some(Spot { table, index });
            let Ok(look) = look(query.algorithm, spot, tidegate_core::Cost::ZERO, now.max(bank.floor(hash))) else {
                continue;
            };
            let values = name.iter().map(|value| String::from(&**value)).collect();
            page.counters.push(Counted { values, standing: look.standing });
            page.next = Some(Cursor { shard, hash: hash.get() }.to_text());
        }
    }
    page.next = None;
    Ok(page)
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

#[derive(Clone, Copy, Debug)]
struct Cursor {
    shard: usize,
    hash: u64,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (shard, hash) = text.split_once('-')?;
        Some(Self { shard: usize::from_str_radix(shard, 16).ok()?, hash: u64::from_str_radix(hash, 16).ok()? })
    }

    fn to_text(self) -> String {
        format!("{:x}-{:x}", self.shard, self.hash)
    }
}
