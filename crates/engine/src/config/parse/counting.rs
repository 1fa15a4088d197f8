//! How a limit counts: a rate with an algorithm, or a quota for a calendar period.

use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{Algorithm, AlgorithmError, CivilPeriod, PeriodKind, Rate, RateFault};

use crate::config::fault::{Finding, Findings, clipped, quoted};
use crate::config::place::Place;
use crate::config::raw::Group;
use crate::config::scalar::{self, NUMBER_MAX};
use crate::config::suggest::nearest;
use crate::config::tree::Node;

/// The words for [`PeriodKind`].
pub(crate) const PERIODS: [(&str, PeriodKind); 5] = [
    ("hour", PeriodKind::Hour),
    ("day", PeriodKind::Day),
    ("week", PeriodKind::Week),
    ("month", PeriodKind::Month),
    ("year", PeriodKind::Year),
];
/// The words for the algorithms.
pub(crate) const ALGORITHMS: [(&str, Kind); 5] = [
    ("fixed_window", Kind::FixedWindow),
    ("sliding_window", Kind::SlidingWindow),
    ("sliding_counter", Kind::SlidingCounter),
    ("token_bucket", Kind::TokenBucket),
    ("calendar", Kind::Calendar),
];
/// Algorithms of the file format that this version does not have.
const LATER_ALGORITHMS: [&str; 1] = ["concurrency"];

/// What `algorithm` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    FixedWindow,
    SlidingWindow,
    SlidingCounter,
    TokenBucket,
    Calendar,
}

/// How a limit counts, with numbers that are valid one by one.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    /// The rate or the quota.
    pub(crate) place: Place,
    numbers: Numbers,
}

#[derive(Clone, Debug)]
enum Numbers {
    Rate { kind: Kind, rate: Rate, burst: Option<u64> },
    Quota { quota: u64, civil: CivilPeriod },
}

impl Counting {
    /// The counting rule; a fault if its numbers do not go together.
    pub(crate) fn build(&self, group: &Group<'_, '_>, findings: &mut Findings) -> Option<Algorithm> {
        let built = match &self.numbers {
            Numbers::Quota { quota, civil } => return Some(Algorithm::Calendar(Calendar::new(*quota, civil.clone()))),
            Numbers::Rate { kind, rate, burst } => match kind {
                // A calendar limit has a quota; a fault was told where it has a rate.
                Kind::FixedWindow | Kind::Calendar => FixedWindow::new(*rate).map(Algorithm::FixedWindow),
                Kind::SlidingWindow => SlidingWindow::new(*rate).map(Algorithm::SlidingWindow),
                Kind::SlidingCounter => SlidingCounter::new(*rate).map(Algorithm::SlidingCounter),
                Kind::TokenBucket => TokenBucket::new(*rate, *burst).map(Algorithm::TokenBucket),
            },
        };
        match built {
            Ok(algorithm) => Some(algorithm),
            Err(error) => {
                let of_burst = matches!(error, AlgorithmError::BurstZero | AlgorithmError::BurstTooLarge { .. });
                let burst = group.value("burst").filter(|_| of_burst);
                findings.push(Finding::new(burst.map_or(self.place, |burst| burst.place), error.to_string()));
                None
            }
        }
    }
}

/// The numbers as they stand in a group, each read for itself.
struct Written {
    rate: Option<Option<Rate>>,
    quota: Option<Option<u64>>,
    burst: Option<Option<u64>>,
}

fn written(group: &Group<'_, '_>, findings: &mut Findings) -> Written {
    Written {
        rate: group.value("rate").map(|node| rate(node, findings)),
        quota: group.value("quota").map(|node| scalar::whole(node, "quota", 0, NUMBER_MAX, findings)),
        burst: group.value("burst").map(|node| scalar::whole(node, "burst", 0, NUMBER_MAX, findings)),
    }
}

/// How the limit in `group` counts.
pub(crate) fn limit(group: &Group<'_, '_>, whose: &str, findings: &mut Findings) -> Option<Counting> {
    let written = written(group, findings);
    let kind = group
        .value("algorithm")
        .map(|node| scalar::choice(node, "algorithm", &ALGORITHMS, &LATER_ALGORITHMS, findings));
    let period = group.value("period").map(|node| scalar::choice(node, "period", &PERIODS, &[], findings));
    let civil = civil(group, period.flatten(), findings);
    let fits = goes_together(group, whose, kind.flatten(), findings);
    if !fits {
        return None;
    }
    let numbers = match (written.rate, written.quota) {
        (Some(rate), _) => {
            let kind = kind.unwrap_or(Some(Kind::FixedWindow))?;
            let burst = optional(written.burst)?;
            Numbers::Rate { kind, rate: rate?, burst }
        }
        (None, quota) => {
            kind.unwrap_or(Some(Kind::Calendar))?;
            Numbers::Quota { quota: quota??, civil: civil? }
        }
    };
    let place = group.value("rate").or(group.value("quota")).map_or(group.place, |node| node.place);
    Some(Counting { place, numbers })
}

