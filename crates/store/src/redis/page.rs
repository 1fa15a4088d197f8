//! Listing counters: SCAN finds their keys, and the script says how they stand.

use redis::{FromRedisValue, Value};
use tidegate_core::{Algorithm, Cost, Counter, Mode, Timestamp};
use tokio::time::{Instant, timeout_at};

use super::call::{Ask, numbers_found};
use super::fault::Fault;
use super::keys::{Names, same_slot};
use super::node::Node;
use super::queue::Failure;
use super::{ASKS_MAX, RedisStore, replay};
use crate::charge::{At, Charge, Key, Op};
use crate::store::{Counted, CounterPage, PageQuery, StoreError};

/// Keys that the server looks at in one step.
const STEP_KEYS: usize = 512;
/// Steps for one page, after which it is what was found: a page of a few counters among millions of
/// others takes several calls rather than a long one.
const STEPS_MAX: usize = 200;
/// Counters asked for in one call.
const ASK_COUNTERS: usize = 128;

pub(super) async fn page(store: &RedisStore, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
    let installed = store.installed();
    let own = installed.limits.get(&query.limit).ok_or(StoreError::UnknownLimit(query.limit))?;
    if !own.algorithm.has_layout_of(query.algorithm) {
        return Err(StoreError::WrongLayout(query.limit));
    }
    let nodes = nodes(store).await?;
    let mut place = match query.after {
        None => Place { node: nodes.first().cloned().unwrap_or_default(), ..Place::default() },
        Some(text) => Place::parse(text, store.settings.is_cluster()).ok_or(StoreError::BadCursor)?,
    };
    let mut counters: Vec<Counted> = Vec::new();
    for _ in 0..STEPS_MAX {
        let (next, keys) = scan(store, &installed.names, query, &place).await?;
        let rest = &keys[keys.partition_point(|(key, _)| *key <= place.listed)..];
        let now_listed = &rest[..rest.len().min(query.items_max - counters.len())];
        let together = |(one, _): &Found, (other, _): &Found| !store.settings.is_cluster() || same_slot(one, other);
        for some in now_listed.chunk_by(together).flat_map(|some| some.chunks(ASK_COUNTERS)) {
            counters.extend(standings(store, query.algorithm, some, at).await?);
        }
        if rest.len() > now_listed.len() {
            if let Some((key, _)) = now_listed.last() {
                place.listed.clone_from(key);
            }
            return Ok(CounterPage { counters, next: Some(place.text()) });
        }
        place.listed.clear();
        place.cursor = next;
        if next == 0 {
            // Of a cluster, the next server.
            let Some(node) = nodes.iter().find(|node| **node > place.node) else {
                return Ok(CounterPage { counters, next: None });
            };
            place.node = node.clone();
        }
    }
    Ok(CounterPage { counters, next: Some(place.text()) })
}

/// Where a listing goes on: at which server, a cursor of SCAN, and the last key there, in their order, that
/// was listed.
#[derive(Clone, Debug, Default)]
struct Place {
    node: Node,
    cursor: u64,
    listed: String,
}

impl Place {
    fn parse(text: &str, in_cluster: bool) -> Option<Self> {
        let (node, text) = if in_cluster {
            let (address, text) = text.split_once('/')?;
            (Node::at(address), text)
        } else {
            (Node::default(), text)
        };
        let (cursor, listed) = text.split_once('.')?;
        Some(Self { node, cursor: cursor.parse().ok()?, listed: listed.to_owned() })
    }

    fn text(&self) -> String {
        let Self { node, cursor, listed } = self;
        node.address().map_or_else(|| format!("{cursor}.{listed}"), |address| format!("{address}/{cursor}.{listed}"))
    }
}

/// The servers that have counters, in their order.
async fn nodes(store: &RedisStore) -> Result<Vec<Node>, StoreError> {
    if !store.settings.is_cluster() {
        return Ok(vec![Node::default()]);
    }
    let deadline = Instant::now() + store.settings.timeout;
    let mut connection = store.link.connection(deadline).await.map_err(StoreError::Unavailable)?;
    let fault = match timeout_at(deadline, connection.inner.nodes()).await {
        Ok(Ok(nodes)) => return Ok(nodes),
        Ok(Err(error)) => Fault::from(&error),
        Err(_) => Fault::TimedOut,
    };
    store.link.report(&connection, fault);
    Err(StoreError::Unavailable(fault))
}

