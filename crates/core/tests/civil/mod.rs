//! Civil periods: held against the walked model in every zone, and followed over years without a gap.

use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;
use tidegate_core::period::zone_names;
use tidegate_core::{CivilPeriod, PeriodKind, Span, Timestamp};

use crate::models::CivilModel;

const DAY_US: u64 = 86_400_000_000;
const MICROSECOND: Span = Span::from_micros(1);

/// Zones with something odd about them.
const ZONES: [&str; 16] = [
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin", // its winter time is the one that is shifted, backwards
    "America/New_York",
    "America/Sao_Paulo",   // changed its clock at midnight
    "America/St_Johns",    // half an hour off, and changed its clock a minute past midnight
    "America/Havana",      // repeats the hour after midnight
    "America/Nuuk",        // changes its clock an hour before midnight
    "Australia/Lord_Howe", // changes its clock by half an hour
    "Australia/Eucla",     // three quarters of an hour off
    "Asia/Kathmandu",      // three quarters of an hour off
    "Asia/Kolkata",        // half an hour off
    "Pacific/Chatham",     // three quarters of an hour off, and changes its clock
    "Pacific/Apia",        // had no 30 December 2011
    "Pacific/Kiritimati",  // had no 31 December 1994
    "Africa/Casablanca",   // changes its clock around Ramadan
];

fn every_kind() -> Vec<(PeriodKind, u64)> {
    let mut kinds = vec![(PeriodKind::Day, 1), (PeriodKind::Year, 1)];
    kinds.extend([1, 4, 7].map(|anchor| (PeriodKind::Week, anchor)));
    kinds.extend([1, 15, 28, 29, 30, 31].map(|anchor| (PeriodKind::Month, anchor)));
    kinds
}

fn civil(kind: PeriodKind, zone: &str, anchor_day: u64) -> CivilPeriod {
    CivilPeriod::new(kind, zone, Some(anchor_day)).unwrap()
}

/// Follows the periods from `from` until `until`; each begins where the one before it ended, and every
/// instant in it is of that period.
fn follow(civil: &CivilPeriod, from: Timestamp, until: Timestamp) -> usize {
    let (mut start, mut end) = civil.around(from);
    let mut periods = 0;
    while end < until {
        let half = Span::from_micros(end.since(start).as_micros() / 2);
        let half_an_hour = half.min(Span::from_secs(1_800));
        let early = [start, start.after(MICROSECOND), start.after(half_an_hour)];
        for at in early.into_iter().chain([start.after(half), end.before(half_an_hour), end.before(MICROSECOND)]) {
            assert_eq!(civil.around(at), (start, end), "{civil}: {at:?} is of another period");
        }
        let (next_start, next_end) = civil.around(end);
        assert_eq!(next_start, end, "{civil}: a gap or an overlap");
        (start, end) = (next_start, next_end);
        periods += 1;
    }
    periods
}

#[test]
fn days_weeks_months_and_years_follow_each_other_from_1970_to_2040() {
    let until = Timestamp::from_micros(70 * 365 * DAY_US);
    for zone in ZONES {
        for (kind, anchor_day) in every_kind() {
            let periods = follow(&civil(kind, zone, anchor_day), Timestamp::EPOCH, until);
            let days = match kind {
                PeriodKind::Hour | PeriodKind::Day => 1,
                PeriodKind::Week => 7,
                PeriodKind::Month => 31,
                PeriodKind::Year => 366,
            };
            assert!(periods >= 70 * 365 / days - 3, "{zone} {kind:?}: only {periods}");
        }
    }
}

#[test]
fn hours_follow_each_other_through_the_years_with_changes() {
    for zone in ZONES {
        let hours = civil(PeriodKind::Hour, zone, 1);
        for first_year in [24, 41, 55] {
            let from = Timestamp::from_micros(first_year * 365 * DAY_US);
            assert!(follow(&hours, from, from.after(Span::from_micros(365 * DAY_US))) >= 365 * 24 - 26);
        }
    }
}

