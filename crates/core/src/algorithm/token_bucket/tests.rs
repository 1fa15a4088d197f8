use super::*;
use crate::units::RateError;

const YEAR_2027: Timestamp = Timestamp::from_secs(1_800_000_000);

fn rate(count: u64, secs: u64) -> Rate {
    Rate::new(count, secs).unwrap()
}

fn bucket(count: u64, secs: u64, burst: u64) -> TokenBucket {
    TokenBucket::new(rate(count, secs), Some(burst)).unwrap()
}

fn us_after(us: u64) -> Timestamp {
    YEAR_2027.after(Span::from_micros(us))
}

fn check(rule: &TokenBucket, state: &TokenBucketState, cost: u64, now: Timestamp) -> Verdict {
    rule.check(state, Cost::new(cost), now)
}

/// Takes `cost` if it is admitted, and says what was said.
fn ask(rule: &TokenBucket, state: &mut TokenBucketState, cost: u64, now: Timestamp) -> Verdict {
    let now = rule.advance(state, now);
    let verdict = check(rule, state, cost, now);
    if verdict.admits() {
        rule.take(state, Cost::new(cost), now);
    }
    verdict
}

/// How many pass if the bucket is asked for one again and again, each time as soon as it said, until
/// `us` microseconds have passed (those exactly then included).
fn admitted_within(rule: &TokenBucket, us: u64) -> u64 {
    let (mut state, mut now, mut admitted) = (TokenBucketState::default(), YEAR_2027, 0);
    loop {
        match ask(rule, &mut state, 1, now) {
            Verdict::Admit => admitted += 1,
            Verdict::Wait(wait) => {
                assert!(!wait.is_zero(), "denied, and yet nothing to wait for");
                now = now.after(wait);
            }
            Verdict::Never => panic!("one never passes"),
        }
        if now > us_after(us) {
            return admitted;
        }
    }
}

#[test]
fn the_example_in_the_documentation() {
    let rule = bucket(60, 60, 10);
    let mut state = TokenBucketState::default();
    for _ in 0..10 {
        assert!(ask(&rule, &mut state, 1, YEAR_2027).admits());
    }
    for second in 0..100 {
        let now = YEAR_2027.after(Span::from_secs(second));
        assert_eq!(ask(&rule, &mut state, 1, now), Verdict::Wait(Span::from_secs(1)));
        assert_eq!(ask(&rule, &mut state, 1, now.after(Span::from_secs(1))), Verdict::Admit);
    }
}

#[test]
fn seven_a_minute_is_exact() {
    let rule = bucket(7, 60, 7);
    let mut state = TokenBucketState::default();
    assert!(ask(&rule, &mut state, 7, YEAR_2027).admits());
    for token in 1..=70_000_u64 {
        // The token comes after token · 60/7 s; the first whole microsecond that is not before it.
        let due_us = (token * 60_000_000).div_ceil(7);
        assert_eq!(check(&rule, &state, 1, us_after(due_us - 1)), Verdict::Wait(Span::from_micros(1)), "{token}");
        assert!(ask(&rule, &mut state, 1, us_after(due_us)).admits(), "{token}");
    }
    let week_us = 70_000 * 60_000_000 / 7;
    assert_eq!(rule.standing(&state, us_after(week_us)).reset, Span::from_secs(60), "no drift after a week");
}

#[test]
fn seven_a_minute_gives_seven_a_minute() {
    let rule = bucket(7, 60, 7);
    for minutes in [1, 2, 60, 1_440] {
        assert_eq!(admitted_within(&rule, minutes * 60_000_000), 7 + 7 * minutes, "{minutes} min");
    }
}

#[test]
fn the_remainder_of_a_token_is_kept_for_any_count() {
    // Every one of these has a token's time that is no whole number of microseconds.
    for count in [3, 7, 11, 13, 17, 997, 1_009, 1_021, 1_023] {
        let rule = bucket(count, 1, count);
        assert_eq!(admitted_within(&rule, 1_000_000), 2 * count, "{count}/s over a second");
        assert_eq!(admitted_within(&rule, 10_000_000), 11 * count, "{count}/s over ten");
    }
}

#[test]
fn a_hundred_thousand_a_second_is_exact() {
    let rule = bucket(100_000, 1, 1);
    assert_eq!(rule.unit(), (10, 1), "ten microseconds a token");
    assert_eq!(admitted_within(&rule, 1_000_000), 100_001);
}

#[test]
fn three_hundred_thousand_a_second_is_exact_though_a_token_takes_no_whole_microseconds() {
    let rule = bucket(300_000, 1, 300_000);
    assert_eq!(rule.unit(), (10, 3), "a third of ten microseconds a token");
    assert_eq!(admitted_within(&rule, 1_000_000), 600_000);
}

