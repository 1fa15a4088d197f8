//! All or nothing over several counters.
//!
//! A batch is first judged by what can be read without a lock. If some limit refuses, that one read
//! is the refusal's place in the order of things, and no lock is ever taken: a flood of refused
//! requests disturbs nobody. (A cell that somebody holds right then refuses nobody: what it says next
//! may be there already in the batch's other cells.) A batch that only asks is answered by the same
//! reads if nothing was committed meanwhile. Otherwise the cells are locked, all of them, in an order that every batch
//! keeps; those that changed since the look are judged again; then all are charged or none.

mod twins;

use std::ptr;
use std::sync::atomic::Ordering;

use sdd::Guard;
use smallvec::SmallVec;
use tidegate_core::{Cost, Mode, Span, Timestamp, Verdict};

use super::bank::{Bank, Spot};
use super::cells::{Closed, Hash, Held, Spin};
use super::judge::{Look, judge_held, look, take_held};
use super::{AtCap, Banks, MemoryStore};
use crate::charge::{Batch, Charge, Key, Op, Row};
use crate::store::StoreError;
use crate::working::Working;

/// Batches up to this size are decided without an allocation.
const USUAL: usize = 4;

/// One charge on its way.
struct Slot<'b, 'c, 'g> {
    charge: &'b Charge<'c>,
    bank: &'g Bank,
    hash: Hash,
    spot: Option<Spot<'g>>,
    /// The time in this cell's shard.
    now: Timestamp,
    look: Look,
    at_cap: bool,
}

type Slots<'b, 'c, 'g> = SmallVec<[Slot<'b, 'c, 'g>; USUAL]>;

/// What was looked at has moved or changed: look again. Nothing was taken.
struct Again;

impl From<Closed> for Again {
    fn from(_: Closed) -> Self {
        Self
    }
}

pub(super) fn charge(
    store: &MemoryStore,
    banks: &Banks,
    batch: &[Charge<'_>],
    now: Timestamp,
    guard: &Guard,
) -> Result<Batch, StoreError> {
    let mut spin = Spin::default();
    loop {
        let mut slots = Slots::new();
        if open(store, banks, batch, now, guard, &mut slots)?.is_ok() && decide(store, &mut slots, now, guard).is_ok() {
            return Ok(answer(&slots, now));
        }
        // A table was replaced under our hands, and its successor is there or will be in microseconds;
        // or the holder of a cell will be done with it in nanoseconds.
        spin.turn();
    }
}

/// Forgets one counter; whether there was one.
pub(super) fn reset(bank: &Bank, hash: Hash, key: &Key<'_>, now: Timestamp, guard: &Guard) -> bool {
    let mut spin = Spin::default();
    loop {
        match bank.find(hash, key, guard) {
            Ok(None) => return false,
            Ok(Some(spot)) => {
                let now = now.max(bank.floor(hash));
                if let Ok(mut held) = spot.table.cells.cell(spot.index).lock() {
                    let was_live = Working::held(bank.algorithm(), spot, &held).expires_at() > now;
                    Working::fresh(bank.algorithm()).store(spot, &mut held);
                    return was_live;
                }
            }
            Err(Closed) => {}
        }
        spin.turn();
    }
}

/// Finds each charge's cell and judges the charge by what is there.
fn open<'b, 'c, 'g>(
    store: &MemoryStore,
    banks: &'g Banks,
    batch: &'b [Charge<'c>],
    now: Timestamp,
    guard: &'g Guard,
    slots: &mut Slots<'b, 'c, 'g>,
) -> Result<Result<(), Closed>, StoreError> {
    for charge in batch {
        let bank = banks.bank(charge.limit)?;
        if !bank.is_layout_of(charge.algorithm) {
            return Err(StoreError::WrongLayout(charge.limit));
        }
        let hash = store.hash(&charge.key);
        let spot = match bank.find(hash, &charge.key, guard) {
            Ok(spot) => spot,
            Err(Closed) => return Ok(Err(Closed)),
        };
        let now = now.max(bank.floor(hash));
        let look = match look(charge.algorithm, spot, charge.cost, now) {
            Ok(look) => look,
            Err(Closed) => return Ok(Err(Closed)),
        };
        slots.push(Slot { charge, bank, hash, spot, now, look, at_cap: false });
    }
    Ok(Ok(()))
}

/// Decides a batch whose charges have been looked at, and charges it if it is admitted.
fn decide<'g>(
    store: &MemoryStore,
    slots: &mut Slots<'_, '_, 'g>,
    now: Timestamp,
    guard: &'g Guard,
) -> Result<(), Again> {
    // The usual batch: limits in the order that they were installed in, each once.
    let is_plain = slots.windows(2).all(|pair| pair[0].bank.id < pair[1].bank.id);
    let has_twins = !is_plain && twins::any(slots);
    if slots.iter().any(Slot::vetoes) {
        if !has_twins {
            // A state that somebody is about to replace refuses nobody, but for good: see `Cell::look`.
            let refuses = |slot: &Slot<'_, '_, '_>| !slot.look.is_held || slot.look.verdict == Verdict::Never;
            let is_refused = slots.iter().any(|slot| slot.vetoes() && refuses(slot));
            return if is_refused { Ok(()) } else { Err(Again) };
        }
    } else if !slots.iter().any(Slot::takes) && is_still(slots, guard)? {
        return Ok(());
    }
    if has_twins {
        twins::charge(store, slots, now, guard)?;
    } else if make_room(store, slots, now, guard) {
        charge_apart(slots, is_plain, guard)?;
    }
    count_at_cap(store, slots);
    Ok(())
}

