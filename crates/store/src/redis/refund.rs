//! What a request took from counters of one server and gives back, as it was refused at another;
//! `lua/refund.lua` says what the numbers mean.

use std::sync::Arc;

use tidegate_core::{Algorithm, Timestamp};
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;
use super::link::Link;
use super::queue::Answer;
use super::replay::{Made, taken};
use super::script::REFUND;
use super::tally::Tally;
use crate::charge::Charge;

/// What is given back by one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Refund {
    names: Vec<String>,
    /// Each taking, the first one first.
    takings: Vec<Vec<u8>>,
    /// The clock, if it was given.
    now: Option<Timestamp>,
}

impl Refund {
    /// Of what these admitted charges, of the counters with these names, took by this answer.
    pub(super) fn of(charges: &[Charge<'_>], names: &[String], answer: &Answer) -> Option<Self> {
        let mut refund = Self::default();
        for (charge, (name, made)) in charges.iter().zip(names.iter().zip(taken(charges, &answer.found, answer.now)?)) {
            let Some(made) = made else { continue };
            let place = refund.names.iter().position(|known| known == name).unwrap_or_else(|| {
                refund.names.push(name.clone());
                refund.names.len() - 1
            });
            refund.takings.push(bytes(place as u16 + 1, charge, made));
        }
        Some(refund)
    }

    /// By a given clock: for tests.
    pub(super) fn given(self, now: Option<Timestamp>) -> Self {
        Self { now, ..self }
    }

    /// Whether nothing was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.takings.is_empty()
    }

    /// Gives it back. Without an answer nothing more is done: what may have been given back must not be
    /// given back twice.
    pub(super) async fn send(self, link: Arc<Link>, deadline: Instant) {
        let now = self.now.map(|now| now.as_micros().to_string()).unwrap_or_default();
        // The last taking first: a bucket gives back most that way.
        let mut blob: Vec<u8> = self.takings.into_iter().rev().flatten().collect();
        blob.push(0);
        if let Ok(mut connection) = link.connection(deadline).await {
            let arguments: [&[u8]; 2] = [now.as_bytes(), &blob];
            let running = REFUND.run(&mut connection.inner, &self.names, &arguments);
            let fault = match timeout_at(deadline, running).await {
                Ok(Ok(_)) => {
                    Tally::add(&link.tally().refunds, 1);
                    return;
                }
                Ok(Err(error)) => Fault::from(&error),
                Err(_) => Fault::TimedOut,
            };
            link.report(&connection, fault);
        }
        Tally::add(&link.tally().refunds_lost, 1);
    }
}

/// A taking, as the script reads it.
fn bytes(counter: u16, charge: &Charge<'_>, made: Made) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    let mut number = |number: u64, ticks: u16| {
        bytes.extend_from_slice(&(number as f64).to_be_bytes());
        bytes.extend_from_slice(&ticks.to_be_bytes());
    };
    let units = charge.cost.units();
    let window_us = charge.algorithm.window().as_micros();
    number(made.at, made.ticks);
    let (kind, last) = match charge.algorithm {
        Algorithm::FixedWindow(_) => (1, 0),
        Algorithm::TokenBucket(rule) => {
            let (token_ticks, ticks_per_us) = rule.unit();
            let ticks = units.saturating_mul(token_ticks);
            number(ticks / ticks_per_us, (ticks % ticks_per_us) as u16);
            (2, ticks_per_us)
        }
        Algorithm::SlidingCounter(_) => (3, 0),
        Algorithm::Calendar(_) => (4, 0),
        Algorithm::SlidingWindow(_) => (5, window_us),
    };
    if kind != 2 {
        number(units, 0);
    }
    bytes.extend_from_slice(&(last as f64).to_be_bytes());
    let [high, low] = counter.to_be_bytes();
    [&[kind, high, low], bytes.as_slice()].concat()
}