#[test]
fn a_billion_a_second_is_exact_though_a_microsecond_holds_a_thousand() {
    let rule = bucket(1_000_000_000, 1, 1_000_000_000);
    assert_eq!(rule.unit(), (1, 1_000), "a thousandth of a microsecond a token");
    let mut state = TokenBucketState::default();
    assert!(ask(&rule, &mut state, 1_000_000_000, YEAR_2027).admits());
    for us in 1..=1_000 {
        assert_eq!(rule.standing(&state, us_after(us)).remaining, 1_000, "a thousand a microsecond");
        assert_eq!(check(&rule, &state, 1_001, us_after(us)), Verdict::Wait(Span::from_micros(1)));
        assert!(ask(&rule, &mut state, 1_000, us_after(us)).admits());
    }
    assert_eq!(check(&rule, &state, 1_000_000_000, us_after(1_000)), Verdict::Wait(Span::from_secs(1)));
}

#[test]
fn the_largest_rate_is_1024_tokens_a_microsecond() {
    assert_eq!(bucket(1_024_000_000, 1, 1).unit(), (1, 1_024));
    assert_eq!(TokenBucket::new(rate(1_024_000_001, 1), Some(1)), Err(AlgorithmError::RateTooFine));
    assert_eq!(TokenBucket::new(rate(Rate::COUNT_MAX, 1), Some(1)), Err(AlgorithmError::RateTooFine));
    assert!(TokenBucket::new(rate(Rate::COUNT_MAX, Rate::PERIOD_MAX_SECS), None).is_ok(), "285 a microsecond");
}

#[test]
fn prime_counts_keep_to_the_stated_error() {
    const BURST: u64 = 100;
    for count in [1_031_u64, 10_007, 99_991, 100_003, 1_000_003] {
        let rule = bucket(count, 1, BURST);
        let (token_ticks, ticks_per_us) = rule.unit();
        assert_eq!(ticks_per_us, 1_024);
        // T ≤ token_ticks/1024 µs < T + 1/1024 µs: never faster, slow by less than 1/(1024·T).
        let (asked, is) = (1_024_000_000_u64, token_ticks * count);
        assert!(asked <= is && is < asked + count, "{count}/s");
        // And so it is in ten seconds at full tilt; T = 10^6/count µs, and the last token may not be
        // whole yet.
        let (admitted, asked) = (admitted_within(&rule, 10_000_000) - BURST, 10 * count);
        let slow_by = (asked * count).div_ceil(1_024_000_000) + 1;
        assert!(admitted <= asked, "{count}/s: {admitted} of {asked}");
        assert!(admitted + slow_by >= asked, "{count}/s: {admitted} of {asked}, {slow_by} may be missing");
    }
}

#[test]
fn a_burst_defaults_to_the_count() {
    assert_eq!(TokenBucket::new(rate(60, 60), None).unwrap().capacity(), 60);
    assert_eq!(TokenBucket::new(rate(60, 60), Some(10)).unwrap().capacity(), 10);
    assert_eq!(TokenBucket::new(rate(60, 60), Some(600)).unwrap().capacity(), 600);
}

#[test]
fn the_window_is_the_time_in_which_the_burst_comes_back() {
    assert_eq!(bucket(60, 60, 10).window(), Span::from_secs(10));
    assert_eq!(bucket(60, 60, 600).window(), Span::from_secs(600));
    assert_eq!(bucket(7, 60, 1).window(), Span::from_micros(8_571_429), "rounded up");
}

