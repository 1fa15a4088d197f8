//! Batches in which several charges may share a counter: they add up in their order.
//!
//! Such a batch comes from several requests decided as one; the charges of one request are all of
//! different limits.

use super::{Again, Slot, has_been_made, make_room};
use crate::charge::Op;
use crate::memory::MemoryStore;
use crate::memory::bank::Spot;
use crate::memory::cells::{Closed, Held};
use crate::working::Working;

use sdd::Guard;
use tidegate_core::{Cost, Mode, Timestamp, Verdict};

/// Up to this many charges are compared each with each, without sorting.
const FEW: usize = 8;

/// Whether two charges of the batch may share a counter: two keys of one hash may.
pub(super) fn any(slots: &[Slot<'_, '_, '_>]) -> bool {
    if slots.len() > FEW {
        return by_counter(slots).windows(2).any(|pair| are_twins(&slots[pair[0]], &slots[pair[1]]));
    }
    slots.iter().enumerate().any(|(at, slot)| slots[..at].iter().any(|other| are_twins(other, slot)))
}

/// Decides such a batch, and charges it if it is admitted.
pub(super) fn charge<'b, 'g>(
    store: &MemoryStore,
    slots: &mut [Slot<'b, '_, 'g>],
    now: Timestamp,
    guard: &'g Guard,
) -> Result<(), Again> {
    // Cells are made only for a batch that would be admitted with them.
    while charge_known(slots, guard)? == Known::WantsRoom {
        if !make_room(store, slots, now, guard) {
            break;
        }
    }
    Ok(())
}

/// What came of a batch whose missing counters were taken as fresh.
#[derive(PartialEq, Eq)]
enum Known {
    /// It is decided.
    Decided,
    /// It is admitted, but for a counter that has no cell yet. Nothing was taken.
    WantsRoom,
}

fn charge_known<'b>(slots: &mut [Slot<'b, '_, '_>], guard: &Guard) -> Result<Known, Again> {
    share_spots(slots);
    let (mut counters, places) = open_counters(slots)?;
    for (slot, place) in slots.iter_mut().zip(&places) {
        if let Some(counter) = place.and_then(|place| counters.get_mut(place)) {
            counter.judge(slot);
        }
    }
    if slots.iter().any(Slot::vetoes) {
        // Nothing is stored. What earlier charges of the batch would have left is no one's standing.
        for (slot, place) in slots.iter_mut().zip(&places) {
            if let Some(counter) = place.and_then(|place| counters.get(place)) {
                let mut working = counter.read(slot);
                let now = working.advance(slot.now);
                slot.look.set_standing(working.standing(now));
            }
        }
        return Ok(Known::Decided);
    }
    if counters.iter().any(|counter| counter.taken && counter.held.is_none()) {
        return Ok(Known::WantsRoom);
    }
    if has_been_made(slots, guard)? {
        return Err(Again);
    }
    for Counter { held, state, taken, .. } in counters {
        if let (Some((spot, mut lock)), Some(state), true) = (held, state, taken) {
            state.store(spot, &mut lock);
        }
    }
    Ok(Known::Decided)
}

/// One counter that some of the batch's charges are of.
struct Counter<'b, 'g> {
    /// None if it has no cell: then it is fresh.
    held: Option<(Spot<'g>, Held<'g>)>,
    /// As the charges judged so far leave it.
    state: Option<Working<'b>>,
    /// Whether one of them took something.
    taken: bool,
    /// What all of them together have to have, or none gets anything.
    wanted: Cost,
}

