//! Civil periods: the hour, day, week, month or year of a time zone that holds an instant.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, ToSpan};

use crate::units::{Span, Timestamp};

/// The kind of period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeriodKind {
    /// Begins at a full hour of the zone's clock.
    Hour,
    /// Begins at midnight, or at the first instant of the day where midnight is skipped.
    Day,
    /// Begins on Monday, or on the anchor day (1 Monday to 7 Sunday).
    Week,
    /// Begins on the 1st, or on the anchor day (1 to 31; the last day of a shorter month).
    Month,
    /// Begins on 1 January.
    Year,
}

impl PeriodKind {
    /// The word in the limits file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    const fn anchor_days(self) -> u8 {
        match self {
            Self::Week => 7,
            Self::Month => 31,
            Self::Hour | Self::Day | Self::Year => 1,
        }
    }
}

impl FromStr for PeriodKind {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, PeriodError> {
        [Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| PeriodError::Kind(text.chars().take(24).collect()))
    }
}

/// Periods of one kind in one time zone; they follow each other without gap or overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CivilPeriod {
    kind: PeriodKind,
    zone: TimeZone,
    zone_name: String,
    anchor_day: u8,
}

/// Why words do not make a civil period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeriodError {
    /// Not a known kind.
    #[error("the period '{0}' is not one of hour, day, week, month, year")]
    Kind(String),
    /// Not a zone of the IANA database.
    #[error("the time zone '{0}' is not in the IANA database (examples: UTC, Europe/Berlin, America/New_York)")]
    Zone(String),
    /// An anchor day that the kind does not have.
    #[error(
        "anchor_day {anchor_day} does not fit a {kind}: week takes 1 (Monday) to 7, month takes 1 to 31, others none"
    )]
    AnchorDay {
        /// What was given.
        anchor_day: u64,
        /// The period's kind.
        kind: &'static str,
    },
}

impl CivilPeriod {
    /// Periods of `kind` in the IANA zone `zone_name`, begun on `anchor_day` (default 1).
    ///
    /// The time zone database is built in, so that every instance of a fleet has the same.
    ///
    /// # Errors
    /// [`PeriodError`] for an unknown zone or an anchor day that the kind does not have.
    pub fn new(kind: PeriodKind, zone_name: &str, anchor_day: Option<u64>) -> Result<Self, PeriodError> {
        let zone = TimeZoneDatabase::bundled()
            .get(zone_name)
            .map_err(|_| PeriodError::Zone(zone_name.chars().take(64).collect()))?;
        let zone_name = zone.iana_name().unwrap_or(zone_name).to_owned();
        let anchor_day = anchor_day.unwrap_or(1);
        let fits = anchor_day >= 1 && anchor_day <= u64::from(kind.anchor_days());
        match u8::try_from(anchor_day) {
            Ok(anchor_day) if fits => Ok(Self { kind, zone, zone_name, anchor_day }),
            _ => Err(PeriodError::AnchorDay { anchor_day, kind: kind.name() }),
        }
    }

    /// The day that begins a week (1 Monday to 7) or a month (1 to 31); 1 for other kinds.
    pub const fn anchor_day(&self) -> u8 {
        self.anchor_day
    }

    /// The kind of period.
    pub const fn kind(&self) -> PeriodKind {
        self.kind
    }

    /// The zone's IANA name.
    pub fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// The longest that a period of this kind usually is (a clock change may add to it).
    pub const fn longest(&self) -> Span {
        Span::from_secs(match self.kind {
            PeriodKind::Hour => 3_600,
            PeriodKind::Day => 86_400,
            PeriodKind::Week => 7 * 86_400,
            PeriodKind::Month => 31 * 86_400,
            PeriodKind::Year => 366 * 86_400,
        })
    }

    /// The period [start, end) that holds `now`. The end of time closes the last one; its very
    /// instant is taken for the one before it.
    pub fn around(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let now = now.min(Timestamp::MAX.before(Span::from_micros(1)));
        let bounds = if self.kind == PeriodKind::Hour { self.hour_around(now) } else { self.days_around(now) };
        // The database covers all of our time (1970 to 2112); should it not, a fixed length is still
        // a period that ends.
        let (start, end) = bounds.unwrap_or_else(|_| self.unzoned_around(now));
        assert!(start <= now && now < end, "a period holds the instant it was asked for");
        (start, end)
    }