#[test]
fn a_burst_of_nothing_is_an_error_that_says_what_to_write() {
    let error = TokenBucket::new(rate(60, 60), Some(0)).unwrap_err();
    assert_eq!(error, AlgorithmError::BurstZero);
    let message = "burst is 0, so nothing could ever pass; use a rate of 0 to refuse everything";
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_burst_may_take_71_years_to_refill() {
    let most = (1_u64 << 51) / 1_000_000;
    assert_eq!(bucket(1, 1, most).capacity(), most);
    let error = TokenBucket::new(rate(1, 1), Some(most + 1)).unwrap_err();
    assert_eq!(error, AlgorithmError::BurstTooLarge { burst: most + 1 });
    let message = "a bucket of 2251799814 at this rate takes more than 71 years to refill; lower burst or raise rate";
    assert_eq!(error.to_string(), message);
}

#[test]
fn bursts_at_the_edge_of_64_bits_are_errors_and_no_overflow() {
    for burst in [i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        for rate in
            [rate(1, 1), rate(1, Rate::PERIOD_MAX_SECS), rate(1_000_000_000, 1), rate(Rate::COUNT_MAX, 86_400 * 366)]
        {
            assert_eq!(TokenBucket::new(rate, Some(burst)), Err(AlgorithmError::BurstTooLarge { burst }));
            assert_eq!(bucket(1, 1, 1).with_burst(burst), Err(AlgorithmError::BurstTooLarge { burst }));
        }
    }
}

#[test]
fn another_burst_is_the_same_as_building_it_anew() {
    for (count, secs) in [(60, 60), (7, 60), (100_003, 1), (1_000_000_000, 1), (0, 60)] {
        let rule = TokenBucket::new(rate(count, secs), None).unwrap();
        for burst in [0, 1, 10, 1_000_000, 1 << 51, u64::MAX] {
            assert_eq!(rule.with_burst(burst), TokenBucket::new(rate(count, secs), Some(burst)), "{count}/{secs}s");
        }
    }
}

#[test]
fn a_rate_of_zero_refuses_everything_whatever_the_burst() -> Result<(), RateError> {
    for burst in [None, Some(0), Some(1), Some(u64::MAX)] {
        let rule = TokenBucket::new("0/min".parse()?, burst).unwrap();
        let state = TokenBucketState::default();
        for cost in [1, u64::MAX] {
            assert_eq!(check(&rule, &state, cost, YEAR_2027), Verdict::Never);
        }
        assert_eq!(check(&rule, &state, 0, YEAR_2027), Verdict::Admit);
        assert_eq!(rule.standing(&state, YEAR_2027), Standing::default());
        assert_eq!((rule.capacity(), rule.window()), (0, Span::ZERO));
    }
    Ok(())
}

#[test]
fn costs_at_the_edge_of_64_bits() {
    let rule = bucket(1, 1, (1 << 51) / 1_000_000);
    let mut state = TokenBucketState::default();
    for cost in [rule.capacity() + 1, i64::MAX as u64, u64::MAX] {
        assert_eq!(ask(&rule, &mut state, cost, YEAR_2027), Verdict::Never);
    }
    assert_eq!(state, TokenBucketState::default());
    assert_eq!(ask(&rule, &mut state, rule.capacity(), YEAR_2027), Verdict::Admit);
    assert_eq!(ask(&rule, &mut state, 1, YEAR_2027), Verdict::Wait(Span::from_secs(1)));
    assert_eq!(TokenBucketState::unpack(state.pack()), state);
}

#[test]
fn a_clock_set_back_denies_for_the_jump_and_says_so() {
    let rule = bucket(60, 60, 10);
    let mut state = TokenBucketState::default();
    assert!(ask(&rule, &mut state, 10, YEAR_2027).admits());
    let hour_before = YEAR_2027.before(Span::from_secs(3_600));
    assert_eq!(ask(&rule, &mut state, 1, hour_before), Verdict::Wait(Span::from_secs(3_601)));
    assert_eq!(rule.standing(&state, hour_before).remaining, 0);
    assert_eq!(ask(&rule, &mut state, 1, YEAR_2027.after(Span::from_secs(1))), Verdict::Admit);
}

#[test]
fn a_burst_lowered_below_what_was_taken_says_the_whole_wait() {
    let (before, after) = (bucket(60, 60, 100), bucket(60, 60, 10));
    assert_eq!(before.unit(), after.unit(), "one reads the other's state");
    let mut state = TokenBucketState::default();
    assert!(ask(&before, &mut state, 100, YEAR_2027).admits());
    assert_eq!(ask(&after, &mut state, 1, YEAR_2027), Verdict::Wait(Span::from_secs(91)));
    let standing = after.standing(&state, YEAR_2027);
    assert_eq!((standing.remaining, standing.next), (0, Span::from_secs(91)));
    assert_eq!(ask(&after, &mut state, 1, YEAR_2027.after(Span::from_secs(91))), Verdict::Admit);
}

#[test]
fn a_burst_raised_gives_what_is_more_at_once() {
    let (before, after) = (bucket(60, 60, 10), bucket(60, 60, 100));
    let mut state = TokenBucketState::default();
    assert!(ask(&before, &mut state, 10, YEAR_2027).admits());
    assert_eq!(after.standing(&state, YEAR_2027).remaining, 90);
}

#[test]
fn a_state_packs_into_62_bits() {
    let largest = TokenBucketState { full_at: Timestamp::MAX, ticks: 1_023 };
    assert_eq!(largest.pack(), (1 << 62) - 1);
    assert_eq!(TokenBucketState::unpack(largest.pack()), largest);
    assert_eq!(TokenBucketState::default().pack(), 0);
    assert_eq!(TokenBucketState::unpack(0), TokenBucketState::default());
}

#[test]
fn the_end_of_time_is_no_overflow() {
    for (count, secs, burst) in [(1, 1, 2_251_799_813), (1_024_000_000, 1, 1 << 40), (1_000_003, 1, 1_000_000)] {
        let rule = bucket(count, secs, burst);
        let mut state = TokenBucketState::default();
        for cost in [1, burst, burst + 1, u64::MAX, 0] {
            ask(&rule, &mut state, cost, Timestamp::MAX);
            rule.standing(&state, Timestamp::MAX);
            rule.standing(&state, Timestamp::EPOCH);
            check(&rule, &state, burst, Timestamp::EPOCH);
            assert_eq!(TokenBucketState::unpack(state.pack()), state);
        }
        assert!(rule.expires_at(&state) <= Timestamp::MAX);
    }
}
