use super::*;

fn at(text: &str) -> Timestamp {
    timestamp(text.parse().unwrap())
}

fn civil(kind: PeriodKind, zone: &str, anchor_day: u64) -> CivilPeriod {
    CivilPeriod::new(kind, zone, Some(anchor_day)).unwrap()
}

/// The periods that begin and end at these instants follow each other, and hold every instant between.
#[track_caller]
fn follow(civil: &CivilPeriod, bounds: &[&str]) {
    let bounds: Vec<Timestamp> = bounds.iter().map(|text| at(text)).collect();
    for (start, end) in bounds.iter().zip(&bounds[1..]) {
        // Every ten minutes of a day, every hour or so of a month, and the last microsecond.
        let step_us = (end.since(*start).as_micros() / 720).max(600_000_000);
        let inside = (start.as_micros()..end.as_micros()).step_by(step_us as usize).map(Timestamp::from_micros);
        for inside in inside.chain([end.before(Span::from_micros(1))]) {
            assert_eq!(civil.around(inside), (*start, *end), "{civil} at {inside:?}");
        }
    }
}

fn hours(period: (Timestamp, Timestamp)) -> u64 {
    period.1.since(period.0).as_micros() / 3_600_000_000
}

#[test]
fn months_have_their_own_lengths() {
    let months = civil(PeriodKind::Month, "UTC", 1);
    let bounds = [
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
        "2026-03-01T00:00:00Z",
        "2026-04-01T00:00:00Z",
        "2026-05-01T00:00:00Z",
    ];
    follow(&months, &bounds);
    let days = ["2026-01-15", "2026-02-15", "2026-04-15", "2028-02-15"]
        .map(|day| hours(months.around(at(&format!("{day}T12:00:00Z")))) / 24);
    assert_eq!(days, [31, 28, 30, 29]);
}

