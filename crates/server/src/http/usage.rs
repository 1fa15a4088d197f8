//! `/v1/usage`: how counters stand, and starting some afresh.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use tidegate::usage::ITEMS_MAX;
use tidegate::{UnusedAttribute, UsageError, UsageItem, UsageOrder, UsageQuery};

use super::check::json;
use super::problem::{Problem, quoted};
use super::query::Query;
use super::segment::Segment;
use super::state::Shared;

/// Counters on a page where nothing else is asked for.
const ITEMS_DEFAULT: usize = 100;

#[derive(Serialize)]
struct Page {
    items: Vec<Told>,
    next: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Told {
    limit: String,
    level: String,
    unit: &'static str,
    attributes: BTreeMap<String, String>,
    quota: u64,
    remaining: u64,
    reset_ms: u64,
}

impl From<UsageItem> for Told {
    fn from(item: UsageItem) -> Self {
        Self {
            limit: item.limit.to_string(),
            level: item.level.to_string(),
            unit: item.unit.name(),
            attributes: item.attributes.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            quota: item.quota,
            remaining: item.remaining,
            reset_ms: item.reset.as_millis_ceil(),
        }
    }
}

/// `GET /v1/usage?limit=&attr.org=&cursor=&items_max=&order=`.
pub(crate) async fn list(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let mut query = Query::parse(query.as_deref())?;
    let asked = UsageQuery {
        // An empty name or cursor is none: a form that is filled in part sends them so.
        limit: query.take("limit").filter(|limit| !limit.is_empty()),
        cursor: query.take("cursor").filter(|cursor| !cursor.is_empty()),
        items_max: items_max(query.take("items_max"))?,
        order: order(query.take("order").as_deref())?,
        attributes: query.attributes()?,
    };
    query.finish("limit, cursor, items_max, order, attr.<attribute>")?;
    let policy = shared.engine.policy();
    let unused = asked.attributes.iter().filter_map(|(name, _)| UnusedAttribute::in_per(name, &policy));
    let warnings = unused.map(|unused| format!("nothing is counted so: {unused}")).collect();
    let engine = shared.engine.clone();
    let page = aside(async move { engine.usage(&asked).await }).await?;
    let page = Page { items: page.items.into_iter().map(Told::from).collect(), next: page.next, warnings };
    Ok(json(StatusCode::OK, &page))
}

#[derive(Serialize)]
struct Reset {
    reset: u64,
}

/// `DELETE /v1/usage/{limit}?attr.org=`: forgets a counter; with `all=true` every one whose attributes
/// have the values that are given.
pub(crate) async fn reset(
    State(shared): State<Arc<Shared>>,
    Segment(limit): Segment,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::parse(query.as_deref())?;
    let attributes = query.attributes()?;
    let is_all = is_all(query.take("all").as_deref())?;
    query.finish("all, attr.<attribute>")?;
    if !is_all {
        check_whole(&shared, &limit, &attributes)?;
    }
    let engine = shared.engine.clone();
    let (of, whose) = (limit.clone(), attributes.clone());
    let reset = aside(async move {
        let attributes: Vec<(&str, &str)> = whose.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        engine.reset(&of, &attributes).await
    });
    let reset = reset.await?;
    tracing::info!(target: "audit", limit, ?attributes, reset, "counters were reset");
    Ok(json(StatusCode::OK, &Reset { reset }))
}

fn is_all(text: Option<&str>) -> Result<bool, Problem> {
    match text {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Problem::bad_request(format!("all is {}; it is true or false", quoted(other)))),
    }
}

/// Refuses to forget more than one counter where that was not asked for. What is wrong besides is for
/// the engine to say.
fn check_whole(shared: &Shared, limit: &str, attributes: &[(String, String)]) -> Result<(), Problem> {
    let policy = shared.engine.policy();
    let Some(rule) = policy.rules.iter().find(|rule| *rule.limit.name == *limit) else { return Ok(()) };
    let per = &rule.limit.per;
    let is_given = |name: &str| attributes.iter().any(|(given, _)| given == name);
    let lacking: Vec<String> = per.iter().filter(|name| !is_given(name)).map(|name| format!("attr.{}", name)).collect();
    let is_known = |(given, _): &(String, String)| per.iter().any(|name| **name == **given);
    if lacking.is_empty() || !attributes.iter().all(is_known) {
        return Ok(());
    }
    let of = if attributes.is_empty() { "every counter of the limit" } else { "every counter with these values" };
    Err(Problem::bad_request(format!(
        "limit {} is counted per {}: give {} as well, or all=true (on the command line --all) to reset {of}",
        quoted(limit),
        per.join(", "),
        lacking.join(" and ")
    )))
}

fn items_max(text: Option<String>) -> Result<usize, Problem> {
    let Some(text) = text else { return Ok(ITEMS_DEFAULT) };
    let wrong =
        || Problem::bad_request(format!("items_max is {}; it is a number from 1 to {ITEMS_MAX}", quoted(&text)));
    text.parse().ok().filter(|items| (1..=ITEMS_MAX).contains(items)).ok_or_else(wrong)
}

fn order(text: Option<&str>) -> Result<UsageOrder, Problem> {
    match text {
        None | Some("key") => Ok(UsageOrder::Key),
        Some("nearest_first") => Ok(UsageOrder::NearestFirst),
        Some(other) => Err(Problem::bad_request(format!("order is {}; it is key or nearest_first", quoted(other)))),
    }
}

/// Reads counters on a thread of its own: a walk over a million would hold up decisions.
async fn aside<T: Send + 'static>(
    work: impl Future<Output = Result<T, UsageError>> + Send + 'static,
) -> Result<T, Problem> {
    let runtime = tokio::runtime::Handle::current();
    match tokio::task::spawn_blocking(move || runtime.block_on(work)).await {
        Ok(done) => done.map_err(|error| refused(&error)),
        Err(_) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is ending; ask another instance")),
    }
}

fn refused(error: &UsageError) -> Problem {
    let status = match error {
        UsageError::UnknownLimit(_) | UsageError::UnknownAttribute { .. } => StatusCode::NOT_FOUND,
        UsageError::Store(store) => match store {
            tidegate::StoreError::NamesOff => StatusCode::CONFLICT,
            tidegate::StoreError::BadCursor => StatusCode::NOT_FOUND,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        },
    };
    Problem::new(status, error.to_string())
}
