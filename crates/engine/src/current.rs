//! The plan in force, at hand for every decision without a lock or a counter that threads share.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::plan::Plan;

thread_local! {
    /// The plan that this thread decided by last. One a thread, until it decides by another or ends.
    static AT_HAND: Cell<Option<Arc<Plan>>> = const { Cell::new(None) };
}

/// The plan in force.
///
/// A decision takes the plan that its thread has at hand and gives it back when it is dropped, so
/// where one follows the other no reference is counted. Whether it is still in force its address
/// tells: while it is at hand, no other plan can have that address. A thread that holds several
/// decisions, or uses several engines in turn, counts a reference for each.
#[derive(Debug)]
pub(crate) struct CurrentPlan {
    /// Changed under the lock, so that what it says is also in the order of the lock.
    address: AtomicPtr<Plan>,
    plan: Mutex<Arc<Plan>>,
}

/// A plan, for as long as a decision lasts.
#[derive(Debug)]
pub(crate) struct PlanLoan {
    /// None only while it is dropped.
    plan: Option<Arc<Plan>>,
}

impl CurrentPlan {
    pub(crate) fn new(plan: Plan) -> Self {
        let plan = Arc::new(plan);
        Self { address: AtomicPtr::new(address(&plan)), plan: Mutex::new(plan) }
    }

    /// The plan in force.
    #[inline]
    pub(crate) fn load(&self) -> PlanLoan {
        // A thread that is ending has none.
        let at_hand = AT_HAND.try_with(Cell::take).ok().flatten();
        match at_hand.filter(|plan| address(plan) == self.address.load(Ordering::Acquire)) {
            Some(plan) => plan.into(),
            None => self.load_full().into(),
        }
    }

    /// The plan in force, to be kept.
    #[cold]
    pub(crate) fn load_full(&self) -> Arc<Plan> {
        // What is under the lock is whole at any time.
        Arc::clone(&self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another plan in force.
    pub(crate) fn store(&self, plan: Arc<Plan>) {
        let mut current = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        self.address.store(address(&plan), Ordering::Release);
        let old = std::mem::replace(&mut *current, plan);
        drop(current);
        // Outside of the lock, as it may be the last reference to much.
        drop(old);
    }
}

/// Compared only, never followed.
fn address(plan: &Arc<Plan>) -> *mut Plan {
    Arc::as_ptr(plan).cast_mut()
}

impl From<Arc<Plan>> for PlanLoan {
    #[inline]
    fn from(plan: Arc<Plan>) -> Self {
        Self { plan: Some(plan) }
    }
}

impl Deref for PlanLoan {
    type Target = Arc<Plan>;

    #[inline]
    #[expect(clippy::expect_used, reason = "it is taken nowhere but in drop")]
    fn deref(&self) -> &Arc<Plan> {
        self.plan.as_ref().expect("a loan has its plan until it is dropped")
    }
}

impl Drop for PlanLoan {
    #[inline]
    fn drop(&mut self) {
        let plan = self.plan.take();
        // A thread that is ending keeps nothing at hand; the plan is dropped then.
        let _ = AT_HAND.try_with(|at_hand| at_hand.set(plan));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Identities;
    use crate::policy::Policy;

    fn plan() -> Plan {
        Plan::new(Arc::new(Policy::default()), &[], &mut Identities::default())
    }

    #[test]
    fn decisions_one_after_the_other_count_no_references() {
        let current = CurrentPlan::new(plan());
        drop(current.load());
        let references = Arc::strong_count(&current.load_full());
        for _ in 0..3 {
            assert_eq!(Arc::strong_count(&current.load()), references - 1);
        }
    }

    #[test]
    fn a_plan_at_hand_is_used_only_while_it_is_in_force() {
        let (one, other) = (CurrentPlan::new(plan()), CurrentPlan::new(plan()));
        drop(one.load());
        assert!(Arc::ptr_eq(&other.load(), &other.load_full()), "another engine's plan is at hand");
        let (held, new) = (one.load(), Arc::new(plan()));
        one.store(Arc::clone(&new));
        drop(held);
        assert!(Arc::ptr_eq(&one.load(), &new), "the old one came back after the new one was put in force");
    }

    #[test]
    fn a_thread_keeps_one_plan_at_most() {
        let current = CurrentPlan::new(plan());
        let old = Arc::downgrade(&current.load_full());
        drop((0..10).map(|_| current.load()).collect::<Vec<_>>());
        current.store(Arc::new(plan()));
        assert_eq!(old.strong_count(), 1, "the one at hand");
        drop(current.load());
        assert_eq!(old.strong_count(), 0);
    }
}
