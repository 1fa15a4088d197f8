//! The engine: one policy, one store, one decision for each request.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tidegate_core::{Request, Timestamp};
use tidegate_store::Fault;
use tidegate_store::{Charge, LimitId, Store, StoreError, StoreStats};

use crate::any_store::{AnyStore, Charged};
use crate::asked::{Asked, Outcome, decide_usual, decided_together};
use crate::clock::Clock;
use crate::current::CurrentPlan;
use crate::decision::Decision;
use crate::fallback::SharedStoreHealth;
use crate::intervention::{
    ActiveIntervention, Effect, INTERVENTIONS_MAX, Intervention, InterventionError, InterventionId,
};
use crate::plan::{Identities, Plan, PlanRule, Values};
use crate::policy::Policy;

/// Decides whether requests may pass. Clones share everything.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: AnyStore,
    pub(crate) clock: Clock,
    pub(crate) plan: CurrentPlan,
    /// Changed together with the plan, by one thread at a time: reloads and interventions.
    control: Mutex<Control>,
}

#[derive(Debug, Default)]
struct Control {
    known: Identities,
    interventions: Vec<ActiveIntervention>,
    interventions_total: u64,
}

/// Whether several requests stand or fall together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All are admitted, or none is and no counter moves.
    Atomic,
    /// Each for itself, in their order.
    Independent,
}

/// What a reload changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Limits that go on with their counters.
    pub kept: Vec<Arc<str>>,
    /// Limits that begin anew: new ones, and those whose counters cannot be read on.
    pub added: Vec<Arc<str>>,
    /// Limits whose counters are forgotten.
    pub removed: Vec<Arc<str>>,
    /// Settings that changed but need a restart to take effect: their keys in the file.
    pub needs_restart: Vec<&'static str>,
}

/// What happened at a limit, since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCounts {
    /// The limit.
    pub name: Arc<str>,
    /// Its level.
    pub level: Arc<str>,
    /// Requests that it refused, as the first that did.
    pub refused: u64,
    /// Requests that it would have refused, were it enforced.
    pub would_refuse: u64,
    /// Requests that it did not apply to because they lacked an attribute.
    pub missing: u64,
}

/// The store is not in this process, so a decision has to be awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is not in this process: await `decide` instead")]
pub struct NotLocal;

/// How often what has expired is tidied away.
const TIDY_EVERY: Duration = Duration::from_millis(250);
/// Plans are replaced at most now and then; a decision that meets so many in a row gives up.
const PLAN_RETRIES: usize = 1_000;

impl Engine {
    /// An engine on the system's clock, with a thread that tidies up until the last clone is gone.
    pub fn new(policy: Policy) -> Self {
        Self::with_clock(policy, Clock::system())
    }

    /// An engine on this clock. On a manual one nothing happens by itself: call
    /// [`tidy`](Self::tidy).
    pub fn with_clock(policy: Policy, clock: Clock) -> Self {
        let mut control = Control::default();
        let store = AnyStore::new(&policy.store);
        let mut plan = Plan::new(Arc::new(policy), &[], &mut control.known);
        store.install(&plan.installed());
        store.prepare(&mut plan);
        let tidies_itself = clock.is_system();
        let plan = CurrentPlan::new(plan);
        let shared = Arc::new(Shared { store, clock, plan, control: Mutex::new(control) });
        if tidies_itself {
            spawn_tidying(Arc::downgrade(&shared));
        }
        Self { shared }
    }

    /// Decides one request: every limit that applies is charged, or none.
    pub async fn decide(&self, request: &Request<'_>) -> Decision {
        if let Ok(decision) = self.decide_now(request) {
            return decision;
        }
        let shared = &*self.shared;
        for _ in 0..PLAN_RETRIES {
            let (plan, now) = (shared.plan.load(), shared.clock.now());
            let values = plan.values(request);
            let mut asked = Asked::new(&plan, request.cost(), now);
            asked.fill(&values);
            let (outcome, at) = if asked.asks_store() {
                match shared.store.decide(asked.charges(), now).await {
                    Ok(Charged { batch, degraded }) => {
                        (Outcome { degraded, ..asked.decided(batch.rows, batch.admitted) }, batch.at)
                    }
                    Err(error) if is_about_plan(&error) => continue,
                    Err(_) => break,
                }
            } else {
                (asked.decided_alone(), now)
            };
            drop(values);
            return outcome.under(plan, at);
        }
        self.undecided()
    }