    fn days_around(&self, now: Timestamp) -> Result<(Timestamp, Timestamp), jiff::Error> {
        let today = self.zone.to_datetime(instant(now)?).date();
        let mut first = self.first_day(today)?;
        let mut next = self.next_first_day(first)?;
        // A zone may skip a day or repeat an hour at midnight: the instants decide, not the dates.
        while now < self.midnight(first)? {
            next = first;
            first = self.first_day(first.yesterday()?)?;
        }
        while now >= self.midnight(next)? {
            next = self.next_first_day(next)?;
        }
        let start = self.midnight(self.first_day(next.yesterday()?)?)?;
        Ok((start, self.midnight(next)?))
    }

    /// The latest first day of a period that is not after `date`.
    fn first_day(&self, date: Date) -> Result<Date, jiff::Error> {
        match self.kind {
            PeriodKind::Hour | PeriodKind::Day => Ok(date),
            PeriodKind::Week => {
                let anchor = Weekday::from_monday_one_offset(self.anchor_day as i8)?;
                date.checked_sub(i64::from(anchor.until(date.weekday())).days())
            }
            PeriodKind::Month => {
                let first = self.anchored(date)?;
                if first <= date { Ok(first) } else { self.anchored(date.first_of_month().yesterday()?) }
            }
            PeriodKind::Year => Ok(date.first_of_year()),
        }
    }

    fn next_first_day(&self, first: Date) -> Result<Date, jiff::Error> {
        match self.kind {
            PeriodKind::Hour | PeriodKind::Day => first.tomorrow(),
            PeriodKind::Week => first.checked_add(7.days()),
            PeriodKind::Month => self.anchored(first.last_of_month().tomorrow()?),
            PeriodKind::Year => first.last_of_year().tomorrow(),
        }
    }

    /// The anchor day in the month of `date`, or that month's last day if it is shorter.
    fn anchored(&self, date: Date) -> Result<Date, jiff::Error> {
        let day = (self.anchor_day as i8).min(date.days_in_month());
        date.with().day(day).build()
    }

    /// The first instant of `date`: midnight, or what follows where the zone skips it.
    fn midnight(&self, date: Date) -> Result<Timestamp, jiff::Error> {
        self.zone.to_timestamp(date.at(0, 0, 0, 0)).map(timestamp)
    }

    /// The hour of the zone's clock, cut where the zone changes its clock within it.
    fn hour_around(&self, now: Timestamp) -> Result<(Timestamp, Timestamp), jiff::Error> {
        const HOUR_US: i64 = 3_600_000_000;
        let now = instant(now)?;
        let offset_us = i64::from(self.zone.to_offset(now).seconds()) * 1_000_000;
        let local_us = now.as_microsecond() + offset_us;
        let start_us = local_us - local_us.rem_euclid(HOUR_US) - offset_us;
        let mut start = Timestamp::from_micros(u64::try_from(start_us).unwrap_or(0));
        let mut end = Timestamp::from_micros(u64::try_from(start_us + HOUR_US).unwrap_or(0));
        if let Some(change) = self.zone.preceding(now + SignedDuration::from_micros(1)).next() {
            start = start.max(timestamp(change.timestamp()));
        }
        if let Some(change) = self.zone.following(now).next() {
            end = end.min(timestamp(change.timestamp()));
        }
        Ok((start, end))
    }

    fn unzoned_around(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let length_us = self.longest().as_micros();
        let start_us = now.as_micros() / length_us * length_us;
        (Timestamp::from_micros(start_us), Timestamp::from_micros(start_us + length_us))
    }
}

impl fmt::Display for CivilPeriod {
    /// `month/Europe/Berlin`, with the anchor day behind it where it is not 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name(), self.zone_name)?;
        if self.anchor_day == 1 { Ok(()) } else { write!(f, "/{}", self.anchor_day) }
    }
}

/// The names of the zones that [`CivilPeriod::new`] knows, in the database's order.
pub fn zone_names() -> impl Iterator<Item = String> {
    let names: Vec<String> = TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
    names.into_iter()
}

fn instant(now: Timestamp) -> Result<jiff::Timestamp, jiff::Error> {
    // Below 2^52, so it fits.
    jiff::Timestamp::from_microsecond(now.as_micros() as i64)
}

fn timestamp(instant: jiff::Timestamp) -> Timestamp {
    Timestamp::from_micros(u64::try_from(instant.as_microsecond()).unwrap_or(0))
}

#[cfg(test)]
mod tests;
