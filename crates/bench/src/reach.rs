//! What Tidegate sets out to reach, held against what a run found.

use crate::contenders::OURS;
use crate::decisions::{self, Keys};
use crate::limits::Path;
use crate::{memory, pauses};
use serde::Serialize;

/// Times faster than governor's three checks, at least.
const GOVERNOR_RATIO_MIN: f64 = 2.0;
/// Times faster than limitador's three limits, at least.
const LIMITADOR_RATIO_MIN: f64 = 20.0;
/// Bytes for a key of a window or a bucket, at most.
const BYTES_MAX: f64 = 40.0;
/// Milliseconds by which the longest decision may exceed the longest halt of a bare loop.
const PAUSE_MAX_MS: f64 = 1.0;

/// One aim.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Aim {
    /// What is aimed at.
    pub(crate) what: String,
    /// What was found.
    pub(crate) found: f64,
    /// Whether that is enough.
    pub(crate) is_met: bool,
}

/// The aims that the figures at hand can tell about.
pub(crate) fn aims(decisions: &[decisions::Row], memory: &[memory::Row], pauses: &[pauses::Row]) -> Vec<Aim> {
    let mut aims: Vec<Aim> = [("governor", GOVERNOR_RATIO_MIN), ("limitador", LIMITADOR_RATIO_MIN)]
        .into_iter()
        .filter_map(|(name, least)| {
            let found = ns(decisions, name, Keys::Zipf, Path::Admit)? / ns(decisions, OURS, Keys::Zipf, Path::Admit)?;
            let what = format!("Zipf keys, one thread, admit: at least {least} times as fast as {name}");
            Some(Aim { what, found, is_met: found >= least })
        })
        .collect();
    for (keys, name) in [(Keys::Hot, "hot key"), (Keys::Zipf, "Zipf keys")] {
        for path in [Path::RejectAgent, Path::RejectGlobal] {
            let found = ns(decisions, OURS, keys, path).zip(ns(decisions, OURS, keys, Path::Admit));
            aims.extend(found.map(|(reject, admit)| Aim {
                what: format!("{name}, one thread: {} takes at most as long as admit (1.0)", path.name()),
                found: reject / admit,
                is_met: reject <= admit,
            }));
        }
    }
    let packed = memory.iter().filter(|row| {
        row.contender.starts_with(OURS) && ["fixed_window", "token_bucket"].iter().any(|it| row.contender.ends_with(it))
    });
    aims.extend(packed.map(|row| Aim {
        what: format!("{}: at most {BYTES_MAX} bytes for a key", row.contender),
        found: row.bytes_per_key,
        is_met: row.bytes_per_key <= BYTES_MAX,
    }));
    aims.extend(pauses.iter().filter(|row| row.contender.starts_with(OURS)).map(|row| {
        let found = (row.decisions.max_ns as f64 - row.bare_loop.max_ns as f64) / 1e6;
        let name = row.contender;
        let what = format!("{name}: longest decision at most {PAUSE_MAX_MS} ms beyond the longest halt of a bare loop");
        Aim { what, found, is_met: found <= PAUSE_MAX_MS }
    }));
    aims
}

/// One thread's nanoseconds for a decision.
fn ns(rows: &[decisions::Row], contender: &str, keys: Keys, path: Path) -> Option<f64> {
    let matches = |row: &&decisions::Row| {
        row.contender.starts_with(contender) && row.keys == keys && row.path == path && row.threads == 1
    };
    // Ours by default comes before ours with another algorithm.
    rows.iter().find(matches).map(|row| row.ns)
}

#[cfg(test)]
mod tests {
    use super::aims;
    use crate::decisions::{Keys, Row};
    use crate::limits::Path;

    fn row(contender: &'static str, path: Path, ns: f64) -> Row {
        Row { contender, keys: Keys::Zipf, path, threads: 1, ns, ns_min: ns, ns_max: ns, decisions: 1 }
    }

    #[test]
    fn an_aim_is_met_only_by_enough() {
        let mut rows = [
            row("tidegate", Path::Admit, 100.0),
            row("tidegate", Path::RejectGlobal, 90.0),
            row("tidegate, token_bucket", Path::Admit, 1.0),
            row("governor 0.10", Path::Admit, 199.0),
            row("limitador 0.14", Path::Admit, 2_000.0),
        ];
        let met = |rows: &[Row]| aims(rows, &[], &[]).iter().map(|aim| aim.is_met).collect::<Vec<_>>();
        assert_eq!(met(&rows), [false, true, true], "governor, limitador, reject");
        rows[3].ns = 200.0;
        rows[1].ns = 101.0;
        assert_eq!(met(&rows), [true, true, false]);
    }
}
