//! For operators: how counters stand, and starting one afresh.

use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_core::{Cost, Limit, Request, Span, Standing, Unit};
use tidegate_store::{At, Charge, Key, LimitId, Op, PageQuery, Store, StoreError};

use crate::engine::Engine;
use crate::plan::{Plan, PlanRule};

/// Which counters to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// Of this limit only.
    pub limit: Option<String>,
    /// Whose `per` attributes have these values.
    pub attributes: Vec<(String, String)>,
    /// Go on where the page with this `next` ended.
    pub cursor: Option<String>,
    /// At most this many, 1 to [`ITEMS_MAX`].
    pub items_max: usize,
    /// In which order.
    pub order: UsageOrder,
}

/// The most counters on one page.
pub const ITEMS_MAX: usize = 1_000;

/// In which order counters are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageOrder {
    /// Page by page, each once.
    #[default]
    Key,
    /// The least remaining share first: one page, without a next.
    NearestFirst,
}

/// A page of counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsagePage {
    /// The counters.
    pub items: Vec<UsageItem>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageItem {
    /// The limit's name.
    pub limit: Arc<str>,
    /// Its level.
    pub level: Arc<str>,
    /// What it counts.
    pub unit: Unit,
    /// Whose counter.
    pub attributes: Vec<(Arc<str>, String)>,
    /// The most that can be admitted at one instant.
    pub quota: u64,
    /// What can still be taken.
    pub remaining: u64,
    /// See [`Standing::reset`].
    pub reset: Span,
}

