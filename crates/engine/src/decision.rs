//! What the engine says of a request.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_core::{Limit, Mode, Span, Standing, Timestamp, Verdict};
use tidegate_store::Row;

use crate::current::PlanLoan;
use crate::plan::{Plan, PlanOverride, PlanRule};

/// Whether a request may pass, and how every limit that applies to it stands.
///
/// A denial is a decision, not an error.
pub struct Decision {
    pub(crate) plan: PlanLoan,
    pub(crate) rows: SmallVec<[Row; 4]>,
    /// Which limit each row is of.
    pub(crate) sources: SmallVec<[RowSource; 4]>,
    pub(crate) allowed: bool,
    pub(crate) at: Timestamp,
    pub(crate) degraded: Option<Degraded>,
    /// Where the request was denied for another one's sake (see `Together::Atomic`): that one's
    /// refusal.
    pub(crate) vetoed_by: Option<Box<Decision>>,
}

/// How a decision was made while the shared store did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Degraded {
    /// This process counted, for those limits with `on_failure: local`.
    Local,
    /// Nothing was counted.
    Open,
    /// A limit with `on_failure: closed` refused.
    Closed,
}

impl Degraded {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Local, Self::Open, Self::Closed];

    /// The word in headers, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// Which limit of the plan a row is of, in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowSource {
    number: u32,
    /// The override's number; [`OWN`](Self::OWN), [`BLOCK`](Self::BLOCK) or one of those from
    /// [`LACKING`](Self::LACKING) on where there is none.
    overridden: u32,
}

impl RowSource {
    const OWN: u32 = u32::MAX;
    const BLOCK: u32 = u32::MAX - 1;
    /// From here on: the limit refuses for the attribute of its `per` with this number. A limit has
    /// far fewer overrides than would reach it.
    const LACKING: u32 = u32::MAX - 1_024;

    pub(crate) fn rule(number: u32, overridden: Option<usize>) -> Self {
        Self { number, overridden: overridden.map_or(Self::OWN, |overridden| overridden as u32) }
    }

    pub(crate) const fn block(number: u32) -> Self {
        Self { number, overridden: Self::BLOCK }
    }

    /// The rule, which refuses because the request lacks this attribute of its `per`.
    pub(crate) const fn lacking(number: u32, attribute: u32) -> Self {
        Self { number, overridden: Self::LACKING + attribute }
    }

    /// Which attribute of its `per` the rule refuses for.
    fn missing(self) -> Option<usize> {
        (Self::LACKING..Self::BLOCK).contains(&self.overridden).then(|| (self.overridden - Self::LACKING) as usize)
    }

    /// The place in the order of checking.
    pub(crate) const fn number(self) -> u32 {
        self.number
    }

    /// The rule, and its override; not for a block.
    pub(crate) fn find(self, plan: &Plan) -> (&PlanRule, Option<&PlanOverride>) {
        let rule = &plan.rules[self.number as usize];
        (rule, rule.overridden(self.overridden as usize))
    }

    fn limit(self, plan: &Plan) -> (&Limit, Mode) {
        if self.overridden == Self::BLOCK {
            return (&plan.blocks[self.number as usize].limit, Mode::Enforce);
        }
        let (rule, own) = self.find(plan);
        (own.map_or(&rule.limit, |own| &own.limit), rule.mode)
    }
}

/// How one limit stands.
#[derive(Clone, Copy, Debug)]
pub struct LimitState<'a> {
    /// The limit, with the numbers that hold for this request.
    pub limit: &'a Limit,
    /// The milder of the limit's mode and the file's.
    pub mode: Mode,
    /// The most that can be admitted at one instant: a window's quota, a bucket's burst.
    pub quota: u64,
    /// The time in which a full quota comes back.
    pub window: Span,
    /// What can still be taken, 0 to quota.
    pub remaining: u64,
    /// See [`Standing::reset`].
    pub reset: Span,
    /// Until `remaining` next grows by itself.
    pub next: Span,
    /// Whether this limit refused the request, or would have if it were enforced.
    pub refused: bool,
    /// The attribute of `per` that the request lacks, where the limit refuses it for that.
    pub missing: Option<&'a str>,
    /// Whether the limit did not count because the store was full.
    pub at_cap: bool,
    verdict: Verdict,
}