#[test]
fn the_month_of_30_november_ends_on_1_december() {
    let months = civil(PeriodKind::Month, "UTC", 1);
    for time in ["2026-11-30T00:00:00Z", "2026-11-30T23:59:59.999999Z", "2026-11-01T00:00:00Z"] {
        assert_eq!(months.around(at(time)), (at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")));
    }
    assert_eq!(months.around(at("2026-12-01T00:00:00Z")).0, at("2026-12-01T00:00:00Z"));
}

#[test]
fn a_leap_year_has_its_day() {
    follow(
        &civil(PeriodKind::Day, "UTC", 1),
        &["2028-02-28T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"],
    );
    follow(&civil(PeriodKind::Day, "UTC", 1), &["2027-02-28T00:00:00Z", "2027-03-01T00:00:00Z"]);
    let years = civil(PeriodKind::Year, "UTC", 1);
    let lengths =
        ["2000", "2027", "2028", "2100"].map(|y| hours(years.around(at(&format!("{y}-07-01T00:00:00Z")))) / 24);
    assert_eq!(lengths, [366, 365, 366, 365], "2000 was a leap year, 2100 is none");
}

#[test]
fn an_anchor_day_that_a_month_lacks_is_its_last_day() {
    let bounds_31 = ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31", "2026-06-30", "2026-07-31"];
    let bounds_30 = ["2026-01-30", "2026-02-28", "2026-03-30", "2026-04-30", "2026-05-30"];
    let bounds_29 = ["2027-01-29", "2027-02-28", "2027-03-29"];
    let leap_31 = ["2028-01-31", "2028-02-29", "2028-03-31"];
    let leap_30 = ["2028-01-30", "2028-02-29", "2028-03-30"];
    let leap_29 = ["2028-01-29", "2028-02-29", "2028-03-29"];
    let anchors: [(u64, &[&str]); 6] =
        [(31, &bounds_31), (30, &bounds_30), (29, &bounds_29), (31, &leap_31), (30, &leap_30), (29, &leap_29)];
    for (anchor_day, days) in anchors {
        let bounds: Vec<String> = days.iter().map(|day| format!("{day}T00:00:00Z")).collect();
        let bounds: Vec<&str> = bounds.iter().map(String::as_str).collect();
        follow(&civil(PeriodKind::Month, "UTC", anchor_day), &bounds);
    }
}

#[test]
fn an_anchor_day_goes_over_the_turn_of_the_year() {
    let months = civil(PeriodKind::Month, "Europe/Berlin", 15);
    follow(&months, &["2026-12-14T23:00:00Z", "2027-01-14T23:00:00Z", "2027-02-14T23:00:00Z"]);
}

#[test]
fn a_week_begins_on_monday_or_on_its_anchor() {
    let bounds = ["2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"];
    follow(&CivilPeriod::new(PeriodKind::Week, "UTC", None).unwrap(), &bounds);
    follow(&civil(PeriodKind::Week, "UTC", 1), &bounds);
    follow(&civil(PeriodKind::Week, "UTC", 3), &["2026-11-25T00:00:00Z", "2026-12-02T00:00:00Z"]);
    follow(&civil(PeriodKind::Week, "UTC", 7), &["2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"]);
    // Over the turn of the year, and with a change of the clock in it.
    follow(&civil(PeriodKind::Week, "UTC", 1), &["2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"]);
    follow(&civil(PeriodKind::Week, "Europe/Berlin", 1), &["2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"]);
}

#[test]
fn a_month_in_berlin_loses_an_hour_in_march_and_gains_one_in_october() {
    let months = civil(PeriodKind::Month, "Europe/Berlin", 1);
    follow(&months, &["2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"]);
    follow(&months, &["2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"]);
    assert_eq!(hours(months.around(at("2026-03-15T00:00:00Z"))), 31 * 24 - 1);
    assert_eq!(hours(months.around(at("2026-10-15T00:00:00Z"))), 31 * 24 + 1);
}

#[test]
fn a_day_has_23_or_25_hours_when_the_clock_changes() {
    let berlin = civil(PeriodKind::Day, "Europe/Berlin", 1);
    follow(&berlin, &["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"]);
    follow(&berlin, &["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z"]);
    let new_york = civil(PeriodKind::Day, "America/New_York", 1);
    follow(&new_york, &["2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"]);
    follow(&new_york, &["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"]);
}

#[test]
fn dublin_whose_winter_time_is_the_exception_is_as_any_other_zone() {
    let dublin = civil(PeriodKind::Day, "Europe/Dublin", 1);
    follow(&dublin, &["2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z", "2026-03-30T23:00:00Z"]);
    follow(&dublin, &["2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z"]);
    let repeated = ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"];
    follow(&civil(PeriodKind::Hour, "Europe/Dublin", 1), &repeated);
}

#[test]
fn a_day_whose_midnight_is_skipped_begins_an_hour_later_by_the_clock() {
    // On 4 November 2018 the clock in São Paulo went from 00:00 to 01:00.
    let days = civil(PeriodKind::Day, "America/Sao_Paulo", 1);
    follow(&days, &["2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"]);
    // On 18 February 2018 it went from 00:00 back to 23:00 of the 17th.
    follow(&days, &["2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z", "2018-02-19T03:00:00Z"]);
}

#[test]
fn a_day_that_a_zone_skips_is_no_period() {
    // Apia went from 29 to 31 December 2011.
    let days = civil(PeriodKind::Day, "Pacific/Apia", 1);
    follow(&days, &["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"]);
    let months = civil(PeriodKind::Month, "Pacific/Apia", 30);
    follow(&months, &["2011-11-30T10:00:00Z", "2011-12-30T10:00:00Z", "2012-01-29T10:00:00Z"]);
    assert_eq!(hours(civil(PeriodKind::Month, "Pacific/Apia", 1).around(at("2011-12-15T00:00:00Z"))), 30 * 24);
}

#[test]
fn a_midnight_that_comes_twice_begins_the_day_once() {
    // A minute past midnight the clock went back an hour in St. John's, on 30 October 2005.
    let days = civil(PeriodKind::Day, "America/St_Johns", 1);
    follow(&days, &["2005-10-29T02:30:00Z", "2005-10-30T02:30:00Z", "2005-10-31T03:30:00Z"]);
    let havana = civil(PeriodKind::Day, "America/Havana", 1);
    follow(&havana, &["2020-11-01T04:00:00Z", "2020-11-02T05:00:00Z"]);
}

#[test]
fn zones_that_are_off_by_half_an_hour_or_three_quarters() {
    let months = |zone| civil(PeriodKind::Month, zone, 1).around(at("2026-05-15T00:00:00Z")).0;
    assert_eq!(months("Asia/Kolkata"), at("2026-04-30T18:30:00Z"));
    assert_eq!(months("Asia/Kathmandu"), at("2026-04-30T18:15:00Z"));
    assert_eq!(months("Australia/Eucla"), at("2026-04-30T15:15:00Z"));
    let hours = ["2026-05-15T00:15:00Z", "2026-05-15T01:15:00Z"];
    follow(&civil(PeriodKind::Hour, "Asia/Kathmandu", 1), &hours);
    let chatham = civil(PeriodKind::Day, "Pacific/Chatham", 1);
    follow(&chatham, &["2026-04-04T10:15:00Z", "2026-04-05T11:15:00Z"]);
    follow(&chatham, &["2026-09-26T11:15:00Z", "2026-09-27T10:15:00Z"]);
}

#[test]
fn an_hour_is_cut_where_the_clock_changes_within_it() {
    let lord_howe = civil(PeriodKind::Hour, "Australia/Lord_Howe", 1);
    // 02:00 goes back to 01:30: the hour from 01:00 is whole, and half of it comes again.
    let back = ["2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z"];
    follow(&lord_howe, &back);
    // 02:00 goes on to 02:30: the hour from 02:00 has a half.
    let on = ["2026-10-03T14:30:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z", "2026-10-03T17:00:00Z"];
    follow(&lord_howe, &on);
    // 03:45 goes back to 02:45.
    let chatham = ["2026-04-04T13:15:00Z", "2026-04-04T14:00:00Z", "2026-04-04T14:15:00Z", "2026-04-04T15:15:00Z"];
    follow(&civil(PeriodKind::Hour, "Pacific/Chatham", 1), &chatham);
}

#[test]
fn an_hour_that_comes_twice_is_two_hours() {
    let berlin = ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"];
    follow(&civil(PeriodKind::Hour, "Europe/Berlin", 1), &berlin);
    let skipped = ["2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"];
    follow(&civil(PeriodKind::Hour, "Europe/Berlin", 1), &skipped);
}

#[test]
fn a_period_that_began_before_the_epoch_begins_with_it() {
    let months = civil(PeriodKind::Month, "America/New_York", 1);
    assert_eq!(months.around(Timestamp::EPOCH), (Timestamp::EPOCH, at("1970-01-01T05:00:00Z")));
}

#[test]
fn the_end_of_time_ends_the_last_period() {
    for kind in [PeriodKind::Hour, PeriodKind::Day, PeriodKind::Week, PeriodKind::Month, PeriodKind::Year] {
        assert_eq!(civil(kind, "Europe/Berlin", 1).around(Timestamp::MAX).1, Timestamp::MAX);
    }
}

#[test]
fn a_zone_is_found_in_any_case_and_named_as_the_database_does() {
    let civil = CivilPeriod::new(PeriodKind::Month, "europe/berlin", None).unwrap();
    assert_eq!(civil.zone_name(), "Europe/Berlin");
    assert_eq!(civil.to_string(), "month/Europe/Berlin");
    assert_eq!(self::civil(PeriodKind::Month, "UTC", 15).to_string(), "month/UTC/15");
    assert_eq!(self::civil(PeriodKind::Week, "UTC", 7).to_string(), "week/UTC/7");
    assert!(zone_names().any(|name| name == "Europe/Berlin"));
}

#[test]
fn what_is_no_zone() {
    for zone in ["", "Mars/Olympus", "Europe", "+02:00", "../../etc/passwd", "UTC\n", "Europe/Berlin\0"] {
        let error = CivilPeriod::new(PeriodKind::Month, zone, None).unwrap_err();
        assert_eq!(error, PeriodError::Zone(zone.to_owned()), "{zone:?}");
    }
    let error = CivilPeriod::new(PeriodKind::Month, "CEST", None).unwrap_err().to_string();
    let message = "the time zone 'CEST' is not in the IANA database (examples: UTC, Europe/Berlin, America/New_York)";
    assert_eq!(error, message);
    let long = CivilPeriod::new(PeriodKind::Month, &"x".repeat(1_000_000), None).unwrap_err();
    assert_eq!(long, PeriodError::Zone("x".repeat(64)));
}

#[test]
fn an_anchor_day_has_to_be_one_that_the_kind_has() {
    let wrong: [(PeriodKind, &[u64]); 5] = [
        (PeriodKind::Hour, &[0, 2]),
        (PeriodKind::Day, &[0, 2]),
        (PeriodKind::Week, &[0, 8]),
        (PeriodKind::Month, &[0, 32, 257, u64::MAX]),
        (PeriodKind::Year, &[0, 2, 366]),
    ];
    for (kind, days) in wrong {
        for day in days {
            let error = CivilPeriod::new(kind, "UTC", Some(*day)).unwrap_err();
            assert_eq!(error, PeriodError::AnchorDay { anchor_day: *day, kind: kind.name() });
        }
    }
    let message = "anchor_day 32 does not fit a month: week takes 1 (Monday) to 7, month takes 1 to 31, others none";
    assert_eq!(CivilPeriod::new(PeriodKind::Month, "UTC", Some(32)).unwrap_err().to_string(), message);
}

#[test]
fn kinds_are_read_by_their_names_alone() {
    for kind in [PeriodKind::Hour, PeriodKind::Day, PeriodKind::Week, PeriodKind::Month, PeriodKind::Year] {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    for text in ["", "Month", "months", "30d", "fortnight"] {
        let error = text.parse::<PeriodKind>().unwrap_err();
        assert_eq!(error.to_string(), format!("the period '{text}' is not one of hour, day, week, month, year"));
    }
}