/// How the limit called `changed` counts for the requests of the override in `group`: what the
/// override does not say stays as the limit has it.
pub(crate) fn instead(
    group: &Group<'_, '_>,
    changed: &str,
    limit: Option<&Counting>,
    findings: &mut Findings,
) -> Option<Counting> {
    let written = written(group, findings);
    if written.rate.is_none() && written.quota.is_none() && written.burst.is_none() {
        findings.push(
            Finding::new(group.place, format!("an override of {changed} changes nothing"))
                .hint("add a rate, a quota or a burst"),
        );
        return None;
    }
    let limit = limit?;
    let misfit = |key: &str, hint: &str, findings: &mut Findings| {
        let place = group.key_place(key);
        findings.push(Finding::new(place, format!("'{key}' does not fit {changed}")).hint(hint));
    };
    let (numbers, key) = match &limit.numbers {
        Numbers::Rate { kind, rate, burst } => {
            if written.quota.is_some() {
                misfit("quota", "the limit has a rate: write rate: 60/min", findings);
                return None;
            }
            if written.burst.is_some() && *kind != Kind::TokenBucket {
                misfit("burst", "only a limit with algorithm: token_bucket has a burst", findings);
                return None;
            }
            let rate = optional(written.rate)?.unwrap_or(*rate);
            let burst = optional(written.burst)?.or(*burst);
            (Numbers::Rate { kind: *kind, rate, burst }, "rate")
        }
        Numbers::Quota { civil, .. } => {
            let mut fits = true;
            for (key, there) in [("rate", written.rate.is_some()), ("burst", written.burst.is_some())] {
                if there {
                    misfit(key, "the limit has a quota: write quota: 1000", findings);
                    fits = false;
                }
            }
            let quota = written.quota.flatten().filter(|_| fits)?;
            (Numbers::Quota { quota, civil: civil.clone() }, "quota")
        }
    };
    let place = group.value(key).or(group.value("burst")).map_or(group.place, |node| node.place);
    Some(Counting { place, numbers })
}

/// `None` for what is there and wrong, else what is there, if anything.
fn optional<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(None) => None,
        Some(right) => Some(right),
        None => Some(None),
    }
}

/// Whether the keys that say how to count go together; tells a fault for each that does not.
fn goes_together(group: &Group<'_, '_>, whose: &str, kind: Option<Kind>, findings: &mut Findings) -> bool {
    let has = |key: &str| group.value(key).is_some();
    let mut faults: Vec<Finding> = Vec::new();
    let mut fault = |place: Place, message: String, hint: &str| faults.push(Finding::new(place, message).hint(hint));
    let key = |key: &str| group.key_place(key);
    match (has("rate"), has("quota"), has("period")) {
        (true, false, false) | (false, true, true) => {}
        (true, quota, _) => {
            let second = if quota { "quota" } else { "period" };
            let hint = "keep 'rate', or keep 'quota' with 'period' for a calendar period";
            fault(key(second), format!("{whose} has both 'rate' and '{second}'"), hint);
        }
        (false, true, false) => {
            fault(
                key("quota"),
                format!("{whose} has 'quota' without 'period'"),
                "add period: hour, day, week, month or year",
            );
        }
        (false, false, true) => {
            fault(
                key("period"),
                format!("{whose} has 'period' without 'quota'"),
                "add quota: and how many are allowed in a period",
            );
        }
        (false, false, false) => fault(
            group.place,
            format!("{whose} has neither 'rate' nor 'quota'"),
            "add rate: 60/min, or quota: 1000 with period: month",
        ),
    }
    let by_rate = has("rate");
    let by_calendar = !by_rate && has("period");
    for calendar_key in ["timezone", "anchor_day"] {
        if has(calendar_key) && by_rate && !has("period") {
            let message = format!("'{calendar_key}' works only with 'quota' and 'period'");
            fault(key(calendar_key), message, "remove it: a rate has no calendar");
        }
    }
    match kind {
        Some(Kind::Calendar) if by_rate => {
            fault(
                key("algorithm"),
                "algorithm: calendar needs 'quota' and 'period'".into(),
                "write quota: 1000 and period: month in place of 'rate'",
            );
        }
        Some(other) if by_calendar && other != Kind::Calendar => {
            fault(
                key("algorithm"),
                "a limit with 'period' counts by the calendar".into(),
                "remove 'algorithm', or write a 'rate'",
            );
        }
        _ => {}
    }
    // An algorithm that cannot be read may be meant to be the one with a burst.
    let may_burst = kind == Some(Kind::TokenBucket) || (kind.is_none() && has("algorithm"));
    if has("burst") && !may_burst {
        fault(
            key("burst"),
            "'burst' works only with algorithm: token_bucket".into(),
            "add that algorithm, or remove 'burst'",
        );
    }
    let fits = faults.is_empty();
    faults.into_iter().for_each(|fault| findings.push(fault));
    fits
}

