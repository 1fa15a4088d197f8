//! The rows themselves, and that a run notices what is wrong.

use std::collections::BTreeSet;
use std::convert::Infallible;

use tidegate::Engine;
use tidegate_testkit::{Ask, Door, EngineDoor, Field, Said, golden};

#[test]
fn every_rule_has_a_row() {
    let rows = golden::load().unwrap();
    let shown: BTreeSet<&str> = rows.iter().map(|row| row.rule.as_str()).collect();
    let rules: BTreeSet<&str> = golden::rules().iter().copied().collect();
    assert_eq!(shown, rules);
}

/// Says what the engine says, with one thing changed.
struct Liar<F> {
    door: EngineDoor,
    lie: F,
}

impl<F: Fn(&mut Said)> Door for Liar<F> {
    type Error = Infallible;

    async fn ask(&mut self, ask: &Ask) -> Result<Said, Infallible> {
        let mut said = self.door.ask(ask).await?;
        (self.lie)(&mut said);
        Ok(said)
    }
}

type Lie = fn(&mut Said);

/// How many answers a run finds wrong, if every one is changed by `lie`.
async fn found(fields: &[Field], lie: impl Fn(&mut Said) + Copy) -> usize {
    let rows = golden::load().unwrap();
    let open = async |engine: Engine| Liar { door: EngineDoor(engine), lie };
    golden::run(&rows, fields, open).await.map_or_else(|failures| failures.0.len(), |_| 0)
}

#[tokio::test]
async fn a_run_notices_each_field_that_is_wrong() {
    let lies: [(Field, Lie); 9] = [
        (Field::RefusedBy, |said| said.refused_by = Some("another".into())),
        (Field::Level, |said| said.level = Some("another".into())),
        (Field::RetryAfter, |said| said.retry_after_ms = said.retry_after_ms.map(|wait| wait + 1)),
        (Field::Never, |said| said.never = !said.never),
        (Field::Tightest, |said| said.tightest = said.limits.last().map(|limit| limit.name.clone())),
        (Field::Limits, |said| said.limits.iter_mut().for_each(|limit| limit.remaining += 1)),
        (Field::Limits, |said| said.limits.truncate(1)),
        (Field::Limits, |said| said.limits.reverse()),
        (Field::Next, |said| said.limits.iter_mut().for_each(|limit| limit.next_ms = None)),
    ];
    for (field, lie) in lies {
        assert!(found(&[field], lie).await > 0, "{field:?}");
    }
    assert!(found(&[], |said| said.allowed = !said.allowed).await > 0);
    // The engine writes no headers, so every row that has a limit is found.
    assert!(found(&[Field::XHeaders], |_| {}).await > 0);
    assert!(found(&[Field::IetfHeaders], |_| {}).await > 0);
}
