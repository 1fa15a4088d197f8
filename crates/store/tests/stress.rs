//! Eight threads on shared hierarchies, with upkeep, installs, listings and resets beside them:
//! exactly N of N pass at every level, and who is refused leaves every counter where it was.
//!
//! `TIDEGATE_SOAK` multiplies the rounds; a run that does not end is a failure, not a wait.
#![expect(clippy::unwrap_used, reason = "a thread that cannot go on fails its test")]

mod crowd;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crowd::{in_time, soak};
use tidegate_conformance::limits::{Kind, Known, LONG, START, block_on, charge, install};
use tidegate_core::{Span, Timestamp};
use tidegate_store::memory::interruption;
use tidegate_store::{At, Key, MemorySettings, MemoryStore, PageQuery, Store};

const THREADS: u64 = 8;
const ORGS: usize = 2;
const AGENTS: usize = 4;

/// Agent, org, everyone: which rule each has, and how much each admits.
#[derive(Clone, Copy, Debug)]
struct Hierarchy {
    rules: [Kind; 3],
    admits: [u64; 3],
}

/// Every rule at every level; the agents, the orgs or the whole are the narrowest.
fn hierarchies() -> Vec<Hierarchy> {
    use Kind::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
    let rules = [
        [FixedWindow, TokenBucket, SlidingWindow],
        [TokenBucket, SlidingCounter, Calendar],
        [SlidingWindow, FixedWindow, TokenBucket],
        [SlidingCounter, Calendar, FixedWindow],
        [Calendar, SlidingWindow, SlidingCounter],
    ];
    let admits = [[50, 100_000, 100_000], [1_000, 150, 100_000], [1_000, 900, 333]];
    rules.into_iter().flat_map(|rules| admits.map(|admits| Hierarchy { rules, admits })).collect()
}

/// The limits of a hierarchy, one more level that refuses everything, and one of other people's.
struct Levels {
    agent: Known,
    org: Known,
    everyone: Known,
    nothing: Known,
    others: Known,
}

impl Levels {
    fn new(Hierarchy { rules, admits }: Hierarchy) -> Self {
        Self {
            agent: Known::new(0, &["org", "agent"], rules[0].rule(admits[0])),
            org: Known::new(1, &["org"], rules[1].rule(admits[1])),
            everyone: Known::new(2, &[], rules[2].rule(admits[2])),
            nothing: Known::new(3, &["org"], rules[1].rule(0)),
            others: Known::new(4, &["k"], rules[0].rule(50)),
        }
    }

    fn all(&self) -> [&Known; 5] {
        [&self.agent, &self.org, &self.everyone, &self.nothing, &self.others]
    }
}

#[test]
fn exactly_as_many_pass_as_fit_at_every_level() {
    in_time(|| {
        interruption::often(300);
        for _ in 0..3 * soak() {
            for hierarchy in hierarchies() {
                contend(hierarchy);
            }
        }
    });
}

/// Lets the threads at one hierarchy until nothing more passes, and compares every counter with what
/// passed.
fn contend(hierarchy: Hierarchy) {
    let store = MemoryStore::new(MemorySettings { names: true, ..MemorySettings::default() });
    let levels = Levels::new(hierarchy);
    install(&store, &levels.all());
    let passed: Vec<AtomicU64> = (0..ORGS * AGENTS).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Ends(&done);
        let beside = scope.spawn(|| disturb(&store, &levels, &done));
        let askers: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (store, levels, passed) = (&store, &levels, &passed);
                scope.spawn(move || ask_until_full(store, levels, passed, seed))
            })
            .collect();
        for asker in askers {
            asker.join().unwrap();
        }
        drop(ends);
        beside.join().unwrap();
    });
    let passed: Vec<u64> = passed.into_iter().map(AtomicU64::into_inner).collect();
    let [agent_admits, org_admits, all_admit] = hierarchy.admits;
    let expected = (agent_admits * AGENTS as u64).min(org_admits).saturating_mul(ORGS as u64).min(all_admit);
    let total: u64 = passed.iter().sum();
    assert_eq!(total, expected, "{hierarchy:?}");
    let used = |known: &Known, key: &[&str], admits| admits - block_on(known.remaining(&store, key, START));
    assert_eq!(used(&levels.everyone, &[], all_admit), total, "{hierarchy:?}");
    for org in 0..ORGS {
        let org_name = format!("org-{org}");
        let of_org: u64 = passed[org * AGENTS..][..AGENTS].iter().sum();
        assert_eq!(used(&levels.org, &[&org_name], org_admits), of_org, "{hierarchy:?}, {org_name}");
        for agent in 0..AGENTS {
            let key = [org_name.as_str(), &format!("agent-{agent}")];
            let of_agent = passed[org * AGENTS + agent];
            assert_eq!(used(&levels.agent, &key, agent_admits), of_agent, "{hierarchy:?}, {key:?}");
        }
    }
}