/// Why counters cannot be shown or reset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// There is no such limit.
    #[error("there is no limit '{0}' in force")]
    UnknownLimit(String),
    /// The limit has no such attribute.
    #[error("limit '{limit}' is not counted per '{attribute}' (it is per: {per})")]
    UnknownAttribute {
        /// The limit.
        limit: String,
        /// What was asked for.
        attribute: String,
        /// What it is counted per.
        per: String,
    },
    /// From the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Shows counters. Without the store's names only a query that names a limit and all of its
    /// attributes can be answered.
    ///
    /// # Errors
    /// [`UsageError`] says what is wrong with the query, or that names are not kept.
    pub async fn usage(&self, query: &UsageQuery) -> Result<UsagePage, UsageError> {
        let plan = self.shared.plan.load_full();
        let items_max = query.items_max.clamp(1, ITEMS_MAX);
        if let Some(name) = &query.limit {
            let rule = rule_of(&plan, name)?;
            check_attributes(rule, &query.attributes)?;
            if let Some(values) = whole_key(rule, &query.attributes) {
                return Ok(UsagePage { items: self.of_key(&plan, rule, &values).await?, next: None });
            }
        }
        match query.order {
            UsageOrder::Key => self.pages(&plan, query, items_max).await,
            UsageOrder::NearestFirst => self.nearest(&plan, query, items_max).await,
        }
    }

    /// Forgets the counters of one limit whose attributes have these values; how many there were.
    /// No attributes: all of the limit's.
    ///
    /// # Errors
    /// [`UsageError`] says what is wrong, or that names are not kept and not all attributes given.
    pub async fn reset(&self, limit: &str, attributes: &[(&str, &str)]) -> Result<u64, UsageError> {
        let plan = self.shared.plan.load_full();
        let rule = rule_of(&plan, limit)?;
        let wanted: Vec<(String, String)> =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check_attributes(rule, &wanted)?;
        let at = At::Backend { local: self.now() };
        let mut count = 0;
        for (id, limit) in counters_of(rule) {
            if let Some(values) = whole_key(rule, &wanted) {
                count += u64::from(self.shared.store.reset(id, &key(&values), at).await?);
                continue;
            }
            let mut after = None;
            loop {
                let query =
                    PageQuery { limit: id, algorithm: &limit.algorithm, after: after.as_deref(), items_max: ITEMS_MAX };
                let page = self.shared.store.page(&query, at).await?;
                for counted in page.counters.iter().filter(|counted| matches(rule, &counted.values, &wanted)) {
                    count += u64::from(self.shared.store.reset(id, &key(&counted.values), at).await?);
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(count)
    }

    /// How one key stands, whether its counter has been made or not. It has more than one where an
    /// override keeps its counters apart and depends on more than the key: those that are in use.
    async fn of_key(&self, plan: &Plan, rule: &PlanRule, values: &[String]) -> Result<Vec<UsageItem>, UsageError> {
        let mut items: Vec<UsageItem> = Vec::new();
        let mut shown: Vec<LimitId> = Vec::new();
        for (id, limit) in self.numbers_of(plan, rule, values).into_iter().rev() {
            if shown.contains(&id) {
                continue;
            }
            shown.push(id);
            let item = self.read(rule, id, limit, values).await?;
            if items.is_empty() || item.remaining < item.quota {
                items.push(item);
            }
        }
        Ok(items)
    }

    /// One counter, read by these numbers.
    async fn read(
        &self,
        rule: &PlanRule,
        id: LimitId,
        limit: &Limit,
        values: &[String],
    ) -> Result<UsageItem, UsageError> {
        let charge = Charge {
            limit: id,
            key: key(values),
            algorithm: &limit.algorithm,
            cost: Cost::ZERO,
            mode: rule.mode,
            op: Op::Peek,
        };
        let batch = self.shared.store.charge(&[charge], At::Backend { local: self.now() }).await?;
        let standing = batch.rows.first().map(|row| row.standing).unwrap_or_default();
        Ok(item(limit, values, standing))
    }

    /// Which counters and numbers may hold for these values now.
    fn numbers_of<'p>(
        &self,
        plan: &Plan,
        rule: &'p PlanRule,
        values: &[String],
    ) -> SmallVec<[(LimitId, &'p Arc<Limit>); 2]> {
        let named: Vec<(&str, &str)> =
            rule.limit.per.iter().map(|name| &**name).zip(values.iter().map(String::as_str)).collect();
        rule.numbers_for(&plan.values(&Request::new(&named)), self.now())
    }

    async fn pages(&self, plan: &Plan, query: &UsageQuery, items_max: usize) -> Result<UsagePage, UsageError> {
        let sources = sources(plan, query)?;
        let (first, mut after) = match query.cursor.as_deref() {
            None => (0, None),
            Some(cursor) => parse_cursor(cursor, sources.len())?,
        };
        let mut page = UsagePage::default();
        for (number, (rule, id, limit)) in sources.iter().enumerate().skip(first) {
            loop {
                let room = items_max - page.items.len();
                let of =
                    PageQuery { limit: *id, algorithm: &limit.algorithm, after: after.as_deref(), items_max: room };
                let found = self.shared.store.page(&of, At::Backend { local: self.now() }).await?;
                for one in found.counters.iter().filter(|one| matches(rule, &one.values, &query.attributes)) {
                    let numbers = self.numbers_of(plan, rule, &one.values);
                    // A counter whose numbers no longer hold for its key is on its way out.
                    let in_force = numbers.into_iter().rev().find(|(own, _)| own == id);
                    match in_force {
                        Some((_, own)) if own.algorithm == limit.algorithm => {
                            page.items.push(item(limit, &one.values, one.standing));
                        }
                        // Read again, by the numbers that hold for this key.
                        Some((_, own)) => page.items.push(self.read(rule, *id, own, &one.values).await?),
                        None => {}
                    }
                }
                after = found.next;
                if page.items.len() >= items_max {
                    page.next = match &after {
                        Some(place) => Some(format!("{number}.{place}")),
                        None if number + 1 < sources.len() => Some(format!("{}.", number + 1)),
                        None => None,
                    };
                    return Ok(page);
                }
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(page)
    }

    async fn nearest(&self, plan: &Plan, query: &UsageQuery, items_max: usize) -> Result<UsagePage, UsageError> {
        let mut best: Vec<UsageItem> = Vec::new();
        let mut page_query = UsageQuery { cursor: None, ..query.clone() };
        loop {
            let page = self.pages(plan, &page_query, ITEMS_MAX).await?;
            best.extend(page.items);
            best.sort_by_key(share);
            best.truncate(items_max);
            page_query.cursor = page.next;
            if page_query.cursor.is_none() {
                return Ok(UsagePage { items: best, next: None });
            }
        }
    }
}

fn rule_of<'p>(plan: &'p Plan, name: &str) -> Result<&'p PlanRule, UsageError> {
    let rule = plan.rules.iter().find(|rule| *rule.limit.name == *name);
    rule.ok_or_else(|| UsageError::UnknownLimit(name.chars().take(64).collect()))
}

fn check_attributes(rule: &PlanRule, attributes: &[(String, String)]) -> Result<(), UsageError> {
    match attributes.iter().find(|(name, _)| rule.limit.per.iter().all(|own| **own != **name)) {
        None => Ok(()),
        Some((name, _)) => Err(UsageError::UnknownAttribute {
            limit: rule.limit.name.to_string(),
            attribute: name.chars().take(64).collect(),
            per: rule.limit.per.join(", "),
        }),
    }
}

/// The values of all of a limit's attributes, if all are given.
fn whole_key(rule: &PlanRule, attributes: &[(String, String)]) -> Option<Vec<String>> {
    let value_of = |own: &Arc<str>| attributes.iter().find(|(name, _)| **name == **own).map(|(_, value)| value.clone());
    rule.limit.per.iter().map(value_of).collect()
}

fn matches(rule: &PlanRule, values: &[String], wanted: &[(String, String)]) -> bool {
    wanted
        .iter()
        .all(|(name, value)| rule.limit.per.iter().zip(values).any(|(own, found)| **own == **name && found == value))
}

/// The counters that a limit keeps: its own, and those of overrides that keep theirs apart.
fn counters_of(rule: &PlanRule) -> impl Iterator<Item = (LimitId, &Arc<Limit>)> {
    std::iter::once((rule.id, &rule.limit)).chain(rule.variants().map(|variant| (variant.id, &variant.limit)))
}

/// Counters that are listed together: of which rule, under which number, read by which numbers.
type Source<'p> = (&'p PlanRule, LimitId, &'p Arc<Limit>);

fn sources<'p>(plan: &'p Plan, query: &UsageQuery) -> Result<Vec<Source<'p>>, UsageError> {
    let rules: Vec<&PlanRule> = match &query.limit {
        Some(name) => vec![rule_of(plan, name)?],
        None => {
            let has_all = |rule: &&PlanRule| check_attributes(rule, &query.attributes).is_ok();
            plan.rules.iter().filter(has_all).collect()
        }
    };
    Ok(rules.into_iter().flat_map(|rule| counters_of(rule).map(move |(id, limit)| (rule, id, limit))).collect())
}

fn parse_cursor(cursor: &str, sources: usize) -> Result<(usize, Option<String>), UsageError> {
    let bad = || UsageError::Store(StoreError::BadCursor);
    let (number, place) = cursor.split_once('.').ok_or_else(bad)?;
    let number = number.parse().ok().filter(|number| *number < sources).ok_or_else(bad)?;
    Ok((number, (!place.is_empty()).then(|| place.to_owned())))
}

fn key(values: &[String]) -> Key<'_> {
    Key { values: values.iter().map(String::as_str).collect() }
}

fn item(limit: &Limit, values: &[String], standing: Standing) -> UsageItem {
    UsageItem {
        limit: Arc::clone(&limit.name),
        level: Arc::clone(&limit.level),
        unit: limit.unit,
        attributes: limit.per.iter().cloned().zip(values.iter().cloned()).collect(),
        quota: limit.capacity(),
        remaining: standing.remaining,
        reset: standing.reset,
    }
}

/// The remaining share, in parts of 2^32.
fn share(item: &UsageItem) -> u128 {
    (u128::from(item.remaining) << 32).checked_div(u128::from(item.quota)).unwrap_or(0)
}
