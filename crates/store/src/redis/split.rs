//! A request whose counters are on several servers of a cluster.
//!
//! The charges with one hash tag are one call, exact as ever; each counter without one is a call of its own.
//! They are made one after the other, those with a tag first: a refusal there touches nothing else. If a
//! later one refuses, or does not answer, the others give back what they took, and those not yet made only
//! look. So nothing is ever admitted that should not be, and in the end a refused request has taken nothing;
//! until then another may be refused by what is about to be given back.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_core::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;
use super::keys::hash_tag;
use super::link::Link;
use super::queue::{Answer, Failure};
use super::refund::Refund;
use super::{ASKS_MAX, Installed, RedisStore, replay};
use crate::charge::{At, Batch, Charge, Op, Row};
use crate::store::StoreError;

/// Asks about a batch that is not empty.
pub(super) async fn ask(store: &RedisStore, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
    let installed = store.installed();
    installed.knows(batch)?;
    let deadline = Instant::now() + store.settings.timeout;
    let groups = groups(&installed, batch)?;
    let mut takings = Takings::new(store);
    let mut answers: Vec<(Part<'_>, Answer)> = Vec::with_capacity(groups.len());
    let mut admitted = true;
    for places in groups {
        let part = Part::of(batch, places);
        let answer = match part.ask(store, &installed, at, admitted, deadline).await {
            Ok(answer) => answer,
            Err(error) => {
                takings.give_back(deadline).await;
                return Err(error);
            }
        };
        if admitted && answer.admitted {
            takings.add(part.refund(&installed, &answer, at)?);
        }
        admitted &= answer.admitted;
        answers.push((part, answer));
    }
    if admitted {
        takings.keep();
    } else {
        takings.give_back(deadline).await;
    }
    whole(batch.len(), &answers, admitted).ok_or(StoreError::Unavailable(Fault::Protocol))
}

/// Which charges are one call: their places in the batch, in order.
type Places = SmallVec<[usize; 4]>;

/// The calls, those with a tag first.
fn groups(installed: &Installed, batch: &[Charge<'_>]) -> Result<Vec<Places>, StoreError> {
    let mut tagged: Vec<(String, Places)> = Vec::new();
    let mut others: Vec<(String, Places)> = Vec::new();
    for (place, charge) in batch.iter().enumerate() {
        let name = installed.names.name(charge.limit, &charge.key).ok_or(StoreError::UnknownLimit(charge.limit))?;
        let tag = hash_tag(&name).map(str::to_owned);
        let groups = if tag.is_some() { &mut tagged } else { &mut others };
        let slot = tag.unwrap_or(name);
        match groups.iter_mut().find(|(known, _)| *known == slot) {
            Some((_, places)) => places.push(place),
            None => groups.push((slot, Places::from_slice(&[place]))),
        }
    }
    Ok(tagged.into_iter().chain(others).map(|(_, places)| places).collect())
}

/// The charges of one call.
#[derive(Debug)]
struct Part<'a> {
    places: Places,
    charges: SmallVec<[Charge<'a>; 4]>,
}

impl<'a> Part<'a> {
    fn of(batch: &[Charge<'a>], places: Places) -> Self {
        let charges = places.iter().map(|place| batch[*place].clone()).collect();
        Self { places, charges }
    }

    /// Makes the call; one that only looks takes nothing.
    async fn ask(
        &self,
        store: &RedisStore,
        installed: &Installed,
        at: At,
        takes: bool,
        deadline: Instant,
    ) -> Result<Answer, StoreError> {
        let look = |charge: &Charge<'a>| Charge { op: Op::Peek, ..charge.clone() };
        let looks: SmallVec<[Charge<'a>; 4]> =
            if takes { SmallVec::new() } else { self.charges.iter().map(look).collect() };
        let charges = if takes { &self.charges } else { &looks };
        let mut now = store.server_time(at);
        for _ in 0..ASKS_MAX {
            match store.send(installed.ask(charges, now)?, at, deadline).await {
                Ok(answer) => {
                    store.learn(at, answer.now);
                    return Ok(answer);
                }
                Err(Failure::Fault(fault)) => return Err(StoreError::Unavailable(fault)),
                Err(Failure::OtherPeriod(server)) => now = server,
            }
        }
        Err(StoreError::Unavailable(Fault::Protocol))
    }

    fn refund(&self, installed: &Installed, answer: &Answer, at: At) -> Result<Refund, StoreError> {
        let name = |charge: &Charge<'_>| {
            installed.names.name(charge.limit, &charge.key).ok_or(StoreError::UnknownLimit(charge.limit))
        };
        let names = self.charges.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let refund = Refund::of(&self.charges, &names, answer).ok_or(StoreError::Unavailable(Fault::Protocol))?;
        Ok(match at {
            At::Given(now) => refund.given(Some(now)),
            At::Backend { .. } => refund,
        })
    }

    /// Its rows, in the end.
    fn rows(&self, answer: &Answer, admitted: bool) -> Option<SmallVec<[Row; 4]>> {
        if admitted {
            return Some(replay::replay(&self.charges, &answer.found, answer.now, true)?.rows);
        }
        replay::untaken(&self.charges, &answer.found, answer.now)
    }
}

/// The answer to the whole batch, by the clock of the first server.
fn whole(len: usize, answers: &[(Part<'_>, Answer)], admitted: bool) -> Option<Batch> {
    let mut rows: SmallVec<[Option<Row>; 4]> = smallvec::smallvec![None; len];
    for (part, answer) in answers {
        for (place, row) in part.places.iter().zip(part.rows(answer, admitted)?) {
            *rows.get_mut(*place)? = Some(row);
        }
    }
    let now: Timestamp = answers.first()?.1.now;
    Some(Batch { admitted, rows: rows.into_iter().collect::<Option<_>>()?, at: now })
}

/// What was taken so far. Whoever gives up on the request gives it back.
#[derive(Debug)]
struct Takings {
    link: Arc<Link>,
    timeout: Duration,
    refunds: Vec<Refund>,
}

impl Takings {
    fn new(store: &RedisStore) -> Self {
        Self { link: Arc::clone(&store.link), timeout: store.settings.timeout, refunds: Vec::new() }
    }

    fn add(&mut self, refund: Refund) {
        if !refund.is_empty() {
            self.refunds.push(refund);
        }
    }

    /// The request was admitted.
    fn keep(&mut self) {
        self.refunds.clear();
    }

    /// Gives it back, in time to be read by whoever was refused; what takes longer than that goes on.
    async fn give_back(&mut self, deadline: Instant) {
        if let Some(task) = self.begin() {
            let _ = timeout_at(deadline, task).await;
        }
    }

    fn begin(&mut self) -> Option<tokio::task::JoinHandle<()>> {
        if self.refunds.is_empty() {
            return None;
        }
        // Outside a runtime nothing was sent.
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (refunds, link, timeout) = (std::mem::take(&mut self.refunds), Arc::clone(&self.link), self.timeout);
        Some(runtime.spawn(async move {
            for refund in refunds.into_iter().rev() {
                refund.send(Arc::clone(&link), Instant::now() + timeout).await;
            }
        }))
    }
}

impl Drop for Takings {
    fn drop(&mut self) {
        let _ = self.begin();
    }
}

#[cfg(test)]
mod tests;
