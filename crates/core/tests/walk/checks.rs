//! What has to hold of every rule in every state.

use tidegate_core::{Cost, Counter, Span, Standing, Timestamp, Verdict};

use crate::models::Model;

/// The verdict is the model's; a wait is long enough and not a microsecond too long.
pub(crate) fn check_verdict<C: Counter, M: Model>(
    rule: &C,
    state: &C::State,
    model: &M,
    cost: u64,
    at: u64,
) -> Verdict {
    let verdict = verdict_at(rule, state, cost, at);
    assert_eq!(verdict.admits(), model.admits(at, cost), "cost {cost} at {at}: {verdict:?} in {state:?}");
    let never = cost > rule.capacity();
    assert_eq!(verdict == Verdict::Never, never, "never, exactly if above the capacity: cost {cost}");
    if let Verdict::Wait(wait) = verdict {
        check_wait(rule, state, model, cost, at, wait.as_micros());
    }
    verdict
}

fn check_wait<C: Counter, M: Model>(rule: &C, state: &C::State, model: &M, cost: u64, at: u64, wait_us: u64) {
    assert!(wait_us > 0, "a denial with no wait: cost {cost} at {at} in {state:?}");
    for early in [1, wait_us / 3, wait_us / 2, wait_us - 1].into_iter().filter(|early| *early < wait_us) {
        assert!(!verdict_at(rule, state, cost, at + early).admits(), "admitted after {early} of {wait_us} µs");
        assert!(!model.admits(at + early, cost), "the model admits after {early} of {wait_us} µs");
    }
    assert!(verdict_at(rule, state, cost, at + wait_us).admits(), "denied after the whole wait of {wait_us} µs");
    assert!(model.admits(at + wait_us, cost), "the model denies after the whole wait of {wait_us} µs");
}

/// A cost of 0 is admitted and changes nothing.
pub(crate) fn check_peek<C: Counter>(rule: &C, state: &C::State, at: u64) {
    assert_eq!(verdict_at(rule, state, 0, at), Verdict::Admit);
    let mut peeked = state.clone();
    rule.take(&mut peeked, Cost::ZERO, Timestamp::from_micros(at));
    assert_eq!(&peeked, state, "a peek changes nothing");
    rule.advance(&mut peeked, Timestamp::from_micros(at));
    assert_eq!(&peeked, state, "time that stands still changes nothing");
}

/// `remaining` is the largest cost that passes, `reset` is the model's, and `next` is when
/// `remaining` grows.
pub(crate) fn check_standing<C: Counter, M: Model>(rule: &C, state: &C::State, model: &M, at: u64) -> Standing {
    let standing = standing_at(rule, state, at);
    let remaining = standing.remaining;
    assert!(remaining <= rule.capacity(), "more remains than there is: {standing:?}");
    assert!(verdict_at(rule, state, remaining, at).admits(), "what remains is admitted: {standing:?} in {state:?}");
    assert!(model.admits(at, remaining), "the model admits what remains: {standing:?} in {state:?}");
    assert!(!verdict_at(rule, state, remaining + 1, at).admits(), "no more than remains is admitted: {standing:?}");
    assert!(!model.admits(at, remaining + 1), "the model admits no more than remains: {standing:?} in {state:?}");
    assert_eq!(standing.reset, Span::from_micros(model.reset(at)), "reset at {at} in {state:?}");

    let next_us = standing.next.as_micros();
    if next_us == 0 {
        let ever = standing_at(rule, state, rule.expires_at(state).as_micros().max(at)).remaining;
        assert_eq!(ever, remaining, "next is 0 and yet remaining grows");
    } else {
        assert_eq!(standing_at(rule, state, at + next_us - 1).remaining, remaining, "it grows before next: {state:?}");
        assert!(standing_at(rule, state, at + next_us).remaining > remaining, "it does not grow at next: {state:?}");
        assert!(!model.admits(at + next_us - 1, remaining + 1), "the model grows before next: {state:?}");
        assert!(model.admits(at + next_us, remaining + 1), "the model does not grow at next: {state:?}");
    }
    standing
}

/// From `expires_at` on the state behaves as that of a key never seen, and not a microsecond before
/// if that is still to come.
pub(crate) fn check_expiry<C: Counter>(rule: &C, state: &C::State, at: u64) -> Timestamp {
    let expires_at = rule.expires_at(state);
    let expiry = expires_at.as_micros();
    let window_us = rule.window().as_micros();
    let never_seen = C::State::default();
    for after in [expiry, expiry + 1, expiry + window_us / 2, expiry + 3 * window_us, at.max(expiry)] {
        let (mut used, mut fresh) = (state.clone(), never_seen.clone());
        let now = Timestamp::from_micros(after);
        let (inside_used, inside_fresh) = (rule.advance(&mut used, now), rule.advance(&mut fresh, now));
        assert_eq!(inside_used, inside_fresh, "another time after expiry: {state:?}");
        let after = inside_used.as_micros();
        assert_eq!(standing_at(rule, &used, after), standing_at(rule, &fresh, after), "after expiry: {state:?}");
        for cost in [1, rule.capacity(), rule.capacity().saturating_add(1)] {
            assert_eq!(verdict_at(rule, &used, cost, after), verdict_at(rule, &fresh, cost, after));
        }
    }
    if expiry > at {
        assert!(standing_at(rule, state, expiry - 1).reset > Span::ZERO, "kept for longer than needed: {state:?}");
    }
    expires_at
}

/// The verdict on `cost` if nothing is taken until `at`.
fn verdict_at<C: Counter>(rule: &C, state: &C::State, cost: u64, at: u64) -> Verdict {
    let mut state = state.clone();
    let inside = rule.advance(&mut state, Timestamp::from_micros(at));
    rule.check(&state, Cost::new(cost), inside)
}

fn standing_at<C: Counter>(rule: &C, state: &C::State, at: u64) -> Standing {
    let mut state = state.clone();
    let inside = rule.advance(&mut state, Timestamp::from_micros(at));
    rule.standing(&state, inside)
}