/// A counter's key, and the values in it.
type Found = (String, Vec<String>);

/// One step of SCAN: where the next one begins, and the limit's counters in this one, each once.
async fn scan(
    store: &RedisStore,
    names: &Names,
    query: &PageQuery<'_>,
    place: &Place,
) -> Result<(u64, Vec<Found>), StoreError> {
    let pattern = names.pattern(query.limit).ok_or(StoreError::UnknownLimit(query.limit))?;
    let deadline = Instant::now() + store.settings.timeout;
    let mut connection = store.link.connection(deadline).await.map_err(StoreError::Unavailable)?;
    let mut command = redis::cmd("SCAN");
    command.arg(place.cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(STEP_KEYS);
    let fault = match timeout_at(deadline, connection.inner.send_to(&place.node, &command)).await {
        Ok(Ok(value)) => match step(value) {
            Some((next, mut keys)) => {
                keys.sort_unstable();
                keys.dedup();
                let found = keys.into_iter().filter_map(|key| Some((key.clone(), names.values(query.limit, &key)?)));
                return Ok((next, found.collect()));
            }
            None => Fault::Protocol,
        },
        Ok(Err(error)) => Fault::from(&error),
        Err(_) => Fault::TimedOut,
    };
    store.link.report(&connection, fault);
    Err(StoreError::Unavailable(fault))
}

fn step(value: Value) -> Option<(u64, Vec<String>)> {
    let (next, keys) = <(u64, Vec<Vec<u8>>)>::from_redis_value(value).ok()?;
    // Keys of ours are ASCII.
    Some((next, keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect()))
}

/// How these counters stand; those that have expired are left out.
async fn standings(
    store: &RedisStore,
    algorithm: &Algorithm,
    keys: &[Found],
    at: At,
) -> Result<Vec<Counted>, StoreError> {
    let look = Charge {
        limit: crate::LimitId(0),
        key: Key::default(),
        algorithm,
        cost: Cost::ZERO,
        mode: Mode::Permissive,
        op: Op::Peek,
    };
    let mut now = store.server_time(at);
    for _ in 0..ASKS_MAX {
        let mut ask = Ask::default();
        for (key, _) in keys {
            ask.push(&look, key.clone(), now);
        }
        let deadline = Instant::now() + store.settings.timeout;
        match store.send(ask, at, deadline).await {
            Ok(answer) => {
                let numbers = answer.found.chunks(numbers_found(algorithm));
                let counted = keys.iter().zip(numbers).filter_map(|((_, values), numbers)| {
                    let standing = replay::live(algorithm, numbers, answer.now)?;
                    Some(Counted { values: values.clone(), standing })
                });
                return Ok(counted.collect());
            }
            Err(Failure::Fault(fault)) => return Err(StoreError::Unavailable(fault)),
            Err(Failure::OtherPeriod(server)) => now = server,
        }
    }
    Err(StoreError::Unavailable(Fault::Protocol))
}

/// Whether a counter that was reset was live: from the instant and what was there, a value or the newest
/// entry of a log. None if that is not what the script says.
pub(super) fn was_live(algorithm: &Algorithm, value: Value) -> Option<bool> {
    let Value::Array(parts) = value else { return None };
    let [Value::Int(now), state] = parts.as_slice() else { return None };
    let now = Timestamp::from_micros(u64::try_from(*now).ok()?);
    let bytes = match state {
        Value::BulkString(bytes) => bytes.as_slice(),
        Value::Nil => return Some(false),
        _ => return None,
    };
    // A value of another format was no counter.
    Some(expires_at(algorithm, bytes).is_some_and(|expires_at| expires_at > now))
}

fn expires_at(algorithm: &Algorithm, bytes: &[u8]) -> Option<Timestamp> {
    if let Algorithm::SlidingWindow(rule) = algorithm {
        let newest: &[u8; 7] = bytes.first_chunk()?;
        let us = newest.iter().fold(0_u64, |us, byte| us << 8 | u64::from(*byte));
        return Some(Timestamp::from_micros(us).after(rule.window()));
    }
    let numbers = super::call::stored_numbers(algorithm, bytes)?;
    replay::expires_at(algorithm, &numbers)
}
