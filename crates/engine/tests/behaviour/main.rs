//! The engine as its callers see it, at a clock that each test sets.
//!
//! `PROPTEST_CASES` sets how many cases the property tests try; what fails is shrunk, and its seed is
//! kept under `seeds/`.

#![cfg(test)]

mod conditions;
mod counts;
mod explain;
mod interventions;
mod overrides;
mod reload;
mod together;
mod usage;
mod weights;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::FileFailurePersistence;

/// So many cases, unless `PROPTEST_CASES` says how many; the failing seeds go to `seeds`.
fn cases(cases: u32, seeds: &'static str) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(seeds)) as Box<_>);
    ProptestConfig { cases, failure_persistence, ..default }
}