/// A rate; what is wrong with it is told at its character.
fn rate(node: &Node<'_>, findings: &mut Findings) -> Option<Rate> {
    let example = "a rate is <count>/<unit>, for example 60/min or 10/30s";
    let scalar = scalar::scalar(node, "rate", "a rate like 60/min", findings)?;
    let error = match scalar.text().parse::<Rate>() {
        Ok(rate) => {
            if let Some(digits) = behind_leading_zeros(scalar.text()) {
                let message = "the count of 'rate' begins with a 0, which some read as an octal number";
                findings.push(Finding::new(node.place, message).hint(digits));
                return None;
            }
            return Some(rate);
        }
        Err(error) => error,
    };
    let calendar = calendar_hint(scalar.text(), &error.fault).filter(|_| !scalar.is_reference());
    let finding = if scalar.is_reference() {
        Finding::new(node.place, format!("'rate' cannot be {}", scalar::shown(scalar)))
    } else {
        Finding::new(node.place_inside(error.column.saturating_sub(1)), error.fault.to_string())
    };
    findings.push(finding.hint(calendar.as_deref().unwrap_or(example)));
    None
}

/// What to write for `5/month`: a week, month or year is a civil period and not so many seconds.
fn calendar_hint(rate: &str, fault: &RateFault) -> Option<String> {
    let RateFault::Unit(unit) = fault else { return None };
    let unit = unit.to_ascii_lowercase();
    let (period, _) = [
        ("week", &["w", "wk", "week", "weeks"][..]),
        ("month", &["mo", "mon", "month", "months"]),
        ("year", &["y", "yr", "year", "years"]),
    ]
    .into_iter()
    .find(|(_, words)| words.contains(&unit.as_str()))?;
    let (count, behind) = rate.split_once('/')?;
    let count = if behind.trim_start().starts_with(|c: char| c.is_ascii_digit()) { "1000" } else { count.trim() };
    Some(format!(
        "a {period} is a period of the calendar: write quota: {count} and period: {period} in place of 'rate'"
    ))
}

/// What to write in place of a rate whose count has leading zeros.
fn behind_leading_zeros(rate: &str) -> Option<String> {
    let rate = rate.trim();
    let short = rate.trim_start_matches('0');
    let zero = if short.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
    let lost = rate.len() - short.len() - zero.len();
    (lost > 0).then(|| format!("write {zero}{}", clipped(short)))
}

/// The civil periods of `period`, `timezone` and `anchor_day`. The three are tried apart, so that
/// each tells its own fault.
fn civil(group: &Group<'_, '_>, kind: Option<PeriodKind>, findings: &mut Findings) -> Option<CivilPeriod> {
    let zone = match group.value("timezone") {
        Some(node) => zone(node, findings),
        None => Some("UTC"),
    };
    let day = match group.value("anchor_day") {
        Some(node) => anchor_day(node, kind, findings).map(Some),
        None => Some(None),
    };
    CivilPeriod::new(kind?, zone?, day?).ok()
}

fn zone<'n>(node: &'n Node<'_>, findings: &mut Findings) -> Option<&'n str> {
    let zone = scalar::text(node, "timezone", findings)?;
    if CivilPeriod::new(PeriodKind::Day, zone, None).is_ok() {
        return Some(zone);
    }
    let shown = node.describe();
    let hint = nearest_zone(zone).unwrap_or_else(|| "examples: UTC, Europe/Berlin, America/New_York".into());
    let message = format!("'timezone' is not a zone of the IANA database: {shown}");
    findings.push(Finding::new(node.place, message).hint(hint));
    None
}

fn anchor_day(node: &Node<'_>, kind: Option<PeriodKind>, findings: &mut Findings) -> Option<u64> {
    let day = scalar::whole(node, "anchor_day", 1, 31, findings)?;
    match CivilPeriod::new(kind?, "UTC", Some(day)) {
        Ok(_) => Some(day),
        Err(error) => {
            findings.push(Finding::new(node.place, error.to_string()));
            None
        }
    }
}

/// The zone that is most likely meant: `Berlin` and `Europe/Berln` are Europe/Berlin.
fn nearest_zone(written: &str) -> Option<String> {
    let names: Vec<String> = tidegate_core::period::zone_names().collect();
    let by_city = || {
        let city = written.replace(' ', "_");
        names.iter().find(|name| name.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(&city)))
    };
    let name = nearest(written, names.iter().map(String::as_str)).or_else(|| by_city().map(String::as_str))?;
    Some(format!("did you mean {}?", quoted(name)))
}
