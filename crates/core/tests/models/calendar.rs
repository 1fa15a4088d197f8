//! Civil periods found by walking over days, and a map from period to what was taken in it.

use std::cell::RefCell;
use std::collections::HashMap;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use tidegate_core::PeriodKind;

use super::{Model, Quota};

const DAY_US: i64 = 86_400_000_000;
const MINUTE_US: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

/// A day of the civil calendar, with its place in the line of all days since the epoch.
#[derive(Clone, Copy, Debug)]
struct Day {
    since_epoch: i64,
    year: i32,
    month: usize,
    day: u64,
    last_of_month: u64,
}

/// Civil periods by brute force. Of the crate's own source it knows nothing; the zone's offset at an
/// instant is the only thing it asks the time zone library for.
pub(crate) struct CivilModel {
    kind: PeriodKind,
    zone: TimeZone,
    anchor_day: u64,
    /// Every day from 1969 to 2112, one after another.
    days: Vec<Day>,
    /// The first instant of days that were asked for already.
    first_instants: RefCell<HashMap<i64, i64>>,
}

impl CivilModel {
    pub(crate) fn new(kind: PeriodKind, zone_name: &str, anchor_day: u64) -> Self {
        let zone = TimeZoneDatabase::bundled().get(zone_name).unwrap();
        Self { kind, zone, anchor_day, days: every_day(), first_instants: RefCell::default() }
    }

    /// The period [start, end) around `at`, clamped to the epoch.
    pub(crate) fn around(&self, at: u64) -> (u64, u64) {
        let at = i64::try_from(at).unwrap();
        let (start, end) = if self.kind == PeriodKind::Hour { self.hour(at) } else { self.days(at) };
        (u64::try_from(start).unwrap_or(0), u64::try_from(end).unwrap())
    }

    /// Walks back from two days ahead until a first day has begun.
    fn days(&self, at: i64) -> (i64, i64) {
        let ahead = usize::try_from(at / DAY_US + 2 + 365).unwrap();
        let ahead = (ahead..self.days.len()).find(|index| self.begins_period(self.days[*index])).unwrap();
        let mut end = self.first_instant(self.days[ahead].since_epoch);
        for day in self.days[..ahead].iter().rev().filter(|day| self.begins_period(**day)) {
            let start = self.first_instant(day.since_epoch);
            if start <= at {
                return (start, end);
            }
            end = start;
        }
        panic!("no period begins before {at}");
    }

    fn begins_period(&self, day: Day) -> bool {
        match self.kind {
            PeriodKind::Hour | PeriodKind::Day => true,
            // The epoch was a Thursday, day 4 of the week.
            PeriodKind::Week => (day.since_epoch + 3).rem_euclid(7) + 1 == self.anchor_day as i64,
            PeriodKind::Month => day.day == self.anchor_day.min(day.last_of_month),
            PeriodKind::Year => day.month == 1 && day.day == 1,
        }
    }

    /// The first instant at which the zone's clock shows this day or a later one: looked for minute
    /// by minute, then second by second.
    fn first_instant(&self, since_epoch: i64) -> i64 {
        if let Some(known) = self.first_instants.borrow().get(&since_epoch) {
            return *known;
        }
        let utc_midnight = since_epoch * DAY_US;
        let begun = |at: &i64| self.local(*at) >= utc_midnight;
        // No zone is more than 14 hours ahead of UTC, or more than 12 behind.
        let minute = (-14 * 60..=12 * 60).map(|minute| utc_midnight + minute * MINUTE_US).find(begun).unwrap();
        let second = (minute - MINUTE_US..=minute).step_by(SECOND_US as usize).find(begun).unwrap();
        self.first_instants.borrow_mut().insert(since_epoch, second);
        second
    }

    /// The stretch in which the clock's hour and offset stay what they are at `at`.
    fn hour(&self, at: i64) -> (i64, i64) {
        let hour_of = |at: i64| (self.local(at).div_euclid(60 * MINUTE_US), self.offset(at));
        let same = |other: &i64| hour_of(*other) == hour_of(at);
        let second = at.div_euclid(SECOND_US) * SECOND_US;
        let (mut start, mut end) = (second, second + SECOND_US);
        while same(&(start - MINUTE_US)) {
            start -= MINUTE_US;
        }
        while same(&(start - SECOND_US)) {
            start -= SECOND_US;
        }
        while same(&(end + MINUTE_US)) {
            end += MINUTE_US;
        }
        while same(&end) {
            end += SECOND_US;
        }
        (start, end)
    }

    fn local(&self, at: i64) -> i64 {
        at + self.offset(at)
    }

    fn offset(&self, at: i64) -> i64 {
        let instant = jiff::Timestamp::from_microsecond(at).unwrap();
        i64::from(self.zone.to_offset(instant).seconds()) * SECOND_US
    }
}

fn every_day() -> Vec<Day> {
    let mut days = Vec::new();
    for year in 1969..=2112 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let months = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, last_of_month) in (1..).zip(months) {
            for day in 1..=last_of_month {
                let since_epoch = i64::try_from(days.len()).unwrap() - 365;
                days.push(Day { since_epoch, year, month, day, last_of_month });
            }
        }
    }
    assert!(days.iter().any(|day| (day.since_epoch, day.year, day.month, day.day) == (0, 1970, 1, 1)));
    days
}

pub(crate) struct CalendarModel<'a> {
    quota: u128,
    civil: &'a CivilModel,
    /// Keyed by the period's start.
    used: HashMap<u64, u128>,
    /// The start of the latest period that was entered: a clock set back does not leave it.
    latest: u64,
}

impl<'a> CalendarModel<'a> {
    pub(crate) fn new(quota: u64, civil: &'a CivilModel) -> Self {
        Self { quota: u128::from(quota), civil, used: HashMap::new(), latest: 0 }
    }
}

impl Model for CalendarModel<'_> {
    fn enter(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(self.civil.around(now).0);
        now.max(self.latest)
    }

    fn admits(&self, at: u64, cost: u64) -> bool {
        let used = self.used.get(&self.civil.around(at).0).copied().unwrap_or(0);
        cost == 0 || used + u128::from(cost) <= self.quota
    }

    fn take(&mut self, at: u64, cost: u64) {
        *self.used.entry(self.civil.around(at).0).or_default() += u128::from(cost);
    }

    fn reset(&self, at: u64) -> u64 {
        self.civil.around(at).1 - at
    }
}

impl Quota for CalendarModel<'_> {
    fn set_quota(&mut self, quota: u64) {
        self.quota = quota.into();
    }
}
