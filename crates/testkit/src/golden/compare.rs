//! An answer beside the one that its row has.

use std::fmt;

use super::rows::{Expect, ExpectLimit, Row, Step};
use crate::door::{Field, Said, SaidLimit};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) differences: Vec<String>,
    pub(super) compared: usize,
}

/// What of `said` is not as the step has it, in the fields that the door has to say.
pub(super) fn differences(row: &Row, step: &Step, said: &Said, fields: &[Field]) -> Found {
    let mut found = Found::default();
    let expect = &step.expect;
    found.compare("allowed", &expect.allowed, &said.allowed);
    for field in fields {
        match field {
            Field::RefusedBy => found.compare("refused_by", &expect.refused_by, &said.refused_by),
            Field::Level => found.compare("level", &expect.level, &said.level),
            Field::RetryAfter => found.compare("retry_after_ms", &expect.retry_after_ms, &said.retry_after_ms),
            Field::Never => found.compare("never", &expect.never, &said.never),
            Field::Tightest => found.compare("tightest", &expect.tightest, &said.tightest),
            Field::Limits => found.compare_limits(&expect.limits, &said.limits),
            Field::Next => found.compare_next(&expect.limits, &said.limits),
            Field::XHeaders => found.compare_x_headers(row.start_ms + step.at_ms, expect, said),
            Field::IetfHeaders => found.compare_ietf_headers(expect, said),
        }
    }
    found
}

impl Found {
    fn compare<T: PartialEq + fmt::Debug>(&mut self, what: &str, wanted: &T, said: &T) {
        self.compared += 1;
        if wanted != said {
            self.differences.push(format!("{what}: wanted {wanted:?}, the door said {said:?}"));
        }
    }

    fn compare_limits(&mut self, wanted: &[ExpectLimit], said: &[SaidLimit]) {
        let names = |limits: Vec<&String>| limits.into_iter().cloned().collect::<Vec<_>>();
        let wanted_names = names(wanted.iter().map(|limit| &limit.name).collect());
        self.compare("limits", &wanted_names, &names(said.iter().map(|limit| &limit.name).collect()));
        for (wanted, said) in wanted.iter().zip(said) {
            let of = |what: &str| format!("{what} of {}", wanted.name);
            self.compare(&of("level"), &wanted.level, &said.level);
            self.compare(&of("unit"), &"requests".to_owned(), &said.unit);
            self.compare(&of("quota"), &wanted.quota, &said.quota);
            self.compare(&of("remaining"), &wanted.remaining, &said.remaining);
            self.compare(&of("reset_ms"), &wanted.reset_ms, &said.reset_ms);
            self.compare(&of("refused"), &wanted.refused, &said.refused);
            self.compare(&of("mode"), &wanted.mode, &said.mode);
        }
    }

    fn compare_next(&mut self, wanted: &[ExpectLimit], said: &[SaidLimit]) {
        for (wanted, said) in wanted.iter().zip(said) {
            if wanted.next_ms.is_some() {
                self.compare(&format!("next_ms of {}", wanted.name), &wanted.next_ms, &said.next_ms);
            }
        }
    }

    /// The headers follow from the answer: the tightest limit's numbers, its reset as a Unix time,
    /// the wait in whole seconds, both rounded up.
    fn compare_x_headers(&mut self, now_ms: u64, expect: &Expect, said: &Said) {
        let tightest = expect.limits.iter().find(|limit| Some(&limit.name) == expect.tightest.as_ref());
        let wanted = match tightest {
            Some(limit) => {
                let reset_secs = (now_ms + limit.reset_ms).div_ceil(1_000);
                [limit.quota, limit.remaining, reset_secs].map(|number| Some(number.to_string()))
            }
            None => [None, None, None],
        };
        self.compare("X-RateLimit-Limit, -Remaining, -Reset", &wanted, &said.headers.x_ratelimit);
        let wanted = expect.retry_after_ms.map(|wait_ms| wait_ms.div_ceil(1_000).to_string());
        self.compare("Retry-After", &wanted, &said.headers.retry_after);
    }

    fn compare_ietf_headers(&mut self, expect: &Expect, said: &Said) {
        let items = |header: &Option<String>| -> Vec<String> {
            header.iter().flat_map(|text| text.split(", ")).map(str::to_owned).collect()
        };
        let (standings, policies) = (items(&said.headers.ratelimit), items(&said.headers.policy));
        self.compare("members of RateLimit", &expect.limits.len(), &standings.len());
        self.compare("members of RateLimit-Policy", &expect.limits.len(), &policies.len());
        for ((limit, standing), policy) in expect.limits.iter().zip(&standings).zip(&policies) {
            let mut wanted = format!("\"{}\";r={};t=", limit.name, limit.remaining);
            let said = match limit.next_ms {
                Some(next_ms) => {
                    wanted.push_str(&next_ms.div_ceil(1_000).to_string());
                    standing.clone()
                }
                None => standing.chars().take(wanted.len()).collect(),
            };
            self.compare("RateLimit", &wanted, &said);
            let wanted = format!("\"{}\";q={};w=", limit.name, limit.quota);
            self.compare("RateLimit-Policy", &wanted, &policy.chars().take(wanted.len()).collect());
        }
    }
}