impl<'b> Counter<'b, '_> {
    /// The state before the batch, under a charge's own rule.
    fn read(&self, slot: &Slot<'b, '_, '_>) -> Working<'b> {
        let algorithm = slot.charge.algorithm;
        self.held
            .as_ref()
            .map_or_else(|| Working::fresh(algorithm), |(spot, lock)| Working::held(algorithm, *spot, lock))
    }

    /// Judges a charge by the state that the batch's earlier charges leave, and takes it from that.
    fn judge(&mut self, slot: &mut Slot<'b, '_, '_>) {
        let mut working = match self.state.take() {
            Some(state) => state.read_by(slot.charge.algorithm),
            None => self.read(slot),
        };
        let now = working.advance(slot.now);
        slot.look.verdict = working.check(slot.charge.cost, now);
        if slot.charge.op == Op::Take && slot.charge.mode == Mode::Enforce {
            self.wanted = Cost::new(self.wanted.units().saturating_add(slot.charge.cost.units()));
            // More than the counter can ever hold at one instant: no wait helps.
            if matches!(slot.look.verdict, Verdict::Wait(_)) && self.wanted.units() > slot.charge.algorithm.capacity() {
                slot.look.verdict = Verdict::Never;
            }
        }
        if slot.takes() {
            working.take(slot.charge.cost, now);
            self.taken = true;
        }
        slot.look.set_standing(working.standing(now));
        self.state = Some(working);
    }
}

/// Locks the batch's counters in the order of all batches. Returns them, and which one each charge
/// is of; none for a charge that found no room.
fn open_counters<'b, 'g>(slots: &[Slot<'b, '_, 'g>]) -> Result<(Vec<Counter<'b, 'g>>, Vec<Option<usize>>), Closed> {
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_unstable_by_key(|at| (slots[*at].rank(), slots[*at].hash));
    let mut counters: Vec<Counter<'b, 'g>> = Vec::new();
    let mut places = vec![None; slots.len()];
    let mut last: Option<&Slot<'b, '_, 'g>> = None;
    for at in order {
        let slot = &slots[at];
        if slot.at_cap {
            continue;
        }
        if last.is_none_or(|last| !share_counter(last, slot)) {
            let held = match slot.spot {
                Some(spot) => Some((spot, spot.table.cells.cell(spot.index).lock()?)),
                None => None,
            };
            counters.push(Counter { held, state: None, taken: false, wanted: Cost::ZERO });
        }
        places[at] = Some(counters.len() - 1);
        last = Some(slot);
    }
    Ok((counters, places))
}

/// Gives a cell found for one charge to the others of its key: they may have looked before it was
/// made, and those that only ask make none.
fn share_spots(slots: &mut [Slot<'_, '_, '_>]) {
    let order = by_counter(slots);
    for pair in order.windows(2) {
        share_spot(slots, pair[0], pair[1]);
    }
    for pair in order.windows(2).rev() {
        share_spot(slots, pair[1], pair[0]);
    }
}

fn share_spot(slots: &mut [Slot<'_, '_, '_>], from: usize, to: usize) {
    let same = are_twins(&slots[from], &slots[to]) && is_same_key(&slots[from], &slots[to]);
    if same && slots[to].spot.is_none() && !slots[to].at_cap {
        slots[to].spot = slots[from].spot;
    }
}

/// Whether two charges of adjacent rank are of one counter.
fn share_counter(a: &Slot<'_, '_, '_>, b: &Slot<'_, '_, '_>) -> bool {
    match (a.spot, b.spot) {
        (Some(a), Some(b)) => std::ptr::eq(a.table, b.table) && a.index == b.index,
        (None, None) => are_twins(a, b) && is_same_key(a, b),
        _ => false,
    }
}

fn are_twins(a: &Slot<'_, '_, '_>, b: &Slot<'_, '_, '_>) -> bool {
    std::ptr::eq(a.bank, b.bank) && a.hash == b.hash
}

fn is_same_key(a: &Slot<'_, '_, '_>, b: &Slot<'_, '_, '_>) -> bool {
    a.charge.key.values[..] == b.charge.key.values[..]
}

/// The charges sorted so that those of one counter are neighbours.
fn by_counter(slots: &[Slot<'_, '_, '_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_unstable_by_key(|at| (slots[*at].bank.id, slots[*at].hash));
    order
}