/// Whether nothing was committed since the looks, so that all of them tell of one instant.
fn is_still(slots: &[Slot<'_, '_, '_>], guard: &Guard) -> Result<bool, Closed> {
    for slot in slots {
        let is_still = match slot.spot {
            Some(spot) => spot.table.cells.cell(spot.index).is_still(slot.look.word),
            // One look is one instant.
            None => slots.len() == 1 || slot.is_still_unmade(guard)?,
        };
        if !is_still {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the cells that are missing; false if one found no room and its limit refuses for it.
fn make_room<'g>(store: &MemoryStore, slots: &mut [Slot<'_, '_, 'g>], now: Timestamp, guard: &'g Guard) -> bool {
    for slot in slots {
        if slot.spot.is_some() || !slot.takes() {
            continue;
        }
        if let Ok(spot) = slot.bank.find_or_make(slot.hash, &slot.charge.key, now, guard) {
            slot.spot = Some(spot);
            // The shard may have forgotten more since the look.
            slot.now = slot.now.max(slot.bank.floor(slot.hash));
            continue;
        }
        slot.at_cap = true;
        if store.settings.at_cap == AtCap::Deny {
            // Counters expire all the time: soon is the best that can be said.
            slot.look.verdict = Verdict::Wait(Span::from_secs(1));
            if slot.vetoes() {
                return false;
            }
        }
    }
    true
}

/// Charges a batch whose counters are all different.
fn charge_apart(slots: &mut [Slot<'_, '_, '_>], is_plain: bool, guard: &Guard) -> Result<(), Again> {
    let mut held = SmallVec::<[(usize, Held<'_>); USUAL]>::new();
    let (mut has_changed, mut asks_in_vain) = (false, false);
    for at in lock_order(slots, is_plain) {
        let slot = &mut slots[at];
        let Some(spot) = slot.spot else {
            asks_in_vain |= slot.asks_in_vain();
            continue;
        };
        let lock = spot.table.cells.cell(spot.index).lock()?;
        if lock.word() != slot.look.word {
            slot.look_again(spot, &lock);
            has_changed = true;
        }
        held.push((at, lock));
    }
    if has_changed && slots.iter().any(Slot::vetoes) {
        return Ok(());
    }
    // With all others locked, this is the instant that all charges are judged at.
    if asks_in_vain && has_been_made(slots, guard)? {
        return Err(Again);
    }
    for (at, lock) in &mut held {
        let slot = &mut slots[*at];
        if let Some(spot) = slot.spot
            && slot.takes()
        {
            let standing = take_held(slot.charge.algorithm, spot, lock, slot.charge.cost, slot.now);
            slot.look.set_standing(standing);
        }
    }
    Ok(())
}

/// Whether a counter is there by now that some charge asked for in vain.
fn has_been_made(slots: &[Slot<'_, '_, '_>], guard: &Guard) -> Result<bool, Closed> {
    for slot in slots {
        if slot.asks_in_vain() && !slot.is_still_unmade(guard)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The order in which every batch locks: limit by limit (the most specific was installed first, so
/// the busiest counter is held the shortest), then by address. Charges without a cell come last.
fn lock_order(slots: &[Slot<'_, '_, '_>], is_plain: bool) -> SmallVec<[usize; USUAL]> {
    let mut order = SmallVec::<[usize; USUAL]>::new();
    for at in 0..slots.len() {
        order.push(at);
    }
    if !is_plain {
        order.sort_unstable_by_key(|at| slots[*at].rank());
    }
    order
}

fn count_at_cap(store: &MemoryStore, slots: &[Slot<'_, '_, '_>]) {
    let at_cap = slots.iter().filter(|slot| slot.at_cap).count() as u64;
    if at_cap > 0 {
        store.ledger.at_cap_total.fetch_add(at_cap, Ordering::Relaxed);
    }
}

fn answer(slots: &[Slot<'_, '_, '_>], now: Timestamp) -> Batch {
    let mut rows = SmallVec::new();
    for slot in slots {
        let standing = slot.look.standing(slot.charge.algorithm, slot.now);
        rows.push(Row { verdict: slot.look.verdict, standing, at_cap: slot.at_cap });
    }
    Batch { admitted: !slots.iter().any(Slot::vetoes), rows, at: now }
}

impl Slot<'_, '_, '_> {
    /// Whether this charge refuses the batch.
    fn vetoes(&self) -> bool {
        self.charge.mode == Mode::Enforce && !self.look.verdict.admits()
    }

    /// Whether this charge moves its counter, if the batch is admitted.
    fn takes(&self) -> bool {
        self.charge.op == Op::Take && self.charge.cost > Cost::ZERO && self.look.verdict.admits() && !self.at_cap
    }

    /// Whether this charge was answered by a counter that was not there, and makes none.
    fn asks_in_vain(&self) -> bool {
        self.spot.is_none() && !self.at_cap
    }

    fn is_still_unmade(&self, guard: &Guard) -> Result<bool, Closed> {
        Ok(self.bank.find(self.hash, &self.charge.key, guard)?.is_none())
    }

    fn look_again(&mut self, spot: Spot<'_>, lock: &Held<'_>) {
        let (algorithm, cost) = (self.charge.algorithm, self.charge.cost);
        self.look = judge_held(algorithm, spot, lock, cost, self.now);
    }

    /// Its place in the order of locks.
    fn rank(&self) -> (bool, u32, usize) {
        let address = |spot: Spot<'_>| ptr::from_ref(spot.table.cells.cell(spot.index)).addr();
        (self.spot.is_none(), self.bank.id.0, self.spot.map_or(0, address))
    }
}
