//! The response headers that tell a caller how it stands. Every HTTP door writes them here, so that
//! all doors say the same.
//!
//! | family | headers | of which limits |
//! |---|---|---|
//! | `x_ratelimit` | `X-RateLimit-Limit`, `-Remaining`, `-Reset` | the tightest |
//! | `ietf` | `RateLimit-Policy`, `RateLimit` (draft-ietf-httpapi-ratelimit-headers) | all, in the order checked, at most [`LIMITS_MAX`] |
//! | `retry_after` | `Retry-After` (RFC 9110, section 10.2.3) | the refusing ones: the longest wait |
//!
//! Three limits of which the last is the tightest give, at the Unix time 1,700,000,000:
//!
//! ```text
//! X-RateLimit-Limit: 100
//! X-RateLimit-Remaining: 2
//! X-RateLimit-Reset: 1700000040
//! RateLimit-Policy: "agent-minute";q=60;w=60, "org-minute";q=600;w=60, "everyone";q=100;w=60
//! RateLimit: "agent-minute";r=59;t=40, "org-minute";r=580;t=40, "everyone";r=2;t=40
//! ```
//!
//! A permissive limit is written as if it were enforced. Where no limit applied there is nothing to
//! say, and no header.

use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use tidegate::policy::{HeaderSettings, ResetForm};
use tidegate::{Decision, LimitState};

/// The most limits that the two IETF headers list: the first ones in the order checked. A name is at
/// most 64 characters, so each of the headers stays below 2 KiB.
pub const LIMITS_MAX: usize = 16;

/// The capacity of the tightest limit, in its unit.
pub const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// What can still be taken from the tightest limit now, in its unit.
pub const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// When the tightest limit is whole again: a Unix timestamp or seconds from now, rounded up.
pub const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// The numbers of each limit: `"name";q=<capacity>;w=<window in seconds>`.
pub const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// How each limit stands: `"name";r=<remaining>;t=<seconds until remaining grows>`.
pub const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// Set where a decision was made without the store that should have made it: `local` where limits
/// were counted in this process, `open` where none was, `closed` where one refused for that reason.
pub const X_RATELIMIT_DEGRADED: HeaderName = HeaderName::from_static("x-ratelimit-degraded");

/// The largest integer that a structured field can hold (RFC 9651, section 3.3.1).
const FIELD_INTEGER_MAX: u64 = 999_999_999_999_999;
/// The longest name that is written: what a limits file allows.
const NAME_CHARS_MAX: usize = 64;

/// Writes what `decision` says into `headers`, in the families that `settings` asks for. A header of
/// the same name that is already there is replaced; all others stay.
///
/// Values are valid whatever the limits are called and however large their numbers are: a character
/// that a structured field cannot hold becomes `?`, an integer beyond 15 digits becomes the largest
/// of 15 digits. The work is bounded by [`LIMITS_MAX`].
pub fn write(decision: &Decision, settings: &HeaderSettings, headers: &mut HeaderMap) {
    if settings.x_ratelimit
        && let Some(tightest) = decision.tightest()
    {
        write_tightest(decision, &tightest, settings.reset, headers);
    }
    if settings.ietf {
        write_ietf(decision, headers);
    }
    if settings.retry_after
        && let Some(wait) = decision.retry_after()
    {
        set(headers, RETRY_AFTER, HeaderValue::from(wait.as_secs_ceil()));
    }
    if let Some(how) = decision.degraded() {
        set(headers, X_RATELIMIT_DEGRADED, HeaderValue::from_static(how.name()));
    }
}

fn write_tightest(decision: &Decision, tightest: &LimitState<'_>, form: ResetForm, headers: &mut HeaderMap) {
    let reset_secs = match form {
        ResetForm::Unix => decision.at().after(tightest.reset).as_secs_ceil(),
        ResetForm::Delta => tightest.reset.as_secs_ceil(),
    };
    set(headers, X_RATELIMIT_LIMIT, HeaderValue::from(tightest.quota));
    set(headers, X_RATELIMIT_REMAINING, HeaderValue::from(tightest.remaining));
    set(headers, X_RATELIMIT_RESET, HeaderValue::from(reset_secs));
}

fn write_ietf(decision: &Decision, headers: &mut HeaderMap) {
    let mut policies = String::new();
    let mut standings = String::new();
    for state in decision.limits().take(LIMITS_MAX) {
        push_item(&mut policies, &state.limit.name);
        push_parameter(&mut policies, ";q=", state.quota);
        push_parameter(&mut policies, ";w=", state.window.as_secs_ceil().max(1));
        push_item(&mut standings, &state.limit.name);
        push_parameter(&mut standings, ";r=", state.remaining);
        push_parameter(&mut standings, ";t=", state.next.as_secs_ceil());
    }
    for (name, text) in [(RATELIMIT_POLICY, policies), (RATELIMIT, standings)] {
        if !text.is_empty()
            && let Ok(value) = HeaderValue::try_from(text)
        {
            set(headers, name, value);
        }
    }
}

/// Begins the next member of a list: a structured field's string, in quotation marks.
fn push_item(list: &mut String, name: &str) {
    if !list.is_empty() {
        list.push_str(", ");
    }
    list.push('"');
    for char in name.chars().take(NAME_CHARS_MAX) {
        match char {
            '"' | '\\' => list.extend(['\\', char]),
            ' '..='~' => list.push(char),
            _ => list.push('?'),
        }
    }
    list.push('"');
}

fn push_parameter(list: &mut String, key: &str, number: u64) {
    list.push_str(key);
    list.push_str(itoa::Buffer::new().format(number.min(FIELD_INTEGER_MAX)));
}

/// `HeaderMap::insert` panics where a map of 32,768 headers is full; then these are left out.
fn set(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    let _full = headers.try_insert(name, value);
}
