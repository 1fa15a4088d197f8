//! Golden rows: a limits file, questions at set times, and every answer in full. Each row shows one
//! rule that all doors share; whoever opens a door to the engine runs the rows through it.

mod compare;
mod rows;

use std::fmt;
use std::future::Future;

use tidegate::{Clock, Engine, Timestamp};

pub use rows::{Expect, ExpectLimit, LoadError, Row, Step, load, rules};

use crate::door::{Door, Field, Said};
use crate::limiter::policy;
use compare::differences;

/// What a golden run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that were run.
    pub rows: usize,
    /// Questions that were asked.
    pub asked: usize,
    /// Values of answers that were compared.
    pub compared: usize,
}

/// Every answer that was not as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures(pub Vec<String>);

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} answers are not as the golden rows have them:", self.0.len())?;
        self.0.iter().try_for_each(|failure| writeln!(f, "  {failure}"))
    }
}

impl std::error::Error for Failures {}

/// Puts `rows` to doors, one for each row. `open` makes a door to an engine; `fields` is what such a
/// door has to say. The clock is set by hand: no door may need another.
///
/// # Errors
/// All that differed, and what could not be asked.
pub async fn run<D, F>(rows: &[Row], fields: &[Field], open: impl Fn(Engine) -> F) -> Result<Report, Failures>
where
    D: Door,
    F: Future<Output = D>,
{
    let mut report = Report::default();
    let mut failures = Vec::new();
    for row in rows {
        report.rows += 1;
        let clock = Clock::manual(row.starts_at());
        let mut door = open(Engine::with_clock(policy(&row.limits_file), clock.clone())).await;
        for (number, step) in row.steps.iter().enumerate() {
            clock.set(Timestamp::from_millis(row.start_ms + step.at_ms));
            let place = format!("{} step {}", row.id, number + 1);
            for time in 1..=step.times {
                report.asked += 1;
                match door.ask(&step.ask()).await {
                    Err(error) => failures.push(format!("{place}: no decision: {error}")),
                    Ok(said) if time < step.times => {
                        check_allowed(&place, step, &said, &mut report, &mut failures);
                    }
                    Ok(said) => {
                        let found = differences(row, step, &said, fields);
                        report.compared += found.compared;
                        failures.extend(found.differences.into_iter().map(|text| format!("{place}: {text}")));
                    }
                }
            }
        }
    }
    if failures.is_empty() { Ok(report) } else { Err(Failures(failures)) }
}

/// Of a question that is repeated, only the last answer is written down in full.
fn check_allowed(place: &str, step: &Step, said: &Said, report: &mut Report, failures: &mut Vec<String>) {
    report.compared += 1;
    if said.allowed != step.expect.allowed {
        failures.push(format!("{place}: an earlier one was answered allowed: {}", said.allowed));
    }
}