    /// [`decide`](Self::decide) without awaiting, for a store in this process.
    ///
    /// # Errors
    /// [`NotLocal`] if the store is elsewhere.
    pub fn decide_now(&self, request: &Request<'_>) -> Result<Decision, NotLocal> {
        let shared = &*self.shared;
        let memory = shared.store.memory().ok_or(NotLocal)?;
        for _ in 0..PLAN_RETRIES {
            let (plan, now) = (shared.plan.load(), shared.clock.now());
            let mut decision = Decision::empty(plan, now);
            if decide_usual(&mut decision, memory, request).is_some() {
                return Ok(decision);
            }
            let plan = decision.plan;
            let values = plan.values(request);
            let mut asked = Asked::new(&plan, request.cost(), now);
            asked.fill(&values);
            let outcome = if asked.asks_store() {
                match memory.charge_now(asked.charges(), now) {
                    Ok(batch) => asked.decided(batch.rows, batch.admitted),
                    Err(error) if is_about_plan(&error) => continue,
                    Err(_) => break,
                }
            } else {
                asked.decided_alone()
            };
            drop(values);
            return Ok(outcome.under(plan, now));
        }
        Ok(self.undecided())
    }

    /// Decides several requests, in their order.
    pub async fn decide_all(&self, requests: &[Request<'_>], together: Together) -> Vec<Decision> {
        if together == Together::Atomic {
            return self.decide_atomic(requests).await;
        }
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            decisions.push(self.decide(request).await);
        }
        decisions
    }

    async fn decide_atomic(&self, requests: &[Request<'_>]) -> Vec<Decision> {
        let shared = &*self.shared;
        for _ in 0..PLAN_RETRIES {
            let plan = shared.plan.load_full();
            let now = shared.clock.now();
            let values: Vec<Values<'_>> = requests.iter().map(|request| plan.values(request)).collect();
            let mut asked: Vec<Asked<'_>> = Vec::with_capacity(requests.len());
            for (request, values) in requests.iter().zip(&values) {
                let mut one = Asked::new(&plan, request.cost(), now);
                one.fill(values);
                asked.push(one);
            }
            // A refusal that needs no store refuses all: the others' limits are only looked at.
            let refused = asked.iter().any(Asked::is_refused_alone);
            if refused {
                asked.iter_mut().for_each(Asked::only_look);
            }
            let asking = asked.iter().filter(|one| one.asks_store());
            let charges: Vec<Charge<'_>> = asking.flat_map(|one| one.charges().iter().cloned()).collect();
            match shared.store.decide(&charges, now).await {
                Ok(Charged { batch, degraded }) => {
                    let mut decisions =
                        decided_together(asked, &batch.rows, batch.admitted && !refused, &plan, batch.at);
                    decisions.iter_mut().for_each(|decision| decision.degraded = degraded);
                    return decisions;
                }
                Err(error) if is_about_plan(&error) => {}
                Err(_) => break,
            }
        }
        requests.iter().map(|_| self.undecided()).collect()
    }

    /// Puts another policy in place. A limit keeps its counters if its name, attributes, unit and
    /// algorithm with its windows are the same, whatever its quota; a bucket's rate has to be the
    /// same too.
    pub fn reload(&self, policy: Policy) -> Reloaded {
        let mut control = self.control();
        let old = self.shared.plan.load_full();
        let needs_restart = needs_restart(&old.policy, &policy);
        control.interventions.retain(|active| match &active.intervention.effect {
            Effect::Block => true,
            effect @ Effect::Override { .. } => check_effect(effect, &policy).is_ok(),
        });
        let new = self.put_in_place(Arc::new(policy), &mut control);
        let ids = |plan: &Plan| -> Vec<LimitId> { plan.rules.iter().map(|rule| rule.id).collect() };
        let names = |rules: &[PlanRule], others: &[LimitId], among: bool| -> Vec<Arc<str>> {
            let chosen = rules.iter().filter(|rule| others.contains(&rule.id) == among);
            chosen.map(|rule| Arc::clone(&rule.limit.name)).collect()
        };
        let (old_ids, new_ids) = (ids(&old), ids(&new));
        Reloaded {
            kept: names(&new.rules, &old_ids, true),
            added: names(&new.rules, &old_ids, false),
            removed: names(&old.rules, &new_ids, false),
            needs_restart,
        }
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.shared.plan.load().policy)
    }

    /// Begins an intervention: a block, or other numbers at one limit, for a time.
    ///
    /// # Errors
    /// [`InterventionError`] says what is wrong with it; nothing has changed then.
    pub fn intervene(&self, intervention: Intervention) -> Result<InterventionId, InterventionError> {
        let now = self.now();
        intervention.validate(now)?;
        let mut control = self.control();
        let policy = self.policy();
        check_effect(&intervention.effect, &policy)?;
        control.interventions.retain(|active| active.intervention.expires_at > now);
        if control.interventions.len() >= INTERVENTIONS_MAX {
            return Err(InterventionError::TooMany(INTERVENTIONS_MAX));
        }
        control.interventions_total += 1;
        let id = InterventionId(control.interventions_total);
        // The newest goes first.
        control.interventions.insert(0, ActiveIntervention { id, since: now, intervention });
        self.put_in_place(policy, &mut control);
        Ok(id)
    }