/// Asks for agents at random until each of them is refused at some level, by batches in random
/// order; every third batch has a level in it that refuses.
fn ask_until_full(store: &MemoryStore, levels: &Levels, passed: &[AtomicU64], seed: u64) {
    let mut dice = Dice::new(seed);
    let mut full = vec![false; passed.len()];
    while full.iter().any(|full| !full) {
        let at = dice.below(passed.len());
        let (org, agent) = (format!("org-{}", at / AGENTS), format!("agent-{}", at % AGENTS));
        let mut batch =
            vec![levels.agent.take(&[&org, &agent], 1), levels.org.take(&[&org], 1), levels.everyone.take(&[], 1)];
        let is_doomed = dice.below(3) == 0;
        if is_doomed {
            batch.push(levels.nothing.take(&[&org], 1));
        }
        for last in (1..batch.len()).rev() {
            batch.swap(last, dice.below(last + 1));
        }
        let answer = block_on(charge(store, &batch, START));
        assert!(!(is_doomed && answer.admitted));
        passed[at].fetch_add(u64::from(answer.admitted), Ordering::Relaxed);
        full[at] |= !is_doomed && !answer.admitted;
    }
}

/// Upkeep, installs of the same limits, listings, peeks, resets of other counters, and other keys of
/// the agents' limit that come in crowds, so that tables grow under the askers' hands.
fn disturb(store: &MemoryStore, levels: &Levels, done: &AtomicBool) {
    let mut newcomers = 0_u64;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..200 {
            let key = format!("newcomer-{newcomers}");
            newcomers += 1;
            assert!(block_on(charge(store, &[levels.agent.take(&["elsewhere", &key], 1)], START)).admitted);
            assert!(block_on(charge(store, &[levels.others.take(&[&key], 1)], START)).admitted);
            assert!(block_on(store.reset(levels.others.id, &Key::of(&[&key]), At::Given(START))).unwrap());
        }
        store.tidy(START);
        install(store, &levels.all());
        let peeks = [levels.agent.peek(&["org-0", "agent-0"], 1), levels.everyone.peek(&[], 1)];
        block_on(charge(store, &peeks, START));
        let query =
            PageQuery { limit: levels.org.id, algorithm: &levels.org.limit.algorithm, after: None, items_max: 9 };
        assert!(block_on(store.page(&query, At::Given(START))).unwrap().counters.len() <= ORGS);
    }
}

/// Time goes on, upkeep forgets, and threads come late with a clock from before: never more passes
/// than the windows that were seen admit.
#[test]
fn late_threads_do_not_begin_a_spent_window_anew() {
    in_time(|| {
        interruption::often(100);
        for _ in 0..2 * soak() {
            for kind in Kind::ALL {
                pass_time(kind);
            }
        }
    });
}

fn pass_time(kind: Kind) {
    const ADMITS: u64 = 20;
    const WINDOWS: u64 = 30;
    let window_us = if kind == Kind::Calendar { 3_600_000_000 } else { 60_000_000 };
    let step_us = window_us / 200;
    let store = MemoryStore::new(MemorySettings::default());
    let limit = Known::new(0, &["k"], kind.rule(ADMITS));
    install(&store, &[&limit]);
    let (clock, passed, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let now = |steps: u64| START.after(Span::from_micros(steps * step_us));
    thread::scope(|scope| {
        let _ends = Ends(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // Not beyond the last window: upkeep moves time on for who comes after it.
                store.tidy(now(clock.load(Ordering::Relaxed).min(WINDOWS * 200 - 1)));
            }
        });
        let askers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let steps = clock.fetch_add(1, Ordering::Relaxed);
                        if steps >= WINDOWS * 200 {
                            break;
                        }
                        // Some threads read the clock and are late.
                        if steps.is_multiple_of(3) {
                            thread::yield_now();
                        }
                        let answer = block_on(charge(&store, &[limit.take(&["a"], 1)], now(steps)));
                        passed.fetch_add(u64::from(answer.admitted), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for asker in askers {
            asker.join().unwrap();
        }
    });
    let passed = passed.into_inner();
    let most = match kind {
        // Seven a minute, and the burst.
        Kind::TokenBucket => ADMITS + 7 * WINDOWS,
        _ => ADMITS * WINDOWS,
    };
    assert!(passed <= most, "{kind:?}: {passed} of {most}");
    assert!(passed > most / 3, "{kind:?}: only {passed} of {most}");
}

