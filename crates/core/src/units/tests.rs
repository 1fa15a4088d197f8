use proptest::prelude::*;

use super::*;

fn rate(text: &str) -> Rate {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn fault(text: &str) -> String {
    text.parse::<Rate>().map(|rate| rate.to_string()).unwrap_err().to_string()
}

#[track_caller]
fn is(text: &str, count: u64, period_secs: u64) {
    assert_eq!(rate(text), Rate::new(count, period_secs).unwrap(), "{text:?}");
}

/// A malformed rate: what is said of it, before the example that each message ends with.
#[track_caller]
fn says(text: &str, column: usize, complaint: &str) {
    let example = "a rate is <count>/<unit>, for example 60/min or 10/30s";
    assert_eq!(fault(text), format!("{complaint} (at character {column}; {example})"), "{text:?}");
}

const UNITS: &str = "is not one of s, sec, second, m, min, minute, h, hr, hour, d, day";

#[test]
fn every_spelling_of_a_unit_is_read() {
    let units = [
        (1, ["s", "sec", "secs", "second", "seconds"].as_slice()),
        (60, &["m", "min", "mins", "minute", "minutes"]),
        (3_600, &["h", "hr", "hrs", "hour", "hours"]),
        (86_400, &["d", "day", "days"]),
    ];
    for (secs, spellings) in units {
        for unit in spellings {
            is(&format!("60/{unit}"), 60, secs);
            is(&format!("60/{}", unit.to_uppercase()), 60, secs);
            is(&format!("60/2{unit}"), 60, 2 * secs);
            is(&format!("  60 / 2 {unit} "), 60, 2 * secs);
        }
    }
    is("60/Min", 60, 60);
    is("\t60/min\n", 60, 60);
}

#[test]
fn a_period_may_be_several_units() {
    is("10/30s", 10, 30);
    is("10/90min", 10, 5_400);
    is("1/366d", 1, 31_622_400);
    is("007/01s", 7, 1);
}

#[test]
fn zero_is_a_rate_that_refuses_everything() {
    is("0/min", 0, 60);
}

#[test]
fn the_largest_count_is_the_largest_that_a_double_holds_with_all_below_it() {
    is("9007199254740991/s", Rate::COUNT_MAX, 1);
    assert_eq!(Rate::COUNT_MAX as f64 as u64, Rate::COUNT_MAX);
    assert_ne!((Rate::COUNT_MAX + 2) as f64 as u64, Rate::COUNT_MAX + 2);
    says("9007199254740992/s", 1, "the count is above 9007199254740991");
    says("18446744073709551615/s", 1, "the count is above 9007199254740991");
    says(" 99999999999999999999999999/s", 2, "the count is above 9007199254740991");
}

#[test]
fn an_empty_rate() {
    says("", 1, "the rate is empty");
    says("   ", 1, "the rate is empty");
}

#[test]
fn a_rate_without_a_slash() {
    says("60", 3, "there is no '/' between count and unit");
    says("60 per min", 11, "there is no '/' between count and unit");
    says("  sixty  ", 8, "there is no '/' between count and unit");
    says("６０", 3, "there is no '/' between count and unit");
}

#[test]
fn a_count_that_is_no_whole_number() {
    says("-5/min", 1, "the count '-5' is not a whole number");
    says("+5/min", 1, "the count '+5' is not a whole number");
    says("1.5/min", 1, "the count '1.5' is not a whole number");
    says("1e3/min", 1, "the count '1e3' is not a whole number");
    says("1_000/min", 1, "the count '1_000' is not a whole number");
    says("1,000/min", 1, "the count '1,000' is not a whole number");
    says("0x10/min", 1, "the count '0x10' is not a whole number");
    says("  ten/min", 3, "the count 'ten' is not a whole number");
    says("٦٠/min", 1, "the count '٦٠' is not a whole number");
    says("NaN/min", 1, "the count 'NaN' is not a whole number");
    says("/min", 1, "the count '' is not a whole number");
    says("6 0/min", 1, "the count '6 0' is not a whole number");
}

#[test]
fn a_unit_that_is_none() {
    says("60/", 4, &format!("the unit '' {UNITS}"));
    says("60/30", 6, &format!("the unit '' {UNITS}"));
    says("60/fortnight", 4, &format!("the unit 'fortnight' {UNITS}"));
    says("60/2 weeks", 6, &format!("the unit 'weeks' {UNITS}"));
    says("60/month", 4, &format!("the unit 'month' {UNITS}"));
    says("60/ms", 4, &format!("the unit 'ms' {UNITS}"));
    says("60//min", 4, &format!("the unit '/min' {UNITS}"));
    says("60/min/s", 4, &format!("the unit 'min/s' {UNITS}"));
    says("60/-1min", 4, &format!("the unit '-1min' {UNITS}"));
    says("60/1.5min", 5, &format!("the unit '.5min' {UNITS}"));
    says("60/min x", 4, &format!("the unit 'min x' {UNITS}"));
    says("60/ſ", 4, &format!("the unit 'ſ' {UNITS}"));
}

#[test]
fn columns_count_characters_and_not_bytes() {
    says("\u{a0}60/日", 5, &format!("the unit '日' {UNITS}"));
    says("\u{3000}é/min", 2, "the count 'é' is not a whole number");
}

#[test]
fn a_period_out_of_range() {
    let complaint = "the period is not between 1 second and 366 days";
    says("60/0s", 4, complaint);
    says("60/ 0 min", 5, complaint);
    says("60/367d", 4, complaint);
    says("60/31622401s", 4, complaint);
    says("60/18446744073709551615d", 4, complaint);
    says("60/99999999999999999999999999s", 4, complaint);
}

#[test]
fn a_long_mistake_is_cut_short() {
    let long = "x".repeat(1_000_000);
    says(&format!("60/{long}"), 4, &format!("the unit '{}…' {UNITS}", "x".repeat(24)));
    says(&format!("{long}/min"), 1, &format!("the count '{}…' is not a whole number", "x".repeat(24)));
    says(&format!("{}/min", "é".repeat(24)), 1, &format!("the count '{}' is not a whole number", "é".repeat(24)));
}

#[test]
fn numbers_are_checked_as_texts_are() {
    assert_eq!(Rate::new(Rate::COUNT_MAX + 1, 60).unwrap_err().fault, RateFault::CountTooLarge);
    assert_eq!(Rate::new(u64::MAX, 60).unwrap_err().fault, RateFault::CountTooLarge);
    assert_eq!(Rate::new(60, 0).unwrap_err().fault, RateFault::PeriodOutOfRange);
    assert_eq!(Rate::new(60, Rate::PERIOD_MAX_SECS + 1).unwrap_err().fault, RateFault::PeriodOutOfRange);
    assert_eq!(Rate::new(60, u64::MAX).unwrap_err().fault, RateFault::PeriodOutOfRange);
}

#[test]
fn a_rate_is_written_with_the_largest_whole_unit() {
    let written = [
        ("60/60s", "60/min"),
        ("60/1min", "60/min"),
        ("5/1s", "5/s"),
        ("10/30s", "10/30s"),
        ("10/10s", "10/10s"),
        ("10/100min", "10/100min"),
        ("10/90s", "10/90s"),
        ("3/24h", "3/d"),
        ("3/60min", "3/h"),
        ("1/11d", "1/11d"),
        ("0/7d", "0/7d"),
    ];
    for (text, expected) in written {
        assert_eq!(rate(text).to_string(), expected, "{text:?}");
    }
}

#[test]
fn a_span_is_written_with_the_largest_whole_unit() {
    let written = [
        (0, "0us"),
        (1, "1us"),
        (999, "999us"),
        (1_000, "1ms"),
        (1_001, "1001us"),
        (1_500_000, "1500ms"),
        (30_000_000, "30s"),
        (7_200_000_000, "2h"),
        (604_800_000_000, "7d"),
        (u64::MAX, "18446744073709551615us"),
    ];
    for (us, expected) in written {
        assert_eq!(Span::from_micros(us).to_string(), expected);
    }
}

#[test]
fn a_wait_is_rounded_up_to_be_long_enough() {
    let rounded = [(0, 0, 0), (1, 1, 1), (1_000, 1, 1), (1_001, 2, 1), (999_999, 1_000, 1), (1_000_001, 1_001, 2)];
    for (us, ms, secs) in rounded {
        let span = Span::from_micros(us);
        assert_eq!((span.as_millis_ceil(), span.as_secs_ceil()), (ms, secs), "{us} µs");
    }
    assert_eq!(Span::from_micros(u64::MAX).as_secs_ceil(), u64::MAX / 1_000_000 + 1);
    assert_eq!(Timestamp::from_micros(1_000_001).as_secs_ceil(), 2);
    assert_eq!(Timestamp::from_micros(1_000_000).as_secs_ceil(), 1);
    assert_eq!(Timestamp::EPOCH.as_secs_ceil(), 0);
}

#[test]
fn time_is_clamped_at_both_ends() {
    assert_eq!(Timestamp::from_micros(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_secs(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_micros((1 << 52) - 2).after(Span::from_micros(1)), Timestamp::MAX);
    assert_eq!(Timestamp::MAX.after(Span::from_micros(u64::MAX)), Timestamp::MAX);
    assert_eq!(Timestamp::EPOCH.before(Span::from_micros(1)), Timestamp::EPOCH);
    assert_eq!(Timestamp::from_secs(5).since(Timestamp::from_secs(7)), Span::ZERO);
    assert_eq!(Timestamp::from_secs(7).since(Timestamp::from_secs(5)), Span::from_secs(2));
    assert_eq!(Span::from_secs(u64::MAX).as_micros(), u64::MAX);
    assert_eq!(Span::from_millis(u64::MAX).as_micros(), u64::MAX);
}

#[test]
fn every_instant_is_exact_in_a_double() {
    let latest = Timestamp::MAX.as_micros();
    assert_eq!(latest as f64 as u64, latest);
    assert_eq!((latest - 1) as f64 as u64, latest - 1);
}

#[test]
fn a_weight_cannot_wrap_a_cost() {
    assert_eq!(Cost::new(3).times(5), Cost::new(15));
    assert_eq!(Cost::new(u64::MAX).times(2), Cost::new(u64::MAX));
    assert_eq!(Cost::new(1 << 63).times(2), Cost::new(u64::MAX));
    assert_eq!(Cost::new(u64::MAX).times(0), Cost::ZERO);
    assert!(Cost::ZERO.is_zero() && !Cost::ONE.is_zero());
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(count in 0..=Rate::COUNT_MAX, secs in 1..=Rate::PERIOD_MAX_SECS) {
        let rate = Rate::new(count, secs).unwrap();
        prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
    }

    #[test]
    fn any_text_is_a_rate_or_a_fault_within_it(text in "\\PC*|[0-9 ]{0,4}/?[0-9 ]{0,3}[a-zA-Z]{0,4}\\PC{0,2}") {
        if let Err(error) = text.parse::<Rate>() {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{}", error);
            prop_assert!(error.to_string().chars().count() < 200, "{}", error);
        }
    }
}