    /// The interventions in force, newest first.
    pub fn interventions(&self) -> Vec<ActiveIntervention> {
        let now = self.now();
        let control = self.control();
        control.interventions.iter().filter(|active| active.intervention.expires_at > now).cloned().collect()
    }

    /// Ends an intervention; whether there was one.
    pub fn end_intervention(&self, id: InterventionId) -> bool {
        let mut control = self.control();
        let before = control.interventions.len();
        control.interventions.retain(|active| active.id != id);
        let ended = control.interventions.len() < before;
        if ended {
            self.put_in_place(self.policy(), &mut control);
        }
        ended
    }

    /// What happened at each limit, in the order they are checked.
    pub fn limit_counts(&self) -> Vec<LimitCounts> {
        let plan = self.shared.plan.load();
        plan.rules
            .iter()
            .map(|rule| LimitCounts {
                name: Arc::clone(&rule.limit.name),
                level: Arc::clone(&rule.limit.level),
                refused: rule.counts.refused.load(Ordering::Relaxed),
                would_refuse: rule.counts.would_refuse.load(Ordering::Relaxed),
                missing: rule.counts.missing.load(Ordering::Relaxed),
            })
            .collect()
    }

    /// How full the store is.
    pub fn store_stats(&self) -> StoreStats {
        self.shared.store.stats()
    }

    /// How the shared store is, if there is one.
    pub fn shared_store(&self) -> Option<SharedStoreHealth> {
        match &self.shared.store {
            AnyStore::Memory(_) => None,
            AnyStore::Shared(shared) => Some(shared.health()),
        }
    }

    /// Begins to connect to the shared store, if there is one, and waits until that has come out.
    ///
    /// # Errors
    /// What is wrong with it. The engine decides by the failure policies until it is there.
    pub async fn connect(&self) -> Result<(), Fault> {
        match &self.shared.store {
            AnyStore::Memory(_) => Ok(()),
            AnyStore::Shared(shared) => shared.shared().connected().await,
        }
    }

    /// The engine's time.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Forgets what has expired. Happens by itself on the system's clock.
    pub fn tidy(&self) {
        self.shared.tidy();
    }

    fn undecided(&self) -> Decision {
        Outcome::undecided().under(self.shared.plan.load(), self.now())
    }

    /// Builds a plan and swaps it in. The store knows the limits of both plans while requests may
    /// still be decided by the old one.
    fn put_in_place(&self, policy: Arc<Policy>, control: &mut Control) -> Arc<Plan> {
        let old = self.shared.plan.load_full();
        let mut new = Plan::new(policy, &control.interventions, &mut control.known);
        let mut both = new.installed();
        both.extend(
            old.installed().into_iter().filter(|(id, _)| both.iter().all(|(known, _)| known != id)).collect::<Vec<_>>(),
        );
        self.shared.store.install(&both);
        self.shared.store.prepare(&mut new);
        let new = Arc::new(new);
        self.shared.plan.store(Arc::clone(&new));
        self.shared.store.install(&new.installed());
        new
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        // Every change of the control is whole before the lock is let go.
        self.shared.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn tidy(&self) {
        self.store.tidy(self.clock.now());
    }
}

fn spawn_tidying(shared: Weak<Shared>) {
    let tidy = move || {
        while let Some(shared) = shared.upgrade() {
            shared.tidy();
            drop(shared);
            std::thread::park_timeout(TIDY_EVERY);
        }
    };
    // Without the thread counters are still right; memory is given back when tables fill up.
    let _ = std::thread::Builder::new().name("tidegate-tidy".into()).spawn(tidy);
}

fn is_about_plan(error: &StoreError) -> bool {
    matches!(error, StoreError::UnknownLimit(_) | StoreError::WrongLayout(_))
}

fn check_effect(effect: &Effect, policy: &Policy) -> Result<(), InterventionError> {
    let Effect::Override { limit: name, algorithm } = effect else { return Ok(()) };
    let rule = policy.rules.iter().find(|rule| *rule.limit.name == **name);
    let rule = rule.ok_or_else(|| InterventionError::UnknownLimit(name.chars().take(64).collect()))?;
    let (own, other) = (rule.limit.algorithm.name(), algorithm.name());
    if own == other { Ok(()) } else { Err(InterventionError::OtherAlgorithm { own, other }) }
}

fn needs_restart(old: &Policy, new: &Policy) -> Vec<&'static str> {
    let mut keys = Vec::new();
    if old.store != new.store {
        keys.push("store");
    }
    if old.server.listen != new.server.listen {
        keys.push("listen");
    }
    // A token is asked for as it is in the policy in force: it needs no restart.
    if old.server.admin_addr != new.server.admin_addr {
        keys.push("admin");
    }
    keys
}