#[test]
fn in_every_zone_days_and_hours_follow_each_other_around_every_clock_change() {
    let mut changes = 0;
    for name in zone_names() {
        let zone = TimeZoneDatabase::bundled().get(&name).unwrap();
        let (days, hours) = (civil(PeriodKind::Day, &name, 1), civil(PeriodKind::Hour, &name, 1));
        let after_2037 = jiff::Timestamp::from_second(67 * 365 * 86_400).unwrap();
        let since_1970 =
            zone.following(jiff::Timestamp::UNIX_EPOCH).take_while(|change| change.timestamp() < after_2037);
        for change in since_1970 {
            let at = Timestamp::from_micros(change.timestamp().as_microsecond().unsigned_abs());
            follow(&days, at.before(Span::from_micros(2 * DAY_US)), at.after(Span::from_micros(2 * DAY_US)));
            follow(&hours, at.before(Span::from_secs(5_400)), at.after(Span::from_secs(7_200)));
            changes += 1;
        }
    }
    assert!(changes > 10_000, "only {changes} clock changes");
}

#[test]
fn the_end_of_time_is_the_end_of_the_last_period() {
    for zone in ZONES {
        let kinds = every_kind().into_iter().chain([(PeriodKind::Hour, 1)]);
        for civil in kinds.map(|(kind, anchor_day)| civil(kind, zone, anchor_day)) {
            let (start, end) = civil.around(Timestamp::MAX);
            assert_eq!(end, Timestamp::MAX, "{civil}");
            assert_eq!(civil.around(Timestamp::MAX.before(MICROSECOND)), (start, end), "{civil}");
            assert_eq!(civil.around(Timestamp::EPOCH).0, Timestamp::EPOCH, "{civil}");
        }
    }
}

fn any_zone() -> impl Strategy<Value = String> {
    let all: Vec<String> = zone_names().collect();
    prop_oneof![
        1 => prop::sample::select(ZONES.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select(all),
    ]
}

fn any_kind() -> impl Strategy<Value = (PeriodKind, u64)> {
    prop_oneof![
        2 => Just((PeriodKind::Hour, 1)),
        2 => Just((PeriodKind::Day, 1)),
        1 => (1..=7_u64).prop_map(|anchor| (PeriodKind::Week, anchor)),
        2 => (1..=31_u64).prop_map(|anchor| (PeriodKind::Month, anchor)),
        1 => Just((PeriodKind::Year, 1)),
    ]
}

/// An instant, or one near a clock change of the zone after it.
fn near_change(zone: &str, at: u64, off_us: i64) -> u64 {
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    let instant = jiff::Timestamp::from_microsecond(i64::try_from(at).unwrap()).unwrap();
    let change = zone.following(instant).next().map_or(instant, |change| change.timestamp());
    u64::try_from(change.as_microsecond()).unwrap().saturating_add_signed(off_us)
}

proptest! {
    #![proptest_config(super::histories(400, super::CALENDAR_SEEDS))]

    #[test]
    fn a_period_is_the_one_that_is_found_by_walking(
        zone in any_zone(), (kind, anchor_day) in any_kind(),
        at in 63_072_000_000_000..=3_700_000_000_000_000_u64,
        off_us in prop_oneof![-7_200_000_000..=7_200_000_000_i64, -200_000_000_000..=200_000_000_000_i64, -1..=1_i64],
    ) {
        let (civil, model) = (civil(kind, &zone, anchor_day), CivilModel::new(kind, &zone, anchor_day));
        for at in [at, near_change(&zone, at, off_us)] {
            let (start, end) = civil.around(Timestamp::from_micros(at));
            let walked = model.around(at);
            prop_assert_eq!((start.as_micros(), end.as_micros()), walked, "{} at {}", civil, at);
            prop_assert_eq!(model.around(walked.1).0, walked.1, "the model follows itself");
        }
    }
}