/// After everything, with everything expired, nothing is left: no key is counted twice or forgotten.
#[test]
fn the_ledger_ends_at_nothing() {
    in_time(|| {
        interruption::often(100);
        for round in 0..4 * soak() as u64 {
            balance(round);
        }
    });
}

fn balance(round: u64) {
    let store = MemoryStore::new(MemorySettings { keys_max: 3_000, ..MemorySettings::default() });
    let kinds: Vec<Known> = (0_u32..).zip(Kind::ALL).map(|(id, kind)| Known::new(id, &["k"], kind.rule(9))).collect();
    let one = Known::new(9, &[], Kind::SlidingCounter.rule(90_000));
    let all: Vec<&Known> = kinds.iter().chain([&one]).collect();
    install(&store, &all);
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (store, kinds, one, all) = (&store, &kinds, &one, &all);
            scope.spawn(move || {
                let mut dice = Dice::new(round * THREADS + seed);
                for _ in 0..1_500 {
                    let key = dice.below(1_000).to_string();
                    let now = START.after(Span::from_secs(dice.below(7_000) as u64));
                    let mut batch: Vec<_> = kinds.iter().map(|known| known.take(&[&key], 1)).collect();
                    batch.push(one.take(&[&key], 1));
                    // Some other thread may have taken a limit out.
                    let answer = block_on(store.charge(&batch, At::Given(now)));
                    assert!(store.stats().keys <= 3_000, "{answer:?}");
                    match dice.below(200) {
                        0 => store.tidy(now),
                        1 => install(store, &all[..3]),
                        _ => install_missing(store, all, now),
                    }
                }
            });
        }
    });
    let end: Timestamp = START.after(LONG).after(LONG);
    store.tidy(end);
    assert_eq!(store.stats().keys, 0);
    install(&store, &all);
    assert!(block_on(charge(&store, &[kinds[0].take(&["a"], 1)], end)).admitted);
    assert_eq!(store.stats().keys, 1);
    install(&store, &[]);
    assert_eq!(store.stats().keys, 0);
}

/// Puts back the limits that another thread took out.
fn install_missing(store: &MemoryStore, all: &[&Known], now: Timestamp) {
    let last = all[all.len() - 1];
    if block_on(store.charge(&[last.peek(&["a"], 0)], At::Given(now))).is_err() {
        install(store, all);
    }
}

/// A listing in pages has every counter that was there all the while, once, whatever comes, goes and
/// is resized meanwhile.
#[test]
fn listings_bear_company() {
    in_time(|| {
        interruption::often(50);
        for kind in Kind::ALL {
            list_in_company(kind);
        }
    });
}

fn list_in_company(kind: Kind) {
    let store = MemoryStore::new(MemorySettings { names: true, ..MemorySettings::default() });
    // All in one shard, which is replaced all the time.
    let limit = Known::new(0, &[], kind.rule(9));
    install(&store, &[&limit]);
    let later = START.after(LONG);
    for key in 0..60 {
        assert!(block_on(charge(&store, &[limit.take(&[&format!("old-{key}")], 1)], later)).admitted);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = Ends(&done);
        scope.spawn(|| {
            let mut key = 0_u64;
            while !done.load(Ordering::Relaxed) {
                // Those of the past have expired: upkeep drops them, and the table shrinks again.
                for _ in 0..50 {
                    key += 1;
                    let name = format!("new-{key}");
                    assert!(block_on(charge(&store, &[limit.take(&[&name], 1)], later)).admitted);
                    block_on(store.reset(limit.id, &Key::of(&[&name]), At::Given(later))).unwrap();
                }
                store.tidy(later);
            }
        });
        for _ in 0..20 * soak() {
            let mut seen = std::collections::BTreeSet::new();
            let mut after: Option<String> = None;
            loop {
                let algorithm = &limit.limit.algorithm;
                let query = PageQuery { limit: limit.id, algorithm, after: after.as_deref(), items_max: 7 };
                let page = block_on(store.page(&query, At::Given(later))).unwrap();
                for counted in page.counters {
                    assert!(seen.insert(counted.values.clone()), "{kind:?}: {:?} twice", counted.values);
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            for key in 0..60 {
                assert!(seen.contains(&vec![format!("old-{key}")]), "{kind:?}: old-{key} is missing");
            }
        }
    });
}

/// Ends what runs beside a test, when the test ends or fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Numbers that look random: a thread's own, the same in every run.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `below`.
    fn below(&mut self, below: usize) -> usize {
        // Xorshift (Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }
}
