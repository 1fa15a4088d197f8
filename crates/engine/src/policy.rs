//! What a limits file says, in types that need no more interpreting.
//!
//! A policy holds no counters: reloading it keeps every counter whose limit did not change.

use std::sync::Arc;

use tidegate_core::{Algorithm, Limit, Mode};

/// The rules of a limits file, and the settings beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The file's mode: the milder of it and a limit's own mode counts.
    pub mode: Mode,
    /// The rules, in the file's order.
    pub rules: Vec<Rule>,
    /// Which headers answers carry.
    pub headers: HeaderSettings,
    /// Where counters live.
    pub store: StoreSettings,
    /// Where the server listens.
    pub server: ServerSettings,
}

/// One limit, and the requests that it applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The limit itself.
    pub limit: Limit,
    /// It applies to requests that meet all of these; with none, to every request.
    pub when: Vec<Condition>,
    /// What a request's cost is multiplied with.
    pub weights: Weights,
    /// Other numbers for some requests; the first whose conditions are met counts.
    pub overrides: Vec<Override>,
    /// What happens where the request lacks an attribute of `per`.
    pub missing: Missing,
    /// What it does while a shared store does not answer.
    pub on_failure: OnFailure,
    /// How much of it this process counts with while a shared store does not answer.
    pub share: Share,
    /// Smaller is checked earlier. None: rates before calendar limits, more attributes first,
    /// then the file's order; rules with an `order` come before those without.
    pub order: Option<i64>,
}

/// A test on one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The attribute's name.
    pub attribute: Arc<str>,
    /// What its value has to be.
    pub test: Test,
}

/// What an attribute's value has to be. A missing attribute meets only [`Test::Absent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Equal to this.
    Equals(String),
    /// One of these.
    In(Vec<String>),
    /// Begins with this.
    Prefix(String),
    /// Matches this pattern: `*` stands for any run of characters, `?` for one character; both,
    /// and `\`, stand for themselves behind a `\`.
    Glob(Glob),
    /// Not there.
    Absent,
}

impl Test {
    /// Whether a value, or its absence, passes.
    pub fn passes(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::Absent, value) => value.is_none(),
            (_, None) => false,
            (Self::Equals(wanted), Some(value)) => wanted == value,
            (Self::In(wanted), Some(value)) => wanted.iter().any(|one| one == value),
            (Self::Prefix(prefix), Some(value)) => value.starts_with(prefix.as_str()),
            (Self::Glob(glob), Some(value)) => glob.matches(value),
        }
    }
}

/// A pattern with `*` and `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    pattern: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Char(char),
    One,
    Many,
}

impl Glob {
    /// Reads a pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        let mut parts = Vec::new();
        let mut chars = pattern.chars();
        while let Some(char) = chars.next() {
            match char {
                '*' if parts.last() == Some(&Part::Many) => {}
                '*' => parts.push(Part::Many),
                '?' => parts.push(Part::One),
                '\\' => parts.push(Part::Char(chars.next().unwrap_or('\\'))),
                other => parts.push(Part::Char(other)),
            }
        }
        Self { pattern: pattern.to_owned(), parts }
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the whole of `value` matches. Takes at most pattern length × value length steps.
    pub fn matches(&self, value: &str) -> bool {
        let mut rest = value;
        let mut at = 0;
        // Where the last `*` stood, and what was left of the value for it to swallow.
        let mut retry: Option<(usize, &str)> = None;
        loop {
            let mut after = rest.chars();
            let next = after.next();
            match (self.parts.get(at), next) {
                (None, None) => return true,
                (Some(Part::Many), _) => {
                    retry = Some((at, rest));
                    at += 1;
                    continue;
                }
                (Some(Part::One), Some(_)) => {
                    rest = after.as_str();
                    at += 1;
                    continue;
                }
                (Some(Part::Char(wanted)), Some(found)) if *wanted == found => {
                    rest = after.as_str();
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let Some((star, swallowed)) = retry else { return false };
            let mut shorter = swallowed.chars();
            if shorter.next().is_none() {
                return false;
            }
            retry = Some((star, shorter.as_str()));
            rest = shorter.as_str();
            at = star + 1;
        }
    }
}

/// What a request's cost is multiplied with before it reaches a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Where no other weight applies. 0: such requests are free here.
    pub base: u64,
    /// Weights by an attribute's value; the largest that applies counts.
    pub by: Vec<(Arc<str>, ValueWeights)>,
}

/// Values of one attribute with their weights.
pub type ValueWeights = Vec<(String, u64)>;

impl Default for Weights {
    fn default() -> Self {
        Self { base: 1, by: Vec::new() }
    }
}

/// Other numbers for some requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Applies to requests that meet all of these.
    pub when: Vec<Condition>,
    /// The counting rule in place of the limit's own: the same kind with other numbers.
    pub algorithm: Algorithm,
}

/// What happens where a request lacks an attribute of a limit's `per`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// The limit does not apply; that is counted.
    #[default]
    Skip,
    /// The request is refused.
    Deny,
    /// The attribute counts as having this value.
    Value(Arc<str>),
}

/// Which headers answers carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderSettings {
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    pub x_ratelimit: bool,
    /// `RateLimit-Policy` and `RateLimit` of the IETF draft.
    pub ietf: bool,
    /// `Retry-After` on refusals.
    pub retry_after: bool,
    /// What `X-RateLimit-Reset` holds.
    pub reset: ResetForm,
}

impl Default for HeaderSettings {
    fn default() -> Self {
        Self { x_ratelimit: true, ietf: true, retry_after: true, reset: ResetForm::Unix }
    }
}

/// What `X-RateLimit-Reset` holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetForm {
    /// A Unix timestamp in seconds, rounded up.
    #[default]
    Unix,
    /// Seconds from now, rounded up.
    Delta,
}

/// Where counters live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In this process.
    Memory(MemorySettings),
    /// On a server that others use too.
    Shared(Box<SharedSettings>),
}

/// A shared store, and what stands in for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSettings {
    /// The server.
    pub redis: RedisSettings,
    /// The store in this process that stands in while the server does not answer.
    pub local: MemorySettings,
}

/// What a limit does while the shared store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// This process counts, with the whole limit: nothing is refused that the shared store would have
    /// admitted, and a runaway is stopped all the same. The default of rates.
    #[default]
    Local,
    /// Everything passes, uncounted. The default of calendar limits.
    Open,
    /// Nothing passes.
    Closed,
}

/// How much of a limit a process counts with, of those that share a store, while that does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Share {
    /// All of it: nobody is refused whom the shared store would have admitted.
    #[default]
    Full,
    /// As much as each gets who was there before the outage: together they stay about within the limit.
    Fair,
}

impl OnFailure {
    /// What a limit does that says nothing of it.
    pub const fn default_of(algorithm: &Algorithm) -> Self {
        match algorithm {
            Algorithm::Calendar(_) => Self::Open,
            _ => Self::Local,
        }
    }

    /// The word in the limits file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self::Memory(MemorySettings::default())
    }
}

pub use tidegate_store::RedisSettings;
pub use tidegate_store::memory::{AtCap, MemorySettings};

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// The address for checks: `host:port`.
    pub listen: String,
    /// The address for operators: `host:port`.
    pub admin_addr: String,
    /// The bearer token that the admin listener asks for, if any.
    pub admin_token: Option<Secret>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { listen: "127.0.0.1:8080".into(), admin_addr: "127.0.0.1:9090".into(), admin_token: None }
    }
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}
