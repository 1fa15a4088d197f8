//! All or nothing over several counters.
//!
//! A batch is first judged by what can be read without a lock. If some limit refuses, that one read
//! is the refusal's place in the order of things, and no lock is ever taken: a flood of refused
//! requests disturbs nobody. Otherwise the cells are locked, all of them, in an order that every
//! batch keeps; those that changed since the look are judged again; then all are charged or none.

use std::ptr;
use std::sync::atomic::Ordering;

use sdd::Guard;
use smallvec::SmallVec;
use tidegate_core::{Cost, Mode, Span, Timestamp, Verdict};

use super::bank::{Bank, Spot};
use super::cells::{Closed, Hash, Held, Spin};
use super::table::Kind;
use super::working::{Look, Working, look, take_held};
use super::{AtCap, Banks, MemoryStore};
use crate::charge::{Batch, Charge, Key, Op, Row};
use crate::store::StoreError;

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

pub(super) fn charge(
    store: &MemoryStore,
    banks: &Banks,
    batch: &[Charge<'_>],
    now: Timestamp,
    guard: &Guard,
) -> Result<Batch, StoreError> {
    let mut spin = Spin::default();
    loop {
        let mut slots = SmallVec::<[Slot<'_, '_, '_>; USUAL]>::new();
        match open(store, banks, batch, now, guard, &mut slots)? {
            Err(Closed) => {}
            Ok(()) if is_settled_by_look(&slots) => return Ok(answer(&slots, now)),
            Ok(()) => {
                let done = make_room(store, &mut slots, now, guard)
                    && if has_twins(&slots) { charge_twins(&mut slots) } else { charge_apart(&mut slots) }.is_ok();
                if done || slots.iter().any(|slot| slot.vetoes()) {
                    return Ok(answer(&slots, now));
                }
            }
        }
        // A table was replaced under our hands; its successor is there, or will be in microseconds.
        spin.turn();
    }
}

/// Forgets one counter; whether there was one.
pub(super) fn reset(bank: &Bank, hash: Hash, key: &Key<'_>, guard: &Guard) -> bool {
    let mut spin = Spin::default();
    loop {
        match bank.find(hash, key, guard) {
            Ok(None) => return false,
            Ok(Some(spot)) => {
                if let Ok(mut held) = spot.table.cells.cell(spot.index).lock() {
                    Working::fresh(bank.algorithm()).store(spot, &mut held);
                    return true;
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
    slots: &mut SmallVec<[Slot<'b, 'c, 'g>; USUAL]>,
) -> Result<Result<(), Closed>, StoreError> {
    for charge in batch {
        let bank = banks.bank(charge.limit)?;
        if Kind::of(charge.algorithm) != bank.kind {
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

/// Whether there is nothing to take: some charge is refused, or all only ask.
fn is_settled_by_look(slots: &[Slot<'_, '_, '_>]) -> bool {
    slots.iter().any(Slot::vetoes) || slots.iter().all(|slot| !slot.takes())
}

/// Whether two charges of the batch share a counter.
fn has_twins(slots: &[Slot<'_, '_, '_>]) -> bool {
    slots.iter().enumerate().any(|(at, slot)| {
        slots[..at].iter().any(|other| {
            other.bank.id == slot.bank.id && other.hash == slot.hash && other.charge.key == slot.charge.key
        })
    })
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
        store.ledger.at_cap_total.fetch_add(1, Ordering::Relaxed);
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
fn charge_apart(slots: &mut [Slot<'_, '_, '_>]) -> Result<(), Closed> {
    let mut held = SmallVec::<[(usize, Held<'_>); USUAL]>::new();
    for at in lock_order(slots) {
        let slot = &mut slots[at];
        let Some(spot) = slot.spot else { continue };
        let lock = spot.table.cells.cell(spot.index).lock()?;
        if lock.word() != slot.look.word {
            slot.look_again(spot, &lock);
        }
        held.push((at, lock));
    }
    if slots.iter().any(Slot::vetoes) {
        return Ok(());
    }
    for (at, lock) in &mut held {
        let slot = &mut slots[*at];
        if let Some(spot) = slot.spot
            && slot.takes()
        {
            slot.look.standing = take_held(slot.charge.algorithm, spot, lock, slot.charge.cost, slot.now);
        }
    }
    Ok(())
}

/// Charges a batch in which several charges may share a counter: they add up in their order.
fn charge_twins(slots: &mut [Slot<'_, '_, '_>]) -> Result<(), Closed> {
    let mut held: Vec<(Spot<'_>, Held<'_>, Option<Working<'_>>)> = Vec::new();
    let mut place = vec![None; slots.len()];
    for at in lock_order(slots) {
        let Some(spot) = slots[at].spot else { continue };
        if held.last().is_none_or(|(last, ..)| !last.is(spot)) {
            held.push((spot, spot.table.cells.cell(spot.index).lock()?, None));
        }
        place[at] = Some(held.len() - 1);
    }
    for (slot, place) in slots.iter_mut().zip(&place) {
        let Some((spot, lock, state)) = place.and_then(|place| held.get_mut(place)) else { continue };
        // The state as the batch's earlier charges leave it, read by this charge's own rule.
        let mut working = match state.take() {
            Some(state) => state.read_by(slot.charge.algorithm),
            None => Working::held(slot.charge.algorithm, *spot, lock),
        };
        let now = working.advance(slot.now);
        slot.look.verdict = working.check(slot.charge.cost, now);
        if slot.takes() {
            working.take(slot.charge.cost, now);
        }
        slot.look.standing = working.standing(now);
        *state = Some(working);
    }
    if slots.iter().any(Slot::vetoes) {
        // Nothing is stored. What earlier charges of the batch would have left is no one's standing.
        for (slot, place) in slots.iter_mut().zip(&place) {
            if let Some((spot, lock, _)) = place.and_then(|place| held.get(place)) {
                let mut working = Working::held(slot.charge.algorithm, *spot, lock);
                let now = working.advance(slot.now);
                slot.look.standing = working.standing(now);
            }
        }
        return Ok(());
    }
    for (spot, lock, state) in &mut held {
        if let Some(state) = state.take() {
            state.store(*spot, lock);
        }
    }
    Ok(())
}

/// The order in which every batch locks: limit by limit (the most specific was installed first, so
/// the busiest counter is held the shortest), then by address.
fn lock_order(slots: &[Slot<'_, '_, '_>]) -> SmallVec<[usize; USUAL]> {
    let mut order: SmallVec<[usize; USUAL]> = (0..slots.len()).collect();
    order.sort_unstable_by_key(|at| {
        let slot = &slots[*at];
        (slot.bank.id, slot.spot.map_or(0, |spot| ptr::from_ref(spot.table.cells.cell(spot.index)).addr()))
    });
    order
}

fn answer(slots: &[Slot<'_, '_, '_>], now: Timestamp) -> Batch {
    let rows = slots
        .iter()
        .map(|slot| Row { verdict: slot.look.verdict, standing: slot.look.standing, at_cap: slot.at_cap })
        .collect();
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

    fn look_again(&mut self, spot: Spot<'_>, lock: &Held<'_>) {
        let (algorithm, cost) = (self.charge.algorithm, self.charge.cost);
        self.look = Working::judge_held(algorithm, spot, lock, cost, self.now);
    }
}

impl Spot<'_> {
    fn is(&self, other: Spot<'_>) -> bool {
        ptr::eq(self.table, other.table) && self.index == other.index
    }
}
