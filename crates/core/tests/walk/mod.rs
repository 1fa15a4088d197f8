//! A walk: a rule and its model are led through the same random steps, and after each of them
//! everything that the rule says is held against the model.

mod checks;
mod steps;

use tidegate_core::{Cost, Counter, Timestamp};

pub(crate) use steps::{Step, back_and_forth, forward};

use crate::models::Model;
use checks::{check_expiry, check_peek, check_standing, check_verdict};
use steps::Place;

/// A rule on its way, and all that was admitted so far.
pub(crate) struct Walk<'a, C: Counter, M> {
    rule: &'a C,
    model: M,
    state: C::State,
    /// Instant inside the cell and units, in the order of admission.
    admitted: Vec<(u64, u64)>,
    place: Place,
}

impl<'a, C: Counter, M: Model> Walk<'a, C, M> {
    /// A walk that begins at `start_us` with a key never seen.
    pub(crate) fn new(rule: &'a C, model: M, start_us: u64) -> Self {
        let place = Place::new(start_us, rule.window().as_micros());
        Self { rule, model, state: C::State::default(), admitted: Vec::new(), place }
    }

    /// The same walk, from here on under another rule that reads the same state: a reloaded file.
    pub(crate) fn reload(self, rule: &'a C, change: impl FnOnce(&mut M)) -> Self {
        let mut model = self.model;
        change(&mut model);
        Self { rule, model, ..self }
    }

    /// Goes all the steps, letting `inspect` see the state after each.
    pub(crate) fn go(mut self, steps: &[Step], inspect: impl Fn(&C::State, &M, u64)) -> Self {
        for step in steps {
            let at = self.step(step);
            inspect(&self.state, &self.model, at);
        }
        self
    }

    /// What was admitted: instant inside the cell and units, in order.
    pub(crate) fn admitted(self) -> Vec<(u64, u64)> {
        self.admitted
    }

    fn step(&mut self, step: &Step) -> u64 {
        let now = self.place.move_by(step.motion);
        let at = self.rule.advance(&mut self.state, Timestamp::from_micros(now)).as_micros();
        assert_eq!(at, self.model.enter(now), "the time inside the cell at {now}");
        assert!(now <= at && at <= self.place.latest(), "a clock set back denies for at most the jump");

        let remaining = self.rule.standing(&self.state, Timestamp::from_micros(at)).remaining;
        let cost = step.cost.units(remaining, self.rule.capacity());
        let verdict = check_verdict(self.rule, &self.state, &self.model, cost, at);
        if verdict.admits() && step.taken {
            self.rule.take(&mut self.state, Cost::new(cost), Timestamp::from_micros(at));
            self.model.take(at, cost);
            self.admitted.extend((cost > 0).then_some((at, cost)));
        }
        check_peek(self.rule, &self.state, at);
        let standing = check_standing(self.rule, &self.state, &self.model, at);
        let expires_at = check_expiry(self.rule, &self.state, at);
        self.place.remember(verdict, standing, expires_at);
        at
    }
}