impl Decision {
    /// To be filled in: allows, by no limits.
    #[inline]
    pub(crate) fn empty(plan: PlanLoan, at: Timestamp) -> Self {
        let (rows, sources) = (SmallVec::new(), SmallVec::new());
        Self { plan, rows, sources, allowed: true, at, degraded: None, vetoed_by: None }
    }

    /// Whether the request may pass. For a request of cost 0: whether one of cost 1 would.
    pub const fn allowed(&self) -> bool {
        self.allowed
    }

    /// The first limit, in the order checked, that refuses the request.
    pub fn refused_by(&self) -> Option<LimitState<'_>> {
        if self.allowed {
            return None;
        }
        self.refusing().next().or_else(|| self.vetoed_by.as_deref()?.refused_by())
    }

    /// How long to wait: the longest wait among the limits that refuse. None if the request was
    /// allowed or can never pass.
    pub fn retry_after(&self) -> Option<Span> {
        match self.verdict() {
            Verdict::Wait(span) => Some(span),
            Verdict::Admit | Verdict::Never => None,
        }
    }

    /// Whether the request can never pass: its cost is above a limit's capacity, or a limit is 0.
    pub fn never(&self) -> bool {
        self.verdict() == Verdict::Never
    }

    /// How the decision was made without the shared store, if it was: by the limits' failure policies.
    pub const fn degraded(&self) -> Option<Degraded> {
        self.degraded
    }

    /// The limits that apply, in the order checked.
    pub fn limits(&self) -> impl Iterator<Item = LimitState<'_>> {
        self.rows.iter().zip(&self.sources).map(|(row, source)| self.state(row, *source))
    }

    /// The limit to show where there is room for one only: of an allowed request the one with the
    /// least remaining share, of a denied one the one that takes longest to pass.
    pub fn tightest(&self) -> Option<LimitState<'_>> {
        if self.allowed {
            return self.limits().reduce(|best, next| if next.is_tighter(&best) { next } else { best });
        }
        let longest =
            self.refusing().reduce(|best, next| if outlasts(next.verdict, best.verdict) { next } else { best });
        longest.or_else(|| self.vetoed_by.as_deref()?.tightest())
    }

    /// The instant that it was decided at.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    pub(crate) fn copied(&self) -> Self {
        Self {
            plan: Arc::clone(&self.plan).into(),
            rows: self.rows.clone(),
            sources: self.sources.clone(),
            allowed: self.allowed,
            at: self.at,
            degraded: self.degraded,
            vetoed_by: None,
        }
    }

    fn verdict(&self) -> Verdict {
        if self.allowed {
            return Verdict::Admit;
        }
        let own = self.refusing().map(|state| state.verdict).fold(Verdict::Admit, Verdict::or_longer);
        match &self.vetoed_by {
            Some(other) if own == Verdict::Admit => other.verdict(),
            _ => own,
        }
    }

    fn refusing(&self) -> impl Iterator<Item = LimitState<'_>> {
        self.limits().filter(|state| state.refused && state.mode == Mode::Enforce)
    }

    fn state(&self, row: &Row, source: RowSource) -> LimitState<'_> {
        let (limit, mode) = source.limit(&self.plan);
        let Row { verdict, standing: Standing { remaining, reset, next }, at_cap } = *row;
        LimitState {
            limit,
            mode,
            quota: limit.capacity(),
            window: limit.window(),
            remaining,
            reset,
            next,
            refused: !verdict.admits(),
            missing: source.missing().and_then(|attribute| limit.per.get(attribute)).map(|name| &**name),
            at_cap,
            verdict,
        }
    }
}

impl LimitState<'_> {
    /// Whether less of this limit's quota is left than of the other's.
    fn is_tighter(&self, other: &Self) -> bool {
        let share = |state: &Self, quota: u64| u128::from(state.remaining) * u128::from(quota);
        // A quota of 0 leaves no share at all.
        match (self.quota, other.quota) {
            (_, 0) => false,
            (0, _) => true,
            _ => share(self, other.quota) < share(other, self.quota),
        }
    }
}

/// Whether `a` means a longer wait than `b`.
fn outlasts(a: Verdict, b: Verdict) -> bool {
    a != b && a.or_longer(b) == a
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("allowed", &self.allowed)
            .field("refused_by", &self.refused_by().map(|state| &state.limit.name))
            .field("retry_after", &self.retry_after())
            .field("limits", &self.limits().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
